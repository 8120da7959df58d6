/** What a source streams to an owner over lines of all kinds, and what the owner takes (store/wards/). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core, type Mark } from "../../../store/core/core.ts";
import { packKey } from "../../../store/model/key.ts";
import { WARD_BYTES_MAX } from "../../../store/model/limits.ts";
import { decodeMessage } from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { encodeJson, replicaKey } from "../../../store/members/topology.ts";
import { Keeper } from "../../../store/wards/keeper.ts";
import { WardSource } from "../../../store/wards/source.ts";
import { START_MS, World } from "../../sim/world.ts";

const SOURCE = 5, OWNER = 6, REBORN = 9;
/** What a link holds before its sender waits (runtime/link/limits.ts). */
const WINDOW_BYTES = 4 << 20;
const MIB = 1 << 20;

/** A source and its owner, and who else may be it, below a root that none reaches. */
class Pair {
  readonly world = new World();
  readonly source: WardSource;
  readonly keeper: Keeper;
  readonly other: Keeper;
  readonly core: Core;
  /** Who should own it; null: nobody who is there. */
  wanted: readonly SiteId[] | null = ["o"];
  isFull: (site: SiteId) => boolean = () => assert.fail("nobody was chosen");
  /** Since it was set to 0. */
  sentBytes = 0;
  readonly #bytesPerMs: number;
  readonly #cores: Core[] = [];
  #freeMs = 0;
  #isPumping = false;

  constructor(bytesPerMs: number) {
    this.#bytesPerMs = bytesPerMs;
    this.core = this.#coreOf("s", SOURCE, (to, bytes) => this.#toOwner(to, bytes));
    this.keeper = this.#keeperOf("o", OWNER);
    this.other = this.#keeperOf("p", OWNER + 1);
    this.source = new WardSource(this.core, {
      wanted: (_, isFull) => {
        this.isFull = isFull;
        return this.wanted;
      },
      policy: () => "fail",
      moved: () => {},
      fail: (error) => {
        throw error;
      },
    });
  }

  #keeperOf(site: SiteId, replica: number): Keeper {
    const core = this.#coreOf(site, replica, (_, bytes) => {
      this.world.after(5, () => {
        const message = decodeMessage(bytes);
        assert.equal(message.kind, "warded");
        if (message.kind === "warded") this.source.warded(site, message);
      });
      return Promise.resolve();
    });
    return new Keeper(core, () => this.world.sleep(1));
  }

  #coreOf(site: SiteId, replica: number, send: (to: SiteId, bytes: Uint8Array) => Promise<void>): Core {
    const { world } = this;
    const core = new Core(
      { site, parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
      {
        clock: {
          nowMs: () => START_MS + world.nowMs,
          steadyMs: () => START_MS + world.nowMs,
          after: (ms, callback) => world.after(ms, callback),
          turn: () => world.sleep(0),
        },
        random: { bytes: (length) => new Uint8Array(length) },
        storage: new MemoryStorage(),
        network: { send },
        fatal: (error) => {
          throw error;
        },
        note: () => {},
      },
    );
    core.replica = replica;
    core.setPath(["root"]);
    core.onWake(() => void this.world.after(0, () => void this.pump()));
    const claim = { site: "s", path: ["root", "s"], parent: 1, from: 0 };
    core.rows.put(core.own(replicaKey(SOURCE), encodeJson(claim)));
    this.#cores.push(core);
    return core;
  }

  /** A line of so many bytes a millisecond, of which the sender knows only that its window is full. */
  #toOwner(to: SiteId, bytes: Uint8Array): Promise<void> {
    this.sentBytes += bytes.length;
    this.#freeMs = Math.max(this.#freeMs, this.world.nowMs) + bytes.length / this.#bytesPerMs;
    this.world.at(this.#freeMs + 5, () => {
      const message = decodeMessage(bytes), keeper = to === "o" ? this.keeper : this.other;
      if (message.kind === "ward") void keeper.receive("s", message);
      else if (message.kind === "release") keeper.release("s", message);
    });
    const roomMs = this.#freeMs - WINDOW_BYTES / this.#bytesPerMs;
    return roomMs <= this.world.nowMs ? Promise.resolve() : this.world.sleep(roomMs - this.world.nowMs);
  }

  write(rows: number, bytes: number, name = "big"): void {
    for (let i = 0; i < rows; i++) {
      this.core.rows.put(this.core.own(packKey([name, i]), new Uint8Array(bytes)));
    }
  }

  /** As replica.ts does: a commit, and what it allows. */
  async pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    const { core, source } = this;
    source.prepare();
    const mark: Mark = {
      replica: core.replica,
      partial: false,
      isFull: false,
      head: core.rows.head,
      clock: core.clock.tick(),
      down: core.down,
      stable: [0, 0],
      reach: core.reach.map((steps) => steps.last),
      floor: 0,
      watermark: 0,
    };
    const frozen = core.rows.freeze();
    await core.ports.storage.commit(frozen.commit);
    core.rows.settle(frozen);
    source.committed(frozen);
    await source.flush(mark);
    this.#isPumping = false;
  }

  /** Lets time pass, with a pump every so often. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.world.nowMs + ms;
    while (this.world.nowMs < untilMs) {
      void this.pump();
      await this.world.run(this.world.nowMs + 50);
    }
  }

  /** The source goes on under another number, which all know. */
  beginAnew(): void {
    this.core.replica = REBORN;
    const claim = { site: "s", path: ["root", "s"], parent: 1, from: 0 };
    for (const core of this.#cores) core.rows.put(core.own(replicaKey(REBORN), encodeJson(claim)));
  }

  /** The root has all that was written so far. */
  include(): void {
    this.core.reach[0]?.add(this.core.rows.head, 1_000_000);
    this.core.pending.settle(this.core.rows.head);
  }

  get ward() {
    return [...this.keeper.all()][0];
  }
}

