/**
 * A root, two parents under it, and an edge that has read a range under the first and moves to the second, on links
 * whose bytes are counted.
 */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import type { Replica, ReplicaConfig, StoreMutation } from "../../store/api.ts";
import { type Key, packKey } from "../../store/key.ts";
import { decodeMessage, encodeMessage, type Message } from "../../store/message.ts";
import type { SiteId } from "../../store/ports.ts";
import { prefixRange, type Range } from "../../store/range.ts";
import { openReplica } from "../../store/replica.ts";
import { ProcessClock, World } from "../sim/world.ts";

const LINK_MS = 1;
/** Rows of one write. */
const BATCH = 5_000;
const LIMIT_MS = 60_000;

export const RANGE: Range = prefixRange(packKey(["row"]));
export const keyOf = (i: number): Key => packKey(["row", `item-${String(i).padStart(8, "0")}`]);

/** What is sent between the edge and its second parent. */
export interface Crossed {
  bytes: number;
  readonly kinds: Record<string, number>;
}

/** See the file's header. */
export class ResyncedPair {
  readonly #world = new World();
  readonly #sites = new Map<SiteId, Replica>();
  readonly #valueBytes: number;
  readonly notes: string[] = [];
  readonly crossed: Crossed = { bytes: 0, kinds: {} };
  #seed = 1;
  /** Changes a message between the edge and its second parent. */
  changes: (message: Message) => Message = (message) => message;

  private constructor(valueBytes: number) {
    this.#valueBytes = valueBytes;
  }

  /** The edge covers so many rows, and so does its parent to be. */
  static async open(rows: number, valueBytes: number): Promise<ResyncedPair> {
    const pair = new ResyncedPair(valueBytes);
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

  async #open(site: SiteId, parent: SiteId | null): Promise<void> {
    const clock = new ProcessClock(this.#world, { skewMs: 0, drift: 0 });
    const tier = parent === null ? "root" : parent === "root" ? "core" : "edge";
    const config: ReplicaConfig = { site, parent, tier, url: "", linkAddress: "", capacityBytes: 1e12 };
    const opened = openReplica(config, {
      clock,
      random: { bytes: (length) => new Uint8Array(length).map(() => this.#seed = this.#seed * 75 % 65_537) },
      storage: new MemoryStorage(),
      network: {
        send: (to, bytes) => {
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
    if (parent !== null) this.#connect(site, parent);
    await this.until(replica.ready);
  }

  #counted(from: SiteId, to: SiteId, bytes: Uint8Array): Uint8Array {
    if (!(from === "e" && to === "b" || from === "b" && to === "e")) return bytes;
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
  async write(rows: readonly number[], kind: "set" | "delete" = "set"): Promise<void> {
    const root = this.site("root").system;
    for (let i = 0; i < rows.length; i += BATCH) {
      const mutations = rows.slice(i, i + BATCH).map((row): StoreMutation =>
        kind === "delete"
          ? { kind, key: keyOf(row) }
          : { kind, key: keyOf(row), value: new Uint8Array(this.#valueBytes).fill(2) }
      );
      await this.until(root.write(mutations));
    }
    await this.runFor(1_000);
  }

  /** How many rows a site has in a range, fetched where they are not there. */
  async read(site: SiteId, range: Range): Promise<number> {
    return (await this.until(this.site(site).system.list(range))).length;
  }

  /** Cuts the edge off while so many rows change, and moves it; the bytes until it covers all again. */
  async move(differing: number, rows = 100_000): Promise<number> {
    this.site("e").disconnected("a");
    this.site("a").disconnected("e");
    const step = Math.max(1, Math.floor(rows / Math.max(1, differing)));
    await this.write(Array.from({ length: differing }, (_, i) => i * step));
    this.crossed.bytes = 0;
    this.site("e").move("b");
    this.#connect("e", "b");
    await this.runFor(50);
    await this.read("e", RANGE);
    return this.crossed.bytes;
  }

  /** Whether the edge has what its parent has. */
  async isSame(): Promise<boolean> {
    const [mine, theirs] = [
      await this.until(this.site("e").system.list(RANGE)),
      await this.until(this.site("b").system.list(RANGE)),
    ];
    return mine.length === theirs.length &&
      mine.every((row, i) => row.key === theirs[i]?.key && row.clock === theirs[i]?.clock);
  }

  async close(): Promise<void> {
    for (const replica of this.#sites.values()) await this.until(replica.close());
  }
}
