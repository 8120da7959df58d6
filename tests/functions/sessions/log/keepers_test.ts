/** A log on the disk of one of its owners, by what that is asked (functions/sessions/log/keepers.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../../runtime/storage/memory.ts";
import { GroupCommit } from "../../../../functions/sessions/log/group_commit.ts";
import { Keepers, loadDisk } from "../../../../functions/sessions/log/keepers.ts";
import type { Clock } from "../../../../store/model/ports.ts";

const NAME = { app: "shop", class: "cart", id: "x" };
const random = { bytes: (length: number) => new Uint8Array(length).fill(7) };

/** A disk as a process opens it; another process opens the same. */
async function opened(storage = new MemoryStorage()) {
  const clock = { turn: () => Promise.resolve() } as unknown as Clock;
  const loaded = await loadDisk(storage, random, () => 0);
  const disk = new GroupCommit({ storage, clock, fatal: (error) => assert.fail(error) }, loaded.position);
  const news: string[] = [];
  const keepers = new Keepers({
    ...{ storage, disk, nowMs: () => 0, fenced: () => {}, openOf: () => 0 },
    changed: (_, { kind }) => void news.push(kind),
  }, loaded);
  const of = (epoch: number) => ({ name: NAME, disk: keepers.disk, epoch });
  const install = (epoch: number) =>
    keepers.handle("home", {
      ...{ kind: "install", turn: 1, seed: new Uint8Array(32), version: "v", base: null, parts: [] },
      ...of(epoch),
    });
  const append = (epoch: number, first: number) =>
    keepers.handle("home", {
      ...{ kind: "append", ...of(epoch) },
      pieces: [{ first, count: 1, epoch, bytes: Uint8Array.of(first), wakeAtMs: 0 }],
    });
  const lastOf = () => keepers.log(NAME)?.last ?? null;
  return { keepers, storage, of, install, append, lastOf, news };
}

Deno.test("a log is begun once in an epoch: what was appended since is not lost by an ask that comes again (K3)", async () => {
  const { install, append, lastOf } = await opened();
  await install(3);
  await append(3, 1);
  assert.deepEqual((await install(3)).kind, "held");
  assert.equal(lastOf(), 1);
  await install(4);
  assert.equal(lastOf(), 0, "another epoch begins it anew");
});

Deno.test("a promise begins no log, and what is not here is forgotten already (K4)", async () => {
  const { keepers, of, append, lastOf, news, storage } = await opened();
  assert.deepEqual(await keepers.handle("home", { kind: "promise", ...of(9) }), {
    ...{ kind: "promised", disk: keepers.disk, aligned: false, log: null },
  });
  assert.deepEqual(await keepers.handle("home", { kind: "forget", turn: 1, ...of(9) }), {
    ...{ kind: "held", through: 0 },
  });
  const refused = await append(9, 1);
  assert.deepEqual([refused.kind, lastOf(), news], ["refused", null, []]);
  const again = await opened(storage);
  assert.equal(again.keepers.size, 0);
});

Deno.test("a log takes the piece that follows its last one, and none behind a gap (kept_log.ts L1)", async () => {
  const { install, append, lastOf } = await opened();
  await install(3);
  const behindGap = await append(3, 2);
  assert.deepEqual([behindGap.kind, behindGap.kind === "refused" && behindGap.why], ["refused", "gap"]);
  assert.equal(lastOf(), 0);
  await append(3, 1);
  assert.equal((await append(3, 3)).kind, "refused");
  assert.equal((await append(3, 2)).kind, "held");
  assert.equal(lastOf(), 2);
});

Deno.test("a site that has promised an epoch to one home takes nothing of an earlier one, also in its next process (K1)", async () => {
  const { keepers, of, install, append, lastOf, storage } = await opened();
  await install(3);
  await append(3, 1);
  await keepers.handle("other", { kind: "promise", ...of(4) });
  assert.equal((await append(3, 2)).kind, "refused");
  const next = await opened(storage);
  assert.equal((await next.append(3, 2)).kind, "refused", "it was on disk before the answer left");
  assert.deepEqual([lastOf(), next.lastOf()], [1, 1]);
});

Deno.test("a site says that it holds what is on its disk, and what comes together is there in one step (K2)", async () => {
  const { install, append, storage } = await opened();
  await install(3);
  const written = Promise.withResolvers<void>(), commit = storage.commit.bind(storage);
  let commits = 0;
  storage.commit = async (step) => {
    commits++;
    await written.promise;
    await commit(step);
  };
  const said: number[] = [];
  const held = [1, 2, 3].map(async (first) => {
    const reply = await append(3, first);
    said.push(reply.kind === "held" ? reply.through : 0);
  });
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert.deepEqual(said, [], "nothing is on the disk yet");
  written.resolve();
  await Promise.all(held);
  assert.deepEqual([said, commits], [[1, 2, 3], 1]);
  assert.equal((await opened(storage)).lastOf(), 3);
});

Deno.test("what is fetched is of one moment, on disk, and of the epoch that asks (K6)", async () => {
  const { keepers, of, install, append } = await opened();
  await install(3);
  await append(3, 1);
  const fetch = () => keepers.handle("home", { kind: "fetch", after: 0, whole: true, ...of(3) });
  const [copy] = await Promise.all([fetch(), append(3, 2)]);
  assert.ok(copy.kind === "copy");
  assert.deepEqual(copy.pieces.map(({ bytes }) => [...bytes]), [[1], [2]]);
  const [late] = await Promise.all([fetch(), keepers.handle("other", { kind: "promise", ...of(4) })]);
  assert.deepEqual([late.kind, late.kind === "refused" && late.why], ["refused", "superseded"]);
});

Deno.test("a disk that went back has another number, also for the next process (K8)", async () => {
  const { keepers, storage, of, install } = await opened();
  await install(3);
  const before = of(3);
  await keepers.wentBack(before.disk + 1);
  const asked = await keepers.handle("home", { kind: "promise", ...before });
  assert.deepEqual([asked.kind, asked.kind === "refused" && asked.why], ["refused", "disk"]);
  const next = await opened(storage);
  assert.deepEqual([next.keepers.disk, next.lastOf()], [before.disk + 1, 0]);
});
