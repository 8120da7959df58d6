/**
 * The store as one request sees it from inside the isolate: every call is a frame to the site, which answers under the
 * request's session.
 *
 * S1  After the request has ended (response sent and `waitUntil` settled) every call fails with `request_ended`.
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
} from "../../../functions/vocabulary/store_client.ts";
import type { QueuedMessage } from "../../../functions/vocabulary/queue_sender.ts";
import type { Key } from "../../../store/model/key.ts";
import type { Payload } from "../frame_reader.ts";
import type { FrameWriter } from "../frame_writer.ts";
import { FrameError, ISOLATE_FRAME } from "../frames.ts";
import {
  type KeyRange,
  readCommitResult,
  readError,
  readRowPage,
  readStoredRows,
  REPLY,
  writeAtomic,
  writeGet,
  writeList,
  writeWatch,
} from "../store_frames.ts";

/** An error of the site, thrown into the app. */
export class SiteError extends Error {
  override readonly name = "SiteError";
  constructor(readonly code: string, message: string, readonly detail: unknown = null) {
    super(message);
  }

  /**
   * Throws the error itself: uncaught, it is the platform's problem also in Hono (functions/vocabulary/errors.ts, E2).
   */
  getResponse(): never {
    throw this;
  }
}

interface OpenCall {
  done(payload: Payload): void;
  failed(error: Error): void;
  changed?(): void;
}

/** The store calls of one request. */
export class RemoteStore implements StoreClient {
  readonly #writer: FrameWriter;
  readonly #id: number;
  #open: Map<number, OpenCall> | undefined;
  #next = 0;
  #ended = false;

  constructor(writer: FrameWriter, id: number) {
    this.#writer = writer;
    this.#id = id;
  }

  async get(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]> {
    const rows = await this.#call((writer) => writeGet(writer, keys, level), readStoredRows);
    while (rows.length < keys.length) { // the site answers long rows in several replies
      const rest = keys.slice(rows.length);
      const next = await this.#call((writer) => writeGet(writer, rest, level), readStoredRows);
      if (next.length === 0) throw new FrameError("a reply has none of the rows that were asked for");
      rows.push(...next);
    }
    return rows;
  }

  async list(request: ListRequest): Promise<RowPage> {
    return await this.#call((writer) => writeList(writer, request), readRowPage);
  }

  async commit(
    checks: readonly Check[],
    mutations: readonly Mutation[],
    sends: readonly QueuedMessage[] = [],
  ): Promise<CommitResult> {
    return await this.#call((writer) => writeAtomic(writer, checks, mutations, sends), readCommitResult);
  }

  async *watch(ranges: readonly KeyRange[], signal: AbortSignal): AsyncGenerator<void, void> {
    let changed = false;
    let ended = signal.aborted;
    let failure: Error | undefined;
    let wake = (): void => {};
    const call = this.#begin((writer) => writeWatch(writer, ranges), {
      done: () => (ended = true, wake()),
      failed: (error) => (failure = error, wake()),
      changed: () => (changed = true, wake()),
    });
    const abort = () => (ended = true, wake());
    signal.addEventListener("abort", abort);
    try {
      while (!ended) {
        if (failure) throw failure;
        if (changed) {
          changed = false;
          yield;
        } else await new Promise<void>((resolve) => wake = resolve);
      }
    } finally {
      signal.removeEventListener("abort", abort);
      this.#open?.delete(call);
      if (!this.#ended) this.#writer.begin(ISOLATE_FRAME.storeStop, this.#id).u32(call).end();
    }
  }

  /** Takes a reply of the site. */
  reply(payload: Payload): void {
    const call = payload.u32();
    const status = payload.u8();
    const open = this.#open?.get(call);
    if (open === undefined) return;
    if (status === REPLY.changed) return open.changed?.();
    this.#open?.delete(call);
    if (status === REPLY.done) return open.done(payload);
    const error = readError(payload);
    open.failed(new SiteError(error.code, error.message, error.detail));
  }

  /** Fails all calls, open and later ones (S1). */
  end(): void {
    this.#ended = true;
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    for (const call of open.values()) call.failed(ended());
  }

  #call<T>(write: (writer: FrameWriter) => void, read: (payload: Payload) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#begin(write, {
        done: (payload) => {
          try {
            resolve(read(payload));
          } catch (error) {
            reject(error instanceof FrameError ? error : new Error("a store reply could not be read"));
          }
        },
        failed: reject,
      });
    });
  }

  #begin(write: (writer: FrameWriter) => void, open: OpenCall): number {
    if (this.#ended) throw ended();
    const call = this.#next++;
    write(this.#writer.begin(ISOLATE_FRAME.storeCall, this.#id).u32(call));
    this.#writer.end();
    (this.#open ??= new Map()).set(call, open);
    return call;
  }
}

const ended = (): SiteError =>
  new SiteError(
    "request_ended",
    "the store was used after its request had ended; use ctx.waitUntil for such work",
  );
