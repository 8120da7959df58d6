/**
 * Messages about stateful sessions between an isolate and its site, as payloads (frames.ts, `session…`). The frame's id
 * is the session's channel: the site allots it with `sessionOpen`, from 1, and never again in that isolate. An isolate
 * has either requests or stateful sessions, never both.
 *
 *   site → isolate   sessionState … · sessionOpen · then sessionEvent, sessionAcknowledged, sessionCheckpointNow ·
 *                    sessionClose
 *                    sessionFollow · then sessionPiece · then sessionPromote, and all that follows sessionOpen
 *   isolate → site   sessionOpened (or sessionParked) · then sessionCommit, sessionCall, sessionDropped,
 *                    sessionState … · sessionCheckpoint · sessionParked at any time ·
 *                    sessionClosed in answer to sessionClose
 *
 * SF1  After sessionClose the isolate sends nothing of that channel but sessionClosed.
 * SF3  Before each turn the isolate writes the channel, and the number of the newest event that has come to it, into
 *      its mark file (process.ts, P4): when it dies, `lastTurn` is the session that ran. An event beyond that number
 *      was not begun.
 */
import type {
  Acknowledged,
  BegunEvent,
  Call,
  CallKind,
  Checkpoint,
  Commit,
  Effect,
  EffectMutation,
  EffectSend,
  OpenedProgram,
  OpenSession,
  Output,
  Parked,
  Promotion,
  Rejection,
  SessionEvent,
  TimerChange,
} from "../../functions/sessions/turn/mod.ts";
import { TIMER_NAME_CHARS_MAX } from "../../functions/sessions/turn/timers.ts";
import {
  isShallow,
  readAmount,
  readJson,
  readMessage,
  readNumber,
  readRowValue,
  readWord,
} from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { FRAME_KEY_BYTES_MAX, FrameError } from "./frames.ts";
import { readSent, SENT_BYTES_MIN, writeSent } from "./queue_frames.ts";

/** Bytes of UTF-8 that a UTF-16 unit takes at most. */
const UTF8_BYTES_MAX = 3;
const EVENTS = ["request", "attach", "message", "detach", "timer", "reject", "result"] as const;
const PEERS = ["client", "origin"] as const;
const CALLS: readonly CallKind[] = ["get", "list", "commit", "fetch", "session"];
/** Milliseconds of the last moment that a `Date` can name: a time goes into logs, and from there to other sites. */
const DATE_MS_MAX = 8_640_000_000_000_000;
const MUTATIONS: readonly EffectMutation["kind"][] = ["set", "delete", "sum", "min", "max"];

function pick<T>(table: readonly T[], index: number, what: string): T {
  const value = table[index];
  if (value === undefined) throw new FrameError(`${index} names no ${what}`);
  return value;
}

function writeList<T>(writer: FrameWriter, values: readonly T[], write: (value: T) => void): void {
  writer.u32(values.length);
  for (const value of values) write(value);
}

function readList<T>(payload: Payload, bytesEach: number, read: () => T): T[] {
  return Array.from({ length: payload.count(Infinity, bytesEach) }, read);
}

function readFlag(payload: Payload): boolean {
  const value = payload.u8();
  if (value > 1) throw new FrameError(`a flag is 0 or 1, not ${value}`);
  return value === 1;
}

function writeTally(writer: FrameWriter, tally: Readonly<Record<string, number>>): void {
  writeList(writer, Object.entries(tally), ([name, value]) => void writer.text(name).f64(value));
}

function readTally(payload: Payload): Record<string, number> {
  const tally: Record<string, number> = Object.create(null);
  for (const [name, value] of readList(payload, 12, () => [payload.text(), readNumber(payload)] as const)) {
    tally[name] = value;
  }
  return tally;
}

export function writeOpen(writer: FrameWriter, open: OpenSession): void {
  writer.text(open.class).text(open.id).f64(open.epoch).u32(open.replica).text(open.code).bytes(open.seed);
  writer.u8(open.checkpoint === null ? 0 : 1);
  if (open.checkpoint !== null) writer.f64(open.checkpoint.at).bytes(open.checkpoint.bytes);
  writer.bytes(open.entries);
  writeTally(writer, open.out);
  writer.f64(open.effectsApplied).u8(open.shows === true ? 1 : 0).u8(open.salvages === true ? 1 : 0);
}

