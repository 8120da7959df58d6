/** How the tests of a file are found and run beside each other. */
import assert from "node:assert/strict";
import { loadTestFile } from "./test_file.ts";

Deno.test("a test file's tests are trials, each finds what fails in it or in its steps (TF1)", async () => {
  const path = "tests/mutants/sample_of_tests.ts";
  const { trials, run } = await loadTestFile(path);
  assert.deepEqual(trials, ["passes", "fails", "fails (2)", "fails in a step", "named"]);
  const says = async (trial: string) => (await run(trial))?.message;
  assert.equal(await says("passes"), undefined);
  assert.equal(await says("fails"), "once");
  assert.equal(await says("fails (2)"), "twice");
  assert.deepEqual(await run("fails in a step"), {
    checker: "fails in a step: second",
    message: "of a step",
  });
  assert.equal(await says("named"), undefined);
  await assert.rejects(run("ignored"), /has no test 'ignored'/);
});
