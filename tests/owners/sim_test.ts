/** Owners groups of 2 to 7 sites in virtual time, and what the checkers make of them when they are broken. */
import { strict as assert } from "node:assert";
import { excusedTooOften } from "../sim/excuses.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import { encodeTuplePacket } from "../../store/owners/packet.ts";
import { SimNetwork } from "../sim/network.ts";
import { Draws } from "../sim/random.ts";
import { World } from "../sim/world.ts";
import { check, type Told } from "./sim/check.ts";
import { OWNERS_EXCUSES } from "./sim/excuses.ts";
import { VARIANTS } from "./sim/broken.ts";
import { OwnerSite, type SiteEvent } from "./sim/owner_site.ts";
import { type OwnersRun, simulateOwners } from "./sim/simulation.ts";

/** The seeds of every test run: a few seconds. */
const SEEDS = 25;
/** What few of them draw. */
const RARE: readonly (readonly [seed: number, what: string])[] = [
  [90000475, "two owners of a tuple have no room for it, and have some later"],
  [90007275, "of two versions the one that lost was told by a site that lost its disk"],
  [90005168, "an owner dies that knew of the end of a tuple, and its disk did not"],
  [90008713, "more than f that had a tuple are down at one time"],
  [95000573, "a tuple is sent again where it had been marked, and is not known any more"],
  [
    95000663,
    "the word that an id was given up comes late, and a site that is left out is heard before it acts",
  ],
  [95110329, "a tuple is sent again at a site that does not own it any more, while nobody acts"],
  [96000473, "who acts is taken for dead meanwhile, lets go, and who adopted acts half a minute later"],
  [99000160, "a tuple of which its producer heard nothing is sent again where it is not owned any more"],
  [99002027, "who is replaced is back before others have what it had, and they lose it"],
  [
    99400069,
    "an owner has no room for what it is given, as who gave it writes its last step, and chooses another one",
  ],
  [99403138, "a site that has said that it stops takes others for dead, which live and do not hear it"],
  [99405950, "two owners do not know each other as the one that knows both loses its disk"],
  [99405764, "an id is stored again at a site that lost its disk, while others have it"],
  [
    99850131,
    "who is replaced before anybody counts on a tuple is back, and who takes its place does not know it",
  ],
  [
    99900148,
    "who had marked a tuple dies, and takes the version of who took it for dead, before it acts again",
  ],
  [
    99902681,
    "a site that alone has tuples begins to stop before all is healed, and goes and is back after that",
  ],
  [
    99914408,
    "who adopted a tuple dies before its first owner, just back, has heard of it, and is back while that one acts",
  ],
  [
    100004389,
    "a planned stop takes longer than until its site was to be back, and what it had done is adopted",
  ],
];

Deno.test("owners groups keep what was acknowledged, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = await simulateOwners(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  for (const [seed, what] of RARE) {
    assert.deepEqual((await simulateOwners(seed)).violations, [], `seed ${seed}: ${what}`);
  }
  for (
    const name of [
      "adopted",
      "mended",
      "packets_again",
      "packets_stale",
      "fault: wipe",
      "stored_again",
      "fault: a planned stop",
      "fault: a return that is late",
    ]
  ) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
  assert.deepEqual(excusedTooOften(OWNERS_EXCUSES, probes, SEEDS), []);
});

Deno.test("owners groups: who is back just as one that has adopted what it had stops waits for that one (O8)", async () => {
  const change = (plan: OwnersRun["plan"]) => ({
    ...plan,
    n: 4,
    f: 2,
    fLeast: 2,
    fLater: 2,
    tuples: 80,
    crashes: 4,
    leaves: 0,
    leavesAtReturn: 1,
    wipes: 0,
    partitions: 0,
    slow: false,
    lossChance: 0,
    tuplesMax: Infinity,
    thinkMs: [0, 30] as const,
    delaysMs: [20, 20, 20, 20],
  });
  assert.deepEqual((await simulateOwners(23, { change })).violations, []);
});

