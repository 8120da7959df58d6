/** A site that comes with a copy of another's disk (store/change/removal.ts R6), or with an old one of its own. */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { StoreUnavailable, type TokenState } from "../../../store/api/api.ts";
import { Core } from "../../../store/core/core.ts";
import { packKey } from "../../../store/model/key.ts";
import { SiteReplica } from "../../../store/replica.ts";
import { WHOLE } from "../../../store/model/range.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { type Endpoint, SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { ProcessClock, World } from "../../sim/world.ts";

async function copyOf(storage: MemoryStorage): Promise<MemoryStorage> {
  const copy = new MemoryStorage();
  await copy.commit({ rows: await storage.scan(WHOLE), drop: [], records: await storage.load() });
  return copy;
}

/** A root and edges, in virtual time. */
function tree() {
  const world = new World(), draws = new Draws("copied disk"), notes: string[] = [], faults: string[] = [];
  const network = new SimNetwork({
    world,
    draws: draws.fork("network"),
    parentOf: (site) => site === "root" ? null : "root",
    quality: () => ({ delayMs: [5, 6], lossChance: 0, bytesPerMs: Infinity }),
    window: 64,
    noticeMs: [0, 10],
    lateChance: 0,
  });
  const start = async (site: SiteId, storage: MemoryStorage, ...among: readonly SiteId[]) => {
    const holder: { endpoint: Endpoint | null } = { endpoint: null };
    const parent = site === "root" ? null : "root";
    const owners = among.length === 0
      ? NO_OWNERS
      : { ...NO_OWNERS, f: among.length, sites: among, nearMs: 0 };
    const config = { site, parent, tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9, owners };
    const core = new Core(config, {
      clock: new ProcessClock(world, { skewMs: 0, drift: 0 }),
      random: draws.fork(site),
      storage,
      network: {
        send: (to, message) =>
          holder.endpoint === null ? Promise.resolve() : network.send(holder.endpoint, site, to, message),
      },
      fatal: (error) => void faults.push(error.message),
      note: (event, detail) => void notes.push(`${event} ${detail?.child} ${detail?.why}`),
    });
    const replica = new SiteReplica(core);
    await replica.start();
    holder.endpoint = {
      connected: (other, role) => replica.connected(other, role),
      disconnected: (other) => replica.disconnected(other),
      receive: (from, message) => replica.receive(from, message),
    };
    network.up(site, holder.endpoint);
    return { core, replica };
  };
  return { world, network, notes, faults, start };
}

Deno.test("a site that comes with a copy of another's disk is refused, and the other one goes on", async () => {
  const { world, notes, faults, start } = tree();
  const disk = new MemoryStorage();
  const root = await start("root", new MemoryStorage()), one = await start("e1", disk);
  await world.run(1_000);
  const session = await one.replica.attach(null);
  await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array(1) }]);
  const number = one.core.replica;
  assert.ok(number > 1);
  await world.run(2_000);
  await start("e2", await copyOf(disk));
  await world.run(5_000);
  assert.equal(root.core.topology.recordedEnd(number), undefined);
  assert.equal(root.core.topology.succession.keptOf(number), undefined);
  assert.deepEqual(notes, ["child_removed e2 other_disk"]);
  assert.deepEqual(faults, []);
});

Deno.test("a site that comes with an older copy of its own disk stops, before it loses what is written there", async () => {
  const { world, network, faults, start } = tree();
  const disk = new MemoryStorage();
  await start("root", new MemoryStorage());
  const one = await start("e1", disk);
  await world.run(1_000);
  const old = await copyOf(disk);
  const session = await one.replica.attach(null);
  await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array(1) }]);
  await world.run(2_000);
  network.down("e1");
  await one.replica.close();
  await start("e1", old);
  await world.run(5_000);
  assert.equal(faults.length, 1);
  assert.match(faults[0] ?? "", /the disk of site e1 .* older/);
});

Deno.test("an older copy is known by an owner, too, that has what the parent never had", async () => {
  const { world, network, faults, start } = tree();
  const disk = new MemoryStorage();
  await start("root", new MemoryStorage());
  const one = await start("e1", disk, "e2");
  await start("e2", new MemoryStorage());
  assert.ok(await world.run(20_000, () => one.replica.status().wards.owners.length === 1));
  await world.run(world.nowMs + 2_000);
  const old = await copyOf(disk);
  network.partition("e1", "root", Infinity);
  const session = await one.replica.attach(null);
  await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array(1) }]);
  const told = session.durable().then(() => true);
  await world.run(world.nowMs + 1_000);
  assert.ok(await told, "its owner has it");
  network.down("e1");
  await one.replica.close();
  await start("e1", old, "e2");
  await world.run(world.nowMs + 5_000);
  assert.equal(faults.length, 1);
  assert.match(
    faults[0] ?? "",
    /the disk of site e1 was found ending at position \d+, and e2 has had .* older copy/,
  );
});

