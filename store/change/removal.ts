/**
 * Removal of a site that will never come back: it is taken off the tree.
 *
 * The root ends the site's incarnations, deletes its row and writes that it is removed, in one commit; from there it
 * comes to every site as rows do. The former parent hears it → gives the child up → its stable clock and the wait after
 * the loss of its own disk count without it. `admit` lets the site in again, as a new one.
 *
 * R1  The end that the root writes is the stable clock that the site's whole branch had pushed: what the site told up
 *     to there is in the root's journal (PROTOCOL I4), whatever its parent has lost. An incarnation that the root has
 *     not heard of is ended by the parent that enrolled it. Of an incarnation that was drained before (members.ts A1)
 *     the root has all that it ever told, whatever else its branch lacks: where the clock of its row is later, that is
 *     the end. An end that is no earlier than that row says so (`told`), for those who never had the row, or not any
 *     more.
 * R2  A child counts in its parent's stable clock until the end of its incarnation is a row there (I8).
 * R3  A disk of a removed site is not taken: meanwhile others have collected what its rows may need (I9), and its
 *     sessions were told of a loss. A blank one is.
 * R5  No site is taken below itself, and no other disk of a site that lives under another parent: that one would end.
 *     Where it is gone for good, or its parent is, an operator has to say so. Of two numbers that one parent gave, only
 *     the later one lives: it may have asked twice for a blank disk, or did not hear which one was taken.
 * R6  A disk that was another site's is not taken: that site lives with it, or has lost what its sessions saw, and
 *     would end here.
 * R7  The host hears of each hello that is not answered, since it ends the link; the log once per site, reason and
 *     minute (quiet.ts).
 * R8  A site is not taken that has had a position of this site's journal, or of the root's, which that journal never
 *     had (gaps.ts), or a number that the root never gave: that disk is an older copy of itself (a backup that was put
 *     back), and positions and numbers would mean two things.
 * R4  A site with children is not removed: their ends would follow from no clock that the root has. A child that moved
 *     counts until it has brought all that it had (adoption.ts). A site that came back before it heard its number is no
 *     child: it says so itself (moving.ts), since the site that gave the number may be what is removed.
 */
import type { SiteRemoval } from "../api/api.ts";
import type { Child } from "../core/child.ts";
import type { Core } from "../core/core.ts";
import type { Key } from "../model/key.ts";
import type { ChildHello } from "../wire/message.ts";
import { unused } from "./moving.ts";
import type { SiteId } from "../model/ports.ts";
import { Quiet } from "../model/quiet.ts";
import type { ClockValue, ReplicaNumber } from "../model/row.ts";
import { encodeJson, type Ended, endedKey, removedKey, siteKey } from "../members/topology.ts";

interface Children {
  all(): Iterable<Child>;
  among(sites: readonly SiteId[]): Child[];
  dismiss(child: Child): void;
}

/** Removals: made at the root, and acted upon at all other sites. */
export class Removals {
  readonly #core: Core;
  readonly #children: Children;
  readonly #quiet: Quiet;

  constructor(core: Core, children: Children) {
    this.#core = core;
    this.#children = children;
    this.#quiet = new Quiet(() => core.steady.nowMs());
  }

  /** Takes a site off the tree (R1, R4). */
  async remove(id: SiteId): Promise<SiteRemoval> {
    const core = this.#core;
    const removed = await core.rows.lock.run(async (): Promise<SiteRemoval> => {
      const { topology } = core;
      const record = topology.site(id), living = topology.living(id);
      // A site that was given a number may be gone before its parent's row of it has come here; and one that was let in
      // again, before it has joined: others may still wait for what it owned.
      const isGone = topology.isRemoved(id) || !topology.hasJoined(id);
      if (!core.isRoot || (record === undefined && living.length === 0 && isGone)) return { kind: "unknown" };
      if (record?.parent === null) return { kind: "root" };
      const children = new Set([...topology.joinedBelow(id), ...topology.movingFrom(id)]);
      if (children.size > 0) return { kind: "has_children", children: [...children].sort() };
      const ends = new Set([...living, ...record === undefined ? [] : [record.number]]);
      const stable = topology.succession.bound(this.#branchStable([...ends][0] ?? 0));
      for (const number of ends) {
        const told = topology.announced(number);
        const end = topology.recordedEnd(number) ?? Math.max(stable, told);
        await this.#end(number, end, told < 0 || end < told ? {} : { told });
      }
      await this.#write(siteKey(id), null);
      await this.#write(removedKey(id), { atMs: core.wall.nowMs() });
      return { kind: "removed", stable };
    });
    if (removed.kind === "removed") {
      core.count("removed");
      await this.sweep();
      core.wake();
    }
    return removed;
  }

  /** Lets a removed site in again. */
  async admit(id: SiteId): Promise<boolean> {
    const core = this.#core;
    const admitted = await core.rows.lock.run(async () => {
      if (!core.isRoot || !core.topology.isRemoved(id)) return false;
      await this.#write(removedKey(id), null);
      return true;
    });
    core.wake();
    return admitted;
  }

  /** Reports whether a hello is not answered (R3, R5–R8). */
  refuses(
    id: SiteId,
    { replica, moved, parentReplica, cursor }: Pick<
      ChildHello,
      "replica" | "moved" | "parentReplica" | "cursor"
    >,
  ): boolean {
    const { topology, ports, path, config } = this.#core;
    const isNew = replica !== 0 && this.#core.isRoot && topology.incarnation(replica) === undefined;
    const isAhead = parentReplica !== 0 && parentReplica === this.#core.replica &&
        !this.#core.hasHad(cursor) ||
      topology.rootGaps.around(moved?.floor ?? 0) !== undefined;
    const elsewhere = this.#livesBelow(id, replica, moved?.lost ?? []);
    const isRemoved = topology.isRemoved(id);
    const why = isRemoved
      ? "removed"
      : topology.endedByRemoval(replica)
      ? "old_disk"
      : (topology.incarnation(replica)?.site ?? id) !== id
      ? "other_disk"
      : path.includes(id) || id === config.site
      ? "above"
      : elsewhere !== undefined
      ? "elsewhere"
      : isNew || isAhead
      ? "ahead"
      : null;
    if (why === null) return false;
    this.#core.count("child_removed");
    const before = this.#quiet.admits(`${id} ${why}`);
    ports.note("child_removed", { child: id, why, parent: elsewhere, before });
    return true;
  }

  /** Returns another parent, below which the site lives with another disk than the one that comes (R5). */
  #livesBelow(id: SiteId, disk: ReplicaNumber, lost: readonly SiteId[]): SiteId | undefined {
    const { topology, config } = this.#core;
    return topology.living(id)
      .filter((number) => !topology.isOneDisk(number, disk) && !topology.isReplaced(number, disk))
      .map((number) => topology.incarnation(number)?.path.at(-2))
      .find((parent) =>
        parent !== undefined && parent !== config.site && !lost.includes(parent) &&
        !topology.isRemoved(parent)
      );
  }

