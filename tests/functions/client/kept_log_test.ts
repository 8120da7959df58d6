/**
 * What a page that is gone at any moment leaves of its host side: identity, messages and the session's log, as a home
 * was told of them.
 */
import { strict as assert } from "node:assert";
import { KeptPeer } from "../../../functions/client/kept_peer.ts";
import type { StorageChange } from "../../../functions/client/ports.ts";
import { MemoryClientStorage } from "../../../functions/client/storage.ts";
import { decodeSummary, HOST_LOG_BYTES_MAX, HostLog } from "../../../functions/sessions/sealed/mod.ts";
import { Draws } from "../../sim/random.ts";

const PATH = "/table/7";
const identity = { id: "p1", key: new Uint8Array(32).fill(1) };
/** As far as who holds them can read: a tag that tells them apart, of no series that opens. */
const sealed = (number: number, bytes = 4): number[] => [...new Uint8Array(bytes), ...tagOf(number)];
const tagOf = (number: number): Uint8Array => {
  const tag = new Uint8Array(12);
  new DataView(tag.buffer).setUint32(0, number);
  return tag;
};
const whole = (epoch: number, number: number, bytes = 4) =>
  Uint8Array.from([0, epoch, ...new Uint8Array(16), ...sealed(number, bytes)]);
const further = (epoch: number, number: number) =>
  Uint8Array.from([1, epoch, ...new Uint8Array(16), ...sealed(number)]);
const pieces = (number: number) => Uint8Array.from([2, ...sealed(number)]);

/** A storage of which a copy is made after each commit, as of a page that is gone then. */
class CrashingStorage extends MemoryClientStorage {
  readonly copies: (readonly (readonly [string, Uint8Array])[])[] = [[]];
  /** Changes reach the disk one by one: what is broken. */
  isTorn = false;
  /** It says that all is kept, and keeps it later: what is broken. */
  isHasty = false;

  override commit(changes: readonly StorageChange[]): Promise<void> {
    if (!this.isHasty) return this.#keep(changes);
    void Promise.resolve().then(() => Promise.resolve()).then(() => this.#keep(changes));
    return Promise.resolve();
  }

  async #keep(changes: readonly StorageChange[]): Promise<void> {
    for (const each of this.isTorn ? changes.map((change) => [change]) : [changes]) {
      await super.commit(each);
      this.copies.push(await this.list(""));
    }
  }
}

/** What a home may believe of a host side. */
interface Told {
  readonly received: number;
  readonly promised: number;
  readonly records: number;
  readonly messages: number;
}

/** A page's host side, with whatever a home may do to it, and what the home was told when. */
async function page(seed: number, storage: CrashingStorage): Promise<readonly { told: Told; at: number }[]> {
  const draws = new Draws(`${seed}`);
  const peer = await KeptPeer.open(storage, PATH);
  assert(peer !== null);
  const told: { told: Told; at: number }[] = [];
  const now = { received: 0, promised: 0, records: 0, messages: 0 };
  let acknowledged = 0, number = 0;
  /** As HostSide does: what it says is true when it says so. */
  const channel = peer.channel({
    send: (frame) =>
      void told.push({ told: JSON.parse(new TextDecoder().decode(frame)), at: storage.copies.length - 1 }),
    close: () => {},
  }, () => assert.fail("it can be kept"));
  const head = () => peer.head({ identity, epoch: now.promised, received: now.received }, acknowledged + 1);
  head();
  for (let step = 0; step < 60; step++) {
    switch (draws.integer(0, 7)) {
      case 0:
        now.promised += 1 + draws.integer(0, 1);
        assert.notEqual(peer.log.promise(now.promised), null);
        break;
      case 1:
        number++;
        if (now.promised === 0) now.promised = 1;
        assert.equal(peer.log.take(now.promised, whole(now.promised, number)), "held");
        now.records = number;
        break;
      case 2:
      case 3:
        if (now.records === 0) break;
        number++;
        assert.equal(
          peer.log.take(
            now.promised,
            draws.integer(0, 2) > 0 ? pieces(number) : further(now.promised, number),
          ),
          "held",
        );
        now.records = number;
        now.received++;
        head();
        break;
      case 4:
        peer.message(++now.messages, Uint8Array.of(0, now.messages));
        break;
      case 5:
        acknowledged += draws.integer(0, now.messages - acknowledged);
        head();
        break;
      case 6:
        channel.send(new TextEncoder().encode(JSON.stringify(now)));
        break;
      default:
        for (let turns = draws.integer(0, 11); turns > 0; turns--) await Promise.resolve();
    }
  }
  channel.send(new TextEncoder().encode(JSON.stringify(now)));
  await peer.leave();
  return told;
}

