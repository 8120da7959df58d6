/**
 * A region is cut off for six hours: its edges serve what they cover, what is written waits and then flows, and what
 * sites keep in memory and on disk stays as it is. Each virtual minute is a second of load and a nap of 59.
 */
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { StoreUnavailable, type TokenState } from "../../store/api/api.ts";
import { FETCHES_MAX } from "../../store/model/limits.ts";
import { Scene } from "./scene.ts";

const HOURS = 6;
/** Of the keys, the first ones are written by the region, the next ones by the others; all of them everybody covers. */
const OWN = 10, OTHERS = 10;
const COVERED = OWN + OTHERS;
const PENDING_BYTES_MAX = 60_000;
/** Edges hold no more: what is read in passing is evicted. */
const CAPACITY_BYTES = 20_000;
const TREE = {
  root: { parent: null, linkMs: 0 },
  c: { parent: "root", linkMs: 5 },
  e1: { parent: "c", linkMs: 1, capacityBytes: CAPACITY_BYTES },
  e2: { parent: "c", linkMs: 1, capacityBytes: CAPACITY_BYTES },
  far: { parent: "root", linkMs: 5, capacityBytes: CAPACITY_BYTES },
} as const;
const REGION = ["c", "e1", "e2"], REST = ["root", "far"];

/** What an hour left. */
interface Hour {
  readonly pendingRows: number;
  readonly pendingBytes: number;
  /** Of all disks. */
  readonly rows: number;
  readonly bytes: number;
  readonly records: number;
  readonly heapMb: number;
}

class CutOff {
  /** Each minute some keys are asked for that the region does not hold: never the same. */
  readonly scene = new Scene(TREE, {
    keys: COVERED + HOURS * 60 * 4,
    pendingBytesMax: PENDING_BYTES_MAX,
    tap: (from, to, message) => {
      if (message.kind === "fetch") this.fetches.push(`${from} ${to}`);
    },
  });
  fetches: string[] = [];
  readonly #tokens = new Map<string, TokenState>();
  readonly last = new Map<number, number>();
  #writes = 1;
  served = 0;
  refused = 0;

  async begin(): Promise<void> {
    const { scene } = this;
    await scene.start();
    for (const site of [...REGION, "far"]) {
      const session = await scene.attach(site);
      for (let key = 0; key < COVERED; key++) await scene.read(session, key);
    }
    for (const site of REGION) for (const other of REST) scene.network.partition(site, other, Infinity);
  }

  /** A session's request at its site: one write, and all that is covered, where its own writes must show. */
  async request(site: string, key: number): Promise<void> {
    const { scene } = this, token = this.#tokens.get(site);
    const session = await scene.attach(site, ...token === undefined ? [] : [token]);
    const write = this.#writes++;
    await scene.write(session, key, write);
    this.last.set(key, write);
    strictEqual(await scene.read(session, key), write);
    for (const other of [0, OWN, COVERED - 1]) await scene.read(session, other);
    this.#tokens.set(site, session.token(false));
    this.served++;
  }

  /** Keys that the region does not hold: told within seconds. */
  async miss(first: number): Promise<void> {
    const { scene } = this;
    const misses = [0, 1, 2, 3].map(async (i) => {
      const session = await Promise.resolve(scene.process("c").replica.attach(null));
      await session.get([scene.keyspace.key(first + i)]);
    });
    for (const miss of misses) {
      await rejects(scene.done(miss), { code: "store_unreachable" });
      this.refused++;
    }
  }

  async hour(hour: number): Promise<Hour> {
    let heapMb = Infinity;
    for (let minute = 0; minute < 60; minute++) {
      await this.request("e1", minute % (OWN / 2));
      await this.request("e2", OWN / 2 + minute % (OWN / 2));
      await this.request("far", OWN + minute % OTHERS);
      if (minute % 5 === 0) await this.miss(COVERED + (hour * 60 + minute) * 4);
      this.scene.nap(57_000);
      heapMb = Math.min(heapMb, Deno.memoryUsage().heapUsed / 2 ** 20);
    }
    // What was observed would be the largest thing in memory.
    this.scene.events.length = 0;
    return { ...await this.size(), heapMb };
  }

  async size(): Promise<Omit<Hour, "heapMb">> {
    const sums = { pendingRows: 0, pendingBytes: 0, rows: 0, bytes: 0, records: 0 };
    for (const site of [...REGION, ...REST]) {
      const { replica, storage } = this.scene.process(site);
      sums.pendingRows += replica.status().pending;
      sums.pendingBytes += replica.status().pendingBytes;
      sums.rows += storage.size;
      sums.bytes += await this.scene.done(storage.bytes());
      sums.records += (await this.scene.done(storage.load())).size;
    }
    return sums;
  }

