/** What a producer of tuples is told (store/owners/tuples.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import {
  decodeTuplePacket,
  encodeTuplePacket,
  type Entry,
  type TuplePacket,
} from "../../../store/owners/packet.ts";
import { versionAt } from "../../../store/owners/tuple.ts";
import { type NewTuple, Tuples, type TuplesPorts } from "../../../store/owners/tuples.ts";
import type { Standing } from "../../../store/presence/detector.ts";
import type { DiskCommit, Storage } from "../../../store/model/ports.ts";
import { World } from "../../sim/world.ts";

const BOOT = 1, OTHER_BOOT = 2;

/** A site whose one fellow answers when it is told to. */
class Site {
  readonly world = new World();
  readonly acted: string[] = [];
  readonly refused: string[] = [];
  answers = false;
  heard: (packet: TuplePacket) => void = () => {};
  tuples: Tuples | null = null;
  readonly standings = new Map<string, Standing>();

  ports(storage: Storage): TuplesPorts {
    const { world } = this;
    return {
      site: "a",
      boot: BOOT,
      clock: {
        nowMs: () => world.nowMs,
        steadyMs: () => world.nowMs,
        after: (ms, run) => world.after(ms, run),
        turn: () => world.sleep(0),
      },
      nowMs: () => world.nowMs,
      wallMs: () => world.nowMs,
      storage,
      send: (to, bytes) => {
        if (to !== "b") return Promise.resolve();
        this.heard(decodeTuplePacket(bytes));
        if (this.answers) world.after(5, () => this.#answer(decodeTuplePacket(bytes)));
        return Promise.resolve();
      },
      fellows: {
        choose: (_f, _kept, without) =>
          without("b") ? { owners: ["a"], missing: 1 } : { owners: ["a", "b"], missing: 0 },
        isKnown: (site) => site !== "stranger",
        isStranger: (site) => site === "stranger",
        standing: (site) => this.standings.get(site) ?? "alive",
        awaitedUntilMs: () => null,
        isInTouch: () => true,
        suspectMs: () => 2_000,
        watch: () => () => {},
        measured: () => {},
        onChange: () => () => {},
      },
      refused: (event, from) => void this.refused.push(`${event} ${from}`),
      fatal: (error) => {
        throw error;
      },
    };
  }

  async start(storage: Storage): Promise<Tuples> {
    const ports = this.ports(storage);
    return this.tuples = await Tuples.open(ports, {
      mine: ({ id }) => void this.acted.push(id),
      lost: () => {},
    });
  }

  /** It takes everything, and knows nothing that was not told. */
  #answer(packet: TuplePacket): void {
    if (packet.seq === 0) return;
    this.tuples?.received(
      "b",
      encodeTuplePacket({
        boot: OTHER_BOOT,
        to: BOOT,
        seq: 0,
        greeting: 0,
        list: packet.greeting,
        part: packet.greeting === 0 ? 0 : 1,
        isListEnd: packet.greeting !== 0,
        receipts: [{ seq: packet.seq, full: false }],
        missing: [],
        entries: [],
        forget: [],
      }),
    );
  }

  /** What becomes of a promise within a time. */
  async within<T>(ms: number, promise: Promise<T>): Promise<T | string> {
    let outcome: T | string = "nothing";
    promise.then((value) => outcome = value, (error) => outcome = String(error.code));
    await this.world.run(this.world.nowMs + ms);
    return outcome;
  }
}

const payload = new Uint8Array(10);
const MARK = { dueMs: 0, note: "" };
const CONTENT = { topic: "mail", f: 1, rememberUntilS: 0, payload };
const tuple = (id: string): NewTuple => ({ payload, topic: "mail", f: 1, id });

Deno.test("tuples: a producer that was refused and comes again with the same id is told the truth", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  assert.equal(await site.within(3_000, tuples.store(tuple("x"))), "owners_missing");
  assert.equal(await site.within(3_000, tuples.store(tuple("x"))), "owners_missing");
  site.answers = true;
  await site.world.run(site.world.nowMs + 10_000);
  assert.equal(await site.within(3_000, tuples.store(tuple("x"))), "x");
  assert.deepEqual(site.acted, ["x"]);
});

