/**
 * Pages, read by somebody who does what they say. Every page with commands is read, or says of each block of them
 * why it is not run.
 */
import { strict as assert } from "node:assert";
import { stepsOf } from "../pages/blocks.ts";
import { readPage } from "../pages/reader.ts";
import { walk } from "../structure/walk.ts";

const root = new URL("../../", import.meta.url);
const pages: string[] = (await commands("README.md")) > 0 ? ["README.md"] : [];
for (const folder of ["docs", "examples"]) {
  for await (const path of walk(root, folder)) {
    if (path.endsWith(".md") && (await commands(path)) > 0) pages.push(path);
  }
}

async function commands(path: string): Promise<number> {
  const steps = stepsOf(await Deno.readTextFile(new URL(path, root)));
  return steps.filter(({ kind }) => kind === "command").length;
}

Deno.test("the README, the guides and the examples are pages to do", () => {
  const some = ["README.md", "docs/guides/first-app.md", "docs/operating.md", "examples/chat/README.md"];
  for (const page of some) assert(pages.includes(page), `${page} has no command`);
});

for (const page of pages) {
  Deno.test(`${page} does what it says`, async () => {
    assert.equal(await readPage(page), await commands(page));
  });
}
