/**
 * What operators ordered for queues, over what apps declare: it is in the app's row, which every site follows, and
 * stays when another version is deployed.
 */
import { KV_QUEUE } from "../../functions/queues/kv_queue.ts";
import { type AppRows, type Change, type ChangeRefusal, refuse, unchanged } from "./app_rows.ts";
import type { AppRecord } from "./records.ts";

/** Writer of the orders for queues, at the root. */
export class QueueOrders {
  readonly #rows: AppRows;
  readonly #nowMs: () => number;

  constructor(rows: AppRows, nowMs: () => number) {
    this.#rows = rows;
    this.#nowMs = nowMs;
  }

  /** Has no message of a queue given out, or has them given out again. */
  pause(app: string, queue: string, isPaused: boolean): Promise<Change | ChangeRefusal> {
    return this.#order(app, queue, (before) => {
      const { paused = false, ...others } = before;
      return paused === isPaused ? null : isPaused ? { ...others, paused: true } : others;
    });
  }

  /** Has all messages removed that were sent so far, at whichever site, also one that is down. */
  purge(app: string, queue: string): Promise<Change | ChangeRefusal> {
    return this.#order(app, queue, (before) => ({ ...before, purgedBeforeMs: Math.ceil(this.#nowMs()) }));
  }

  #order(
    app: string,
    queue: string,
    order: (before: QueueOrder) => QueueOrder | null,
  ): Promise<Change | ChangeRefusal> {
    return this.#rows.changing(app, async (found, record) => {
      const current = record.current ?? "", manifests = await this.#rows.manifests(versionsOf(record));
      if (queue !== KV_QUEUE && !manifests.some((each) => Object.hasOwn(each.queues, queue))) {
        return refuse("queue_unknown", `${app} has no queue called ${JSON.stringify(queue.slice(0, 100))}`);
      }
      const before = record.queues ?? {};
      const next = order(before[queue] ?? {});
      if (next === null) return unchanged(found, current);
      return await this.#rows.write(found, { ...record, queues: { ...before, [queue]: next } }, current);
    });
  }
}

type QueueOrder = NonNullable<AppRecord["queues"]>[string];

/** Returns the versions of an app whose queues there are. */
function versionsOf({ current, rollout, preparing }: AppRecord): string[] {
  return [current, rollout?.version, preparing?.version].flatMap((one) => one ?? []);
}
