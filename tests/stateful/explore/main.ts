/** Explores the large spaces, too: `deno run -A tests/stateful/explore/main.ts`. */
import { explore, type Explored } from "./explore.ts";
import { LARGE as LARGE_OF_HOSTS, WHOLE as WHOLE_OF_HOSTS } from "./host_spaces.ts";
import { exploreHosts } from "./hosts.ts";
import { LARGE, WHOLE } from "./spaces.ts";

const report = (name: string, { states, isWhole, violation }: Explored) => {
  const end = violation === null ? (isWhole ? "whole" : "cut") : violation.join(", ");
  console.log(`${name}: ${states} states, ${end}`);
};

for (const { name, what } of [...WHOLE_OF_HOSTS, ...LARGE_OF_HOSTS]) report(name, exploreHosts(what));
for (const { name, what } of [...WHOLE, ...LARGE]) report(name, await explore(what));