/** @param state segments that came before (state_frames.ts). */
export function readOpen(payload: Payload, state: readonly Uint8Array[] = []): OpenSession {
  return {
    class: payload.text(),
    id: payload.text(),
    epoch: readNumber(payload),
    replica: payload.u32(),
    code: payload.text(),
    seed: payload.bytes(),
    checkpoint: readFlag(payload) ? { at: readNumber(payload), bytes: payload.bytes(), state } : null,
    entries: payload.bytes(),
    out: readTally(payload),
    effectsApplied: readNumber(payload),
    ...readFlag(payload) && { shows: true },
    ...readFlag(payload) && { salvages: true },
  };
}

export function writePromotion(
  writer: FrameWriter,
  { epoch, replica, out, effectsApplied }: Promotion,
): void {
  writer.f64(epoch).u32(replica);
  writeTally(writer, out);
  writer.f64(effectsApplied);
}

export function readPromotion(payload: Payload): Promotion {
  return {
    epoch: readNumber(payload),
    replica: payload.u32(),
    out: readTally(payload),
    effectsApplied: readNumber(payload),
  };
}

export function writeEvent(writer: FrameWriter, event: SessionEvent): void {
  writer.u8(EVENTS.indexOf(event.kind)).f64(event.storeClock);
  if (event.kind !== "result") writer.f64(event.number);
  switch (event.kind) {
    case "reject":
      writer.text(event.code).text(event.message).u8(event.of === null ? 0 : 1);
      if (event.of === null) return;
      writer.u8(EVENTS.indexOf(event.of.kind));
      return writeBegun(writer, event.of);
    case "result":
      writer.f64(event.call).u8(event.outcome.ok ? 1 : 0);
      if (event.outcome.ok) writer.rest(event.outcome.bytes);
      else writer.text(event.outcome.code).text(event.outcome.message);
      return;
    default:
      writeBegun(writer, event);
  }
}

