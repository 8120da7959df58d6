import assert from "node:assert/strict";
import { chaosActionSchema, explainAction } from "./actions.ts";
import { Ledger, NO_FAULTS, siteFaultsSchema } from "./ledger.ts";

const SHAPE = { rttMs: 80, mbps: 10, jitterMs: 1, loss: 0.1 };

Deno.test("a ledger tells both ends of a link the same", () => {
  const ledger = new Ledger();
  ledger.cut(["a", "b"], ["c"]);
  ledger.cut(["c"], ["a"]);
  ledger.shape(["c", "a"], SHAPE);
  assert.deepEqual(ledger.of("a"), { ...NO_FAULTS, cut: ["c"], shapes: { c: SHAPE } });
  assert.deepEqual(ledger.of("c"), { ...NO_FAULTS, cut: ["a", "b"], shapes: { a: SHAPE } });
  assert.deepEqual(ledger.of("d"), NO_FAULTS);
  assert.deepEqual(ledger.state().cuts, [{ a: "a", b: "c" }, { a: "b", b: "c" }]);
  siteFaultsSchema.parse(ledger.of("a"));
});

Deno.test("a ledger heals one link, then all, and counts them", () => {
  const ledger = new Ledger();
  ledger.cut(["a", "b"], ["c"]);
  ledger.shape(["a", "c"], SHAPE);
  assert.equal(ledger.heal(["c", "a"]), 1, "cut and delayed: one link");
  assert.deepEqual(ledger.of("c").cut, ["b"]);
  assert.equal(ledger.heal(["c", "a"]), 0);
  ledger.skew("a", -5);
  ledger.disk("b", "full");
  assert.equal(ledger.heal(), 1);
  assert.deepEqual(ledger.state(), {
    cuts: [],
    delays: [],
    skews: [{ site: "a", ms: -5 }],
    disks: [{ site: "b", state: "full" }],
  });
  ledger.skew("a", 0);
  ledger.disk("b", "ok");
  assert.deepEqual([ledger.of("a"), ledger.of("b")], [NO_FAULTS, NO_FAULTS]);
});

Deno.test("an action that is none is told what would be accepted", () => {
  const rows: [unknown, RegExp][] = [
    [{ action: "boom" }, /there are kill, restart, pause, resume, wipe, partition/],
    [{ action: "kill" }, /^site: /],
    [{ action: "kill", site: "Edge 1" }, /expected a site id like edge-1: .*, not "Edge 1"/],
    [{ action: "skew", site: "a", ms: 1.5 }, /^ms: .*, not 1.5/],
    [{ action: "heal", a: "a" }, /both ends/],
    [{ action: "evict", site: "a", table: "t" }, /an app with the table/],
    [{ action: "disk", site: "a", state: "gone" }, /"ok"\|"full"\|"fail"/],
    [null, /./],
  ];
  for (const [body, says] of rows) {
    const parsed = chaosActionSchema.safeParse(body);
    assert(!parsed.success, JSON.stringify(body));
    assert.match(explainAction(parsed.error, body), says);
  }
});
