import assert from "node:assert/strict";
import { testsCounted, testsFailed } from "./counts.ts";

Deno.test("the closing line of a test run is counted", () => {
  const cases: [string, ReturnType<typeof testsCounted>][] = [
    ["ok | 3 passed (2 steps) | 0 failed (12ms)", { passed: 3, failed: 0 }],
    ["FAILED | 3 passed | 1 failed (2 steps) | 1 ignored (1s)", { passed: 3, failed: 1 }],
    ["\x1b[32mok\x1b[0m | 12 passed | 0 failed", { passed: 12, failed: 0 }],
    ["ok | 1 passed | 0 failed\nlater\nok | 2 passed | 0 failed\n", { passed: 2, failed: 0 }],
    ["said: ok | 9 passed | 0 failed", null],
    ["error: Module not found", null],
  ];
  for (const [output, counts] of cases) assert.deepEqual(testsCounted(output), counts, output);
});

/** What Deno 2.9.6 prints for a step and a test that failed. */
const FAILED_RUN = `running 3 tests from ./a_test.ts
fine ... ok (517µs)
outer ...
  inner ... FAILED (1ms)
outer ... FAILED (due to 1 failed step) (1ms)
plain ... FAILED (688µs)

 ERRORS 

outer ... inner => ./a_test.ts:2:49
error: Error: boom

a paragraph further down
${"    at somewhere\n".repeat(40)}
plain => ./a_test.ts:3:6
error: TypeError: no such thing
    at file:///a_test.ts:3:52

 FAILURES 

outer ... inner => ./a_test.ts:2:49
plain => ./a_test.ts:3:6

FAILED | 1 passed (1 step) | 2 failed (1 step) (11ms)
`;

Deno.test("of tests that failed the names come first, then how each error begins", () => {
  const said = testsFailed(FAILED_RUN) ?? "";
  assert.match(
    said,
    /^outer \.\.\. inner => .*\nplain => .*\n\nouter \.\.\. inner => .*\nerror: Error: boom\n\na paragraph/,
  );
  assert.match(said, /\n\nplain => .*\nerror: TypeError: no such thing\n {4}at file:.*$/);
  assert.equal(said.match(/somewhere/g)?.length, 8);
  assert.equal(testsFailed("error: Module not found"), null);
  assert.equal(testsFailed("ok | 3 passed (2 steps) | 0 failed (12ms)"), null);
});