Deno.test("owners groups: a seed runs the same twice", async () => {
  const shown = ({ history, probes }: OwnersRun) => JSON.stringify({ history, probes });
  assert.equal(shown(await simulateOwners(5)), shown(await simulateOwners(5)));
});

Deno.test("owners groups without faults act once on everything", async () => {
  for (let seed = 0; seed < 5; seed++) {
    const calm = { crashes: 0, wipes: 0, leaves: 0, partitions: 0, slow: false, lossChance: 0 };
    // Nobody is so far away as to be taken for dead.
    const change = (plan: OwnersRun["plan"]) => ({ ...plan, ...calm, delaysMs: plan.delaysMs.map(() => 1) });
    const { violations, probes } = await simulateOwners(seed, { change });
    const excused = Object.keys(probes).filter((name) => name.startsWith("excused "));
    assert.deepEqual([violations, excused], [[], []], `seed ${seed}`);
  }
});

Deno.test("a mistaken suspicion excuses what it can have led to, and nothing of others or later", () => {
  const twice = (...mistake: readonly Told[]): [readonly string[], readonly string[]] => {
    const excused: string[] = [], told: Told[] = [];
    for (const site of ["a", "b", "c", "d"]) told.push({ kind: "up", site, atMs: 0 });
    told.push(...mistake);
    for (const [i, site] of ["a", "b"].entries()) {
      told.push({ kind: "acts", site, id: "x", how: "stored", tries: 0, atMs: 1_000 }, {
        kind: "acted",
        site,
        id: "x",
        atMs: 1_100 + 50_000 * i,
      });
    }
    const found = check({ told, acks: [] }, (name) => void excused.push(name));
    return [found.map(({ checker }) => checker), excused];
  };
  const suspects = (site: string, other: string, fromMs: number, untilMs: number): Told[] => [
    { kind: "suspects", site, other, atMs: fromMs },
    { kind: "trusts", site, other, atMs: untilMs },
  ];
  const mistaken = ["acted on twice: a living site was taken for dead"];
  assert.deepEqual(twice(...suspects("b", "a", 900, 1_050)), [[], mistaken]);
  assert.deepEqual(twice(...suspects("b", "c", 900, 1_050)), [[], mistaken]);
  assert.deepEqual(twice(...suspects("c", "d", 900, 1_050)), [["duplicates"], []]);
  assert.deepEqual(twice(...suspects("b", "a", -9_000, -8_000)), [["duplicates"], []]);
  assert.deepEqual(twice(...suspects("b", "a", 20_000, 21_000)), [["duplicates"], []]);
  assert.deepEqual(twice(), [["duplicates"], []]);
  const dies = (site: string): Told => ({ kind: "died unsettled", site, id: "x", atMs: 1_200 });
  assert.deepEqual(twice(dies("c")), [["duplicates"], []]);
  const down = (site: string, atMs: number, ...held: string[]): Told => ({
    kind: "down",
    site,
    held: new Map(held.map((id) => [id, 1])),
    atMs,
  });
  const up = (site: string, atMs: number): Told => ({ kind: "up", site, atMs });
  assert.deepEqual(twice(down("c", 100, "x"), down("d", 200, "x")), [[], [
    "acted on twice: more than f were down",
  ]]);
  assert.deepEqual(twice(down("c", 100, "x"), down("d", 200, "y")), [["duplicates"], []]);
  assert.deepEqual(twice(down("c", 100, "x"), up("c", 150), down("d", 200, "x")), [["duplicates"], []]);
});