Deno.test("tuples: what is to be kept is not given up where an owner is silent, and is stored when that one answers", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  const kept = { ...tuple("x"), isKept: true };
  assert.equal(await site.within(3_000, tuples.store(kept)), "owners_missing");
  assert.deepEqual([tuples.view("x")?.gone, site.acted], [false, []]);
  assert.equal(await site.within(3_000, tuples.store(kept)), "owners_missing");
  site.answers = true;
  assert.equal(await site.within(10_000, tuples.store(kept)), "x");
  assert.deepEqual(site.acted, ["x"]);
  // Who does not come again finds it kept for who does.
  site.answers = false;
  const both = [tuples.store(tuple("y")), tuples.store({ ...tuple("y"), isKept: true })];
  assert.equal(await site.within(3_000, both[0] ?? Promise.reject()), "owners_missing");
  assert.equal(tuples.view("y")?.gone, false);
});

Deno.test("tuples: what is stored under an id that was given up outlives late words of that (T2)", async () => {
  const site = new Site(), ends: Entry[] = [];
  site.heard = ({ entries }) => ends.push(...entries.filter(({ isUnsure }) => isUnsure));
  const tuples = await site.start(new MemoryStorage());
  assert.equal(await site.within(3_000, tuples.store(tuple("x"))), "owners_missing");
  site.answers = true;
  await site.world.run(site.world.nowMs + 10_000);
  assert.equal(await site.within(3_000, tuples.store(tuple("x"))), "x");
  const [end] = ends;
  assert.ok(end !== undefined);
  tuples.received("c", encodeTuplePacket({ ...HEAD, ...NONE, boot: OTHER_BOOT, seq: 1, entries: [end] }));
  await site.world.run(site.world.nowMs + 100);
  assert.equal(tuples.view("x")?.gone, false);
});

Deno.test("tuples: an owner that knows that an id was given up takes what is stored under it since (T2)", async () => {
  const site = new Site(), storage = new MemoryStorage();
  const tuples = await site.start(storage);
  const version = versionAt(5_000), owners = ["b", "a"], end = { mark: null, isUnsure: true, content: null };
  const first = { id: "x", version, owners: ["b", "a", "c"], mark: MARK, isUnsure: false, goneUntilS: 0 };
  const said = (seq: number, entry: Partial<Entry>) =>
    tuples.received(
      "b",
      encodeTuplePacket({
        ...HEAD,
        ...NONE,
        boot: OTHER_BOOT,
        seq,
        entries: [{ ...first, content: CONTENT, ...entry }],
      }),
    );
  said(1, {});
  said(2, { version: version + 1, ...end });
  await site.world.run(site.world.nowMs + 100);
  assert.equal(tuples.view("x")?.gone, true);
  said(3, { version: versionAt(8_000), owners, content: null });
  await site.world.run(site.world.nowMs + 100);
  assert.equal(tuples.view("x")?.gone, true, "it has no payload");
  said(4, { version: versionAt(8_000), owners });
  await site.world.run(site.world.nowMs + 100);
  const { gone, former } = tuples.view("x") ?? {};
  assert.deepEqual([gone, former], [false, ["c"]], "c may have the first one yet");
  assert.deepEqual(await tuples.read("x"), payload);
  said(5, { version: version + 1, ...end });
  await site.world.run(site.world.nowMs + 100);
  assert.equal(tuples.view("x")?.gone, false);
  const restarted = await site.start(storage);
  assert.equal(restarted.view("x")?.version, versionAt(8_000));
});

