/** What checkers let pass is what the page on faults says to be lost, or refused. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { OWNERS_EXCUSES } from "../owners/sim/excuses.ts";
import { QUEUES_EXCUSES } from "../queues/sim/excuses.ts";
import { SITES_EXCUSES } from "../sites/excuses.ts";
import { HOSTS_EXCUSES } from "../stateful/hosts_sim/excuses.ts";
import { HOMES_EXCUSES } from "../stateful/sim/excuses.ts";

const PAGE = resolve(import.meta.dirname ?? ".", "..", "..", "docs", "faults.md");

/** As it is read: lines are broken where they are full, and cells of tables are as wide as the widest. */
const asRead = (text: string): string => text.replace(/\s+/g, " ");

Deno.test("each excuse of a simulator's checkers is a sentence of the page on faults (X3)", async () => {
  const page = asRead(await Deno.readTextFile(PAGE));
  for (
    const { name, says, perHundred } of [
      ...SITES_EXCUSES,
      ...OWNERS_EXCUSES,
      ...QUEUES_EXCUSES,
      ...HOMES_EXCUSES,
      ...HOSTS_EXCUSES,
    ]
  ) {
    assert.ok(page.includes(asRead(says)), `${name}: ${join("docs", "faults.md")} does not say ${says}`);
    assert.ok(perHundred > 0, `${name} may never be used`);
  }
});
