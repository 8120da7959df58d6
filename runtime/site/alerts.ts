/**
 * Alerts for the operator, by a closed list of codes (docs/operating.md says what to do about each).
 *
 * W1  An alert tells of the present: it leaves the status when its cause is gone.
 * W2  An alert names the site it is about, which may be another than the one that noticed: a dead site is noticed by
 *     its neighbours, who are well themselves.
 */
import { statfsSync } from "node:fs";
import type { ReplicaStatus } from "../../store/api/api.ts";
import type { DamagedFolder } from "./disk_damage.ts";
import type { LostFolder } from "./lost_folder.ts";

/** Entry of `status.alerts`. */
export interface Alert {
  readonly code:
    | "disk_failed"
    | "disk_low"
    | "disk_damaged"
    | "disk_lost"
    | "clock_ahead"
    | "clock_doubted"
    | "parent_away"
    | "child_away"
    | "adoption_waits"
    | "lag"
    | "pending"
    | "site_away"
    | "site_overdue"
    | "site_suspected"
    | "site_dead"
    | "owners_missing"
    | "owners_silent"
    | "owners_without"
    | "stateful_parked"
    | "stateful_stalled";
  /** Id of the site to look at (W2). */
  readonly site: string;
  readonly detail: string;
}

/** State of a site from which its alerts are made. */
export interface Signs {
  readonly fault: Error | null;
  readonly replica: Pick<
    ReplicaStatus,
    | "site"
    | "clocksAhead"
    | "clockDoubt"
    | "parent"
    | "pending"
    | "pendingBytes"
    | "children"
    | "adopting"
    | "watched"
    | "ownersMissing"
    | "wards"
    | "damaged"
    | "counters"
  >;
  /** Folders, other than the store's, in which rows are damaged. */
  readonly damagedFolders: readonly DamagedFolder[];
  /** Folders that were set aside. */
  readonly lostFolders: readonly LostFolder[];
  /** Number of stateful sessions at home here that stand still, and of those whose commits wait for owners. */
  readonly stateful: { readonly parked: number; readonly stalled: number };
  /** Free part of the disk, 0 to 1; null where that cannot be known. */
  readonly diskFree: number | null;
  /** Sites that have announced to be away, and until when; `near`: the parent or a child. */
  readonly away: readonly { readonly id: string; readonly untilMs: number; readonly near: boolean }[];
  readonly nowMs: number;
}

/**
 * Milliseconds of doubt about the clock before an alert: a site that starts, or was suspended, has heard its neighbours
 * before.
 */
const CLOCK_DOUBT_MS = 5_000;
/** Milliseconds of a neighbour's silence before an alert: a site that restarts is back before. */
const NEIGHBOUR_AWAY_MS = 10_000;
/** Milliseconds of lag before an alert: a healthy cluster lags by less than a second. */
const LAG_MS = 60_000;
/** Pending rows, or bytes of them, before an alert: minutes of pushing over a slow link. */
const PENDING_ROWS = 100_000;
const PENDING_BYTES = 64 * 1024 * 1024;
/** Rows that an alert names. */
const NAMED_MAX = 3;
/** Free part of the disk below which there is an alert: time to act before writes fail. */
const DISK_FREE_MIN = 0.05;