/** Looks at what each crash would leave. @throws where it is less than a home was told, or not whole */
async function survey(seed: number, storage: CrashingStorage): Promise<number> {
  const told = await page(seed, storage);
  let held = 0;
  for (const [at, copy] of storage.copies.entries()) {
    const next = await KeptPeer.open(new MemoryClientStorage(copy), PATH);
    assert(next !== null);
    const before = told.filter((each) => each.at <= at).at(-1)?.told;
    if (copy.length > 0) {
      assert.notEqual(next.saved, null, `seed ${seed}, commit ${at}: nothing is left`);
      assert.equal(next.program, 2, `seed ${seed}, commit ${at}: the one before is not counted (K5)`);
    }
    if (before === undefined) continue;
    const { promised, tag } = decodeSummary(next.log.summary());
    assert(promised >= before.promised, `seed ${seed}, commit ${at}: ${promised} of ${before.promised}`);
    const last = tag === null ? 0 : new DataView(tag.buffer).getUint32(0);
    assert(last >= before.records, `seed ${seed}, commit ${at}: record ${last} of ${before.records}`);
    assert((next.saved?.received ?? 0) >= before.received, `seed ${seed}, commit ${at}: outputs`);
    const { first = 1, messages = [] } = next.saved ?? {};
    assert(first + messages.length > before.messages, `seed ${seed}, commit ${at}: messages`);
    const records = next.log.promise(promised) ?? [];
    assert(records.length === 0 || records[0]?.[0] === 0, "it begins with a whole record");
    const numbers = records.map((record) => new DataView(record.buffer, record.length - 12).getUint32(0));
    assert(numbers.every((each, i) => i === 0 || each === (numbers[i - 1] ?? 0) + 1), `${numbers}`);
    held += records.length;
  }
  return held;
}

Deno.test("a page that is gone at any commit leaves all that a home was told: log, promise and messages (K1, KL1)", async () => {
  let held = 0;
  for (let seed = 1; seed <= 100; seed++) held += await survey(seed, new CrashingStorage());
  assert(held > 1_000, `${held} records were looked at`);
});

Deno.test("a storage that keeps a part of a commit, or says so too early, is found by the same test", async () => {
  for (const wrong of ["isTorn", "isHasty"] as const) {
    let found = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const storage = new CrashingStorage();
      storage[wrong] = true;
      await survey(seed, storage).catch(() => found++);
    }
    assert(found > 0, wrong);
  }
});

Deno.test("a whole record takes the place of what was kept before it, in one commit (KL2)", async () => {
  const storage = new CrashingStorage();
  const peer = await KeptPeer.open(storage, PATH);
  peer?.head({ identity, epoch: 1, received: 0 }, 1);
  for (const record of [whole(1, 1), pieces(2), pieces(3)]) peer?.log.take(1, record);
  const { send } = peer?.channel({ send: () => {}, close: () => {} }, () => assert.fail()) ?? assert.fail();
  send(new Uint8Array());
  await new Promise((resolve) => setImmediate(resolve));
  const records = (copy: readonly (readonly [string, Uint8Array])[] | undefined) =>
    copy?.filter(([name]) => name.includes("/r/")).length;
  assert.equal(records(storage.copies.at(-1)), 3);
  const before = storage.copies.length;
  peer?.log.take(2, whole(2, 4));
  send(new Uint8Array());
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([storage.copies.length, records(storage.copies.at(-1))], [before + 1, 1]);
  assert.equal(peer?.log.take(2, whole(2, 5, HOST_LOG_BYTES_MAX)), "invalid", "bounded");
  await peer?.leave();
});