Deno.test("tuples: an id whose time is over is stored anew though not all know the end of the one before (O6)", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  const named = () => ({ ...tuple("x"), rememberUntilMs: site.world.nowMs + 5_000 });
  site.answers = true;
  assert.equal(await site.within(1_000, tuples.store(named())), "x");
  site.answers = false;
  await site.within(100, tuples.remove("x"));
  assert.equal(await site.within(100, tuples.store(named())), "x");
  assert.deepEqual(site.acted, ["x"], "it is known");
  await site.world.run(10_000);
  site.answers = true;
  const ended = tuples.view("x");
  assert.equal(await site.within(1_000, tuples.store(named())), "x");
  assert.deepEqual(site.acted, ["x", "x"]);
  const end = { id: "x", version: ended?.version ?? 0, owners: ["a", "b"], goneUntilS: 5 };
  tuples.received(
    "b",
    encodeTuplePacket({
      ...HEAD,
      ...NONE,
      boot: OTHER_BOOT,
      seq: 1,
      entries: [{ ...end, mark: null, isUnsure: false, content: null }],
    }),
  );
  assert.equal(tuples.view("x")?.gone, false, "that was before");
});

Deno.test("tuples: and after a restart of the site too", async () => {
  const site = new Site(), storage = new MemoryStorage();
  const before = await site.start(storage);
  assert.equal(await site.within(3_000, before.store(tuple("x"))), "owners_missing");
  const tuples = await site.start(storage);
  assert.equal(await site.within(100, tuples.store(tuple("x"))), "owners_missing");
});

Deno.test("tuples: a producer that comes again with what was acted on already is told that it is stored", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  site.answers = true;
  assert.equal(await site.within(1_000, tuples.store(tuple("x"))), "x");
  site.answers = false;
  await site.within(100, tuples.remove("x"));
  assert.equal(await site.within(100, tuples.store(tuple("x"))), "x");
  assert.deepEqual(site.acted, ["x"]);
});

Deno.test("tuples: those are on this disk alone that no other owner which lives is known to have", async () => {
  const site = new Site(), storage = new MemoryStorage();
  const tuples = await site.start(storage);
  const sole = () => Object.fromEntries(tuples.sole());
  site.answers = true;
  for (const id of ["x", "y", "z"]) assert.equal(await site.within(1_000, tuples.store(tuple(id))), id);
  assert.deepEqual(sole(), {}, "b has them");
  assert.equal(await site.within(100, tuples.store({ payload, topic: "post", f: 0, owners: ["a"] })), "1.1");
  assert.deepEqual(sole(), { post: 1 });
  site.standings.set("b", "suspected"); // as one that has stopped as planned
  await site.within(100, tuples.remove("y"));
  assert.deepEqual(sole(), { mail: 2, post: 1 });
  await site.within(100, tuples.close(site.world.nowMs + 60_000));
  assert.deepEqual(sole(), { mail: 2, post: 1 }, "after the last step");
  site.standings.set("b", "alive");
  site.answers = false;
  const restarted = await site.start(storage);
  assert.deepEqual(
    Object.fromEntries(restarted.sole()),
    { mail: 2, post: 1 },
    "b has not said that it has them",
  );
});

const HEAD = { to: BOOT, greeting: 0, list: 0, part: 0, isListEnd: false };
const NONE = { receipts: [], missing: [], forget: [], entries: [] };

Deno.test("tuples: a producer that comes again is not told that it is stored while an owner lacks it (O1)", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  const entry = {
    id: "x",
    version: 1,
    owners: ["b", "a"],
    mark: MARK,
    isUnsure: false,
    goneUntilS: 0,
    content: CONTENT,
  };
  const told = { ...HEAD, ...NONE, boot: OTHER_BOOT, seq: 1, entries: [entry] };
  tuples.received("b", encodeTuplePacket(told));
  await site.world.run(site.world.nowMs + 100);
  let hasIt = false;
  site.heard = ({ seq, entries }) => {
    if (seq === 0) return;
    const missing = hasIt ? [] : entries.map(({ id }) => id), receipts = [{ seq, full: false }];
    const answer = encodeTuplePacket({ ...HEAD, ...NONE, boot: OTHER_BOOT, seq: 0, receipts, missing });
    site.world.after(5, () => tuples.received("b", answer));
  };
  assert.equal(await site.within(3_000, tuples.store(tuple("x"))), "owners_missing");
  hasIt = true;
  assert.equal(await site.within(3_000, tuples.store(tuple("x"))), "x");
});

