import assert from "node:assert/strict";
import type { LogLine } from "../observe/log_line.ts";
import { LogMemory } from "./log_memory.ts";

const NOW = 1_800_000_000_000;
const line = (site: string, atMs: number, text: string): LogLine => ({
  atMs: NOW + atMs,
  site,
  level: "info",
  text,
});

Deno.test("a line that is printed many times in a millisecond is shown as often (M1)", () => {
  const memory = new LogMemory();
  const same = () => memory.isNew(line("edge-1", 0, "same"));
  assert.deepEqual([same(), same(), same()], [true, true, true]);
  memory.brokeOff();
  assert.deepEqual([same(), same(), same(), same()], [false, false, false, true]);
  memory.brokeOff();
  assert.deepEqual([same(), same(), same(), same(), same()], [false, false, false, false, true]);
});

Deno.test("a follower goes on with a site whose clock is behind the others (M2)", () => {
  const memory = new LogMemory();
  assert.equal(memory.sinceMs, null);
  memory.isNew(line("cloud", 3_600_000, "an hour ahead"));
  memory.isNew(line("edge-1", 0, "before"));
  memory.brokeOff();
  assert(memory.sinceMs !== null && memory.sinceMs <= NOW);
  assert.equal(memory.isNew(line("cloud", 1_000, "of long ago, and not asked for then")), false);
  assert.equal(memory.isNew(line("edge-1", 0, "before")), false);
  assert.equal(memory.isNew(line("edge-1", 500, "meanwhile")), true);
});

Deno.test("a site that was silent is heard from where the others are", () => {
  const memory = new LogMemory();
  memory.isNew(line("edge-1", 0, "before"));
  memory.brokeOff();
  assert.equal(memory.isNew(line("edge-2", -60_000, "a minute ago")), false);
  assert.equal(memory.isNew(line("edge-2", 10, "now")), true);
});
