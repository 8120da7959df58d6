/**
 * Checkpoints as bytes (docs/protocol/session-log.md): all that a program is while it waits for nothing, and what it
 * gave out that nobody has acknowledged.
 *
 * CP1  A checkpoint is taken of a quiescent program only: handlers, calls and closure timers have no bytes.
 * CP2  The program that a checkpoint was taken of, and the program that it is read into, do the same from there on. The
 *      state of the object is no part of these bytes: it lies beside them, as segments (functions/tracked/state.ts).
 * CP3  Outputs and effects that are not acknowledged are in the checkpoint: what was sent before it and lost on its way
 *      is never made again (STATEFUL, rule 6).
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { AppError } from "../../vocabulary/errors.ts";
import { readMutation, writeMutation } from "./call_bytes.ts";
import type { Effect, EffectSend, Output } from "./commit.ts";
import type { Count, Program } from "./program.ts";
import { readCheckMark, writeCheckMark } from "./log_entry.ts";
import { checkBytes } from "./rolling_check.ts";
import { effectSend } from "./sends.ts";

/**
 * Number of this format. A reader knows all formats that were ever written: the first had no counts of messages; the
 * first two held the state in themselves, and no shape; the first three had a check of 32 bits; the first four had no
 * counts of packages; the first five had no messages to queues. A checkpoint without such messages is written in the
 * fifth format, and one without counts either in the fourth, so that sites of an earlier version can read it.
 */
const VERSION = 6;
const VERSION_WITHOUT_SENDS = 5;
const VERSION_WITHOUT_COUNTS = 4;
const VERSION_SHORT_CHECK = 3;
const VERSION_WITH_STATE = 2;
const VERSION_WITHOUT_RECEIVED = 1;
const PEERS = ["client", "origin"] as const;

/** Contents of a checkpoint that lie beside the program. */
export interface CheckpointParts extends Kept {
  /**
   * The state of the session's object (functions/tracked/), whole, where the checkpoint itself holds it; null: it lies
   * beside.
   */
  readonly state: Uint8Array | null;
  /** Code that wrote the checkpoint. */
  readonly code: string;
}

/**
 * Values that are written beside the program: its shape, and outputs and effects that were given out and not
 * acknowledged.
 */
interface Kept {
  /** Value of `static shape` of the class. */
  readonly shape: number;
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
}

/**
 * Returns a 32-bit digest over what a checkpoint adds to the one before. The digest names the checkpoint in the log;
 * against tampering checkpoints are sealed elsewhere.
 */
export const checkpointDigest = (bytes: Uint8Array, state: readonly Uint8Array[]): number =>
  checkBytes(state.reduce(checkBytes, 0), bytes);

/**
 * Encodes all of a checkpoint but its state, which lies beside it. Where the state was in the checkpoint itself
 * (`parts.state`), it stays there, in the format that has it so.
 *
 * @throws AppError `limit_value` where the checkpoint is too long to be opened again.
 */
export function encodeCheckpoint(program: Program, parts: Kept & Partial<CheckpointParts>): Uint8Array {
  const { shape, outputs, effects, state = null } = parts;
  const writer = new Writer(512);
  const { check } = program;
  const { counts } = program;
  const hasSends = effects.some(({ sends }) => sends !== undefined);
  const version = state !== null
    ? VERSION_WITH_STATE
    : !check.isWhole
    ? VERSION_SHORT_CHECK
    : hasSends
    ? VERSION
    : counts.size === 0
    ? VERSION_WITHOUT_COUNTS
    : VERSION_WITHOUT_SENDS;
  // Code that keeps counts, or sends to queues, goes by a check of all bits.
  if (version < VERSION_WITHOUT_COUNTS && (counts.size > 0 || hasSends)) {
    throw new Error(
      "a checkpoint of before can't hold what counts in packages, nor messages to queues (CP2)",
    );
  }
  writer.byte(version);
  writer.uint(program.epoch).uint(program.replica).text(program.code);
  if (state === null) writer.uint(shape);
  writer.raw(program.seed);
  writer.uint(program.originMs).uint(program.clockMs).uint(program.storeClock);
  writer.uint(program.math.position).uint(program.crypto.position);
  if (version > VERSION_SHORT_CHECK) writeCheckMark(writer, check);
  else writer.uint(check.short);
  writer.uint(program.nextCall).uint(program.nextLocal).uint(program.nextEffect); // CP2
  writer.list([...program.timers], ([name, dueMs]) => void writer.text(name).uint(dueMs));
  writer.list([...program.peers.values()], ({ peer, sent, received, isClosed }) => {
    writer.byte(PEERS.indexOf(peer.kind)).text(peer.id).uint(sent).uint(received).flag(isClosed);
  });
  // CP3
  writer.list(outputs, ({ to, sequence, bytes }) => void writer.text(to).uint(sequence).bytes(bytes));
  writer.list(effects, (effect) => { // CP3
    writer.uint(effect.effect).uint(effect.clock).uint(effect.replica).uint(effect.atMs);
    writer.list(effect.mutations, (mutation) => writeMutation(writer, mutation as never));
    if (version === VERSION) writer.list(effect.sends ?? [], (send) => writeEffectSend(writer, send));
  });
  if (version > VERSION_WITHOUT_COUNTS) {
    writer.list([...counts], ([name, value]) => writeCount(writer.text(name), value));
  }
  if (state !== null) writer.bytes(state);
  return sized(writer.done());
}

function writeEffectSend(writer: Writer, { queue, body, id = "", delayMs = 0, ttlMs = 0 }: EffectSend): void {
  writer.text(queue).text(id).uint(delayMs).uint(ttlMs).bytes(body);
}

