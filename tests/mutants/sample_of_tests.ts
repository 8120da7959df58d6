/** Tests in the forms that `Deno.test` takes, as test_file_test.ts loads them: some fail. */
function fail(message: string): never {
  throw new Error(message);
}

Deno.test("passes", () => {});
Deno.test("fails", () => fail("once"));
Deno.test({ name: "fails", fn: () => Promise.reject(new Error("twice")) });
Deno.test("fails in a step", async (t) => {
  await t.step("first", () => {});
  await t.step("second", () => fail("of a step"));
  await t.step({ name: "third", fn: () => fail("of another"), ignore: true });
});
Deno.test(function named() {});
Deno.test({ name: "ignored", ignore: true, fn: () => fail("never") });
Deno.test.ignore("ignored", () => fail("never"));
