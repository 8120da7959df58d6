/**
 * What must hold of a run: told from what everybody outside saw, and from the logs that survived it. Nothing here knows
 * how any of it works.
 *
 * WC1  What a receiver heard is what one uninterrupted run of the surviving log sends it: a first part of it, in order,
 *      each once. So nothing that was heard is contradicted by what came later.
 * WC2  A sender's messages are in the log in the order in which they were sent, each once, with none left out between.
 * WC3  What was acknowledged is in the log.
 * WC4  A rejection is told of what was rejected.
 * WC5  A request was run once, and all who asked heard the same answer: that of the log.
 * WC6  What was written was written under one version, and is what the log says; the root has the last of it in the end.
 *      A write with a check is done once for each time that a handler asked for it, and finds the one before it.
 * WC7  The server outside did once what a handler asked for once, whoever asked again.
 * WC9  What a session asked another for was run there once for each time that a handler asked, and it was told what that
 *      one answered, or that it was not run; never that it was, and nothing more. Where who was asked is out of reach
 *      for longer than is waited for, it is told that.
 * WC8  In the end everybody is attached who wants to be, and has heard all; all that was sent is in the log; every timer
 *      that was set was called, or given up.
 */
import type { Ledger } from "./ledger.ts";
import type { Done } from "./outside.ts";

/** A row of a session's own, as somebody wrote it: seen on the disk of a site. */
export interface Written {
  readonly value: string;
  readonly version: string;
}

/** One outside, towards one session. */
export interface Party {
  readonly name: string;
  readonly kind: "device" | "plain" | "origin";
  /** null: it was never welcome. */
  readonly peer: string | null;
  readonly sent: readonly string[];
  readonly heard: readonly string[];
  readonly acknowledged: number;
  readonly rejected: readonly number[];
  /** How it ended, where it did. */
  readonly end: { readonly isRefused: boolean; readonly code: string; readonly isRemote: boolean } | null;
  readonly isClosing: boolean;
  /** In the end it was there, with a way to its session, and knew of no reason to go. */
  readonly isLive: boolean;
}

/** One session, and all who had to do with it. */
export interface SessionSeen {
  readonly key: string;
  readonly ledger: Ledger;
  readonly parties: readonly Party[];
  /** What who asked was told. */
  readonly answered: ReadonlyMap<string, readonly string[]>;
  /** Seen on disks: by `put`, and by `swap`. */
  readonly put: readonly Written[];
  readonly swapped: readonly Written[];
  /** What the root shows in the end of the rows of `put` (three of them), and of `swap`; null: it has not come so far. */
  readonly atRoot: { readonly put: readonly (string | null)[]; readonly swap: string | null } | null;
  readonly done: readonly Done[];
  /** More time passed at once than those attached are waited for. */
  readonly isNapped: boolean;
}

/** Lets something pass that the documents say. */
export type Excused = (what: string) => void;

export interface Violation {
  readonly checker: string;
  readonly message: string;
}

type Say = (checker: string, message: string) => void;

/** What says nothing of whether it was run. */
const OUT_OF_REACH: ReadonlySet<string> = new Set(["failed: stateful_unreachable", "failed: wall_time"]);

/** What sessions asked each other for (WC9). */
export function checkCalls(ledgers: readonly Ledger[], excused: Excused): Violation[] {
  const found: Violation[] = [];
  const say = (message: string) => found.push({ checker: "WC9", message });
  const made = new Map<string, string[]>();
  for (const answer of ledgers.flatMap(({ answers }) => [...answers.values()].flat())) {
    const asked = /:(x\d+!c\S+) all$/.exec(answer)?.[1];
    if (asked !== undefined) made.set(asked, [...made.get(asked) ?? [], answer]);
  }
  for (const ledger of ledgers) {
    for (const { asked, told, what } of ledger.called) {
      const answers = made.get(asked) ?? [];
      const wasRun = !told.startsWith("failed: ");
      if (wasRun && !answers.includes(`value ${told}`)) say(`${asked} was told ${short(told)}`);
      const undone = ledger.undone.get(what) ?? 0;
      if (told.endsWith("superseded") || (!wasRun && answers.length > undone)) {
        if (OUT_OF_REACH.has(told)) excused("called, and out of reach since");
        else say(`${asked} was run, and who asked was told ${short(told)}`);
      }
      if (answers.length > 1 + undone) {
        say(`${asked} was run ${answers.length} times`);
      }
    }
  }
  return found;
}

