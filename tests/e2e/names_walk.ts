/** The recipe of the first guide for what may be there only once, at several edges at the same moment. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { ask } from "./client.ts";
import type { TestCluster } from "./cluster.ts";

const GUIDE = resolve(import.meta.dirname ?? ".", "..", "..", "docs", "guides", "first-app.md");
const NAMES = 20;
const EDGES = ["edge-1", "edge-2", "edge-3", "cloud"];

/** Saves the guide's app as a reader would; resolves to its folder. */
export async function namesApp(folder: string): Promise<string> {
  const [, app] = (await Deno.readTextFile(GUIDE)).match(/```ts names\/app\.ts\n([^]*?)```/) ?? [];
  assert.ok(app, "the guide has the app");
  const names = join(folder, "names");
  await Deno.mkdir(names);
  await Deno.writeTextFile(join(names, "app.ts"), app);
  return names;
}

/** Walks the recipe over a cluster that runs it. */
export async function walkNames(cluster: TestCluster): Promise<void> {
  const claims = Array.from({ length: NAMES }, (_, i) => i).flatMap((i) =>
    EDGES.map(async (site) => {
      const { status } = await ask(`${cluster.url(site)}/names/claim/n${i}`, { method: "POST" });
      return { name: i, status };
    })
  );
  const outcomes = await Promise.all(claims);
  for (let i = 0; i < NAMES; i++) {
    const statuses = outcomes.filter(({ name }) => name === i).map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, 409, 409, 409], `name ${i}`);
  }
}
