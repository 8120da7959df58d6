/**
 * Bytes of the calls that a stateful session makes, and of their results: the same bytes in the log and on the way to
 * the site. Calls to other stateful sessions and the answers to them, and what `fetch` sends and gets, hold the bytes
 * of functions/calls/call.ts behind the fields listed here.
 *
 *   get      level keys                          → rows
 *   list     level reverse limit start end       → more rows
 *   commit   checks mutations                    → versionstamp, "" where a check failed
 *   fetch    redirect call                       → answer (`response`); its url comes first
 *   session  class id chain call                 → answer
 *
 * CB1  One form for each; the readers throw CodecError for anything else (store/model/codec.ts).
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import type { Key } from "../../../store/model/key.ts";
import type { SessionTarget } from "../../calls/stub.ts";
import { ATOMIC_CHECKS_MAX, ATOMIC_MUTATIONS_MAX, GET_MANY_MAX } from "../../vocabulary/limits.ts";
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  ReadLevel,
  RowPage,
  StoredRow,
} from "../../vocabulary/store_client.ts";

const LEVELS: readonly ReadLevel[] = ["eventual", "session", "strong"];
const KINDS: readonly Mutation["kind"][] = ["set", "delete", "sum", "min", "max"];

function pick<T>(table: readonly T[], index: number, what: string): T {
  const value = table[index];
  if (value === undefined) throw new CodecError(`${index} names no ${what}`);
  return value;
}

function ended<T>(reader: Reader, value: T): T {
  reader.end();
  return value;
}

export function encodeGet(keys: readonly Key[], level: ReadLevel): Uint8Array<ArrayBuffer> {
  const writer = new Writer().byte(LEVELS.indexOf(level));
  return writer.list(keys, (key) => void writer.key(key)).done();
}

export function decodeGet(bytes: Uint8Array): { keys: Key[]; level: ReadLevel } {
  const reader = new Reader(bytes);
  const level = pick(LEVELS, reader.byte(), "read level");
  return ended(reader, { level, keys: reader.list(() => reader.key(), GET_MANY_MAX) });
}

/** Encodes a list request. A list without a limit has the limit 0 on the wire: a limit of none is never asked for. */
export function encodeList(request: ListRequest): Uint8Array<ArrayBuffer> {
  const limit = Number.isFinite(request.limit) ? Math.max(1, Math.floor(request.limit)) : 0;
  return new Writer().byte(LEVELS.indexOf(request.level)).flag(request.reverse).uint(limit)
    .key(request.start).key(request.end).done();
}

export function decodeList(bytes: Uint8Array): ListRequest {
  const reader = new Reader(bytes);
  const level = pick(LEVELS, reader.byte(), "read level");
  const reverse = reader.flag();
  const limit = reader.uint();
  const start = reader.key();
  const end = reader.key();
  return ended(reader, { start, end, limit: limit === 0 ? Infinity : limit, reverse, level });
}

export function encodeStoreCommit(
  checks: readonly Check[],
  mutations: readonly Mutation[],
): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  writer.list(checks, ({ key, versionstamp }) => void writer.key(key).key(versionstamp ?? ""));
  writer.list(mutations, (mutation) => writeMutation(writer, mutation));
  return writer.done();
}

export function decodeStoreCommit(bytes: Uint8Array): { checks: Check[]; mutations: Mutation[] } {
  const reader = new Reader(bytes);
  const checks = reader.list((): Check => {
    const key = reader.key();
    const versionstamp = reader.key();
    return { key, versionstamp: versionstamp === "" ? null : versionstamp };
  }, ATOMIC_CHECKS_MAX);
  return ended(reader, { checks, mutations: reader.list(() => readMutation(reader), ATOMIC_MUTATIONS_MAX) });
}

/** Writes one mutation. */
export function writeMutation(writer: Writer, mutation: Mutation): void {
  writer.byte(KINDS.indexOf(mutation.kind)).key(mutation.key);
  if (mutation.kind === "delete") return;
  writer.bytes(mutation.value);
  if (mutation.kind === "set") writer.uint(mutation.expireInMs ?? 0);
}

