/**
 * A function's store at this site: an attached session behind the seam of functions/vocabulary/store_client.ts. Puts the
 * app's prefix before every key, enforces the site's limits, and resolves merge values to plain ones.
 *
 * GS1  A key or range from an isolate names rows of its own app only: the app's prefix is put before it, and both ends
 *      of a range lie in the same of the app's two key spaces (["a", app, …], and ["r", app, …] at the root).
 * GS2  Nothing is written that is over a limit or whose key is not canonical; a batch is written whole or not.
 * GS3  A number from an isolate goes to the store only where a message between sites can carry it.
 * GS4  An answer ends with the row that brings it to REPLY_BYTES_MAX: 64 reads of an isolate are under way at a time,
 *      and what they gave lies in the site's memory until the isolate takes it.
 * GS5  Keys of reads are checked like those of writes: a key that no row can have costs the store nothing. The ends of
 *      a range are any bytes, of a key's length.
 * GS6  A written value is a plain one, and an added one a number (store/model/value.ts): an app that forges a merge
 *      value would stop every site that joins it with another.
 */
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  ReadLevel,
  RowPage,
  StoreClient,
  StoredRow,
} from "../../functions/vocabulary/store_client.ts";
import type { QueuedMessage } from "../../functions/vocabulary/queue_sender.ts";
import {
  type AttachedSession,
  type StoreCheck,
  type StoreMutation,
  WriteTooLarge,
} from "../../store/api/api.ts";
import { type Key, KeyError, packKey, unpackKey } from "../../store/model/key.ts";
import { MergeError, resolve } from "../../store/model/merge.ts";
import type { Range } from "../../store/model/range.ts";
import { parseVersionstamp, type Row, versionstamp } from "../../store/model/row.ts";
import { isNumberValue, isPlainValue } from "../../store/model/value.ts";
import type { VersionWrites } from "./app_writes.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

/** Limits that the site sets for writes (docs/http.md). */
export interface StoreLimits {
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly atomicMutations: number;
  readonly atomicBytes: number;
}

/** Messages on their way to queues, as rows that are written in one step with others. */
export interface OutgoingMessages {
  readonly mutations: readonly StoreMutation[];
  /** Tells that the rows were written: the messages go on from there. */
  written(): void;
}

/** Makes rows of messages that a session's app sends (runtime/queues/outbox.ts). */
export type SessionOutbox = (messages: readonly QueuedMessage[]) => OutgoingMessages;

/** Part of a session that a store needs; the site's own access outside sessions has it too. */
export type StoreAccess = Pick<AttachedSession, "get" | "list" | "write" | "watch">;

/** Record of a function's use of its store: for `Server-Timing`, and to know whether there is anything to wait for. */
export interface StoreUse {
  storeMs: number;
  /** Called when a call begins, and when it ends. */
  step(): void;
}

const ROOT_PART = packKey(["root"]);

/** The two prefixes of an app's rows. */
export interface AppSpace {
  readonly app: Key;
  readonly root: Key;
}

/** Returns the two prefixes of an app; computed once an app, not once a request. */
export const appSpace = (app: string): AppSpace => ({ app: packKey(["a", app]), root: packKey(["r", app]) });

/** The store of one request. */
export class RequestStore implements StoreClient {
  readonly #session: StoreAccess;
  readonly #space: AppSpace;
  readonly #limits: StoreLimits;
  readonly #nowMs: () => number;
  readonly #use: StoreUse;
  readonly #writes: VersionWrites | undefined;
  readonly #outbox: SessionOutbox | undefined;

  constructor(
    session: StoreAccess,
    options: {
      space: AppSpace;
      limits: StoreLimits;
      nowMs: () => number;
      use: StoreUse;
      writes?: VersionWrites | undefined;
      outbox?: SessionOutbox | undefined;
    },
  ) {
    this.#session = session;
    this.#space = options.space;
    this.#limits = options.limits;
    this.#nowMs = options.nowMs;
    this.#use = options.use;
    this.#writes = options.writes;
    this.#outbox = options.outbox;
  }

  async get(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]> {
    refuseStrong(level);
    const asked = keys.length > GET_KEYS_MAX ? keys.slice(0, GET_KEYS_MAX) : keys;
    for (const key of asked) this.#checkKey(key);
    const rows = await this.#timed(this.#session.get(asked.map((key) => this.#absolute(key)), BOUNDED));
    const out: (StoredRow | null)[] = [];
    for (let i = 0, bytes = 0; i < rows.length && bytes < REPLY_BYTES_MAX; i++) {
      const one = stored(asked[i] as Key, rows[i]);
      if (one !== null) bytes += one.value.length;
      out.push(one);
    }
    return out;
  }

