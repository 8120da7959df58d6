/** What two owners say to each other, one of them by itself (store/owners/exchange.ts). */
import assert from "node:assert/strict";
import { OWNER_FULL_MS, OWNER_WINDOW_BYTES, PACKET_RETRY_MS, PROBE_MS } from "../../../store/model/limits.ts";
import { type Merged, TupleExchange } from "../../../store/owners/exchange.ts";
import {
  decodeTuplePacket,
  type Entry,
  type TupleId,
  type TuplePacket,
} from "../../../store/owners/packet.ts";
import { compareEntry, entryOf as entryOfState, type TupleState } from "../../../store/owners/tuple.ts";
import { TupleTable } from "../../../store/owners/tuple_table.ts";

const BOOT = 1, ITS_BOOT = 7;

const NOTHING: TuplePacket = {
  ...{ boot: ITS_BOOT, to: BOOT, seq: 0, greeting: 0, list: 0, part: 0, isListEnd: false },
  ...{ receipts: [], missing: [], entries: [], forget: [] },
};

const STATE: TupleState = {
  ...{
    topic: "mail",
    f: 1,
    version: 1,
    owners: ["a", "b"],
    former: [],
    gone: false,
    isUnsure: false,
    isRepeated: false,
  },
  ...{ dueMs: 0, note: "", bytes: 0, rememberUntilS: 0 },
};

const entryOf = (id: string, version = 1): Entry => ({
  ...{
    id,
    version,
    owners: ["a", "b"],
    mark: { dueMs: 0, note: "" },
    isUnsure: false,
    goneUntilS: 0,
    content: null,
  },
});

/** Site a, with b as the other owner of its tuples; what it says is handed over by whoever directs it. */
function site() {
  const table = new TupleTable(), unnamed = new Set<TupleId>();
  const sent: TuplePacket[] = [], merged: string[] = [], happened: string[] = [];
  const state = {
    nowMs: 0,
    isLost: false,
    awaitedUntilMs: null as number | null,
    isInTouch: true,
    suspectMs: 5_000,
    merges: "taken" as Merged,
  };
  const exchange = new TupleExchange({
    boot: BOOT,
    nowMs: () => state.nowMs,
    send: (_, packet) => {
      sent.push(decodeTuplePacket(packet));
      return Promise.resolve();
    },
    watch: () => () => happened.push("unwatched"),
    isLost: () => state.isLost,
    awaitedUntilMs: () => state.awaitedUntilMs,
    isInTouch: () => state.isInTouch,
    suspectMs: () => state.suspectMs,
    toldAll: (peer, untilMs) => happened.push(`${peer} had told all by ${untilMs}`),
    measured: () => {},
    count: () => {},
    wake: () => {},
    table,
    merge: ({ id, version }) => {
      merged.push(`${id} ${version}`);
      return state.merges;
    },
    agreed: (id) => happened.push(`${id} agreed`),
    heardAll: () => happened.push("heard all"),
    acked: ({ id }) => happened.push(`${id} acked`),
    forget: (id) => happened.push(`${id} forgotten`),
    lacks: ({ id }) => happened.push(`${id} lacks`),
    restarted: () => happened.push("restarted"),
    reconciled: (peer) => {
      for (const [id, { slot }] of table.views()) if (exchange.isUnnamed(peer, slot)) unnamed.add(id);
      happened.push(`reconciled, unnamed: ${[...unnamed]}`);
    },
    refused: (all) => happened.push(`refused ${all.map(({ id }) => id)}`),
  });
  /** A tuple that is shared; `held`: all its owners had it once. */
  const share = (id: string, held: boolean, bytes = 10) => {
    const tuple = table.add(id, { ...STATE, bytes });
    tuple.held = held;
    tuple.payload = new Uint8Array(bytes);
    tuple.owe("b");
    exchange.share(["b"]);
    return tuple;
  };
  /** One step of the disk: what leaves before it, and after it. */
  const step = () => {
    const outgoing = exchange.freeze();
    const taken = () => sent.splice(0);
    outgoing.early();
    const early = taken();
    outgoing.late();
    return { early, late: taken() };
  };
  const hears = (packet: Partial<TuplePacket>) => exchange.received("b", { ...NOTHING, ...packet });
  /** It is greeted, and has said all it knows. */
  const reconcile = (entries: readonly Entry[] = []) => {
    const { late } = step();
    const { greeting } = late.find((packet) => packet.greeting !== 0) ?? assert.fail("no greeting");
    hears({ list: greeting, part: 1, isListEnd: true, entries });
  };
  return { exchange, table, sent, merged, happened, state, share, step, hears, reconcile };
}

const idsOf = (packets: readonly TuplePacket[]) =>
  packets.flatMap(({ entries }) => entries.map(({ id }) => id));

