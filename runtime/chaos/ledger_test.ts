import assert from "node:assert/strict";
import { chaosActionSchema, explainAction } from "./actions.ts";
import { Ledger, NO_FAULTS, siteFaultsSchema } from "./ledger.ts";

const SHAPE = { rttMs: 80, mbps: 10, jitterMs: 1, loss: 0.1 };

Deno.test("a ledger tells both ends of a link the same (G1)", () => {
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
    [{}, /there are kill, restart/],
    [{ action: "kill" }, /^site: expected a site id like edge-1: .*, found none$/],
    [{ action: "kill", site: 7 }, /^site: expected a site id .*, not 7$/],
    [{ action: "kill", site: "a", when: "now" }, /^when: no field of this action$/],
    [{ action: "partition", a: "x" }, /^a: expected a list of 1 to 64 sites, not "x"$/],
    [{ action: "partition", a: [] }, /^a: expected a list of 1 to 64 sites, not \[\]$/],
    [{ action: "delay", a: "a", b: "b", rttMs: "9" }, /^rttMs: expected milliseconds, 0 to 10000, not "9"$/],
    [{ action: "delay", a: "a", b: "b", loss: 2 }, /^loss: expected a share of the frames, 0 to 1, not 2$/],
    [
      { action: "delay", a: "a", b: "b", mbps: 0 },
      /^mbps: expected a rate in Mbit\/s, 0.01 to 100000, not 0$/,
    ],
    [{ action: "skew", site: "a" }, /^ms: expected whole milliseconds, .*, found none$/],
    [{ action: "evict", site: "a", app: "b", table: "" }, /^table: expected a table's name, not ""$/],
    [{ action: "kill", site: "Edge 1" }, /expected a site id like edge-1: .*, not "Edge 1"/],
    [{ action: "skew", site: "a", ms: 1.5 }, /^ms: .*, not 1.5/],
    [{ action: "heal", a: "a" }, /both ends/],
    [{ action: "evict", site: "a", table: "t" }, /an app with the table/],
    [{ action: "disk", site: "a", state: "gone" }, /^state: expected one of ok, full, fail, not "gone"$/],
    [null, /^expected a JSON object: /],
    ["kill", /^expected a JSON object: /],
  ];
  for (const [body, says] of rows) {
    const parsed = chaosActionSchema.safeParse(body);
    assert(!parsed.success, JSON.stringify(body));
    const said = explainAction(parsed.error, body);
    assert.match(said, says);
    assert.doesNotMatch(said, /Invalid|Too |received/, "the words of the library");
  }
});
