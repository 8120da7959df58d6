/** When the arbiter may go by its disk (certainty.ts). */
import { strict as assert } from "node:assert";
import type { Reply, SiteAsk } from "../../../../functions/sessions/log/asks.ts";
import { Certainty, missedFor, type SitesHeard } from "../../../../functions/sessions/home/certainty.ts";
import { HEARD_MS_MAX, SILENT_MS_MAX } from "../../../../functions/sessions/log/limits.ts";

const DISKS: Readonly<Record<string, number>> = { cloud: 1, a: 11, b: 12, c: 13 };

function heardBy(...sites: readonly string[]): SitesHeard {
  const unheard = ["a", "b", "c"].filter((site) => !sites.includes(site));
  return {
    site: "cloud",
    isSure: unheard.length === 0,
    unheard,
    diskOf: (site) => ["cloud", ...sites].includes(site) ? DISKS[site] : undefined,
  };
}
const grant = (site: string, owners: readonly string[], disk?: number) => ({
  site,
  owners: owners.map((one) => ({ site: one, disk: disk ?? DISKS[one] ?? 0 })),
  ended: false,
});

Deno.test("a name waits for its home and its owners, and one that is not on record for all sites (AW2)", () => {
  assert.deepEqual(missedFor(grant("a", ["a", "b"]), heardBy("a", "b")), []);
  assert.deepEqual(missedFor(grant("a", ["a", "b"]), heardBy("a", "c")), ["b"]);
  assert.deepEqual(missedFor(grant("a", ["b", "c"]), heardBy("b", "c")), ["a"]);
  assert.deepEqual(missedFor(null, heardBy("a", "b")), ["c"]);
  assert.deepEqual(missedFor({ ...grant("a", ["a", "b"]), ended: true }, heardBy("a", "b")), ["c"]);
  assert.deepEqual(missedFor(null, heardBy("a", "b", "c")), []);
});

Deno.test("neither the arbiter's own site nor another disk nor a client says what became of a name (AW2)", () => {
  assert.deepEqual(missedFor(grant("cloud", ["cloud", "a"]), heardBy("a", "b")), ["c"]);
  assert.deepEqual(missedFor(grant("a", ["a", "cloud"]), heardBy("a", "b")), ["c"]);
  assert.deepEqual(missedFor(grant("a", ["a", "b"], 99), heardBy("a", "b")), ["c"]);
  const hosted = grant("a", ["a"]);
  const withHost = { ...hosted, owners: [...hosted.owners, { site: "@client", disk: 0 }] };
  assert.deepEqual(missedFor(withHost, heardBy("a", "b")), ["c"]);
});

function surveying(gone: ReadonlySet<string> = new Set()) {
  let nowMs = 0, isBehind = false;
  const sites = ["cloud", "a", "b"], asked: string[] = [], notes: string[] = [];
  const told = new Map<string, (reply: Reply) => void>();
  const heardOf: unknown[] = [];
  const watched = new Set<string>();
  const certainty: Certainty = new Certainty({
    site: "cloud",
    disk: 1,
    nowMs: () => nowMs,
    sites: () => sites,
    ask: (to: string, _ask: SiteAsk) => {
      asked.push(to);
      const { promise, resolve } = Promise.withResolvers<Reply>();
      told.set(to, resolve);
      return { reply: promise, cancel: () => {} };
    },
    watch: (site) => {
      watched.add(site);
      return () => void watched.delete(site);
    },
    gone: (site) => gone.has(site) ? "gone" : "here",
    heardOf: (site, position) => void heardOf.push([site, position, certainty.diskOf(site)]),
    isBehind: () => isBehind,
    note: (event) => void notes.push(event),
  });
  return {
    ...{ certainty, asked, notes, watched, sites, heardOf },
    tell: async (site: string, reply: Reply) => {
      told.get(site)?.(reply);
      await Promise.resolve();
      await Promise.resolve();
    },
    pass: (ms: number) => {
      nowMs += ms;
      certainty.survey();
    },
    behind: () => isBehind = true,
  };
}

Deno.test("each site is asked once, and all are heard when the last one has said it", async () => {
  const { certainty, asked, tell, pass, watched } = surveying();
  pass(0);
  pass(250);
  assert.deepEqual(asked, ["a", "b"]);
  await tell("a", { kind: "witness", disk: 11, position: 4, jumps: [] });
  assert.deepEqual([certainty.isSure, certainty.isDone, certainty.unheard], [false, false, ["b"]]);
  // One of the version before can't say it.
  await tell("b", { kind: "nobody" });
  assert.deepEqual([certainty.isSure, certainty.isDone, certainty.unheard], [true, true, []]);
  assert.deepEqual([certainty.diskOf("a"), certainty.diskOf("b"), watched.size], [11, 0, 0]);
});

Deno.test("what a site has heard of, also before the arbiter jumped, is looked at before the site counts as heard (A7)", async () => {
  const { heardOf, tell, pass } = surveying();
  pass(0);
  await tell("a", { kind: "witness", disk: 11, position: 2 ** 33, jumps: [7, 2 ** 32] });
  assert.deepEqual(heardOf, [["a", 7, undefined], ["a", 2 ** 32, undefined], ["a", 2 ** 33, undefined]]);
});

Deno.test("a site that has left the tree is not waited for", async () => {
  const { certainty, tell, pass, sites, watched } = surveying();
  pass(0);
  await tell("a", { kind: "witness", disk: 11, position: 4, jumps: [] });
  sites.pop();
  pass(250);
  assert.deepEqual([certainty.isSure, watched.size], [true, 0]);
});

Deno.test("one that is gone ten seconds after the start is not waited for, unless the disk went back (AW3)", async () => {
  const { certainty, tell, pass, behind, notes } = surveying(new Set(["b"]));
  pass(0);
  await tell("a", { kind: "witness", disk: 11, position: 4, jumps: [] });
  pass(HEARD_MS_MAX - 1);
  assert.deepEqual([certainty.unheard, certainty.isDone], [["b"], false]);
  pass(1);
  assert.deepEqual([certainty.unheard, certainty.silent, certainty.isSure, certainty.isDone], [
    [],
    ["b"],
    false,
    true,
  ]);
  assert.deepEqual(notes, ["arbiter_unheard"]);
  behind();
  assert.deepEqual(certainty.unheard, ["b"]);
  await tell("b", { kind: "witness", disk: 12, position: 9, jumps: [] });
  assert.equal(certainty.isSure, true);
});

Deno.test("one that is there, and does not answer, is waited for a minute (AW3)", () => {
  const { certainty, pass } = surveying(new Set(["a"]));
  pass(0);
  pass(SILENT_MS_MAX - 1);
  assert.deepEqual([certainty.unheard, certainty.isDone], [["b"], false]);
  pass(1);
  assert.deepEqual([certainty.unheard, certainty.isDone, certainty.isSure], [[], true, false]);
});
