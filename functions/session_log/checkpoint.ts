/**
 * A checkpoint of a stateful session as bytes: all that a home needs to go on after the entry `at` without any entry
 * before. Format and vectors: docs/protocol/session-log.md.
 *
 * P1  It carries everything sent and not yet acknowledged, per receiver: what was sent before it and is lost on the way
 *     could never be made again.
 * P2  An incremental one holds in `state` only what changed since the one before; {@link mergeCheckpoint} makes a whole one
 *     of both, without decoding what the app stored.
 * P3  One form for each; anything else is refused with CodecError, and none allocates more than a small multiple of its
 *     bytes.
 */
import { CodecError, Reader, Writer } from "../../store/codec.ts";
import { mergeState } from "../tracked/state.ts";
import { bytes, bytesFrom, rawFrom, text, textFrom, word, wordFrom } from "./fields.ts";
import { CHECKPOINT_BYTES_MAX, NAME_BYTES_MAX } from "./limits.ts";

/** One write of an effect, as it was made. */
export type KeptMutation =
  | { readonly kind: "set"; readonly key: string; readonly value: Uint8Array; readonly expireInMs?: number }
  | { readonly kind: "delete"; readonly key: string }
  | { readonly kind: "sum" | "min" | "max"; readonly key: string; readonly value: Uint8Array };

/** What a turn wrote to the store, and nobody has said yet that it is there. */
export interface KeptEffect {
  readonly effect: number;
  readonly clock: number;
  readonly replica: number;
  readonly atMs: number;
  readonly mutations: readonly KeptMutation[];
}

