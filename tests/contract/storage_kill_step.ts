/** The numbered steps of the kill test: step n sets every row and the record to n. */
import { packKey } from "../../store/key.ts";
import type { Commit } from "../../store/ports.ts";
import { row, step } from "./storage_contract.ts";

/** Rows of a step; with 200 KB each, a large step is 2 MB, three times what an atomic operation takes. */
export const KILL_ROWS = 10;
const LARGE_BYTES = 200_000;

/** Step n; each seventh is large. */
export function numberedStep(n: number, large = n % 7 === 0): Commit {
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
