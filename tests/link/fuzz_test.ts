/**
 * Mutated handshakes, records and frames. `LINK_FUZZ` multiplies the rounds (1 in the gate); `LINK_FUZZ_SEED` picks
 * another start.
 */
import { strict as assert } from "node:assert";
import { createHash } from "node:crypto";
import { Connection } from "../../runtime/link/connection.ts";
import { zeroCounters } from "../../runtime/link/counters.ts";
import { Emulation } from "../../runtime/link/emulation.ts";
import { encodeHead } from "../../runtime/link/body.ts";
import { encodeFrame, FRAME } from "../../runtime/link/frame.ts";
import { introduce, receiveIntroduction } from "../../runtime/link/handshake.ts";
import { DEFAULT_LIMITS, RECORD_BYTES_MAX } from "../../runtime/link/limits.ts";
import { connectionPair } from "../../runtime/link/memory_transport.ts";
import { recordMac } from "../../runtime/link/proof.ts";
import { ProtocolViolation, RecordReader, RecordWriter } from "../../runtime/link/record.ts";
import { type ByteConnection, closeQuietly, writeAll } from "../../runtime/link/byte_connection.ts";
import { Wire } from "../../runtime/link/wire.ts";
import { bytes, SECRET } from "./sites.ts";

const FACTOR = Number(Deno.env.get("LINK_FUZZ") ?? 1);
const SEED = Number(Deno.env.get("LINK_FUZZ_SEED") ?? 1);

/** splitmix32: the same numbers for the same seed. */
class Dice {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  below(limit: number): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return ((z ^ (z >>> 16)) >>> 0) % limit;
  }
  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }
}

/** Changes, cuts, doubles, inserts or swaps; the result differs from the original. */
function mutate(dice: Dice, original: Uint8Array): Uint8Array {
  for (;;) {
    let list = [...original];
    for (let times = 1 + dice.below(3); times > 0; times--) {
      const at = dice.below(list.length + 1);
      const length = 1 + dice.below(dice.pick([1, 4, 64]));
      switch (dice.below(6)) {
        case 0:
          list[at % list.length] = (list[at % list.length] ?? 0) ^ (1 << dice.below(8));
          break;
        case 1:
          list.splice(at, length);
          break;
        case 2:
          list.splice(at, 0, ...list.slice(at, at + length));
          break;
        case 3:
          list.splice(at, 0, ...Array.from({ length }, () => dice.below(256)));
          break;
        case 4:
          list[at % list.length] = dice.pick([0, 1, 0x7f, 0x80, 0xff]);
          break;
        case 5:
          list = list.slice(0, at);
          break;
      }
      if (list.length === 0) list = [0];
    }
    const result = new Uint8Array(list);
    if (result.length !== original.length || result.some((byte, i) => byte !== original[i])) return result;
  }
}

function digest(payloads: readonly Uint8Array[]): string[] {
  return payloads.map((payload) => createHash("sha256").update(payload).digest("hex"));
}

/** All payloads a reader yields of a stream that arrives in pieces, and whether it objected. */
async function readAll(key: Uint8Array, stream: Uint8Array, dice: Dice): Promise<[Uint8Array[], boolean]> {
  const reader = new RecordReader(key, new Uint8Array(0));
  const payloads: Uint8Array[] = [];
  let at = 0;
  try {
    do {
      for (let payload = reader.take(); payload; payload = reader.take()) payloads.push(payload.slice());
    } while (
      await reader.fill((into) => {
        if (at === stream.length) return Promise.resolve(null);
        const count = Math.min(into.length, 1 + dice.below(900), stream.length - at);
        into.set(stream.subarray(at, at + count));
        at += count;
        return Promise.resolve(count);
      })
    );
    return [payloads, false];
  } catch (error) {
    assert.ok(error instanceof ProtocolViolation, `an unexpected ${error}`);
    return [payloads, true];
  }
}

