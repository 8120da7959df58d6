import assert from "node:assert/strict";
import { testsCounted } from "./counts.ts";

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
