/**
 * Recovery of wards whose incarnation is over: the owner takes the rows into its own journal, as rows pending here, and
 * then says so in a system row. A site that gets that row over the tree has got, before it, all of the ward (I1).
 *
 * Y1  The rows are taken when what they may depend on has arrived: the stable clock of the common ancestor has reached
 *     the ward's clock. The end of the incarnation is known here by then, so it does not hold that clock back. That
 *     clock does not tell of rows that are on their way to another parent (adoption.ts F3): where there are some, the
 *     ward waits for them, too.
 * Y2  Rows at or below the watermark are not taken (I9). Where one of them may be missing at the root, none are, since
 *     the others may depend on it, and the row says that nothing was recovered: its sessions are told of a loss. An
 *     owner that got its rows as they were written never comes to that, since its floor holds the watermark back. An
 *     owner does that took the place of another when the rows were older than the horizon, the source cut off from the
 *     root and both of those disks lost since, while it was cut off itself.
 * Y6  Of a ward without rows the root has all. It waits for no causes: its owner says so as soon as the end is known,
 *     but for what is on its way to another parent, and stands in for it until Y1 as before. Else one child that is
 *     away would hold back that word, and if the owner's disk was lost hours after the other, all sessions of the ward
 *     would be lost.
 * Y3  An owner without a ward says that it has recovered nothing: so it can be known that something is lost.
 * Y4  For a token, every incarnation on its path that is over must have been recovered as far as the token, and the
 *     incarnation below, had seen it.
 * Y5  Under a configuration sessions are told something when all its owners have acknowledged that it is in effect
 *     (source.ts). So where one of them holds the ward, and does not know that, what open sessions were told is at any
 *     owner of the one before.
 * Y7  An incarnation that lives, below one that went on without all that the lost disk above it had, goes on, too, as
 *     soon as it is heard of. Only then do its owners say how far it had seen that disk's journal (Y4): until then
 *     nobody knows what of that journal a session saw that is gone. Where the incarnation has no owners nobody ever
 *     will.
 */
import type { TokenState } from "../api/api.ts";
import { followedOf } from "../api/token_path.ts";
import type { Core } from "../core/core.ts";
import type { ClockValue, ReplicaNumber, Row } from "../model/row.ts";
import { encodeJson, type Topology } from "../members/topology.ts";
import { type Configuration, recoveredKey, type RecoveredWard } from "../members/configuration.ts";
import type { SiteId } from "../model/ports.ts";
import type { Keeper } from "./keeper.ts";
import type { Ward } from "./ward.ts";

export class WardRecovery {
  readonly #core: Core;
  readonly #keeper: Keeper;
  readonly #stableOwn: () => ClockValue;
  readonly #waiting = new Set<ReplicaNumber>();
  #isTaking = false;

  constructor(core: Core, keeper: Keeper, stableOwn: () => ClockValue) {
    this.#core = core;
    this.#keeper = keeper;
    this.#stableOwn = stableOwn;
  }

