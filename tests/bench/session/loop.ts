/**
 * In a process of its own: a message of a stateful session through the executor, 64 in flight, beside the same handler
 * without one; its replay; and the heap of sessions that do nothing. In one macrotask, with no site and no socket.
 */
import { decodeCall, encodeAnswer, encodeCall } from "../../../functions/calls/call.ts";
import { Session } from "../../../functions/session.ts";
import { decodeValue, encodeValue } from "../../../functions/value.ts";
import { inMacrotask } from "../../turns/run.ts";
import { Solo } from "../../turns/solo.ts";
import { freshAnswer, freshInput } from "../fresh.ts";

class Counter extends Session {
  n = 0;
  add(by: number): number {
    return this.n += by;
  }
}

const IN_FLIGHT = 64;
/** So many are replayed at most: a checkpoint comes then (stateful_session.ts). */
const REPLAYED = 250;

const { messages, idle } = freshInput() as { readonly messages: number; readonly idle: number };
const bytes = encodeCall({ kind: "rpc", method: "add", args: encodeValue([1]) });

/** µs a message, of `work` on so many. */
function usOf(count: number, work: () => void): number {
  const begun = performance.now();
  work();
  return (performance.now() - begun) * 1000 / count;
}

/** What a function does with the same bytes. */
function bare(): void {
  const counter = { n: 0, add: (by: number) => counter.n += by };
  for (let i = 0; i < messages; i++) {
    const call = decodeCall(bytes);
    if (call.kind !== "rpc") throw new Error("it is a method's");
    const [by = 0] = decodeValue(call.args) as number[];
    encodeAnswer({ kind: "value", value: encodeValue(counter.add(by)) });
  }
  if (counter.n !== messages) throw new Error("some were lost");
}

function opened(count: number): Solo {
  const solo = new Solo(Counter);
  for (let channel = 1; channel <= count; channel++) solo.open({ id: `session ${channel}` }, channel);
  return solo;
}

function recorded(solo: Solo): void {
  for (let round = 1; round <= messages / IN_FLIGHT; round++) {
    for (let channel = 1; channel <= IN_FLIGHT; channel++) {
      const request = `request ${round}`;
      solo.loop.deliver(channel, {
        kind: "request",
        request,
        chain: [],
        bytes,
        number: round,
        storeClock: round,
      });
    }
    solo.run();
    for (const { outputs } of solo.commits.splice(0)) if (outputs.length !== 1) throw new Error("no answer");
    solo.checkpoints.length = 0;
    for (let channel = 1; channel <= IN_FLIGHT; channel++) {
      solo.loop.acknowledge(channel, { outputs: { [`request ${round}`]: 1 }, effects: 0 });
    }
  }
}

function logOf(): Uint8Array {
  const solo = new Solo(Counter).open();
  for (let i = 0; i < REPLAYED; i++) {
    solo.deliver({ kind: "request", request: `request ${i}`, chain: [], bytes });
  }
  return solo.entries;
}

function replayed(entries: Uint8Array, times: number): void {
  for (let i = 0; i < times; i++) {
    const { parked } = new Solo(Counter).open({ entries });
    if (parked !== null) throw new Error(parked.message);
  }
}

function heapOf(count: number): number {
  const used = () => {
    (globalThis as { gc?: () => void }).gc?.();
    const { heapUsed, external } = Deno.memoryUsage();
    return heapUsed + external;
  };
  const solo = opened(1);
  const before = used();
  for (let channel = 2; channel <= count + 1; channel++) {
    solo.open({ id: `session ${channel}` }, channel);
    solo.deliver({ kind: "request", request: "r", chain: [], bytes }, channel);
    solo.loop.acknowledge(channel, { outputs: { r: 1 }, effects: 0 });
    solo.loop.checkpointNow(channel);
    solo.run();
    solo.commits.length = solo.checkpoints.length = 0;
  }
  const heap = (used() - before) / count;
  if (solo.parked !== null) throw new Error("one was parked");
  return heap;
}

freshAnswer(
  await inMacrotask(() => {
    const times = Math.ceil(messages / REPLAYED);
    const entries = logOf();
    // The first round is for the compiler.
    for (let round = 0;; round++) {
      const without = usOf(messages, bare);
      const solo = opened(IN_FLIGHT);
      const within = usOf(messages, () => recorded(solo));
      const again = usOf(times * REPLAYED, () => replayed(entries, times));
      if (round > 0) {
        return { without, within, again, logBytes: entries.length / REPLAYED, idle: heapOf(idle) };
      }
    }
  }),
);
