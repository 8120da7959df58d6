/**
 * A planned stop: requests end → handlers of messages end → isolates end → the disk of the queues knows until when the
 * site is away → the site announces it → the root has the announcement, and all that came before it.
 *
 * D1  When the announcement is written nothing of an app runs here any more (store/change/members.ts A1).
 * D2  The announcement says of which messages and logs of sessions no other disk is known to have a copy: counted when
 *     sessions have moved and handlers have ended, it stays so while the site is away.
 */
import type { Replica, SoleCopies } from "../../store/api/api.ts";
import type { Drained } from "../admin/services.ts";
import { pause } from "../observe/pause.ts";

/** Parts of the site that are drained. */
interface Parts {
  readonly replica: Replica;
  readonly apps: {
    readonly isolates: { close(): Promise<void> };
    readonly stateful: { leave(): Promise<number> };
    readonly messages: {
      quiet(): Promise<void>;
      close(awayUntilMs: number): Promise<void>;
      sole(): readonly SoleCopies[];
    };
  };
  readonly requests: { readonly count: () => number; readonly cut: () => void };
  readonly untilMs: number;
}

/** Milliseconds for running requests to end; as long as at any other stop (site.ts). */
const REQUESTS_MS_MAX = 3_000;
/**
 * Milliseconds for pending rows to be pushed: tens of megabytes over a slow link. Rows that are left stay on the disk.
 */
const PUSH_MS_MAX = 10_000;
const LOOK_MS = 10;
/** Kinds of copies that are named: the row goes to every site of the tree. */
const SOLE_MAX = 20;

/** Drains the site: gives back everything that another site may need. */
export async function drain({ replica, apps, requests, untilMs }: Parts): Promise<Drained> {
  const cutMs = performance.now() + REQUESTS_MS_MAX;
  const gone = new AbortController();
  while (requests.count() > 0 && performance.now() < cutMs) await pause(LOOK_MS, gone.signal);
  requests.cut();
  await apps.messages.quiet();
  const logs = await apps.stateful.leave();
  await apps.isolates.close();
  // From here on others wait for this site as an owner, until they hear that it is away.
  await apps.messages.close(untilMs);
  const sole = [...apps.messages.sole()].sort((one, other) => other.count - one.count); // D2
  if (logs > 0) sole.unshift({ what: "logs of stateful sessions", count: logs });
  const told = sole.length <= SOLE_MAX
    ? sole
    : [...sole.slice(0, SOLE_MAX - 1), restOf(sole.slice(SOLE_MAX - 1))];
  const left = replica.members.leave(untilMs, told).then(() => true);
  const complete = await Promise.race([left, pause(PUSH_MS_MAX, gone.signal).then(() => false)]);
  gone.abort();
  return { untilMs, pending: replica.status().pending, complete, sole: told };
}

const restOf = (queues: readonly SoleCopies[]): SoleCopies => ({
  what: `messages of ${queues.length} other queues`,
  count: queues.reduce((sum, { count }) => sum + count, 0),
});
