/**
 * One word, one meaning: what two files of production code export has two names.
 *
 * NM1  A name is exported by one file; who needs it elsewhere imports it from there, or re-exports it.
 */
import assert from "node:assert/strict";
import { readSources } from "./sources.ts";

const DECLARED =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|class|interface|type|const|let|enum) ([A-Za-z_$][\w$]*)/gm;

/** Names that more than one file declares, with the files. */
function recurring(files: Iterable<{ readonly path: string; readonly code: string }>): string[] {
  const places = new Map<string, Set<string>>();
  for (const { path, code } of files) {
    for (const [, name = ""] of code.matchAll(DECLARED)) {
      places.set(name, (places.get(name) ?? new Set()).add(path));
    }
  }
  return [...places].filter(([, paths]) => paths.size > 1).map(([name, paths]) =>
    `${name}: ${[...paths].join(", ")}`
  );
}

Deno.test("a name is exported by one file of production code (NM1)", async () => {
  const sources = await readSources(new URL("../../", import.meta.url));
  const production = [...sources.values()].filter(({ path }) =>
    /^(?:store|placement|functions|runtime)\//.test(path) && !path.endsWith("_test.ts")
  );
  assert.ok(production.length > 500);
  assert.deepEqual(recurring(production), []);
});

Deno.test("a name that two files declare is found, whatever it names, and one that is passed on is not", () => {
  const files = [
    {
      path: "a.ts",
      code: "export const one = 1;\nexport interface Two {}\nexport async function three() {}",
    },
    {
      path: "b.ts",
      code: 'export type Two = 2;\nexport { one } from "./a.ts";\nexport class three {}\nconst four = 4;',
    },
    {
      path: "c.ts",
      code: "export const four = 4;\nexport function five(): void;\nexport function five() {}",
    },
  ];
  assert.deepEqual(recurring(files), ["Two: a.ts, b.ts", "three: a.ts, b.ts"]);
});
