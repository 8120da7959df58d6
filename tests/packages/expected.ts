/** Says, as JSON by name, what is made of packages where nothing is in their way. */
import { USES } from "./uses.ts";

const made = Object.entries(USES).map(async ([name, use]) => [name, await use() ?? null] as const);
console.log(JSON.stringify(Object.fromEntries(await Promise.all(made))));