/** All that is wrong of a session. */
export function check(seen: SessionSeen, excused: Excused): Violation[] {
  const found: Violation[] = [];
  const say: Say = (checker, message) => {
    if (found.length < 20) found.push({ checker, message: `${seen.key}: ${message}` });
  };
  for (const party of seen.parties) {
    if (party.peer === null) checkNameless(party, say);
    else {
      checkHeard(seen.ledger, party, party.peer, say);
      checkSent(seen.ledger, party, party.peer, say);
      checkEnd(seen, party, party.peer, say, excused);
      if (party.isLive) checkLive(seen.ledger, party, party.peer, say);
    }
  }
  for (const name of seen.ledger.due) say("WC8", `the timer ${name} was never called`);
  checkRequests(seen, say);
  checkRows(seen, say);
  checkOutside(seen, say);
  return found;
}

const short = (text: string | null | undefined): string => JSON.stringify(text?.slice(0, 70) ?? null);

function checkNameless(party: Party, say: Say): void {
  if (party.heard.length > 0) say("WC1", `${party.name} heard something, and has no name`);
  if (party.isLive && !party.isClosing) say("WC8", `${party.name} was never welcome`);
  // An isolate that is lost in its onOpen counts as one that threw: then it is not attached.
  if (party.end?.isRefused && party.end.code !== "isolate_killed") {
    say("WC8", `${party.name} was refused: ${party.end.code}`);
  }
}

/** WC1 */
function checkHeard(ledger: Ledger, party: Party, peer: string, say: Say): void {
  const wanted = ledger.outputs.get(peer);
  if (wanted === undefined) return say("WC1", `${party.name} is ${peer}, of whom the log has nothing`);
  for (const [i, what] of party.heard.entries()) {
    if (wanted[i] === what) continue;
    return say("WC1", `${party.name} heard ${short(what)} as ${i + 1}, and not ${short(wanted[i])}`);
  }
}

/** WC2, WC3, WC4 */
function checkSent(ledger: Ledger, party: Party, peer: string, say: Say): void {
  const logged = ledger.messages.get(peer) ?? [];
  if (logged.length > party.sent.length) {
    say("WC2", `the log has ${logged.length} messages of ${party.name}, who sent ${party.sent.length}`);
  }
  for (const [i, what] of logged.entries()) {
    if (what === null || what === party.sent[i]) continue;
    say("WC2", `message ${i + 1} of ${party.name} is ${short(party.sent[i])}, in the log ${short(what)}`);
    break;
  }
  if (party.acknowledged > logged.length) {
    say("WC3", `${party.name} was told of ${party.acknowledged} messages, and the log has ${logged.length}`);
  }
  for (const sequence of party.rejected) {
    const what = logged[sequence - 1];
    if (what !== null) say("WC4", `message ${sequence} of ${party.name} was rejected: ${short(what)}`);
  }
}

/** WC8: nobody is sent away for nothing. */
function checkEnd(
  { ledger, isNapped }: SessionSeen,
  { name, end, isClosing }: Party,
  peer: string,
  say: Say,
  excused: Excused,
): void {
  if (end === null) return;
  const isKicked = ledger.outputs.get(peer)?.at(-1)?.startsWith("kicked ") === true;
  if (end.isRefused) {
    // Who leaves over a channel that breaks is not told that it has left.
    const isUnknown = end.code === "peer_unknown", isDetached = ledger.detached.has(peer);
    if (isUnknown && (isClosing || (isKicked && isDetached))) return;
    if (isUnknown && isNapped && isDetached) return excused("away for more than a minute");
    say("WC8", `${name} was ended: ${end.code}`);
  } else if (end.isRemote ? !isKicked : !isClosing) say("WC8", `${name} has gone for no reason`);
}

