/**
 * A site that lost its disk takes back what it had told: before it passes on anything of what its children push again,
 * its owners' wards stand in its own journal. A row that a child got by its feed may be the cause of one that was
 * written there, and the child need not have it: it has only what it covers. Rows in this journal again are not lost
 * with their owner's disk: that is why a site without children takes them back as well.
 *
 * Life: all children have pushed again → the owners of each former incarnation are asked, in the way in which they are
 * asked to stand in for it → the rows are taken, as pending here → over; or the site goes on without some, and asks
 * their owners beside its work until they have answered → over. An owner that learns of the end does the same as ever
 * (recovery.ts): the same rows come over the tree once more, and then the row that says so.
 *
 * B1  Only what the disk had under this very incarnation of the parent is taken: a ward is whole together with the
 *     journal of the parent, which has to have come here as far as the ward's `down` (PROTOCOL C3). Below another
 *     incarnation the ward's causes may be away themselves.
 * B2  All that was told is at an owner that knows the newest configuration to be in effect; or, where nothing was told
 *     under it, at an owner of the one before. The newest is known here: its row has passed the parent, and came from
 *     there.
 * B3  It is waited for `OWNERS_WAIT_MS` at most, as with answers (PROTOCOL O6): a branch does not stand still for the
 *     owners of the site above it. Then the log says so, and what has been answered is taken.
 * B4  While this site has not pushed, its former floor holds, so no row of a ward is at or below the watermark (I9).
 *     Where one is that the root may not have, the ward is left alone (recovery.ts Y2).
 * B5  Behind the rows stands the row that says they were recovered, as behind those that an owner takes (recovery.ts):
 *     they need not wait for a stable clock, which one child that is away holds back for as long, since this site's own
 *     is held back until they are here (B1). The rest of the ward is in the journal of this incarnation of the parent
 *     before the row of the end; so where that journal is lost, too, its own owners must have had it up to where this
 *     site has it now.
 * B6  An owner that was silent then is asked on, by later processes, too, until the tree has its word: it may have rows
 *     on its disk alone for as long as a stable clock stands. By then this site has said floors, so nothing that is
 *     older than the horizon is taken so, as with a carry (I9).
 */
import type { Core } from "../core/core.ts";
import { OWNERS_WAIT_MS, REGAIN_EVERY_MS, STAND_IN_AFTER_MS } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import { recoveredKey, type RecoveredWard } from "../members/configuration.ts";
import { encodeJson } from "../members/topology.ts";
import type { ReplicaNumber, Row } from "../model/row.ts";
import type { StandIn, StoodIn } from "../wire/ward_message.ts";

export interface RetakeHost {
  /** Asks an owner for what it holds; null: no answer in time. */
  ask(owner: SiteId, wanted: Pick<StandIn, "replica" | "depth" | "position">): Promise<StoodIn | null>;
  fail(error: unknown): void;
}

/** An incarnation that had the lost disk. */
interface Former {
  readonly replica: ReplicaNumber;
  readonly owners: readonly SiteId[];
  readonly answers: Map<SiteId, StoodIn>;
}

export class Retake {
  readonly #core: Core;
  readonly #host: RetakeHost;
  /** Number under which nothing is left to take. */
  #overFor: ReplicaNumber = 0;
  #isRunning = false;
  /** Owners from which nothing more is to be taken, by incarnation. */
  readonly #heard = new Map<ReplicaNumber, Set<SiteId>>();

  constructor(core: Core, host: RetakeHost) {
    this.#core = core;
    this.#host = host;
  }

