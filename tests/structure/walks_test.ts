/** The walks of docs/architecture.md lead from room to room: each file is there, and doors are where it says. */
import assert from "node:assert/strict";
import { readSources } from "./sources.ts";

const root = new URL("../../", import.meta.url);
const STEP = /^\d+\. (?<frame>⇢ )?`(?<path>[\w/]+\.ts)`/gm;

interface Step {
  readonly path: string;
  /** A frame of another process leads there. */
  readonly isFramed: boolean;
}

/** The walks of a page, each a list of steps. */
function walksOf(page: string): Step[][] {
  const [, section = ""] = page.split("## Three walks");
  const [walks = ""] = section.split("\n## ");
  return walks.split("\n### ").slice(1).map((walk) =>
    [...walk.matchAll(STEP)].map(({ groups }) => ({
      path: groups?.["path"] ?? "",
      isFramed: groups?.["frame"] !== undefined,
    }))
  );
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));

Deno.test("the walks of the architecture go through doors that are there", async () => {
  const sources = await readSources(root);
  /** Folders, with all that their files import. */
  const doors = new Set<string>();
  for (const { path, imports } of sources.values()) {
    for (const each of imports) if (each.path !== null) doors.add(`${folderOf(path)} ${folderOf(each.path)}`);
  }
  const isDoor = (a: string, b: string) => a === b || doors.has(`${a} ${b}`) || doors.has(`${b} ${a}`);
  const walks = walksOf(await Deno.readTextFile(new URL("docs/architecture.md", root)));
  assert.equal(walks.length, 3);
  for (const walk of walks) {
    assert.ok(walk.length >= 5, "a walk of a few rooms");
    for (const [i, { path, isFramed }] of walk.entries()) {
      assert.ok(sources.has(path), `${path} is there`);
      const before = walk[i - 1];
      if (before === undefined || isFramed) continue;
      assert.ok(
        isDoor(folderOf(before.path), folderOf(path)),
        `${before.path} and ${path} have nothing to do with each other`,
      );
    }
  }
});

/** Number of times that a walk passes from one of these layers to the other. */
function crossings(walk: readonly Step[]): number {
  const layers = walk.map(({ path }) => path.slice(0, path.indexOf("/")));
  return layers.filter((layer, i) => i > 0 && layer !== layers[i - 1]).length;
}

Deno.test("a message to a session goes into the engine once, and into each isolate once", async () => {
  const walks = walksOf(await Deno.readTextFile(new URL("docs/architecture.md", root)));
  const message = walks.at(-1) ?? [];
  assert.equal(crossings(message), 8);
  const engine = message.filter(({ path }) => path.startsWith("functions/sessions/"));
  assert.ok(engine.length > 10, "it is the walk of a message");
});

Deno.test("a walk through a wall is found", () => {
  const page = "## Three walks\n\n### One\n\n1. `store/a.ts` begins.\n2. ⇢ `runtime/b.ts` ends.\n\n## More\n";
  assert.deepEqual(walksOf(page), [[
    { path: "store/a.ts", isFramed: false },
    { path: "runtime/b.ts", isFramed: true },
  ]]);
  assert.equal(crossings(walksOf(page)[0] ?? []), 1);
});
