/**
 * What a run must have been: one uninterrupted run of the entries that the session has in the end.
 *
 * Shares no code with the session but the digest: it goes back from the last entry over what any home ever wrote, and
 * works out by itself what every peer and every request must have been told.
 */
import { digestOf, type Entry, TOLD_EVERY } from "./program.ts";

export interface History {
  /** By digest: what was handled to come to it, and from where. */
  readonly made: ReadonlyMap<string, { readonly before: string; readonly entry: Entry }>;
  /** What each peer was given, in order. */
  readonly given: ReadonlyMap<string, readonly { readonly sequence: number; readonly text: string }[]>;
  /** Up to which of its messages each was told that they are in the log. */
  readonly acknowledged: ReadonlyMap<string, number>;
  readonly answers: ReadonlyMap<string, string>;
  /** The last digest that the session told. */
  readonly last: string;
}

export interface Violation {
  readonly checker: "contradicted" | "lost" | "doubled" | "liveness" | "fault";
  readonly message: string;
}

export function check(history: History): Violation[] {
  const found: Violation[] = [];
  const entries: Entry[] = [];
  for (let at = history.last; at !== "0";) {
    const step = history.made.get(at);
    if (step === undefined || digestOf(step.before + JSON.stringify(step.entry)) !== at) {
      return [{ checker: "fault", message: `nobody made ${at}` }];
    }
    entries.unshift(step.entry);
    at = step.before;
  }
  const told = new Map<string, string[]>(),
    answers = new Map<string, string>(),
    messages = new Map<string, number>();
  let digest = "0";
  for (const [at, entry] of entries.entries()) {
    digest = digestOf(digest + JSON.stringify(entry));
    const text = `${at + 1} ${digest}`;
    if (entry.kind === "attach" && !told.has(entry.from)) told.set(entry.from, []);
    if (entry.kind === "request") answers.set(entry.from, text);
    if (entry.kind === "message") {
      const before = messages.get(entry.from) ?? 0;
      if (entry.sequence <= before) {
        found.push({
          checker: "doubled",
          message: `message ${entry.sequence} of ${entry.from} is there twice`,
        });
      } else if (entry.sequence > before + 1) {
        found.push({ checker: "lost", message: `message ${before + 1} of ${entry.from} was left out` });
      }
      messages.set(entry.from, entry.sequence);
    }
    for (const [peer, texts] of told) {
      if ((at + 1) % TOLD_EVERY === 0 || (entry.kind === "message" && entry.from === peer)) texts.push(text);
    }
  }
  for (const [peer, given] of history.given) {
    for (const { sequence, text } of given) {
      const wanted = told.get(peer)?.[sequence - 1];
      if (wanted === text) continue;
      found.push({
        checker: "contradicted",
        message: `${peer} was told ${text} as ${sequence}, and it is ${wanted}`,
      });
      break;
    }
  }
  for (const [request, text] of history.answers) {
    const wanted = answers.get(request);
    if (wanted !== text) {
      found.push({
        checker: "contradicted",
        message: `${request} was answered ${text}, and it is ${wanted}`,
      });
    }
  }
  for (const [peer, count] of history.acknowledged) {
    if ((messages.get(peer) ?? 0) < count) {
      found.push({
        checker: "lost",
        message: `${peer} was told that ${count} are in the log: ${messages.get(peer)}`,
      });
    }
  }
  return found;
}
