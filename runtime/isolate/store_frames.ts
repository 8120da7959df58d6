/**
 * Store calls between an isolate and its site: the operations of functions/vocabulary/store_client.ts as payloads.
 *
 * A call is `u32 call · u8 operation · …` on its request's channel, a reply `u32 call · u8 status · …`. Calls of
 * one turn of the event loop leave in one write; the site answers in whatever order they finish.
 */
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  ReadLevel,
  RowPage,
  StoredRow,
} from "../../functions/vocabulary/store_client.ts";
import {
  ATOMIC_CHECKS_MAX,
  ATOMIC_MUTATIONS_MAX,
  GET_MANY_MAX,
  WATCH_KEYS_MAX,
} from "../../functions/vocabulary/limits.ts";
import type { QueuedMessage } from "../../functions/vocabulary/queue_sender.ts";
import type { Key } from "../../store/model/key.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { readAmount, readEnd, readMessage, readRowValue, readStack, readWord } from "./frame_fields.ts";
import { FRAME_KEY_BYTES_MAX, FrameError } from "./frames.ts";
import { readSent, SENT_BYTES_MIN, writeSent } from "./queue_frames.ts";

export const OPERATION = { get: 1, list: 2, commit: 3, watch: 4 } as const;
export const REPLY = { done: 0, failed: 1, changed: 2 } as const;

const LEVELS: readonly ReadLevel[] = ["eventual", "session", "strong"];
const KINDS: readonly Mutation["kind"][] = ["set", "delete", "sum", "min", "max"];
/** Limit of a list without one, on the wire. */
const UNLIMITED = 0xffffffff;

export interface KeyRange {
  readonly start: Key;
  readonly end: Key;
}

function pick<T>(table: readonly T[], index: number, what: string): T {
  const value = table[index];
  if (value === undefined) throw new FrameError(`${index} names no ${what}`);
  return value;
}

const readKey = (payload: Payload): Key => payload.byteString(FRAME_KEY_BYTES_MAX) as Key;

export function writeGet(writer: FrameWriter, keys: readonly Key[], level: ReadLevel): void {
  writer.u8(OPERATION.get).u8(LEVELS.indexOf(level)).u32(keys.length);
  for (const key of keys) writer.byteString(key);
}

export function readGet(payload: Payload): { keys: Key[]; level: ReadLevel } {
  const level = pick(LEVELS, payload.u8(), "read level");
  const keys = Array.from({ length: payload.count(GET_MANY_MAX, 4) }, () => readKey(payload));
  return { keys, level };
}

export function writeList(writer: FrameWriter, request: ListRequest): void {
  const limit = Number.isFinite(request.limit) ? Math.max(0, Math.floor(request.limit)) : UNLIMITED;
  writer.u8(OPERATION.list).u8(LEVELS.indexOf(request.level)).u8(request.reverse ? 1 : 0)
    .u32(Math.min(limit, UNLIMITED)).byteString(request.start).byteString(request.end);
}

export function readList(payload: Payload): ListRequest {
  const level = pick(LEVELS, payload.u8(), "read level");
  const reverse = payload.u8() === 1;
  const limit = payload.u32();
  const start = readKey(payload);
  const end = readKey(payload);
  return { start, end, limit: limit === UNLIMITED ? Infinity : limit, reverse, level };
}

export function writeAtomic(
  writer: FrameWriter,
  checks: readonly Check[],
  mutations: readonly Mutation[],
  sends: readonly QueuedMessage[] = [],
): void {
  writer.u8(OPERATION.commit).u32(checks.length);
  for (const check of checks) writer.byteString(check.key).byteString(check.versionstamp ?? "");
  writer.u32(mutations.length);
  for (const mutation of mutations) {
    writer.u8(KINDS.indexOf(mutation.kind)).byteString(mutation.key);
    if (mutation.kind === "delete") continue;
    writer.bytes(mutation.value);
    if (mutation.kind === "set") writer.f64(mutation.expireInMs ?? NaN);
  }
  writer.u32(sends.length);
  for (const send of sends) writeSent(writer.text(send.queue), send);
}