/** An output that its receiver has not acknowledged. */
export interface KeptOutput {
  readonly to: string;
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/** Who is attached. */
export interface KeptPeer {
  readonly kind: "client" | "origin";
  readonly id: string;
  /** Outputs that it was given, over all epochs. */
  readonly sent: number;
}

/** What a checkpoint says. */
export interface CheckpointContents {
  /** Number of the last entry that it stands for. */
  readonly at: number;
  readonly epoch: number;
  readonly replica: number;
  /** Names code, variables and Deno build. */
  readonly code: string;
  /** 32 bytes of which the session's randomness comes, and how far its streams are, by name. */
  readonly seed: Uint8Array;
  readonly streams: Readonly<Record<string, number>>;
  /** The clock as it was read last, and at birth, in ms since 1970. */
  readonly clockMs: number;
  readonly originMs: number;
  /** The last clock of a store write. */
  readonly storeClock: number;
  /** What entries after it count from (LogClocks): void entries have read clocks too. */
  readonly logClockMs: number;
  readonly logStoreClock: number;
  /** The rolling check. */
  readonly rolling: number;
  /** Numbers to be given next, by what they number. */
  readonly counters: Readonly<Record<string, number>>;
  readonly isEnded: boolean;
  readonly timers: readonly { readonly name: string; readonly dueMs: number }[];
  readonly peers: readonly KeptPeer[];
  /** The session's token at the store: what it has seen there. */
  readonly storeToken: string | null;
  readonly outputs: readonly KeptOutput[];
  readonly effects: readonly KeptEffect[];
  /** Answers for those who ask again. */
  readonly answers: readonly { readonly request: string; readonly bytes: Uint8Array }[];
  /** Of the app (SessionState.checkpoint); not whole: what changed since the checkpoint before. */
  readonly state: { readonly isWhole: boolean; readonly bytes: Uint8Array };
}

const FORMAT = 1;
const SEED_BYTES = 32;
const TOKEN_BYTES_MAX = 4096;

/** @throws CodecError for what no reader would take. */
export function encodeCheckpoint(contents: CheckpointContents): Uint8Array<ArrayBuffer> {
  const c = contents;
  if (c.seed.length !== SEED_BYTES) throw new CodecError(`a seed has ${c.seed.length} bytes, not 32`);
  const w = new Writer(512 + c.state.bytes.length).byte(FORMAT);
  text(w.uint(c.at).uint(c.epoch).uint(c.replica), c.code, NAME_BYTES_MAX).raw(c.seed);
  named(w, c.streams);
  w.uint(c.clockMs).uint(c.originMs).uint(c.storeClock).uint(c.logClockMs).uint(c.logStoreClock);
  named(word(w, c.rolling), c.counters);
  w.flag(c.isEnded);
  w.list(c.timers, ({ name, dueMs }) => text(w, name, NAME_BYTES_MAX).uint(dueMs));
  w.list(c.peers, ({ kind, id, sent }) => text(w.flag(kind === "origin"), id, NAME_BYTES_MAX).uint(sent));
  w.flag(c.storeToken !== null);
  if (c.storeToken !== null) text(w, c.storeToken, TOKEN_BYTES_MAX);
  w.list(c.outputs, (each) => bytes(text(w, each.to, NAME_BYTES_MAX).uint(each.sequence), each.bytes));
  w.list(c.effects, (effect) => writeEffect(w, effect));
  w.list(c.answers, ({ request, bytes: answer }) => bytes(text(w, request, NAME_BYTES_MAX), answer));
  bytes(w.flag(c.state.isWhole), c.state.bytes, CHECKPOINT_BYTES_MAX);
  return w.done();
}

/** @throws CodecError (P3). */
export function decodeCheckpoint(from: Uint8Array): CheckpointContents {
  if (from.length > CHECKPOINT_BYTES_MAX) {
    throw new CodecError(`a checkpoint has ${from.length} bytes, more than ${CHECKPOINT_BYTES_MAX}`);
  }
  const r = new Reader(from);
  const format = r.byte();
  if (format !== FORMAT) {
    throw new CodecError(`a checkpoint of format ${format}: this version reads ${FORMAT}`);
  }
  const contents: CheckpointContents = {
    at: r.uint(),
    epoch: r.uint(),
    replica: r.uint(),
    code: textFrom(r, NAME_BYTES_MAX),
    seed: rawFrom(r, SEED_BYTES),
    streams: namedFrom(r),
    clockMs: r.uint(),
    originMs: r.uint(),
    storeClock: r.uint(),
    logClockMs: r.uint(),
    logStoreClock: r.uint(),
    rolling: wordFrom(r),
    counters: namedFrom(r),
    isEnded: r.flag(),
    timers: r.list(() => ({ name: textFrom(r, NAME_BYTES_MAX), dueMs: r.uint() })),
    peers: r.list(() => ({
      kind: r.flag() ? "origin" : "client",
      id: textFrom(r, NAME_BYTES_MAX),
      sent: r.uint(),
    })),
    storeToken: r.flag() ? textFrom(r, TOKEN_BYTES_MAX) : null,
    outputs: r.list(() => ({ to: textFrom(r, NAME_BYTES_MAX), sequence: r.uint(), bytes: bytesFrom(r) })),
    effects: r.list(() => readEffect(r)),
    answers: r.list(() => ({ request: textFrom(r, NAME_BYTES_MAX), bytes: bytesFrom(r) })),
    state: { isWhole: r.flag(), bytes: bytesFrom(r, CHECKPOINT_BYTES_MAX) },
  };
  r.end();
  return contents;
}

/**
 * A whole checkpoint of one and an incremental one after it.
 *
 * @throws CodecError. AppError `value_corrupt` where their states don't fit.
 */
export function mergeCheckpoint(before: Uint8Array, after: Uint8Array): Uint8Array<ArrayBuffer> {
  const [older, newer] = [decodeCheckpoint(before), decodeCheckpoint(after)];
  if (newer.state.isWhole) return encodeCheckpoint(newer);
  if (!older.state.isWhole || newer.at < older.at) {
    throw new CodecError(`a checkpoint at ${newer.at} does not go on from the one at ${older.at}`);
  }
  const state = { isWhole: true, bytes: mergeState(older.state.bytes, newer.state.bytes) };
  return encodeCheckpoint({ ...newer, state });
}

/** In the order of their names, so that there is one form. */
function named(w: Writer, numbers: Readonly<Record<string, number>>): void {
  const entries = Object.entries(numbers).sort(([a], [b]) => a < b ? -1 : 1);
  w.list(entries, ([name, value]) => text(w, name, NAME_BYTES_MAX).uint(value));
}

function namedFrom(r: Reader): Record<string, number> {
  const entries = r.list((): [string, number] => [textFrom(r, NAME_BYTES_MAX), r.uint()]);
  for (let i = 1; i < entries.length; i++) {
    if ((entries[i - 1]?.[0] ?? "") >= (entries[i]?.[0] ?? "")) {
      throw new CodecError("names are not in order");
    }
  }
  return Object.fromEntries(entries);
}

const MUTATION = { set: 0, delete: 1, sum: 2, min: 3, max: 4 } as const;
/** `set` with a time to live. */
const SET_EXPIRING = 5;

function writeEffect(w: Writer, { effect, clock, replica, atMs, mutations }: KeptEffect): void {
  w.uint(effect).uint(clock).uint(replica).uint(atMs);
  w.list(mutations, (each) => {
    const expiry = each.kind === "set" ? each.expireInMs : undefined;
    text(w.byte(expiry === undefined ? MUTATION[each.kind] : SET_EXPIRING), each.key, CHECKPOINT_BYTES_MAX);
    if (each.kind !== "delete") bytes(w, each.value);
    if (expiry !== undefined) w.uint(expiry);
  });
}

const readEffect = (r: Reader): KeptEffect => ({
  effect: r.uint(),
  clock: r.uint(),
  replica: r.uint(),
  atMs: r.uint(),
  mutations: r.list(() => readMutation(r)),
});

function readMutation(r: Reader): KeptMutation {
  const kind = r.byte();
  const key = textFrom(r, CHECKPOINT_BYTES_MAX);
  switch (kind) {
    case MUTATION.delete:
      return { kind: "delete", key };
    case MUTATION.set:
      return { kind: "set", key, value: bytesFrom(r) };
    case SET_EXPIRING:
      return { kind: "set", key, value: bytesFrom(r), expireInMs: r.uint() };
    case MUTATION.sum:
      return { kind: "sum", key, value: bytesFrom(r) };
    case MUTATION.min:
      return { kind: "min", key, value: bytesFrom(r) };
    case MUTATION.max:
      return { kind: "max", key, value: bytesFrom(r) };
    default:
      throw new CodecError(`there is no write of kind ${kind}`);
  }
}
