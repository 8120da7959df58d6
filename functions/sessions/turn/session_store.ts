/**
 * The store as a stateful session sees it. Reads are calls, with their results in the log. Writes leave with the
 * handler's commit, under a version that the log has, and this session reads them at once.
 *
 * SS1  A handler reads what it has written. What was committed is for the site to show: it makes a session's reads
 *      after the effects of the session's earlier commits.
 * SS2  A write with checks needs the site's answer: it is a call with an effect, which stays done although its handler
 *      throws later.
 */
import type { Key } from "../../../store/model/key.ts";
import { contribute, resolve } from "../../../store/model/merge.ts";
import { type Version, versionstamp } from "../../../store/model/row.ts";
import { AppError, notAvailable } from "../../vocabulary/errors.ts";
import type { QueuedMessage } from "../../vocabulary/queue_sender.ts";
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  ReadLevel,
  RowPage,
  StoreClient,
  StoredRow,
} from "../../vocabulary/store_client.ts";
import {
  decodeCommitResult,
  decodePage,
  decodeRows,
  encodeGet,
  encodeList,
  encodeStoreCommit,
} from "./call_bytes.ts";
import type { Program } from "./program.ts";

/** Error that a site answers instead of a result, known by its code. */
export class CallError extends Error {
  override readonly name = "CallError";
  constructor(readonly code: string, message: string) {
    super(message);
  }

  /** Throws, so that an uncaught error is the platform's problem also in Hono (errors.ts, E2). */
  getResponse(): never {
    throw this;
  }
}

/** Writes of a handler to one row. */
interface Written {
  /** Value under the merges; null: deleted; undefined: the value that the store has. */
  readonly base: Uint8Array | null | undefined;
  /** Merges on top of the base. */
  readonly merges: readonly Extract<Mutation, { readonly kind: "sum" | "min" | "max" }>[];
  readonly version: Version;
}

/** Returns a row as its writer reads it. @throws MergeError where the row holds no number to add to. */
function rowOf(key: Key, { base, merges, version }: Written, stored: StoredRow | null): StoredRow | null {
  let value = base === undefined ? stored?.value ?? null : base;
  for (const { kind, value: amount } of merges) {
    const row = { value, clock: 0, replica: 0, expiresAtMs: 0 };
    value = resolve(contribute(value === null ? undefined : row, kind, amount, version));
  }
  return value === null ? null : { key, value, versionstamp: versionstamp(version) };
}

/** The store calls of one program. */
export class ProgramStore implements StoreClient {
  readonly #program: Program;
  /** Rows that the running handler wrote. */
  readonly #written = new Map<Key, Written>();

  constructor(program: Program) {
    this.#program = program;
    program.atCommit = () => this.#written.clear(); // SS1
  }

  async get(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]> {
    const own = new Map(this.#written);
    const missing = keys.filter((key) => own.get(key)?.base === undefined);
    const rows = missing.length === 0 ? [] : await this.#read(missing, level);
    const byKey = new Map(missing.map((key, i) => [key, rows[i] ?? null]));
    return keys.map((key) => {
      const written = own.get(key);
      const found = byKey.get(key) ?? null;
      return written === undefined ? found : rowOf(key, written, found);
    });
  }

  async list(request: ListRequest): Promise<RowPage> {
    const own = [...this.#written].filter(([key]) => key >= request.start && key < request.end);
    const page = await this.#call("list", encodeList(request), decodePage);
    if (own.length === 0) return page;
    const found = new Map(page.rows.map((row) => [row.key, row]));
    const rows = own.map(([key, written]) => [key, rowOf(key, written, found.get(key) ?? null)] as const);
    return overlaid(page, new Map(rows), request);
  }

  async commit(
    checks: readonly Check[],
    mutations: readonly Mutation[],
    sends: readonly QueuedMessage[] = [],
  ): Promise<CommitResult> {
    if (checks.length > 0 && sends.length > 0) {
      throw notAvailable("a message in one step with checks inside a stateful session");
    }
    if (checks.length > 0) { // SS2
      return await this.#call("commit", encodeStoreCommit(checks, mutations), decodeCommitResult, true);
    }
    const written = this.#written;
    const { clock, replica } = this.#program.write(mutations);
    for (const mutation of mutations) {
      const { base, merges = [] } = written.get(mutation.key) ?? {};
      const version = { clock, replica };
      if (mutation.kind === "set") written.set(mutation.key, { base: mutation.value, merges: [], version });
      else if (mutation.kind === "delete") written.set(mutation.key, { base: null, merges: [], version });
      else written.set(mutation.key, { base, merges: [...merges, mutation], version });
    }
    // Messages are part of the turn, as the rows are.
    for (const { queue, ...message } of sends) this.#program.send(queue, [message]);
    return { ok: true, versionstamp: versionstamp({ clock, replica }) };
  }

  // deno-lint-ignore require-yield -- StoreClient's watch is a generator; this one only refuses
  async *watch(): AsyncGenerator<void, void> {
    await Promise.reject(notAvailable("watch inside a stateful session"));
  }

  /** Reads rows. Long rows come in several replies. */
  async #read(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]> {
    const rows: (StoredRow | null)[] = [];
    while (rows.length < keys.length) {
      const next = await this.#call("get", encodeGet(keys.slice(rows.length), level), decodeRows);
      if (next.length === 0) {
        throw new AppError("value_corrupt", "a reply has none of the rows that were asked for");
      }
      rows.push(...next);
    }
    return rows;
  }

  #call<T>(
    kind: "get" | "list" | "commit",
    bytes: Uint8Array,
    read: (bytes: Uint8Array) => T,
    hasEffect = false,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#program.call({
        kind,
        bytes,
        name: `a store ${kind}`,
        done: (result) => resolve(read(result)),
        failed: (code, message) => reject(new CallError(code, message)),
      }, hasEffect);
    });
  }
}

/** Returns a page with the handler's own rows over it, up to where the page reaches. */
function overlaid(page: RowPage, own: ReadonlyMap<Key, StoredRow | null>, request: ListRequest): RowPage {
  const edge = page.more ? page.rows.at(-1)?.key : undefined;
  const isBefore = (a: Key, b: Key) => request.reverse ? a > b : a < b;
  const rows = page.rows.filter((row) => !own.has(row.key));
  for (const [key, row] of own) {
    if (row !== null && (edge === undefined || !isBefore(edge, key))) rows.push(row);
  }
  rows.sort((a, b) => a.key === b.key ? 0 : isBefore(a.key, b.key) ? -1 : 1);
  const cut = rows.slice(0, request.limit);
  return { rows: cut, more: page.more || cut.length < rows.length };
}