Deno.test("of two versions the larger holds, then that of the larger site; what is gone is newer than what is not (T1)", () => {
  const of = (version: number, owner: string, rest: Partial<TupleState> = {}): TupleState => ({
    ...{ ...STATE, version, owners: [owner, "x"] },
    ...rest,
  });
  const given = { gone: true, isUnsure: true }, gone = { gone: true };
  const ascending = [
    of(1, "a"),
    of(1, "a", { dueMs: 1 }),
    of(1, "a", { dueMs: 1, note: "n" }),
    of(1, "b"),
    of(2, "a"),
    of(7, "a"),
    of(1, "a", given),
    of(2, "a", given),
    of(1, "a", gone),
    of(1, "b", gone),
    of(2, "a", gone),
  ];
  for (const [i, a] of ascending.entries()) {
    for (const [j, b] of ascending.entries()) {
      assert.equal(
        Math.sign(compareEntry(entryOfState("t", a), b)),
        Math.sign(i - j),
        `${JSON.stringify(a)} ${JSON.stringify(b)}`,
      );
    }
  }
});

Deno.test("a peer is reconciled when all that it knew has come since it was greeted, and not by what is of before (X1, X3, X6)", () => {
  const { exchange, happened, state, share, step, hears, reconcile } = site();
  share("t", true);
  share("u", true);
  assert.equal(exchange.isSettled("b"), false);
  const [greeting = 0] = step().late.map((packet) => packet.greeting);
  assert.notEqual(greeting, 0);
  hears({ list: greeting + 1, part: 1, isListEnd: true });
  hears({ list: greeting, part: 1, isListEnd: false, entries: [entryOf("t")] });
  hears({ to: BOOT + 1, list: greeting, part: 2, isListEnd: true });
  assert.equal(
    exchange.isSettled("b"),
    false,
    "another greeting's, not its end, and said to another process",
  );
  hears({ list: greeting, part: 2, isListEnd: true });
  assert.equal(exchange.isSettled("b"), true);
  assert.deepEqual(happened.splice(0), ["reconciled, unnamed: u"]);
  // Again once it was suspected, or is another process.
  state.awaitedUntilMs = 50;
  exchange.lost("b");
  assert.equal(exchange.isSettled("b"), false);
  state.isLost = true;
  assert.equal(exchange.isSettled("b"), true, "nobody can say what it knows");
  exchange.lost("b");
  exchange.ask("b");
  assert.equal(exchange.hadToldAll("b"), true, "up to when it said that it stops");
  assert.deepEqual(happened.splice(0), ["b had told all by 50"]);
  state.awaitedUntilMs = 60;
  assert.equal(exchange.hadToldAll("b"), false, "it was back meanwhile, and not heard here");
  state.awaitedUntilMs = null;
  exchange.lost("b");
  state.awaitedUntilMs = 50;
  state.isLost = false;
  exchange.ask("b");
  exchange.lost("b");
  assert.equal(exchange.hadToldAll("b"), false, "it was back, and did not come to that");
  state.awaitedUntilMs = null;
  exchange.ask("b");
  reconcile();
  exchange.lost("b");
  state.awaitedUntilMs = 70;
  assert.equal(exchange.hadToldAll("b"), false, "it may have done something while it was silent");
  state.awaitedUntilMs = null;
  exchange.ask("b");
  reconcile();
  state.awaitedUntilMs = 70;
  state.isInTouch = false;
  exchange.lost("b");
  assert.equal(
    exchange.hadToldAll("b"),
    false,
    "it was silent for so long that it may have taken this site for dead",
  );
  state.isInTouch = true;
  happened.length = 0;
  exchange.ask("b");
  reconcile();
  assert.equal(exchange.hadToldAll("b"), true, "what it tells as it stops is all");
  assert.equal(happened[0], "b had told all by 70");
  assert.equal(exchange.isSettled("b"), true);
  hears({ boot: ITS_BOOT + 1 });
  assert.equal(exchange.isSettled("b"), false);
  assert.ok(happened.includes("restarted"));
});

Deno.test("that a site had told all before it stopped is believed by the next process where nothing comes from it (X6)", () => {
  for (const comes of [false, true]) {
    const { exchange, happened, state, share, step, hears } = site();
    share("t", true);
    state.isLost = true;
    state.awaitedUntilMs = 50_000;
    exchange.remember("b", 50_000);
    step();
    state.nowMs = state.suspectMs - 1;
    exchange.tick();
    assert.equal(exchange.hadToldAll("b"), false, "it may be back");
    if (comes) hears({});
    happened.length = 0;
    state.nowMs++;
    exchange.tick();
    assert.equal(exchange.hadToldAll("b"), !comes);
    assert.deepEqual(happened, comes ? [] : ["reconciled, unnamed: "], "what waited for that is looked at");
    hears({});
    assert.equal(exchange.hadToldAll("b"), false, "it is back");
  }
  const { exchange, state, share } = site();
  share("t", true);
  state.isLost = true;
  state.awaitedUntilMs = 60_000;
  exchange.remember("b", 50_000);
  state.nowMs = state.suspectMs;
  exchange.tick();
  assert.equal(exchange.hadToldAll("b"), false, "that was another stop");
});

