/**
 * A site that will never come back is taken off the tree.
 *
 * The root ends the site's incarnations, deletes its row and writes that it is removed, in one commit; from there
 * it comes to every site as rows do. The former parent hears it → gives the child up → its stable clock and the
 * wait after the loss of its own disk count without it. `admit` lets the site in again, as a new one.
 *
 * R1  The end that the root writes is the stable clock that the site's whole branch had pushed: what the site told
 *     up to there is in the root's journal (PROTOCOL I4), whatever its parent has lost. An incarnation that the
 *     root has not heard of is ended by the parent that enrolled it.
 * R2  A child counts in its parent's stable clock until the end of its incarnation is a row there (I8).
 * R3  A disk of a removed site is not taken: meanwhile others have collected what its rows may need (I9), and its
 *     sessions were told of a loss. A blank one is.
 * R4  A site with children is not removed: their ends would follow from no clock that the root has.
 */
import type { Removed } from "./api.ts";
import type { Child } from "./child.ts";
import type { Core } from "./core.ts";
import type { Key } from "./key.ts";
import type { SiteId } from "./ports.ts";
import type { ClockValue, ReplicaNumber } from "./row.ts";
import { encodeJson, endedKey, removedKey, siteKey } from "./topology.ts";

interface Children {
  all(): Iterable<Child>;
  dismiss(child: Child): void;
}

/** Removes sites at the root, and acts upon it everywhere else. */
export class Removals {
  readonly #core: Core;
  readonly #children: Children;

  constructor(core: Core, children: Children) {
    this.#core = core;
    this.#children = children;
  }

  /** Ends a site (R1, R4). */
  async remove(id: SiteId): Promise<Removed> {
    const core = this.#core;
    const removed = await core.rows.lock.run(async (): Promise<Removed> => {
      const { topology } = core;
      const record = topology.site(id), living = topology.living(id);
      // One that was given a number may be gone before its parent's row of it has come here.
      if (!core.isRoot || (record === undefined && living.length === 0)) return { kind: "unknown" };
      if (record?.parent === null) return { kind: "root" };
      const children = topology.joinedBelow(id);
      if (children.length > 0) return { kind: "has_children", children: children.sort() };
      const ends = new Set([...living, ...record === undefined ? [] : [record.number]]);
      const stable = this.#branchStable([...ends][0] ?? 0);
      for (const number of ends) await this.#end(number, topology.recordedEnd(number) ?? stable);
      await this.#write(siteKey(id), null);
      await this.#write(removedKey(id), { atMs: core.ports.clock.nowMs() });
      return { kind: "removed", stable };
    });
    if (removed.kind === "removed") {
      core.count("removed");
      await this.sweep();
      core.advanced();
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

  /** Whether a hello is not answered (R3). */
  refuses(id: SiteId, replica: ReplicaNumber): boolean {
    const { topology, ports } = this.#core;
    const isRemoved = topology.isRemoved(id);
    if (!isRemoved && !topology.endedByRemoval(replica)) return false;
    ports.note("child_removed", { child: id, why: isRemoved ? "removed" : "old_disk" });
    return true;
  }

  /** Gives up the children that were removed since it was last called (R2). */
  async sweep(): Promise<void> {
    const core = this.#core, { topology } = core;
    if (!topology.removalsChanged) return;
    await core.rows.lock.run(async () => {
      topology.removalsChanged = false;
      for (const child of [...this.#children.all()]) {
        if (!topology.isRemoved(child.id) && !topology.endedByRemoval(child.replica)) continue;
        if (child.replica !== 0 && topology.recordedEnd(child.replica) === undefined) {
          await this.#end(child.replica, child.stable);
        }
        // By the clock of whoever wrote it last: that is this site, which enrolled the child, perhaps lately.
        if (topology.isRemoved(child.id)) await this.#write(siteKey(child.id), null);
        this.#children.dismiss(child);
        this.refuses(child.id, child.replica);
      }
    });
    core.wake();
  }

  /** What the branch in which an incarnation stands has told the root. */
  #branchStable(number: ReplicaNumber): ClockValue {
    const branch = this.#core.topology.incarnation(number)?.path[1];
    for (const child of this.#children.all()) if (child.id === branch) return child.stable;
    return 0;
  }

  #end(number: ReplicaNumber, stable: ClockValue): Promise<void> {
    return this.#write(endedKey(number), { stable, removed: true });
  }

  async #write(key: Key, value: object | null): Promise<void> {
    const { rows } = this.#core;
    const [old] = await rows.lookup([key]);
    rows.apply(old, this.#core.own(key, value === null ? null : encodeJson(value)));
  }
}
