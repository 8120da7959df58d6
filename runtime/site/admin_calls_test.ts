import { strict as assert } from "node:assert";
import { adminCallLog } from "./admin_calls.ts";

Deno.test("changes that strangers ask for are one line a minute, those of operators a line each", () => {
  let nowMs = 0;
  const lines: unknown[] = [];
  const tell = adminCallLog((level, _event, fields) => void lines.push({ level, ...fields }), () => nowMs);
  for (let i = 0; i < 1_000; i++) tell("info", { role: "none", call: `POST /admin/${i}` });
  assert.deepEqual(lines, [{ level: "warn", role: "none", call: "POST /admin/0", before: 0 }]);
  nowMs = 61_000;
  tell("info", { role: "none", call: "POST /admin/deploy" });
  assert.deepEqual(lines[1], { level: "warn", role: "none", call: "POST /admin/deploy", before: 999 });
  for (let i = 0; i < 3; i++) tell("info", { by: "ci", role: "deploy", call: "POST /admin/deploy" });
  assert.deepEqual(lines[4], { level: "info", by: "ci", role: "deploy", call: "POST /admin/deploy" });
});
