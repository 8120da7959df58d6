import { strict as assert } from "node:assert";
import { type AppLine, AppLogBudgets } from "./app_log_budget.ts";

const line = (app: string, text: string): AppLine => ({
  app,
  version: "v",
  level: "info",
  text,
  traceId: "t",
});

Deno.test("an app prints so much a second, and another as much: what is dropped is counted and said (LB1)", async () => {
  const told: AppLine[] = [];
  let nowMs = 5;
  const budgets = new AppLogBudgets<AppLine>((line) => told.push(line), () => nowMs);
  for (let i = 0; i < 100; i++) budgets.line(line("loud", "x".repeat(10_000)));
  for (let i = 0; i < 100_000; i++) budgets.line(line("empty", ""));
  budgets.line(line("quiet", "heard"));
  const countOf = (app: string) => told.filter((line) => line.app === app).length;
  assert.deepEqual([countOf("loud"), countOf("empty"), countOf("quiet")], [25, 2048, 1]);
  nowMs += 1_000;
  budgets.line(line("loud", "again"));
  assert.equal(told.at(-1)?.text, "again");
  const deadlineMs = performance.now() + 20_000;
  while (!told.some(({ app, level }) => app === "empty" && level === "warn")) {
    assert.ok(performance.now() < deadlineMs);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(
    told.find(({ app, level }) => app === "loud" && level === "warn")?.text,
    "75 lines were dropped: an app may log 256 KiB a second at a site",
  );
  budgets.close();
});

Deno.test("a line that is too long is cut, within no character", () => {
  const told: string[] = [];
  const budgets = new AppLogBudgets<AppLine>(({ text }) => told.push(text));
  budgets.line(line("a", "x".repeat(16 * 1024 - 1) + "🙂".repeat(10)));
  assert.equal(told[0]?.length, 16 * 1024 + 1);
  assert.ok(told[0]?.isWellFormed());
  budgets.close();
});
