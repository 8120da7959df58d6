/**
 * In a process of its own: bytes of heap of an open stateful session that does nothing, in the executor. After other work
 * in the same process it would be less: what is let go of meanwhile is taken off.
 */
import { encodeCall } from "../../../functions/calls/call.ts";
import { Session } from "../../../functions/class/session.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { Solo } from "../../functions/sessions/turn/solo.ts";
import { freshAnswer, freshInput } from "../fresh.ts";

class Counter extends Session {
  n = 0;
  add(by: number): number {
    return this.n += by;
  }
}

const count = Number(freshInput());
const bytes = encodeCall({ kind: "rpc", method: "add", args: encodeValue([1]) });

function used(): number {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}

/** Each has done something, and has its checkpoint. */
function open(solo: Solo, from: number, to: number): void {
  for (let channel = from; channel < to; channel++) {
    solo.open({ id: `session ${channel}` }, channel);
    solo.deliver({ kind: "request", request: "r", chain: [], bytes }, channel);
    solo.loop.acknowledge(channel, { outputs: { r: 1 }, effects: 0 });
    solo.loop.checkpointNow(channel);
    solo.run();
    solo.commits.length = solo.checkpoints.length = 0;
  }
  if (solo.parked !== null) throw new Error("one was parked");
}

freshAnswer(
  await inMacrotask(() => {
    const solo = new Solo(Counter);
    const first = 1 + Math.ceil(count / 10); // for the compiler
    open(solo, 1, first);
    const before = used();
    open(solo, first, first + count);
    return (used() - before) / count;
  }),
);
