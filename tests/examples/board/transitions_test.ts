import { ok, throws } from "node:assert/strict";
import { Random } from "./random.ts";
import { builtInTransitions, INTERACTIONS, parseTransitions, Walk } from "./transitions.ts";

const RUBBOS = new URL("../../../../shared/data/rubbos/", import.meta.url);

const readJson = (name: string): unknown => {
  try {
    return JSON.parse(Deno.readTextFileSync(new URL(name, RUBBOS)));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
};

Deno.test("a walk by the built-in table reaches every interaction", () => {
  const walk = new Walk(builtInTransitions(), new Random(3));
  const reached = new Set<string>();
  for (let i = 0; i < 20_000; i++) {
    reached.add(walk.at);
    if (walk.step() === null) walk.restart();
  }
  ok(INTERACTIONS.every((interaction) => reached.has(interaction)), [...reached].join());
});

Deno.test("a table that lacks a row or a column is refused", () => {
  const columns = INTERACTIONS.map((name) => name);
  const p = Object.fromEntries(INTERACTIONS.map((name) => [name, INTERACTIONS.map(() => 0)]));
  const { Search: _, ...lacking } = p;
  ok(parseTransitions({ t: { columns_from_state: columns, p } }, "t"));
  throws(() => parseTransitions({ t: { columns_from_state: columns, p: lacking } }, "t"), /needs a row/);
  throws(() => parseTransitions({ t: { columns_from_state: columns.slice(1), p } }, "t"));
  throws(() => parseTransitions({}, "t"));
});

/** In percent of all requests. The file comes from a much shorter simulation than this test's. */
const TOLERANCE_PERCENT = 1.5;
const tables = readJson("transitions.json");
const mixes = readJson("request_mix_simulated.json") as
  | Record<string, { mix_percent: Record<string, number> }>
  | null;

Deno.test({
  name: "walks by RUBBoS's tables give the mix of requests that these give",
  ignore: tables === null || mixes === null, // the tables are not ours to keep in the project
  fn() {
    for (const [name, { mix_percent }] of Object.entries(mixes ?? {})) {
      const walk = new Walk(parseTransitions(tables, name), new Random(11));
      const counts = new Map<string, number>();
      const requests = 200_000;
      for (let i = 0; i < requests; i++) {
        counts.set(walk.at, (counts.get(walk.at) ?? 0) + 1);
        if (walk.step() === null) walk.restart();
      }
      for (const [interaction, percent] of Object.entries(mix_percent)) {
        const ours = 100 * (counts.get(interaction) ?? 0) / requests;
        ok(
          Math.abs(ours - percent) < TOLERANCE_PERCENT,
          `${name} ${interaction}: ${ours} %, not ${percent} %`,
        );
      }
    }
  },
});
