/**
 * A root, two parents under it, and an edge that has read a range under the first and moves to the second, on links
 * whose bytes are counted.
 */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { Replica, ReplicaConfig, StoreMutation } from "../../../store/api/api.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { decodeMessage, encodeMessage, type Message } from "../../../store/wire/message.ts";
import type { SiteId, Storage } from "../../../store/model/ports.ts";
import { prefixRange, type Range } from "../../../store/model/range.ts";
import { openReplica } from "../../../store/replica.ts";
import { decodeJson, type Ended } from "../../../store/members/topology.ts";
import { ProcessClock, World } from "../../sim/world.ts";

const LINK_MS = 1;
/** Rows of one write. */
const BATCH = 5_000;
const LIMIT_MS = 60_000;

export const RANGE: Range = prefixRange(packKey(["row"]));
export const keyOf = (i: number): Key => packKey(["row", `item-${String(i).padStart(8, "0")}`]);

/** What is sent between the edge and its parent. */
export interface Crossed {
  bytes: number;
  readonly kinds: Record<string, number>;
}

/** See the file's header. */
export class ResyncedPair {
  readonly #world = new World();
  readonly #sites = new Map<SiteId, Replica>();
  readonly #valueBytes: number;
  /** Of the edge. */
  readonly #capacityBytes: number;
  readonly #disks = new Map<SiteId, MemoryStorage>();
  /** Processes that are still there. */
  readonly #alive = new Map<SiteId, { is: boolean }>();
  readonly notes: string[] = [];
  readonly crossed: Crossed = { bytes: 0, kinds: {} };
  #seed = 1;
  /** Of the edge. */
  #parent: SiteId = "a";
  /** Changes a message between the edge and its parent. */
  changes: (message: Message) => Message = (message) => message;
  /** What a read of rows from the edge's disk takes. */
  readMs = 0;

  private constructor(valueBytes: number, capacityBytes: number) {
    this.#valueBytes = valueBytes;
    this.#capacityBytes = capacityBytes;
  }

  /** The edge covers so many rows, and so does its parent to be. */
  static async open(rows: number, valueBytes: number, capacityBytes = Infinity): Promise<ResyncedPair> {
    const pair = new ResyncedPair(valueBytes, capacityBytes);
    await pair.#open("root", null);
    await pair.#open("a", "root");
    await pair.#open("b", "root");
    await pair.#open("e", "a");
    await pair.write(Array.from({ length: rows }, (_, i) => i));
    await pair.read("b", RANGE);
    assert.equal(await pair.read("e", RANGE), rows);
    return pair;
  }

  site(id: SiteId): Replica {
    const replica = this.#sites.get(id);
    assert.ok(replica !== undefined);
    return replica;
  }