  /** Looks whether a ward is to be taken now. */
  async sweep(): Promise<void> {
    const core = this.#core, { topology } = core;
    if (core.replica === 0 || core.resyncing || this.#isTaking) return;
    if (topology.wards.changed) this.#find();
    if (this.#waiting.size === 0) return;
    this.#isTaking = true;
    try {
      for (const replica of [...this.#waiting]) if (await this.#take(replica)) this.#waiting.delete(replica);
    } finally {
      this.#isTaking = false;
    }
  }

  #find(): void {
    const { topology, config: { site } } = this.#core;
    topology.wards.changed = false;
    this.#keeper.forgetFormer();
    for (const replica of topology.wards.all()) {
      if (topology.recordedEnd(replica) === undefined || topology.wards.recovered(replica).has(site)) {
        continue;
      }
      if (topology.wards.owners(replica).includes(site)) this.#waiting.add(replica);
    }
    for (const ward of this.#keeper.all()) {
      if (topology.recordedEnd(ward.replica) !== undefined) this.#waiting.add(ward.replica);
    }
  }

  /** Takes a ward; true where nothing of it is left to do. */
  async #take(replica: ReplicaNumber): Promise<boolean> {
    const core = this.#core;
    const ward = [...this.#keeper.all()].find((each) => each.replica === replica);
    return await core.rows.lock.run(async () => {
      // The lock is held: below another parent the ward's causes would be elsewhere.
      const causesAt = ward === undefined ? 0 : this.#causesAt(ward);
      if (causesAt === null) {
        if (ward !== undefined && this.#isAtRoot(ward)) await this.#say(replica, ward);
        return false;
      }
      const held = [...ward?.rows() ?? []], isOld = (row: Row) => row.clock <= core.watermark;
      const isWhole = !held.some((row) => isOld(row) && core.mayHaveBeenLost(row)); // Y2
      const rows = isWhole ? held.filter((row) => !isOld(row)) : []; // Y2
      const olds = await core.rows.lookup(rows.map((row) => row.key));
      rows.forEach((row, i) => core.rows.apply(olds[i], { ...row, known: core.depth }));
      if (rows.length > 0) core.takes(causesAt);
      core.count("recovered_rows", rows.length);
      await this.#say(replica, ward, isWhole);
      if (ward !== undefined) this.#keeper.forget(ward);
      return true;
    });
  }

  /** Reports whether the root has all rows of a ward (Y6). */
  #isAtRoot({ replica, size }: Ward): boolean {
    const { topology } = this.#core;
    return size === 0 && topology.incarnation(replica) !== undefined &&
      topology.movingSince(replica, 0) === Infinity;
  }

  /** Writes the system row that a ward was recovered, behind its rows, where it does not stand already. */
  async #say(replica: ReplicaNumber, ward: Ward | undefined, isWhole = true): Promise<void> {
    const core = this.#core, { site } = core.config;
    const recovered: RecoveredWard = {
      position: isWhole ? ward?.position ?? 0 : 0, // Y3
      down: ward?.down ?? [],
      config: ward?.settled ?? 0,
      clock: ward?.clock ?? 0,
    };
    const said = core.topology.wards.recovered(replica).get(site);
    if (said !== undefined && said.position === recovered.position) return;
    const key = recoveredKey(replica, site);
    const [old] = await core.rows.lookup([key]);
    core.rows.apply(old, core.own(key, encodeJson(recovered)));
    core.count("recovered_wards");
    core.wake();
  }

  /**
   * Returns the depth of the ancestor in whose journal, as it has come here, all causes of a ward are (Y1); null: not
   * yet.
   */
  #causesAt(ward: Ward): number | null {
    const core = this.#core;
    const known = core.topology.incarnation(ward.replica);
    if (known === undefined) return null;
    const mine = [...core.path, core.config.site];
    let depth = 0;
    while (depth + 1 < mine.length && mine[depth + 1] === known.path[depth + 1]) depth++;
    const stable = depth === core.depth ? this.#stableOwn() : core.stable[depth] ?? 0;
    return Math.min(stable, core.topology.movingSince(ward.replica, depth)) >= ward.clock ? depth : null;
  }
}

/** Standing of a token of an incarnation that is over. */
export type TokenStanding =
  /** All that the token saw was recovered: the common ancestor's stable clock has to reach this clock. */
  | { readonly kind: "recovered"; readonly clock: ClockValue }
  /** An owner has not said yet what it has. */
  | { readonly kind: "unknown" }
  | { readonly kind: "lost" };

/** Finds where a token of an incarnation that is over stands (Y4). */
export function recoveryOf(topology: Topology, token: TokenState): TokenStanding {
  let at: ReplicaNumber = token.replica, least = token.path.at(-1) ?? 0, clock = token.clock;
  let isOpen = token.open;
  for (;;) {
    const known = topology.incarnation(at);
    if (known === undefined) return { kind: "unknown" };
    if (topology.ended(at) === undefined) {
      if (!mayHaveLost(topology, at, token)) return { kind: "recovered", clock };
      return { kind: topology.wards.of(at) === undefined ? "lost" : "unknown" }; // Y7
    }
    // The disk above this incarnation is gone, and it has not been heard of since: it may still have everything.
    if (topology.recordedEnd(at) === undefined) return { kind: "unknown" };
    const found = bestOf(topology, at, least, isOpen);
    if (found === "unknown" || found === "lost") return { kind: found };
    if (isOpen) clock = Math.max(clock, found.clock);
    isOpen = false;
    at = known.parent;
    const above = known.path.length - 2;
    least = Math.max(found.down[above] ?? 0, followedOf(token, above));
  }
}

/**
 * Reports whether a token's session may have seen what was lost with a former parent of an incarnation on its path, or
 * of one above that: an open token's clock says too little.
 */
export function mayHaveLost(
  topology: Topology,
  at: ReplicaNumber,
  { path, clock, open }: TokenState,
): boolean {
  return topology.mayHaveLost(at, path, open ? Infinity : clock);
}

function bestOf(
  topology: Topology,
  replica: ReplicaNumber,
  least: number,
  isOpen: boolean,
): RecoveredWard | "unknown" | "lost" {
  const { wards } = topology;
  const configuration = wards.of(replica);
  if (configuration === undefined) return "lost";
  // Only the owners in effect at the end know what an open session was told later; a removed site may have told more.
  if (isOpen && topology.endedByRemoval(replica)) return "lost";
  const all = [...wards.recovered(replica).values()].sort((a, b) => b.position - a.position);
  const [most] = all;
  // The incarnation's disk is in use: what it had told is pushed under another number, and the stable clock says when.
  if (most !== undefined && !isOpen && topology.goesOn(replica)) return most;
  for (const found of all) {
    if (found.position >= least && (!isOpen || found.config === configuration.number)) return found;
  }
  if (isOpen && !wasInEffect(configuration, wards.recovered(replica))) {
    const previous = configuration.previous.flatMap((owner) => wards.recovered(replica).get(owner) ?? []);
    const [before] = previous.filter(({ config, position }) => config > 0 && position >= least)
      .sort((a, b) => b.position - a.position);
    if (before !== undefined) return before;
  }
  const silent = wards.owners(replica).some((owner) =>
    !wards.recovered(replica).has(owner) && !topology.isRemoved(owner)
  );
  return silent ? "unknown" : "lost";
}

/** Reports whether sessions may have been told something under a configuration (Y5). */
function wasInEffect(
  { number, owners }: Configuration,
  recovered: ReadonlyMap<SiteId, RecoveredWard>,
): boolean {
  return !owners.some((owner) => {
    const found = recovered.get(owner);
    return found !== undefined && found.position > 0 && found.config !== number;
  });
}