Deno.test("who was taken for dead as it acted, and let go before it had removed, is overtaken at any later time", () => {
  const found = (
    over: readonly ("removed" | "lets go")[],
    adoptedMs = 1_500,
    wiped: readonly SiteId[] = [],
  ): readonly string[] => {
    const told: Told[] = ["a", "b"].map((site) => ({ kind: "up", site, atMs: 0 }));
    const at = { id: "x", tries: 0 };
    told.push({ ...at, kind: "acts", site: "a", how: "stored", atMs: 900 });
    told.push({ ...at, kind: "acted", site: "a", atMs: 1_000 });
    told.push({ kind: "suspects", site: "b", other: "a", atMs: 1_400 });
    if (adoptedMs < 2_000) told.push({ ...at, kind: "acts", site: "b", how: "adopted", atMs: adoptedMs });
    told.push({ kind: "trusts", site: "b", other: "a", atMs: 2_000 });
    if (adoptedMs > 2_000) told.push({ ...at, kind: "acts", site: "b", how: "adopted", atMs: adoptedMs });
    told.push(...over.map((kind, i): Told => ({ id: "x", kind, site: "a", atMs: 2_200 + i })));
    told.push(...wiped.map((site): Told => ({ kind: "wiped", site, held: [], atMs: 2_300 })));
    const last = wiped.length === 0 ? "b" : "c";
    told.push({ ...at, kind: "acted", site: last, atMs: 60_000 });
    return check({ told, acks: [] }).map(({ checker }) => checker);
  };
  assert.deepEqual(found(["removed"], 1_500, ["b"]), [], "who adopted could not hear of it");
  assert.deepEqual(found(["removed"], 1_500, ["d"]), ["duplicates"]);
  assert.deepEqual(found(["removed"], 2_100, ["b"]), ["duplicates"], "nobody took it for dead");
  assert.deepEqual(found(["lets go"]), []);
  assert.deepEqual(found(["lets go", "removed"]), []);
  assert.deepEqual(found(["removed", "lets go"]), ["duplicates"], "what is gone comes back at none");
  assert.deepEqual(found([]), ["duplicates"]);
  assert.deepEqual(found(["lets go"], 2_100), ["duplicates"], "nobody took it for dead");
});

Deno.test("who acted without what another one had made of a tuple, which was dead, is overtaken by that before it removes", () => {
  const at = { id: "x", tries: 0 };
  const ahead = (atMs: number, ...behind: SiteId[]): Told => ({
    ...at,
    kind: "died ahead",
    site: "b",
    behind,
    atMs,
  });
  const removed = (atMs: number): Told => ({ ...at, kind: "removed", site: "a", atMs });
  const back = (atMs: number): Told => ({ kind: "up", site: "b", atMs });
  const found = (...between: readonly Told[]): readonly string[] => {
    const told: Told[] = [
      { ...at, kind: "acts", site: "b", how: "adopted", atMs: 900 },
      { kind: "down", site: "b", held: new Map([["x", 1]]), atMs: 1_000 },
      { ...at, kind: "acts", site: "a", how: "loaded", atMs: 1_300 },
      { ...at, kind: "acted", site: "a", atMs: 2_000 },
      { ...at, kind: "acts", site: "b", how: "loaded", atMs: 3_100 },
      { ...at, kind: "acted", site: "b", atMs: 3_200 },
      ...between,
    ];
    const excused: string[] = [];
    const violations = check({ told: told.sort((one, two) => one.atMs - two.atMs), acks: [] }, (name) => {
      excused.push(name);
    });
    return [...violations.map(({ checker }) => checker), ...excused];
  };
  const excuse = ["acted on twice: who had taken it over died before who acted knew"];
  assert.deepEqual(found(ahead(1_000, "a"), back(3_000)), excuse);
  assert.deepEqual(
    found(ahead(1_000, "a"), back(3_000), removed(3_150)),
    excuse,
    "the other one acts by then",
  );
  assert.deepEqual(found(ahead(1_000, "a"), back(3_000), removed(2_900)), ["duplicates"], "it was gone");
  assert.deepEqual(
    found(ahead(1_000, "a"), back(3_000), removed(3_050)),
    ["duplicates"],
    "it was gone by then",
  );
  assert.deepEqual(found(back(3_000)), ["duplicates"], "who acted had its version");
  assert.deepEqual(found(ahead(1_000, "c"), back(3_000)), ["duplicates"], "another one did not have it");
  assert.deepEqual(found(ahead(1_400, "a"), back(3_000)), ["duplicates"], "it lived as the other one began");
  assert.deepEqual(found(ahead(1_000, "a")), ["duplicates"], "it is not back");
  assert.deepEqual(found(ahead(1_000, "a"), back(3_150)), ["duplicates"], "it is back after that");
  const trusts: Told = { kind: "trusts", site: "a", other: "b", atMs: 1_200 };
  assert.deepEqual(
    found(ahead(1_000, "a"), back(1_100), trusts, back(3_000)),
    ["duplicates"],
    "it was heard",
  );
});

