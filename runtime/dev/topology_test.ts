import { strict as assert } from "node:assert";
import { ConfigError } from "../site/config.ts";
import { linksOf, loadTopology, parseTopology, tierOf, withOwners } from "./topology.ts";

const refused = (raw: unknown): string => {
  try {
    parseTopology(raw);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  throw new Error(`accepted: ${JSON.stringify(raw)}`);
};

Deno.test("the default topology has six sites in three tiers, and links as their paths", async () => {
  const topology = await loadTopology("three-tier");
  const tiers = Object.fromEntries(topology.sites.map((site) => [site.id, tierOf(topology, site)]));
  assert.deepEqual(tiers, {
    cloud: "root",
    "core-1": "core",
    "core-2": "core",
    "edge-1": "edge",
    "edge-2": "edge",
    "edge-3": "edge",
  });
  const edge = topology.sites.find((site) => site.id === "edge-1");
  assert.ok(edge);
  const rtts = Object.fromEntries(
    Object.entries(linksOf(topology, edge)).map(([id, link]) => [id, link.rttMs]),
  );
  assert.deepEqual(rtts, { "core-1": 2, "edge-2": 4, cloud: 22, "core-2": 42, "edge-3": 44 });
});

Deno.test("a peer link has a delay of its own where it names one (T3)", () => {
  const topology = parseTopology({
    sites: [{ id: "r" }, { id: "a", parent: "r", link: { rttMs: 10 } }, {
      id: "b",
      parent: "r",
      link: { rttMs: 10, mbps: 5, loss: 0.5 },
    }],
    peers: [{ a: "b", b: "a", rttMs: 3 }],
  });
  const [, a] = topology.sites;
  assert.ok(a);
  assert.deepEqual(linksOf(topology, a).b, { rttMs: 3, mbps: 5, jitterMs: 0, loss: 0.5 });
});

Deno.test("a bad topology is refused with path, value and what was expected (T1)", () => {
  const rows: [unknown, RegExp][] = [
    [{ sites: [] }, /sites/],
    [
      { sites: [{ id: "a" }, { id: "b" }] },
      /sites: found \["a","b"\]; expected exactly one site without a parent/,
    ],
    [
      { sites: [{ id: "a" }, { id: "a", parent: "a" }] },
      /sites\.1\.id: found "a"; expected an id that no other/,
    ],
    [{ sites: [{ id: "a" }, { id: "b", parent: "c" }] }, /sites\.1\.parent: found "c"; expected one of a, b/],
    [
      { sites: [{ id: "r" }, { id: "a", parent: "b" }, { id: "b", parent: "a" }] },
      /sites\.1\.parent: .*not below the site itself/,
    ],
    [{ sites: [{ id: "r", link: { rttMs: 1 } }] }, /sites\.0\.link/],
    [
      { sites: [{ id: "r" }, { id: "a", parent: "r", link: { rttMs: -1 } }] },
      /sites\.1\.link\.rttMs: found -1/,
    ],
    [{ sites: [{ id: "r", color: 1 }] }, /sites\.0\.color: is no field here/],
    [
      { sites: [{ id: "r", f: 1 }] },
      /sites\.0: cannot keep tuples of r at f = 1 other sites: the tree has n = 1/,
    ],
    [
      { sites: [{ id: "r", owners: { sites: ["x"] } }] },
      /sites\.0: cannot take x as owners: no such site; the sites of the tree are r/,
    ],
    [{ sites: [{ id: "r" }], peers: [{ a: "r", b: "x", rttMs: 1 }] }, /peers\.0\.b: found "x"/],
  ];
  for (const [raw, message] of rows) assert.match(refused(raw), message, JSON.stringify(raw));
});

Deno.test("all sites have as many owners as dev is told, but those that say so themselves (T2)", () => {
  const raw = { sites: [{ id: "r", f: 0 }, { id: "a", parent: "r" }, { id: "b", parent: "r", f: 2 }] };
  assert.deepEqual(withOwners(parseTopology(raw), 1).sites.map(({ f }) => f), [0, 1, 2]);
  assert.throws(
    () => withOwners(parseTopology(raw), 3),
    /sites\.1: cannot keep .* n = 3 sites, so f may be up to 2/,
  );
});

Deno.test("a topology that is neither file nor name is refused", async () => {
  await assert.rejects(loadTopology("/nowhere/at-all.json"), /one of single, three-tier/);
});
