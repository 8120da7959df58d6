/**
 * Pages, read by somebody who does what they say. Every page with commands is read, or says of each block of them
 * why it is not run.
 */
import { strict as assert } from "node:assert";
import { readPage, readSteps } from "../pages/reader.ts";
import { SharedCluster } from "../pages/shared_cluster.ts";
import { walk } from "../structure/walk.ts";

/**
 * Pages that share a cluster, in the order in which they use it: each does what it says whatever those before it have
 * left in their apps. One that counts all guestbook entries, or all stateful sessions, comes before any other that makes
 * some; a page that looks at all that a cluster has (commands.md, operating.md) has one of its own.
 */
const TOGETHER: readonly (readonly string[])[] = [
  [
    "docs/guides/moving-users.md",
    "docs/guides/first-app.md",
    "docs/guides/tables-and-kv.md",
    "docs/guides/queues.md",
  ],
  ["docs/chaos.md", "README.md", "examples/chat/README.md", "examples/editor/README.md"],
  ["examples/guestbook/README.md", "examples/board/README.md", "examples/access/README.md"],
  [
    "docs/guides/stateful-sessions.md",
    "docs/guides/client.md",
    "examples/pong/README.md",
    "examples/scrabble/README.md",
  ],
  [
    "examples/cart/README.md",
    "examples/motion/README.md",
    "docs/guides/losing-sites.md",
    "examples/sms/README.md",
  ],
];

const root = new URL("../../", import.meta.url);
const pages: string[] = (await commands("README.md")) > 0 ? ["README.md"] : [];
for (const folder of ["docs", "examples"]) {
  for await (const path of walk(root, folder)) {
    if (path.endsWith(".md") && (await commands(path)) > 0) pages.push(path);
  }
}

async function commands(path: string): Promise<number> {
  return (await readSteps(path)).filter(({ kind }) => kind === "command").length;
}

Deno.test("the README, the guides and the examples are pages to do", () => {
  const some = ["README.md", "docs/guides/first-app.md", "docs/operating.md", "examples/chat/README.md"];
  for (const page of some) assert(pages.includes(page), `${page} has no command`);
});

const shared = TOGETHER.flat();

Deno.test("a page that shares a cluster is one, and shares one with one group", () => {
  for (const page of shared) assert(pages.includes(page), `${page} has no command`);
  assert.equal(new Set(shared).size, shared.length);
});

for (const group of TOGETHER) {
  Deno.test(`${group.join(", ")} do what they say, one after the other on one cluster`, async (t) => {
    await using cluster = await SharedCluster.start(await Promise.all(group.map(readSteps)));
    for (const page of group) {
      await t.step(`${page} does what it says`, async () => {
        assert.equal(await readPage(page, cluster), await commands(page));
      });
    }
  });
}

for (const page of pages.filter((page) => !shared.includes(page))) {
  Deno.test(`${page} does what it says`, async () => {
    assert.equal(await readPage(page), await commands(page));
  });
}