Deno.test("tuples: an owner that hears of the end of what it never had knows its id all the same (O6)", async () => {
  const site = new Site(), storage = new MemoryStorage();
  let tuples = await site.start(storage);
  const gone = { version: 2, owners: ["b", "a"], mark: null, isUnsure: false, content: null };
  const entries = [
    { ...gone, id: "known", goneUntilS: 60 },
    { ...gone, id: "over", goneUntilS: 0 },
    { ...gone, id: "others", owners: ["b", "c"], goneUntilS: 60 },
  ];
  tuples.received("b", encodeTuplePacket({ ...HEAD, ...NONE, boot: OTHER_BOOT, seq: 1, entries }));
  await site.world.run(site.world.nowMs + 100);
  assert.deepEqual([tuples.status().remembered, tuples.isKnown("known")], [1, true]);
  await tuples.close();
  tuples = await site.start(storage);
  assert.equal(await site.within(100, tuples.store(tuple("known"))), "known");
  assert.deepEqual(site.acted, []);
  await site.world.run(site.world.nowMs + 61_000);
  assert.equal(tuples.status().remembered, 0);
});

Deno.test("tuples: one whose owners were never heard of is refused, and nobody takes those for dead", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  const receipts: boolean[] = [];
  site.heard = (packet) => receipts.push(...packet.receipts.map(({ full }) => full));
  const tell = async (seq: number, id: string, version: number, owners: string[], isLight = false) => {
    const entry = {
      id,
      version,
      owners,
      mark: MARK,
      isUnsure: false,
      goneUntilS: 0,
      content: isLight ? null : CONTENT,
    };
    tuples.received("b", encodeTuplePacket({ ...HEAD, ...NONE, boot: OTHER_BOOT, seq, entries: [entry] }));
    await site.world.run(site.world.nowMs + 50);
  };
  await tell(1, "new", 1, ["b", "a", "stranger"]);
  await tell(2, "known", 1, ["b", "a"]);
  assert.deepEqual(receipts, [true, false]);
  assert.deepEqual(tuples.debugEntries().map(({ id }) => id), ["known"]);
  await tell(3, "known", 2, ["stranger", "a"], true);
  await site.world.run(site.world.nowMs + 10_000);
  assert.deepEqual(tuples.debugEntries().map(({ owners }) => owners), [["stranger", "a"]]);
  assert.deepEqual(site.acted, []);
  assert.deepEqual(site.refused, ["owner_unknown b", "owner_unknown b"]);
});

Deno.test("tuples: an owner without room for what it had lost is offered it again, and the status says so", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  site.answers = true;
  assert.equal(await site.within(1_000, tuples.store(tuple("x"))), "x");
  // Its disk is gone, and what is left of its room with it.
  site.answers = false;
  let hasRoom = false, offers = 0;
  site.heard = ({ seq, greeting, entries }) => {
    const full = entries.filter((entry) => entry.content !== null), isFull = full.length > 0 && !hasRoom;
    offers += full.length;
    const missing = entries.filter((entry) => entry.content === null && entry.mark !== null).map(({ id }) =>
      id
    );
    const receipts = seq === 0 ? [] : [{ seq, full: isFull }];
    const answer = { ...HEAD, ...NONE, boot: OTHER_BOOT + 1, seq: 0, receipts, missing };
    const list = { list: greeting, part: greeting === 0 ? 0 : 1, isListEnd: greeting !== 0 };
    site.world.after(5, () => tuples.received("b", encodeTuplePacket({ ...answer, ...list })));
  };
  tuples.received("b", encodeTuplePacket({ ...HEAD, ...NONE, boot: OTHER_BOOT + 1, seq: 0 }));
  await site.world.run(site.world.nowMs + 1_000);
  assert.deepEqual([offers, tuples.status().short], [1, 1]);
  await site.world.run(site.world.nowMs + 30_000);
  assert.ok(offers > 1 && offers < 8, `offered ${offers} times in half a minute`);
  hasRoom = true;
  await site.world.run(site.world.nowMs + 15_000);
  assert.equal(tuples.status().short, 0);
  const before = offers;
  await site.world.run(site.world.nowMs + 30_000);
  assert.equal(offers, before, "once it has it nothing is offered any more");
});

