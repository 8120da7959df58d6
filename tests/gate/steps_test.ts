import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { STEPS } from "./steps.ts";
import { testFiles } from "./test_files.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
/** What `deno test` takes for a module of tests. */
const TESTS = /(^|[._])test\.(ts|tsx|mts|js|jsx|mjs)$/;

const argsOf = (step: string): (readonly string[])[] =>
  STEPS.filter(({ name }) => name === step).flatMap(({ parts }) => parts.map(({ args }) => args));

const pathsOf = (args: readonly string[]): string[] =>
  args.flatMap((arg) => arg.startsWith("--ignore=") ? arg.slice("--ignore=".length).split(",") : []);

function testsIn(folder: string): string[] {
  return [...Deno.readDirSync(join(ROOT, folder))].flatMap(({ name, isDirectory }) =>
    isDirectory ? testsIn(`${folder}/${name}`) : TESTS.test(name) ? [`${folder}/${name}`] : []
  );
}

Deno.test("a test is in one part of one step (G4)", () => {
  const [rest, ...others] = argsOf("tests").filter((args) => pathsOf(args).length > 0);
  assert.deepEqual(others, [], "one part takes what no other does");
  const ignored = pathsOf(rest ?? []);
  const pathsOfPart = (args: readonly string[]) => args.slice(args.indexOf("--") + 1);
  const named = argsOf("tests").flatMap(pathsOfPart).filter((arg) => /^[a-z]+\//.test(arg));
  assert.deepEqual(
    ignored.toSorted(),
    ["tests/e2e", ...named].sort(),
    "what others do it leaves out, and no more",
  );
  for (const path of ignored) {
    Deno.statSync(join(ROOT, path));
    assert(!ignored.some((other) => path.startsWith(`${other}/`)), `${path} is in another's folder`);
  }
  assert.deepEqual(argsOf("e2e").map((args) => args.at(-1)).sort(), testsIn("tests/e2e").sort());
});

Deno.test("the parts of tests find the files that deno test finds", () => {
  const folders = [...Deno.readDirSync(ROOT)].filter(({ name, isDirectory }) =>
    isDirectory && !name.startsWith(".") && name !== "node_modules"
  );
  const all = folders.flatMap(({ name }) => testsIn(name));
  const found = testFiles(["."]);
  assert.deepEqual(found.toSorted(), all.filter((path) => !path.startsWith("tests/packages/")).toSorted());
  assert.deepEqual(testFiles(["tests/gate/steps_test.ts"]), ["tests/gate/steps_test.ts"]);
});
