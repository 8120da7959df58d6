/**
 * The log of a stateful session as bytes. Entries are opaque to all but the executor; homes and owners hold and cut them
 * by number. Format and vectors: docs/protocol/session-log.md.
 *
 * L1  One form for each entry after the same clocks: what is read is written again as it was.
 * L2  A reader throws CodecError for anything else, and allocates no more than a small multiple of the bytes.
 */
import { CodecError, Reader, Writer } from "../../store/codec.ts";
import type { Entry, EntryInput, LogClocks } from "./entry.ts";
import { bytes, bytesFrom, rawFrom, text, textFrom, word, wordFrom } from "./fields.ts";
import { CHAIN_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, READINGS_MAX } from "./limits.ts";

/** High half of an entry's first byte. 0, 1, 6 and 9 are kept for messages and shared reads that leave no bytes here. */
export const KIND = {
  timer: 0x2,
  local: 0x3,
  result: 0x4,
  error: 0x5,
  birth: 0x7,
  message: 0x8,
  checkpoint: 0xa,
  epoch: 0xb,
  rejected: 0xc,
  request: 0xd,
  peer: 0xe,
  /** Before the entry that it belongs to: what few entries have. */
  more: 0xf,
} as const;

/** Low half: milliseconds since the clock was read last, up to here. */
const STEP_MAX = 13;
const NOT_READ = 14;
const FAR = 15;

/** Low half of `more`. */
const STORE_CLOCK = 1;
const READINGS = 2;

const SEED_BYTES = 32;

/** Writes entries, and counts them. */
export class LogWriter {
  #clockMs: number;
  #storeClock: number;
  #w = new Writer(128);
  #count = 0;

  constructor(from: LogClocks) {
    this.#clockMs = from.clockMs;
    this.#storeClock = from.storeClock;
  }

