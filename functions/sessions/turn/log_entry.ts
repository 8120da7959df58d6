/**
 * Entries of a session's interleave log, as bytes (docs/protocol/session-log.md).
 *
 *   turn     byte kind · byte dt · varint dt − 254, where dt is 255 · fields · 8 bytes check
 *   of before: byte kind << 4 | dt · varint dt − 14, where dt is 15 · fields · byte check
 *   other    byte kind << 4 | dt · varint dt − 14, where dt is 15 · fields
 *
 * `dt` is the milliseconds from the last reading of the clock to this one: 0–253 as it stands, 254 where the clock was
 * not read, 255 where a varint of dt − 254 follows; in half a byte 0–13, 14 and 15. What a turn took besides (`clock`,
 * `effect`) stands behind the entry that began the turn.
 *
 * Bytes of requests and results that were read are views of the log: for a replay, which is over before the log
 * changes.
 *
 * LE1  Each entry has one form; decoding throws CodecError for all else, for an unknown kind too.
 * LE3  An entry says by itself which check it holds (rolling_check.ts, RK3): logs with the check of before are read as
 *      they are, and reading an entry needs nothing of what stands before it.
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import type { CheckMark, EntryCheck } from "./rolling_check.ts";
import type { Subject } from "../../class/subject.ts";
import type { TurnEnd, TurnInput } from "./turn.ts";

/** An entry that was read from a log. */
export type LogEntry =
  | {
    readonly kind: "turn";
    readonly input: TurnInput;
    /** Milliseconds since the last reading of the clock; null where the clock was not read. */
    readonly dt: number | null;
    /** Rolling check after the turn. */
    readonly check: EntryCheck;
  }
  | { readonly kind: "clock"; readonly dt: number }
  | { readonly kind: "effect"; readonly clock: number }
  | { readonly kind: "checkpoint"; readonly digest: number };

const KIND = {
  request: 1,
  message: 2,
  attach: 3,
  detach: 4,
  timer: 5,
  local: 6,
  result: 7,
  error: 8,
  rejected: 9,
  epoch: 10,
  birth: 11,
  clock: 12,
  effect: 13,
  checkpoint: 14,
} as const;
const KIND_NAMES = new Map<number, keyof typeof KIND>(
  Object.entries(KIND).map(([name, byte]) => [byte, name as keyof typeof KIND]),
);

/** First byte from which on an entry has half a byte of time; turns with all of the check begin with a lower one. */
const HALVED = 0x10;
/**
 * Codes of times in a byte, and in half a byte: the largest time that stands as it is, no time, and a varint that
 * follows.
 */
const DT = { most: 253, none: 254, follows: 255 } as const;
const DT_HALF = { most: 13, none: 14, follows: 15 } as const;
/** Lengths of a check: all of it, and the one of before. */
const WHOLE_BYTES = 8, SHORT_BYTES = 1;
const SEED_BYTES = 32;
const PEERS = ["client", "origin"] as const;
/** Subjects of rejected handlers, by their codes; a number of attempts follows where RETRIED is added. */
const SUBJECTS = [null, "request", "message", "detach", "attach", "timer"] as const;
const RETRIED = 8;

/**
 * Appends the entries of a turn, and returns how many there are. `beforeMs` is the last reading of the clock before the
 * turn.
 */
export function writeTurn(writer: Writer, input: TurnInput, end: TurnEnd, beforeMs: number): number {
  const [first, ...more] = end.clocks;
  const dt = first === undefined ? null : first - beforeMs;
  if (typeof end.check === "number") writeHead(writer, KIND[input.kind], dt);
  else writeWholeHead(writer, KIND[input.kind], dt);
  writeInput(writer, input);
  writeCheck(writer, end.check);
  let lastMs = first ?? beforeMs;
  for (const ms of more) {
    writeHead(writer, KIND.clock, ms - lastMs);
    lastMs = ms;
  }
  if (end.storeClock !== null) {
    writeHead(writer, KIND.effect, null);
    writer.uint(end.storeClock);
  }
  return 1 + more.length + (end.storeClock === null ? 0 : 1);
}

export function writeCheckpointEntry(writer: Writer, digest: number): void {
  writeHead(writer, KIND.checkpoint, null);
  writer.uint(digest);
}

function writeHead(writer: Writer, kind: number, dt: number | null): void {
  if (dt === null) writer.byte(kind << 4 | DT_HALF.none);
  else if (dt <= DT_HALF.most) writer.byte(kind << 4 | dt);
  else writer.byte(kind << 4 | DT_HALF.follows).uint(dt - DT_HALF.most - 1);
}

function writeWholeHead(writer: Writer, kind: number, dt: number | null): void {
  writer.byte(kind);
  if (dt === null) writer.byte(DT.none);
  else if (dt <= DT.most) writer.byte(dt);
  else writer.byte(DT.follows).uint(dt - DT.most - 1);
}