Deno.test("an answer to a greeting of which a part is missing is none: it is asked for again (X1)", () => {
  const { exchange, happened, share, step, hears, reconcile } = site();
  share("t", true);
  const [greeting = 0] = step().late.map((packet) => packet.greeting);
  hears({ list: greeting, part: 1, entries: [entryOf("t")] });
  hears({ list: greeting, part: 3, isListEnd: true });
  hears({ list: greeting, part: 2, isListEnd: true });
  assert.deepEqual([exchange.isSettled("b"), happened], [false, []]);
  reconcile();
  assert.deepEqual(happened, ["reconciled, unnamed: t"], "what was named in another answer does not count");
});

Deno.test("a peer that did not name a tuple has it as it is here once it says so, and not where it lacks it (X1)", () => {
  const { exchange, share, step, hears, reconcile } = site();
  const [has, lacks] = [share("has", true), share("lacks", true)];
  const unnamed = () => [has, lacks].filter(({ slot }) => exchange.isUnnamed("b", slot)).map(({ id }) => id);
  reconcile();
  assert.deepEqual(unnamed(), ["has", "lacks"]);
  for (const { id } of [has, lacks]) exchange.tell("b", id, false);
  const receipts = step().late.map(({ seq }) => ({ seq, full: false }));
  hears({ receipts, missing: ["lacks"] });
  assert.deepEqual(unnamed(), ["lacks"]);
});

Deno.test("who has to be heard is not settled by being suspected, only by what it tells, or as it leaves (X5)", () => {
  for (const how of ["tells", "leaves"]) {
    const { exchange, happened, state, share, reconcile } = site();
    share("t", true);
    exchange.mustHear();
    state.isLost = true;
    exchange.lost("b");
    assert.deepEqual([exchange.isSettled("b"), [...exchange.unheard]], [false, ["b"]]);
    if (how === "tells") {
      state.isLost = false;
      exchange.ask("b");
      reconcile([entryOf("t")]);
    } else exchange.heard("b");
    assert.deepEqual([exchange.isSettled("b"), [...exchange.unheard]], [true, []], how);
    assert.equal(happened.at(-1), "heard all");
  }
});

Deno.test("all that is shared is told who greets, in parts, as receipts make room", () => {
  const { table, share, step, hears } = site();
  const count = 20_000;
  for (let i = 0; i < count; i++) share(`t${i}`, true, 0);
  table.settle(count);
  step();
  hears({ seq: 1, greeting: 9 });
  const told: string[] = [], parts: number[] = [];
  for (let rounds = 0, isOver = false; !isOver; rounds++) {
    assert.ok(rounds < 20);
    for (const packet of step().late) {
      assert.ok(packet.entries.length <= 8_000);
      if (packet.list !== 9) continue;
      told.push(...packet.entries.map(({ id }) => id));
      parts.push(packet.part);
      isOver = packet.isListEnd;
      hears({ receipts: [{ seq: packet.seq, full: false }] });
    }
  }
  assert.deepEqual([told.length, new Set(told).size], [count, count]);
  assert.deepEqual(parts, parts.map((_, i) => i + 1));
  assert.ok(parts.length > 1);
});

Deno.test("new tuples go before the disk has them, what somebody counts on goes after (X2)", () => {
  const { exchange, table, share, step } = site();
  share("new", false);
  share("held", true);
  share("gone", false).gone = true;
  for (const [id] of table.views()) exchange.tell("b", id, id === "new");
  const { early, late } = step();
  assert.deepEqual([idsOf(early), idsOf(late).sort()], [["new"], ["gone", "held"]]);
});

Deno.test("a packet that comes after a later one is dropped, and has no receipt (X4)", () => {
  const { merged, share, step, hears } = site();
  share("t", true);
  step();
  hears({ seq: 5, entries: [entryOf("t", 5)] });
  for (const seq of [5, 3]) hears({ seq, entries: [entryOf("t", seq)], forget: ["t"] });
  hears({ seq: 0, entries: [entryOf("t", 4)] }); // an answer: it has no number
  hears({ seq: 6, entries: [entryOf("t", 6)] });
  assert.deepEqual(merged, ["t 5", "t 4", "t 6"]);
  assert.deepEqual(step().late.flatMap(({ receipts }) => receipts.map(({ seq }) => seq)), [5, 6]);
  hears({ boot: ITS_BOOT + 1, seq: 1, entries: [entryOf("t", 9)] });
  assert.equal(merged.at(-1), "t 9", "another process counts anew");
});

