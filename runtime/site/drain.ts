/**
 * A planned stop: requests end → handlers of messages end → isolates end → the disk of the queues knows until when the
 * site is away → the site announces it → the root has the announcement, and all that came before it.
 *
 * D1  When the announcement is written nothing of an app runs here any more (store/change/members.ts A1).
 */
import type { Replica } from "../../store/api/api.ts";
import type { Drained } from "../admin/services.ts";
import { pause } from "../observe/pause.ts";

/** Parts of the site that are drained. */
interface Parts {
  readonly replica: Replica;
  readonly apps: {
    readonly isolates: { close(): Promise<void> };
    readonly stateful: { close(): Promise<void> };
    readonly messages: { quiet(): Promise<void>; close(awayUntilMs: number): Promise<void> };
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

/** Drains the site: gives back everything that another site may need. */
export async function drain({ replica, apps, requests, untilMs }: Parts): Promise<Drained> {
  const cutMs = performance.now() + REQUESTS_MS_MAX;
  const gone = new AbortController();
  while (requests.count() > 0 && performance.now() < cutMs) await pause(LOOK_MS, gone.signal);
  requests.cut();
  await apps.messages.quiet();
  await apps.stateful.close();
  await apps.isolates.close();
  // From here on others wait for this site as an owner, until they hear that it is away.
  await apps.messages.close(untilMs);
  const left = replica.members.leave(untilMs).then(() => true);
  const complete = await Promise.race([left, pause(PUSH_MS_MAX, gone.signal).then(() => false)]);
  gone.abort();
  return { untilMs, pending: replica.status().pending, complete };
}
