/**
 * The sites of the tree and their incarnations, as this site's system rows tell. They are ordinary rows, so they reach
 * every site in the same order as the data that depends on them (PROTOCOL I8: the end of an incarnation arrives with or
 * before any newer stable clock).
 *
 *   ["s", "site", id]        SiteRecord, JSON
 *   ["s", "replica", number] {site, path, parent, from}: whose incarnation this is, the ids from the root down to
 *                            it, its parent's incarnation, and the one that its disk was of before (0: blank).
 *                            Written by the root as it gives the number out
 *   ["s", "ended", number]   {stable, removed?, told?, next?, settled?, gap?, unused?}: the incarnation is over; rows
 *                            that it wrote after that clock may be lost. `removed`: its site was taken off the tree,
 *                            and its disk is not taken any more; `told`: … after it had said that it stops. `next`: its
 *                            site goes on with all its rows under that number, …
 *   ["s", "kept", number]    {floor, known, whole}: … which says so itself, after all that it had kept (adoption.ts)
 *   ["s", "away", id]        {untilMs, sole?}: the site stopped as planned (members.ts), written by itself; `sole`:
 *                            what its disks alone have
 *   ["s", "removed", id]     {atMs}: the site was taken off the tree (removal.ts) and is not let in
 *   ["s", "area", id]        {area}: what fails together with the site (owners/choose.ts), written by itself
 *   ["s", "gaps"]            Gap[]: what the root's journal has left out, written by the root at each start
 *   ["s", "past", id]        PastGroup[]: incarnations that are over, in the place of their rows (past.ts)
 *   ["s", "wards" and "recovered", number, …]  who holds what an incarnation has pending (members/configuration.ts)
 */
import { SYSTEM } from "../api/api.ts";
import type { SiteRecord, SoleCopies } from "../api/api.ts";
import { type Gap, Gaps } from "../model/gaps.ts";
import { type Key, packKey, unpackKey } from "../model/key.ts";
import type { SiteId } from "../model/ports.ts";
import { holds, prefixRange, type Range } from "../model/range.ts";
import type { ClockValue, Position, ReplicaNumber, Row } from "../model/row.ts";
import { Succession } from "./succession.ts";
import { VALUE_TAG } from "../model/value.ts";
import { type Configuration, type RecoveredWard, WardRows } from "./configuration.ts";

export const SYSTEM_RANGE: Range = prefixRange(packKey([SYSTEM]));
/** Rows of tables that live at the root only. */
export const ROOT_ONLY_RANGE: Range = prefixRange(packKey(["r"]));

export const siteKey = (id: SiteId): Key => packKey([SYSTEM, "site", id]);
export const replicaKey = (number: ReplicaNumber): Key => packKey([SYSTEM, "replica", number]);
export const endedKey = (number: ReplicaNumber): Key => packKey([SYSTEM, "ended", number]);
export const keptKey = (number: ReplicaNumber): Key => packKey([SYSTEM, "kept", number]);
export const awayKey = (id: SiteId): Key => packKey([SYSTEM, "away", id]);
export const areaKey = (id: SiteId): Key => packKey([SYSTEM, "area", id]);
export const pastKey = (id: SiteId): Key => packKey([SYSTEM, "past", id]);
export const GAPS_KEY: Key = packKey([SYSTEM, "gaps"]);
export const removedKey = (id: SiteId): Key => packKey([SYSTEM, "removed", id]);

interface Incarnation {
  readonly site: SiteId;
  /** Ids from the root to the site itself. */
  readonly path: readonly SiteId[];
  /** The parent's incarnation, which gave this one its number; 0 for the root. */
  readonly parent: ReplicaNumber;
  /** The incarnation that went on as this one, on the same disk; 0 for a blank one. */
  readonly from: ReplicaNumber;
}

/** The value of ["s", "ended", number]. */
export interface Ended {
  readonly stable: ClockValue;
  readonly removed?: true;
  /**
   * Clock of the site's row ["s", "away", id], as the root had it then: the site takes that row away if it is let in
   * again.
   */
  readonly told?: ClockValue;
  readonly next?: ReplicaNumber;
  /** True where all that the incarnation had has come to its successor's parent; `stable` is past whatever it said. */
  readonly settled?: true;
  /**
   * Clock after which rows that only its parent had were lost or given up: a session of the incarnation may have seen
   * them.
   */
  readonly gap?: ClockValue;
  /** True where the site never took the number, and says so: a parent that ended another one for it was mistaken. */
  readonly unused?: true;
}