Deno.test("records: what was changed, cut, repeated or moved is never accepted", async () => {
  const key = new Uint8Array(32).fill(3);
  const dice = new Dice(SEED);
  for (let round = 0; round < 180 * FACTOR; round++) {
    const writer = new RecordWriter(key);
    const records: Uint8Array[] = [];
    const payloads: Uint8Array[] = [];
    for (let i = 0; i < 5; i++) {
      const payload = new Uint8Array(1 + dice.below(dice.pick([4, 40, 400]))).map(() => dice.below(256));
      writer.begin();
      writer.append(payload);
      records.push(writer.seal().slice());
      payloads.push(payload);
    }
    const whole = new Uint8Array(records.flatMap((record) => [...record]));
    assert.deepEqual(await readAll(key, whole, dice), [payloads, false]);
    const sent = digest(payloads);
    for (let i = 0; i < 100; i++) {
      const [got, objected] = await readAll(key, mutate(dice, whole), dice);
      const arrived = digest(got);
      assert.deepEqual(arrived, sent.slice(0, arrived.length), "only a prefix of what was sent");
      // A stream that is cut between records is a lost connection, which is no violation.
      assert.ok(objected || arrived.length < sent.length, "a changed stream passed");
    }
    for (const order of [[1, 0], [0, 0], [0, 2], [0, 1, 1], [0, 1, 3]]) {
      const stream = new Uint8Array(order.flatMap((i) => [...(records[i] ?? [])]));
      const [got, objected] = await readAll(key, stream, dice);
      assert.ok(objected && got.length <= 2, `records in the order ${order} passed`);
    }
  }
});

Deno.test("records: a length beyond the limit is refused before its bytes are waited for", async () => {
  const key = new Uint8Array(32);
  const dice = new Dice(SEED);
  for (const length of [0, RECORD_BYTES_MAX + 1, 0xffffffff]) {
    const stream = new Uint8Array(100);
    new DataView(stream.buffer).setUint32(0, length);
    assert.deepEqual(await readAll(key, stream, dice), [[], true]);
  }
});

/** Frames as a member sends them: the corpus that is mutated. */
function corpus(): Uint8Array[][] {
  const open = (id: number, flags: number) =>
    encodeHead({ type: FRAME.open, id, flags, kind: bytes("http"), head: bytes("head") });
  return [
    [encodeFrame(FRAME.message, [], bytes("one")), encodeFrame(FRAME.message, [], new Uint8Array(0))],
    [
      encodeFrame(FRAME.messageBegin, [40_000], new Uint8Array(32_768)),
      encodeFrame(FRAME.ping, [7]),
      encodeFrame(FRAME.messagePart, [], new Uint8Array(40_000 - 32_768)),
    ],
    [open(2, 1), open(4, 0), encodeFrame(FRAME.data, [4], bytes("body")), encodeFrame(FRAME.dataLast, [4])],
    [open(6, 0), encodeFrame(FRAME.stop, [6]), encodeFrame(FRAME.reset, [6], new Uint8Array([2, 65]))],
    [encodeFrame(FRAME.answer, [1], new Uint8Array([0, 1, 2])), encodeFrame(FRAME.credit, [1, 5])],
    [encodeFrame(FRAME.dataLast, [1], bytes("answer")), encodeFrame(FRAME.pong, [1])],
    [encodeFrame(FRAME.messageCredit, [100]), encodeFrame(FRAME.goodbye, [], bytes("bye"))],
  ];
}

