/**
 * Writes a recorded log: run once for each form of logs and checkpoints, by the code that writes it.
 *
 *   deno run -A tests/golden/sessions/record.ts FILE
 */
import { encodeCall } from "../../../functions/calls/call.ts";
import type { HandledEvent } from "../../../functions/sessions/turn/mod.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { Solo } from "../../functions/sessions/turn/solo.ts";
import { Ledger } from "./ledger.ts";

let requests = 0;
const call = (method: string, ...args: unknown[]): HandledEvent => ({
  kind: "request",
  request: `request ${requests++}`,
  chain: [],
  bytes: encodeCall({ kind: "rpc", method, args: encodeValue(args) }),
});

const hex = (bytes: Uint8Array): string => bytes.toHex();

/** All that happens, twice: before the checkpoint and after it. */
function act(solo: Solo, round: number): void {
  solo.nowMs += 1_234;
  solo.deliver(call("pay", "ada", 5)).deliver(call("pay", "bob", round));
  solo.deliver(call("fail", "ada"));
  solo.deliver({ kind: "message", peer: "p1", message: `hello ${round}` });
  solo.deliver({ kind: "message", peer: "p1", message: Uint8Array.of(1, 2, 3) });
  solo.deliver(call("ask", "weather"));
  solo.result(round * 2 - 1, new TextEncoder().encode("fine"));
  solo.nowMs += 7;
  solo.timersDue.shift()?.();
  solo.run();
  solo.deliver(call("ask", "time"));
  solo.result(round * 2, new TextEncoder().encode("late"));
  solo.timersDue.shift()?.();
  solo.run();
  solo.deliver(call("remind", 500));
  const dueMs = solo.commits.flatMap(({ timers }) => timers).at(-1)?.dueMs ?? 0;
  solo.nowMs += 600;
  if (round === 1) solo.deliver({ kind: "timer", name: "remind", dueMs });
}

const [path] = Deno.args;
if (path === undefined) throw new Error("which file?");
const recorded = await inMacrotask(() => {
  const solo = new Solo(Ledger as never).open({ code: "golden" });
  solo.deliver({ kind: "attach", peer: { kind: "client", id: "p1" } });
  solo.deliver({ kind: "attach", peer: { kind: "origin", id: "o1" } });
  act(solo, 1);
  solo.loop.checkpointNow(1);
  solo.run();
  const before = solo.commits.length;
  solo.deliver({ kind: "detach", peer: "o1" });
  act(solo, 2);
  const [checkpoint] = solo.checkpoints as unknown as {
    readonly at: number;
    readonly bytes: Uint8Array;
    readonly state?: readonly Uint8Array[];
  }[];
  if (checkpoint === undefined || solo.parked !== null) {
    throw new Error(`no checkpoint: ${solo.parked?.message}`);
  }
  return {
    format: checkpoint.bytes[0],
    checkpoint: {
      at: checkpoint.at,
      bytes: hex(checkpoint.bytes),
      state: (checkpoint.state ?? []).map(hex),
    },
    commits: solo.commits.map(({ first, count, entries }, i) => ({
      ...{ first, count, entries: hex(entries), isAfter: i >= before },
    })),
    outputs: solo.commits.flatMap(({ outputs }) =>
      outputs.map(({ to, sequence, bytes }) => ({ to, sequence, bytes: hex(bytes) }))
    ),
    state: (solo.object as unknown as Ledger).state(),
  };
});
await Deno.writeTextFile(path, `${JSON.stringify(recorded, null, 1)}\n`);