/** The value of ["s", "away", id]. */
interface Away {
  readonly untilMs: number;
  readonly sole?: readonly SoleCopies[];
}

/** Incarnations of a site that are over, and stood at one place (past.ts). */
export interface PastGroup extends Pick<Incarnation, "path" | "parent"> {
  readonly over: readonly {
    readonly number: ReplicaNumber;
    readonly stable: ClockValue;
    readonly wards?: Configuration;
    readonly recovered?: Readonly<Record<SiteId, RecoveredWard>>;
  }[];
}

/** Encodes the value of a system row. */
export function encodeJson(value: unknown): Uint8Array<ArrayBuffer> {
  const body = new TextEncoder().encode(JSON.stringify(value));
  const out = new Uint8Array(body.length + 1);
  out[0] = VALUE_TAG.json;
  out.set(body, 1);
  return out;
}

/** Decodes the value of a system row; undefined where it is none. */
export function decodeJson(value: Uint8Array | null): unknown {
  if (value?.[0] !== VALUE_TAG.json) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(value.subarray(1)));
  } catch {
    return undefined;
  }
}

/** Spaces of those rows of one incarnation that are taken together when it is over (past.ts). */
const OF_ONE: ReadonlySet<unknown> = new Set(["replica", "ended", "wards", "recovered"]);
const NONE: ReadonlySet<ReplicaNumber> = new Set();

export class Topology {
  readonly #sites = new Map<SiteId, SiteRecord>();
  /** Sites that were not removed: a row in `#sites` may be newer than the removal of its site. */
  readonly #present = new Map<SiteId, SiteRecord>();
  /** Number that counts the changes of `present`. */
  changes = 0;
  /** Ids of the sites below each parent. */
  readonly #below = new Map<SiteId, Set<SiteId>>();
  readonly #incarnations = new Map<ReplicaNumber, Incarnation>();
  readonly #bySite = new Map<SiteId, Set<ReplicaNumber>>();
  /** Sites that were given a number below each parent. */
  readonly #joined = new Map<SiteId, Set<SiteId>>();
  /** Incarnation that went on with the disk of another, by that other. */
  readonly #continued = new Map<ReplicaNumber, ReplicaNumber>();
  readonly #ended = new Map<ReplicaNumber, ClockValue>();
  readonly #gaps = new Map<ReplicaNumber, ClockValue>();
  readonly succession = new Succession((number) => this.#ended.get(number));
  readonly #away = new Map<SiteId, Away & { readonly by: ReplicaNumber }>();
  readonly #areas = new Map<SiteId, string>();
  /** Clock, by incarnation, up to which all that it had told its sessions has come here. */
  readonly #announced = new Map<ReplicaNumber, ClockValue>();
  /** Sites that are off the tree; `#endedByRemoval` has the incarnations that ended so. */
  readonly #removed = new Set<SiteId>();
  readonly #endedByRemoval = new Set<ReplicaNumber>();
  /** Clocks of the rows that tell ends, by incarnation. */
  readonly #toldEnds = new Map<ReplicaNumber, ClockValue>();
  /** Clock of the newest row that tells what an owner had of an incarnation, by incarnation. */
  readonly #toldWards = new Map<ReplicaNumber, ClockValue>();
  /**
   * Sites that came, moved, were removed, let in again or given a number, or of which an incarnation ended, since this
   * was cleared.
   */
  readonly departed = new Set<SiteId>();
  /** Incarnations that ended, and whose site is to be put into `departed` when it is known. */
  readonly #unnamed = new Set<ReplicaNumber>();
  /** Incarnations that have rows of their own. */
  readonly #single = new Set<ReplicaNumber>();
  /** Number that counts the system rows that were taken in. */
  revision = 0;
  readonly wards = new WardRows();
  /** Gaps of the root's journal. */
  rootGaps = new Gaps();

  /** Takes a row in; true where it is a system row. System rows are written by sites only, so they are trusted. */
  apply(row: Row): boolean {
    if (!holds(SYSTEM_RANGE, row.key)) return false;
    this.revision++;
    const [, space, name, owner] = unpackKey(row.key);
    if (OF_ONE.has(space) && typeof name === "number") {
      if (row.value === null) this.#single.delete(name);
      else this.#single.add(name);
    }
    if (row.value === null && space === "site" && typeof name === "string") return this.#stand(name, null);
    if (space === "removed" && typeof name === "string") return this.#remove(name, row.value !== null);
    if (space === "away" && typeof name === "string") return this.#leave(name, row);
    const value = decodeJson(row.value);
    if (space === "area" && typeof name === "string") return this.#place(name, value);
    if (value === undefined) return false;
    if (space === "gaps") return this.#leaveOut(value as Gap[]);
    if (space === "past") return this.#recall(value as PastGroup[], row.clock);
    if (space === "site" && typeof name === "string") {
      this.#stand(name, value as SiteRecord);
      this.departed.add(name);
    } else if (space === "replica" && typeof name === "number") {
      this.#learn(name, value as Incarnation);
    } else if (space === "ended" && typeof name === "number") {
      const { stable, removed, told, next, settled, gap, unused } = value as Ended;
      this.#ended.set(name, stable);
      this.#toldEnds.set(name, row.clock);
      if (removed === true) this.#endedByRemoval.add(name);
      if (told !== undefined) this.#announce(name, told);
      this.succession.ended(name, next, settled === true);
      if (unused === true) this.succession.unused(name);
      if (gap !== undefined) this.#gaps.set(name, gap);
      this.#depart(name);
      this.wards.changed = true;
    } else if (space === "kept" && typeof name === "number") {
      const word = value as { floor: number; known: number; whole: boolean };
      this.succession.kept(name, { ...word, clock: row.clock, by: row.replica });
      this.#depart(name);
    } else {
      if (space === "recovered" && typeof name === "number") this.#tellWard(name, row.clock);
      return this.wards.apply(space, name, owner, value);
    }
    return true;
  }

  #tellWard(number: ReplicaNumber, clock: ClockValue): void {
    this.#toldWards.set(number, Math.max(clock, this.#toldWards.get(number) ?? 0));
  }

