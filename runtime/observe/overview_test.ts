import { strict as assert } from "node:assert";
import { readNdjson } from "./ndjson.ts";
import { type ClusterView, Overview } from "./overview.ts";

const PARENTS: Readonly<Record<string, string | null>> = { root: null, a: "root", b: "a" };
const LAGS: Readonly<Record<string, number>> = { root: 0, a: 200, b: 30 };

const site = (id: string) => ({
  id,
  parent: PARENTS[id] ?? null,
  tier: "edge",
  url: `http://${id}`,
});

function setUp() {
  const state = { asked: 0, down: new Set<string>(), silent: new Set<string>(), given: 0 };
  const overview = new Overview({
    site: "root",
    sites: () => ["root", "a", "b"].map(site),
    nowMs: () => 7,
    ask: async (id, signal) => {
      state.asked++;
      if (state.down.has(id)) throw new Error("no way");
      if (state.silent.has(id)) {
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }
      return Response.json({ status: { site: id, lagMs: LAGS[id] }, rates: {} });
    },
  });
  return { overview, state };
}

Deno.test("a site that does not answer is shown with its last answer's age (O1)", async () => {
  const { overview, state } = setUp();
  const first = await overview.look();
  assert.deepEqual(first.sites.map(({ id, reachable }) => [id, reachable]), [
    ["root", true],
    ["a", true],
    ["b", true],
  ]);
  state.down.add("a");
  state.silent.add("b");
  // Ages are in whole milliseconds.
  for (const since = performance.now(); performance.now() - since < 2;);
  const second = await overview.look();
  assert.deepEqual(second.sites.map(({ id, reachable, status }) => [id, reachable, status?.site]), [
    ["root", true, "root"],
    ["a", false, "a"],
    ["b", false, "b"],
  ]);
  const ages = second.sites.map(({ ageMs }) => ageMs ?? -1);
  assert((ages[1] ?? 0) > (ages[0] ?? 0), `${ages}`);
  const fresh = setUp();
  fresh.state.down.add("a");
  const a = (await fresh.overview.look()).sites[1];
  assert.deepEqual([a?.reachable, a?.ageMs, a?.status], [false, null, null]);
});

Deno.test("an alert is shown at the site it is about, once, with who noticed (O4)", async () => {
  const dead = (site: string) => ({ code: "site_dead", site, detail: `nothing was heard of ${site}` });
  const says: Readonly<Record<string, unknown>> = {
    root: {
      alerts: [dead("b"), { code: "site_away", site: "gone", detail: "removed since" }],
      watched: [{ site: "b", standing: "dead", silentMs: 4_000 }, {
        site: "a",
        standing: "unknown",
        silentMs: 9,
      }],
    },
    a: {
      alerts: [dead("b"), { code: "pending", site: "a", detail: "rows" }, {
        code: "lag",
        detail: "of a version before",
      }],
      children: [{ id: "b", stableLagMs: 5_000 }],
    },
  };
  const overview = new Overview({
    site: "root",
    sites: () => ["root", "a", "b"].map(site),
    nowMs: () => 7,
    ask: (id) => {
      if (id === "b") return Promise.reject(new Error("no way"));
      return Promise.resolve(
        Response.json({ status: { site: id, lagMs: 1, ...says[id] as object }, rates: {} }),
      );
    },
  });
  const { sites } = await overview.look();
  assert.deepEqual(sites.map(({ id, alerts }) => [id, alerts.map(({ code, by }) => `${code} by ${by}`)]), [
    ["root", ["site_away by root"]],
    ["a", ["pending by a", "lag by a"]],
    ["b", ["site_dead by root"]],
  ]);
  assert.deepEqual([sites[2]?.ageMs, sites[2]?.silentMs], [null, 4_000], "heard of, though never asked");
});

Deno.test("lag adds up from the root, and is not known below a site that never answered", async () => {
  const { overview, state } = setUp();
  const lags = async () => (await overview.look()).sites.map(({ lagMs }) => lagMs);
  state.down.add("a");
  assert.deepEqual(await lags(), [0, null, null]);
  state.down.clear();
  assert.deepEqual(await lags(), [0, 200, 230]);
  state.down.add("a");
  assert.deepEqual(await lags(), [0, 200, 230]);
});

Deno.test("readers share a round, and nobody is asked when none is left (O2)", async () => {
  const { overview, state } = setUp();
  const readers = [1, 2, 3].map(() => readNdjson(overview.follow()));
  const views = await Promise.all(readers.map((reader) => reader.next()));
  assert.equal((views[2]?.value as ClusterView).sites.length, 3);
  assert.deepEqual([overview.readers, state.asked], [3, 3]);
  const next = await readers[0]?.next(); // a second later
  assert.equal((next?.value as ClusterView).by, "root");
  assert.equal(state.asked, 6);
  overview.follow(); // of an answer that nobody begins to read
  assert.equal(overview.readers, 3);
  await Promise.all(readers.map((reader) => reader.return(undefined)));
  assert.equal(overview.readers, 0);
});

Deno.test("a cluster of thousands is not asked all at once (O3)", async () => {
  const ids = Array.from({ length: 2_000 }, (_, i) => `s${i}`);
  let open = 0, most = 0;
  const overview = new Overview({
    site: "s0",
    sites: () => ids.map((id, i) => ({ id, parent: i === 0 ? null : "s0", tier: "edge", url: "" })),
    nowMs: () => 7,
    ask: async (id) => {
      most = Math.max(most, ++open);
      await Promise.resolve();
      open--;
      return Response.json({ status: { site: id, lagMs: 1 }, rates: {} });
    },
  });
  const { sites } = await overview.look();
  assert.deepEqual(sites.filter(({ reachable }) => reachable).map(({ id }) => id), ids);
  assert.ok(most <= 256, `${most} were asked at once`);
});
