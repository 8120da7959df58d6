/**
 * Topologies: the sites, their parents, and the properties of their links. There are built-in ones, and files of the
 * same shape, checked whole.
 *
 * T1  One root; every other site's parent is a site of the topology; no cycles; ids are unique.
 * T2  No site wants more owners than there are sites, nor names one that does not exist.
 * T3  A link between two sites that names no delay of its own has the sum of the delays along the tree.
 */
import { z } from "zod";
import { checkOwners, OwnersError } from "../../store/presence/choose.ts";
import { ConfigError, explain } from "../site/config.ts";
import { ownersCount, ownersFields } from "../site/owners_fields.ts";

const siteId = z.string().regex(
  /^[a-z][a-z0-9-]{0,39}$/,
  "expected a site id like edge-1: [a-z][a-z0-9-]{0,39}",
);
const rttMs = z.number().min(0).max(60_000);

const link = z.strictObject({
  rttMs,
  mbps: z.number().positive().default(1000),
  jitterMs: z.number().min(0).default(0),
  loss: z.number().min(0).max(1).default(0),
});

const schema = z.strictObject({
  sites: z.array(z.strictObject({
    id: siteId,
    parent: siteId.optional(),
    link: link.optional(),
    capacityBytes: z.number().int().min(1024 * 1024).optional(),
    pendingBytesMax: z.number().int().min(1024 * 1024).optional(),
    f: ownersCount.optional(),
    area: z.string().min(1).max(64).optional(),
    owners: ownersFields(siteId).optional(),
  })).min(1),
  peers: z.array(z.strictObject({ a: siteId, b: siteId, rttMs })).default([]),
});

/** Properties that a link adds. */
export type TopologyLink = z.infer<typeof link>;
/** A site of a topology. */
export type TopologySite = z.infer<typeof schema>["sites"][number];
/** A checked topology; parents stand before their children. */
export type DevTopology = z.infer<typeof schema>;

const NO_DELAY: TopologyLink = { rttMs: 0, mbps: 1000, jitterMs: 0, loss: 0 };
const near = { rttMs: 2 };
const far = { rttMs: 20 };

/** Topologies that `--topology` knows by name. */
export const BUILT_IN: Readonly<Record<string, z.input<typeof schema>>> = {
  single: { sites: [{ id: "cloud" }] },
  "three-tier": {
    sites: [
      { id: "cloud" },
      { id: "core-1", parent: "cloud", link: far },
      { id: "core-2", parent: "cloud", link: far },
      { id: "edge-1", parent: "core-1", link: near },
      { id: "edge-2", parent: "core-1", link: near },
      { id: "edge-3", parent: "core-2", link: near },
    ],
  },
};

/**
 * Loads a topology by name or from a file.
 *
 * @throws ConfigError naming what is wrong, and what is accepted.
 */
