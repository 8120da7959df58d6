/** How a base comes from a home to one of its owners (functions/sessions/log/base_transfer.ts). */
import assert from "node:assert/strict";
import type { Base, Reply } from "../../../../functions/sessions/log/asks.ts";
import { installBase, type PartialAsk, sendBase } from "../../../../functions/sessions/log/base_transfer.ts";
import { markAfter, NO_STATE, type StateMark } from "../../../../functions/sessions/log/state_parts.ts";

const PARTS = [1, 2, 3, 4, 5].map((byte) => Uint8Array.of(byte));
const markOf = (count: number): StateMark => markAfter(NO_STATE, PARTS.slice(0, count));

/** A home with a base at entry 9, which gives two parts at a time; what its owner is asked. */
function sending() {
  const asked: string[] = [];
  const state = {
    ...{
      base: { at: 9, state: markOf(5) } as unknown as Base | null,
      replacedAt: Infinity,
      lacksAt: Infinity,
    },
    overAt: Infinity,
  };
  const ports = {
    base: () => Promise.resolve(state.base),
    hasState: (mark: StateMark) => mark.check === markOf(mark.count).check,
    parts: (at: number, first: number) =>
      Promise.resolve(at === 9 && first < state.replacedAt ? PARTS.slice(first, first + 2) : null),
    ask: (ask: PartialAsk): Promise<Reply | null> => {
      const parts = ask.parts.map((part) => part[0]).join("");
      const kept = ask.kind === "checkpoint" ? ` on ${ask.kept.count}` : "";
      asked.push(ask.kind === "upload" ? `upload ${ask.first} ${parts}` : `${ask.kind}${kept} ${parts}`);
      if (asked.length >= state.overAt) return Promise.resolve(null);
      if (asked.length >= state.lacksAt) return Promise.resolve({ kind: "refused" } as unknown as Reply);
      return Promise.resolve({ kind: "held", through: 12 } as unknown as Reply);
    },
  };
  return { ports, asked, state };
}

Deno.test("an owner is sent what it lacks, some at a time, and the base with the last of it", async () => {
  for (
    const [had, expected] of [
      [NO_STATE, ["upload 0 12", "upload 2 34", "checkpoint on 0 5"]],
      [markOf(2), ["upload 2 34", "checkpoint on 2 5"]],
      [markOf(4), ["checkpoint on 4 5"]],
      [markOf(5), ["checkpoint on 5 "]],
      [{ count: 2, check: 1 }, ["upload 0 12", "upload 2 34", "checkpoint on 0 5"]],
    ] as const
  ) {
    const { ports, asked, state } = sending();
    assert.deepEqual(await sendBase(ports, had, 8), { base: state.base, through: 12 });
    assert.deepEqual(asked, expected);
  }
});

Deno.test("it begins anew where the home has another base by then, or the owner has that already (BT1)", async () => {
  const known = sending();
  assert.equal(await sendBase(known.ports, NO_STATE, 9), "again");
  known.state.base = null;
  assert.equal(await sendBase(known.ports, NO_STATE, 0), "again");
  assert.deepEqual(known.asked, []);
  const replaced = sending();
  replaced.state.replacedAt = 2;
  assert.equal(await sendBase(replaced.ports, NO_STATE, 8), "again");
  assert.deepEqual(replaced.asked, ["upload 0 12"]);
  for (const [at, outcome] of [["lacksAt", "lacks"], ["overAt", "over"]] as const) {
    const { ports, asked, state } = sending();
    state[at] = 2;
    assert.equal(await sendBase(ports, NO_STATE, 8), outcome);
    assert.equal(asked.length, 2, "nothing more is sent");
  }
});

Deno.test("a blank owner is given a base that fits one packet, and else nothing yet", async () => {
  const of = { turn: 1, seed: new Uint8Array(32), version: "v" };
  const large = sending();
  assert.deepEqual(await installBase(large.ports, of, true), { base: null, through: 12 });
  assert.deepEqual(large.asked, ["install "]);
  const known = sending();
  assert.deepEqual(await installBase(known.ports, of, false), { base: known.state.base, through: 12 });
  assert.deepEqual(known.asked, ["upload 0 12", "upload 2 34", "install 5"]);
  const small = sending();
  small.state.base = { at: 9, state: markOf(2) } as unknown as Base;
  assert.deepEqual(await installBase(small.ports, of, true), { base: small.state.base, through: 12 });
  assert.deepEqual(small.asked, ["install 12"]);
  const none = sending();
  none.state.base = null;
  assert.deepEqual(await installBase(none.ports, of, true), { base: null, through: 12 });
  const gone = sending();
  gone.state.replacedAt = 0;
  assert.equal(await installBase(gone.ports, of, true), "again");
  gone.state.base = null;
  gone.state.lacksAt = 1;
  assert.equal(await installBase(gone.ports, of, false), "over");
});
