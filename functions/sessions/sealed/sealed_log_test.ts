import assert from "node:assert/strict";
import fc from "fast-check";
import type { LogPiece } from "../log/asks.ts";
import { markAfter, NO_STATE } from "../log/state_parts.ts";
import {
  decodeSummary,
  encodeSummary,
  headOf,
  HOST_LOG_BYTES_MAX,
  HostLog,
  openHostLog,
  SealedSeries,
  tagOf,
} from "./mod.ts";

const NAME = { app: "duel", class: "match", id: "one" };
const OF = { name: NAME, receiver: "c1" };
const SECRET = new Uint8Array(32).fill(7);
const SEED = new Uint8Array(32).fill(9);
const BLANK = { seed: SEED, version: "v1", base: null, parts: [], pieces: [] };
const BASE = {
  ...{ at: 3, epoch: 1, wakeAtMs: 5, version: "v2" },
  bytes: Uint8Array.of(1, 2),
  answers: new Uint8Array(),
  state: markAfter(NO_STATE, [Uint8Array.of(8), new Uint8Array(300)]),
};
const PARTS = [Uint8Array.of(8), new Uint8Array(300)];

const salt = (number: number): Uint8Array => new Uint8Array(16).fill(number);
const start = (epoch: number, number = epoch) => ({ secret: SECRET, of: OF, epoch, salt: salt(number) });
const piece = (first: number, epoch = 1, count = 1): LogPiece => ({
  ...{ epoch, first, count, wakeAtMs: 0 },
  bytes: Uint8Array.of(first, epoch),
});

/** Entries 1 to 3 in the first epoch, 4 and 5 in the second. */
function twoHomes(): Uint8Array[] {
  const first = SealedSeries.whole(start(1), BLANK);
  const records = [first.first, first.next([piece(1), piece(2)]), first.next([piece(3)])];
  const second = SealedSeries.further(start(2), { tag: first.tag, after: 3, pieces: [] });
  return [...records, second.first, second.next([piece(4, 2)]), second.next([piece(5, 2)])];
}

const open = (records: readonly Uint8Array[], of = OF, secrets: readonly Uint8Array[] = [SECRET]) =>
  openHostLog(secrets, of, records);
const refusal = (records: readonly Uint8Array[], of = OF, secrets: readonly Uint8Array[] = [SECRET]) => {
  const opened = open(records, of, secrets);
  return opened.ok ? null : opened.code;
};

Deno.test("a sealed log opens as it was sealed, over two homes", () => {
  const opened = open(twoHomes());
  assert.ok(opened.ok);
  const { log, through, epoch } = opened.copy;
  assert.deepEqual(log.pieces, [piece(1), piece(2), piece(3), piece(4, 2), piece(5, 2)]);
  assert.deepEqual({ through, epoch, seed: log.seed, base: log.base }, {
    ...{ through: 5, epoch: 2, base: null },
    seed: SEED,
  });
});

Deno.test("a sealed log goes on from a base, and takes what was written before it along", () => {
  const series = SealedSeries.whole(start(4), {
    ...BLANK,
    base: BASE,
    parts: PARTS,
    pieces: [piece(4, 2, 3)],
  });
  const opened = open([series.first, series.next([piece(7, 4)])]);
  assert.ok(opened.ok);
  assert.deepEqual(opened.copy.log.base, BASE);
  assert.deepEqual(opened.copy.log.parts, PARTS);
  assert.deepEqual(opened.copy.log.pieces, [piece(4, 2, 3), piece(7, 4)]);
  assert.equal(opened.copy.through, 7);
});

Deno.test("a sealed log opens under an older secret of the cluster", () => {
  assert.equal(refusal(twoHomes(), OF, [salt(3), SECRET]), null);
  assert.equal(refusal(twoHomes(), OF, [salt(3)]), "log_forged");
});

Deno.test("a sealed log is refused when it is another session's, receiver's, or of another cluster (OL2)", () => {
  const records = twoHomes();
  assert.equal(refusal(records, { ...OF, receiver: "c2" }), "log_forged");
  for (const field of ["app", "class", "id"] as const) {
    assert.equal(refusal(records, { ...OF, name: { ...NAME, [field]: "x" } }), "log_forged");
  }
  assert.equal(refusal([]), "log_forged");
});

