/**
 * Pages, read by somebody who does what they say. A page with commands is either read here, or every block of
 * commands in it says why it is not run.
 */
import { strict as assert } from "node:assert";
import { readPage } from "../pages/reader.ts";

const PAGES = [
  "README.md",
  "docs/guides/first-app.md",
  "docs/guides/tables-and-kv.md",
  "docs/guides/moving-users.md",
  "docs/commands.md",
  "docs/guides/operating.md",
  "docs/chaos.md",
  "examples/guestbook/README.md",
  "examples/board/README.md",
  "examples/chat/README.md",
  "examples/access/README.md",
  "examples/editor/README.md",
];

for (const page of PAGES) {
  Deno.test(`${page} does what it says`, async () => {
    assert((await readPage(page)) > 0);
  });
}
