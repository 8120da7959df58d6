/**
 * A page of a table is one state of its site (functions/table_list.ts, L3), by key and by index: rows that are written
 * together are on it together, while sites write them, and while they are fetched, evicted and fetched again.
 */
import { strict as assert } from "node:assert";
import { fileURLToPath } from "node:url";
import { ask } from "./client.ts";
import { eventually, startCluster } from "./cluster.ts";

const PAIRS = 30;
/** Beside what is fetched for a page a site of this size keeps little of it. */
const CAPACITY_BYTES = 1024 * 1024;
const TEXT_BYTES = 2_000;
const LAST_MS = 6_000;

const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "core", parent: "cloud", link: { rttMs: 2 } },
    { id: "edge-1", parent: "core", link: { rttMs: 2 } },
    { id: "edge-2", parent: "core", link: { rttMs: 2 }, capacityBytes: CAPACITY_BYTES },
  ],
};

type Listed = { rows: [id: string, side: string, n: number][]; isWhole: boolean };

/** What is wrong with a page: pairs that are not on it, have one half, or halves of two writes. All were there before. */
function wrongIn({ rows }: Listed): string[] {
  const byId = new Map<string, number[]>(Array.from({ length: PAIRS }, (_, id) => [`${id}`, []]));
  for (const [id, , n] of rows) byId.get(id)?.push(n);
  const wrong = [...byId].filter(([, ns]) => ns.length !== 2 || ns[0] !== ns[1]);
  return wrong.map(([id, ns]) => `pair ${id} has ${ns.length === 0 ? "nothing" : ns.join(" and ")}`);
}

Deno.test("a page has both of what is written together, by key and by index, at every site", async () => {
  const topology = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const app = fileURLToPath(new URL("apps/pairs/app.ts", import.meta.url));
  await using cluster = await startCluster({ topology, apps: [app] });
  const put = async (site: string, id: number, n: number) => {
    const url = `${cluster.url(site)}/pairs/pairs/${id}/${n}`;
    const { status, text } = await ask(url, { method: "PUT", body: "x".repeat(TEXT_BYTES) });
    assert.equal(status, 201, text);
  };
  for (let id = 0; id < PAIRS; id++) await put("core", id, 0);
  const listedAt = async (site: string) =>
    JSON.parse((await ask(`${cluster.url(site)}/pairs/pairs?by=key`)).text) as Listed;
  for (const site of ["cloud", "edge-1", "edge-2"]) {
    await eventually(`${site} has all pairs`, async () => wrongIn(await listedAt(site)).length === 0);
  }
  const endMs = performance.now() + LAST_MS;
  let writes = 0;
  const write = async (site: string, first: number) => {
    for (let n = 1; performance.now() < endMs; n++) {
      await put(site, first + (n % (PAIRS / 3)), n);
      writes++;
    }
  };
  const wrong: string[] = [], pages = { index: 0, key: 0 };
  let unread = 0;
  const read = async (site: string, by: "index" | "key") => {
    while (performance.now() < endMs) {
      const { status, text } = await ask(`${cluster.url(site)}/pairs/pairs?by=${by}`);
      // Rows may change faster than a page of them is read; that is said.
      if (status === 409) unread++;
      else assert.equal(status, 200, text);
      if (status !== 200) continue;
      const page = JSON.parse(text) as Listed;
      if (!page.isWhole) continue;
      pages[by]++;
      wrong.push(...wrongIn(page).map((pair) => `${site} by ${by}: ${pair}`));
    }
  };
  await Promise.all([
    ...["cloud", "core", "edge-1"].map((site, i) => write(site, i * PAIRS / 3)),
    ...["cloud", "edge-1", "edge-2"].flatMap((site) => [read(site, "index"), read(site, "key")]),
  ]);
  assert.deepEqual(wrong.slice(0, 5), [], `${wrong.length} wrong on ${JSON.stringify(pages)}`);
  assert.ok(writes > 50 && pages.index > 20 && pages.key > 20, JSON.stringify({ writes, pages, unread }));
});
