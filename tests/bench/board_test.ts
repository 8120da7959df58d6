import { strictEqual, throws } from "node:assert/strict";
import { planOf } from "./board.ts";

Deno.test("the board's options make a plan", () => {
  const plan = planOf(["--minutes", "10", "--attachment", "100", "--kill", "none"], false);
  strictEqual(plan.minutes, 10);
  strictEqual(plan.size.comments, 2_000);
  strictEqual(plan.size.attachmentBytes, 102_400);
  strictEqual(plan.kills.kind, "none");
  strictEqual(planOf([], true).size.users, 200);
});

Deno.test("the board refuses options that it does not understand", () => {
  for (
    const args of [["--minutes", "soon"], ["--clients", "0"], ["--attachment", "7"], ["--speed", "1"], [
      "--kill",
      "all",
    ]]
  ) {
    throws(() => planOf(args, false));
  }
});
