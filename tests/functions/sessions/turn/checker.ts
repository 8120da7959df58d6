/**
 * The independent checker: reads what receivers, the store and the server outside got, and nothing of the executor.
 *
 * OC1  Whatever came twice under one number was the same both times.
 * OC2  All outputs are those of one run: two that name the same predecessor are the same, and each goes on from the one
 *      before it.
 * OC3  Every request is answered, an error where its script throws and a value where it does not.
 * OC4  Time stands still in a turn, goes on in a busy wait, and never goes back.
 * OC5  What an answer says was written was written, once and so; what nobody answered for was not posted twice under
 *      two keys. What is read of a row was written to that row.
 * OC6  The outputs are a chain without holes, to each receiver too; each timer that was set goes off, once, unless it
 *      was set anew or taken back, and so does each closure timer and each read that nobody waits for.
 * OC7  A timer whose handler throws goes off later, or is given up, once, as the policy of the run says; attempts end.
 */
import { decodeAnswer } from "../../../../functions/calls/call.ts";
import type { Rejection } from "../../../../functions/sessions/turn/mod.ts";
import { HANDLER_ATTEMPTS_MAX } from "../../../../functions/class/when_thrown.ts";
import { decodeValue } from "../../../../functions/values/value.ts";
import type { Link } from "./robot.ts";
import type { Seen } from "./seen.ts";
import { checkSitters } from "./sitters_checker.ts";

const text = new TextDecoder();

/** What is wrong; empty where nothing is. */
export function check(seen: Seen): string[] {
  const wrong: string[] = [];
  if (seen.parked !== null) wrong.push(`parked: ${seen.parked.code}: ${seen.parked.message}`);
  const first = new Map<string, string>();
  const links: Link[] = [];
  for (const { to, sequence, bytes } of seen.received) {
    const name = `${to} ${sequence}`;
    const content = bytes.toHex();
    const before = first.get(name);
    if (before === undefined) {
      first.set(name, content);
      const link = linkOf(seen, to, bytes, wrong);
      if (link !== null) links.push(link);
    } else if (before !== content) wrong.push(`OC1: ${name} came twice, with different contents`);
  }
  checkChain(links, wrong);
  // What several were told counts once from here on.
  const once = [...new Map(links.map((link) => [link.n, link])).values()].sort((a, b) => a.n - b.n);
  checkTimes(once, wrong);
  for (const [request] of seen.asked) {
    if (!first.has(`${request} 1`)) wrong.push(`OC3: ${request} has no answer`);
  }
  checkEffects(seen, once, wrong);
  checkWhole(seen, once, wrong);
  checkSitters(seen, once, wrong);
  return wrong;
}

function linkOf(seen: Seen, to: string, bytes: Uint8Array, wrong: string[]): Link | null {
  const asked = seen.asked.get(to);
  if (asked === undefined) return JSON.parse(text.decode(bytes.subarray(1))) as Link;
  const answer = decodeAnswer(bytes);
  if (answer.kind === "value") {
    if (asked.throws) wrong.push(`OC3: ${to} throws, and has a value`);
    return decodeValue(answer.value) as Link;
  }
  if (!asked.throws && !seen.killed.has(to)) {
    wrong.push(`OC3: ${to} does not throw, and has ${JSON.stringify(answer)}`);
  }
  return null;
}

function checkChain(links: readonly Link[], wrong: string[]): void {
  const byNumber = new Map<number, Link>();
  for (const link of links) {
    const other = byNumber.get(link.n);
    if (other !== undefined && other.after !== link.after) wrong.push(`OC2: two different outputs ${link.n}`);
    byNumber.set(link.n, link);
  }
  for (const link of byNumber.values()) {
    const before = byNumber.get(link.n - 1);
    if (before !== undefined && before.after !== link.before) {
      wrong.push(`OC2: output ${link.n} does not go on from ${before.n}`);
    }
    for (const [op, count, shared] of link.trace) {
      if (op === "state" && count !== link.n + 1) {
        wrong.push(`OC2: output ${link.n} counts ${count} and ${shared}`);
      }
    }
  }
}

function checkTimes(links: readonly Link[], wrong: string[]): void {
  let lastMs = 0;
  for (const link of [...links].sort((a, b) => a.n - b.n)) {
    for (const [op, first, second] of link.trace) {
      if (op === "clock" && first !== second) {
        wrong.push(`OC4: time moved in a turn, from ${first} to ${second}`);
      }
      if (op !== "clock" && op !== "busy" && op !== "slept") continue;
      if (Number(first) < lastMs) wrong.push(`OC4: time went back to ${first} from ${lastMs}`);
      lastMs = Number(second ?? first);
    }
  }
}