Deno.test("who will be back is not taken for dead before, nor is what it has acted on by others", () => {
  const found = (atMs: number, suspectedMs = -Infinity): readonly string[] => {
    const told: Told[] = ["a", "b"].map((site) => ({ kind: "up", site, atMs: 0 }));
    if (suspectedMs > 0) told.push({ kind: "suspects", site: "b", other: "a", atMs: suspectedMs });
    told.push({ kind: "leaves", site: "a", untilMs: 2_000, own: new Map([["x", ["b"]]]), atMs: 1_000 });
    told.push({ kind: "dead", site: "b", other: "a", atMs });
    told.push({ kind: "acts", site: "b", id: "x", how: "adopted", tries: 0, atMs });
    return check({ told, acks: [] }).map(({ message }) => message);
  };
  const dead = "b takes a for dead, which will be back";
  assert.deepEqual(found(1_900), [dead, "b acts on x of a, which will be back"]);
  assert.deepEqual(found(1_900, 900), [dead], "it may have been replaced before it said so");
  assert.deepEqual(found(2_000), []);
  const returns = (untilMs: number): readonly string[] => {
    const own = new Map([["x", ["b"]]]);
    const told: Told[] = [
      { kind: "leaves", site: "b", untilMs, own: new Map(), atMs: 900 },
      { kind: "leaves", site: "a", untilMs: 2_000, own, atMs: 1_000 },
      { kind: "up", site: "b", atMs: 1_500 },
      { kind: "acts", site: "b", id: "x", how: "loaded", tries: 0, atMs: 1_600 },
    ];
    return check({ told, acks: [] }).map(({ message }) => message);
  };
  assert.deepEqual(returns(1_600), [], "nobody can have adopted it");
  assert.deepEqual(returns(1_400), ["b acts on x of a, which will be back"]);
});

Deno.test("who is back late acts when it has a packet of those that have what it had, suspected or not", () => {
  const found = (...between: readonly Told[]): readonly string[] => {
    const told: Told[] = [
      { kind: "leaves", site: "a", untilMs: 2_000, own: new Map([["x", ["b"]]]), atMs: 1_000 },
      { kind: "up", site: "a", atMs: 2_100 },
      ...between,
      { kind: "acts", site: "a", id: "x", how: "loaded", tries: 0, atMs: 2_900 },
    ];
    return check({ told, acks: [] }).map(({ checker }) => checker);
  };
  assert.deepEqual(found(), ["returns"]);
  assert.deepEqual(found({ kind: "trusts", site: "a", other: "b", atMs: 2_200 }), ["returns"]);
  assert.deepEqual(found({ kind: "hears", site: "a", other: "c", atMs: 2_200 }), ["returns"]);
  assert.deepEqual(found({ kind: "hears", site: "a", other: "b", atMs: 2_200 }), []);
});