  /** Where entries after these count from. */
  get clocks(): LogClocks {
    return { clockMs: this.#clockMs, storeClock: this.#storeClock };
  }

  /** Entries since the last `take`. */
  get count(): number {
    return this.#count;
  }

  /** Bytes since the last `take`. */
  get bytes(): number {
    return this.#w.length;
  }

  /** @throws CodecError for what no reader would take; nothing is written then. */
  append(entry: Entry): void {
    const { clocks, storeClock, input } = entry;
    checkEntry(entry);
    const w = new Writer(64);
    const [first, ...further] = clocks;
    if (storeClock !== null || further.length > 0) {
      w.byte(
        (KIND.more << 4) | (storeClock === null ? 0 : STORE_CLOCK) | (further.length === 0 ? 0 : READINGS),
      );
      if (storeClock !== null) signed(w, storeClock - this.#storeClock);
      let last = first ?? 0;
      if (further.length > 0) {
        w.list(further, (reading) => {
          signed(w, reading - last);
          last = reading;
        });
      }
    }
    const step = first === undefined ? null : first - this.#clockMs;
    const low = step === null ? NOT_READ : step >= 0 && step <= STEP_MAX ? step : FAR;
    w.byte((kindOf(input) << 4) | low);
    if (low === FAR && step !== null) signed(w, step);
    writeFields(w, input);
    w.byte(entry.check);
    this.#w.raw(w.done());
    this.#count++;
    this.#clockMs = clocks.at(-1) ?? this.#clockMs;
    this.#storeClock = storeClock ?? this.#storeClock;
  }

  /** Hands over what was written since the last time. */
  take(): { readonly count: number; readonly bytes: Uint8Array<ArrayBuffer> } {
    const taken = { count: this.#count, bytes: this.#w.done() };
    this.#w = new Writer(128);
    this.#count = 0;
    return taken;
  }
}

/** Reads entries one by one. */
export class LogReader {
  #clockMs: number;
  #storeClock: number;
  readonly #r: Reader;

  constructor(bytes: Uint8Array, from: LogClocks) {
    this.#r = new Reader(bytes);
    this.#clockMs = from.clockMs;
    this.#storeClock = from.storeClock;
  }

  /** Where entries after these count from. */
  get clocks(): LogClocks {
    return { clockMs: this.#clockMs, storeClock: this.#storeClock };
  }

  /** The next entry; null at the end. @throws CodecError (L2). */
  next(): Entry | null {
    const r = this.#r;
    if (r.isAtEnd) return null;
    let head = r.byte();
    let storeClock: number | null = null;
    let steps: number[] = [];
    if (head >> 4 === KIND.more) {
      const flags = head & 0xf;
      if (flags === 0 || flags > 3) {
        throw new CodecError(`an entry has more of kind ${flags}: expected 1 to 3`);
      }
      if (flags & STORE_CLOCK) storeClock = clockAfter(this.#storeClock, signedFrom(r));
      if (flags & READINGS) steps = r.list(() => signedFrom(r));
      if (flags & READINGS && (steps.length === 0 || steps.length > READINGS_MAX)) {
        throw new CodecError(`a turn has ${steps.length} further readings: expected 1 to ${READINGS_MAX}`);
      }
      head = r.byte();
    }
    const clocks = this.#clocks(head & 0xf, steps);
    const input = readFields(r, head >> 4);
    const check = r.byte();
    this.#clockMs = clocks.at(-1) ?? this.#clockMs;
    this.#storeClock = storeClock ?? this.#storeClock;
    return { input, clocks, storeClock, check };
  }

  #clocks(low: number, steps: readonly number[]): number[] {
    if (low === NOT_READ) {
      if (steps.length > 0) throw new CodecError("a clock was read further that was not read");
      return [];
    }
    const step = low === FAR ? signedFrom(this.#r) : low;
    if (low === FAR && step >= 0 && step <= STEP_MAX) {
      throw new CodecError("a step is not in its shortest form");
    }
    const clocks = [clockAfter(this.#clockMs, step)];
    for (const each of steps) clocks.push(clockAfter(clocks.at(-1) ?? 0, each));
    return clocks;
  }
}

/** All entries of some bytes. @throws CodecError. */
export function readLog(bytes: Uint8Array, from: LogClocks): Entry[] {
  const reader = new LogReader(bytes, from);
  const entries: Entry[] = [];
  for (let entry = reader.next(); entry !== null; entry = reader.next()) entries.push(entry);
  return entries;
}

function clockAfter(before: number, step: number): number {
  const clock = before + step;
  if (!Number.isSafeInteger(clock) || clock < 0 || clock > CLOCK_MAX) {
    throw new CodecError(`a clock says ${clock}`);
  }
  return clock;
}

/** A safe integer: 0, −1, 1, −2, 2, … as 0, 1, 2, 3, 4, … */
function signed(w: Writer, value: number): void {
  w.uint(value < 0 ? -value * 2 - 1 : value * 2);
}

function signedFrom(r: Reader): number {
  const value = r.uint();
  return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
}

/** What the fields' own writers would not notice. */
function checkEntry({ clocks, storeClock, check }: Entry): void {
  const all = storeClock === null ? clocks : [...clocks, storeClock];
  const bad = all.find((clock) => !(Number.isSafeInteger(clock) && clock >= 0 && clock <= CLOCK_MAX));
  if (bad !== undefined) throw new CodecError(`a clock says ${bad}`);
  if (clocks.length > READINGS_MAX + 1) throw new CodecError(`a turn read the clock ${clocks.length} times`);
  if (!Number.isInteger(check) || check < 0 || check > 255) throw new CodecError(`${check} is no check byte`);
}

/** Twice a step between clocks has to be a safe integer. */
const CLOCK_MAX = 2 ** 52 - 1;

function kindOf(input: EntryInput): number {
  return input.kind === "attach" || input.kind === "detach" ? KIND.peer : KIND[input.kind];
}

/** Low byte of a peer entry. */
const PEER = { detached: 0, client: 1, origin: 2 } as const;

function writeFields(w: Writer, input: EntryInput): void {
  switch (input.kind) {
    case "request":
      text(w, input.request, NAME_BYTES_MAX);
      if (input.chain.length > CHAIN_MAX) throw new CodecError(`a chain of ${input.chain.length} calls`);
      w.list(input.chain, (each) => text(w, each, NAME_BYTES_MAX));
      return void bytes(w, input.bytes);
    case "attach":
      return void text(w.byte(PEER[input.peer.kind]), input.peer.id, NAME_BYTES_MAX);
    case "detach":
      return void text(w.byte(PEER.detached), input.peer, NAME_BYTES_MAX);
    case "message": {
      const isText = typeof input.message === "string";
      text(w, input.peer, NAME_BYTES_MAX).flag(isText);
      if (typeof input.message === "string") text(w, input.message, PAYLOAD_BYTES_MAX);
      else bytes(w, input.message);
      return;
    }
    case "timer":
      return void text(w, input.name, NAME_BYTES_MAX);
    case "local":
      return void w.uint(input.local);
    case "result":
      return void bytes(w.uint(input.call), input.bytes);
    case "error":
      return void text(
        text(w.uint(input.call), input.code, NAME_BYTES_MAX),
        input.message,
        MESSAGE_BYTES_MAX,
      );
    case "rejected":
      w.uint(input.voids).flag(input.request !== null);
      if (input.request !== null) text(w, input.request, NAME_BYTES_MAX);
      text(text(w, input.code, NAME_BYTES_MAX), input.message, MESSAGE_BYTES_MAX);
      return void w.flag(input.dropsLocals).uint(input.nextCall).uint(input.nextLocal).uint(input.nextEffect);
    case "epoch":
      return void text(w.uint(input.epoch).uint(input.replica), input.code, NAME_BYTES_MAX);
    case "birth":
      if (input.seed.length !== SEED_BYTES) {
        throw new CodecError(`a seed has ${input.seed.length} bytes, not 32`);
      }
      return void w.raw(input.seed);
    case "checkpoint":
      return void word(word(w, input.digest), input.rolling);
  }
}

function readFields(r: Reader, kind: number): EntryInput {
  switch (kind) {
    case KIND.request:
      return {
        kind: "request",
        request: textFrom(r, NAME_BYTES_MAX),
        chain: chainFrom(r),
        bytes: bytesFrom(r),
      };
    case KIND.peer:
      return readPeer(r);
    case KIND.message: {
      const peer = textFrom(r, NAME_BYTES_MAX);
      return { kind: "message", peer, message: r.flag() ? textFrom(r, PAYLOAD_BYTES_MAX) : bytesFrom(r) };
    }
    case KIND.timer:
      return { kind: "timer", name: textFrom(r, NAME_BYTES_MAX) };
    case KIND.local:
      return { kind: "local", local: r.uint() };
    case KIND.result:
      return { kind: "result", call: r.uint(), bytes: bytesFrom(r) };
    case KIND.error:
      return {
        kind: "error",
        call: r.uint(),
        code: textFrom(r, NAME_BYTES_MAX),
        message: textFrom(r, MESSAGE_BYTES_MAX),
      };
    case KIND.rejected:
      return {
        kind: "rejected",
        voids: r.uint(),
        request: r.flag() ? textFrom(r, NAME_BYTES_MAX) : null,
        code: textFrom(r, NAME_BYTES_MAX),
        message: textFrom(r, MESSAGE_BYTES_MAX),
        dropsLocals: r.flag(),
        nextCall: r.uint(),
        nextLocal: r.uint(),
        nextEffect: r.uint(),
      };
    case KIND.epoch:
      return { kind: "epoch", epoch: r.uint(), replica: r.uint(), code: textFrom(r, NAME_BYTES_MAX) };
    case KIND.birth:
      return { kind: "birth", seed: rawFrom(r, SEED_BYTES) };
    case KIND.checkpoint:
      return { kind: "checkpoint", digest: wordFrom(r), rolling: wordFrom(r) };
    default:
      throw new CodecError(`there is no entry of kind ${kind}`);
  }
}

function readPeer(r: Reader): EntryInput {
  const what = r.byte();
  const id = textFrom(r, NAME_BYTES_MAX);
  if (what === PEER.detached) return { kind: "detach", peer: id };
  if (what === PEER.client) return { kind: "attach", peer: { kind: "client", id } };
  if (what === PEER.origin) return { kind: "attach", peer: { kind: "origin", id } };
  throw new CodecError(`there is no peer of kind ${what}`);
}

function chainFrom(r: Reader): string[] {
  const chain = r.list(() => textFrom(r, NAME_BYTES_MAX));
  if (chain.length > CHAIN_MAX) throw new CodecError(`a chain of ${chain.length} calls`);
  return chain;
}
