/**
 * What a run must have been: one uninterrupted run of the entries that the session has in the end.
 *
 * Shares no code with the session but the digest: it goes back from the last entry over what any home ever wrote, and
 * works out by itself what every peer and every request must have been told, and what must be written down.
 */
import type { Excused } from "../../sim/excuses.ts";
import { digestAfter, type Entry, TOLD_EVERY, WRITTEN_EVERY } from "./program.ts";
import type { Unsure } from "./unsure.ts";

/** What is known of a run from outside (ledger.ts). */
export interface Known {
  isReleased(digest: string): boolean;
  statesAfter(peer: string, message: number): readonly string[];
  isBlamed(peer: string, message: number): boolean;
}

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
  /** The same where a host that holds back the end was believed: what anybody was told, too. */
  readonly deceptions: ReadonlySet<number>;
  readonly unsure: Unsure;
  /** What was released, and which states a message led to. */
  readonly ledger: Known;
  /** Requests that were told that their answers are not kept any more: they were run. */
  readonly past: ReadonlySet<string>;
  /** By number. */
  readonly written: ReadonlyMap<number, ReadonlySet<string>>;
  /** The last digest that the session told. */
  readonly last: string;
}

export interface Violation {
  readonly checker: "contradicted" | "lost" | "doubled" | "liveness" | "fault";
  readonly message: string;
}

/**
 * All that is wrong.
 *
 * @param excused hears each time that something is let pass (excuses.ts).
 */
export function check(history: History, excused: Excused): Violation[] {
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
  /** The last entry that what led to a state has in common with the session as it is. */
  const forkOf = (state: string) => {
    for (let at: string | undefined = state; at !== undefined; at = history.made.get(at)?.before) {
      const number = digests.get(at);
      if (number !== undefined) return number;
    }
    return -1;
  };
  const isDeceived = (state: string) => history.deceptions.has(forkOf(state));
  const isForked = (text: string) => {
    const [, state = ""] = text.split(" "), fork = forkOf(state);
    if (history.deceptions.has(fork)) excused("a host alone was believed, and held back the end");
    else if (history.forks.has(fork)) excused("opened by force, and no disk was asked");
    else return false;
    return true;
  };
  checkMessages(history, messages, { say, excused, isDeceived });
  for (const [peer, given] of history.given) {
    let other: string | null = null;
    for (const { sequence, text } of given) {
      const wanted = told.get(peer)?.[sequence - 1], [, state = ""] = text.split(" ");
      if (wanted === text) {
        if (other !== null) {
          say(
            "contradicted",
            `${peer} is told ${text} after ${other}, and was to begin anew: it ${history.unsure.why(peer)}`,
          );
          break;
        }
        continue;
      }
      const why = history.unsure.why(peer);
      if (isDeceived(state)) excused("a host alone was believed, and held back the end");
      else if (why !== null && !history.ledger.isReleased(state)) {
        excused(`told ahead, and the host ${why}`);
        other = text;
      } else {
        say("contradicted", `${peer} was told ${text} as ${sequence}, and it is ${wanted}`);
        break;
      }
    }
  }
  for (const request of history.past) {
    if (answers.has(request)) excused("an answer that is not kept any more, by a clock that was set");
    else say("lost", `${request} was run, as it was told, and the session does not know it`);
  }
  for (const [request, text] of history.answers) {
    const wanted = answers.get(request);
    if (wanted !== text && !isForked(text)) {
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
      if (written[effect - 1] === text || isForked(text)) continue;
      say("contradicted", `${text} was written down as ${effect}`);
    }
  }
  return found;
}

function checkMessages(
  { acknowledged, rejected, unsure, ledger }: History,
  messages: ReadonlyMap<string, readonly number[]>,
  { say, excused, isDeceived }: {
    readonly say: (checker: Violation["checker"], message: string) => void;
    readonly excused: Excused;
    readonly isDeceived: (state: string) => boolean;
  },
): void {
  for (const [peer, sequences] of messages) {
    for (const [i, sequence] of sequences.entries()) {
      if (sequence === i + 1) {
        if (rejected.get(peer)?.includes(sequence)) {
          say("contradicted", `message ${sequence} of ${peer} was told to be given up`);
        }
        continue;
      }
      if (sequence === 0 && ledger.isBlamed(peer, i + 1)) {
        excused("a message was given up, in whose handler an isolate was lost");
        continue;
      }
      say(
        sequence <= i ? "doubled" : "lost",
        `message ${sequence} of ${peer} stands where ${i + 1} is to be`,
      );
      break;
    }
  }
  for (const [peer, count] of acknowledged) {
    const { length } = messages.get(peer) ?? [];
    if (length >= count) continue;
    const states = ledger.statesAfter(peer, count), why = unsure.why(peer);
    if (states.some(isDeceived)) excused("a host alone was believed, and held back the end");
    else if (why !== null && !states.some((state) => ledger.isReleased(state))) {
      excused(`told ahead, and the host ${why}`);
    } else say("lost", `${peer} was told that ${count} are in the log: ${length}`);
  }
}