Deno.test("what is forgotten or at its end leaves no log; one that is not whole leaves nobody (K3, KL3)", async () => {
  const storage = new MemoryClientStorage();
  const kept = async (change: (peer: KeptPeer) => Promise<void> | void) => {
    const peer = await KeptPeer.open(storage, PATH) ?? assert.fail();
    peer.head({ identity, epoch: 1, received: 3 }, 1);
    peer.message(1, Uint8Array.of(0, 7));
    peer.log.take(1, whole(1, 1));
    peer.log.take(1, pieces(2));
    await change(peer);
    await peer.leave();
    return (await storage.list("")).map(([name]) => name.split("/").slice(3).join("/"));
  };
  const all = ["head", "log", "m/0000000000000001", "program", "r/0000000000000000", "r/0000000000000001"];
  assert.deepEqual(await kept(() => {}), all);
  const back = await KeptPeer.open(storage, PATH);
  assert.deepEqual(back?.log.promise(1), [whole(1, 1), pieces(2)]);
  assert.equal(back?.log.take(1, pieces(3)), "held", "it goes on from there");
  await back?.leave();
  assert.equal((await storage.list("")).length, 7);
  assert.deepEqual(await kept((peer) => peer.end()), []);

  const names = async () => (await storage.list("")).map(([name]) => name);
  for (const lost of ["log", "r/0000000000000000", "head"]) {
    await kept(() => {});
    const name = (await names()).find((each) => each.endsWith(lost)) ?? assert.fail(lost);
    await storage.commit([[name, null]]);
    const next = await KeptPeer.open(storage, PATH);
    assert.equal(next?.saved, null, `${lost} is missing`);
    assert.deepEqual(decodeSummary(next?.log.summary() ?? new Uint8Array()), { promised: 0, tag: null });
    next?.head({ identity: { ...identity, id: "p2" }, epoch: 1, received: 0 }, 1);
    await next?.leave();
    const left = (await names()).map((each) => each.split("/").at(-1));
    assert.deepEqual(left, ["head", "program"], "nothing of the one before is left to the new one");
    await (await KeptPeer.open(storage, PATH))?.end();
  }
});

Deno.test("a promise of who was never anybody is not the next one's (K3)", async () => {
  const storage = new MemoryClientStorage();
  const first = await KeptPeer.open(storage, PATH);
  assert.deepEqual(first?.log.promise(4), []);
  await first?.leave();
  const next = await KeptPeer.open(storage, PATH);
  assert.equal(next?.log.promised, 0);
  assert.equal(next?.log.take(1, whole(1, 1)), "held");
  await next?.leave();
});

Deno.test("a log that is kept is the log that is held, whatever a home sends", async () => {
  const storage = new MemoryClientStorage();
  for (let seed = 1; seed <= 20; seed++) {
    const draws = new Draws(`${seed}`);
    const log = new HostLog();
    for (let load = 0; load < 5; load++) {
      const peer = await KeptPeer.open(storage, `/of/${seed}`) ?? assert.fail();
      if (load === 0) peer.head({ identity, epoch: 1, received: 0 }, 1);
      assert.deepEqual(peer.log.summary(), log.summary());
      for (let step = 0; step < 30; step++) {
        const epoch = log.promised + draws.integer(0, 2) - 1;
        if (epoch < 0) continue;
        if (draws.integer(0, 3) === 0) assert.deepEqual(peer.log.promise(epoch), log.promise(epoch));
        const record = draws.pick([
          whole(Math.max(1, epoch), step),
          further(Math.max(1, epoch), step),
          pieces(step),
          Uint8Array.of(9),
        ]);
        assert.equal(peer.log.take(epoch, record), log.take(epoch, record));
      }
      await peer.leave();
    }
  }
});
