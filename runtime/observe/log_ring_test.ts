import { strict as assert } from "node:assert";
import type { LogLine } from "./log_line.ts";
import { LogRing } from "./log_ring.ts";

const line = (app: string | null, text: string): LogLine => ({
  ...{ atMs: 1, site: "a", level: "info", text },
  ...app === null ? {} : { app, version: "v" },
});
const all = () => true;
const textsOf = ({ lines }: { lines: readonly { line: LogLine }[] }) => lines.map(({ line }) => line.text);

Deno.test("an app that prints without end pushes out its own lines: those of others and of the site stay (R1)", () => {
  const ring = new LogRing({ linesMax: 100, bytesMax: 100_000 });
  ring.add(line(null, "site began"));
  ring.add(line("quiet", "quiet 1"));
  for (let i = 0; i < 5_000; i++) ring.add(line("loud", `loud ${i}`));
  ring.add(line("quiet", "quiet 2"));
  for (let i = 5_000; i < 10_000; i++) ring.add(line("loud", "x".repeat(20_000)));
  const kept = textsOf(ring.read(0, 1_000, all));
  assert.deepEqual(kept.filter((text) => !text.startsWith("x")), ["site began", "quiet 1", "quiet 2"]);
  assert.ok(kept.length > 3);
  assert.deepEqual(textsOf(ring.newest(2, ({ app }) => app === "quiet")), ["quiet 1", "quiet 2"]);
});

Deno.test("lines are read in order, whoever's they are, and what has gone between them is counted (R2, R3)", () => {
  const ring = new LogRing({ linesMax: 6 });
  const whose = ["a", "b", null, "a", "a", "a", "b", "a", "a", "a", null, "a"];
  for (const [i, app] of whose.entries()) ring.add(line(app, `${i}`));
  const part = ring.read(0, 100, all);
  const numbers = part.lines.map(({ number }) => number);
  assert.deepEqual(numbers, numbers.toSorted((a, b) => a - b));
  assert.deepEqual([part.lines.length, part.lost, part.next], [6, 6, 12]);
  for (const { line, number } of part.lines) assert.equal(line.text, `${number}`);
  assert.ok([1, 2, 6, 10].every((number) => numbers.includes(number)), numbers.join());
  // In parts, the same lines and the same losses.
  let from = 0, lost = 0;
  const read: number[] = [];
  while (from < ring.next) {
    const part = ring.read(from, 1, all);
    read.push(...part.lines.map(({ number }) => number));
    lost += part.lost;
    from = part.next;
  }
  assert.deepEqual([read, lost], [numbers, 6]);
  assert.deepEqual(ring.newest(3, all).lines.map(({ number }) => number), numbers.slice(-3));
});
