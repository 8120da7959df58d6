/** What becomes of damaged rows, and of commits beside that (store/rows/healing_storage.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { Key } from "../../../store/model/key.ts";
import { DamagedRows, type DiskCommit } from "../../../store/model/ports.ts";
import type { Row } from "../../../store/model/row.ts";
import { type Healer, HealingStorage } from "../../../store/rows/healing_storage.ts";

const key = "k" as Key;
const rowOf = (position: number): Row => ({
  key,
  value: Uint8Array.of(position),
  position,
  ...{ clock: position, replica: 1, known: 0, expiresAtMs: 0 },
});
const commitOf = (...rows: Row[]): DiskCommit => ({ rows, drop: [], records: new Map() });

/** Rows are damaged until they are written anew; commits can be held up. */
class Disk extends MemoryStorage {
  readonly damaged = new Set<Key>();
  readonly commits: DiskCommit[] = [];
  held: Promise<void> | null = null;
  underWay = 0;

  override async commit(commit: DiskCommit): Promise<void> {
    assert.equal(++this.underWay, 1, "one at a time (HS2)");
    await this.held;
    await super.commit(commit);
    for (const row of commit.rows) this.damaged.delete(row.key);
    for (const dropped of commit.drop) this.damaged.delete(dropped);
    this.commits.push(commit);
    this.underWay--;
  }

  override async get(wanted: Key): Promise<Row | undefined> {
    if (this.damaged.has(wanted)) throw new DamagedRows([wanted]);
    return await super.get(wanted);
  }

  override async getMany(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    const broken = keys.filter((each) => this.damaged.has(each));
    if (broken.length > 0) throw new DamagedRows(broken);
    return await super.getMany(keys);
  }
}

async function broken(remembered: Row | undefined) {
  const disk = new Disk();
  const told: (readonly Key[])[] = [];
  const healer: Healer = {
    remembered: () => remembered,
    word: (lost) => [`lost/${lost}`, Uint8Array.of(1)],
    healed: (mended, dropped) => void told.push(mended, dropped),
  };
  await disk.commit(commitOf(rowOf(1)));
  disk.damaged.add(key);
  disk.commits.length = 0;
  return { disk, told, storage: new HealingStorage(disk, healer) };
}

Deno.test("a damaged row that nobody knows is dropped in one step with its word, and then the healer is told (HS1)", async () => {
  const { disk, told, storage } = await broken(undefined);
  assert.deepEqual(await storage.getMany([key]), [undefined]);
  assert.deepEqual(disk.commits.map(({ drop, records }) => [drop, [...records.keys()]]), [[[key], [
    `lost/${key}`,
  ]]]);
  assert.deepEqual(told, [[], [key]]);
});

Deno.test("a damaged row that memory has is written anew (HS1)", async () => {
  const { disk, told, storage } = await broken(rowOf(1));
  assert.deepEqual((await storage.get(key))?.value, Uint8Array.of(1));
  assert.deepEqual(disk.commits.map(({ rows, drop }) => [rows.length, drop.length]), [[1, 0]]);
  assert.deepEqual(told, [[key], []]);
});

Deno.test("a row that a commit under way writes is left as it is (HS2)", async () => {
  const { disk, told, storage } = await broken(undefined);
  const held = Promise.withResolvers<void>();
  disk.held = held.promise;
  const written = storage.commit(commitOf(rowOf(2)));
  const read = storage.get(key); // it meets the damage before the commit is there
  await Promise.resolve();
  held.resolve();
  await written;
  assert.deepEqual((await read)?.value, Uint8Array.of(2));
  assert.equal(disk.commits.length, 1, "nothing was dropped");
  assert.deepEqual(told, []);
});

Deno.test("a commit that comes while a row is healed waits for that, and stands (HS2)", async () => {
  const { disk, storage } = await broken(undefined);
  const held = Promise.withResolvers<void>();
  disk.held = held.promise;
  const read = storage.getMany([key]);
  while (disk.underWay === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  const written = storage.commit(commitOf(rowOf(2)));
  held.resolve();
  disk.held = null;
  await Promise.all([read, written]);
  assert.deepEqual((await storage.get(key))?.value, Uint8Array.of(2));
  assert.equal(disk.commits.length, 2);
});
