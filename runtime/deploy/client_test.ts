import assert from "node:assert/strict";
import { AdminError } from "./admin_api.ts";

Deno.test("an error of a deploy says where it is, and not once more what is wrong", () => {
  const linesOf = (place?: string) => new AdminError("deploy_invalid", "no route", place).lines;
  assert.deepEqual(linesOf(), ["deploy_invalid: no route"]);
  assert.deepEqual(linesOf("AppError: no route"), ["deploy_invalid: no route"]);
  const stack = "Error: no route\n    at main.ts:3:1";
  assert.deepEqual(linesOf(stack), ["deploy_invalid: no route", stack]);
});
