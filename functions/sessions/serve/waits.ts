/**
 * Search for circles of stateful sessions that wait for one another (docs/protocol/waits.md).
 *
 * A session waits for the calls that the handler which runs has made, and that have no outcome. A call that has not
 * been begun waits for the session that it is for. A home that has such a call in its line follows these steps from
 * site to site.
 *
 * W1  A circle that was seen twice in a row, each step with the same calls, was there all at once in between: a call
 *     has its id for itself, and waits once. So nothing fails with `cycle` for steps that never were there together.
 * W2  Of the calls of a circle the one with the greatest id of those that were not begun fails, whoever looks: so one
 *     fails, and it is refused by its own home, while it has not been begun there.
 * W3  A look ends: it asks at most LOOKS_MAX times. A site that can't be asked waits for nothing.
 */
import type { StatefulName } from "../home/mod.ts";
import { HOPS_MAX } from "./limits.ts";
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";

/** A call of a stateful session to another, without an outcome. */
export interface WaitedCall {
  readonly name: StatefulName;
  /** Id of the request that the call is. */
  readonly request: string;
}

/** Reply that tells what a call waits for. */
export interface CallWait {
  /** True while the call has not been begun. */
  readonly isQueued: boolean;
  /** Calls of the handler that runs at the session which the call is for. */
  readonly calls: readonly WaitedCall[];
}

/** A question for what a call waits for, on its way between sites. */
export interface WaitsAsked extends WaitedCall {
  /** Site that the question is for. */
  readonly to: string;
  readonly hops: number;
}

/**
 * Number of questions in a look: a circle has at most as many steps as a chain of calls has (forwarded.ts), and few of
 * them branch (W3).
 */
const LOOKS_MAX = 64;
/** Number of calls of one handler that are told. */
export const WAITED_CALLS_MAX = 64;

/** Reply for a call that nobody knows of. */
export const NO_WAITS: CallWait = { isQueued: false, calls: [] };

/**
 * Returns a circle through a session: its calls in the order in which they wait; null: there is none.
 *
 * @param calls the calls that the session's handler waits for.
 * @param queued the ids of the calls in its line: the last call of the circle is among them.
 */
async function circle(
  calls: readonly WaitedCall[],
  queued: ReadonlySet<string>,
  ask: (call: WaitedCall) => Promise<CallWait>,
): Promise<readonly Step[] | null> {
  const seen = new Set<string>();
  let next = new Map<readonly Step[], readonly WaitedCall[]>([[[], calls]]);
  while (next.size > 0) {
    const further = new Map<readonly Step[], readonly WaitedCall[]>();
    for (const [path, waited] of next) {
      for (const call of waited) {
        if (queued.has(call.request)) return [...path, { ...call, isQueued: true }];
        if (seen.has(call.request) || seen.size >= LOOKS_MAX) continue; // W3
        seen.add(call.request);
        const { isQueued, calls } = await ask(call);
        further.set([...path, { ...call, isQueued }], calls);
      }
    }
    next = further;
  }
  return null;
}

interface Step extends WaitedCall {
  readonly isQueued: boolean;
}

/**
 * Returns the call of this session's line that is to fail with `cycle`, and the calls of its circle; null: none is.
 *
 * @param look returns the calls that the session's handler waits for, and its line, as of now.
 */
export async function victim(
  look: () => { readonly calls: readonly WaitedCall[]; readonly queued: ReadonlySet<string> },
  ask: (call: WaitedCall) => Promise<CallWait>,
): Promise<{ readonly request: string; readonly circle: readonly WaitedCall[] } | null> {
  const found = async () => {
    const { calls, queued } = look();
    return calls.length === 0 || queued.size === 0 ? null : await circle(calls, queued, ask);
  };
  const first = await found();
  const own = first?.at(-1)?.request;
  if (first === null || own === undefined || own !== greatest(first)) return null; // W2
  const again = await found();
  return again !== null && isSame(first, again) ? { request: own, circle: again } : null; // W1
}

/**
 * Returns the greatest id of the calls that were not begun (W2). Ids are digests or drawn; their order means nothing,
 * and is the same everywhere.
 */
function greatest(steps: readonly Step[]): string {
  let most = "";
  for (const { request, isQueued } of steps) if (isQueued && request > most) most = request;
  return most;
}

const isSame = (first: readonly Step[], again: readonly Step[]): boolean =>
  first.length === again.length &&
  first.every(({ request, isQueued }, at) =>
    again[at]?.request === request && again[at].isQueued === isQueued
  );

export function encodeWaitsAsked({ name, request, to, hops }: WaitsAsked): Uint8Array {
  const writer = new Writer().text(name.app).text(name.class).text(name.id);
  return writer.text(request).text(to).uint(hops).done();
}

/** Reads a question. @throws CodecError */
export function decodeWaitsAsked(head: Uint8Array): WaitsAsked {
  const reader = new Reader(head);
  const name = { app: reader.text(), class: reader.text(), id: reader.text() };
  const asked = { name, request: reader.text(), to: reader.text(), hops: reader.uint() };
  reader.end();
  if (asked.hops > HOPS_MAX) throw new CodecError(`a question takes at most ${HOPS_MAX} links`);
  return asked;
}

/** Encodes a reply. The app is left out: what a call waits for is of the same app. */
export function encodeWaits({ isQueued, calls }: CallWait): Uint8Array {
  const writer = new Writer().flag(isQueued);
  return writer.list(calls, ({ name, request }) => {
    writer.text(name.class).text(name.id).text(request);
  }).done();
}

/** Reads a reply. @throws CodecError */
export function decodeWaits(head: Uint8Array, app: string): CallWait {
  const reader = new Reader(head);
  const isQueued = reader.flag();
  const calls = reader.list(() => ({
    name: { app, class: reader.text(), id: reader.text() },
    request: reader.text(),
  }));
  reader.end();
  if (calls.length > WAITED_CALLS_MAX) throw new CodecError(`at most ${WAITED_CALLS_MAX} calls are told`);
  return { isQueued, calls };
}