/** WC8 */
function checkLive(ledger: Ledger, party: Party, peer: string, say: Say): void {
  const { name, kind } = party;
  if (!ledger.attached.has(peer)) return say("WC8", `${name} is not attached`);
  const wanted = ledger.outputs.get(peer)?.length ?? 0;
  if (party.heard.length !== wanted) say("WC8", `${name} heard ${party.heard.length} of ${wanted}`);
  const logged = ledger.messages.get(peer)?.length ?? 0;
  if (logged !== party.sent.length) {
    say("WC8", `${logged} of ${party.sent.length} messages of ${name} are in the log`);
  }
  if (kind === "device" && party.acknowledged !== party.sent.length) {
    say("WC8", `${party.acknowledged} of ${party.sent.length} messages of ${name} are acknowledged`);
  }
}

/** WC5 */
function checkRequests({ ledger, answered }: SessionSeen, say: Say): void {
  for (const [request, told] of answered) {
    const made = ledger.answers.get(request) ?? [];
    if (made.length === 0) say("WC5", `${request} was answered, and the log does not know it`);
    for (const what of told) {
      if (made.length > 0 && !made.includes(what)) {
        say("WC5", `${request} was told ${short(what)}, and not ${short(made[0])}`);
      }
    }
  }
  for (const [request, made] of ledger.answers) {
    if (made.length > 1) say("WC5", `${request} was run ${made.length} times`);
  }
}

/** WC6 */
function checkRows({ ledger, put, swapped, atRoot }: SessionSeen, say: Say): void {
  const wanted = new Set(ledger.written.map(({ value }) => value));
  for (const [value, { size }] of versionsOf(put)) {
    if (size > 1) say("WC6", `${short(value)} was written under ${size} versions`);
    if (!wanted.has(value)) say("WC6", `${short(value)} was written, and the log does not say so`);
  }
  const asked = new Set(ledger.swapped.map(({ value }) => value));
  for (const [value, { size }] of versionsOf(swapped)) {
    if (size > 1 + undone(ledger, value)) say("WC6", `${short(value)} was swapped ${size} times`);
    if (!asked.has(value) && undone(ledger, value) === 0) {
      say("WC6", `${short(value)} was swapped, and the log does not say so`);
    }
  }
  // It reads what it has written.
  let last = "nothing";
  for (const { value, ok, was } of ledger.swapped) {
    const isOfUndone = undone(ledger, was) > 0;
    if (was !== last && !isOfUndone) {
      say("WC6", `${short(value)} found ${short(was)}, and not ${short(last)}`);
    }
    last = ok ? value : was;
  }
  if (atRoot === null) return;
  atRoot.put.forEach((found, row) => {
    const last = ledger.written.findLast((one) => one.row === row)?.value ?? null;
    if (found !== last) say("WC6", `the root has ${short(found)} in row ${row}, and not ${short(last)}`);
  });
  if (last !== (atRoot.swap ?? "nothing") && undone(ledger, atRoot.swap ?? "") === 0) {
    say("WC6", `the root has ${short(atRoot.swap)} swapped, and not ${short(last)}`);
  }
}

function versionsOf(rows: readonly Written[]): Map<string, Set<string>> {
  const versions = new Map<string, Set<string>>();
  for (const { value, version } of rows) {
    versions.set(value, (versions.get(value) ?? new Set()).add(version));
  }
  return versions;
}

/** WC7 */
function checkOutside({ ledger, done }: SessionSeen, say: Say): void {
  const times = new Map<string, number>();
  const answers = new Map(done.map(({ what, answer }) => [answer, what]));
  for (const { what } of done) times.set(what, (times.get(what) ?? 0) + 1);
  for (const { what, answer } of ledger.posted) {
    if (answer !== null && answers.get(answer) !== what) {
      say("WC7", `${short(what)} was told ${answer}, which is of ${short(answers.get(answer))}`);
    }
  }
  for (const [what, count] of times) {
    if (count > 1 + undone(ledger, what)) say("WC7", `${short(what)} was done ${count} times`);
  }
}

/** How often the handler that asked for this was undone. */
const undone = ({ undone: all }: Ledger, link: string): number =>
  all.get(link.replace(/^\d+:\d+:\d+:(post|swap) /, "")) ?? 0;
