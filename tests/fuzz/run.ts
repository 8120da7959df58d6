/**
 * Runs targets: so many changed inputs each, and what came of them.
 *
 * R1  Each attempt has dice of its own, made of the seed and its number: `--at N` repeats one.
 * R2  An attempt that takes too long is made again, and then its CPU time counts: a machine that is busy with other
 *     things is no finding.
 */
import { cpuUsage } from "node:process";
import { backups } from "./backups.ts";
import { bundles } from "./bundles.ts";
import { keptPeers, siteLists } from "./client.ts";
import { Dice } from "./dice.ts";
import { configurations, manifests, topologies } from "./documents.ts";
import { lyingLogHomes, lyingLogHosts } from "./held_logs.ts";
import { homes } from "./homes.ts";
import { isolateFrames } from "./isolates.ts";
import { frames, handshakes, records } from "./link.ts";
import { keys, messages, packets } from "./rows.ts";
import { checkpoints, logs, stateSegments } from "./stateful.ts";
import { sealedLogs } from "./sealed_logs.ts";
import { lyingHomes, lyingHosts, sessionFrames } from "./peers.ts";
import type { Subject, Target } from "./target.ts";
import { tokens } from "./tokens.ts";

/** All targets. */
export const TARGETS: readonly Target[] = [
  ...[tokens, handshakes, records, frames, messages, packets, keys],
  ...[manifests, bundles, configurations, topologies, backups],
  ...[stateSegments, logs, checkpoints, homes, sealedLogs],
  ...[sessionFrames, lyingHosts, lyingHomes, lyingLogHosts, lyingLogHomes],
  ...[siteLists, keptPeers],
  ...[isolateFrames],
];

/** What came of a target. */
export interface Fuzzed {
  readonly target: string;
  readonly says: string;
  readonly mutations: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly slowestMs: number;
  readonly findings: readonly { readonly at: number; readonly message: string }[];
  readonly ms: number;
}

export interface FuzzOptions {
  readonly mutations: number;
  readonly seed: number;
  /** The first attempt; 0 where the whole run is wanted. */
  readonly from?: number;
  /** Stops after so long, with what was done by then. */
  readonly msMax?: number;
}

/** What no input may take: a bundle of 130 kB takes a millisecond, a machine that is busy makes it a hundred. */
const ATTEMPT_MS_MAX = 1_000;
/** An attempt that takes this long hangs. */
const HANG_MS = 60_000;
const TRIES = 3;
/** The rest follows from the first ones. */
const FINDINGS_MAX = 20;

/** Runs a target. */
export async function fuzz(target: Target, options: FuzzOptions): Promise<Fuzzed> {
  const { mutations, seed, from = 0, msMax = Infinity } = options;
  const begunMs = performance.now();
  const outcomes: Record<string, number> = {};
  const findings: { at: number; message: string }[] = [];
  const subject = target.open(seed);
  let slowestMs = 0;
  let done = 0;
  try {
    for (; done < mutations && findings.length < FINDINGS_MAX; done++) {
      if (performance.now() - begunMs > msMax) break;
      const at = from + done;
      try {
        const { label, ms } = await timed(subject, seed, at);
        outcomes[label] = (outcomes[label] ?? 0) + 1;
        slowestMs = Math.max(slowestMs, ms);
        if (ms > ATTEMPT_MS_MAX) findings.push({ at, message: `took ${ms.toFixed(0)} ms` });
      } catch (error) {
        findings.push({
          at,
          message: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
        });
      }
    }
  } finally {
    await subject.close?.();
  }
  const ms = performance.now() - begunMs;
  return { target: target.name, says: target.says, mutations: done, outcomes, slowestMs, findings, ms };
}

/** R1, R2. */
async function timed(subject: Subject, seed: number, at: number): Promise<{ label: string; ms: number }> {
  let best = { label: "", ms: Infinity };
  for (let tries = 0; tries < TRIES && best.ms > ATTEMPT_MS_MAX; tries++) {
    const nowMs = tries === 0 ? () => performance.now() : cpuMs;
    const begunMs = nowMs();
    const outcome = subject.attempt(Dice.of(seed, at));
    const label = typeof outcome === "string" ? outcome : await unlessItHangs(outcome);
    const ms = nowMs() - begunMs;
    if (ms < best.ms) best = { label, ms };
  }
  return best;
}

function cpuMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}

async function unlessItHangs(outcome: Promise<string>): Promise<string> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hung = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs: no end after ${HANG_MS} ms`)), HANG_MS);
  });
  try {
    return await Promise.race([outcome, hung]);
  } finally {
    clearTimeout(timer);
  }
}