Deno.test("tuples: a site that returns acts on its own when the other owner was heard, however long that takes (O2)", async () => {
  const site = new Site(), storage = new MemoryStorage();
  const before = await site.start(storage);
  site.answers = true;
  assert.equal(await site.within(1_000, before.store(tuple("x"))), "x");
  await before.close();
  site.acted.length = 0;
  site.answers = false;
  await site.start(storage);
  await site.world.run(site.world.nowMs + 10_000);
  assert.deepEqual(site.acted, [], "the other one may have adopted it, and be done");
  site.heard = (packet) => {
    // All that it has is the same tuple, as it was.
    const entry = {
      id: "x",
      version: 1,
      owners: ["a", "b"],
      mark: MARK,
      isUnsure: false,
      goneUntilS: 0,
      content: null,
    };
    const list = { list: packet.greeting, part: 1, isListEnd: packet.greeting !== 0, entries: [entry] };
    const receipts = packet.seq === 0 ? [] : [{ seq: packet.seq, full: false }];
    const answer = encodeTuplePacket({ ...HEAD, ...NONE, boot: OTHER_BOOT, seq: 0, receipts, ...list });
    site.world.after(5, () => site.tuples?.received("b", answer));
  };
  await site.world.run(site.world.nowMs + 10_000);
  assert.deepEqual(site.acted, ["x"]);
});

Deno.test("tuples: what comes while a site stops begins no step beside its last one (H1)", async () => {
  class SlowStorage extends MemoryStorage {
    steps = 0;
    written = Promise.withResolvers<void>();
    override async commit(step: DiskCommit): Promise<void> {
      assert.equal(++this.steps, 1, "one at a time");
      await this.written.promise;
      await super.commit(step);
      this.steps--;
    }
  }
  const site = new Site(), storage = new SlowStorage();
  const tuples = await site.start(storage);
  storage.written.resolve();
  site.answers = true;
  assert.equal(await site.within(1_000, tuples.store(tuple("x"))), "x");
  const receipts: number[] = [];
  site.heard = (packet) => void receipts.push(...packet.receipts.map(({ seq }) => seq));
  let seq = 9;
  const offer = () => {
    const id = `y${++seq}`;
    const entry = {
      id,
      version: 1,
      owners: ["b", "a"],
      mark: MARK,
      isUnsure: false,
      goneUntilS: 0,
      content: CONTENT,
    };
    tuples.received("b", encodeTuplePacket({ ...HEAD, ...NONE, boot: OTHER_BOOT, seq, entries: [entry] }));
  };
  storage.written = Promise.withResolvers();
  const removed = tuples.remove("x");
  await site.world.run(site.world.nowMs + 100);
  let isClosed = false;
  const closing = tuples.close().then(() => isClosed = true);
  assert.equal(await site.within(1, tuples.store(tuple("z"))), "closed");
  assert.equal(tuples.isKnown("z"), false, "no disk would have it");
  for (let steps = 1; !isClosed; steps++) {
    assert.ok(steps <= 5, "it does not wait for what comes");
    offer();
    site.world.after(50, offer);
    const { resolve } = storage.written;
    storage.written = Promise.withResolvers();
    resolve();
    await site.world.run(site.world.nowMs + 100);
  }
  await closing;
  await removed;
  assert.ok(receipts.length > 0 && receipts.length < seq - 9, "not the last one, at least");
  storage.written.resolve();
  const kept = await Tuples.open(site.ports(storage), { mine: () => {}, lost: () => {} });
  const ids = kept.debugEntries().map(({ id }) => id);
  for (const told of receipts) assert.ok(ids.includes(`y${told}`), `y${told} was said to be on disk`);
});
