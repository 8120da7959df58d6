/** What becomes of the rows of a site that comes to another parent (store/tree/resync.ts), on real replicas. */
import { strict as assert } from "node:assert";
import { packKey } from "../../../store/model/key.ts";
import type { Message } from "../../../store/wire/message.ts";
import { isPoint, prefixRange } from "../../../store/model/range.ts";
import { keyOf, RANGE, ResyncedPair } from "./resynced_pair.ts";

const ROWS = 600, VALUE_BYTES = 40;
const upTo = (end: number) => Array.from({ length: end }, (_, i) => i);

async function moved(
  whileCutOff: (pair: ResyncedPair) => Promise<void>,
  changes?: (message: Message) => Message,
): Promise<ResyncedPair> {
  const pair = await ResyncedPair.open(ROWS, VALUE_BYTES);
  await pair.cutOff();
  await whileCutOff(pair);
  if (changes !== undefined) pair.changes = changes;
  await pair.move();
  return pair;
}

Deno.test("rows that were deleted, changed and written while a site was cut off are right when it has moved (uplink.ts P5)", async () => {
  const pair = await moved(async (pair) => {
    await pair.write([0, 17, 300, ROWS - 1], "delete");
    await pair.write([5, 301]);
    await pair.write([ROWS, ROWS + 1]);
  });
  assert.ok(await pair.isSame());
  assert.equal(await pair.read("e", RANGE), ROWS - 4 + 2);
  const { counters } = pair.site("e").status();
  assert.ok((counters["same_rows"] ?? 0) > ROWS / 2, `${counters["same_rows"]} rows were the same`);
  await pair.close();
});

Deno.test("what a site wrote itself while it was cut off is pushed when it has moved, and stays (uplink.ts P1)", async () => {
  const pair = await moved(async (pair) => {
    await pair.writeAt("e", [3, 400, ROWS + 5]);
    await pair.write([4, 400]);
  });
  await pair.runFor(2_000);
  assert.equal(await pair.read("root", RANGE), ROWS + 1);
  assert.ok(await pair.isSame());
  await pair.close();
});

Deno.test("a changed row is not served as it was, however soon it is read (store/session/session.ts E5)", async () => {
  const pair = await ResyncedPair.open(ROWS, VALUE_BYTES);
  await pair.cutOff();
  await pair.write([7]);
  const [there] = await pair.until(pair.site("root").system.get([keyOf(7)]));
  pair.connectNext();
  await pair.until(pair.becomesAnother("e"));
  assert.equal(pair.site("e").debugCovers(keyOf(7)), false);
  const [here] = await pair.until(pair.site("e").system.get([keyOf(7)]));
  assert.equal(here?.clock, there?.clock);
  await pair.close();
});

Deno.test("an answer with parts that are not the range is refused, and the rows are fetched (Y4)", async () => {
  const garbage: readonly ((message: Message) => Message)[] = [
    (m) => m.kind === "compared" ? { ...m, parts: m.parts.toReversed() } : m,
    (m) => m.kind === "compared" ? { ...m, parts: m.parts.slice(0, -1) } : m,
    (m) => m.kind === "compared" ? { ...m, range: { ...m.range, start: packKey(["q"]) } } : m,
  ];
  for (const change of garbage) {
    const pair = await moved((pair) => pair.write([5, 301]), change);
    assert.ok((pair.site("e").status().counters["compare_refused"] ?? 0) > 0);
    assert.equal(pair.notes.filter((name) => name === "compare_refused").length, 1);
    assert.ok(await pair.isSame());
    await pair.close();
  }
});

Deno.test("digests that are wrong cost messages, and no rows", async () => {
  const wrong = (digest: Uint8Array<ArrayBuffer>) => digest.map((byte) => byte ^ 1);
  const pair = await moved((pair) => pair.write([5]), (m) => {
    if (m.kind === "compare") return { ...m, digest: wrong(m.digest) };
    if (m.kind !== "compared") return m;
    return { ...m, parts: m.parts.map((part) => ({ ...part, digest: wrong(part.digest) })) };
  });
  assert.ok(await pair.isSame());
  await pair.close();
});