  /** New keys, until no more is taken; how many were. */
  async fill(site: string): Promise<number> {
    const { scene } = this;
    for (let taken = 0;; taken++) {
      const session = await scene.attach(site);
      const key = scene.keyspace.key(COVERED + taken);
      try {
        await scene.done(session.write([{ kind: "set", key, value: new Uint8Array(1_000).fill(32) }]));
      } catch (error) {
        ok(error instanceof StoreUnavailable && error.code === "pending_full", String(error));
        return taken;
      }
      await scene.done(session.durable());
    }
  }

  heal(): void {
    for (const site of REGION) for (const other of REST) this.scene.network.block(site, other, 0);
  }
}

Deno.test("a region that is cut off for hours serves what it covers, and keeps no more with each hour", async () => {
  const run = new CutOff();
  await run.begin();
  const hours: Hour[] = [];
  for (let hour = 0; hour < HOURS; hour++) hours.push(await run.hour(hour));
  for (const hour of hours) console.log(JSON.stringify({ ...hour, heapMb: Math.round(hour.heapMb) }));
  strictEqual(run.served, HOURS * 60 * 3);
  const [, second] = hours, final = hours.at(-1);
  ok(second !== undefined && final !== undefined);
  for (const name of ["pendingRows", "pendingBytes", "rows", "bytes", "records"] as const) {
    ok(final[name] <= second[name] * 1.05 + 2, `${name} grew from ${second[name]} to ${final[name]}`);
  }
  ok(final.heapMb <= second.heapMb * 1.25 + 8, `the heap grew from ${second.heapMb} to ${final.heapMb} MB`);
  // What nobody waits for any more is not asked for when the link is back.
  const { scene } = run;
  run.fetches = [];
  run.heal();
  await scene.until(() => REGION.every((site) => scene.process(site).replica.status().pending === 0));
  await scene.pass(1_000);
  ok(run.fetches.length <= 20, `${run.fetches.length} fetches for ${run.refused} misses`);
  for (const site of [...REGION, ...REST]) {
    const session = await scene.attach(site);
    for (const [key, write] of run.last) {
      strictEqual(await scene.read(session, key), write, `key ${key} at ${site}`);
    }
  }
});

Deno.test("a region that is cut off takes new keys up to its limit, and all that it took flows afterwards", async () => {
  const run = new CutOff();
  await run.begin();
  const { scene } = run;
  const taken = await run.fill("e1");
  ok(taken > 10, `${taken} rows of 1,000 bytes are taken`);
  await scene.pass(1_000);
  const full = scene.process("c").replica.status();
  for (let hour = 0; hour < 2; hour++) {
    for (let minute = 0; minute < 60; minute++) {
      const session = await scene.attach("e1");
      strictEqual(await scene.read(session, 1), null, "what is covered is served");
      await rejects(scene.write(session, 1, 1), { code: "pending_full" });
      await scene.pass(100);
      scene.nap(59_000);
    }
  }
  const { pending, pendingBytes } = scene.process("c").replica.status();
  deepStrictEqual([pending, pendingBytes], [full.pending, full.pendingBytes]);
  ok(pendingBytes < PENDING_BYTES_MAX + 2_000, `${pendingBytes} bytes are pending`);
  run.heal();
  await scene.until(() => REGION.every((site) => scene.process(site).replica.status().pending === 0));
  const there = await scene.attach("far");
  for (let i = 0; i < taken; i++) {
    const [row] = await scene.done(there.get([scene.keyspace.key(COVERED + i)]));
    strictEqual(row?.value?.length, 1_000, `row ${i}`);
  }
  await scene.write(await scene.attach("e1"), 1, 1);
});

Deno.test("a site that is cut off is asked for no more rows at a time than there is room for", async () => {
  const keys = FETCHES_MAX + 10;
  const scene = new Scene(TREE, { keys });
  await scene.start();
  scene.network.partition("c", "root", Infinity);
  const session = await scene.attach("c");
  const told = new Map<string, number>();
  const read = async (i: number) => {
    const text = await session.get([scene.keyspace.key(i)]).then(
      () => "ok",
      (error) => String(error.message),
    );
    const what = text.includes("others are asked for")
      ? "at once"
      : text.includes("within")
      ? "in time"
      : text;
    told.set(what, (told.get(what) ?? 0) + 1);
  };
  await scene.done(Promise.all(Array.from({ length: keys }, (_, i) => read(i))));
  deepStrictEqual(told, new Map([["at once", 10], ["in time", FETCHES_MAX]]));
  // Nobody waits for those any more.
  await scene.done(read(keys - 1));
  deepStrictEqual(told.get("in time"), FETCHES_MAX + 1);
});