export function readAtomic(
  payload: Payload,
): { checks: Check[]; mutations: Mutation[]; sends: QueuedMessage[] } {
  const checks = Array.from({ length: payload.count(ATOMIC_CHECKS_MAX, 8) }, (): Check => {
    const key = readKey(payload);
    const versionstamp = payload.byteString(FRAME_KEY_BYTES_MAX);
    return { key, versionstamp: versionstamp === "" ? null : versionstamp };
  });
  const mutations = Array.from({ length: payload.count(ATOMIC_MUTATIONS_MAX, 5) }, (): Mutation => {
    const kind = pick(KINDS, payload.u8(), "mutation");
    const key = readKey(payload);
    if (kind === "delete") return { kind, key };
    if (kind !== "set") return { kind, key, value: readAmount(payload) };
    const value = readRowValue(payload);
    const expireInMs = payload.f64();
    return Number.isNaN(expireInMs) ? { kind, key, value } : { kind, key, value, expireInMs };
  });
  const sends = Array.from({ length: payload.count(ATOMIC_MUTATIONS_MAX, 4 + SENT_BYTES_MIN) }, () => {
    const queue = readWord(payload);
    return { queue, ...readSent(payload) };
  });
  return { checks, mutations, sends };
}

export function writeWatch(writer: FrameWriter, ranges: readonly KeyRange[]): void {
  writer.u8(OPERATION.watch).u32(ranges.length);
  for (const range of ranges) writer.byteString(range.start).byteString(range.end);
}

export function readWatch(payload: Payload): KeyRange[] {
  return Array.from({ length: payload.count(WATCH_KEYS_MAX, 8) }, () => ({
    start: readKey(payload),
    end: readKey(payload),
  }));
}

/** Writes rows of a reply; null stands for an absent one. */
export function writeStoredRows(writer: FrameWriter, rows: readonly (StoredRow | null)[]): void {
  writer.u32(rows.length);
  for (const row of rows) {
    if (row === null) writer.u8(0);
    else writer.u8(1).byteString(row.key).byteString(row.versionstamp).bytes(row.value);
  }
}

export function writePage(writer: FrameWriter, page: RowPage): void {
  writeStoredRows(writer.u8(page.more ? 1 : 0), page.rows);
}

export function readRowPage(payload: Payload): RowPage {
  const more = payload.u8() === 1;
  return { rows: readStoredRows(payload).filter((row) => row !== null), more };
}

export function readStoredRows(payload: Payload): (StoredRow | null)[] {
  return Array.from({ length: payload.count(Infinity, 1) }, () => {
    if (payload.u8() === 0) return null;
    const key = payload.byteString() as Key;
    const versionstamp = payload.byteString();
    return { key, versionstamp, value: payload.bytes() };
  });
}

export function writeCommitResult(writer: FrameWriter, result: CommitResult): void {
  writer.byteString(result.ok ? result.versionstamp : "");
}

export function readCommitResult(payload: Payload): CommitResult {
  const versionstamp = payload.byteString();
  return versionstamp === "" ? { ok: false } : { ok: true, versionstamp };
}

/** An error as it crosses the socket: known by its code, never by its class. */
export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly detail: unknown;
}

/** Returns an error as it crosses the socket; `fallback` is its code where it carries none. */
export function wireError(error: unknown, fallback: string): WireError {
  if (!(error instanceof Error)) return { code: fallback, message: String(error), detail: null };
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  return { code: typeof code === "string" ? code : fallback, message: error.message, detail: detail ?? null };
}

export function writeError(writer: FrameWriter, error: WireError): void {
  writer.text(error.code).text(error.message).text(detailText(error.detail));
}

/**
 * Returns an error's details as JSON; "null" where they have none, so that the error is written whatever it carries.
 */
function detailText(detail: unknown): string {
  try {
    return JSON.stringify(detail) ?? "null";
  } catch {
    return "null";
  }
}

/** Reads an error that a site sends to an isolate. */
export function readError(payload: Payload): WireError {
  return { code: payload.text(), message: payload.text(), detail: JSON.parse(payload.text()) };
}

/** Reads an error that an isolate sends to its site, with its stack; its details are not used. @throws FrameError */
export function readAppError(payload: Payload): { code: string; message: string; stack: string } {
  const code = readWord(payload), message = readMessage(payload);
  payload.text();
  const stack = readStack(payload);
  readEnd(payload);
  return { code, message, stack };
}