  /** Reports whether nothing is left to take; where something is, calls back when to ask again. */
  isOver(again: () => void): boolean {
    if (this.#overFor === this.#core.replica) return true;
    if (this.#isRunning) return false;
    const formers = this.#formers();
    if (formers.length === 0) return true;
    this.#isRunning = true;
    this.#take(formers).then(() => {
      this.#isRunning = false;
      if (!this.#core.closed) again();
    }).catch((error) => this.#host.fail(error));
    return false;
  }

  /** Begins to ask owners that were silent, beside all else that this site does from now on (B6). */
  begin(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#rest().catch((error) => this.#host.fail(error)).finally(() => this.#isRunning = false);
  }

  /** Asks owners that were silent, again and again, until nothing is left to take (B6). */
  async #rest(): Promise<void> {
    const core = this.#core, { replica } = core;
    const isHere = () => core.replica === replica && !core.closed;
    for (let formers = this.#formers(); formers.length > 0; formers = this.#formers()) {
      await Promise.all(formers.map((former) => this.#ask(former)));
      if (!isHere()) return;
      await core.rows.lock.run(async () => {
        if (isHere()) { for (const former of formers) await this.#install(former, true); }
      });
      core.wake();
      await this.#pause(REGAIN_EVERY_MS);
      if (!isHere()) return;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#core.ports.clock.after(ms, resolve));
  }

  /** Lists the former incarnations of which something may be taken (B1). */
  #formers(): Former[] {
    const { topology, replica, parentReplica, config: { site } } = this.#core, { wards } = topology;
    return [...wards.all()].flatMap((former) => {
      const known = topology.incarnation(former);
      if (former === replica || known?.site !== site || known.parent !== parentReplica) return [];
      if (topology.goesOn(former)) return []; // nothing was lost
      const recovered = wards.recovered(former), newest = wards.of(former)?.number;
      const isIn = [...recovered.values()].some(({ position, config }) => position > 0 && config === newest);
      const heard = this.#heard.get(former);
      const isAsked = (id: SiteId) =>
        !topology.isRemoved(id) && !recovered.has(id) && heard?.has(id) !== true;
      const owners = wards.owners(former).filter(isAsked);
      if (isIn || owners.length === 0 || topology.endedByRemoval(former)) return [];
      return [{ replica: former, owners, answers: new Map() }];
    });
  }

  async #take(formers: readonly Former[]): Promise<void> {
    const core = this.#core, { replica } = core;
    const untilMs = core.steady.nowMs() + OWNERS_WAIT_MS;
    const isHere = () => core.replica === replica && !core.closed;
    while (isHere()) {
      await Promise.all(formers.map((former) => this.#ask(former)));
      const late = formers.filter((former) => !this.#isWhole(former) || !this.#hasCauses(former));
      if (!isHere()) return;
      if (late.length > 0 && core.steady.nowMs() < untilMs) { // B3
        await this.#pause(STAND_IN_AFTER_MS);
        continue;
      }
      for (const { replica, owners, answers } of late) {
        this.#miss(replica, { owners: owners.filter((owner) => !answers.has(owner)) });
      }
      await core.rows.lock.run(async () => {
        if (isHere()) { for (const former of formers) await this.#install(former); }
      });
      if (isHere()) this.#overFor = replica;
      return core.wake();
    }
  }

  /** Asks the owners of an incarnation; returns as soon as what was told is there, or nobody is left to answer. */
  #ask(former: Former): Promise<void> {
    const { replica, owners, answers } = former;
    const silent = owners.filter((owner) => !answers.has(owner));
    if (this.#isWhole(former)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      let left = silent.length;
      for (const owner of silent) {
        this.#host.ask(owner, { replica, depth: this.#core.depth - 1, position: 0 }).then((part) => {
          if (part !== null) answers.set(owner, part);
          if (--left === 0 || this.#isWhole(former)) resolve();
        }, reject);
      }
    });
  }

  /** Reports whether the answers have all that was told (B2), or all owners have answered. */
  #isWhole({ replica, owners, answers }: Former): boolean {
    const newest = this.#core.topology.wards.of(replica)?.number;
    const isNewest = ({ outcome, config }: StoodIn) => outcome === "rows" && config === newest;
    return [...answers.values()].some(isNewest) || owners.every((owner) => answers.has(owner));
  }

  /** Reports whether the parent's journal has come as far as all answers depend on (PROTOCOL C3). */
  #hasCauses({ answers }: Former): boolean {
    return [...answers.values()].every((part) => this.#isBelow(part));
  }

  #isBelow({ down }: StoodIn): boolean {
    const depth = this.#core.depth - 1;
    return (this.#core.down[depth] ?? 0) >= (down[depth] ?? 0);
  }

  /**
   * Notes that rows were not taken back: until an owner has put them into the tree, others may see what depends on them
   * without them.
   */
  #miss(incarnation: ReplicaNumber, detail: Record<string, unknown>): void {
    this.#core.count("retake_missed");
    this.#core.ports.note("ward_not_retaken", { incarnation, ...detail });
  }

  /** @param late whether this site has pushed since (B6). */
  async #install({ replica, answers }: Former, late = false): Promise<void> {
    const core = this.#core, taken: StoodIn[] = [], heard = new Set<SiteId>();
    const isPast = (row: Row) => core.isCollectable(row) || (late && core.isTooOldToCarry(row));
    for (const [owner, part] of answers) {
      const isOld = part.rows.some((row) => isPast(row) && core.mayHaveBeenLost(row)); // B4
      if (part.outcome === "too_large" || isOld) this.#miss(replica, { owner, too: isOld ? "old" : "large" });
      if (part.outcome !== "rows" || isOld || this.#isBelow(part)) heard.add(owner);
      if (part.outcome !== "rows" || isOld || !this.#isBelow(part)) continue;
      const rows = part.rows.filter((row) => !isPast(row));
      const found = await core.rows.lookup(rows.map((row) => row.key));
      rows.forEach((row, i) => core.rows.apply(found[i], { ...row, known: core.depth }));
      core.clock.merge(part.clock);
      core.takes(core.depth - 1);
      core.count("retaken_wards");
      core.count("retaken_rows", rows.length);
      taken.push(part);
    }
    if (taken.length > 0) await this.#say(replica, taken);
    // The row of the end is still to be written (B5).
    if (core.topology.recordedEnd(replica) === undefined) return;
    this.#heard.set(replica, new Set([...this.#heard.get(replica) ?? [], ...heard]));
  }

  /** Writes the row that says what was taken back (B5). */
  async #say(replica: ReplicaNumber, taken: readonly StoodIn[]): Promise<void> {
    const core = this.#core, { topology, config: { site } } = core;
    if (topology.recordedEnd(replica) === undefined) return;
    const most = (of: (part: StoodIn) => number) => Math.max(...taken.map(of));
    const position = most((part) => part.position), config = most((part) => part.config);
    if (position === 0) return; // none of them had anything of it
    const said = topology.wards.recovered(replica).get(site);
    if (said !== undefined && said.position >= position && said.config >= config) return;
    const key = recoveredKey(replica, site);
    const [old] = await core.rows.lookup([key]);
    const word: RecoveredWard = { position, down: core.down, config, clock: most((part) => part.clock) };
    core.rows.apply(old, core.own(key, encodeJson(word)));
  }
}
