/**
 * Links: records, frames and handshakes, changed on their way.
 */
import { createHash } from "node:crypto";
import { encodeBodyHead } from "../../runtime/link/body.ts";
import { type ByteConnection, closeQuietly, writeAll } from "../../runtime/link/byte_connection.ts";
import { Connection } from "../../runtime/link/connection.ts";
import { zeroCounters } from "../../runtime/link/counters.ts";
import { Emulation } from "../../runtime/link/emulation.ts";
import { encodeFrame, LINK_FRAME } from "../../runtime/link/frame.ts";
import { introduce, receiveIntroduction } from "../../runtime/link/handshake.ts";
import { DEFAULT_LINK_LIMITS } from "../../runtime/link/limits.ts";
import { connectionPair } from "../../runtime/link/memory_transport.ts";
import { ProtocolViolation, RecordReader, RecordWriter } from "../../runtime/link/record.ts";
import { Wire } from "../../runtime/link/wire.ts";
import { bytes, SECRET } from "../runtime/link/sites.ts";
import { Dice, mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

function digest(payloads: readonly Uint8Array[]): string[] {
  return payloads.map((payload) => createHash("sha256").update(payload).digest("hex"));
}

/** All payloads a reader yields of a stream that arrives in pieces, and whether it objected. */
export async function readAll(
  key: Uint8Array,
  stream: Uint8Array,
  dice: Dice,
): Promise<[Uint8Array[], boolean]> {
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
    if (!(error instanceof ProtocolViolation)) throw error;
    return [payloads, true];
  }
}

const STREAMS = 50;
const ORDERS = [[1, 0], [0, 0], [0, 2], [0, 1, 1], [0, 1, 3]];

/** One connection's records: keys are of one connection, or another's records would be right ones. */
interface Stream {
  readonly key: Uint8Array;
  readonly records: readonly Uint8Array[];
  readonly whole: Uint8Array;
  /** Digests of the payloads, in order. */
  readonly sent: readonly string[];
}

