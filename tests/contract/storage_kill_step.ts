/** The numbered steps of the tests that kill and cut: step n sets every row and the record to n. */
import assert from "node:assert/strict";
import { packKey } from "../../store/model/key.ts";
import type { DiskCommit, Storage } from "../../store/model/ports.ts";
import { WHOLE } from "../../store/model/range.ts";
import { row, step } from "./storage_contract.ts";

/** Rows of a step; with 200 KB each, a large step is 2 MB, three times what an atomic operation takes. */
export const KILL_ROWS = 10;
const LARGE_BYTES = 200_000;

/** Step n; each seventh is large. */
export function numberedStep(n: number, large = n % 7 === 0): DiskCommit {
  const text = `${n}`.padEnd(large ? LARGE_BYTES : 8);
  const rows = Array.from(
    { length: KILL_ROWS },
    (_, i) => row(packKey(["row", i]), n * KILL_ROWS + i + 1, text),
  );
  return step(rows, [], [["number", new TextEncoder().encode(`${n}`)]]);
}

/** The number in a value or record. */
export const numberIn = (bytes: Uint8Array | null | undefined): number =>
  Number(new TextDecoder().decode(bytes ?? new Uint8Array()));

/** The step that a storage holds, having checked that it holds all of it. */
export async function wholeStep(storage: Storage): Promise<number> {
  const n = numberIn((await storage.load()).get("number"));
  if (n === 0) {
    assert.deepEqual(await storage.scan(WHOLE), []);
    return 0;
  }
  const expected = numberedStep(n).rows.map((row) => [row.key, row.position, row.value?.length]);
  const rows = await storage.scan(WHOLE);
  assert.deepEqual(rows.map((row) => [row.key, row.position, row.value?.length]), expected);
  for (const row of rows) assert.equal(numberIn(row.value), n);
  const journal = await storage.journal(0, Infinity, Infinity);
  assert.deepEqual(journal.map((row) => row.position), expected.map(([, position]) => position));
  assert.equal(
    await storage.bytes(),
    rows.reduce((sum, row) => sum + row.key.length + (row.value?.length ?? 0), 0),
  );
  return n;
}