Deno.test("who leaves counts on those that its disk names, and not on what came while its last step was written", async () => {
  const world = new World(), draws = new Draws("leaves"), told: SiteEvent[] = [], ids = ["a", "b", "c"];
  const network = new SimNetwork({
    world,
    draws,
    parentOf: () => null,
    quality: () => ({ delayMs: [1, 1], lossChance: 0, bytesPerMs: Infinity }),
    noticeMs: [0, 60],
    lateChance: 0,
    window: 64,
  });
  const sites = ids.map((id) =>
    new OwnerSite({
      id,
      sites: ids,
      settings: { ...NO_OWNERS, beatMs: 50, suspectMs: 250, deadMs: 1_200, f: 1, nearMs: 0 },
      areas: new Map(),
      world,
      network,
      draws: draws.fork(id),
      commitMs: [50, 50],
      drift: 0,
      thinkMs: [60_000, 60_000],
      tries: 0,
      tuplesMax: Infinity,
      away: new Map(),
      wrongs: {},
      record: (event) => void told.push(event),
    })
  );
  for (const site of sites) void site.start();
  await world.run(500);
  const [leaver] = sites;
  void leaver?.tuples?.store({ id: "x", topic: "mail", payload: new Uint8Array(1), f: 1, note: "0" });
  await world.run(1_000);
  const [entry] = leaver?.tuples?.debugEntries() ?? [];
  assert.ok(leaver !== undefined && entry !== undefined);
  const [other = "", third = ""] = [entry.owners[1], ids.slice(1).find((id) => !entry.owners.includes(id))];
  void leaver.leave(3_000, () => {});
  await world.run(1_010);
  const nothing = { greeting: 0, list: 0, part: 0, isListEnd: false, receipts: [], missing: [], forget: [] };
  const newer = { ...entry, version: entry.version + 1, owners: ["a", third] };
  leaver.tuples?.received(other, encodeTuplePacket({ ...nothing, boot: 7, to: 0, seq: 0, entries: [newer] }));
  await world.run(1_200);
  const left = told.find((event) => event.kind === "leaves");
  assert.deepEqual(left?.own, new Map([["x", [other]]]));
});

for (const f of [1, 2]) {
  const when = f === 1 ? "when both hear each other" : "as soon as a third has told it";
  Deno.test(`owners groups: who is heard one way only lets go ${when}, and nothing is lost (O3, f = ${f})`, async () => {
    const world = new World(), draws = new Draws("one way"), told: SiteEvent[] = [], ids = ["a", "b", "c"];
    const network = new SimNetwork({
      world,
      draws,
      parentOf: () => null,
      quality: () => ({ delayMs: [1, 1], lossChance: 0, bytesPerMs: Infinity }),
      noticeMs: [0, 60],
      lateChance: 0,
      window: 64,
    });
    const sites = ids.map((id) =>
      new OwnerSite({
        id,
        sites: ids,
        settings: { ...NO_OWNERS, beatMs: 50, suspectMs: 250, deadMs: 1_200, f, nearMs: 0 },
        areas: new Map(),
        world,
        network,
        draws: draws.fork(id),
        commitMs: [1, 1],
        drift: 0,
        thinkMs: [60_000, 60_000],
        tries: 0,
        tuplesMax: Infinity,
        away: new Map(),
        wrongs: {},
        record: (event) => void told.push(event),
      })
    );
    for (const site of sites) void site.start();
    await world.run(500);
    const [first] = sites;
    void first?.tuples?.store({ id: "x", topic: "mail", payload: new Uint8Array(1), f, note: "0" });
    await world.run(1_000);
    const second = first?.tuples?.debugEntries()[0]?.owners[1] ?? "";
    const acting = () => {
      const now = new Set<SiteId>();
      for (const event of told) {
        if (event.kind === "acts") now.add(event.site);
        else if (event.kind === "lets go") now.delete(event.site);
      }
      return [...now];
    };
    assert.deepEqual(acting(), ["a"]);
    // As long as silence takes to end a link, and no longer: the site that hears nothing ends it then.
    network.stall("a", second, 1_600);
    await world.run(1_500);
    const suspects = told.flatMap((event) =>
      event.kind === "suspects" ? [`${event.site} ${event.other}`] : []
    );
    assert.deepEqual(suspects, [`${second} a`], "who is not heard hears all others");
    assert.deepEqual(acting(), f === 1 ? ["a", second] : [second]);
    await world.run(2_200);
    assert.deepEqual(acting(), [second]);
    const having = sites.filter(({ heldOnDisk }) => heldOnDisk.has("x"));
    assert.ok(having.length > f);
    for (const { id, tuples } of having) assert.equal(tuples?.debugEntries()[0]?.owners[0], second, id);
  });
}

