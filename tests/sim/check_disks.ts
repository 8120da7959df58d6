/**
 * What each disk must show by itself, at every commit, and what must be on how many when something is told.
 *
 * integrity   A disk holds what somebody wrote: each value under its key and its version, each sum as often as it was
 *             added, and no deletion that nobody asked for.
 * kept        A row leaves a disk, or goes back to an older version, only when the root has it or something newer, since
 *             every disk between may be lost (PROTOCOL I7); from the root's disk only what explains an absence. When the
 *             disk of a site that was drained is emptied, the root has all that was there when the site said that it
 *             leaves, and all that was ever written there. What came behind that is an excuse, where another disk has it.
 * copies      What a request wrote is on the disk of its site when its client is told, and where that has owners on so
 *             many other disks, or the root has it (PROTOCOL O2). What a site between reads to those below it while its
 *             owners are silent is an excuse (excuses.ts), where that site had it for as long as it waits for them; and
 *             so is what it had before it had any.
 */
import { FEED_WAIT_MS } from "../../store/model/limits.ts";
import { misshown, strangeSums } from "./check_sessions.ts";
import type { Excused } from "./excuses.ts";
import { type Held, type HistoryEvent, NOWHERE, type Violation } from "./history.ts";
import type { WriteRecord } from "./ledger.ts";
import type { Request, Trail } from "./trail.ts";

/** So long before an answer leaves an owner may have said that it holds what its disk had then, and is gone since. */
const FLIGHT_MS = 2_000;

/** By a clock that drifts as much as any here. */
const FED_MS = 0.98 * FEED_WAIT_MS;

/** See the file's header. */
export class DisksCheck {
  readonly violations: Violation[] = [];
  readonly #trail: Trail;
  readonly #excused: Excused;
  /** By site and write: since when its disk has it. */
  readonly #since = new Map<string, number>();
  /** By site that has said that it leaves: what was there before, by key. */
  readonly #left = new Map<string, ReadonlyMap<number, Held>>();
  /** What lay on disks that were lost, or emptied, a moment ago. */
  #lost: { readonly atMs: number; readonly records: ReadonlySet<WriteRecord> }[] = [];

  constructor(trail: Trail, excused: Excused) {
    this.#trail = trail;
    this.#excused = excused;
  }

  /** An event that the trail is about to take in. */
  before(event: HistoryEvent): void {
    if (event.kind === "commit") this.#commit(event);
    else if (event.kind === "issue" || event.kind === "chunk") {
      this.#told(this.#trail.request(event.request), event.atMs);
    } else if (event.kind === "start") this.#left.delete(event.site);
    else if (event.kind === "leaves") this.#leaves(event);
    else if (event.kind === "lost") this.#goes(event.site, event.atMs);
    else if (event.kind === "emptied") {
      this.#emptied(event.site, event.atMs);
      this.#goes(event.site, event.atMs);
    }
  }

  #leaves({ site, behind }: HistoryEvent & { kind: "leaves" }): void {
    const before = new Map(this.#trail.losses.rows(site));
    for (const key of behind) before.delete(key);
    this.#left.set(site, before);
  }

