/** The store calls of one request, on the site's side: read from frames, done by the request's StoreClient. */
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import type { QueueHold } from "./app_queues.ts";
import { readEnd } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { FrameError, ISOLATE_FRAME } from "./frames.ts";
import { CallSlots } from "./call_slots.ts";
import {
  type KeyRange,
  OPERATION,
  readAtomic,
  readGet,
  readList,
  readWatch,
  REPLY,
  wireError,
  writeCommitResult,
  writeError,
  writePage,
  writeStoredRows,
} from "./store_frames.ts";

/**
 * Number of watches of one isolate. Each is held by the store of its site, and some kilobytes there; pages that follow
 * a row each share the socket that tells them, and one watch.
 */
export const WATCHES_MAX = 1_024;
/** Number of ranges of all of an isolate's watches together: pages that follow some rows, or a list and its index. */
export const WATCHED_RANGES_MAX = 4_096;
/**
 * Bytes that a row counts for beside its own: from its frame to the disk and the neighbours it costs some 40 µs, as
 * much as 640 bytes of a long row.
 */
export const COMMITTED_ROW_BYTES = 640;
/** Bytes that a watch takes beside its ranges, roughly: its place in the store, its promises, its signal. */
const WATCH_BYTES = 2 * 1024;

/**
 * Milliseconds that a watched range costs the site from its beginning to its end, as measured: it is covered here, for
 * which the parent is asked, and replaced in the store.
 */
const WATCH_MS = 0.5;
/** Milliseconds that it takes to tell a watch that something has changed, as measured. */
const TELL_MS = 0.02;
const END_MS = 0.05;
/** Reason of an ended watch. Nobody reads it; one for each would take longer than all else of the end of a watch. */
const ENDED = new Error("nobody waits for the watch any more");

const watchesOf = new WeakMap<FrameWriter, OpenWatches>();

/** Counts of an isolate's open watches and their ranges. */
interface OpenWatches {
  open: number;
  ranges: number;
}

/** The store calls of one request. */
export class StoreCalls {
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #store: StoreClient;
  readonly #writes: () => void;
  readonly #slots: ReturnType<typeof CallSlots.of>;
  readonly #hold: QueueHold;
  #watches: Map<number, AbortController> | undefined;
  #ended = false;

  /**
   * @param writes is called when a call is about to change the store.
   * @param hold queue of the isolate.
   */
  constructor(writer: FrameWriter, id: number, store: StoreClient, writes: () => void, hold: QueueHold) {
    this.#writer = writer;
    this.#id = id;
    this.#store = store;
    this.#writes = writes;
    this.#slots = CallSlots.of(writer);
    this.#hold = hold;
  }

  /** Starts a call of the isolate. */
  start(payload: Payload): void {
    const bytes = payload.left;
    const call = payload.u32();
    const operation = payload.u8();
    switch (operation) {
      case OPERATION.get: {
        const { keys, level } = readGet(payload);
        readEnd(payload);
        return this.#enter(
          this.#slots.reads,
          call,
          bytes,
          () => this.#store.get(keys, level),
          writeStoredRows,
        );
      }
      case OPERATION.list: {
        const request = readList(payload);
        readEnd(payload);
        return this.#enter(this.#slots.reads, call, bytes, () => this.#store.list(request), writePage);
      }
      case OPERATION.commit: {
        const { checks, mutations, sends } = readAtomic(payload);
        readEnd(payload);
        this.#writes();
        const { turns } = this.#hold.queues;
        const weight = bytes + (mutations.length + sends.length) * COMMITTED_ROW_BYTES;
        turns.commitBegins(weight);
        const commit = () =>
          sends.length === 0
            ? this.#store.commit(checks, mutations)
            : this.#store.commit(checks, mutations, sends);
        const over = () => turns.commitEnds(weight);
        return this.#enter(this.#slots.commits, call, bytes, commit, writeCommitResult, over);
      }
      case OPERATION.watch: {
        const ranges = readWatch(payload);
        readEnd(payload);
        if (this.#watches?.has(call) === true) throw new FrameError("a watch has the number of another");
        void this.#watch(call, ranges, WATCH_BYTES + bytes);
        return;
      }
      default:
        throw new FrameError(`${operation} names no store operation`);
    }
  }