Deno.test("a mark has to be found again where the tuple is the one that was marked", () => {
  const found = (how: string): readonly string[] => {
    const event = { site: "a", id: "x", tries: 0, how };
    const told: Told[] = [
      { ...event, kind: "acts", atMs: 1 },
      { ...event, kind: "tried", tries: 1, atMs: 2 },
      { ...event, kind: "acts", atMs: 3 },
    ];
    return check({ told, acks: [] }).map(({ checker }) => checker);
  };
  for (const how of ["loaded", "adopted"]) assert.deepEqual(found(how), ["marks"], how);
  assert.deepEqual(found("stored"), [], "its producer came again here, where it was not known any more");
});

Deno.test("a mark need not be found again where another site acted on the tuple as it was made, and did not let go", () => {
  const excuse = "a mark, made while another one acted on the tuple, too";
  const at = { id: "x", tries: 0, how: "loaded", atMs: 1 };
  const acts = (site: SiteId): Told => ({ ...at, kind: "acts", site });
  const tried = (tries: number): Told => ({ ...at, kind: "tried", site: "a", tries });
  const down = (site: SiteId): Told => ({ ...at, kind: "down", site, held: new Map() });
  const letsGo = (site: SiteId): Told => ({ ...at, kind: "lets go", site });
  const found = (...told: Told[]): readonly string[] => {
    const excused: string[] = [];
    const violations = check({ told, acks: [] }, (name) => void excused.push(name));
    return [...violations.map(({ checker }) => checker), ...excused];
  };
  const again = [down("a"), acts("a")];
  assert.deepEqual(found(acts("a"), acts("b"), tried(1), ...again), [excuse]);
  assert.deepEqual(found(acts("b"), acts("a"), tried(1), ...again), [excuse]);
  assert.deepEqual(found(acts("a"), acts("b"), tried(1), down("b"), ...again), [excuse], "its disk has it");
  assert.deepEqual(found(acts("a"), acts("b"), letsGo("b"), tried(1), ...again), ["marks"]);
  assert.deepEqual(found(acts("a"), acts("b"), tried(1), letsGo("b"), ...again), ["marks"]);
  assert.deepEqual(
    found(acts("b"), down("b"), acts("a"), tried(1), ...again),
    ["marks"],
    "one after the other",
  );
  assert.deepEqual(found(acts("b"), letsGo("b"), acts("a"), tried(1), ...again), ["marks"]);
  const removed: Told = { ...at, kind: "removed", site: "b" };
  assert.deepEqual(found(acts("b"), removed, acts("a"), tried(1), ...again), ["marks"]);
  const later = [acts("a"), acts("b"), tried(1), ...again, letsGo("b"), tried(1), ...again];
  assert.deepEqual(found(...later), ["marks", excuse], "and not what is marked later");
});

for (const variant of VARIANTS) {
  Deno.test(`owners groups broken on purpose are caught: ${variant.name}`, async () => {
    const { first = 0, seeds } = variant;
    for (let seed = first; seed < first + seeds; seed++) {
      const { violations } = await simulateOwners(seed, variant);
      const found = violations.find(({ checker }) => variant.caughtBy.includes(checker));
      if (found !== undefined) return;
    }
    assert.fail(`no checker saw it in ${seeds} seeds from ${first} on`);
  });
}
