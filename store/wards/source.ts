/**
 * This site as a source: its pending rows stream to its owners, and its answers wait for them (PROTOCOL O1–O3, O6).
 *
 * Life of a configuration: wanted (another choice of owners) → written as a system row →
 * its owners are brought up to date → in effect: they have all that was ever told, and the root has the row → told
 * under, once the switch is on this site's disk and the owners know of it → replaced by the next.
 *
 * G1  What is told (an answer that leaves) is at a position that all owners of the configuration in effect have on
 *     their disks; while another one is being brought up to date, those of both.
 * G2  Only what is on this disk is sent: positions and versions that a crash would undo would be given out again.
 * G3  A ward closes at a head (I1): it is sent after a commit, as of its mark.
 * G5  An owner that has no room is not chosen again for a while, unless what is pending here is more than any owner
 *     takes: then another one would be as full.
 * G6  An owner that knows of a later configuration than the one in effect here is spoken to under the next, where it is
 *     an owner too: this site had put that into effect, and has only the disk of before. Of rows that such a disk
 *     lacks the owners name positions, which end the incarnation (core/lost.ts).
 * G4  A new incarnation begins without a configuration, and tells nothing before its first is in effect.
 */
import type { Core, Mark } from "../core/core.ts";
import { MESSAGE_BYTES_TARGET, WARD_FULL_MS_MAX, WARD_IDLE_MS, WARD_RELEASE_MS } from "../model/limits.ts";
import { OlderDisk } from "../core/lost.ts";
import type { SiteId } from "../model/ports.ts";
import type { Frozen } from "../rows/rows.ts";
import type { Position, ReplicaNumber } from "../model/row.ts";
import { decodeJson, encodeJson } from "../members/topology.ts";
import { chunks } from "../wire/wire_row.ts";
import { type Configuration, wardsKey } from "../members/configuration.ts";
import type { Warded } from "../wire/ward_message.ts";
import { isTooMuch, OwnerLink } from "./owner_link.ts";

/** Name of the record that has the configurations of this incarnation. */
export const SOURCE_RECORD = "wards";

/** A configuration whose row stands at a position of this site's journal. */
interface Written extends Configuration {
  readonly position: Position;
}

interface State {
  readonly replica: ReplicaNumber;
  readonly effective: Configuration | null;
  readonly next: Written | null;
  /** Sites that owned under configurations that are over, and have not heard yet that they are owners no more. */
  readonly former: readonly SiteId[];
}

export interface SourceHost {
  /**
   * Chooses who should own now, without this site, given who does and who has no room for its ward; null: nothing
   * changes.
   */
  wanted(current: readonly SiteId[], isFull: (site: SiteId) => boolean): readonly SiteId[] | null;
  /** Returns what becomes of answers whose owners can't be reached. */
  policy(): "fail" | "acknowledge";
  /** Called where `reached` may have moved. */
  moved(): void;
  fail(error: unknown): void;
}

const same = (a: readonly SiteId[], b: readonly SiteId[]): boolean =>
  a.length === b.length && a.every((id) => b.includes(id));

export class WardSource {
  readonly #core: Core;
  readonly #host: SourceHost;
  readonly #links = new Map<SiteId, OwnerLink>();
  #replica: ReplicaNumber = 0;
  #effective: Configuration | null = null;
  #next: Written | null = null;
  #former: readonly SiteId[] = [];
  /** True until the first configuration is in effect: nothing is told before (G4). */
  #isClosed = false;
  /** Position that no answer went beyond. */
  #told: Position = 0;
  #isAlone = false;
  #isWriting = false;
  /** Position that somebody waits for. */
  #wanted: Position = 0;
  #releasedMs = -Infinity;
  /** Sites that had no room for a ward which another would have (G5). */
  readonly #fullUntilMs = new Map<SiteId, number>();

  constructor(core: Core, host: SourceHost) {
    this.#core = core;
    this.#host = host;
  }

