/** What two owners say to each other, one of them by itself (store/owners/exchange.ts). */
import assert from "node:assert/strict";
import { OWNER_FULL_MS, OWNER_WINDOW_BYTES, PACKET_RETRY_MS, PROBE_MS } from "../../../store/model/limits.ts";
import { type Merged, TupleExchange } from "../../../store/owners/exchange.ts";
import { decodeTuplePacket, type Entry, type TuplePacket } from "../../../store/owners/packet.ts";
import { compareEntries, Tuple } from "../../../store/owners/tuple.ts";

const BOOT = 1, ITS_BOOT = 7;

const NOTHING: TuplePacket = {
  ...{ boot: ITS_BOOT, to: BOOT, seq: 0, greeting: 0, list: 0, isListEnd: false },
  ...{ receipts: [], missing: [], entries: [], forget: [] },
};

const entryOf = (id: string, version = 1, payload: Uint8Array | null = null): Entry => ({
  ...{ id, version, owners: ["a", "b"], gone: false, payload },
});

/** Site a, with b as the other owner of its tuples; what it says is handed over by whoever directs it. */
function site() {
  const tuples = new Map<string, Tuple>();
  const sent: TuplePacket[] = [], merged: string[] = [], happened: string[] = [];
  const state = { nowMs: 0, isLost: false, merges: "taken" as Merged };
  const exchange = new TupleExchange({
    boot: BOOT,
    nowMs: () => state.nowMs,
    send: (_, packet) => {
      sent.push(decodeTuplePacket(packet));
      return Promise.resolve();
    },
    watch: () => () => happened.push("unwatched"),
    isLost: () => state.isLost,
    measured: () => {},
    count: () => {},
    wake: () => {},
    tuple: (id) => tuples.get(id),
    merge: ({ id, version }) => {
      merged.push(`${id} ${version}`);
      return state.merges;
    },
    acked: ({ id }) => happened.push(`${id} acked`),
    forget: (id) => happened.push(`${id} forgotten`),
    lacks: ({ id }) => happened.push(`${id} lacks`),
    restarted: () => happened.push("restarted"),
    reconciled: (_, unnamed) => happened.push(`reconciled, unnamed: ${[...unnamed]}`),
    refused: (all) => happened.push(`refused ${all.map(({ id }) => id)}`),
  });
  /** A tuple that is shared; `held`: all its owners had it once. */
  const share = (id: string, held: boolean, bytes = 10) => {
    const tuple = new Tuple(id, { version: 1, owners: ["a", "b"], former: [], gone: false }, held);
    tuple.payload = new Uint8Array(bytes);
    tuple.owe("b");
    tuples.set(id, tuple);
    exchange.share(id, ["b"]);
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
    hears({ list: greeting, isListEnd: true, entries });
  };
  return { exchange, tuples, sent, merged, happened, state, share, step, hears, reconcile };
}

const idsOf = (packets: readonly TuplePacket[]) =>
  packets.flatMap(({ entries }) => entries.map(({ id }) => id));

Deno.test("of two versions the larger holds, then that of the larger site; what is gone is newer than what is not (T1)", () => {
  const of = (version: number, owner: string, gone = false) => ({ version, owners: [owner, "x"], gone });
  const ascending = [
    of(1, "a"),
    of(1, "b"),
    of(2, "a"),
    of(7, "a"),
    of(1, "a", true),
    of(1, "b", true),
    of(2, "a", true),
  ];
  for (const [i, a] of ascending.entries()) {
    for (const [j, b] of ascending.entries()) {
      assert.equal(
        Math.sign(compareEntries(a, b)),
        Math.sign(i - j),
        `${JSON.stringify(a)} ${JSON.stringify(b)}`,
      );
    }
  }
});

Deno.test("a peer is reconciled when all that it knew has come since it was greeted, and not by what is of before (X1, X3)", () => {
  const { exchange, happened, state, share, step, hears, reconcile } = site();
  share("t", true);
  share("u", true);
  assert.equal(exchange.isSettled("b"), false);
  const [greeting = 0] = step().late.map((packet) => packet.greeting);
  assert.notEqual(greeting, 0);
  hears({ list: greeting + 1, isListEnd: true });
  hears({ list: greeting, isListEnd: false, entries: [entryOf("t")] });
  hears({ to: BOOT + 1, list: greeting, isListEnd: true });
  assert.equal(
    exchange.isSettled("b"),
    false,
    "another greeting's, not its end, and said to another process",
  );
  hears({ list: greeting, isListEnd: true });
  assert.equal(exchange.isSettled("b"), true);
  assert.deepEqual(happened.splice(0), ["reconciled, unnamed: u"]);
  // Again once it was suspected, or is another process.
  exchange.lost("b");
  assert.equal(exchange.isSettled("b"), false);
  state.isLost = true;
  assert.equal(exchange.isSettled("b"), true, "nobody can say what it knows");
  state.isLost = false;
  exchange.ask("b");
  reconcile();
  assert.equal(exchange.isSettled("b"), true);
  hears({ boot: ITS_BOOT + 1 });
  assert.equal(exchange.isSettled("b"), false);
  assert.ok(happened.includes("restarted"));
});

Deno.test("new tuples go before the disk has them, what somebody counts on goes after (X2)", () => {
  const { exchange, tuples, share, step } = site();
  share("new", false);
  share("held", true);
  share("gone", false).gone = true;
  for (const id of tuples.keys()) exchange.tell("b", id, id === "new");
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
  const { exchange, tuples, happened, share, step, hears } = site();
  for (const id of ["same", "changed", "lacked"]) share(id, false);
  for (const id of tuples.keys()) exchange.tell("b", id, id !== "lacked");
  const { early } = step(), [{ seq } = assert.fail()] = early;
  const changed = tuples.get("changed") ?? assert.fail();
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

Deno.test("what has no receipt is told again after a while, and when its receiver was lost or is another process", () => {
  for (const how of ["time", "lost", "process"]) {
    const { exchange, state, share, step, hears } = site();
    share("t", false);
    exchange.tell("b", "t", true);
    hears({});
    assert.deepEqual(idsOf(step().early), ["t"]);
    assert.deepEqual(idsOf(step().early), [], "it flies");
    if (how === "time") {
      state.nowMs += PACKET_RETRY_MS;
      exchange.tick();
    } else if (how === "lost") exchange.lost("b");
    else hears({ boot: ITS_BOOT + 1 });
    const { early: [again] } = step();
    assert.deepEqual(again?.entries.map(({ id, payload }) => [id, payload?.length]), [["t", 10]], how);
  }
});

Deno.test("what flies is bounded, and goes on with receipts", () => {
  const { exchange, tuples, share, step, hears } = site();
  const bytes = 500_000, room = Math.floor(OWNER_WINDOW_BYTES / bytes);
  for (let i = 0; i < 2 * room; i++) share(`${i}`, false, bytes);
  for (const id of tuples.keys()) exchange.tell("b", id, true);
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