Deno.test("frames: a member that sends nonsense under a right MAC loses its connection, at most", async () => {
  const dice = new Dice(SEED + 1);
  const key = new Uint8Array(32).fill(4);
  const emulation = new Emulation(() => null, Math.random);
  const endings = new Map<string, number>();
  for (let round = 0; round < 2_000 * FACTOR; round++) {
    const [near, far] = connectionPair();
    const connection = new Connection({
      wire: new Wire(near, emulation),
      acquaintance: {
        site: "edge",
        incarnation: "i",
        boot: new Uint8Array(8),
        sendKey: key,
        receiveKey: key,
        leftover: new Uint8Array(0),
      },
      dialer: true,
      limits: { ...DEFAULT_LIMITS, messageBytesMax: 1_000_000, requestsMax: 10 },
      counters: zeroCounters(),
      nowMs: () => performance.now(),
      handlers: {
        message: (message) => assert.ok(message.length <= 1_000_000),
        request: ({ head, body }) => Promise.resolve({ head, body }),
      },
    });
    const drain = drained(far);
    const ended = connection.run();
    const asked = connection.request("http", bytes("x")).then(
      (answer) => answer.body?.cancel().catch(() => {}),
      () => {},
    );
    await Promise.resolve();
    const writer = new RecordWriter(key);
    const frames = dice.pick(corpus()).concat(dice.pick(corpus()));
    const payload = new Uint8Array(frames.reduce((sum, frame) => sum + frame.length, 0));
    let at = 0;
    for (const frame of frames) {
      payload.set(frame, at);
      at += frame.length;
    }
    // Mutating headers matters more than the zeros of a part.
    const head = mutate(dice, payload.subarray(0, 120));
    writer.begin();
    writer.append(head);
    writer.append(payload.subarray(120));
    await writeAll(far, writer.seal().slice()).catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    closeQuietly(far);
    const ending = await ended;
    await Promise.all([asked, drain]);
    const kind = ending.violation ? "violation" : ending.planned ? "goodbye" : "end";
    endings.set(kind, (endings.get(kind) ?? 0) + 1);
  }
  await emulation.timer.close();
  assert.ok((endings.get("violation") ?? 0) > 1_000 * FACTOR, `most are noticed: ${[...endings]}`);
});

async function drained(connection: ByteConnection): Promise<void> {
  const into = new Uint8Array(10_000);
  while (await connection.read(into).catch(() => null) !== null) { /* goes on */ }
}

/** Copies the bytes between two sides, changing the `nth` message of one of them. */
async function between(from: ByteConnection, to: ByteConnection, change: (all: Uint8Array) => Uint8Array) {
  const into = new Uint8Array(10_000);
  try {
    for (;;) {
      const count = await from.read(into);
      if (count === null) break;
      await writeAll(to, change(into.slice(0, count)));
    }
  } catch {
    // One of them has closed.
  }
  closeQuietly(to);
  closeQuietly(from);
}

Deno.test("handshakes: no changed message is accepted by the side that receives it", async () => {
  const dice = new Dice(SEED + 2);
  const emulation = new Emulation(() => null, Math.random);
  const self = (site: string) => ({ site, incarnation: `${site}-1`, boot: new Uint8Array(8) });
  for (let round = 0; round < 2_000 * FACTOR; round++) {
    const [dialer, dialerFar] = connectionPair();
    const [acceptor, acceptorFar] = connectionPair();
    const target = dice.below(4);
    let message = 0;
    let changed = false;
    const change = (all: Uint8Array) => {
      if (message++ !== target) return all;
      changed = true;
      // Bytes after a message that is whole are not part of it: they count as the next one, or as a record.
      for (;;) {
        const mutant = mutate(dice, all);
        if (all.some((byte, i) => byte !== mutant[i])) return mutant;
      }
    };
    const relay = [between(dialerFar, acceptorFar, change), between(acceptorFar, dialerFar, change)];
    const wires = [new Wire(dialer, emulation), new Wire(acceptor, emulation)] as const;
    const giveUp = setTimeout(() => wires.forEach((wire) => wire.close()), 2);
    const [dialled, accepted] = await Promise.allSettled([
      introduce(wires[0], { self: self("edge"), secret: SECRET, role: "child", target: "core" }),
      receiveIntroduction(wires[1], {
        self: self("core"),
        secret: SECRET,
        ports: { claimed: () => Promise.resolve(), judge: () => null },
      }),
    ]);
    clearTimeout(giveUp);
    wires.forEach((wire) => wire.close());
    await Promise.all(relay);
    if (!changed) continue;
    assert.equal(dialled.status, "rejected", `message ${target} was changed, the dialer went on`);
    if (target < 3) assert.equal(accepted.status, "rejected", `message ${target} was changed and accepted`);
  }
  await emulation.timer.close();
});

Deno.test("records: a MAC under a key that differs in one bit is another MAC", () => {
  const key = new Uint8Array(32);
  const other = key.slice();
  other[31] = 1;
  assert.notDeepEqual(recordMac(key, bytes("x")), recordMac(other, bytes("x")));
});
