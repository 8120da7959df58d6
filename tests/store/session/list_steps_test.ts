/** Lists that pass many deleted rows, and writes that look at long ones: others have their turns meanwhile. */
import assert from "node:assert/strict";
import { SystemClock, SystemRandom } from "../../../runtime/site/system_ports.ts";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { type AttachedSession, type Replica, WriteTooLarge } from "../../../store/api/api.ts";
import { packKey } from "../../../store/model/key.ts";
import { LIST_STEPS_MAX, LIST_TRIES, LOOKED_AT_BYTES_MAX, STEP_ROWS } from "../../../store/model/limits.ts";
import type { Lane } from "../../../store/model/lock.ts";
import type { ScanOptions } from "../../../store/model/ports.ts";
import { prefixRange, type Range } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";
import { openReplica } from "../../../store/replica.ts";

const keyOf = (...parts: (string | number)[]) => packKey(["a", ...parts]);
const ALL = prefixRange(keyOf());
/** Dead rows that take several steps, of whichever length. */
const DEAD = (LIST_STEPS_MAX + 5) * STEP_ROWS;

/** Tells of each scan as it begins. */
class WatchedStorage extends MemoryStorage {
  scans = 0;
  readBytes = 0;
  began: (scan: number) => void = () => {};

  override async scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    this.began(++this.scans);
    return await super.scan(range, options);
  }

  override async getMany(
    ...asked: Parameters<MemoryStorage["getMany"]>
  ): ReturnType<MemoryStorage["getMany"]> {
    const rows = await super.getMany(...asked);
    for (const row of rows) this.readBytes += row?.value?.length ?? 0;
    return rows;
  }
}

interface Opened {
  readonly replica: Replica;
  readonly storage: WatchedStorage;
  readonly session: AttachedSession;
}

async function withReplica(work: (opened: Opened) => Promise<void>): Promise<void> {
  const storage = new WatchedStorage();
  const faults: Error[] = [];
  const replica = await openReplica({
    ...{ site: "cloud", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e12 },
  }, {
    ...{ random: new SystemRandom(), storage, clock: new SystemClock(), note: () => {} },
    fatal: (error) => void faults.push(error),
    network: { send: () => Promise.resolve() },
  });
  try {
    await replica.ready;
    await work({ replica, storage, session: await replica.attach(null) });
  } finally {
    await replica.close();
  }
  assert.deepEqual(faults, []);
}

const set = (key: ReturnType<typeof keyOf>, bytes = 1) =>
  ({ kind: "set", key, value: new Uint8Array(bytes).fill(1) }) as const;

/** Rows 0 to DEAD - 1 deleted, and one after them. */
async function bury(session: AttachedSession): Promise<void> {
  const keys = Array.from({ length: DEAD }, (_, i) => keyOf(i));
  await session.write(keys.map((key) => ({ kind: "delete", key })));
  await session.write([set(keyOf(DEAD))]);
  await session.durable();
}

Deno.test("a list that passes many deleted rows lets others write between its steps, and shows one moment (E9)", async () => {
  await withReplica(async ({ replica, storage, session }) => {
    await bury(session);
    const other = await replica.attach(null);
    const order: string[] = [];
    storage.scans = 0;
    storage.began = (scan) => {
      if (scan === 1) void other.write([set(keyOf(DEAD + 1))]).then(() => order.push("written"));
    };
    const rows = await session.list(ALL, { limit: 1 });
    order.push("listed");
    assert.deepEqual(rows.map(({ key }) => key), [keyOf(DEAD)]);
    assert.deepEqual(order, ["written", "listed"]);
    const back = await session.list(ALL, { limit: 2, reverse: true });
    assert.deepEqual(back.map(({ key }) => key), [keyOf(DEAD + 1), keyOf(DEAD)]);
    assert.ok((session.token(false).path[0] ?? 0) > DEAD, "it has seen all that it passed (E1)");
  });
});

