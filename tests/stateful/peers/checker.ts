/**
 * What must hold of a run, told from what devices sent and heard and what the owners have: nothing here knows how
 * either side works.
 *
 * OP1  What a device heard is what one uninterrupted run of the log would have sent it: a first part of it, in order,
 *      each once.
 * OP2  It heard nothing before the owners had what it came of.
 * OP3  A peer's messages are in the log in the order in which they were sent, each once, and none is left out.
 * OP4  A message that was acknowledged was in the log by then.
 * OP5  A device is told of a rejection only where its message was rejected.
 * OP6  A peer ends for a reason: it closed, was sent away, was taken over, did not keep up, or stayed away longer than
 *      its grace.
 * OP7  In peace everybody who has not ended is attached, and has heard all; all that was sent is in the log and
 *      acknowledged; nobody else is attached.
 */
import type { Ledger } from "./room.ts";
import type { SimHost } from "./sim_host.ts";

/** What the checker gets. */
export interface Seen {
  readonly ledger: Ledger;
  readonly hosts: readonly SimHost[];
  readonly logged: number;
  readonly graceMs: number;
  readonly outboxBytesMax: number;
}

/** What is wrong; empty where nothing is. */
export function check(seen: Seen): string[] {
  const wrong: string[] = [];
  const byPeer = Map.groupBy(seen.hosts, ({ side }) => side.identity?.id ?? "");
  for (const [peer, hosts] of byPeer) {
    if (peer === "") {
      for (const host of hosts) checkNameless(host, wrong);
      continue;
    }
    for (const host of hosts) {
      checkOutputs(seen, host, peer, wrong);
      const isContested = hosts.some((each) => each.isContested);
      if (!isContested) checkAcknowledged(seen, host, peer, wrong);
      checkEnd(seen, host, peer, isContested, wrong);
    }
    checkMessages(seen, hosts, peer, wrong);
    checkPeace(seen, hosts, peer, wrong);
  }
  for (const peer of seen.ledger.attached.keys()) {
    if (!byPeer.has(peer)) wrong.push(`OP7: ${peer} is attached, and nobody knows`);
  }
  return wrong;
}

function checkOutputs({ ledger }: Seen, host: SimHost, peer: string, wrong: string[]): void {
  const expected = ledger.outputs.get(peer) ?? [];
  for (const [i, { content, sequence, logged }] of host.heard.entries()) {
    const wanted = expected[host.firstHeard - 1 + i];
    if (sequence !== host.firstHeard + i) {
      wrong.push(`OP1: ${host.name} heard ${sequence} as number ${host.firstHeard + i}`);
    }
    if (wanted === undefined || wanted.content !== content) {
      wrong.push(
        `OP1: ${host.name} heard ${content.slice(0, 60)} as ${sequence}, and not ${
          wanted?.content.slice(0, 60)
        }`,
      );
      return;
    }
    if (wanted.at > logged) {
      wrong.push(`OP2: ${host.name} heard ${sequence} when the log had ${logged}, not ${wanted.at}`);
    }
  }
}

function checkMessages({ ledger }: Seen, hosts: readonly SimHost[], peer: string, wrong: string[]): void {
  const logged = ledger.messages.get(peer) ?? [];
  for (const [i, { text }] of logged.entries()) {
    const said = hosts.map(({ sent }) => sent[i]).filter((each) => each !== undefined);
    if (said.length === 0) {
      wrong.push(`OP3: ${peer} never sent a message ${i + 1}, and ${text} is in the log`);
    } else if (text !== null && !said.includes(text)) {
      wrong.push(`OP3: message ${i + 1} of ${peer} is ${said.join(" or ")}, and ${text} in the log`);
    }
  }
}

function checkAcknowledged({ ledger }: Seen, host: SimHost, peer: string, wrong: string[]): void {
  const messages = ledger.messages.get(peer) ?? [];
  for (const { count, logged } of host.acknowledged) {
    const last = messages[count - 1];
    if (last === undefined || last.at > logged) {
      wrong.push(`OP4: ${host.name} was told that ${count} messages are in the log, and they were not`);
      break;
    }
  }
  for (const sequence of host.rejected) {
    const message = messages[sequence - 1];
    if (message?.text !== null) {
      wrong.push(`OP5: message ${sequence} of ${host.name} was rejected: ${message?.text}`);
    }
  }
}