  async list(request: ListRequest): Promise<RowPage> {
    refuseStrong(request.level);
    if (!(request.limit >= 1 && Number.isSafeInteger(request.limit))) { // the store takes 0 for "no limit"
      throw new KeyError(`a list asks for 1 row or more, not ${request.limit}`);
    }
    const range = this.#range(request);
    const limit = Math.min(request.limit, LIST_ROWS_MAX);
    const found = await this.#timed(
      this.#session.list(range, { limit, reverse: request.reverse, ...BOUNDED }),
    );
    const rows: StoredRow[] = [];
    let bytes = 0;
    for (const row of found) {
      bytes += row.key.length + (row.value?.length ?? 0);
      const one = stored(this.#relative(row.key), row);
      if (one !== null) rows.push(one);
    }
    return { rows, more: rows.length > 0 && (found.length >= limit || bytes >= REPLY_BYTES_MAX) };
  }

  async commit(
    checks: readonly Check[],
    mutations: readonly Mutation[],
    sends: readonly QueuedMessage[] = [],
  ): Promise<CommitResult> {
    this.#limit(mutations, sends);
    const outgoing = sends.length === 0 ? null : this.#outgoing(sends);
    const storeChecks: StoreCheck[] = [];
    for (const check of checks) {
      this.#checkKey(check.key);
      const version = check.versionstamp === null ? null : parseVersionstamp(check.versionstamp);
      if (version === null && check.versionstamp !== null) return { ok: false }; // no row ever has that version
      storeChecks.push({ key: this.#absolute(check.key), version });
    }
    const written = this.#writes?.extended(mutations) ?? mutations;
    const all = written.map((mutation) => this.#mutation(mutation));
    const write = this.#session.write(outgoing === null ? all : [...all, ...outgoing.mutations], storeChecks);
    const result = await this.#timed(this.#writes?.track(write) ?? write);
    if (result.ok) outgoing?.written();
    return result.ok ? { ok: true, versionstamp: versionstamp(result.version) } : result;
  }

  /**
   * Checks mutations (GS1, GS2) and returns them as the store has them, with what another version of the app needs beside
   * them; for a caller that writes them himself.
   */
  absolute(mutations: readonly Mutation[]): StoreMutation[] {
    this.#limit(mutations);
    const written = this.#writes?.extended(mutations) ?? mutations;
    return written.map((mutation) => this.#mutation(mutation));
  }

  async *watch(ranges: readonly { start: Key; end: Key }[], signal: AbortSignal): AsyncIterable<void> {
    this.#use.step();
    let changed = true;
    let wake = () => {};
    const notify = () => {
      changed = true;
      wake();
    };
    const stop = this.#session.watch(ranges.map((range) => this.#range(range)), notify);
    const aborted = () => wake();
    signal.addEventListener("abort", aborted);
    try {
      while (!signal.aborted) {
        if (changed) {
          changed = false;
          yield;
        } else {
          await new Promise<void>((resolve) => wake = resolve);
        }
      }
    } finally {
      stop();
      signal.removeEventListener("abort", aborted);
    }
  }

  async #timed<T>(call: Promise<T>): Promise<T> {
    this.#use.step();
    const begunMs = performance.now();
    try {
      return await call;
    } catch (error) {
      if (error instanceof MergeError) throw new Problem("row_invalid", error.message);
      if (error instanceof WriteTooLarge) throw new Problem("limit_atomic", error.message);
      throw error;
    } finally {
      this.#use.step();
      this.#use.storeMs += performance.now() - begunMs;
    }
  }

  /**
   * Checks a key's length (GS2, GS5). The parts before the app's own key (KV, or table and index names) are not counted
   * against it.
   */
  #limitKey(key: Key): void {
    const { keyBytes } = this.#limits;
    if (key.length > keyBytes + KEY_OVERHEAD_BYTES) {
      throw new Problem("limit_key", `a key of ${key.length} bytes; at most ${keyBytes} are accepted`);
    }
  }

  #checkKey(key: Key): void {
    this.#limitKey(key);
    if (!PLAIN_KEY.test(key)) unpackKey(key);
  }

  #absolute(key: Key): Key {
    return key.startsWith(ROOT_PART)
      ? this.#space.root + key.slice(ROOT_PART.length) as Key
      : this.#space.app + key as Key;
  }