Deno.test("a sealed log is refused when anything but its end is missing, doubled, turned round or another's (OL2, SE2)", () => {
  const records = twoHomes();
  const [a, b] = [records[4], records[5]];
  assert.ok(a && b);
  for (let at = 0; at < records.length; at++) {
    const without = records.toSpliced(at, 1);
    assert.equal(refusal(without), at === records.length - 1 ? null : "log_forged", `without ${at}`);
    assert.equal(refusal(records.toSpliced(at, 0, records[at] ?? a)), "log_forged", `${at} twice`);
  }
  assert.equal(refusal([...records.slice(0, 4), b, a]), "log_forged");
  // The same session and host, another time: its salt is another one.
  const other = SealedSeries.whole(start(1, 8), BLANK);
  assert.equal(refusal([other.first, ...records.slice(1)]), "log_forged");
  const older = SealedSeries.further(start(1, 9), { tag: tagOf(b), after: 5, pieces: [] });
  assert.equal(refusal([...records, older.first]), "log_forged", "an epoch that falls");
});

Deno.test("a sealed log that was cut is a shorter one", () => {
  const records = twoHomes();
  const throughs = records.map((_, at) => {
    const opened = open(records.slice(0, at + 1));
    return opened.ok ? opened.copy.through : null;
  });
  assert.deepEqual(throughs, [0, 2, 3, 3, 4, 5]);
});

Deno.test("a sealed log with any byte changed is refused, and never throws (OL1)", () => {
  const records = twoHomes();
  const lengths = records.map(({ length }) => length);
  fc.assert(fc.property(
    fc.nat(records.length - 1).chain((at) =>
      fc.tuple(fc.constant(at), fc.nat((lengths[at] ?? 1) - 1), fc.integer({ min: 1, max: 255 }))
    ),
    ([at, byte, change]) => {
      const changed = records.map((record) => record.slice());
      const record = changed[at];
      if (record !== undefined) record[byte] = (record[byte] ?? 0) ^ change;
      assert.equal(refusal(changed), "log_forged");
    },
  ));
});

Deno.test("a sealed log beyond its limits is refused unread (OL1)", () => {
  assert.equal(refusal([new Uint8Array(HOST_LOG_BYTES_MAX), new Uint8Array(1)]), "limit_log");
});

Deno.test("records of one series have different nonces and chain, so equal commits seal differently (series.ts SE1)", () => {
  const series = SealedSeries.whole(start(1), BLANK);
  const sealed = Array.from({ length: 300 }, (_, at) => series.next([piece(at + 1)]));
  assert.equal(new Set(sealed.map((record) => tagOf(record).toHex())).size, 300);
  assert.equal(refusal([series.first, ...sealed]), null);
});

Deno.test("commits of any bytes open as they were sealed, whoever's messages they may look like (CF1)", () => {
  const sized = (text: string) => [text.length, ...new TextEncoder().encode(text)];
  const head = fc.constantFrom([0x2e], [0x23], [0x2f, 3], [0x2f, 0x80, 1], [0x2f, 0x80, 0], [0x2f, 0x80], [
    0x3e,
  ]);
  const id = fc.constantFrom("c1", "c2", "another", "").map(sized);
  const said = fc.oneof(
    fc.string({ maxLength: 9 }).map((text) => [1, ...new TextEncoder().encode(text).subarray(0, 9)]),
    fc.constantFrom([1, 0, 7], [0, 2, 9, 9, 7], [1, 0x82, 0, 9, 9, 7], [1, 0x80], [1, 0, 7, 7], []),
  );
  const likely = fc.tuple(fc.constantFrom(2, 2, 2, 0), head, id, said)
    .map(([form, ...parts]) => Uint8Array.from([form, ...parts.flat()]));
  const bytes = fc.oneof(likely, fc.uint8Array({ maxLength: 12 }));
  const commit = fc.record({
    ...{ bytes, count: fc.constantFrom(1, 1, 1, 2, 300), epoch: fc.constantFrom(1, 1, 2) },
    wakeAtMs: fc.constantFrom(0, 0, 1, 50, 2 ** 53 - 1, 8.64e15),
  });
  fc.assert(
    fc.property(fc.array(fc.array(commit, { minLength: 1, maxLength: 5 }), { maxLength: 5 }), (all) => {
      const series = SealedSeries.whole(start(1), BLANK);
      let first = 1;
      const records = all.map((commits) =>
        commits.map((each) => {
          first += each.count;
          return { ...each, first: first - each.count };
        })
      );
      const sealed = [series.first, ...records.map((pieces) => series.next(pieces))];
      const opened = open(sealed);
      assert.ok(opened.ok);
      assert.deepEqual(opened.copy.log.pieces, records.flat());
    }),
  );
});