Deno.test("an owner behind a narrow line is brought up to date, each row once", async () => {
  const pair = new Pair(1_000);
  pair.write(20, 400_000);
  await pair.pass(20_000);
  assert.equal(pair.ward?.size, 22);
  assert.ok(pair.sentBytes < 9e6, `${pair.sentBytes} bytes were sent for 8 MB`);
});

Deno.test("an owner takes no more than it may, of one batch neither, and is not sent it again and again", async () => {
  const pair = new Pair(100_000);
  pair.write(WARD_BYTES_MAX / MIB + 20, MIB);
  await pair.pass(5_000);
  assert.ok((pair.ward?.bytes ?? 0) <= WARD_BYTES_MAX, `${pair.ward?.bytes} bytes are held`);
  assert.deepEqual(pair.source.silent, [{ site: "o", why: "full" }]);
  assert.equal(pair.isFull("o"), false, "another owner would be as full");
  pair.sentBytes = 0;
  await pair.pass(30_000);
  assert.ok(pair.sentBytes < MIB, `${pair.sentBytes} bytes were sent in vain`);
});

Deno.test("a full owner takes rows again once the root has what it holds, however many are written meanwhile", async () => {
  const pair = new Pair(100_000);
  pair.write(WARD_BYTES_MAX / MIB - 1, MIB);
  await pair.pass(3_000);
  assert.equal(pair.ward?.size, WARD_BYTES_MAX / MIB + 1);
  pair.write(2, MIB, "more");
  await pair.pass(3_000);
  assert.deepEqual(pair.source.silent, [{ site: "o", why: "full" }]);
  pair.include();
  for (let i = 0; i < 100; i++) {
    pair.write(2, MIB, `steady ${i % 3}`);
    await pair.pass(50);
  }
  await pair.pass(1_000);
  assert.deepEqual(pair.source.silent, []);
  assert.equal(pair.ward?.size, 6);
});

Deno.test("a row that is written again and again takes its place with an owner once", async () => {
  const pair = new Pair(100_000);
  for (let i = 0; i < 10; i++) {
    pair.write(10, MIB);
    await pair.pass(500);
  }
  assert.deepEqual(pair.source.silent, []);
  assert.equal(pair.ward?.size, 12);
});

Deno.test("a site that was chosen as owner, and another before the root knew of it, does not hold a ward for ever", async () => {
  const pair = new Pair(100_000);
  pair.write(3, 100);
  await pair.pass(1_000);
  assert.equal(pair.ward?.size, 5);
  pair.wanted = ["p"];
  await pair.pass(1_000);
  pair.include();
  await pair.pass(12_000);
  assert.deepEqual(pair.source.effective?.owners, ["p"]);
  assert.equal(pair.ward, undefined);
  assert.equal([...pair.other.all()].length, 1);
});

Deno.test("a site whose owner falls silent as it is written down tells nothing without one (G4)", async () => {
  const pair = new Pair(100_000);
  pair.write(1, 100);
  const { rows } = pair.core, { wanted } = pair;
  // What it is written over is looked up first: a moment in which the only one there is can fall silent.
  const lookup = rows.lookup.bind(rows);
  rows.lookup = async (keys) => {
    const found = await lookup(keys);
    pair.wanted = null;
    return found;
  };
  await pair.pass(500);
  pair.include();
  await pair.pass(500);
  assert.deepEqual([pair.source.effective, pair.source.next], [null, null]);
  assert.equal(pair.source.allows(rows.committedHead), false);
  rows.lookup = lookup;
  pair.wanted = wanted;
  await pair.pass(500);
  assert.deepEqual(pair.source.next?.owners, ["o"]);
});

Deno.test("a new incarnation has no owners, nor is one called silent that the one before had (G4)", async () => {
  const pair = new Pair(100_000);
  pair.write(WARD_BYTES_MAX / MIB + 20, MIB);
  await pair.pass(5_000);
  assert.deepEqual(pair.source.silent, [{ site: "o", why: "full" }]);
  pair.beginAnew();
  pair.wanted = null;
  await pair.pass(500);
  assert.deepEqual([pair.source.effective, pair.source.next, pair.source.silent], [null, null, []]);
  assert.equal(pair.source.allows(pair.core.rows.committedHead), false);
});
