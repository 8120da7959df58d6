/** Explores the large spaces, too: `deno run -A tests/stateful/explore/main.ts`. */
import { explore } from "./explore.ts";
import { LARGE, WHOLE } from "./spaces.ts";

for (const { name, what } of [...WHOLE, ...LARGE]) {
  const { states, isWhole, violation } = await explore(what);
  const end = violation === null ? (isWhole ? "whole" : "cut") : violation.join(", ");
  console.log(`${name}: ${states} states, ${end}`);
}
