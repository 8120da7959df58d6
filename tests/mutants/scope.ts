/** Which files mutants are made of, and which tests are tried on them. */
import { readSources, type Source } from "../structure/sources.ts";
import { isTestFile } from "./rules.ts";

/** The protocols: where a broken rule loses data. */
export const FOLDERS: readonly string[] = [
  "store",
  "functions/sessions",
  "runtime/stateful",
];

/**
 * Tests that no mutant is tried on, by how their paths begin: they take processes, real time, or test another thing; or
 * they are simulators, of which single seeds are tried.
 */
export const LEFT_OUT: readonly string[] = [
  "tests/bench/",
  "tests/compat/",
  "tests/damage/",
  "tests/docs/",
  "tests/e2e/",
  "tests/examples/",
  "tests/fuzz/",
  "tests/gate/",
  "tests/mutants/",
  "tests/owners/",
  "tests/pages/",
  "tests/runtime/bundle/",
  "tests/runtime/cli/",
  "tests/runtime/isolate/",
  "tests/runtime/link/",
  "tests/runtime/origins/",
  "tests/sim/crash_points_test.ts",
  "tests/sim/endurance_test.ts",
  "tests/sim/outside_checker_test.ts",
  "tests/sim/partition_test.ts",
  "tests/sim/shrink_test.ts",
  "tests/sim/simulation_test.ts",
  "tests/sites_test.ts",
  "tests/soak/",
  "tests/stateful/",
  "tests/structure/",
  "tests/contract/storage_",
  "tests/contract/replace_file",
  "runtime/chaos/",
  "runtime/cli/",
  "runtime/dev/",
  "runtime/isolate/",
  "runtime/link/",
  "runtime/storage/",
];

/** What there is in a tree. */
export interface Scope {
  readonly sources: ReadonlyMap<string, Source>;
  /** Files that mutants are made of. */
  readonly files: readonly string[];
  /** Test files, each with all files that it loads. */
  readonly tests: ReadonlyMap<string, ReadonlySet<string>>;
}

/** @param root of the tree, with a slash at its end */
export async function scopeOf(root: string): Promise<Scope> {
  const sources = await readSources(new URL(`file://${root}`));
  const files = [...sources.keys()].filter((path) =>
    !isTestFile(path) && FOLDERS.some((folder) => path.startsWith(`${folder}/`))
  );
  const inScope = new Set(files);
  const tests = new Map<string, ReadonlySet<string>>();
  for (const path of sources.keys()) {
    if (!path.endsWith("_test.ts") || LEFT_OUT.some((start) => path.startsWith(start))) continue;
    const loaded = loadedBy(path, sources);
    if ([...loaded].some((file) => inScope.has(file))) tests.set(path, loaded);
  }
  return { sources, files, tests };
}

function loadedBy(path: string, sources: ReadonlyMap<string, Source>): Set<string> {
  const loaded = new Set([path]);
  for (const each of loaded) {
    for (const { path: file } of sources.get(each)?.imports ?? []) if (file !== null) loaded.add(file);
  }
  return loaded;
}
