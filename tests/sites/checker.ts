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
 *      A write with a check is done once for each time that a handler asked for it, and finds the one before it. One that
 *      no log tells of, and that is gone with all disks that ever had it, is done again.
 * WC7  The server outside did once what a handler asked for once, whoever asked again.
 * WC10 A message to a queue is one of the log's, under one id wherever it is stored: none of a handler that was undone.
 * WC9  What a session asked another for was run there once for each time that a handler asked, and it was told what that
 *      one answered, or that it was not run; never that it was, and nothing more. Where who was asked is out of reach
 *      for longer than is waited for, it is told that.
 *
 * What is asked of a name after its session has ended is asked of another one, which has nothing of the one before: each is
 * judged by itself. A request whose answer nobody heard may be run by the next one, too.
 *
 * WC8  In the end everybody is attached who wants to be, and has heard all; all that was sent is in the log; every timer
 *      that was set was called, or given up; every message of the log to a queue is stored somewhere.
 */
import type { Ledger } from "./ledger.ts";
import type { Mailed } from "./mailbox.ts";
import type { Done } from "./outside.ts";

/** A row of a session's own, as somebody wrote it: seen on the disk of a site. */
export interface Written {
  readonly value: string;
  readonly version: string;
  /** Each disk that ever had it was lost, and none had the same under another version before. */
  readonly isGone: boolean;
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
  /** More time passed at once than those attached are waited for, since it last got a way to its session. */
  readonly isNapped: boolean;
  /** In the end it was there, with a way to its session, and knew of no reason to go. */
  readonly isLive: boolean;
}

/** One session, and all who had to do with it. */
export interface SessionSeen {
  readonly key: string;
  /** Of each session that had the name, one after the other; all but the last have ended. */
  readonly lives: readonly Ledger[];
  readonly parties: readonly Party[];
  /** What who asked was told. */
  readonly answered: ReadonlyMap<string, readonly string[]>;
  /** Seen on disks: by `put`, and by `swap`. */
  readonly put: readonly Written[];
  readonly swapped: readonly Written[];
  /** What the root shows in the end of the rows of `put` (three of them), and of `swap`; null: it has not come so far. */
  readonly atRoot: { readonly put: readonly (string | null)[]; readonly swap: string | null } | null;
  readonly done: readonly Done[];
  /** Messages to queues, as sites have stored them. */
  readonly mailed: readonly Mailed[];
}

/** Lets something pass that the documents say. */
export type Excused = (what: string) => void;

export interface Violation {
  readonly checker: string;
  readonly message: string;
}

type Say = (checker: string, message: string) => void;

/** What says nothing of whether it was run. */
const OUT_OF_REACH: ReadonlySet<string> = new Set([
  "failed: stateful_unreachable",
  "failed: wall_time",
  "failed: stateful_parked",
]);

