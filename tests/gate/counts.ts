/**
 * How many tests a run of `deno test` had, from its closing line:
 * `ok | 3 passed (2 steps) | 0 failed …` or `FAILED | 3 passed | 1 failed (2 steps) …`.
 */
import { stripVTControlCharacters } from "node:util";

/** The counts of the last closing line, or null where the run printed none (it died before its end). */
export function testsCounted(output: string): { passed: number; failed: number } | null {
  const plain = stripVTControlCharacters(output);
  const found = [...plain.matchAll(/^(?:ok|FAILED) \| (\d+) passed[^|]*\| (\d+) failed/gm)].at(-1);
  return found === undefined ? null : { passed: Number(found[1]), failed: Number(found[2]) };
}