  /** True where wards are no concern of this site: f = 0, and never was anything else. */
  get isIdle(): boolean {
    return this.#effective === null && this.#next === null && !this.#isClosed && this.#former.length === 0;
  }

  get effective(): Configuration | null {
    return this.#effective;
  }

  get next(): Configuration | null {
    return this.#next;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Owners that do not take what they are sent, and why. */
  get silent(): { site: SiteId; why: string }[] {
    return [...this.#links.values()].flatMap(({ site, why }) => why === null ? [] : [{ site, why }]);
  }

  // ── Disk ──

  restore(value: Uint8Array): void {
    const { replica, effective, next, former } = decodeJson(value) as State;
    this.#replica = replica;
    this.#effective = effective;
    this.#next = next;
    this.#former = former;
  }

  /** Notes that the disk was loaded: all of it may have been told. */
  loaded(): void {
    this.#told = this.#core.rows.head;
    if (this.#replica !== this.#core.replica) this.#begin();
    else if (this.#effective === null) this.#isClosed = (this.#wantedOwners()?.length ?? 1) > 0;
    this.#relink();
  }

  #save(): void {
    const state: State = {
      replica: this.#replica,
      effective: this.#effective,
      next: this.#next,
      former: this.#former,
    };
    this.#core.rows.record(SOURCE_RECORD, encodeJson(state));
  }

  /** Begins a new incarnation, without a configuration (G4). */
  #begin(): void {
    this.#replica = this.#core.replica;
    if (!this.isIdle) this.#core.rows.record(SOURCE_RECORD, null);
    this.#effective = this.#next = null;
    this.#former = [];
    this.#links.clear();
    this.#told = 0;
    const wanted = this.#wantedOwners();
    this.#isClosed = !this.#core.isRoot && (wanted === null || wanted.length > 0);
  }

  // ── The gate ──

  /** Position up to which all owners have this site's journal (G1): answers that depend on more must wait. */
  get reached(): Position {
    const { effective, next } = { effective: this.#effective, next: this.#next };
    if (this.#core.replica !== this.#replica) return this.isIdle && !this.#mayBegin ? Infinity : 0;
    let reached = effective === null && this.#isClosed ? 0 : Infinity;
    for (const owner of effective?.owners ?? []) {
      const link = this.#links.get(owner);
      reached = Math.min(reached, link?.settled === effective?.number ? link?.acked ?? 0 : 0);
    }
    if (next !== null && this.#areAt(next, next.position)) {
      for (const owner of next.owners) reached = Math.min(reached, this.#links.get(owner)?.acked ?? 0);
    }
    return reached;
  }

  #wantedOwners(): readonly SiteId[] | null {
    const isFull = (site: SiteId) => this.#core.steady.nowMs() < (this.#fullUntilMs.get(site) ?? -Infinity);
    return this.#host.wanted((this.#next ?? this.#effective)?.owners ?? [], isFull);
  }

  get #mayBegin(): boolean {
    return !this.#core.isRoot && (this.#wantedOwners() ?? ["?"]).length > 0;
  }

  /** Reports whether an answer that depends on a position may leave; notes that it did (G1). */
  allows(position: Position): boolean {
    if (this.isIdle && this.#core.replica === this.#replica) return true;
    if (position > this.reached && !this.#isAlone) return false;
    this.#told = Math.max(this.#told, position);
    return true;
  }

  /** Reports whether children may be fed up to a position. Before there are owners nobody waits for them. */
  mayFeed(position: Position): boolean {
    return this.#effective === null || position <= this.reached || this.#isAlone;
  }

  /**
   * Reports whether answers go on without owners, who were waited for in vain; until they have all of it again (O6).
   */
  goesOnAlone(position: Position): boolean {
    if (this.#host.policy() !== "acknowledge" || position <= this.reached) return position <= this.reached;
    if (!this.#isAlone) this.#core.ports.note("owners_unreachable", { says: "answers leave without them" });
    this.#isAlone = true;
    this.#core.count("acknowledged_alone");
    return true;
  }

  /** True while answers leave without owners (O6). */
  get isAlone(): boolean {
    return this.#isAlone;
  }

  /** Notes that somebody waits for a position. */
  want(position: Position): void {
    this.#wanted = Math.max(this.#wanted, position);
  }

  #areAt({ owners }: Configuration, position: Position): boolean {
    return owners.every((owner) => (this.#links.get(owner)?.acked ?? 0) >= position);
  }

  // ── Configurations ──

  /**
   * Decides on configurations, before a freeze: what is decided here is on disk before anything is said or told under
   * it.
   */
  prepare(): void {
    const core = this.#core;
    if (core.replica !== this.#replica) this.#begin();
    if (core.isRoot || core.replica === 0) return;
    this.#settle();
    if (!this.#isWriting && this.#shouldChange()) {
      this.#isWriting = true;
      this.#change().catch((error) => this.#host.fail(error)).finally(() => this.#isWriting = false);
    }
  }

  /** Puts the next configuration into effect once its owners have all that was told, and the root has its row (O3). */
  #settle(): void {
    const next = this.#next;
    if (next === null || (this.#core.reach[0]?.top ?? 0) < next.position) return;
    if (!this.#areAt(next, Math.max(this.#told, next.position))) return;
    const before = this.#effective?.owners ?? [];
    const { number, owners } = next;
    this.#effective = { number, owners, previous: [] };
    this.#next = null;
    this.#isClosed = false;
    const former = new Set([...this.#former, ...before].filter((site) => !owners.includes(site)));
    this.#former = [...former];
    this.#core.count("ward_configurations");
    this.#save();
    this.#relink();
  }

  #shouldChange(): boolean {
    const wanted = this.#wantedOwners();
    const current = this.#next ?? this.#effective;
    if (wanted === null) return false;
    if (current === null && wanted.length === 0) {
      this.#isClosed = false;
      return false;
    }
    return current === null || !same(wanted, current.owners);
  }

  async #change(): Promise<void> {
    const core = this.#core, replica = this.#replica;
    await core.rows.lock.run(async () => {
      const key = wardsKey(replica);
      const [old] = await core.rows.lookup([key]);
      const owners = this.#wantedOwners();
      // An owner that was wanted may have fallen silent since: with nobody in its place nothing changes (wanted.ts W2).
      if (replica !== core.replica || owners === null) return;
      const used = core.topology.wards.of(replica)?.number ?? 0;
      const number = 1 + Math.max(used, this.#effective?.number ?? 0, this.#next?.number ?? 0);
      const configuration = { number, owners, previous: this.#effective?.owners ?? [] };
      core.rows.apply(old, core.own(key, encodeJson(configuration)));
      // The owners of a configuration that is skipped would hold what they have been sent for ever, and keep deletions
      // with it (I9).
      const former = [...this.#former, ...this.#next?.owners ?? []];
      const owning = [...owners, ...configuration.previous];
      this.#former = [...new Set(former)].filter((site) => !owning.includes(site));
      this.#next = { ...configuration, position: core.rows.head };
      this.#save();
      this.#relink();
    });
    core.wake();
  }

  #relink(): void {
    const owners = new Set([...this.#effective?.owners ?? [], ...this.#next?.owners ?? []]);
    for (const site of [...this.#links.keys()]) if (!owners.has(site)) this.#links.delete(site);
    for (const site of owners) {
      if (!this.#links.has(site)) this.#links.set(site, new OwnerLink(site, this.#core));
    }
  }

  // ── The stream ──

  /** Notes the rows that a commit has made pending. */
  committed(frozen: Frozen): void {
    if (this.#links.size === 0) return;
    const { depth } = this.#core;
    for (const [key, row] of frozen.changes) {
      if (row === null || row.known < depth) continue;
      for (const link of this.#links.values()) link.note(key);
    }
  }

  /** Sends what is due (G2, G3); returns after how many milliseconds it wants to be called again at the latest. */
  async flush(mark: Mark): Promise<number> {
    if (mark.replica !== this.#replica || this.#core.resyncing) return Infinity;
    let waitMs = Infinity;
    for (const link of this.#links.values()) {
      const under = this.#under(link, mark.head);
      if (under === null) continue;
      waitMs = Math.min(waitMs, WARD_IDLE_MS);
      const wanted = this.#wanted > link.sentUpTo || this.#next !== null;
      if (!link.isDue(mark, under, wanted)) continue;
      const said = {
        kind: "ward",
        replica: mark.replica,
        ...under,
        after: link.isStreaming ? link.sentUpTo : mark.head,
        head: mark.head,
        clock: mark.clock,
        down: mark.down,
        reach: mark.reach.map(([own]) => own),
      } as const;
      const rows = await link.rows();
      if (rows === null) continue;
      const parts = [...chunks(rows, MESSAGE_BYTES_TARGET)];
      link.send(parts.map((chunk, part) => ({ ...said, part, ...chunk })), () => this.#core.wake());
    }
    this.#release();
    return waitMs;
  }

  /**
   * Returns the configuration under which an owner is spoken to; null: none. A configuration that is not on this disk
   * yet may be forgotten with this process, and its number given to another: an owner that had heard of it would refuse
   * that one as older for good.
   */
  #under(link: OwnerLink, durable: Position): { config: number; settled: boolean } | null {
    const { site } = link;
    const effective = this.#effective, next = this.#next;
    const isKnown = effective?.owners.includes(site) === true;
    if (isKnown && effective.number >= link.least) return { config: effective.number, settled: true };
    if (next === null || next.position > durable || !next.owners.includes(site)) return null;
    return { config: next.number, settled: false };
  }

  #release(): void {
    const now = this.#core.steady.nowMs();
    const config = this.#effective;
    if (this.#former.length === 0 || config === null || now - this.#releasedMs < WARD_RELEASE_MS) return;
    const knowIt = config.owners.every((owner) => this.#links.get(owner)?.settled === config.number);
    if (!knowIt) return;
    this.#releasedMs = now;
    for (const site of this.#former) {
      this.#core.send(site, { kind: "release", replica: this.#replica, config: config.number });
    }
  }

  warded(from: SiteId, message: Warded): void {
    if (message.replica !== this.#replica) return;
    if (this.#former.includes(from) && message.refused === "none" && message.position === 0) {
      this.#former = this.#former.filter((site) => site !== from);
      this.#save();
    }
    const link = this.#links.get(from);
    // Only what was on this disk was sent (G2).
    if (link !== undefined && !this.#core.hasHad(message.position)) {
      return this.#host.fail(new OlderDisk(this.#core, from, message.position));
    }
    if (link !== undefined) this.#noteRoom(from, message.refused);
    if (link?.heard(message) !== true) return;
    if (this.#isAlone && this.reached >= Math.max(this.#told, this.#core.rows.committedHead)) {
      this.#isAlone = false;
    }
    this.#host.moved();
    this.#core.wake();
  }

  /** Notes an owner that has no room, so that it is not chosen again for a while (G5). */
  #noteRoom(site: SiteId, refused: Warded["refused"]): void {
    if (refused !== "full" || isTooMuch(this.#core)) return;
    this.#fullUntilMs.set(site, this.#core.steady.nowMs() + WARD_FULL_MS_MAX);
    this.#core.count("ward_owner_full");
    this.#core.wake();
  }

  connected(site: SiteId): void {
    this.#links.get(site)?.connected();
    this.#core.wake();
  }

  disconnected(site: SiteId): void {
    this.#links.get(site)?.broken();
  }
}
