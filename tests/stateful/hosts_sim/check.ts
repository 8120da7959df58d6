/**
 * What a run must have been: one uninterrupted run of the entries that the session has in the end.
 *
 * Shares no code with the session but the digest: it goes back from the last entry over what any home ever wrote, and
 * works out by itself what every peer and every request must have been told, and what must be written down.
 */
import { digestAfter, type Entry, TOLD_EVERY, WRITTEN_EVERY } from "./program.ts";

export interface History {
  /** By digest: what was handled to come to it, and from where. */
  readonly made: ReadonlyMap<string, { readonly before: string; readonly entry: Entry }>;
  /** What each peer was given, in order. */
  readonly given: ReadonlyMap<string, readonly { readonly sequence: number; readonly text: string }[]>;
  /** Up to which of its messages each was told that they are in the log. */
  readonly acknowledged: ReadonlyMap<string, number>;
  /** Messages that each was told to be given up. */
  readonly rejected: ReadonlyMap<string, readonly number[]>;
  readonly answers: ReadonlyMap<string, string>;
  /**
   * Numbers of entries after which an operator had it go on without what more there was: what requests were answered, and what was
   * written.
   */
  readonly forks: ReadonlySet<number>;
  /** By number. */
  readonly written: ReadonlyMap<number, ReadonlySet<string>>;
  /** Isolates were lost in handlers: messages that no client heard of may have been given up. */
  readonly mayReject: boolean;
  /** The last digest that the session told. */
  readonly last: string;
}

export interface Violation {
  readonly checker: "contradicted" | "lost" | "doubled" | "liveness" | "fault";
  readonly message: string;
}

export function check(history: History): Violation[] {
  const found: Violation[] = [];
  const say = (checker: Violation["checker"], message: string) => void found.push({ checker, message });
  const entries: Entry[] = [];
  for (let at = history.last; at !== "0";) {
    const step = history.made.get(at);
    if (step === undefined || digestAfter(step.before, step.entry) !== at) {
      return [{ checker: "fault", message: `nobody made ${at}` }];
    }
    entries.unshift(step.entry);
    at = step.before;
  }
  const told = new Map<string, string[]>(), attached = new Set<string>();
  const answers = new Map<string, string>(), written: string[] = [];
  const digests = new Map<string, number>([["0", 0]]);
  /** By peer: its messages, in the order of the log; 0: one that was given up. */
  const messages = new Map<string, number[]>();
  let digest = "0";
  for (const [at, entry] of entries.entries()) {
    const { kind, from, sequence } = entry;
    digest = digestAfter(digest, entry);
    digests.set(digest, at + 1);
    const text = `${at + 1} ${digest}`;
    if (kind === "attach") {
      if (told.has(from)) say("doubled", `${from} is attached twice`);
      told.set(from, []);
      messages.set(from, []);
      attached.add(from);
    }
    if (kind === "detach") attached.delete(from);
    if (kind === "request") {
      if (answers.has(from)) say("doubled", `request ${from} is there twice`);
      answers.set(from, text);
    }
    if (kind === "message" || kind === "rejected") messages.get(from)?.push(sequence);
    const isWritten = (at + 1) % WRITTEN_EVERY === 0 && (kind === "message" || kind === "request");
    if (isWritten) written.push(text);
    if (kind === "rejected") continue;
    for (const peer of attached) {
      if ((at + 1) % TOLD_EVERY === 0 || (kind === "message" && from === peer)) told.get(peer)?.push(text);
    }
  }
  checkMessages(history, messages, say);
  for (const [peer, given] of history.given) {
    for (const { sequence, text } of given) {
      const wanted = told.get(peer)?.[sequence - 1];
      if (wanted === text) continue;
      say("contradicted", `${peer} was told ${text} as ${sequence}, and it is ${wanted}`);
      break;
    }
  }
  for (const [request, text] of history.answers) {
    const wanted = answers.get(request);
    if (wanted !== text && !history.forks.has(forkOf(text, history.made, digests))) {
      say("contradicted", `${request} was answered ${text}, and it is ${wanted}`);
    }
  }
  for (const [i, text] of written.entries()) {
    if (history.written.get(i + 1)?.has(text) !== true) {
      say("lost", `${text} was not written down as ${i + 1}`);
    }
  }
  for (const [effect, texts] of history.written) {
    for (const text of texts) {
      if (written[effect - 1] === text || history.forks.has(forkOf(text, history.made, digests))) continue;
      say("contradicted", `${text} was written down as ${effect}`);
    }
  }
  return found;
}

function checkMessages(
  { acknowledged, rejected, mayReject }: History,
  messages: ReadonlyMap<string, readonly number[]>,
  say: (checker: Violation["checker"], message: string) => void,
): void {
  for (const [peer, sequences] of messages) {
    for (const [i, sequence] of sequences.entries()) {
      if (sequence === i + 1) {
        if (rejected.get(peer)?.includes(sequence)) {
          say("contradicted", `message ${sequence} of ${peer} was told to be given up`);
        }
        continue;
      }
      if (sequence === 0 && mayReject) continue;
      say(
        sequence <= i ? "doubled" : "lost",
        `message ${sequence} of ${peer} stands where ${i + 1} is to be`,
      );
      break;
    }
  }
  for (const [peer, count] of acknowledged) {
    const { length } = messages.get(peer) ?? [];
    if (length < count) say("lost", `${peer} was told that ${count} are in the log: ${length}`);
  }
}

/** The last entry that what made an answer has in common with the session as it is. */
function forkOf(text: string, made: History["made"], digests: ReadonlyMap<string, number>): number {
  for (let at = text.split(" ")[1]; at !== undefined; at = made.get(at)?.before) {
    const number = digests.get(at);
    if (number !== undefined) return number;
  }
  return -1;
}
