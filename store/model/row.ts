/**
 * The rows and their versions.
 *
 * A version is the hybrid logical clock of the write and the *replica number* of the writer. The root hands a
 * fresh number to every incarnation of every site, so a version names its origin's incarnation, and two
 * different writes never share a version.
 *
 * A clock is a safe integer: milliseconds since CLOCK_EPOCH_MS times CLOCK_TICKS_PER_MS, plus a logical count
 * that may run over into the milliseconds. 41 bits of milliseconds reach the year 2094.
 *
 * R1  The row with the larger version wins, everywhere. Rows with one version are equal, but for merge rows
 *     (value.ts: sum, min, max), whose values join; a join's version is the larger one.
 */
import type { Key } from "./key.ts";

/** Value of a hybrid logical clock. */
export type ClockValue = number & { readonly __brand?: "ClockValue" };
/** Index of a change in one site's journal; means something only together with that site. */
export type Position = number & { readonly __brand?: "Position" };
/** Number of one incarnation of one site: 1 … 2^24 − 1; the root's first incarnation is 1. */
export type ReplicaNumber = number & { readonly __brand?: "ReplicaNumber" };
/** Largest replica number: versionstamps have three bytes for it (docs/protocol/journal.md). */
export const REPLICA_NUMBER_MAX: ReplicaNumber = 2 ** 24 - 1;

export const CLOCK_EPOCH_MS = Date.UTC(2025, 0, 1);
/**
 * Clock values in a millisecond. Of a site's own clock every second one is used (clock.ts C3): 2,048 writes a
 * millisecond before it runs ahead of the wall clock.
 */
export const CLOCK_TICKS_PER_MS = 4096;
/** Returns the time that a clock stands for, for people and programs outside: Unix milliseconds. */
export const unixMs = (clock: ClockValue): number => CLOCK_EPOCH_MS + Math.floor(clock / CLOCK_TICKS_PER_MS);

export interface Version {
  readonly clock: ClockValue;
  readonly replica: ReplicaNumber;
}

export interface Row extends Version {
  readonly key: Key;
  /**
   * Value of the row; null: deleted (a tombstone). The bytes are opaque to the store, but for merge rows (value.ts).
   */
  readonly value: Uint8Array | null;
  /** Position in this site's journal. */
  readonly position: Position;
  /**
   * Depth of the highest site known to have this row when it was applied here (0 is the root); a row written
   * or carried here has this site's own depth.
   */
  readonly known: number;
  /** Milliseconds since 1970 after which the row reads as absent; 0 for never. */
  readonly expiresAtMs: number;
}

/** Returns the bytes that a row counts for: its key and its value. */
export const rowBytes = (row: Pick<Row, "key" | "value">): number =>
  row.key.length + (row.value?.length ?? 0);

/** Compares versions: negative, zero or positive as a is older than, equal to or newer than b. */
export const compareVersions = (a: Version, b: Version): number => a.clock - b.clock || a.replica - b.replica;

/**
 * Returns the versionstamp of a version: 20 hexadecimal digits, 7 bytes of clock, 3 bytes of replica number; sorts as
 * versions do.
 */
export const versionstamp = (version: Version): string =>
  version.clock.toString(16).padStart(14, "0") + version.replica.toString(16).padStart(6, "0");

/** Returns the version that a versionstamp names; null where the text is none. */
export function parseVersionstamp(text: string): Version | null {
  if (!/^[0-9a-f]{20}$/.test(text)) return null;
  const clock = parseInt(text.slice(0, 14), 16);
  if (!Number.isSafeInteger(clock)) return null;
  return { clock, replica: parseInt(text.slice(14), 16) };
}

/** Reports whether a row reads as present at a time. */
export const isLive = (row: Row | undefined, nowMs: number): row is Row & { value: Uint8Array } =>
  row !== undefined && row.value !== null && (row.expiresAtMs === 0 || row.expiresAtMs > nowMs);