  #leaveOut(gaps: readonly Gap[]): true {
    this.rootGaps = new Gaps(gaps);
    return true;
  }

  /** Takes in a row of incarnations that are over; rows of such an incarnation's own, before or since, are as new. */
  #recall(groups: readonly PastGroup[], clock: ClockValue): true {
    for (const { path, parent, over } of groups) {
      for (const { number, stable, wards, recovered } of over) {
        const site = path.at(-1);
        if (site !== undefined && !this.#incarnations.has(number)) {
          this.#learn(number, { site, path, parent, from: 0 });
        }
        if (this.wards.recall(number, wards, recovered)) this.#tellWard(number, clock);
        if (this.#ended.has(number)) continue;
        this.#ended.set(number, stable);
        this.#toldEnds.set(number, clock);
        this.#depart(number);
        this.wards.changed = true;
      }
    }
    return true;
  }

  /** Lists incarnations that have rows of their own, and of which nothing more is to be said (past.ts Z3). */
  over(): ReplicaNumber[] {
    return [...this.#single].filter((number) => {
      const isAlone = this.#incarnations.get(number)?.from === 0 && !this.#continued.has(number) &&
        this.succession.nextOf(number) === undefined && this.succession.keptOf(number) === undefined;
      if (!this.#ended.has(number) || !isAlone) return false;
      if (this.succession.isUnused(number) || this.#gaps.has(number) || this.#endedByRemoval.has(number)) {
        return false;
      }
      const recovered = this.wards.recovered(number);
      return this.wards.owners(number).every((owner) => recovered.has(owner) || this.#removed.has(owner));
    });
  }

  /** Notes that something was said of an incarnation's end; its site may become known later. */
  #depart(number: ReplicaNumber): void {
    const site = this.#incarnations.get(number)?.site;
    if (site === undefined) this.#unnamed.add(number);
    else this.departed.add(site);
  }

  /** Takes in, or takes out, the record of a site; true where there was or is one. */
  #stand(id: SiteId, record: SiteRecord | null): boolean {
    const was = this.#sites.get(id);
    if (was?.parent !== record?.parent) {
      if (was?.parent != null) this.#below.get(was.parent)?.delete(id);
      if (record?.parent != null) {
        const siblings = this.#below.get(record.parent);
        if (siblings === undefined) this.#below.set(record.parent, new Set([id]));
        else siblings.add(id);
      }
    }
    if (record === null) this.#sites.delete(id);
    else this.#sites.set(id, record);
    this.#show(id);
    return was !== undefined || record !== null;
  }

  #show(id: SiteId): void {
    const record = this.#sites.get(id);
    this.changes++;
    if (record === undefined || this.#removed.has(id)) this.#present.delete(id);
    else this.#present.set(id, record);
  }

  #learn(number: ReplicaNumber, named: Incarnation): void {
    // Numbers rise: an incarnation that follows itself, or a later one, or stands below it, would lead round and round.
    const earlier = (other: ReplicaNumber) => other < number ? other : 0;
    const incarnation = { ...named, from: earlier(named.from), parent: earlier(named.parent) };
    this.#incarnations.set(number, incarnation);
    this.#unnamed.delete(number);
    this.departed.add(incarnation.site);
    const numbers = this.#bySite.get(incarnation.site);
    if (numbers === undefined) this.#bySite.set(incarnation.site, new Set([number]));
    else numbers.add(number);
    const parent = incarnation.path.at(-2);
    if (parent !== undefined) {
      const joined = this.#joined.get(parent);
      if (joined === undefined) this.#joined.set(parent, new Set([incarnation.site]));
      else joined.add(incarnation.site);
    }
    if (incarnation.from > 0) {
      this.succession.given(number, incarnation.from);
      // Two numbers may have been given for one hello: the later one is used, or none.
      const other = this.#continued.get(incarnation.from) ?? 0;
      this.#continued.set(incarnation.from, Math.max(other, number));
    }
  }

  #remove(id: SiteId, isRemoved: boolean): true {
    if (isRemoved) this.#removed.add(id);
    else this.#removed.delete(id);
    this.#show(id);
    this.departed.add(id);
    return true;
  }

  #place(id: SiteId, value: unknown): true {
    const { area } = (value ?? {}) as { area?: string };
    if (area === undefined) this.#areas.delete(id);
    else this.#areas.set(id, area);
    return true;
  }

  #leave(id: SiteId, { value, replica, clock }: Row): true {
    const away = decodeJson(value) as Away | undefined;
    if (away === undefined) this.#away.delete(id);
    else {
      this.#away.set(id, { ...away, by: replica });
      this.#announce(replica, clock);
    }
    return true;
  }

  #announce(number: ReplicaNumber, clock: ClockValue): void {
    this.#announced.set(number, Math.max(clock, this.#announced.get(number) ?? 0));
  }

  /** Returns the failure area that a site says it is in; null: it said nothing. */
  area(id: SiteId): string | null {
    return this.#areas.get(id) ?? null;
  }

  /** Returns until when a site has said to be away. */
  awayUntilMs(id: SiteId): number | undefined {
    return this.#away.get(id)?.untilMs;
  }

  /** Reports whether an incarnation that said that it is away has not come back since. */
  isAway(number: ReplicaNumber): boolean {
    const site = this.incarnation(number)?.site;
    return site !== undefined && this.#away.get(site)?.by === number;
  }

  /** Returns what a site had on its disks alone when it said that it is away. */
  soleAt(id: SiteId): readonly SoleCopies[] {
    return this.#away.get(id)?.sole ?? [];
  }

  /** Reports whether all that an incarnation had told its sessions up to a clock has come here, as it said itself. */
  hasAnnounced(number: ReplicaNumber, clock: ClockValue): boolean {
    return clock <= this.announced(number);
  }

  /** Returns the clock up to which an incarnation announced that; −1: it announced nothing. */
  announced(number: ReplicaNumber): ClockValue {
    return this.#announced.get(number) ?? -1;
  }

  /** Reports whether a site is off the tree. */
  isRemoved(id: SiteId): boolean {
    return this.#removed.has(id);
  }

  /** Reports whether a site was ever given a number. */
  hasJoined(id: SiteId): boolean {
    return this.#bySite.has(id);
  }

  /** Reports whether an incarnation ended because its site was taken off the tree. */
  endedByRemoval(number: ReplicaNumber): boolean {
    return this.#endedByRemoval.has(number);
  }

  /** Lists the incarnations of a site that have not ended, as far as is known here. */
  living(id: SiteId): ReplicaNumber[] {
    return [...this.#bySite.get(id) ?? []].filter((number) =>
      !this.#ended.has(number) && !this.succession.isUnused(number)
    );
  }

  /** Reports whether a number was given to the disk that comes with another, or was the disk's own before. */
  isOneDisk(number: ReplicaNumber, disk: ReplicaNumber): boolean {
    const from = this.#incarnations.get(number)?.from ?? 0;
    for (let at = disk; at > 0; at = this.#incarnations.get(at)?.from ?? 0) {
      if (at === number || at === from) return true;
    }
    return false;
  }

  /**
   * Reports whether the parent that gave a number gave a later one to the disk that comes with another: the disk had
   * the former number then.
   */
  isReplaced(number: ReplicaNumber, disk: ReplicaNumber): boolean {
    const parent = this.#incarnations.get(number)?.path.at(-2);
    for (let at = disk; at > number; at = this.#incarnations.get(at)?.from ?? 0) {
      if (parent !== undefined && this.#incarnations.get(at)?.path.at(-2) === parent) return true;
    }
    return false;
  }

  /**
   * Lists sites that joined below a site and have neither ended nor left it, whether or not that site remembers them.
   */
  joinedBelow(parent: SiteId): SiteId[] {
    const joined = [...this.#joined.get(parent) ?? []].filter((id) => {
      if (this.#removed.has(id)) return false;
      return this.living(id).some((number) => this.#incarnations.get(number)?.path.at(-2) === parent);
    });
    // A number that ended there without a living one, or was never taken, was void: its site lives elsewhere, or has
    // left.
    const children = this.childrenOf(parent).filter(({ number }) =>
      !this.#ended.has(number) && !this.succession.isUnused(number)
    );
    return [...new Set([...joined, ...children.map((site) => site.id)])];
  }

  incarnation(number: ReplicaNumber): Incarnation | undefined {
    return this.#incarnations.get(number);
  }

  /** Returns the incarnation at a depth above an incarnation, or itself; undefined while not all between are known. */
  above(number: ReplicaNumber, depth: number): ReplicaNumber | undefined {
    let at = number;
    let known = this.#incarnations.get(at);
    while (known !== undefined && known.path.length - 1 > depth) {
      at = known.parent;
      const above = this.#incarnations.get(at);
      // A parent's path is shorter; rows that say otherwise would lead round and round.
      known = above !== undefined && above.path.length < known.path.length ? above : undefined;
    }
    return known && at;
  }

  /**
   * Returns the clock of the last row that says that an incarnation is over, or what an owner had of it: newer than all
   * that its parent had of it, and that its owners had given to anybody.
   */
  toldEnd(number: ReplicaNumber): ClockValue | undefined {
    const end = this.#toldEnds.get(number);
    return end === undefined ? undefined : Math.max(end, this.#toldWards.get(number) ?? 0);
  }

  /** Returns the last stable clock of an incarnation that is over, as it was written down. */
  recordedEnd(number: ReplicaNumber): ClockValue | undefined {
    return this.#ended.get(number);
  }

  /**
   * Returns the clock after which the rows of an incarnation may be lost; undefined while it and the disk above it
   * live. The rows that it had pushed by its end stand in the journal of the incarnation above: where the disk of that
   * is lost, before or after, only what had gone on from there is left, and so on up to the root.
   */
  ended(number: ReplicaNumber): ClockValue | undefined {
    const end = this.#ended.get(number), kept = this.#kept(this.#incarnations.get(number)?.parent);
    return kept === Infinity ? end : Math.min(end ?? kept, kept);
  }

  /**
   * Returns the clock up to which all that came to an incarnation, from below too, is still there: on its disk, or
   * above.
   *
   * @param asked those that wait for this answer: sites that were on their way below each other, and did not stay
   *     there, have numbers that lead round and round. A row that only such a circle keeps is not there.
   */
  #kept(number: ReplicaNumber | undefined, asked: ReadonlySet<ReplicaNumber> = NONE): ClockValue {
    if (number === undefined) return Infinity;
    const disk: (readonly [ReplicaNumber, ClockValue])[] = [];
    for (let at: ReplicaNumber | undefined = number; at !== undefined; at = this.#continued.get(at)) {
      const end = this.#ended.get(at);
      // Only the last incarnation of a disk can be living. Most are, and then nothing above it is looked at: each that
      // went on over many moves would cost as much as all those of the disks above it do, and so at every level.
      if (end === undefined) return Infinity;
      disk.push([at, end]);
    }
    let kept = 0;
    for (const [at, end] of disk) {
      if (asked.has(at)) continue;
      const above = this.#kept(this.#incarnations.get(at)?.parent, new Set([...asked, at]));
      kept = Math.max(kept, Math.min(end, above));
    }
    return kept;
  }

  /** Reports whether a living incarnation has the disk that this one had. */
  goesOn(number: ReplicaNumber): boolean {
    const next = this.#continued.get(number);
    return next !== undefined && (!this.#ended.has(next) || this.goesOn(next));
  }

  site(id: SiteId): SiteRecord | undefined {
    return this.#sites.get(id);
  }

  /** Lists the sites below one, as `sites` has them. */
  childrenOf(parent: SiteId): SiteRecord[] {
    return [...this.#below.get(parent) ?? []].flatMap((id) => this.#present.get(id) ?? []);
  }

  /** The sites of the tree, as they are at any time. */
  get present(): ReadonlyMap<SiteId, SiteRecord> {
    return this.#present;
  }

  /**
   * Returns the clock up to which all of an incarnation's entries had reached the root before it, or a site that it
   * stood below, went to another parent to which it has not brought everything yet; Infinity where none did. Only
   * incarnations below a depth are looked at.
   */
  movingSince(number: ReplicaNumber, depth: number): ClockValue {
    let since = Infinity;
    for (let at: ReplicaNumber | undefined = number; at !== undefined && at !== 0;) {
      const known: Incarnation | undefined = this.#incarnations.get(at);
      if (known !== undefined && known.path.length - 1 <= depth) break;
      if (this.succession.isUnsettled(at)) since = Math.min(since, this.#ended.get(at) ?? 0);
      at = known?.parent;
    }
    return since;
  }

  /**
   * Reports whether a session may have seen what was lost with a former parent of its site, or of one above it.
   *
   * @param path of its token.
   * @param clock of its token: nobody has lost what the root has.
   */
  mayHaveLost(number: ReplicaNumber, path: readonly (Position | null)[], clock: ClockValue): boolean {
    if (this.#gaps.size === 0 || typeof path[0] === "number") return false;
    for (let at: ReplicaNumber | undefined = number; at !== undefined && at !== 0;) {
      const known: Incarnation | undefined = this.#incarnations.get(at);
      if (clock > (this.#gaps.get(at) ?? Infinity)) {
        const seen = path[(known?.path.length ?? 0) - 2];
        const word = this.succession.keptOf(at);
        // Without the successor's row the session is asked again when that has come.
        const isIn = word?.whole === true || typeof seen === "number" && seen <= (word?.known ?? 0);
        if (word !== undefined && !isIn) return true;
      }
      at = known?.parent;
    }
    return false;
  }

  /**
   * Lists incarnations of a site's children that went on under another parent, to which not all of them has come yet.
   */
  unsettledBelow(parent: SiteId): ReplicaNumber[] {
    return this.succession.unsettled().filter((number) =>
      this.#incarnations.get(number)?.path.at(-2) === parent
    );
  }

  /** Lists sites that are under another parent now and have not brought there yet all that they had below this one. */
  movingFrom(parent: SiteId): SiteId[] {
    return this.unsettledBelow(parent).map((number) => this.#incarnations.get(number)?.path.at(-1) ?? "");
  }

  sites(): SiteRecord[] {
    return [...this.#present.values()];
  }
}
