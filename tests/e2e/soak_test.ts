/** A few rounds of the soak (tests/soak), and that it can fail: on sites without handoffs, and by its records. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { History, type Operation } from "../examples/board/history.ts";
import { soakHostile } from "../soak/hostile.ts";
import { judge, soak, SOAK_APP, type Soaked } from "../soak/soak.ts";
import { startCluster, type TestCluster } from "./cluster.ts";

const NO_HANDOFF = join(import.meta.dirname ?? "", "no_handoff_main.ts");
/** Draws a pause, a partition with a kill, and two kills at once. */
const SEED = 303;
const common = { seed: SEED, clients: 6, msMax: 120_000, say: () => {} };

/** The records with the newest acknowledged write of one kind falsified. */
function falsified(history: History, change: (operation: Operation) => Operation | null): History {
  const other = new History();
  for (const operations of history.sessions) other.begin().push(...operations);
  for (const [row, placements] of history.placements) other.place(row, placements);
  for (const operations of other.sessions) {
    for (const [i, operation] of operations.entries()) {
      const changed = operation.outcome === "acknowledged" ? change(operation) : null;
      if (changed === null) continue;
      operations[i] = changed;
      return other;
    }
  }
  throw new Error("there is no such operation");
}

/** Records of a good run that one lie makes bad: the judges see each. */
async function liesAreFound(cluster: TestCluster, { history }: Soaked): Promise<void> {
  const lies: [RegExp, (operation: Operation) => Operation | null][] = [
    [
      /at the root; a version f{20} was acknowledged/,
      (operation) =>
        operation.interaction !== "put" ? null : {
          ...operation,
          written: operation.written.map((row) => ({ ...row, version: "f".repeat(20) })),
        },
    ],
    [/^\["sum","k\d+"\] is \d+ at the root, not/, (operation) =>
      operation.interaction !== "add" ? null : {
        ...operation,
        added: operation.added.map(({ counter }) => ({ counter, by: 1_000_000 })),
      }],
  ];
  for (const [says, lie] of lies) {
    const findings: string[] = [];
    await judge(cluster, falsified(history, lie), findings);
    assert.ok(findings.some((finding) => says.test(finding)), `${says}: ${findings}`);
  }
}

Deno.test("sites that are killed, paused and cut off lose nothing that was acknowledged", async () => {
  await using cluster = await startCluster({ apps: [SOAK_APP] });
  const soaked = await soak(cluster, { ...common, rounds: 3, writesFirst: 30 });
  assert.deepEqual(soaked.findings, []);
  assert.equal(soaked.rounds, 3);
  assert.ok(soaked.checked > 100 && soaked.audited.rows > 10 && soaked.audited.counters > 3);
  await liesAreFound(cluster, soaked);
});

Deno.test("the soak finds what sites without handoffs do to sessions", async () => {
  await using cluster = await startCluster({ apps: [SOAK_APP], main: NO_HANDOFF });
  // However slow this machine is, the feed is slower.
  for (const core of ["core-1", "core-2"]) await slow(cluster, core);
  const violations: string[] = [];
  // Clients draw where they go: a run in which nobody outruns the feed is rare, three in a row do not happen.
  for (let runs = 0; violations.length === 0 && runs < 3; runs++) {
    const options = { ...common, rounds: 0, writesFirst: 300, seed: SEED + runs, guaranteesOnly: true };
    const { findings } = await soak(cluster, options);
    violations.push(...findings.filter((each) => /^(read-your-writes|monotonic-reads)/.test(each)));
  }
  assert.ok(violations.length > 0, "no client was shown a past, though nothing was handed over");
});

Deno.test("an app that does all that it can to its site costs its neighbour no answer, and no write", async () => {
  // How long answers take is for `deno task soak --hostile`: here other tests run beside it.
  const times = { quietMs: 2_000, attackedMs: 8_000, msAttacked: 8_000, rate: 20 };
  const attacked = await soakHostile({ ...times, say: () => {} });
  assert.deepEqual(attacked.findings, []);
  assert.ok(attacked.acknowledged > 80 && attacked.echoes > 20, JSON.stringify(attacked));
  assert.ok(Object.keys(attacked.made).length > 25, JSON.stringify(attacked.made));
  // Which of them comes first is chance: an isolate that is ended for one takes others with it.
  const { closed: _, ...ended } = attacked.ends;
  assert.ok(Object.values(ended).some((count) => count > 0), JSON.stringify(attacked));
});

async function slow(cluster: TestCluster, core: string): Promise<void> {
  const answer = await fetch(`${cluster.url("cloud")}/_sojourn/admin/chaos`, {
    method: "POST",
    body: JSON.stringify({ action: "delay", a: "cloud", b: core, rttMs: 400 }),
  });
  assert.ok(answer.ok, await answer.text());
}