Deno.test("a token of what an older copy lacks is source_lost at its own site, also when more is written there (H13)", async () => {
  const { world, network, faults, start } = tree();
  const disk = new MemoryStorage();
  const root = await start("root", disk);
  await world.run(1_000);
  const write = async (from: TokenState | null, value: number, at = root) => {
    const session = await at.replica.attach(from);
    await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array([value]) }]);
    let isOver = false;
    session.durable().then(() => isOver = true);
    assert.ok(await world.run(world.nowMs + 5_000, () => isOver));
    return session.token(false);
  };
  const one = await write(null, 1);
  await world.run(world.nowMs + 2_000);
  const old = await copyOf(disk);
  const two = await write(one, 2);
  network.down("root");
  await root.replica.close();
  await world.run(world.nowMs + 2_000);
  const again = await start("root", old);
  await world.run(world.nowMs + 1_000);
  const lost = (error: unknown) => error instanceof StoreUnavailable && error.code === "source_lost";
  await assert.rejects(async () => await again.replica.attach(two), lost);
  let last = one;
  for (let i = 0; i < 5; i++) last = await write(last, 10 + i, again);
  assert.ok(again.core.rows.head > (two.path[0] ?? Infinity));
  await assert.rejects(async () => await again.replica.attach(two), lost);
  assert.equal((await again.replica.attach(last)).how, "same");
  assert.deepEqual(faults, []);
});

Deno.test("an older copy of the root's disk takes nobody who has had more of it, and says so", async () => {
  const { world, network, notes, faults, start } = tree();
  const disk = new MemoryStorage();
  const root = await start("root", disk);
  const one = await start("e1", new MemoryStorage());
  await world.run(2_000);
  const old = await copyOf(disk);
  const two = await start("e2", new MemoryStorage());
  await world.run(3_000);
  const session = await two.replica.attach(null);
  await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array(1) }]);
  await world.run(4_000);
  assert.ok(two.core.replica > one.core.replica);
  network.down("root");
  await root.replica.close();
  const again = await start("root", old);
  await world.run(8_000);
  assert.deepEqual([...new Set(notes)].sort(), ["child_removed e1 ahead", "child_removed e2 ahead"]);
  assert.equal(again.core.topology.incarnation(two.core.replica), undefined);
  assert.deepEqual(faults, []);
  const third = await start("e3", new MemoryStorage());
  await world.run(12_000);
  assert.ok(third.core.replica > one.core.replica, "a blank site is taken");
  assert.notEqual(third.core.replica, two.core.replica, "a number is given once (N4)");
  assert.deepEqual(faults, []);
});

/** A session writes once at a site, and has its answer: the token that it leaves with. */
async function written(
  { world }: Pick<ReturnType<typeof tree>, "world">,
  replica: SiteReplica,
  from: TokenState | null,
  value: number,
): Promise<TokenState> {
  const session = await replica.attach(from);
  await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array([value]) }]);
  let isOver = false;
  session.durable().then(() => isOver = true);
  assert.ok(await world.run(world.nowMs + 5_000, () => isOver));
  return session.token(false);
}

const isLost = (error: unknown) => error instanceof StoreUnavailable && error.code === "source_lost";

Deno.test("an older copy of the root's disk is found out by who was below, also when it has written as much since (R8, H13)", async () => {
  const all = tree(), { world, network, notes, faults, start } = all;
  const disk = new MemoryStorage();
  const root = await start("root", disk), one = await start("e1", new MemoryStorage());
  await world.run(2_000);
  const old = await copyOf(disk);
  let there: TokenState | null = null;
  for (let i = 0; i < 3; i++) there = await written(all, one.replica, there, i);
  await world.run(world.nowMs + 2_000);
  // It names a position in the root's journal, and e1 has nothing that is still on its way.
  const seen = (await one.replica.attach(there)).token(false);
  const later = await written(all, one.replica, seen, 9);
  await world.run(world.nowMs + 2_000);
  const { head } = root.core.rows;
  network.down("root");
  network.partition("e1", "root", world.nowMs + 2_000);
  await root.replica.close();
  const again = await start("root", old);
  let own: TokenState | null = null;
  const missed = head - (again.core.gaps.last?.from ?? 0);
  for (let i = 0; i <= missed; i++) own = await written(all, again.replica, own, 20 + i);
  await world.run(world.nowMs + 3_000);
  assert.deepEqual([...new Set(notes)].filter((note) => note.startsWith("child_removed")), [
    "child_removed e1 ahead",
  ]);
  assert.ok(again.core.gaps.around(seen.path[0] ?? 0) !== undefined);
  await assert.rejects(async () => await again.replica.attach(seen), isLost);
  let outcome: unknown = null;
  const arriving = async () => await again.replica.attach(later);
  arriving().then((session) => outcome = session, (error) => outcome = error);
  assert.ok(await world.run(world.nowMs + 5_000, () => outcome !== null));
  assert.ok(isLost(outcome), String(outcome));
  assert.equal((await again.replica.attach(own)).how, "same");
  assert.deepEqual(faults, []);
});