export async function loadTopology(nameOrFile: string): Promise<DevTopology> {
  const builtIn = BUILT_IN[nameOrFile];
  if (builtIn !== undefined) return parseTopology(builtIn);
  let text: string;
  try {
    text = await Deno.readTextFile(nameOrFile);
  } catch (error) {
    throw new ConfigError(
      `cannot read the topology ${nameOrFile}: ${error instanceof Error ? error.message : error}; ` +
        `it is a file or one of ${Object.keys(BUILT_IN).join(", ")}`,
    );
  }
  try {
    return parseTopology(JSON.parse(text));
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(`${nameOrFile}: ${error.message}`);
    throw new ConfigError(
      `the topology ${nameOrFile} is not JSON: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** Checks a topology. @throws ConfigError naming each bad field (T1). */
export function parseTopology(raw: unknown): DevTopology {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw new ConfigError(`the topology is invalid:\n${explain(parsed.error, raw)}`);
  const { sites, peers } = parsed.data;
  const bad = (path: string, found: unknown, expected: string): never => {
    throw new ConfigError(
      `the topology is invalid:\n  ${path}: found ${JSON.stringify(found)}; expected ${expected}`,
    );
  };
  const byId = new Map<string, TopologySite>();
  sites.forEach((site, i) => {
    if (byId.has(site.id)) bad(`sites.${i}.id`, site.id, "an id that no other site has");
    byId.set(site.id, site);
  });
  const roots = sites.filter((site) => site.parent === undefined);
  if (roots.length !== 1) {
    bad(
      "sites",
      roots.map((site) => site.id),
      "exactly one site without a parent, the root",
    );
  }
  sites.forEach((site, i) => {
    if (site.parent !== undefined && !byId.has(site.parent)) {
      bad(`sites.${i}.parent`, site.parent, `one of ${[...byId.keys()].join(", ")}`);
    }
    if (site.parent === undefined && site.link !== undefined) {
      bad(`sites.${i}.link`, site.link, "no link at the root: a link leads to a parent");
    }
    if (climb(byId, site).length > sites.length) {
      bad(`sites.${i}.parent`, site.parent, "a parent that is not below the site itself");
    }
  });
  sites.forEach((site, i) => {
    try {
      checkOwners(site.id, { f: site.f ?? 0, sites: site.owners?.sites ?? null }, [...byId.keys()]);
    } catch (error) {
      if (!(error instanceof OwnersError)) throw error;
      throw new ConfigError(`the topology is invalid:\n  sites.${i}: ${error.message}`);
    }
  });
  peers.forEach((peer, i) => {
    for (const end of ["a", "b"] as const) {
      if (!byId.has(peer[end])) bad(`peers.${i}.${end}`, peer[end], `one of ${[...byId.keys()].join(", ")}`);
    }
  });
  return { sites, peers };
}

/**
 * Returns the topology with so many other sites that hold what must survive each site; a site that sets its own number
 * keeps it.
 *
 * @throws ConfigError where there are not so many (T2).
 */
export function withOwners(topology: DevTopology, f: number): DevTopology {
  return parseTopology({ ...topology, sites: topology.sites.map((site) => ({ f, ...site })) });
}

/** Returns a site and its ancestors, upwards; longer than the topology where they form a cycle. */
function climb(byId: ReadonlyMap<string, TopologySite>, from: TopologySite): TopologySite[] {
  const path = [from];
  for (let at = from; at.parent !== undefined && path.length <= byId.size;) {
    const parent = byId.get(at.parent);
    if (parent === undefined) break;
    path.push(at = parent);
  }
  return path;
}

/** Returns the tier of a site: the root, a site with children, a leaf. */
export function tierOf(topology: DevTopology, site: TopologySite): "root" | "core" | "edge" {
  if (site.parent === undefined) return "root";
  return topology.sites.some((other) => other.parent === site.id) ? "core" : "edge";
}

/** Returns the properties that the links of a site to every other site add (T3). */
export function linksOf(topology: DevTopology, site: TopologySite): Record<string, TopologyLink> {
  const byId = new Map(topology.sites.map((one) => [one.id, one]));
  const links: Record<string, TopologyLink> = {};
  for (const other of topology.sites) {
    if (other.id !== site.id) links[other.id] = alongTree(byId, site, other);
  }
  for (const { a, b, rttMs } of topology.peers) {
    const other = a === site.id ? b : b === site.id ? a : null;
    if (other !== null) links[other] = { ...(links[other] ?? NO_DELAY), rttMs };
  }
  return links;
}

function alongTree(byId: ReadonlyMap<string, TopologySite>, a: TopologySite, b: TopologySite): TopologyLink {
  const up = climb(byId, a), down = climb(byId, b);
  const shared = new Set(up.filter((site) => down.includes(site)));
  const edges = [...up, ...down].filter((site) => !shared.has(site)).map((site) => site.link ?? NO_DELAY);
  return edges.reduce((sum, edge) => ({
    rttMs: sum.rttMs + edge.rttMs,
    mbps: Math.min(sum.mbps, edge.mbps),
    jitterMs: sum.jitterMs + edge.jitterMs,
    loss: 1 - (1 - sum.loss) * (1 - edge.loss),
  }), { ...NO_DELAY, mbps: Infinity });
}