/** What sessions asked each other for (WC9): all of them, also those that have ended. */
export function checkCalls(ledgers: readonly Ledger[], excused: Excused): Violation[] {
  const found: Violation[] = [];
  const say = (message: string) => found.push({ checker: "WC9", message });
  const made = new Map<string, string[]>();
  /** By a session that was asked. */
  const often = new Map<string, number>();
  for (const { answers } of ledgers) {
    const times = new Map<string, number>();
    for (const answer of [...answers.values()].flat()) {
      const asked = /:(x\d+!c\S+) (?:all|end)$/.exec(answer)?.[1];
      if (asked === undefined) continue;
      made.set(asked, [...made.get(asked) ?? [], answer]);
      times.set(asked, (times.get(asked) ?? 0) + 1);
    }
    for (const [asked, count] of times) often.set(asked, Math.max(often.get(asked) ?? 0, count));
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
      const count = often.get(asked) ?? 0;
      if (count > 1 + undone) say(`${asked} was run ${count} times`);
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
  const last = seen.lives.at(-1);
  if (last === undefined) throw new Error("a session has no log, not even a blank one");
  for (const party of seen.parties) {
    const { peer } = party;
    if (peer === null) checkNameless(party, say);
    else {
      const ledger = seen.lives.find(({ outputs }) => outputs.has(peer)) ?? last;
      checkHeard(ledger, party, peer, say);
      checkSent(ledger, party, peer, say);
      checkEnd(ledger, party, peer, say, excused);
      if (party.isLive) checkLive(ledger, party, peer, say);
    }
  }
  for (const name of last.due) say("WC8", `the timer ${name} was never called`);
  checkRequests(seen, say);
  checkRows(seen, say, excused);
  checkOutside(seen, say);
  checkMail(seen, say);
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
  ledger: Ledger,
  { name, end, isClosing, isNapped }: Party,
  peer: string,
  say: Say,
  excused: Excused,
): void {
  if (end === null) return;
  if (ledger.isEnded && ledger.attached.has(peer) && (end.isRemote || end.code === "peer_unknown")) return;
  const isKicked = ledger.outputs.get(peer)?.at(-1)?.startsWith("kicked ") === true;
  if (end.isRefused) {
    // Who leaves over a channel that breaks is not told that it has left.
    const isUnknown = end.code === "peer_unknown", isDetached = ledger.detached.has(peer);
    if (isUnknown && (isClosing || (isKicked && isDetached))) return;
    if (isUnknown && isDetached && isNapped) return excused("away for more than a minute");
    say("WC8", `${name} was ended: ${end.code}`);
  } else if (end.isRemote ? !isKicked : !isClosing) say("WC8", `${name} has gone for no reason`);
}

/** WC8 */
function checkLive(ledger: Ledger, party: Party, peer: string, say: Say): void {
  const { name, kind } = party;
  if (ledger.isEnded) return say("WC8", `${name} was not told that its session has ended`);
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
function checkRequests({ lives, answered }: SessionSeen, say: Say): void {
  for (const [request, told] of answered) {
    const made = lives.flatMap(({ answers }) => answers.get(request) ?? []);
    if (made.length === 0) say("WC5", `${request} was answered, and the log does not know it`);
    for (const what of told) {
      if (made.length > 0 && !made.includes(what)) {
        say("WC5", `${request} was told ${short(what)}, and not ${short(made[0])}`);
      }
    }
  }
  for (const [request, made] of lives.flatMap(({ answers }) => [...answers])) {
    if (made.length > 1) say("WC5", `${request} was run ${made.length} times`);
  }
}

/** WC6 */
function checkRows(
  { lives, put, swapped, atRoot }: SessionSeen,
  say: Say,
  excused: Excused,
): void {
  const wanted = new Set(lives.flatMap(({ written }) => written.map(({ value }) => value)));
  for (const [value, { length }] of versionsOf(put)) {
    if (length > 1) say("WC6", `${short(value)} was written under ${length} versions`);
    if (!wanted.has(value)) say("WC6", `${short(value)} was written, and the log does not say so`);
  }
  const asked = new Set(lives.flatMap(({ swapped }) => swapped.map(({ value }) => value)));
  const told = new Set(lives.flatMap(({ swapped }) => swapped.map(({ version }) => version)));
  for (const [value, versions] of versionsOf(swapped)) {
    const most = 1 + undone(lives, value);
    const gone = versions.filter(({ version, isGone }) => isGone && !told.has(version));
    if (versions.length - gone.length > most) {
      say("WC6", `${short(value)} was swapped ${versions.length} times`);
    } else if (versions.length > most) excused("a write with a check, with its disk");
    if (!asked.has(value) && undone(lives, value) === 0) {
      say("WC6", `${short(value)} was swapped, and the log does not say so`);
    }
  }
  // It reads what it has written; what those before it had written it need not have seen.
  const lasts = lives.map((ledger, life) => {
    let last = life === 0 ? "nothing" : null;
    for (const { value, version, was } of ledger.swapped) {
      const isOfUndone = undone(lives, was) > 0;
      if (last !== null && was !== last && !isOfUndone) {
        say("WC6", `${short(value)} found ${short(was)}, and not ${short(last)}`);
      }
      last = version === null ? was : value;
    }
    return last;
  });
  if (atRoot === null) return;
  atRoot.put.forEach((found, row) => {
    const lasts = lives.flatMap(({ written }) => written.findLast((one) => one.row === row)?.value ?? []);
    if (found === null ? lasts.length > 0 : !lasts.includes(found)) {
      say("WC6", `the root has ${short(found)} in row ${row}, and not ${short(lasts.at(-1))}`);
    }
  });
  if (!lasts.includes(atRoot.swap ?? "nothing") && undone(lives, atRoot.swap ?? "") === 0) {
    say("WC6", `the root has ${short(atRoot.swap)} swapped, and not ${short(lasts.at(-1))}`);
  }
}

const versionsOf = (rows: readonly Written[]): Map<string, Written[]> =>
  Map.groupBy(rows, ({ value }) => value);

/** WC7 */
function checkOutside({ lives, done }: SessionSeen, say: Say): void {
  const times = new Map<string, number>();
  const answers = new Map(done.map(({ what, answer }) => [answer, what]));
  for (const { what } of done) times.set(what, (times.get(what) ?? 0) + 1);
  for (const { what, answer } of lives.flatMap(({ posted }) => posted)) {
    if (answer !== null && answers.get(answer) !== what) {
      say("WC7", `${short(what)} was told ${answer}, which is of ${short(answers.get(answer))}`);
    }
  }
  for (const [what, count] of times) {
    if (count > 1 + undone(lives, what)) say("WC7", `${short(what)} was done ${count} times`);
  }
}

/** WC10, WC8 */
function checkMail({ lives, mailed }: SessionSeen, say: Say): void {
  const wanted = new Set(lives.flatMap(({ mailed }) => mailed));
  const stored = Map.groupBy(mailed, ({ what }) => what);
  for (const [what, mails] of stored) {
    if (!wanted.has(what)) say("WC10", `${short(what)} was sent, and the log does not say so`);
    const ids = new Set(mails.map(({ id }) => id));
    if (ids.size > 1) say("WC10", `${short(what)} was sent under ${ids.size} ids`);
  }
  for (const what of wanted) if (!stored.has(what)) say("WC8", `${short(what)} was never sent`);
}

/** How often the handler that asked for this was undone. */
function undone(lives: readonly Ledger[], link: string): number {
  const what = link.replace(/^\d+:\d+:\d+:(post|swap) /, "");
  return lives.reduce((count, { undone: all }) => count + (all.get(what) ?? 0), 0);
}
