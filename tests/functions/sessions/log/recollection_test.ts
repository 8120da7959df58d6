/** What a disk has heard of the arbiter, and what it tells of names (functions/sessions/log/recollection.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../../runtime/storage/memory.ts";
import { GroupCommit } from "../../../../functions/sessions/log/group_commit.ts";
import { HEADS, type KeptLog } from "../../../../functions/sessions/log/kept_log.ts";
import { NAMES_AT_ONCE } from "../../../../functions/sessions/log/limits.ts";
import { keyOf } from "../../../../functions/sessions/log/name.ts";
import { JUMP_MIN, Recollection } from "../../../../functions/sessions/log/recollection.ts";
import type { Clock } from "../../../../store/model/ports.ts";

const nameOf = (id: string) => ({ app: "shop", class: "cart", id });
const NOBODY = { home: null, granted: 0 };

async function recalling(storage = new MemoryStorage()) {
  const clock = { turn: () => Promise.resolve() } as unknown as Clock;
  const disk = new GroupCommit({ storage, clock, fatal: (error) => assert.fail(error) }, 0);
  const recollection = new Recollection(
    { disk, storage, number: () => 5 },
    await Recollection.load(storage),
  );
  return { disk, storage, recollection };
}

Deno.test("a position that was heard is on disk with the next step, and before anything is said of it (RE1)", async () => {
  const { disk, storage, recollection } = await recalling();
  recollection.hear(7);
  recollection.hear(3);
  assert.equal(recollection.position, 7);
  assert.equal((await Recollection.load(storage)).position, 0, "nobody waits for it");
  disk.put(keyOf("x", nameOf("a")), new Uint8Array(1));
  await disk.durable();
  assert.deepEqual(await Recollection.load(storage), { position: 7, jumps: [] });
  recollection.hear(8);
  assert.deepEqual(await recollection.witness(), { kind: "witness", disk: 5, position: 8, jumps: [] });
  assert.equal((await Recollection.load(storage)).position, 8);
  await recollection.heard(9);
  assert.equal((await Recollection.load(storage)).position, 9);
});

Deno.test("of an arbiter that left positions out the last one before each jump is kept, a hundred of them (RE3)", async () => {
  const { storage, recollection } = await recalling();
  await recollection.heard(10 * JUMP_MIN);
  assert.deepEqual((await Recollection.load(storage)).jumps, [], "nothing was heard before");
  await recollection.heard(11 * JUMP_MIN);
  assert.deepEqual((await Recollection.load(storage)).jumps, [], "it made so many steps");
  await recollection.heard(12 * JUMP_MIN + 1);
  assert.deepEqual((await Recollection.load(storage)).jumps, [11 * JUMP_MIN]);
  const after = await recalling(storage);
  for (let i = 1; i <= 100; i++) await after.recollection.heard((12 + 2 * i) * JUMP_MIN);
  const { jumps } = await Recollection.load(storage);
  assert.deepEqual([jumps.length, jumps[0], jumps.at(-1)], [100, 12 * JUMP_MIN + 1, (10 + 200) * JUMP_MIN]);
});

Deno.test("it is known which epoch a session ended in for as long as it has to be, and what its home said is on record (RE2)", async () => {
  const { disk, recollection } = await recalling();
  const name = nameOf("a"), owners = [{ site: "b", disk: 3 }];
  const told = (ended: number, log: unknown = null) => ({ kind: "recalled", disk: 5, log, ...NOBODY, ended });
  assert.deepEqual(await recollection.recall(name, undefined, NOBODY), told(0));
  recollection.ended(name, 4, 1_000);
  recollection.ended(nameOf("b"), 2, 2_000);
  assert.deepEqual(await recollection.recall(name, undefined, NOBODY), told(4));
  const log = { head: { promised: 6, by: "c", version: "v2" } } as unknown as KeptLog;
  recollection.recorded(name, { config: 9, owners });
  const here = { home: null, granted: 3 };
  assert.deepEqual(await recollection.recall(name, log, here), {
    ...told(4, { promised: 6, by: "c", config: 9, owners, version: "v2" }),
    granted: 3,
  });
  recollection.forgotten(name);
  assert.deepEqual(await recollection.recall(name, log, NOBODY), {
    ...told(4, { promised: 6, by: "c", config: 0, owners: [], version: "v2" }),
  });
  await recollection.sweep(1_000);
  assert.deepEqual(await recollection.recall(name, undefined, NOBODY), told(4), "it is not so old yet");
  await recollection.sweep(1_001);
  await disk.durable();
  assert.deepEqual(await recollection.recall(name, undefined, NOBODY), told(0));
  assert.deepEqual(await recollection.recall(nameOf("b"), undefined, NOBODY), told(2));
});

Deno.test("names of logs and of what ended are told in one order, some at a time, each once (RE2)", async () => {
  const { disk, recollection } = await recalling();
  const all: string[] = [];
  for (let i = 0; i < 2 * NAMES_AT_ONCE + 7; i++) {
    const id = `${i}`.padStart(6, "0");
    all.push(id);
    if (i % 3 !== 0) disk.put(keyOf(HEADS, nameOf(id)), new Uint8Array(1));
    if (i % 3 !== 1) recollection.ended(nameOf(id), 1, 1_000);
  }
  const found: string[] = [];
  let after: ReturnType<typeof nameOf> | null = null, asks = 0;
  for (let isMore = true; isMore; asks++) {
    const reply = await recollection.names(after);
    assert.ok(reply.kind === "names" && reply.names.length <= 2 * NAMES_AT_ONCE);
    found.push(...reply.names.map(({ id }) => id));
    after = nameOf(found.at(-1) ?? "");
    isMore = reply.more;
  }
  assert.deepEqual(found, all);
  assert.ok(asks > 1);
  await recollection.sweep(1_001);
  await disk.durable();
  const left = await recollection.names(null);
  assert.ok(
    left.kind === "names" && left.names.every(({ id }) => Number(id) % 3 !== 0),
    "they are forgotten",
  );
});