function writeBegun(writer: FrameWriter, event: BegunEvent): void {
  switch (event.kind) {
    case "request":
      writer.text(event.request);
      writeList(writer, event.chain, (each) => void writer.text(each));
      writer.rest(event.bytes);
      return;
    case "attach":
      writer.u8(PEERS.indexOf(event.peer.kind)).text(event.peer.id);
      return;
    case "message":
      writer.text(event.peer);
      if (typeof event.message === "string") writer.u8(1).restText(event.message);
      else writer.u8(0).rest(event.message);
      return;
    case "detach":
      writer.text(event.peer);
      return;
    case "timer":
      writer.text(event.name).f64(event.dueMs);
  }
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

export function readEvent(payload: Payload): SessionEvent {
  const kind = pick(EVENTS, payload.u8(), "event");
  const storeClock = readNumber(payload);
  if (kind === "result") {
    const call = readNumber(payload);
    const outcome = readFlag(payload)
      ? { ok: true, bytes: payload.rest() } as const
      : { ok: false, code: payload.text(), message: payload.text() } as const;
    return { kind, storeClock, call, outcome };
  }
  const number = readNumber(payload);
  if (kind !== "reject") return { storeClock, number, ...readBegun(payload, kind) };
  const base = { kind, storeClock, number, code: payload.text(), message: payload.text() };
  if (!readFlag(payload)) return { ...base, of: null };
  const of = pick(EVENTS, payload.u8(), "event");
  if (of === "result" || of === "reject") throw new FrameError(`${of} begins no handler`);
  return { ...base, of: readBegun(payload, of) };
}

function readBegun(payload: Payload, kind: BegunEvent["kind"]): BegunEvent {
  switch (kind) {
    case "request":
      return {
        kind,
        request: payload.text(),
        chain: readList(payload, 4, () => payload.text()),
        bytes: payload.rest(),
      };
    case "attach":
      return { kind, peer: { kind: pick(PEERS, payload.u8(), "peer"), id: payload.text() } };
    case "message": {
      const peer = payload.text();
      const isText = readFlag(payload);
      return { kind, peer, message: isText ? utf8.decode(payload.restView()) : payload.rest() };
    }
    case "detach":
      return { kind, peer: payload.text() };
    case "timer":
      return { kind, name: payload.text(), dueMs: payload.f64() };
  }
}

export function writeAcknowledged(writer: FrameWriter, acknowledged: Acknowledged): void {
  writeTally(writer, acknowledged.outputs);
  writer.f64(acknowledged.effects);
}

export function readAcknowledged(payload: Payload): Acknowledged {
  return { outputs: readTally(payload), effects: readNumber(payload) };
}

function writeOutputs(writer: FrameWriter, outputs: readonly Output[]): void {
  writeList(writer, outputs, (each) => void writer.text(each.to).f64(each.sequence).bytes(each.bytes));
}

const readOutputs = (payload: Payload): Output[] =>
  readList(
    payload,
    16,
    () => ({ to: payload.text(), sequence: readNumber(payload), bytes: payload.bytes() }),
  );

function writeEffects(writer: FrameWriter, effects: readonly Effect[]): void {
  writeList(writer, effects, (each) => {
    writer.f64(each.effect).f64(each.clock).u32(each.replica).f64(each.atMs);
    writeList(writer, each.mutations, (mutation) => {
      writer.u8(MUTATIONS.indexOf(mutation.kind)).byteString(mutation.key);
      if (mutation.kind === "delete") return;
      writer.bytes(mutation.value);
      if (mutation.kind === "set") writer.f64(mutation.expireInMs ?? NaN);
    });
    writeList(writer, each.sends ?? [], (send) => writeSent(writer.text(send.queue), send));
  });
}

const readEffects = (payload: Payload): Effect[] =>
  readList(payload, 36, () => {
    const effect = {
      effect: readNumber(payload),
      clock: readNumber(payload),
      replica: payload.u32(),
      atMs: readNumber(payload),
      mutations: readList(payload, 5, () => readMutation(payload)),
    };
    const sends = readList(payload, 4 + SENT_BYTES_MIN, () => readEffectSend(payload));
    return sends.length === 0 ? effect : { ...effect, sends };
  });

function readEffectSend(payload: Payload): EffectSend {
  const queue = readWord(payload);
  return { queue, ...readSent(payload) };
}

function readMutation(payload: Payload): EffectMutation {
  const kind = pick(MUTATIONS, payload.u8(), "mutation");
  const key = payload.byteString(FRAME_KEY_BYTES_MAX);
  if (kind === "delete") return { kind, key };
  if (kind !== "set") return { kind, key, value: readAmount(payload) };
  const value = readRowValue(payload);
  const expireInMs = payload.f64();
  return Number.isNaN(expireInMs) ? { kind, key, value } : { kind, key, value, expireInMs };
}

function writeTimers(writer: FrameWriter, timers: readonly TimerChange[]): void {
  writeList(writer, timers, (each) => void writer.text(each.name).f64(each.dueMs ?? NaN));
}

const readTimers = (payload: Payload): TimerChange[] =>
  readList(payload, 12, () => {
    const name = payload.text(TIMER_NAME_CHARS_MAX * UTF8_BYTES_MAX);
    const dueMs = payload.f64();
    if (Number.isNaN(dueMs)) return { name, dueMs: null };
    if (dueMs >= 0 && dueMs <= DATE_MS_MAX) return { name, dueMs };
    throw new FrameError(`a timer is due at ${dueMs}, which is no time`);
  });

/** Writes a call, as a frame sessionCall and the list of a commit have it. */
export function writeCall(writer: FrameWriter, call: Call): void {
  writer.f64(call.call).u8(CALLS.indexOf(call.kind)).f64(call.effect ?? NaN).bytes(call.bytes);
}

export function readCall(payload: Payload): Call {
  const call = readNumber(payload);
  const kind = pick(CALLS, payload.u8(), "call");
  const effect = payload.f64();
  return { call, kind, effect: Number.isNaN(effect) ? null : effect, bytes: payload.bytes() };
}

const writeCalls = (writer: FrameWriter, calls: readonly Call[]): void =>
  writeList(writer, calls, (each) => writeCall(writer, each));
const readCalls = (payload: Payload): Call[] => readList(payload, 21, () => readCall(payload));

export function writeSessionCommit(writer: FrameWriter, commit: Commit): void {
  writer.f64(commit.first).u32(commit.count).f64(commit.through);
  const { rejected } = commit;
  writer.u8(
    (commit.isPoint ? 1 : 0) | (commit.isQuiescent ? 2 : 0) | (commit.isEnded ? 4 : 0) |
      (rejected === null ? 0 : 8),
  );
  if (rejected !== null) writeRejection(writer, rejected);
  writer.bytes(commit.entries);
  writeOutputs(writer, commit.outputs);
  writeEffects(writer, commit.effects);
  writeTimers(writer, commit.timers);
  writeCalls(writer, commit.calls);
}

const SUBJECTS = ["request", "message", "attach", "detach", "timer"] as const;

function writeRejection(writer: FrameWriter, { subject, attempt, code, message }: Rejection): void {
  writer.u8(subject === null ? 0 : 1);
  if (subject !== null) writer.u8(SUBJECTS.indexOf(subject.kind)).text(subject.id);
  writer.u32(attempt).text(code).text(message);
}

function readRejection(payload: Payload): Rejection {
  const subject = readFlag(payload)
    ? { kind: pick(SUBJECTS, payload.u8(), "subject"), id: payload.text() }
    : null;
  return { subject, attempt: payload.u32(), code: payload.text(), message: payload.text() };
}

export function readSessionCommit(payload: Payload): Commit {
  const first = readNumber(payload);
  const count = payload.u32();
  const through = readNumber(payload);
  const flags = payload.u8();
  return {
    first,
    count,
    through,
    isPoint: (flags & 1) !== 0,
    isQuiescent: (flags & 2) !== 0,
    isEnded: (flags & 4) !== 0,
    rejected: (flags & 8) === 0 ? null : readRejection(payload),
    entries: payload.bytes(),
    outputs: readOutputs(payload),
    effects: readEffects(payload),
    timers: readTimers(payload),
    calls: readCalls(payload),
  };
}

export function writeOpened(writer: FrameWriter, opened: OpenedProgram): void {
  writer.f64(opened.sequence).u8((opened.isQuiescent ? 1 : 0) | (opened.isEnded ? 2 : 0));
  writeList(writer, opened.peers, ({ kind, id, sent, received, isClosed }) => {
    writer.u8(PEERS.indexOf(kind)).text(id).f64(sent).f64(received).u8(isClosed ? 1 : 0);
  });
  writeOutputs(writer, opened.outputs);
  writeEffects(writer, opened.effects);
  writeTimers(writer, opened.timers);
  writeCalls(writer, opened.calls);
  writer.u8(opened.handling === null ? 0 : 1).text(opened.handling ?? "");
}

export function readOpened(payload: Payload): OpenedProgram {
  const sequence = readNumber(payload);
  const flags = payload.u8();
  return {
    sequence,
    isQuiescent: (flags & 1) !== 0,
    isEnded: (flags & 2) !== 0,
    peers: readList(payload, 22, () => ({
      kind: pick(PEERS, payload.u8(), "peer"),
      id: payload.text(),
      sent: readNumber(payload),
      received: readNumber(payload),
      isClosed: readFlag(payload),
    })),
    outputs: readOutputs(payload),
    effects: readEffects(payload),
    timers: readTimers(payload),
    calls: readCalls(payload),
    handling: readFlag(payload) ? payload.text() : (payload.text(), null),
  };
}

export function writeCheckpoint(writer: FrameWriter, checkpoint: Checkpoint): void {
  writer.f64(checkpoint.at).f64(checkpoint.on ?? NaN).rest(checkpoint.bytes);
}

/** @param state segments that came before (state_frames.ts). */
export function readCheckpoint(payload: Payload, state: readonly Uint8Array[] = []): Checkpoint {
  const at = readNumber(payload);
  const on = payload.f64();
  if (!Number.isNaN(on) && !Number.isSafeInteger(on)) throw new FrameError(`${on} is no entry of a log`);
  return { at, on: Number.isNaN(on) ? null : on, bytes: payload.rest(), state };
}

const PARKED: readonly Parked["code"][] = [
  "diverged",
  "waits_unrecorded",
  "log_full",
  "log_corrupt",
  "state_invalid",
  "code_differs",
  "class_invalid",
  "class_unknown",
  "internal",
  "shape_newer",
  "migrate_failed",
  "handler_threw",
  "shared",
  "salvaged",
];

export function writeParked(writer: FrameWriter, parked: Parked): void {
  writer.u8(PARKED.indexOf(parked.code)).text(parked.message).text(detailText(parked.detail));
}

/** Characters of the details of a parked session: they are told at every site, and by sites that have not read this. */
const DETAIL_CHARS_MAX = 64 * 1024;

/** Returns details as JSON where they fit; otherwise a text that says how much is left out. */
function detailText(detail: Parked["detail"]): string {
  try {
    const text = JSON.stringify(detail);
    if (text.length <= DETAIL_CHARS_MAX && isShallow(text)) return text;
    return JSON.stringify({ leftOut: `${text.length} characters` });
  } catch (error) {
    return JSON.stringify({ leftOut: String(error).slice(0, 200) });
  }
}

export function readParked(payload: Payload): Parked {
  const code = pick(PARKED, payload.u8(), "reason to park");
  const message = readMessage(payload);
  const detail = readJson(payload, DETAIL_CHARS_MAX);
  if (typeof detail !== "object" || detail === null || Array.isArray(detail)) {
    throw new FrameError("the details of a parked session are no object");
  }
  return { code, message, detail: detail as Record<string, unknown> };
}
