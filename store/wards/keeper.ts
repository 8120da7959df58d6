/**
 * The wards that this site holds for others: taking them in, and answering from them.
 *
 * Life of a ward: first message of a source → … → forgotten when its source releases it, when a configuration without
 * this site is known over the tree, or when its incarnation is over and its rows stand in this site's own journal
 * (recovery.ts). A ward that nobody forgot would keep deletions in the whole tree (PROTOCOL I9).
 *
 * K1  Nothing is acknowledged before it is on this site's disk, and nothing beyond what is contiguous (ward.ts A1).
 * K2  A ward is taken from the site of a living incarnation only, and under no configuration older than one heard of.
 * K3  All wards together are bounded, too: an owner that many have chosen must outlive an hour without a root.
 */
import { newestClock } from "../core/clock_guard.ts";
import type { Core } from "../core/core.ts";
import { CARRY_BYTES_MAX, WARDS_BYTES_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { ReplicaNumber } from "../model/row.ts";
import { wireBytes } from "../wire/wire_row.ts";
import type { Release, StandIn, StoodIn, WardMessage, WardRefusal } from "../wire/ward_message.ts";
import { Ward, WARD_RECORD } from "./ward.ts";

export class Keeper {
  readonly #core: Core;
  readonly #afterCommit: () => Promise<void>;
  readonly #wards = new Map<ReplicaNumber, Ward>();
  readonly #bytesMax: number;

  /**
   * @param afterCommit resolves when what was recorded before the call is on disk.
   * @param bytesMax of all wards together (K3).
   */
  constructor(core: Core, afterCommit: () => Promise<void>, bytesMax = WARDS_BYTES_MAX) {
    this.#core = core;
    this.#bytesMax = bytesMax;
    this.#afterCommit = afterCommit;
  }

  // ── Disk ──

  restore(name: string, value: Uint8Array): boolean {
    if (!name.startsWith(WARD_RECORD)) return false;
    const [number = "", key] = name.slice(WARD_RECORD.length).split("/");
    const ward = this.#ward(Number(number));
    if (key === undefined) ward.restore(value);
    else ward.restoreRow(value);
    return true;
  }

  /** Notes that all records were restored. */
  loaded(): void {
    for (const ward of this.#wards.values()) {
      ward.onDisk = ward.position;
      ward.sort();
    }
  }

  #ward(replica: ReplicaNumber): Ward {
    let ward = this.#wards.get(replica);
    if (ward === undefined) {
      ward = new Ward(replica, (name, value) => this.#core.rows.record(name, value));
      this.#wards.set(replica, ward);
    }
    return ward;
  }

  all(): MapIterator<Ward> {
    return this.#wards.values();
  }

  forget(ward: Ward): void {
    ward.forget();
    this.#wards.delete(ward.replica);
    this.#core.wake();
  }

  /** Bytes that may still be held for all sources together (K3). */
  get #left(): number {
    let left = this.#bytesMax;
    for (const ward of this.all()) left -= ward.bytes + ward.stagedBytes;
    return left;
  }

  get bytes(): number {
    return this.all().reduce((sum, ward) => sum + ward.bytes, 0);
  }

  // ── From a source ──

  async receive(from: SiteId, message: WardMessage): Promise<void> {
    const refused = this.#refusal(from, message);
    if (refused !== "none") return this.#refuse(from, message, refused);
    const ward = this.#ward(message.replica);
    ward.site = from;
    ward.dropIncluded(message.reach);
    if (!ward.hasRoom(message, this.#left)) {
      ward.unstage();
      return this.#refuse(from, message, "full");
    }
    if (message.after > ward.position) return this.#refuse(from, message, "gap");
    const rows = ward.stage(message);
    if (rows === null) {
      if (!ward.isStaging) this.#refuse(from, message, "gap");
      return;
    }
    ward.take(message, rows);
    // Where the source's clock is ahead, the stable clocks that its recovery waits for (recovery.ts Y1) come to it by
    // this.
    this.#core.clock.merge(message.clock);
    // An old version that the source writes now (owed.ts) is to hold this site's floor at once.
    for (const { clock } of rows) this.#core.wardsLeast = Math.min(this.#core.wardsLeast, clock);
    this.#core.count("ward_rows", rows.length);
    const { position } = ward;
    this.#core.wake();
    await this.#afterCommit();
    ward.onDisk = Math.max(ward.onDisk, position);
    const { replica, config, settled } = message;
    this.#core.send(from, { kind: "warded", replica, config, settled, position, refused });
  }

  /** Returns why a message is refused (K2). */
  #refusal(from: SiteId, message: WardMessage): WardRefusal {
    const { topology, clock } = this.#core;
    if (topology.incarnation(message.replica)?.site !== from || topology.isRemoved(from)) return "stranger";
    if (topology.recordedEnd(message.replica) !== undefined) return "ended";
    const ward = this.#wards.get(message.replica);
    if (message.config < (ward?.config ?? 0)) return "older";
    if (!clock.admits(newestClock(message))) return "clock";
    return "none";
  }

  #refuse(from: SiteId, { replica, config, settled }: WardMessage, refused: WardRefusal): void {
    const core = this.#core;
    const ward = this.#wards.get(replica);
    // A gap is nobody's fault: the next message closes it.
    if (refused === "gap") core.count("ward_refused_gap");
    else core.refused("ward_refused", from, { refused }, `ward_refused_${refused}`);
    core.send(from, {
      kind: "warded",
      replica,
      config,
      settled,
      position: ward?.onDisk ?? 0, // K1: its source goes on from there, and counts what lies before as held
      refused,
    });
  }

  /** Forgets a ward where another configuration, without this site, is in effect. */
  release(from: SiteId, { replica, config }: Release): void {
    const ward = this.#wards.get(replica);
    if (ward !== undefined && ward.site !== from) return;
    // The source said so before it chose this site again.
    if (ward !== undefined && config <= ward.config) return;
    if (ward !== undefined) this.forget(ward);
    this.#core.send(from, {
      kind: "warded",
      replica,
      config,
      settled: false,
      position: 0,
      refused: "none",
    });
  }

  /** Forgets wards that others own by now: the tree says so where the source has no way to say it here. */
  forgetFormer(): void {
    const { topology, config: { site } } = this.#core;
    for (const ward of [...this.all()]) {
      const newest = topology.wards.of(ward.replica);
      if (newest === undefined || newest.number <= ward.config) continue;
      if (topology.recordedEnd(ward.replica) !== undefined) continue; // recovery.ts
      if (!topology.wards.owners(ward.replica).includes(site)) this.forget(ward);
    }
  }

  /** Drops a site's staged parts: they came over a connection that is gone. */
  disconnected(site: SiteId): void {
    for (const ward of this.all()) if (ward.site === site) ward.unstage();
  }

  // ── In the place of a source ──

  /** Answers what this site has of an incarnation's pending rows (PROTOCOL O4). */
  standIn(ask: StandIn): StoodIn {
    const { id, replica, depth, position } = ask;
    const ward = this.#wards.get(replica);
    const said = {
      kind: "stoodIn",
      id,
      position: ward?.position ?? 0,
      config: ward?.settled ?? 0,
      clock: ward?.clock ?? 0,
      down: ward?.down ?? [],
    } as const;
    // A ward whose rows were put into this site's own journal is forgotten here: they go their own way (recovery.ts).
    if (ward === undefined || ward.position < position) {
      return { ...said, outcome: "behind", rows: [] };
    }
    const rows = ward.pendingTo(depth);
    if (rows.reduce((sum, row) => sum + wireBytes(row), 0) > CARRY_BYTES_MAX) {
      return { ...said, outcome: "too_large", rows: [] };
    }
    this.#core.count("stood_in");
    // A crash here would undo rows that have not been acknowledged (K1), but the source has all of them.
    return { ...said, outcome: "rows", rows };
  }
}