  /** Gives up the children that were removed since it was last called (R2). */
  async sweep(): Promise<void> {
    const core = this.#core, { topology } = core;
    if (topology.departed.size === 0) return;
    await core.rows.lock.run(async () => {
      const departed = [...topology.departed];
      topology.departed.clear();
      // This site's children stand and end with it.
      const isOwn = departed.includes(core.config.site);
      if (isOwn) {
        for (const number of unused(core)) await this.#write(endedKey(number), { stable: 0, unused: true });
      }
      for (const child of isOwn ? [...this.#children.all()] : this.#children.among(departed)) {
        if (this.#wasNever(child)) await this.#write(endedKey(child.replica), { stable: 0 });
        if (this.#isElsewhere(child)) {
          this.#children.dismiss(child);
          continue;
        }
        if (!topology.isRemoved(child.id) && !topology.endedByRemoval(child.replica)) continue;
        if (child.replica !== 0 && topology.recordedEnd(child.replica) === undefined) {
          await this.#end(child.replica, child.stable);
        }
        // The deletion is dated by the clock of the site that wrote the row last: that is this site, which enrolled the
        // child, perhaps lately. Where the row is gone already, a deletion by a clock ahead would outlive the row of a
        // site that is let in again.
        if (topology.isRemoved(child.id) && topology.site(child.id) !== undefined) {
          await this.#write(siteKey(child.id), null);
        }
        this.#children.dismiss(child);
        this.refuses(child.id, { replica: child.replica, parentReplica: 0, cursor: 0 });
      }
    });
    core.wake();
  }

  /**
   * Reports whether a child is another's by now: what it may still have to bring is no matter of this site's (adoption
   * F3).
   */
  #isElsewhere({ id, replica, connected }: Child): boolean {
    const { topology, config } = this.#core;
    const isUnused = topology.succession.isUnused(replica);
    if (topology.ended(replica) === undefined && !isUnused) return false;
    if (topology.site(id)?.parent === config.site && !isUnused) return false;
    if (topology.isRemoved(id) || topology.endedByRemoval(replica)) return false;
    // The child may be about to say hello to this site: it is looked at again when that has come to an end.
    if (connected) topology.departed.add(id);
    return !connected;
  }

  /**
   * Reports whether a number that was given here has not been used, since its site was on its way to another parent.
   * Should that be wrong, the site takes another number when it says hello (downlinks.ts).
   */
  #wasNever({ id, replica, connected, pushed }: Child): boolean {
    const { topology, config } = this.#core;
    const known = topology.site(id);
    // The child is looked at again when its link has gone.
    if (connected && known !== undefined && known.parent !== config.site) topology.departed.add(id);
    return !connected && pushed === 0 && replica !== 0 && topology.ended(replica) === undefined &&
      known !== undefined && known.number !== replica && known.parent !== config.site;
  }

  /** Returns the stable clock that the branch of an incarnation has told the root. */
  #branchStable(number: ReplicaNumber): ClockValue {
    const branch = this.#core.topology.incarnation(number)?.path[1];
    for (const child of this.#children.all()) if (child.id === branch) return child.stable;
    return 0;
  }

  #end(number: ReplicaNumber, stable: ClockValue, word: Pick<Ended, "told"> = {}): Promise<void> {
    return this.#write(endedKey(number), { stable, removed: true, ...word });
  }

  async #write(key: Key, value: object | null): Promise<void> {
    const { rows } = this.#core;
    const [old] = await rows.lookup([key]);
    rows.apply(old, this.#core.own(key, value === null ? null : encodeJson(value)));
  }
}
