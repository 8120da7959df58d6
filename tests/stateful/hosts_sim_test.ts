/** A stateful session whose clients hold its log, on sites in virtual time, and what is found when a rule is broken. */
import { strict as assert } from "node:assert";
import { excusedTooOften } from "../sim/excuses.ts";
import { VARIANTS } from "./hosts_sim/broken.ts";
import { check } from "./hosts_sim/check.ts";
import { HOSTS_EXCUSES } from "./hosts_sim/excuses.ts";
import { HARD_PLANS } from "./hosts_sim/hard.ts";
import { apply, BLANK, type Entry, type State } from "./hosts_sim/program.ts";
import { type HostsRun, simulateHosts } from "./hosts_sim/simulation.ts";
import { Unsure, type Why } from "./hosts_sim/unsure.ts";

const SEEDS = 25;
/**
 * Beside them: an opening fails after hosts were asked for longer than it has, and the next one is asked for by hosts only;
 * a home dies when a client that was left behind is off the record, and before it is detached; with one disk a client
 * that was told ahead leaves the record, and one that lacks that comes to it; an opening is forced while no disk can be
 * asked, and one can before the clients have been waited for; a client leaves while it is on record and its class says no
 * longer that hosts hold the log, and the arbiter can't be asked before its home dies.
 */
const MORE_SEEDS = [991111, 90005838, 96000546, 99940436, 99941840];
/** Of each hard plan: more are for main.ts. */
const HARD_SEEDS = 2;
/** A variant has to be caught by one of these. */
const VARIANT_SEEDS = 60;
/** Paths that some seed has to take, or the others show nothing. */
const WANTED = [
  ...[
    "opened in a later epoch",
    "host asked",
    "host with nothing",
    "from_hosts",
    "superseded",
    "configured",
    "woken",
  ],
  ...[
    "fault: wipe",
    "fault: partition",
    "fault: isolate",
    "moved",
    "deployed v2",
    "stranger",
    "opened by force",
  ],
  ...[
    "client leaves",
    "client is away",
    "client loses its log",
    "client begins again",
    "ended: refused log_forged",
  ],
];

Deno.test("clients that hold the log are never contradicted, and lose nothing, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (const seed of [...Array(SEEDS).keys(), ...MORE_SEEDS]) {
    const run = await simulateHosts(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  for (const name of WANTED) assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  assert.deepEqual(excusedTooOften(HOSTS_EXCUSES, probes, SEEDS), []);
});

Deno.test("they are not where rules meet either", async () => {
  const probes: Record<string, number> = {};
  for (const [name, change] of Object.entries(HARD_PLANS)) {
    for (let seed = 0; seed < HARD_SEEDS; seed++) {
      const run = await simulateHosts(seed, { change });
      assert.deepEqual(run.violations, [], `seed ${seed}, ${name}`);
      for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
    }
  }
  for (const name of ["client relapses", "client is away for long", "f is 1", "fault: clock"]) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
  const known = HOSTS_EXCUSES.map(({ name }) => `excused ${name}`);
  const used = Object.keys(probes).filter((name) => name.startsWith("excused "));
  assert.deepEqual(used.filter((name) => !known.includes(name)), []);
});

Deno.test("what a host was told that is unsure may be otherwise only where nobody else had it", () => {
  const found = (why: Why | null, { isReleased = false, deceptions = [0] as readonly number[] } = {}) => {
    const made = new Map<string, { readonly before: string; readonly entry: Entry }>();
    // Two entries behind the same one: the first is told, the second is what there is in the end.
    const run = (state: State, kind: Entry["kind"], from: string, draw: number): State => {
      const entry = { kind, from, sequence: kind === "message" ? 1 : 0, pad: "", draw };
      const next = apply(state, entry).state;
      made.set(next.digest, { before: state.digest, entry });
      return next;
    };
    const attached = run(BLANK, "attach", "p1", 1);
    const told = run(attached, "message", "p1", 2), last = run(attached, "message", "p1", 3);
    const unsure = new Unsure(), excused: string[] = [];
    if (why !== null) unsure.add("p1", why);
    const violations = check({
      ...{ made, unsure, last: last.digest, forks: new Set(), deceptions: new Set(deceptions) },
      given: new Map([["p1", [{ sequence: 1, text: `2 ${told.digest}` }]]]),
      ...{ acknowledged: new Map(), rejected: new Map(), answers: new Map(), written: new Map() },
      past: new Set(["never run"]),
      ledger: { isReleased: () => isReleased, statesAfter: () => [], isBlamed: () => false },
    }, (name) => void excused.push(name));
    return [violations.map(({ checker }) => checker), excused];
  };
  assert.deepEqual(found(null), [["contradicted", "lost"], []]);
  assert.deepEqual(found("went back"), [["lost"], ["told ahead, and the host went back"]]);
  assert.deepEqual(found("went back", { isReleased: true }), [["contradicted", "lost"], []]);
  assert.deepEqual(found(null, { deceptions: [1] }), [["lost"], [
    "a host alone was believed, and held back the end",
  ]]);
});

for (const { name, wrongs = {}, patch, change, first = 0, caughtBy } of VARIANTS) {
  Deno.test(`it is found in which case ${name}`, async () => {
    const restore = patch?.();
    let found: HostsRun | null = null;
    try {
      for (let seed = first; seed < first + VARIANT_SEEDS && found === null; seed++) {
        const run = await simulateHosts(seed, { wrongs, change });
        if (run.violations.some(({ checker }) => caughtBy.includes(checker))) found = run;
      }
    } finally {
      restore?.();
    }
    assert.ok(found !== null, `${name}: nothing was found in ${VARIANT_SEEDS} seeds`);
    const control = await simulateHosts(found.seed, { change });
    assert.deepEqual(control.violations, [], `seed ${found.seed}, as it is`);
  });
}