Deno.test("a list begins anew where what it has passed changes meanwhile, and is given up where it does so again and again (E9)", async () => {
  await withReplica(async ({ replica, storage, session }) => {
    await bury(session);
    const other = await replica.attach(null);
    let left = 1, at = 0, written = 0;
    storage.scans = 0;
    storage.began = () => {
      if (left-- <= 0) return;
      written++;
      void other.write([set(keyOf(at++))]);
    };
    const rows = await session.list(ALL, { limit: 10 });
    assert.deepEqual(rows.map(({ key }) => key), [keyOf(0), keyOf(DEAD)]);
    left = Infinity;
    await assert.rejects(
      session.list(ALL, { limit: DEAD }),
      new RegExp(`changed while it did, ${LIST_TRIES} times`),
    );
    // One that passes fewer is done, whatever changes.
    at = DEAD - LIST_STEPS_MAX * STEP_ROWS / 2;
    const few = await session.list({ ...ALL, start: keyOf(at) }, { limit: DEAD });
    assert.ok(few.length > 2 && few.length <= written + 1, `${few.length} of ${written}`);
    left = 0;
    assert.equal((await session.list(ALL, { limit: DEAD })).length, written + 1);
  });
});

Deno.test("a list that its own app's writes changed once goes before them, a step at a time, and is not changed again (E9)", async () => {
  await withReplica(async ({ replica, storage, session }) => {
    await bury(session);
    const own = await replica.attach(null), neighbour = await replica.attach(null);
    session.lane = own.lane = { mayHold: true, held: () => {}, whenMayHold: () => {} };
    neighbour.lane = { ...own.lane };
    const done: string[] = [];
    storage.began = () => {
      void own.write([{ kind: "delete", key: keyOf(0) }]).then(() => done.push("own"));
      void neighbour.write([set(packKey(["b"]))]).then(() => done.push("neighbour"));
    };
    const rows = await session.list(ALL, { limit: DEAD });
    const [byOwn, byNeighbour] = ["own", "neighbour"].map((who) =>
      done.filter((each) => each === who).length
    );
    storage.began = () => {};
    assert.deepEqual(rows.map(({ key }) => key), [keyOf(DEAD)]);
    assert.ok(byOwn === 1, `${byOwn} of its own app while it was listed`);
    assert.ok((byNeighbour ?? 0) >= LIST_STEPS_MAX, `${byNeighbour} of a neighbour`);
  });
});

Deno.test("what a write with checks may look at is bounded, and a write as another's of long rows keeps none of them", async () => {
  await withReplica(async ({ replica, storage, session }) => {
    const MIB = 1 << 20, count = LOOKED_AT_BYTES_MAX / MIB + 4;
    for (let i = 0; i < count; i++) await session.write([set(keyOf("long", i), MIB)]);
    await session.durable();
    const checks = Array.from({ length: count }, (_, i) => ({ key: keyOf("long", i), version: null }));
    storage.readBytes = 0;
    await assert.rejects(session.write([set(keyOf("x"))], checks), WriteTooLarge);
    assert.ok(storage.readBytes <= LOOKED_AT_BYTES_MAX + MIB, `${storage.readBytes} bytes were read`);
    assert.deepEqual(await session.write([set(keyOf("x"))], checks.slice(0, 3)), { ok: false });
    const [found] = await session.get([keyOf("long", 1)]);
    assert.equal(found?.value?.length, MIB);
    const version = { clock: session.tick(), replica: replica.status().replica };
    const isWritten = await session.writeAs(checks.map(({ key }) => ({ kind: "delete", key })), version);
    assert.ok(isWritten);
    assert.deepEqual(
      await session.list(ALL),
      [await session.get([keyOf("x")]).then(([row]) => row)].filter(Boolean),
    );
  });
});

Deno.test("reads and writes are made on behalf of their session's lane", async () => {
  await withReplica(async ({ session }) => {
    await session.write([set(keyOf(1)), set(keyOf(2))]);
    let held = 0;
    const lane: Lane = { mayHold: true, held: () => void held++, whenMayHold: () => {} };
    session.lane = lane;
    for (
      const call of [
        () => session.list(ALL),
        () => session.get([keyOf(1), keyOf(2)]),
        () => session.write([set(keyOf(3))]),
        () => session.writeAs([set(keyOf(4))], { clock: session.tick(), replica: 1 }),
      ]
    ) {
      const before = held;
      await call();
      assert.equal(held, before + 1);
    }
  });
});