  async #open(site: SiteId, parent: SiteId | null, isAlone = false): Promise<void> {
    const clock = new ProcessClock(this.#world, { skewMs: 0, drift: 0 });
    const tier = parent === null ? "root" : parent === "root" ? "core" : "edge";
    const capacityBytes = site === "e" ? this.#capacityBytes : Infinity;
    const config: ReplicaConfig = { site, parent, tier, url: "", linkAddress: "", capacityBytes };
    const disk = this.#disks.get(site) ?? new MemoryStorage();
    this.#disks.set(site, disk);
    const alive = { is: true };
    this.#alive.set(site, alive);
    const opened = openReplica(config, {
      clock,
      random: { bytes: (length) => new Uint8Array(length).map(() => this.#seed = this.#seed * 75 % 65_537) },
      storage: this.#storage(site, disk, alive),
      network: {
        send: (to, bytes) => {
          if (!alive.is) return Promise.resolve();
          const sent = this.#counted(site, to, bytes);
          this.#world.after(LINK_MS, () => this.#sites.get(to)?.receive(site, sent));
          return Promise.resolve();
        },
      },
      fatal: (error) => {
        throw error;
      },
      note: (name) => void this.notes.push(name),
    });
    const replica = await this.until(opened);
    this.#sites.set(site, replica);
    if (parent !== null && !isAlone) this.#connect(site, parent);
    await this.until(replica.ready);
  }

  /** As one process sees its disk. */
  #storage(site: SiteId, disk: MemoryStorage, alive: { readonly is: boolean }): Storage {
    return {
      load: () => disk.load(),
      commit: (commit) => alive.is ? disk.commit(commit) : new Promise(() => {}),
      get: (key) => disk.get(key),
      getMany: async (keys) => {
        if (site === "e" && this.readMs > 0) await this.#world.sleep(this.readMs);
        return await disk.getMany(keys);
      },
      scan: (range, options) => disk.scan(range, options),
      journal: (after, upTo, limit) => disk.journal(after, upTo, limit),
      bytes: () => disk.bytes(),
      close: () => disk.close(),
    };
  }

  #counted(from: SiteId, to: SiteId, bytes: Uint8Array): Uint8Array {
    if (!(from === "e" && to === this.#parent || from === this.#parent && to === "e")) return bytes;
    const message = this.changes(decodeMessage(bytes));
    this.crossed.bytes += bytes.length;
    this.crossed.kinds[message.kind] = (this.crossed.kinds[message.kind] ?? 0) + 1;
    return encodeMessage(message);
  }

  #connect(site: SiteId, parent: SiteId): void {
    this.site(site).connected(parent, "parent");
    this.site(parent).connected(site, "child");
  }

  /** Runs the world until a promise has settled. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const end = () => void (settled = true);
    promise.then(end, end);
    await this.#world.run(this.#world.nowMs + LIMIT_MS, () => settled);
    assert.ok(settled, "nothing has come of it in a minute");
    return await promise;
  }

  async runFor(ms: number): Promise<void> {
    await this.#world.run(this.#world.nowMs + ms);
  }

  /** Writes rows at the root. */
  write(rows: readonly number[], kind: "set" | "delete" = "set"): Promise<void> {
    return this.writeAt("root", rows, kind);
  }

  async writeAt(site: SiteId, rows: readonly number[], kind: "set" | "delete" = "set"): Promise<void> {
    const { system } = this.site(site);
    for (let i = 0; i < rows.length; i += BATCH) {
      const mutations = rows.slice(i, i + BATCH).map((row): StoreMutation =>
        kind === "delete"
          ? { kind, key: keyOf(row) }
          : { kind, key: keyOf(row), value: new Uint8Array(this.#valueBytes).fill(2) }
      );
      await this.until(system.write(mutations));
    }
    await this.runFor(1_000);
  }

  /** How many rows a site has in a range, fetched where they are not there. */
  async read(site: SiteId, range: Range): Promise<number> {
    return (await this.until(this.site(site).system.list(range))).length;
  }

  /** The edge has no parent for a while. */
  async cutOff(): Promise<void> {
    this.site("e").disconnected(this.#parent);
    this.site(this.#parent).disconnected("e");
    await this.runFor(10);
  }

  /** The edge comes to the other parent. */
  connectNext(): void {
    this.#parent = this.#parent === "a" ? "b" : "a";
    this.crossed.bytes = 0;
    this.site("e").move(this.#parent);
    this.#connect("e", this.#parent);
  }

  /** The edge's process ends, and another goes on from its disk. */
  async restart(): Promise<void> {
    await this.cutOff();
    await this.until(this.site("e").close());
    await this.#open("e", this.#parent);
  }

  /** The same, and it is as cut off as it was. */
  async restartAlone(): Promise<void> {
    await this.until(this.site("e").close());
    await this.#open("e", this.#parent, true);
  }

  /** Crashes, and another process goes on: what it had not committed is gone. */
  async crash(): Promise<void> {
    const alive = this.#alive.get("e");
    assert.ok(alive !== undefined);
    alive.is = false;
    this.site(this.#parent).disconnected("e");
    await this.#open("e", this.#parent);
  }

  /** Resolves when a site has taken another number. */
  async becomesAnother(site: SiteId): Promise<void> {
    const { replica } = this.site(site).status();
    while (this.site(site).status().replica === replica) await this.#world.sleep(0.1);
  }

  /** The same; the bytes on the link until the edge covers all that it did. */
  async move(): Promise<number> {
    this.connectNext();
    await this.until(this.becomesAnother("e"));
    await this.read("e", RANGE);
    return this.crossed.bytes;
  }

  /** A site says something to its parent that it would not say. */
  says(site: SiteId, message: Message): void {
    this.site(this.#parent).receive(site, encodeMessage(message));
  }

  /** Incarnations of which the root does not know all that they had. */
  async unsettled(): Promise<number> {
    const ends = await this.until(this.site("root").system.list(prefixRange(packKey(["s", "ended"]))));
    return ends.filter(({ value }) => {
      const { next, settled } = decodeJson(value) as Ended;
      return next !== undefined && settled !== true;
    }).length;
  }

  /** Whether the edge has what its parent has. */
  async isSame(): Promise<boolean> {
    const [mine, theirs] = [
      await this.until(this.site("e").system.list(RANGE)),
      await this.until(this.site(this.#parent).system.list(RANGE)),
    ];
    return mine.length === theirs.length &&
      mine.every((row, i) => row.key === theirs[i]?.key && row.clock === theirs[i]?.clock);
  }

  async close(): Promise<void> {
    for (const replica of this.#sites.values()) await this.until(replica.close());
  }
}
