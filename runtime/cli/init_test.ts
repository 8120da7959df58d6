import { strict as assert } from "node:assert";
import { join } from "node:path";
import { runCli } from "./mod.ts";

/** A folder; goes when the test ends. */
async function emptyFolder() {
  const path = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

const init = async (folder: string) => {
  const err: string[] = [];
  const code = await runCli(["init", folder], {
    out: () => {},
    err: (line) => void err.push(line),
    env: () => undefined,
  });
  return { code, err: err.join("\n") };
};
const namesIn = async (folder: string) =>
  (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();

Deno.test("a folder with anything in it, but for .git, is left as it is (I1)", async () => {
  await using folder = await emptyFolder();
  await Deno.mkdir(join(folder.path, ".git"));
  await Deno.writeTextFile(join(folder.path, "app.ts"), "mine");
  const refused = await init(folder.path);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /is not empty: app\.ts/);
  assert.deepEqual(await namesIn(folder.path), [".git", "app.ts"]);
  assert.equal(await Deno.readTextFile(join(folder.path, "app.ts")), "mine");
  await Deno.remove(join(folder.path, "app.ts"));
  assert.equal((await init(folder.path)).code, 0);
  assert.ok((await namesIn(folder.path)).includes("app.ts"));
});

Deno.test("a new app has its types, and its commands, from the copy that made it (I2)", async () => {
  await using folder = await emptyFolder();
  assert.equal((await init(folder.path)).code, 0);
  const { imports, tasks } = JSON.parse(await Deno.readTextFile(join(folder.path, "deno.json")));
  const { sojourn, "sojourn/client": client } = imports;
  assert.equal(new URL(sojourn).href, new URL("../../functions/mod.ts", import.meta.url).href);
  assert.equal(new URL(client).href, new URL("../../functions/client/mod.ts", import.meta.url).href);
  assert.ok(tasks.sojourn.includes(new URL("../main.ts", import.meta.url).pathname));
});
