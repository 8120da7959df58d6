/**
 * The thread that copies a site's databases (snapshot.ts): it opens them, begins to read all of them at the moment that
 * the site's own thread names, and copies what they were then.
 */
import { backup, DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { type CopyNews, type CopyOrder, GATE } from "./snapshot_gate.ts";

/** Pages that are copied between two messages of progress: 4 MiB. */
const PAGES_A_STEP = 1_000;
/** Milliseconds that a read waits for a lock: a database that is being written is locked for less. */
const BUSY_MS = 1_000;

const { databases, gate } = workerData as CopyOrder;
const tell = (news: CopyNews) => parentPort?.postMessage(news);

const cells = new Int32Array(gate);
const opened: { readonly db: DatabaseSync; readonly to: string }[] = [];

/** Ends the copying where it was given up (SN4). */
function assertWanted(): void {
  if (Atomics.load(cells, GATE.stop) === 1) throw new Error("the copies are given up");
}

try {
  for (const { from, to } of databases) {
    opened.push({ db: new DatabaseSync(from, { readOnly: true, timeout: BUSY_MS }), to });
  }
  tell({ kind: "opened" });
  Atomics.wait(cells, GATE.go, 0);
  assertWanted();
  try {
    for (const { db } of opened) {
      db.exec("BEGIN");
      db.prepare("SELECT count(*) FROM sqlite_schema").get(); // SQLite begins to read with the first read, not before
    }
    Atomics.store(cells, GATE.begun, 1);
  } finally {
    Atomics.store(cells, GATE.over, 1);
    Atomics.notify(cells, GATE.over);
  }
  for (const { db, to } of opened) {
    assertWanted();
    await backup(db, to, {
      rate: PAGES_A_STEP,
      progress: ({ totalPages, remainingPages }) => {
        assertWanted();
        tell({ kind: "copied", to, pages: totalPages - remainingPages });
      },
    });
    db.exec("COMMIT");
  }
  tell({ kind: "done" });
} catch (error) {
  tell({ kind: "failed", why: error instanceof Error ? error.message : String(error) });
} finally {
  for (const { db } of opened) db.close();
}