Deno.test("a receipt is of this process, and of what is still known so", () => {
  const { exchange, table, happened, share, step, hears } = site();
  for (const id of ["same", "changed", "lacked"]) share(id, false);
  for (const [id] of table.views()) exchange.tell("b", id, id !== "lacked");
  const { early } = step(), [{ seq } = assert.fail()] = early;
  const changed = table.get("changed") ?? assert.fail();
  changed.version++;
  const receipts = [{ seq, full: false }];
  hears({ to: BOOT + 1, receipts });
  assert.deepEqual(happened, [], "it was said to another process");
  hears({ receipts, missing: ["lacked"] });
  assert.deepEqual(happened, ["same acked", "lacked lacks"]);
  hears({ receipts });
  assert.equal(happened.length, 2, "once");
});

Deno.test("an owner without room is asked for none again for a while", () => {
  const { exchange, happened, state, share, step, hears } = site();
  share("t", false);
  exchange.tell("b", "t", true);
  const [{ seq } = assert.fail()] = step().early;
  hears({ receipts: [{ seq, full: true }] });
  assert.deepEqual([happened, exchange.isFull("b")], [["refused t"], true]);
  state.nowMs += OWNER_FULL_MS;
  assert.equal(exchange.isFull("b"), false);
});

Deno.test("what has no receipt is told again after a while, and when its receiver is another process", () => {
  for (const how of ["time", "process"]) {
    const { exchange, state, share, step, hears } = site();
    share("t", false);
    exchange.tell("b", "t", true);
    hears({});
    assert.deepEqual(idsOf(step().early), ["t"]);
    assert.deepEqual(idsOf(step().early), [], "it flies");
    if (how === "time") {
      state.nowMs += PACKET_RETRY_MS;
      exchange.tick();
    } else hears({ boot: ITS_BOOT + 1 });
    const { early: [again] } = step();
    assert.deepEqual(
      again?.entries.map(({ id, content }) => [id, content?.payload.length]),
      [["t", 10]],
      how,
    );
  }
});

Deno.test("what flies to a site that is lost, or was to be told, is not kept for it: it is asked what it has", () => {
  const { exchange, state, share, step, hears } = site();
  for (const id of ["flies", "due"]) share(id, true);
  exchange.tell("b", "flies", false);
  const [{ seq, greeting } = assert.fail()] = step().late;
  exchange.tell("b", "due", false);
  exchange.lost("b");
  state.isLost = true;
  hears({ receipts: [{ seq, full: false }], list: greeting, part: 1, isListEnd: true });
  assert.deepEqual([exchange.isFull("b"), step().late], [false, []]);
  state.isLost = false;
  exchange.ask("b");
  const { late } = step();
  assert.deepEqual([idsOf(late), late.map((packet) => packet.greeting > greeting)], [[], [true]]);
});

Deno.test("what flies is bounded, and goes on with receipts", () => {
  const { exchange, table, share, step, hears } = site();
  const bytes = 500_000, room = Math.floor(OWNER_WINDOW_BYTES / bytes);
  for (let i = 0; i < 2 * room; i++) share(`${i}`, false, bytes);
  for (const [id] of table.views()) exchange.tell("b", id, true);
  const first = step().early;
  assert.ok(idsOf(first).length >= room && idsOf(first).length <= room + 1, `${idsOf(first)}`);
  assert.deepEqual(idsOf(step().early), []);
  for (const { seq } of first) hears({ receipts: [{ seq, full: false }] });
  assert.ok(idsOf(step().early).length > 0);
});

Deno.test("who says nothing for long is asked whether it is the same process, and greeted again where it does not answer", () => {
  const { exchange, state, share, step, reconcile } = site();
  share("t", true);
  const [first = 0] = step().late.map(({ greeting }) => greeting);
  state.nowMs += PACKET_RETRY_MS;
  exchange.tick();
  assert.ok(step().late.some(({ greeting }) => greeting > first), "it is greeted again");
  exchange.ask("b");
  exchange.tick();
  state.nowMs += PACKET_RETRY_MS;
  exchange.tick();
  reconcile();
  state.nowMs += PROBE_MS;
  exchange.tick();
  const { late } = step();
  assert.deepEqual(
    late.map(({ greeting, seq }) => [greeting, seq > 0]),
    [[0, true]],
    "a probe asks for a receipt only",
  );
});