function checkEnd(seen: Seen, host: SimHost, peer: string, isContested: boolean, wrong: string[]): void {
  const { end } = host;
  if (end === null) return;
  const isKicked = seen.ledger.outputs.get(peer)?.at(-1)?.content.startsWith("kicked") === true;
  if (end.kind === "bye") {
    if (end.isRemote && !isKicked) wrong.push(`OP6: ${host.name} was sent away by nobody`);
    if (!end.isRemote && !host.isClosing) wrong.push(`OP6: ${host.name} left, and never wanted to`);
    return;
  }
  if (isContested && ["superseded", "peer_behind", "peer_ahead", "peer_unknown"].includes(end.code)) return;
  const detached = seen.ledger.detached.get(peer);
  const isOver = end.code === "peer_unknown" && detached !== undefined;
  if (isOver || end.code === "limit_slow") {
    const isLate = isOver && detached.atMs - host.openUntilMs >= seen.graceMs * 0.8;
    const isReason = isOver && (isLate || isKicked || host.isClosing);
    if (isReason || outstanding(seen.ledger, host, peer) > seen.outboxBytesMax) return;
  }
  wrong.push(`OP6: ${host.name} was ended: ${end.code}: ${end.message}`);
}

/** So long it may take until a home knows what a peer has heard. */
const KNOWN_MS = 1_500;

/** Bytes that a peer had not heard a while before it was ended. */
function outstanding(ledger: Ledger, host: SimHost, peer: string): number {
  const heard = host.firstHeard - 1 +
    host.heard.filter(({ atMs }) => atMs < host.endedMs - KNOWN_MS).length;
  return (ledger.outputs.get(peer) ?? []).slice(heard).reduce((sum, { content }) => sum + content.length, 0);
}

/** A device that was never welcomed has nothing to show, and goes on trying. */
function checkNameless(host: SimHost, wrong: string[]): void {
  if (host.end === null && !host.isClosing && !host.isDead) {
    wrong.push(`OP7: ${host.name} was never welcomed`);
  }
  if (host.end?.kind === "refused") wrong.push(`OP6: ${host.name} was refused: ${host.end.code}`);
  if (host.heard.length > 0) wrong.push(`OP1: ${host.name} heard something, and has no name`);
}

function checkPeace(seen: Seen, hosts: readonly SimHost[], peer: string, wrong: string[]): void {
  const { ledger } = seen;
  const living = hosts.filter(({ end, isDead }) => end === null && !isDead);
  const isAttached = ledger.attached.has(peer);
  if (living.length > 1) wrong.push(`OP7: ${peer} is spoken for by ${living.length} devices`);
  if (living.length === 0 && isAttached) wrong.push(`OP7: ${peer} is attached, and nobody speaks for it`);
  const [host] = living;
  if (host === undefined) {
    // Who closed in order has sent all.
    for (const each of hosts) {
      const isWhole = each.end?.kind === "bye" && !each.end.isRemote;
      if (isWhole && !each.isContested && (ledger.messages.get(peer)?.length ?? 0) !== each.sent.length) {
        wrong.push(
          `OP3: ${each.name} closed, and not all of its ${each.sent.length} messages are in the log`,
        );
      }
    }
    return;
  }
  if (!isAttached) wrong.push(`OP7: ${host.name} is not attached`);
  if (host.isClosing) wrong.push(`OP7: ${host.name} has closed, and hears nothing of it`);
  if (host.side.stage !== "open") wrong.push(`OP7: ${host.name} has no channel: ${host.side.stage}`);
  const [heard, wanted] = [host.heard.length + host.firstHeard - 1, ledger.outputs.get(peer)?.length ?? 0];
  if (heard !== wanted) wrong.push(`OP7: ${host.name} has heard ${heard} of ${wanted}`);
  const logged = ledger.messages.get(peer)?.length ?? 0;
  if (logged !== host.sent.length) {
    wrong.push(`OP7: ${logged} of ${host.sent.length} messages of ${host.name} are in the log`);
  }
  if (host.side.acknowledged !== host.sent.length) {
    wrong.push(
      `OP7: ${host.side.acknowledged} of ${host.sent.length} messages of ${host.name} are acknowledged`,
    );
  }
}
