/** The page of mutants, as it is kept: it names no rule, no mutant and no file that there isn't. */
import assert from "node:assert/strict";
import { rulesNamed } from "./table.ts";
import { readVerdicts } from "./verdicts.ts";
import { Workshop } from "./workshop.ts";

const root = new URL("../../", import.meta.url).pathname;

Deno.test("the page names rules that exist, and each verdict has a reason", async () => {
  const workshop = await Workshop.open(root);
  const named = rulesNamed(await Deno.readTextFile(`${root}docs/mutants.md`));
  assert.ok(named.length > 100, `${named.length} rules`);
  const lost = named.filter((rule) => !workshop.book.rules.has(rule));
  assert.deepEqual(lost, [], "write the page anew: deno task mutants table");
  for (const { reason } of (await readVerdicts(root)).values()) assert.notEqual(reason, "");
});

Deno.test("rules are read from a page by the files that they stand below", () => {
  const page = "## Rules\n\n### store/a.ts\n\n| rule | says |\n| --- | --- |\n| A1 | one |\n" +
    "### store/b.ts\n\n| B12 | two |\n\n## What nothing catches\n\n### store/c.ts\n\n| C1 | three |\n";
  assert.deepEqual(rulesNamed(page), ["store/a.ts A1", "store/b.ts B12"]);
});