  #relative(key: Key): Key {
    return key.startsWith(this.#space.app)
      ? key.slice(this.#space.app.length) as Key
      : ROOT_PART + key.slice(this.#space.root.length) as Key;
  }

  #range(range: { readonly start: Key; readonly end: Key }): Range {
    if (range.start.startsWith(ROOT_PART) !== range.end.startsWith(ROOT_PART)) {
      throw new KeyError("a range begins in one key space of the app and ends in another");
    }
    this.#limitKey(range.start);
    this.#limitKey(range.end);
    return { start: this.#absolute(range.start), end: this.#absolute(range.end) };
  }

  #mutation(mutation: Mutation): StoreMutation {
    const key = this.#absolute(mutation.key);
    if (mutation.kind === "delete") return { kind: "delete", key };
    const { kind, value } = mutation;
    if (kind !== "set") return { kind, key, value };
    if (mutation.expireInMs === undefined) return { kind, key, value };
    return { kind, key, value, expiresAtMs: timeAfter(this.#nowMs(), mutation.expireInMs) };
  }

  /** Returns messages that are sent with a write, as rows that go with it. @throws Problem */
  #outgoing(sends: readonly QueuedMessage[]): OutgoingMessages {
    if (this.#outbox !== undefined) return this.#outbox(sends);
    throw new Problem("not_available", `nothing can be sent to the queue ${sends[0]?.queue} here`);
  }

  /** Checks the sizes and the number of mutations, and of messages that go with them (GS2). */
  #limit(mutations: readonly Mutation[], sends: readonly QueuedMessage[] = []): void {
    const { valueBytes, atomicMutations, atomicBytes } = this.#limits;
    const count = mutations.length + sends.length;
    if (count > atomicMutations) {
      throw new Problem(
        "limit_atomic",
        `${count} mutations in one write; at most ${atomicMutations} are accepted`,
      );
    }
    let total = sends.reduce((sum, { body }) => sum + body.length, 0);
    for (const mutation of mutations) {
      const { key } = mutation;
      this.#checkKey(key);
      checkForm(mutation);
      const size = mutation.kind === "delete" ? 0 : mutation.value.length;
      if (size > valueBytes + 1) { // its tag byte
        throw new Problem("limit_value", `a value of ${size - 1} bytes; at most ${valueBytes} are accepted`);
      }
      total += key.length + size;
    }
    if (total > atomicBytes) {
      throw new Problem("limit_atomic", `a write of ${total} bytes; at most ${atomicBytes} are accepted`);
    }
  }
}

/**
 * Bytes at which a page of rows ends: a thousand rows of 1 KiB; with 64 pages and a row of 1 MiB each, 128 MiB an
 * isolate (GS4).
 */
export const REPLY_BYTES_MAX = 1024 * 1024;
const BOUNDED = { bytesMax: REPLY_BYTES_MAX };
/** Rows that one miss may fetch, however short they are: two of the pages that a table's list asks for. */
const LIST_ROWS_MAX = 256;
/**
 * Keys of one read: as many as functions/vocabulary/limits.ts lets one call ask for; the keys of more would take memory
 * of the site.
 */
const GET_KEYS_MAX = 1000;

/**
 * Pattern of keys made of ASCII strings alone, as most are: they have one encoding, so need not be decoded to know that
 * it is canonical.
 */
// deno-lint-ignore no-control-regex -- bytes of the encoding
const PLAIN_KEY = /^(?:\x02[\x01-\x7f]*\x00)*$/;

/** Bytes for "root", "i", and a table's and an index's name of 100 bytes each. */
const KEY_OVERHEAD_BYTES = 256;

/** Latest time there is (ECMAScript), in milliseconds: a row that expires later never does. */
const TIME_MS_MAX = 8.64e15;

/** Returns the time `ms` after `nowMs`, as a number that messages can carry (GS3). */
const timeAfter = (nowMs: number, ms: number): number =>
  Math.min(nowMs + Math.max(1, Math.ceil(ms)), TIME_MS_MAX);

/** Checks that a mutation's value is of the form that its kind takes (GS6). */
function checkForm(mutation: Mutation): void {
  if (mutation.kind === "delete") return;
  const { kind, value } = mutation;
  if (kind === "set" ? isPlainValue(value) : isNumberValue(value)) return;
  throw new Problem(
    "row_invalid",
    `${kind} of ${value.length} bytes of tag ${value[0]}, which are no value for it`,
  );
}

function refuseStrong(level: ReadLevel): void {
  if (level === "strong") {
    throw new Problem(
      "not_available",
      'reads at consistency "strong" are not available; "session" is the default',
    );
  }
}

function stored(key: Key, row: Row | undefined): StoredRow | null {
  const value = row === undefined ? null : resolve(row.value);
  return row === undefined || value === null ? null : { key, value, versionstamp: versionstamp(row) };
}