Deno.test("a site that comes with an older copy of its own disk stops, also when it has written as much since", async () => {
  const all = tree(), { world, network, faults, start } = all;
  const disk = new MemoryStorage();
  await start("root", new MemoryStorage());
  const one = await start("e1", disk);
  await world.run(1_000);
  const old = await copyOf(disk);
  for (let i = 0; i < 3; i++) await written(all, one.replica, null, i);
  await world.run(world.nowMs + 2_000);
  const { head } = one.core.rows;
  network.down("e1");
  await one.replica.close();
  network.partition("e1", "root", world.nowMs + 5_000);
  const again = await start("e1", old);
  const missed = head - (again.core.gaps.last?.from ?? 0);
  for (let i = 0; i <= missed; i++) await written(all, again.replica, null, 7);
  await world.run(world.nowMs + 8_000);
  assert.equal(faults.length, 1);
  assert.match(faults[0] ?? "", /the disk of site e1 was found ending at .* older copy/);
});

Deno.test("a session that saw nothing of an older copy loses nothing with it, though that is from before the site had owners (H17)", async () => {
  const { world, network, faults, start } = tree();
  const disk = new MemoryStorage(), key = packKey(["x"]);
  await start("root", new MemoryStorage());
  const one = await start("e1", disk, "e2");
  await world.run(world.nowMs + 200);
  const done = async <T>(what: Promise<T>): Promise<T> => {
    let isOver = false;
    what.then(() => isOver = true, () => isOver = true);
    assert.ok(await world.run(world.nowMs + 5_000, () => isOver));
    return await what;
  };
  const attach = (at: typeof one) => done(Promise.resolve(at.replica.attach(null)));
  assert.deepEqual(await done((await attach(one)).get([key])), [undefined]);
  await world.run(world.nowMs + 100);
  const old = await copyOf(disk);
  const owner = await start("e2", new MemoryStorage());
  assert.ok(await world.run(20_000, () => one.replica.status().wards.owners.length === 1));
  network.down("e1"); // before its owner has heard that it owns
  await done(one.replica.close());
  network.partition("e1", "root", Infinity);
  const again = await start("e1", old, "e2");
  const reading = await attach(again);
  assert.deepEqual(await done(reading.get([key])), [undefined]);
  assert.ok(reading.isDurable);
  const token = reading.token(false);
  const writing = await attach(again);
  await done(writing.write([{ kind: "set", key: packKey(["z"]), value: new Uint8Array(1) }]));
  assert.deepEqual([token.open, writing.token(false).open], [false, true]);
  network.block("e1", "root", 0);
  assert.ok(await world.run(world.nowMs + 5_000, () => faults.length === 1));
  network.down("e1");
  const blank = await start("e1", new MemoryStorage(), "e2");
  assert.ok(await world.run(world.nowMs + 20_000, () => blank.core.replica > again.core.replica));
  await world.run(world.nowMs + 2_000);
  const elsewhere = await done(Promise.resolve(owner.replica.attach(token)));
  assert.equal(elsewhere.how, "nothing");
  const asOpen = async () => await owner.replica.attach({ ...token, open: true });
  await assert.rejects(asOpen, { code: "source_lost" }, "nobody knows what more it was told");
});

Deno.test("a disk from before a change of owners was in effect, of which no row is missing, has it in effect again (wards/source.ts G6)", async () => {
  const { world, network, faults, start } = tree();
  const disk = new MemoryStorage();
  await start("root", new MemoryStorage());
  for (const owner of ["e2", "e3"]) await start(owner, new MemoryStorage());
  const before = await start("e1", disk, "e2");
  const owners = ({ replica }: typeof before) => replica.status().wards;
  assert.ok(await world.run(20_000, () => owners(before).owners.length === 1));
  await world.run(world.nowMs + 1_000);
  network.down("e1");
  await before.replica.close();
  const one = await start("e1", disk, "e2", "e3");
  let old: MemoryStorage | null = null;
  for (const untilMs = world.nowMs + 20_000; world.nowMs < untilMs && owners(one).owners.length < 2;) {
    await world.run(world.nowMs + 1);
    if (owners(one).next !== null) old = await copyOf(disk);
  }
  assert.ok(old !== null);
  await world.run(world.nowMs + 1_000);
  assert.deepEqual([owners(one).owners, owners(one).next], [["e2", "e3"], null]);
  network.down("e1");
  await one.replica.close();
  const again = await start("e1", old, "e2", "e3");
  assert.equal(owners(again).owners.length, 1);
  assert.ok(await world.run(world.nowMs + 20_000, () => owners(again).owners.length === 2));
  await world.run(world.nowMs + 1_000);
  assert.deepEqual([owners(again).next, owners(again).silent, faults], [null, [], []]);
});
