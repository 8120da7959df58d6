/**
 * Gradual rollout: a share of the sessions gets another version than the rest.
 *
 * ROT1  The version that a session gets depends on its id, the version and the weight alone: it is the same at every
 *       site, and needs no stored state.
 * ROT2  A session that gets the version at one weight gets it at every higher one.
 */
import { createHash } from "node:crypto";
import type { AppRecord } from "./records.ts";

/** The weight at which every session gets the version. */
export const WEIGHT_MAX = 100;

/** Bytes of a digest that make a share: as many as a number holds exactly. */
const SHARE_BYTES = 6;
const SHARE_END = 2 ** (8 * SHARE_BYTES);

/** Returns a session's place among all sessions, from 0 to below 100; another place for each version (ROT1). */
export function shareOf(session: Uint8Array, version: string): number {
  const digest = createHash("sha256").update(version).update(session).digest();
  return digest.readUIntBE(0, SHARE_BYTES) / SHARE_END * WEIGHT_MAX;
}

/** Reports whether a session gets a version that has so much weight (ROT2). */
export const takesPart = (session: Uint8Array, version: string, weight: number): boolean =>
  shareOf(session, version) < weight;

/** Returns the weight that a text names, `10%` or `0.5`, with at most two decimals; null where it names none. */
export function parseWeight(text: string): number | null {
  const [, digits] = /^(\d{1,3}(?:\.\d{1,2})?)%?$/.exec(text) ?? [];
  const weight = Number(digits);
  return digits !== undefined && weight <= WEIGHT_MAX ? weight : null;
}

/** Returns the versions that sites may be asked to run without being named: they are never removed. */
export const serving = (record: AppRecord): string[] => [
  ...record.current === null ? [] : [record.current],
  ...record.rollout === undefined ? [] : [record.rollout.version],
];

/** Returns an app that serves one version to all: a rollout that ran is over. */
export function servingAlone(record: AppRecord, version: string): AppRecord {
  const { rollout: _rollout, preparing: _preparing, ...rest } = record;
  return { ...rest, current: version };
}
