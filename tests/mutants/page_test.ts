/** The page of mutants, as it is kept: it names no rule that there isn't. */
import assert from "node:assert/strict";
import { type RuleLine, RULES, rulesNamed } from "./table.ts";
import { readRuleVerdicts, readVerdicts } from "./verdicts.ts";
import { Workshop } from "./workshop.ts";

const root = new URL("../../", import.meta.url).pathname;

Deno.test("the page and the rules beside it name rules that exist, and what nothing catches has a reason", async () => {
  const { book } = await Workshop.open(root);
  const named = rulesNamed(await Deno.readTextFile(`${root}docs/mutants.md`));
  const lines = JSON.parse(await Deno.readTextFile(`${root}${RULES}`)) as RuleLine[];
  const reasons = await readRuleVerdicts(root);
  assert.ok(lines.length > 100, `${lines.length} rules`);
  const lost = [...named, ...reasons.keys(), ...lines.map(({ rule }) => rule)].filter((rule) =>
    !book.rules.has(rule)
  );
  assert.deepEqual(lost, [], "write the page anew: deno task mutants table");
  for (const reason of reasons.values()) assert.notEqual(reason, "");
  for (const { reason } of (await readVerdicts(root)).values()) assert.notEqual(reason, "");
});

Deno.test("rules are read from a page by the files that they stand below", () => {
  const page = "## Rules without a mutant\n\n### store/a.ts\n\n- **A1** one _why_\n\n" +
    "### store/b.ts\n\n- **B12** two\n\n## Open\n\n### store/c.ts\n\n- **C1** three\n";
  assert.deepEqual(rulesNamed(page), ["store/a.ts A1", "store/b.ts B12"]);
});