  /** All leaves the disk of a site that was drained; where nobody heard that it leaves, all counts as from before. */
  #emptied(site: string, atMs: number): void {
    const rows = this.#trail.losses.rows(site), before = this.#left.get(site) ?? rows;
    for (const row of before.values()) this.#keeps(site, atMs, row, undefined);
    for (const row of rows.values()) if (row !== before.get(row.key)) this.#leavesBehind(site, atMs, row);
  }

  /** What came after the site had said that it leaves: nobody there has seen it, and its disk was not the only one. */
  #leavesBehind(site: string, atMs: number, { key, stamp, write, sums }: Held): void {
    const { losses, ledger } = this.#trail;
    for (const number of sums ?? [write]) {
      const record = number === null ? ledger.deletionOf(key, stamp) : ledger.writes.get(number);
      const what = record ?? { key, what: "set", stamp, write: -1 };
      const isAtRoot = record === undefined ? losses.isAtRoot(key, stamp) : losses.hasReachedRoot(record);
      if (isAtRoot) continue;
      const others = losses.holders(what).filter((other) => other !== site), isOwn = record?.site === site;
      if (!isOwn && others.length > 0) {
        this.#excused("fed to a site that had said that it leaves, whose disk was emptied");
        continue;
      }
      const version = sums === undefined ? `key ${key} at ${stamp}` : `write ${number} of key ${key}`;
      const text = `${site} had ${version} and was emptied; the root has less, and`;
      this.#say("kept", atMs, `${text} ${isOwn ? "it was written there" : "no other disk has it"}`);
    }
  }

  /** All that is on a disk, whose word of it may still be on its way. */
  #goes(site: string, atMs: number): void {
    for (const at of this.#since.keys()) if (at.startsWith(`${site} `)) this.#since.delete(at);
    this.#left.delete(site);
    const { ledger, losses } = this.#trail;
    const held = ledger.writes.values().filter((record) => losses.holders(record).includes(site));
    this.#lost = [...this.#lost.filter((lost) => lost.atMs > atMs - FLIGHT_MS), {
      atMs,
      records: new Set(held),
    }];
  }

  #say(checker: string, atMs: number, message: string): void {
    this.violations.push({ checker, atMs, message });
  }

  #commit(event: HistoryEvent & { kind: "commit" }): void {
    const { site, atMs, rows, gone, wards = [] } = event, had = this.#trail.losses.rows(site);
    // What it collects has expired by its clock as it is now.
    this.#trail.ledger.sawClock(event.clockMs ?? 0);
    for (const row of rows) {
      this.#whole(site, atMs, row);
      this.#keeps(site, atMs, had.get(row.key), row);
      for (const write of row.sums ?? [row.write ?? row.stamp]) this.#has(site, write, atMs);
    }
    for (const { row } of wards) if (row !== null) this.#whole(`${site}, for another site,`, atMs, row);
    for (const key of gone) this.#keeps(site, atMs, had.get(key), undefined);
  }

  #has(site: string, write: number | string, atMs: number): void {
    const at = `${site} ${write}`;
    if (!this.#since.has(at)) this.#since.set(at, atMs);
  }

  #whole(where: string, atMs: number, row: Held): void {
    const { ledger } = this.#trail,
      say = (what: string) => this.#say("integrity", atMs, `${where} has ${what}`);
    if (row.sums !== undefined) {
      const strange = strangeSums(row, row.sums, ledger.writes);
      if (strange.length > 0) say(`a sum at key ${row.key} that counts writes ${strange} wrongly`);
    } else if (row.write !== null) {
      const wrong = misshown(row, ledger.writes.get(row.write));
      if (wrong !== null) say(wrong);
    } else if (!this.#isAskedFor(row)) {
      say(`a deletion of key ${row.key} at ${row.stamp} that nobody asked for`);
    }
  }

  /** Whether a deletion is somebody's: of a request that died nobody knows the version. */
  #isAskedFor({ key, stamp }: Held): boolean {
    return this.#trail.ledger.of(key).some((record) =>
      record.what === "delete" && (record.stamp === stamp || record.stamp === null && record.state === "open")
    );
  }

  /** A row that was there, and what is there in its place. */
  #keeps(site: string, atMs: number, had: Held | undefined, has: Held | undefined): void {
    if (had === undefined) return;
    const { losses, ledger, history } = this.#trail, { key, stamp } = had;
    const where = `${site} had key ${key} at ${stamp} and has ${has === undefined ? "nothing" : has.stamp}`;
    if (had.sums !== undefined) {
      const less = had.sums.flatMap((write) =>
        has?.sums?.includes(write) ? [] : ledger.writes.get(write) ?? []
      );
      const lacks = less.filter((record) => site === history.root || !losses.hasReachedRoot(record));
      if (lacks.length > 0) {
        this.#say("kept", atMs, `${where}, without writes ${lacks.map(({ write }) => write)}`);
      }
      return;
    }
    if (has !== undefined && has.stamp >= stamp) return;
    if (site === history.root) {
      const isOver = has === undefined &&
        ledger.explains(key, stamp, { site: null, clockMs: null }).length > 0;
      if (!isOver) this.#say("kept", atMs, where);
    } else if (!losses.isAtRoot(key, stamp)) this.#say("kept", atMs, `${where}; the root has less`);
  }

  #told({ site, untold, read }: Request, atMs: number): void {
    const { ledger, losses } = this.#trail;
    if (site === NOWHERE) return;
    for (const write of new Set([...untold, ...read])) {
      const record = ledger.writes.get(write);
      if (record === undefined || losses.hasReachedRoot(record)) continue;
      const isOwn = untold.has(write), f = isOwn ? this.#ownersOf(site) : this.#ownersAbove(site);
      const holders = losses.holders(record), copies = holders.length + this.#flown(record, atMs);
      if ((holders.includes(site) || !isOwn) && copies > f) continue;
      const excuse = isOwn ? null : this.#fedWithout(record, site, atMs);
      if (excuse !== null) {
        this.#excused(excuse);
        continue;
      }
      const what = `write ${write} of key ${record.key} (${record.stamp})`;
      const text = `${what} is told ${isOwn ? "" : "to a reader "}at ${site}, f = ${f}`;
      this.#say("copies", atMs, `${text}, and is on the disks of ${holders.join() || "nobody"}`);
    }
  }

  #ownersOf(site: string): number {
    const { owners, root } = this.#trail.history;
    return site === root ? 0 : owners?.get(site) ?? 0;
  }

  /** What comes from above is held by the owners of whoever was the first to have it. */
  #ownersAbove(site: string): number {
    const { parents, root } = this.#trail.history;
    let least = this.#ownersOf(site);
    for (let at = parents?.get(site); at != null && at !== root; at = parents?.get(at)) {
      least = Math.min(least, this.#ownersOf(at));
    }
    return least;
  }

  /**
   * A site above has waited for its owners, and fed it without them (store/session/durability.ts, B2), or had none then
   * (store/wards/source.ts).
   */
  #fedWithout({ what, write, stamp }: WriteRecord, site: string, atMs: number): string | null {
    const { lives, history: { parents, root } } = this.#trail, named = what === "delete" ? stamp : write;
    for (let at = parents?.get(site); at != null && at !== root; at = parents?.get(at)) {
      const sinceMs = this.#since.get(`${at} ${named}`) ?? Infinity;
      if (sinceMs <= atMs - FED_MS) return "read below a site whose owners are silent";
      if (sinceMs < lives.ownedMs(at)) return "read below a site that had no owners yet";
    }
    return null;
  }

  /** Disks that had it and were lost, or emptied, while their word of it may have been on its way. */
  #flown(record: WriteRecord, atMs: number): number {
    return this.#lost.filter((lost) => lost.atMs > atMs - FLIGHT_MS && lost.records.has(record)).length;
  }
}