/** Writes the check of an entry. Checks of before are written by those who write what they have read of such a log. */
function writeCheck(writer: Writer, check: EntryCheck): void {
  if (typeof check === "number") writer.byte(check & 0xff);
  else writeCheckMark(writer, check);
}

/** Writes both words of a check, the high one first, big endian. */
export function writeCheckMark(writer: Writer, { high, low }: CheckMark): void {
  for (const word of [high, low]) {
    writer.byte(word >>> 24).byte(word >>> 16 & 0xff).byte(word >>> 8 & 0xff).byte(word & 0xff);
  }
}

/** Reads both words of a check. @throws CodecError */
export function readCheckMark(reader: Reader): CheckMark {
  const word = () => reader.byte() << 24 | reader.byte() << 16 | reader.byte() << 8 | reader.byte();
  const high = word();
  return { high, low: word() };
}

function writeInput(writer: Writer, input: TurnInput): void {
  switch (input.kind) {
    case "request":
      writer.text(input.request).list(input.chain, (each) => void writer.text(each)).bytes(input.bytes);
      return;
    case "message":
      writer.text(input.peer).flag(typeof input.message === "string");
      if (typeof input.message === "string") writer.text(input.message);
      else writer.bytes(input.message);
      return;
    case "attach":
      writer.byte(PEERS.indexOf(input.peer.kind)).text(input.peer.id);
      return;
    case "detach":
      writer.text(input.peer);
      return;
    case "timer":
      writer.text(input.name);
      return;
    case "local":
      writer.uint(input.local);
      return;
    case "result":
      writer.uint(input.call).bytes(input.bytes);
      return;
    case "error":
      writer.uint(input.call).text(input.code).text(input.message);
      return;
    case "rejected":
      writer.uint(input.voids);
      writeSubject(writer, input.subject, input.attempt);
      writer.text(input.code).text(input.message).uint(dropsNumber(input.drops));
      writer.uint(input.nextCall).uint(input.nextLocal).uint(input.nextEffect);
      return;
    case "epoch":
      writer.uint(input.epoch).uint(input.replica).text(input.code);
      return;
    case "birth":
      writer.bytes(input.seed);
  }
}

function writeSubject(writer: Writer, subject: Subject | null, attempt: number): void {
  writer.byte(SUBJECTS.indexOf(subject?.kind ?? null) + (attempt > 0 ? RETRIED : 0)).text(subject?.id ?? "");
  if (attempt > 0) writer.uint(attempt);
}

/**
 * Returns the number that says which closure timers a rejection takes: 0 none, 1 all, else one more than the timer's
 * number.
 */
const dropsNumber = (drops: "none" | "all" | number): number =>
  drops === "none" ? 0 : drops === "all" ? 1 : drops + 1;

// ── Messages, without reading them ──

/**
 * Returns where the text of the peer lies in bytes that are, from `at` on, the entry of one message; null: they are
 * not.
 */
export function peerInMessage(
  bytes: Uint8Array,
  at: number,
): { readonly from: number; readonly to: number } | null {
  const head = bytes[at] ?? 0;
  if (head !== KIND.message && head >> 4 !== KIND.message) return null;
  const from = pastHead(bytes, at), length = bytes[from] ?? 0x80;
  const to = from + 1 + length;
  return length < 0x80 && pastSaid(bytes, to, head) === bytes.length ? { from, to } : null;
}

/** Returns the place behind an entry's first byte and its time. */
export function pastHead(bytes: Uint8Array, at: number): number {
  const head = bytes[at] ?? 0;
  if (head < HALVED) return bytes[at + 1] === DT.follows ? pastUint(bytes, at + 2) : at + 2;
  return (head & 0xf) === DT_HALF.follows ? pastUint(bytes, at + 1) : at + 1;
}

/** Returns the place behind all that follows the peer in a message's entry, which begins with the byte `head`. */
export function pastSaid(bytes: Uint8Array, at: number, head: number): number {
  const to = pastUint(bytes, at + 1);
  let length = 0;
  for (let i = to - 1; i > at; i--) length = length * 0x80 + ((bytes[i] ?? 0) & 0x7f);
  return to + length + (head < HALVED ? WHOLE_BYTES : SHORT_BYTES);
}

function pastUint(bytes: Uint8Array, at: number): number {
  while ((bytes[at] ?? 0) >= 0x80) at++;
  return at + 1;
}

/** An entry, and the place where its bytes end. */
export type ReadEntry = LogEntry & { readonly end: number };

/** Reads all entries. @throws CodecError (LE1) */
export function readEntries(bytes: Uint8Array): ReadEntry[] {
  const reader = new Reader(bytes);
  const entries: ReadEntry[] = [];
  while (!reader.isAtEnd) entries.push(readEntry(reader));
  return entries;
}