/** Returns the alerts of a site, as of now. */
export function alertsOf(signs: Signs): Alert[] {
  const { fault, replica, stateful, diskFree, away, nowMs } = signs;
  const alerts: Alert[] = [];
  const about = (site: string, code: Alert["code"], detail: string) =>
    void alerts.push({ code, site, detail });
  const add = (code: Alert["code"], detail: string) => about(replica.site, code, detail);
  if (fault !== null) add("disk_failed", fault.message);
  if (diskFree !== null && diskFree < DISK_FREE_MIN) {
    add("disk_low", `${(100 * diskFree).toFixed(1)} % of the disk is free`);
  }
  for (const detail of damage(signs)) add("disk_damaged", detail);
  for (const { folder, why } of signs.lostFolders) {
    add(
      "disk_lost",
      `${folder} was set aside, and the site went on without it; what nobody else had is lost: ${why}`,
    );
  }
  for (const site of replica.clocksAhead) {
    about(
      site,
      "clock_ahead",
      `site ${site} is refused: its clock is more than a minute ahead of this site's`,
    );
  }
  const { clockDoubt } = replica;
  if (clockDoubt !== null && clockDoubt.forMs > CLOCK_DOUBT_MS) {
    const { aheadMs, forMs } = clockDoubt;
    const way = aheadMs > 0 ? "ahead of" : "behind";
    add(
      "clock_doubted",
      `the clock of this machine has been ${seconds(Math.abs(aheadMs))} ${way} the time for ${
        seconds(forMs)
      }`,
    );
  }
  const { parent, pending, pendingBytes, children, adopting } = replica;
  const awayIds = new Map(away.map(({ id, untilMs }) => [id, untilMs]));
  const isExpected = (id: string) => (awayIds.get(id) ?? 0) > nowMs;
  const feedMs = parent?.feedLagMs ?? 0;
  if (parent?.connected === false && feedMs > NEIGHBOUR_AWAY_MS && !isExpected(parent.id)) {
    add("parent_away", `nothing was heard of parent ${parent.id} for ${seconds(feedMs)}`);
  }
  if (parent?.connected === true && feedMs > LAG_MS) {
    add("lag", `what parent ${parent.id} has is here ${seconds(feedMs)} later`);
  }
  // An absent site is told of at its neighbours, and there only: the stable clock of every site waits for it.
  for (const { id, connected, stableLagMs } of children) {
    if (connected || (stableLagMs ?? 0) <= NEIGHBOUR_AWAY_MS || isExpected(id)) continue;
    about(
      id,
      "child_away",
      `nothing of site ${id} or those below it has come for ${seconds(stableLagMs ?? 0)}`,
    );
  }
  for (const { child, waitsFor, forMs } of adopting) {
    if (forMs > NEIGHBOUR_AWAY_MS) about(child, "adoption_waits", adoption(child, waitsFor, seconds(forMs)));
  }
  if (pending > PENDING_ROWS || pendingBytes > PENDING_BYTES) {
    add("pending", `${pending} rows (${pendingBytes} bytes) have not been acknowledged by the parent`);
  }
  for (const { id, untilMs, near } of away) {
    if (!near) continue;
    const at = new Date(untilMs).toISOString();
    if (untilMs > nowMs) about(id, "site_away", `site ${id} was drained, and is to be back by ${at}`);
    else about(id, "site_overdue", `site ${id} was drained, and should have been back at ${at}`);
  }
  for (const { site, standing, silentMs } of replica.watched) {
    if (isExpected(site)) continue;
    const silence = `nothing was heard of site ${site} for ${seconds(silentMs)}`;
    if (standing === "suspected") about(site, "site_suspected", `${silence}: it gets nothing new to hold`);
    if (standing === "dead") about(site, "site_dead", `${silence}: others take its place`);
  }
  if (replica.ownersMissing !== null) add("owners_missing", replica.ownersMissing);
  for (const { site, why } of replica.wards.silent) {
    about(
      site,
      "owners_silent",
      `owner ${site} does not take what is pending here (${why})${
        replica.wards.isAlone ? "" : ": answers wait for it"
      }`,
    );
  }
  if (replica.wards.isAlone) {
    add("owners_without", "answers leave without their owners: what they tell is lost if this site is");
  }
  if (stateful.parked > 0) {
    add("stateful_parked", `${stateful.parked} stateful sessions stand still; the log of their app says why`);
  }
  if (stateful.stalled > 0) {
    add("stateful_stalled", `${stateful.stalled} stateful sessions wait for owners that do not answer`);
  }
  return alerts;
}

/** Returns texts about rows that the disk has changed by itself, and what became of them. */
function damage({ replica: { damaged, counters }, damagedFolders }: Signs): string[] {
  const found = counters["rows_damaged"] ?? 0, told: string[] = [];
  if (damaged.length > 0) {
    const names = damaged.slice(0, NAMED_MAX).join(", ") + (damaged.length > NAMED_MAX ? ", …" : "");
    told.push(
      `${damaged.length} rows are damaged on disk, and refused, since no other site is known to have them: ${names}`,
    );
  }
  if (found > 0) {
    told.push(
      `since its start the site has found ${found} rows damaged on disk, ${damaged.length} of which are refused now`,
    );
  }
  for (const { folder, rows } of damagedFolders) {
    told.push(`${rows} rows of ${folder} are damaged on disk: stateful sessions that need them fail`);
  }
  return told;
}

/** Returns the text about a child that waits to be taken in: it names the sites to start, or to name as lost. */
const adoption = (child: string, waitsFor: readonly string[], time: string): string =>
  waitsFor.length === 0
    ? `site ${child} has waited for ${time} to be taken in: not all that it had shown has come here from the root`
    : `site ${child} has waited for ${time} to be taken in: ${
      waitsFor.join(", ")
    } may have what it depends on, ` +
      `and did not answer`;

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

/** Milliseconds between two looks at the disk: a status is asked for each second, by several. */
const DISK_LOOK_MS = 10_000;

/** Free space of a disk. */
export class DiskSpace {
  readonly #folder: string;
  #free: number | null = null;
  #lookedMs = -Infinity;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the part that is free, 0 to 1; null where the system does not say. */
  free(): number | null {
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs < DISK_LOOK_MS) return this.#free;
    this.#lookedMs = nowMs;
    try {
      const { bavail, blocks } = statfsSync(this.#folder);
      this.#free = blocks > 0 ? bavail / blocks : null;
    } catch {
      this.#free = null;
    }
    return this.#free;
  }
}