Deno.test("a child that asks for what is kept at the root only is refused, counted, and noted once", async () => {
  const pair = await ResyncedPair.open(3, VALUE_BYTES);
  await pair.cutOff();
  await pair.move();
  const range = prefixRange(packKey(["r"])), digest = new Uint8Array(16);
  for (const id of [900, 901]) pair.says("e", { kind: "compare", id, range, digest, trace: "" });
  await pair.runFor(100);
  assert.equal(pair.site("b").status().counters["range_refused"], 2);
  assert.equal(pair.notes.filter((name) => name === "range_refused").length, 1);
  await pair.close();
});

/** The edge has come to another parent, whose answers to comparisons do not reach it. */
async function unanswered(capacityBytes?: number): Promise<ResyncedPair> {
  const pair = await ResyncedPair.open(ROWS, VALUE_BYTES, capacityBytes);
  await pair.cutOff();
  await pair.write([5, 301]);
  pair.changes = (message) => message.kind === "compared" ? { kind: "eager" } : message;
  pair.connectNext();
  await pair.until(pair.becomesAnother("e"));
  await pair.runFor(100);
  return pair;
}

Deno.test("rows that are only kept to be compared go first when a site is full", async () => {
  // So near to full that nothing is compared that nobody reads.
  const pair = await unanswered(40_000);
  const used = packKey(["other"]);
  await pair.until(pair.site("e").system.get([used]));
  await pair.writeAt("e", upTo(ROWS / 2).map((i) => ROWS + 1 + i));
  assert.equal(pair.site("e").status().counters["stale_evicted"], ROWS);
  assert.ok(pair.site("e").debugCovers(used));
  await pair.close();
});

Deno.test("what a site has to compare survives its process", async () => {
  const pair = await unanswered();
  pair.changes = (message) => message;
  await pair.restart();
  assert.equal(await pair.read("e", RANGE), ROWS);
  assert.ok(await pair.isSame());
  const { counters } = pair.site("e").status();
  assert.ok((counters["same_rows"] ?? 0) > ROWS / 2, `${counters["same_rows"]} rows were the same`);
  await pair.close();
});

Deno.test("a row is read by itself while the range around it is still compared", async () => {
  const pair = await ResyncedPair.open(ROWS, VALUE_BYTES);
  await pair.cutOff();
  await pair.write([7, 301]);
  const [there] = await pair.until(pair.site("root").system.get([keyOf(7)]));
  pair.changes = (message) =>
    message.kind === "compared" && !isPoint(message.range) ? { kind: "eager" } : message;
  pair.connectNext();
  await pair.until(pair.becomesAnother("e"));
  await pair.runFor(100);
  const [here] = await pair.until(pair.site("e").system.get([keyOf(7)]));
  assert.equal(here?.clock, there?.clock);
  await pair.close();
});

Deno.test("a site that dies while it takes another number loses nothing that it wrote, whenever that is", async () => {
  for (let afterMs = 0; afterMs < 1_500; afterMs += 50) {
    const pair = await ResyncedPair.open(3, VALUE_BYTES);
    await pair.cutOff();
    await pair.writeAt("e", [0, ROWS]);
    // Its rows are read from the disk, which takes longer than it is silent: a commit comes between.
    await pair.restartAlone();
    pair.readMs = 400;
    pair.connectNext();
    await pair.runFor(afterMs);
    await pair.crash();
    pair.readMs = 0;
    await pair.runFor(5_000);
    assert.equal(await pair.read("root", RANGE), 4, `${afterMs} ms`);
    assert.equal(await pair.unsettled(), 0, `${afterMs} ms`);
    await pair.close();
  }
});

Deno.test("what was listed page by page is compared unasked, several pages at a time", async () => {
  const pair = await ResyncedPair.open(ROWS, VALUE_BYTES);
  await pair.site("e").evict();
  for (let row = 0; row < ROWS; row += 5) {
    await pair.until(pair.site("e").system.list({ start: keyOf(row), end: keyOf(row + 5) }));
  }
  await pair.cutOff();
  await pair.write([7, 301]);
  pair.connectNext();
  await pair.until(pair.becomesAnother("e"));
  const isCovered = () => upTo(ROWS).every((row) => pair.site("e").debugCovers(keyOf(row)));
  // 120 pages, of which each takes a round trip of 2 ms: one after the other they take four times as long.
  await pair.runFor(60);
  assert.ok(isCovered(), "something is not covered yet");
  assert.ok(await pair.isSame());
  await pair.close();
});