  /** Ends a watch that the isolate no longer wants. */
  stop(call: number): void {
    this.#watches?.get(call)?.abort(ENDED);
  }

  end(): void {
    this.#ended = true;
    if (this.#watches !== undefined) void this.#endAll(this.#watches.values().toArray());
  }

  #enter<T>(
    slots: CallSlots,
    call: number,
    bytes: number,
    run: () => Promise<T>,
    write: (writer: FrameWriter, value: T) => void,
    over = () => {},
  ): void {
    this.#hold.add(bytes);
    const givenBack = () => {
      this.#hold.add(-bytes);
      over();
    };
    const leave = () => {
      givenBack();
      slots.leave();
    };
    try {
      slots.enter(() => {
        if (this.#ended) return leave();
        this.#answer(call, run, write).finally(leave);
      }, bytes);
    } catch (error) {
      givenBack(); // the app's turns outlive the isolate, and would count it for ever
      throw error;
    }
  }

  /**
   * Makes a call and sends its answer. Never rejects: a failure of a call is its answer, and the isolate's next one is
   * made.
   */
  async #answer<T>(
    call: number,
    run: () => Promise<T>,
    write: (writer: FrameWriter, value: T) => void,
  ): Promise<void> {
    try {
      const value = await run();
      if (this.#ended) return;
      write(this.#reply(call, REPLY.done), value);
      this.#writer.end();
    } catch (error) {
      this.#failed(call, error);
    }
  }

  /** Runs a watch. Never rejects, as {@link StoreCalls.#answer}. */
  async #watch(call: number, ranges: readonly KeyRange[], bytes: number): Promise<void> {
    const watches = this.#openWatches();
    if (watches.open >= WATCHES_MAX || watches.ranges + ranges.length > WATCHED_RANGES_MAX) {
      const message =
        `${watches.open} watches of this isolate, of ${watches.ranges} ranges, are open already`;
      return this.#failed(call, { code: "overloaded", message });
    }
    const { turns } = this.#hold.queues;
    watches.open++;
    watches.ranges += ranges.length;
    turns.spend(WATCH_MS * ranges.length);
    this.#hold.add(bytes);
    const abort = new AbortController();
    (this.#watches ??= new Map()).set(call, abort);
    try {
      for await (const _ of this.#store.watch(ranges, abort.signal)) {
        const turn = turns.take(TELL_MS);
        if (turn !== null) await turn;
        if (abort.signal.aborted) break;
        this.#reply(call, REPLY.changed);
        this.#writer.end();
      }
      if (this.#ended) return;
      this.#reply(call, REPLY.done);
      this.#writer.end();
    } catch (error) {
      this.#failed(call, error);
    } finally {
      this.#watches.delete(call);
      watches.open--;
      watches.ranges -= ranges.length;
      this.#hold.add(-bytes);
    }
  }

  /** Returns the counts of the isolate behind the connection. */
  #openWatches(): OpenWatches {
    const known = watchesOf.get(this.#writer);
    if (known !== undefined) return known;
    const watches = { open: 0, ranges: 0 };
    watchesOf.set(this.#writer, watches);
    return watches;
  }

  /** Ends watches in turns of the app: there may be a thousand of them, and other apps do not wait for that. */
  async #endAll(watches: readonly AbortController[]): Promise<void> {
    for (const watch of watches) {
      const turn = this.#hold.queues.turns.take(END_MS);
      if (turn !== null) await turn;
      watch.abort(ENDED);
    }
  }

  #failed(call: number, error: unknown): void {
    if (this.#ended) return;
    writeError(this.#reply(call, REPLY.failed), wireError(error, "store_unreachable"));
    this.#writer.end();
  }

  #reply(call: number, status: number): FrameWriter {
    return this.#writer.begin(ISOLATE_FRAME.storeReply, this.#id).u32(call).u8(status);
  }
}