/** Reads one mutation. @throws CodecError (CB1) */
export function readMutation(reader: Reader): Mutation {
  const kind = pick(KINDS, reader.byte(), "mutation");
  const key = reader.key();
  if (kind === "delete") return { kind, key };
  const value = reader.bytes();
  if (kind !== "set") return { kind, key, value };
  const expireInMs = reader.uint();
  return expireInMs === 0 ? { kind, key, value } : { kind, key, value, expireInMs };
}

function writeRow(writer: Writer, row: StoredRow | null): void {
  writer.flag(row !== null);
  if (row !== null) writer.key(row.key).key(row.versionstamp).bytes(row.value);
}

function readRow(reader: Reader): StoredRow | null {
  if (!reader.flag()) return null;
  return { key: reader.key(), versionstamp: reader.key(), value: reader.bytes() };
}

export function encodeRows(rows: readonly (StoredRow | null)[]): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  return writer.list(rows, (row) => writeRow(writer, row)).done();
}

export function decodeRows(bytes: Uint8Array): (StoredRow | null)[] {
  const reader = new Reader(bytes);
  return ended(reader, reader.list(() => readRow(reader)));
}

export function encodePage(page: RowPage): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  return writer.flag(page.more).list(page.rows, (row) => writeRow(writer, row)).done();
}

export function decodePage(bytes: Uint8Array): RowPage {
  const reader = new Reader(bytes);
  const more = reader.flag();
  const rows = reader.list(() => {
    const row = readRow(reader);
    if (row === null) throw new CodecError("a page has rows only");
    return row;
  });
  return ended(reader, { more, rows });
}

export const encodeCommitResult = (result: CommitResult): Uint8Array<ArrayBuffer> =>
  new Writer().key(result.ok ? result.versionstamp : "").done();

export function decodeCommitResult(bytes: Uint8Array): CommitResult {
  const reader = new Reader(bytes);
  const versionstamp = ended(reader, reader.key());
  return versionstamp === "" ? { ok: false } : { ok: true, versionstamp };
}

/** A request to a server outside: how redirects are treated, and the request as functions/calls/call.ts has it. */
export interface OutsideRequest {
  readonly redirect: RequestRedirect;
  /** Bytes that encodeCall makes of a call of kind `fetch`. */
  readonly call: Uint8Array;
}

const REDIRECTS: readonly RequestRedirect[] = ["follow", "error", "manual"];

export const encodeOutside = ({ redirect, call }: OutsideRequest): Uint8Array<ArrayBuffer> =>
  new Writer(call.length + 8).byte(REDIRECTS.indexOf(redirect)).bytes(call).done();

export function decodeOutside(bytes: Uint8Array): OutsideRequest {
  const reader = new Reader(bytes);
  const redirect = pick(REDIRECTS, reader.byte(), "way to treat redirects");
  return ended(reader, { redirect, call: reader.bytes() });
}

/** Answer to an outside request. */
export interface OutsideAnswer {
  /** URL of the last request, after redirects. */
  readonly url: string;
  /** Bytes that encodeAnswer makes of an answer of kind `response`. */
  readonly answer: Uint8Array;
}

export const encodeOutsideAnswer = ({ url, answer }: OutsideAnswer): Uint8Array<ArrayBuffer> =>
  new Writer(answer.length + url.length + 16).text(url).bytes(answer).done();

export function decodeOutsideAnswer(bytes: Uint8Array): OutsideAnswer {
  const reader = new Reader(bytes);
  return ended(reader, { url: reader.text(), answer: reader.bytes() });
}

/** A call to another stateful session of the app. */
export interface CallToSession {
  readonly target: SessionTarget;
  /** The caller and all sessions that wait for it: the chain of the request that the call becomes (event.ts). */
  readonly chain: readonly string[];
  /** Bytes that encodeCall makes. */
  readonly call: Uint8Array;
}

export function encodeCallToSession({ target, chain, call }: CallToSession): Uint8Array<ArrayBuffer> {
  const writer = new Writer(call.length + 64).text(target.class).text(target.id);
  return writer.list(chain, (each) => void writer.text(each)).bytes(call).done();
}

export function decodeCallToSession(bytes: Uint8Array): CallToSession {
  const reader = new Reader(bytes);
  const target = { class: reader.text(), id: reader.text() };
  const chain = reader.list(() => reader.text());
  return ended(reader, { target, chain, call: reader.bytes() });
}
