/** What commits and answers hold. */
import type { SessionAnswer } from "../../../../functions/calls/call.ts";
import type { Commit } from "../../../../functions/sessions/turn/mod.ts";
import { decodeValue } from "../../../../functions/values/value.ts";

/** The entries of several commits. */
export function joined(commits: readonly Commit[]): Uint8Array {
  const bytes = new Uint8Array(commits.reduce((sum, { entries }) => sum + entries.length, 0));
  let at = 0;
  for (const { entries } of commits) {
    bytes.set(entries, at);
    at += entries.length;
  }
  return bytes;
}

/** The value of an answer, where it is one. */
export const valueOf = (answer: SessionAnswer): unknown =>
  answer.kind === "value" ? decodeValue(answer.value) : undefined;