Deno.test("a host's log takes records in order and gives them back with its promise (HG1)", () => {
  const log = new HostLog();
  const records = twoHomes();
  const [whole, second, third, further] = records;
  assert.ok(whole && second && third && further);
  assert.equal(log.take(1, second), "invalid", "nothing to go on from");
  for (const record of [whole, second, third]) assert.equal(log.take(1, record), "held");
  assert.deepEqual(decodeSummary(log.summary()), { promised: 1, tag: tagOf(third) });
  assert.deepEqual(log.promise(2), [whole, second, third]);
  assert.equal(log.take(1, third), "stale");
  assert.equal(log.promise(1), null);
  assert.equal(log.take(3, further), "invalid", "sealed by another epoch than its home's");
  assert.equal(log.take(2, further), "held");
  assert.equal(log.length, 4);
});

Deno.test("a host's log drops what a whole record takes the place of, and nothing else (HG3)", () => {
  const log = new HostLog();
  for (const record of twoHomes().slice(0, 3)) log.take(1, record);
  const whole = SealedSeries.whole(start(1, 5), { ...BLANK, base: BASE, parts: PARTS });
  assert.equal(log.take(1, whole.first), "held");
  assert.deepEqual(log.promise(1), [whole.first]);
  assert.equal(log.bytes, whole.first.length);
});

Deno.test("a host's log takes no more than it may hold, and nothing that is no record (HG4)", () => {
  const log = new HostLog();
  const series = SealedSeries.whole(start(1), BLANK);
  log.take(1, series.first);
  const large = { ...piece(1), bytes: new Uint8Array(HOST_LOG_BYTES_MAX) };
  assert.equal(log.take(1, series.next([large])), "invalid");
  for (const bytes of [[], [3, 1], [0], [2, 0, 0], [0, 0, ...salt(1), ...salt(2)]]) {
    assert.equal(log.take(1, Uint8Array.from(bytes)), "invalid");
  }
  assert.equal(log.length, 1);
});

Deno.test("a host's log is as it was when what it held is restored, promise included; anything else is refused", () => {
  const log = new HostLog();
  for (const record of twoHomes()) log.take(headOf(record).epoch ?? log.promised, record);
  log.promise(6);
  const records = log.promise(6) ?? [];
  const back = HostLog.restore(6, records);
  assert.deepEqual([back.promised, back.bytes, back.promise(6)], [6, log.bytes, records]);
  assert.deepEqual(HostLog.restore(3, []).promise(3), []);
  assert.throws(() => HostLog.restore(6, records.slice(1)), "it begins with a whole record");
  assert.throws(() => HostLog.restore(1, records), "a record of 2 was taken");
  assert.throws(() => HostLog.restore(6, [...records, Uint8Array.of(9)]));
});

Deno.test("what a host says in its hello is read as it was said; anything else is refused", () => {
  for (const tag of [null, new Uint8Array(12).fill(7)]) {
    for (const promised of [0, 1, 300]) {
      const bytes = encodeSummary({ promised, tag });
      assert.deepEqual(decodeSummary(bytes), { promised, tag });
      assert.throws(() => decodeSummary(bytes.subarray(0, -1)));
      assert.throws(() => decodeSummary(Uint8Array.of(...bytes, 0)));
    }
  }
  assert.throws(() => decodeSummary(Uint8Array.of(1, 2)));
});

Deno.test("a host's log that was dropped holds nothing and has promised nothing", () => {
  const log = new HostLog();
  for (const record of twoHomes()) log.take(2, record);
  log.drop();
  assert.deepEqual(decodeSummary(log.summary()), { promised: 0, tag: null });
  assert.deepEqual([log.bytes, log.promise(1)], [0, []]);
});
