/**
 * What a run of `deno test` says of itself at its end: how many tests it had, from its closing line
 * (`ok | 3 passed (2 steps) | 0 failed …` or `FAILED | 3 passed | 1 failed (2 steps) …`), and which of them failed, from
 * the lists before it, ` ERRORS ` and ` FAILURES `.
 */
import { stripVTControlCharacters } from "node:util";

/** The counts of the last closing line, or null where the run printed none (it died before its end). */
export function testsCounted(output: string): { passed: number; failed: number } | null {
  const plain = stripVTControlCharacters(output);
  const found = [...plain.matchAll(/^(?:ok|FAILED) \| (\d+) passed[^|]*\| (\d+) failed/gm)].at(-1);
  return found === undefined ? null : { passed: Number(found[1]), failed: Number(found[2]) };
}

/** Of an error: its message and where it was thrown, not a page of a difference. */
const ERROR_LINES_MAX = 12;
const ERROR_CHARS_MAX = 800;

/** The tests that failed: their names, then each with how its error begins; `null` where the run lists none. */
export function testsFailed(output: string): string | null {
  const plain = stripVTControlCharacters(output), at = plain.lastIndexOf("\n FAILURES \n");
  if (at < 0) return null;
  const names = plain.slice(at + "\n FAILURES \n".length).split("\n\nFAILED |")[0]?.trim() ?? "";
  const errors = plain.slice(0, at).split("\n ERRORS \n").at(-1)?.trim() ?? "";
  // Each begins with the line that lists it: a message of several paragraphs is not taken for several errors.
  const listed = new Set(names.split("\n")), begun: string[][] = [];
  for (const line of errors.split("\n")) {
    if (listed.has(line)) begun.push([]);
    begun.at(-1)?.push(line);
  }
  const short = begun.map((lines) =>
    lines.slice(0, ERROR_LINES_MAX).join("\n").slice(0, ERROR_CHARS_MAX).trimEnd()
  );
  return [names, ...short].join("\n\n");
}