function streamOf(dice: Dice): Stream {
  const key = Uint8Array.from({ length: 32 }, () => dice.below(256));
  const writer = new RecordWriter(key);
  const payloads = Array.from({ length: 5 }, () => {
    const length = 1 + dice.below(dice.pick([4, 40, 400]));
    return Uint8Array.from({ length }, () => dice.below(256));
  });
  const records = payloads.map((payload) => {
    writer.begin();
    writer.append(payload);
    return writer.seal().slice();
  });
  return { key, records, whole: joined(records), sent: digest(payloads) };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Records under a MAC, by somebody between the sites who has no key (record.ts RR1). */
export const records: Target = {
  name: "records",
  says: "nothing is taken but a prefix of what was sent",
  reaches: ["violation", "cut short", "out of order"],
  quick: 5_000,
  open(seed) {
    const dice = new Dice(seed);
    const streams = Array.from({ length: STREAMS }, () => streamOf(dice));
    return {
      async attempt(dice) {
        const { key, records, whole, sent } = dice.pick(streams);
        const isReordered = dice.below(50) === 0;
        const mutant = isReordered
          ? joined(dice.pick(ORDERS).map((i) => records[i] ?? new Uint8Array()))
          : mutateBytes(dice, whole, dice.pick(streams).whole);
        const [got, objected] = await readAll(key, mutant, dice);
        const arrived = digest(got);
        if (arrived.length > sent.length || arrived.some((each, i) => each !== sent[i])) {
          throw new Finding(`${arrived.length} records arrived that were not sent so`);
        }
        // A stream that is cut between records is a lost connection, which is no violation.
        if (!objected && arrived.length === sent.length) throw new Finding("a changed stream passed whole");
        if (isReordered) {
          if (!objected) throw new Finding("records in another order passed");
          return "out of order";
        }
        return objected ? "violation" : "cut short";
      },
    };
  },
};

/** Frames as a member sends them: the corpus that is mutated. */
function corpus(): Uint8Array[][] {
  const open = (id: number, flags: number) =>
    encodeBodyHead({ type: LINK_FRAME.open, id, flags, kind: bytes("http"), head: bytes("head") });
  return [
    [
      encodeFrame(LINK_FRAME.message, [], bytes("one")),
      encodeFrame(LINK_FRAME.message, [], new Uint8Array(0)),
    ],
    [
      encodeFrame(LINK_FRAME.messageBegin, [40_000], new Uint8Array(32_768)),
      encodeFrame(LINK_FRAME.ping, [7]),
      encodeFrame(LINK_FRAME.messagePart, [], new Uint8Array(40_000 - 32_768)),
    ],
    [
      open(2, 1),
      open(4, 0),
      encodeFrame(LINK_FRAME.data, [4], bytes("body")),
      encodeFrame(LINK_FRAME.dataLast, [4]),
    ],
    [
      open(6, 0),
      encodeFrame(LINK_FRAME.stop, [6]),
      encodeFrame(LINK_FRAME.reset, [6], new Uint8Array([2, 65])),
    ],
    [encodeFrame(LINK_FRAME.answer, [1], new Uint8Array([0, 1, 2])), encodeFrame(LINK_FRAME.credit, [1, 5])],
    [encodeFrame(LINK_FRAME.dataLast, [1], bytes("answer")), encodeFrame(LINK_FRAME.pong, [1])],
    [encodeFrame(LINK_FRAME.messageCredit, [100]), encodeFrame(LINK_FRAME.goodbye, [], bytes("bye"))],
  ];
}

const CORPUS = corpus();

const MESSAGE_BYTES_MAX = 1_000_000;
const EMULATION = () => new Emulation(() => null, Math.random);

function connectionOn(near: ByteConnection, emulation: Emulation, key: Uint8Array): Connection {
  return new Connection({
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
    limits: { ...DEFAULT_LINK_LIMITS, messageBytesMax: MESSAGE_BYTES_MAX, requestsMax: 10 },
    counters: zeroCounters(),
    nowMs: () => performance.now(),
    handlers: {
      message: (message) => {
        if (message.length > MESSAGE_BYTES_MAX) throw new Finding("a message beyond the limit was delivered");
      },
      request: ({ head, body }) => Promise.resolve({ head, body }),
    },
  });
}

/** Frames under a right MAC, from a member that sends nonsense. */
export const frames: Target = {
  name: "frames",
  says: "a member that sends nonsense loses its connection, at most",
  reaches: ["violation", "end"],
  quick: 2_000,
  open() {
    const key = new Uint8Array(32).fill(4);
    const emulation = EMULATION();
    return {
      close: () => emulation.timer.close(),
      async attempt(dice) {
        const [near, far] = connectionPair();
        const connection = connectionOn(near, emulation, key);
        const drain = drained(far);
        const ended = connection.run();
        const asked = connection.request("http", bytes("x")).then(
          (answer) => answer.body?.cancel().catch(() => {}),
          () => {},
        );
        await Promise.resolve();
        const payload = joined([...dice.pick(CORPUS), ...dice.pick(CORPUS)]);
        // Changing headers matters more than the zeros of a part.
        const head = mutateBytes(dice, payload.subarray(0, 120), joined(dice.pick(CORPUS)).subarray(0, 200));
        const writer = new RecordWriter(key);
        writer.begin();
        writer.append(head);
        writer.append(payload.subarray(120));
        await writeAll(far, writer.seal().slice()).catch(() => {});
        await new Promise((resolve) => setImmediate(resolve));
        closeQuietly(far);
        const ending = await ended;
        await Promise.all([asked, drain]);
        return ending.violation ? "violation" : ending.planned ? "goodbye" : "end";
      },
    };
  },
};

async function drained(connection: ByteConnection): Promise<void> {
  const into = new Uint8Array(10_000);
  while (await connection.read(into).catch(() => null) !== null) { /* goes on */ }
}

/** Copies bytes from one side to the other, through `change`. */
async function relay(from: ByteConnection, to: ByteConnection, change: (all: Uint8Array) => Uint8Array) {
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

/** Both sides have done all they can after so many turns: each message is one read and one write in memory. */
const TURNS = 40;
/** Which messages there are: the dialer's hello, the acceptor's, the dialer's proof, the verdict. */
const MESSAGES = 4;

const self = (site: string) => ({ site, incarnation: `${site}-1`, boot: new Uint8Array(8) });

/** A handshake through `change`, over when neither side has anything left to do. */
async function handshake(emulation: Emulation, change: (all: Uint8Array, message: number) => Uint8Array) {
  const [dialer, dialerFar] = connectionPair();
  const [acceptor, acceptorFar] = connectionPair();
  let message = 0;
  const next = (all: Uint8Array) => change(all, message++);
  const relays = [relay(dialerFar, acceptorFar, next), relay(acceptorFar, dialerFar, next)];
  const wires = [new Wire(dialer, emulation), new Wire(acceptor, emulation)] as const;
  const both = Promise.allSettled([
    introduce(wires[0], { self: self("edge"), secrets: [SECRET], role: "child", target: "core" }),
    receiveIntroduction(wires[1], {
      self: self("core"),
      ports: { claimed: () => Promise.resolve(), judge: () => null, secretFor: () => SECRET },
    }),
  ]);
  let isOver = false;
  const over = both.then(() => isOver = true);
  for (let turn = 0; turn < TURNS && !isOver; turn++) await new Promise((resolve) => setImmediate(resolve));
  wires.forEach((wire) => wire.close());
  await Promise.all([over, ...relays]);
  const [dialled, accepted] = await both;
  return { dialled: dialled.status === "fulfilled", accepted: accepted.status === "fulfilled" };
}

/** One attempt in so many changes nothing, and has to succeed: turns that are too few would refuse all. */
const CONTROL = 100;

/** Handshakes, by somebody between the sites who has no secret. */
export const handshakes: Target = {
  name: "handshakes",
  says: "no changed message is accepted by the side that receives it",
  reaches: ["message 0 refused", "message 1 refused", "message 2 refused", "message 3 refused", "control"],
  quick: 2_000,
  open() {
    const emulation = EMULATION();
    return {
      close: () => emulation.timer.close(),
      async attempt(dice) {
        const isControl = dice.below(CONTROL) === 0;
        const target = dice.below(MESSAGES);
        let isChanged = false;
        const { dialled, accepted } = await handshake(emulation, (all, message) => {
          if (isControl || message !== target) return all;
          isChanged = true;
          // Bytes after a message that is whole are not part of it: they count as the next one, or as a record.
          for (;;) {
            const mutant = mutateBytes(dice, all);
            if (!same(mutant.subarray(0, all.length), all)) return mutant;
          }
        });
        if (isControl) {
          if (!dialled || !accepted) throw new Finding("an unchanged handshake did not come to its end");
          return "control";
        }
        if (!isChanged) throw new Finding(`message ${target} was never sent`);
        if (dialled) throw new Finding(`message ${target} was changed, and the dialer went on`);
        if (accepted && target < 3) throw new Finding(`message ${target} was changed and accepted`);
        return `message ${target} refused`;
      },
    };
  },
};