function checkEffects(seen: Seen, links: readonly Link[], wrong: string[]): void {
  const byEffect = new Map<number, string>();
  for (const { effect, content } of seen.applied) {
    const before = byEffect.get(effect);
    if (before !== undefined && before !== content) wrong.push(`OC5: effect ${effect} wrote different rows`);
    byEffect.set(effect, content);
  }
  const values = new Set(seen.applied.flatMap(({ values }) => values));
  const claimed = new Set<string>();
  for (const link of links) {
    const last = new Map<number, string>();
    for (const [op, key, value, , read] of link.trace) {
      if (op === "stray") checkRead(link, `${key}:${value}`, wrong);
      if (op === "race" && key !== "") {
        for (const read of String(key).split(",")) checkRead(link, read, wrong);
      }
      if (op !== "put") continue;
      last.set(Number(key), String(value));
      if (read !== value) wrong.push(`OC5: output ${link.n} wrote ${value} and read ${read}`);
    }
    for (const value of last.values()) claimed.add(value);
  }
  for (const value of claimed) {
    if (!values.has(value)) wrong.push(`OC5: ${value} was said to be written, and was not`);
  }
  const urls = new Map<string, string>();
  // Those of timers that throw are counted by nobody.
  for (const { key, url } of seen.posted.filter(({ url }) => !url.endsWith("/9"))) {
    const before = urls.get(key);
    if (before !== undefined && before !== url) {
      wrong.push(`OC5: ${key} was posted to ${before} and to ${url}`);
    }
    urls.set(key, url);
  }
  const posts = links.flatMap(({ trace }) => trace.filter(([op]) => op === "post")).length;
  const failed = failedOf(seen);
  const throwing = [...seen.asked].flatMap(([request, { script }]) => failed.has(request) ? script : [])
    .filter(({ op }) => op === "post").length;
  if (urls.size < posts || urls.size > posts + throwing) {
    wrong.push(
      `OC5: ${posts} posts were answered for, ${urls.size} were made (and ${throwing} in handlers that throw)`,
    );
  }
}

/** Requests that were answered with an error. */
const failedOf = ({ received, asked }: Seen): Set<string> =>
  new Set(
    received.filter(({ to, bytes }) => asked.has(to) && decodeAnswer(bytes).kind === "error").map(({ to }) =>
      to
    ),
  );

/** A read says of which row it is, as its value does. */
function checkRead(link: Link, read: string, wrong: string[]): void {
  const [key, value = ""] = read.split(":");
  if (value !== "-" && !value.startsWith(`${key}=`)) {
    wrong.push(`OC5: output ${link.n} read ${value} of row ${key}`);
  }
}

/** OC6 */
function checkWhole(seen: Seen, chain: readonly Link[], wrong: string[]): void {
  const hole = chain.findIndex((link, i) => link.n !== i);
  if (hole >= 0) wrong.push(`OC6: output ${hole} never came`);
  const sequences = new Set(seen.received.filter(({ to }) => to === "p").map(({ sequence }) => sequence));
  for (let i = 1; i <= sequences.size; i++) if (!sequences.has(i)) wrong.push(`OC6: message ${i} never came`);
  const timers = new Map<string, number>();
  let later = 0;
  const given = checkRejections(seen, chain, wrong);
  for (const { trace } of chain) {
    for (const [op, name, dueMs] of trace) {
      if (op === "set") timers.set(String(name), Number(dueMs));
      if (op === "unset") timers.delete(String(name));
      if (op === "timer" && !timers.delete(String(name))) {
        wrong.push(`OC6: timer ${name} went off and was not set`);
      }
      if (op === "later" || op === "stray") later++;
    }
  }
  for (const [name, dueMs] of timers) {
    if (dueMs < seen.endMs && !given.has(name)) wrong.push(`OC6: timer ${name} never went off`);
  }
  const failed = failedOf(seen);
  const expected = [...seen.asked].filter(([request]) => !failed.has(request))
    .flatMap(([, { script }]) => script.filter(({ op }) => op === "later" || op === "stray")).length;
  if (later !== expected) wrong.push(`OC6: ${later} closure timers and strays came, ${expected} were begun`);
}

/** OC7. The timers that were given up. */
function checkRejections(
  { rejections, whenThrown }: Seen,
  chain: readonly Link[],
  wrong: string[],
): ReadonlySet<string> {
  const given = new Map<string, number>();
  let before: Rejection | null = null;
  for (const rejection of rejections) {
    const { subject, attempt, code } = rejection;
    if (subject?.kind === "timer") {
      if (attempt === 0) given.set(subject.id, (given.get(subject.id) ?? 0) + 1);
      const isFinal = attempt === 0;
      if (isFinal !== (whenThrown === "reject")) {
        wrong.push(
          `OC7: timer ${subject.id} is ${isFinal ? "" : "not "}given up, and the policy is ${whenThrown}`,
        );
      }
      const isNext = before?.subject?.id === subject.id && attempt === before.attempt + 1;
      if (attempt > 1 && !isNext) {
        wrong.push(`OC7: attempt ${attempt} of timer ${subject.id} follows no other`);
      }
      if (attempt > HANDLER_ATTEMPTS_MAX) wrong.push(`OC7: timer ${subject.id} is tried ${attempt} times`);
      if (!subject.id.startsWith("x") && code !== "isolate_killed") {
        wrong.push(`OC7: timer ${subject.id} threw`);
      }
    }
    before = rejection;
  }
  for (const [name, times] of given) {
    const acts = (op: string) =>
      chain.flatMap(({ trace }) => trace.filter(([each, of]) => each === op && of === name)).length;
    if (acts("timer") + times > acts("set")) {
      wrong.push(`OC7: timer ${name} went off, or was given up, twice`);
    }
  }
  return new Set(given.keys());
}