function readEffectSend(reader: Reader): EffectSend {
  const queue = reader.text(), id = reader.text(), delayMs = reader.uint(), ttlMs = reader.uint();
  return effectSend({ queue, id, delayMs, ttlMs, body: reader.bytes() });
}

function readEffect(reader: Reader, version: number): Effect {
  const effect = {
    effect: reader.uint(),
    clock: reader.uint(),
    replica: reader.uint(),
    atMs: reader.uint(),
    mutations: reader.list(() => readMutation(reader) as Effect["mutations"][number]),
  };
  const sends = version > VERSION_WITHOUT_SENDS ? reader.list(() => readEffectSend(reader)) : [];
  return sends.length === 0 ? effect : { ...effect, sends };
}

const COUNTS = ["number", "bigint", "string"] as const;

const countAsText = (value: Count): string => Object.is(value, -0) ? "-0" : String(value);

function writeCount(writer: Writer, value: Count): void {
  writer.byte(COUNTS.indexOf(typeof value as "number")).text(countAsText(value));
}

function readCount(reader: Reader): Count {
  const kind = COUNTS[reader.byte()];
  const text = reader.text();
  if (kind === "string") return text;
  if (kind === undefined || (kind === "bigint" && !/^-?\d+$/.test(text))) {
    throw new CodecError("that is no count of a package");
  }
  const value = kind === "bigint" ? BigInt(text) : Number(text);
  if (countAsText(value) !== text) throw new CodecError("a count of a package is written in one way");
  return value;
}

function readCounts(reader: Reader, version: number): Map<string, Count> {
  const read = reader.list(() => [reader.text(), readCount(reader)] as const);
  const counts = new Map(read);
  const isLeftOut = counts.size === 0 && version === VERSION_WITHOUT_SENDS;
  if (isLeftOut || counts.size !== read.length) {
    throw new CodecError("counts of packages are there, each once, or are left out");
  }
  return counts;
}

/** Bytes that fit into one frame to an isolate, with the log after the checkpoint (runtime/isolate/frames.ts). */
const CHECKPOINT_BYTES_MAX = 40 * 1024 * 1024;

function sized(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= CHECKPOINT_BYTES_MAX) return bytes;
  throw new AppError(
    "limit_value",
    `a checkpoint of a stateful session has at most ${CHECKPOINT_BYTES_MAX} bytes; this one has ${bytes.length}`,
  );
}

/** Returns the code that wrote a checkpoint. @throws CodecError */
export function codeOfCheckpoint(bytes: Uint8Array): string {
  const { reader } = begun(bytes);
  reader.uint();
  reader.uint();
  return reader.text();
}

function begun(bytes: Uint8Array): { readonly reader: Reader; readonly version: number } {
  const reader = new Reader(bytes);
  const version = reader.byte();
  if (version < VERSION_WITHOUT_RECEIVED || version > VERSION) {
    throw new CodecError(`there is no checkpoint of version ${version}`);
  }
  return { reader, version };
}

function readShortCheck(reader: Reader): number {
  const check = reader.uint();
  if (check >= 2 ** 32) throw new CodecError("a check of before has 32 bits");
  return check;
}

/** Reads a checkpoint into a program that has no object yet; the caller loads the state. @throws CodecError */
export function decodeCheckpoint(bytes: Uint8Array, program: Program): CheckpointParts {
  const { reader, version } = begun(bytes);
  program.epoch = reader.uint();
  program.replica = reader.uint();
  const code = program.code = reader.text();
  const shape = version > VERSION_WITH_STATE ? reader.uint() : 0;
  program.sow(Uint8Array.from({ length: 32 }, () => reader.byte()));
  program.originMs = reader.uint();
  program.clockMs = reader.uint();
  program.storeClock = reader.uint();
  const drawn = { math: reader.uint(), crypto: reader.uint() };
  if (version > VERSION_SHORT_CHECK) program.check.restore(readCheckMark(reader));
  else program.check.restoreShort(readShortCheck(reader));
  program.nextCall = reader.uint();
  program.nextLocal = reader.uint();
  program.nextEffect = reader.uint();
  for (const [name, dueMs] of reader.list(() => [reader.text(), reader.uint()] as const)) {
    program.timers.set(name, dueMs);
  }
  reader.list(() => {
    const kind = PEERS[reader.byte()];
    if (kind === undefined) throw new CodecError("there is no such kind of peer");
    const id = reader.text();
    const sent = reader.uint();
    const isOld = version === VERSION_WITHOUT_RECEIVED;
    const received = isOld ? 0 : reader.uint();
    program.peers.restore({ peer: { kind, id }, sent, received, isClosed: !isOld && reader.flag() });
  });
  const outputs = reader.list(() => ({ to: reader.text(), sequence: reader.uint(), bytes: reader.bytes() }));
  const effects = reader.list(() => readEffect(reader, version));
  if (version === VERSION && effects.every(({ sends }) => sends === undefined)) {
    throw new CodecError("a checkpoint without messages to queues is of an earlier format");
  }
  const counts = version > VERSION_WITHOUT_COUNTS ? readCounts(reader, version) : new Map<string, Count>();
  const state = version > VERSION_WITH_STATE ? null : reader.bytes();
  reader.end();
  // The object is made before its state is put into it: what the constructor draws or counts does not count for the
  // session.
  program.make();
  program.math.position = drawn.math;
  program.crypto.position = drawn.crypto;
  program.counts.clear();
  for (const [name, value] of counts) program.counts.set(name, value);
  return { state, shape, code, outputs, effects };
}
