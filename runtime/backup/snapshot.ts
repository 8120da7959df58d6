/**
 * Copies of a site's databases as of one moment, while the site goes on.
 *
 * Stages: `openSnapshot` (a thread has them open) → `begin` (the moment; nothing else runs on the site's own thread) →
 * `copied` resolves when all of them are files.
 *
 * Writers are not held up meanwhile; the write-ahead log of a database that is copied grows for that time.
 *
 * SN1  The copies are what the disk would have held had the process been killed at that moment. All SQLite databases
 *      are written by the site's own thread alone, which stands still in `begin`; Deno KV's file is written by another
 *      thread, and is therefore the last that begins to be read: at that time the others still are as they were.
 * SN2  Pages come through SQLite only. A file of a database that this process has open is never opened as a file: to
 *      close it would give back the locks that SQLite has on it.
 * SN4  After `close` the copies may be removed: the thread has ended by itself, between two steps of a copy. Ended from
 *      outside it would go on writing: a call of SQLite is not interrupted.
 */
import { Worker } from "node:worker_threads";
import { StoreUnavailable } from "../../store/api/api.ts";
import { type CopiedDatabase, type CopyNews, type CopyOrder, GATE, GATE_BYTES } from "./snapshot_gate.ts";

/** Milliseconds in which the thread has to begin; else it is given up: the site stands still meanwhile. */
const BEGIN_MS_MAX = 1_000;

/** Copies of databases as of one moment; see the file's header. */
export interface Snapshot {
  /**
   * Takes the moment: everything before this call is in the copies, and nothing after it. To be called once. @throws
   * StoreUnavailable
   */
  begin(): void;
  /** Resolves when the copies are there. */
  readonly copied: Promise<void>;
  /** Gives up the copies, if they are not complete. Nothing is read or written when this resolves (SN4). */
  close(): Promise<void>;
}

/**
 * Opens databases to be copied, in this order; one that another thread writes is the last (SN1).
 *
 * @param progress called with the number of pages that a copy has.
 */
export async function openSnapshot(
  databases: readonly CopiedDatabase[],
  progress: (to: string, pages: number) => void,
): Promise<Snapshot> {
  const gate = new SharedArrayBuffer(GATE_BYTES), cells = new Int32Array(gate);
  const order: CopyOrder = { databases, gate };
  const worker = new Worker(new URL("./snapshot_worker.ts", import.meta.url), { workerData: order });
  const opened = Promise.withResolvers<void>(), copied = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  copied.promise.catch(() => {}); // the caller that waits for it gets the error
  const fail = (why: string) => {
    const error = new StoreUnavailable("disk_failed", `the databases can't be copied: ${why}`);
    opened.reject(error);
    copied.reject(error);
  };
  worker.on("error", (error) => {
    fail(error instanceof Error ? error.message : String(error));
    ended.resolve(); // the exception has ended the thread
  });
  worker.on("exit", () => {
    fail("their thread has ended");
    ended.resolve();
  });
  worker.on("message", (news: CopyNews) => {
    if (news.kind === "opened") opened.resolve();
    else if (news.kind === "copied") progress(news.to, news.pages);
    else if (news.kind === "done") copied.resolve();
    else fail(news.why);
  });
  const close = () => {
    Atomics.store(cells, GATE.stop, 1);
    Atomics.store(cells, GATE.go, 1);
    Atomics.notify(cells, GATE.go);
    return ended.promise;
  };
  try {
    await opened.promise;
  } catch (error) {
    await close();
    throw error;
  }
  return {
    begin: () => {
      Atomics.store(cells, GATE.go, 1);
      Atomics.notify(cells, GATE.go);
      Atomics.wait(cells, GATE.over, 0, BEGIN_MS_MAX);
      if (Atomics.load(cells, GATE.begun) === 1) return;
      fail("it could not be begun to read all of them at one moment");
      throw new StoreUnavailable("disk_failed", "the databases could not be read as of one moment");
    },
    copied: copied.promise,
    close,
  };
}