/** Returns the calls whose outcomes are among the entries. @throws CodecError */
export const resultsIn = (bytes: Uint8Array): number[] =>
  readEntries(bytes).flatMap((entry) => {
    if (entry.kind !== "turn") return [];
    const { input } = entry;
    return input.kind === "result" || input.kind === "error" ? [input.call] : [];
  });

function readEntry(reader: Reader): ReadEntry {
  const head = reader.byte();
  const isWhole = head < HALVED;
  const kind = KIND_NAMES.get(isWhole ? head : head >> 4);
  if (kind === undefined) throw new CodecError(`there is no log entry of kind ${isWhole ? head : head >> 4}`);
  const dt = isWhole ? readDt(reader, reader.byte(), DT) : readDt(reader, head & 0xf, DT_HALF);
  if (isWhole && !isTurn(kind)) throw new CodecError(`a ${kind} is no turn`);
  switch (kind) {
    case "clock":
      if (dt === null) throw new CodecError("a clock entry has no time");
      return { kind, dt, end: reader.position };
    case "effect":
      if (dt !== null) throw new CodecError("an effect has no time of its own");
      return { kind, clock: reader.uint(), end: reader.position };
    case "checkpoint":
      if (dt !== null) throw new CodecError("a checkpoint has no time of its own");
      return { kind, digest: reader.uint(), end: reader.position };
    default: {
      const input = readInput(reader, kind);
      const check = isWhole ? readCheckMark(reader) : reader.byte(); // LE3
      return { kind: "turn", input, dt, check, end: reader.position };
    }
  }
}

const isTurn = (kind: keyof typeof KIND): boolean =>
  kind !== "clock" && kind !== "effect" && kind !== "checkpoint";

function readDt(reader: Reader, code: number, form: typeof DT | typeof DT_HALF): number | null {
  if (code === form.none) return null;
  if (code !== form.follows) return code;
  const dt = form.most + 1 + reader.uint();
  if (!Number.isSafeInteger(dt)) throw new CodecError("a time is beyond 53 bits");
  return dt;
}

function readInput(reader: Reader, kind: TurnInput["kind"]): TurnInput {
  switch (kind) {
    case "request":
      return {
        kind,
        request: reader.text(),
        chain: reader.list(() => reader.text()),
        bytes: reader.view(),
      };
    case "message":
      return { kind, peer: reader.text(), message: reader.flag() ? reader.text() : reader.bytes() };
    case "attach": {
      const peerKind = PEERS[reader.byte()];
      if (peerKind === undefined) throw new CodecError("there is no such kind of peer");
      return { kind, peer: { kind: peerKind, id: reader.text() } };
    }
    case "detach":
      return { kind, peer: reader.text() };
    case "timer":
      return { kind, name: reader.text() };
    case "local":
      return { kind, local: reader.uint() };
    case "result":
      return { kind, call: reader.uint(), bytes: reader.view() };
    case "error":
      return { kind, call: reader.uint(), code: reader.text(), message: reader.text() };
    case "rejected":
      return readRejected(reader);
    case "epoch":
      return { kind, epoch: reader.uint(), replica: reader.uint(), code: reader.text() };
    case "birth":
      return { kind, seed: seedFrom(reader) };
  }
}

function seedFrom(reader: Reader): Uint8Array {
  const seed = reader.bytes();
  if (seed.length !== SEED_BYTES) throw new CodecError(`a seed has ${seed.length} bytes, not ${SEED_BYTES}`);
  return seed;
}

function readRejected(reader: Reader): TurnInput {
  const voids = reader.uint();
  const { subject, attempt } = readSubject(reader);
  const code = reader.text();
  const message = reader.text();
  const drops = reader.uint();
  return {
    kind: "rejected",
    voids,
    subject,
    attempt,
    code,
    message,
    drops: drops === 0 ? "none" : drops === 1 ? "all" : drops - 1,
    nextCall: reader.uint(),
    nextLocal: reader.uint(),
    nextEffect: reader.uint(),
  };
}

function readSubject(reader: Reader): { readonly subject: Subject | null; readonly attempt: number } {
  const code = reader.byte();
  const kind = SUBJECTS[code & ~RETRIED];
  if (kind === undefined) throw new CodecError(`a rejection is of no subject ${code}`);
  const id = reader.text();
  if (kind === null && id !== "") throw new CodecError("a rejection of nothing has the id of something");
  const attempt = (code & RETRIED) === 0 ? 0 : reader.uint();
  if (attempt === 0 && (code & RETRIED) !== 0) {
    throw new CodecError("a rejection is tried again for the 0th time");
  }
  return { subject: kind === null ? null : { kind, id }, attempt };
}
