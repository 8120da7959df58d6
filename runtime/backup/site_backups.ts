/**
 * Backups that a site makes of itself while it serves: all of its data as of one moment (snapshot.ts), kept in a folder of
 * its own until it was fetched as one file (archive.ts).
 *
 * Life: `prepare` → (`hold`, where copies of other sites are to fit to it) → `take` (the moment) → copying → ready →
 * `content`, once or again → `drop`, or it was not asked for in a while.
 *
 * SB1  There is one backup at a time: each takes as much room as the site's data. Files that a process left behind are
 *      removed at the next start.
 * SB2  A backup begins only where the disk has room for the copies, and as much free as the site keeps for its own journal.
 * SB3  Copies of several sites fit together where each was held before the first was taken: messages that a site sends
 *      after its moment are taken by others after theirs (runtime/link/hold.ts). A hold that has ended before its
 *      moment is reported.
 */
import { createHash } from "node:crypto";
import { statfsSync } from "node:fs";
import { Problem } from "../../functions/vocabulary/problem.ts";
import type { Hold } from "../link/hold.ts";
import { pulledBody } from "../observe/ndjson.ts";
import {
  archiveBytes,
  type BackupManifest,
  type BackupPart,
  encodeArchiveHead,
  fingerprintOf,
  FOLDER_FILES,
  FOLDERS,
  SITE_FILES,
} from "./archive.ts";
import { formerSecrets } from "./restored.ts";
import { openSnapshot, type Snapshot } from "./snapshot.ts";

/** Milliseconds that a backup is kept: as long as an operator may need to come back for it after a broken line. */
const KEPT_MS = 600_000;
const CHUNK_BYTES = 1024 * 1024;
/** Bytes that stay free: some seconds of a busy site's commits (site/disk_room.ts). */
const RESERVE_BYTES = 64 * 1024 * 1024;
/** Name of the folder of copies in a site's data. */
const SPOOL = "backup";
const DATABASES: readonly string[] = ["rows.db", "root.kv"];

/** Facts of a site for a manifest. */
export type SiteFacts = Pick<
  BackupManifest,
  "site" | "parent" | "tier" | "release" | "at" | "incarnation" | "position" | "pending"
>;

/** Services of the site that backups use. */
export interface SiteBackupsParts {
  readonly data: string;
  readonly engine: "sqlite" | "denokv" | "memory";
  /** Secrets of the cluster, newest first. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  readonly hold: Hold;
  readonly facts: () => SiteFacts;
  readonly note: (event: string, fields: Record<string, unknown>) => void;
  /** Returns the bytes that are free where a folder is; asks the system by default. */
  readonly freeBytes?: (folder: string) => number;
}

/** State of a backup. */
export interface BackupState {
  readonly cut: string;
  readonly state: "prepared" | "copying" | "ready" | "failed";
  readonly copiedBytes: number;
  /** Bytes of the whole file, once it is ready; before, of the data to be copied. */
  readonly bytes: number;
  readonly why?: string;
}

interface Backup {
  readonly cut: string;
  readonly spool: string;
  readonly found: DataFiles;
  readonly snapshot: Snapshot;
  state: BackupState;
  head: Uint8Array<ArrayBuffer> | null;
  parts: readonly BackupPart[];
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Resolves when nothing writes to its folder any more. */
  settled: Promise<void>;
}

/** The backups of one site; see the file's header. */
export class SiteBackups {
  readonly #parts: SiteBackupsParts;
  #backup: Backup | null = null;
  #isPreparing = false;
  #closed = false;

  constructor(parts: SiteBackupsParts) {
    this.#parts = parts;
  }

  /** Removes the files that a former process left. */
  static async sweep(data: string): Promise<void> {
    await removed(`${data}/${SPOOL}`);
  }

  /** Prepares a backup whose moment is to come soon. @throws Problem, StoreUnavailable */
  async prepare(cut: string): Promise<BackupState> {
    const { data, engine, freeBytes = freeOf } = this.#parts;
    if (engine === "memory") {
      throw new Problem("not_available", "this site keeps its rows in memory: there is nothing to back up");
    }
    if (this.#isPreparing || this.#backup?.state.state === "copying") {
      throw new Problem("interrupted", "another backup of this site is being made");
    }
    this.#isPreparing = true;
    try {
      await this.#drop();
      const found = dataFiles(data), spool = `${data}/${SPOOL}/${cut}`;
      assertRoom(data, found.bytes, freeBytes(data));
      await Deno.mkdir(spool, { recursive: true, mode: 0o700 });
      const copied = new Map<string, number>();
      const progress = (to: string, pages: number) => {
        copied.set(to, pages * PAGE_BYTES);
        const copiedBytes = copied.values().reduce((sum, each) => sum + each, 0);
        backup.state = { ...backup.state, copiedBytes: Math.min(found.bytes, copiedBytes) };
      };
      const databases = found.databases.map((name) => ({ from: `${data}/${name}`, to: copyOf(spool, name) }));
      const snapshot = await openSnapshot(databases, progress).catch(async (error) => {
        await removed(spool);
        throw error;
      });
      const backup: Backup = {
        ...{ cut, spool, found, snapshot },
        state: { cut, state: "prepared", copiedBytes: 0, bytes: found.bytes },
        head: null,
        parts: [],
        timer: undefined,
        settled: Promise.resolve(),
      };
      this.#backup = backup;
      this.#keep(backup);
      if (this.#closed) await this.#drop();
      return backup.state;
    } finally {
      this.#isPreparing = false;
    }
  }

  /** Holds the site for a short while: no message of other sites is taken (SB3). @throws Problem */
  hold(cut: string): BackupState {
    const { state } = this.#prepared(cut);
    this.#parts.hold.begin(cut);
    return state;
  }

  /**
   * Takes the moment; it has passed when this returns.
   *
   * @param isHeld true where the moment must be within the hold of that name.
   * @throws Problem, StoreUnavailable
   */
  take(cut: string, isHeld: boolean): BackupState {
    const { data, hold, facts } = this.#parts, backup = this.#prepared(cut);
    if (isHeld && !hold.lasts(cut)) {
      throw new Problem(
        "interrupted",
        `the moment ${cut} comes too late: links are not held any more; begin again`,
      );
    }
    // Nothing else runs between these lines: they see one moment.
    const files = new Map(backup.found.files.map((name) => [name, Deno.readFileSync(`${data}/${name}`)]));
    const told = facts();
    try {
      backup.snapshot.begin();
    } catch (error) {
      backup.state = {
        ...backup.state,
        state: "failed",
        why: error instanceof Error ? error.message : String(error),
      };
      throw error;
    } finally {
      hold.end(cut);
    }
    clearTimeout(backup.timer); // it is wanted, however long the copying takes
    backup.state = { ...backup.state, state: "copying" };
    backup.settled = this.#copy(backup, told, files);
    return backup.state;
  }

  /** Returns the state of a backup. @throws Problem */
  state(cut: string): BackupState {
    return this.#of(cut).state;
  }

  /** Returns the file. @throws Problem */
  content(cut: string): { readonly bytes: number; readonly body: ReadableStream<Uint8Array<ArrayBuffer>> } {
    const backup = this.#of(cut), { state, head, parts } = backup;
    if (state.state !== "ready" || head === null) {
      throw new Problem("interrupted", `the backup ${cut} is ${state.state}`);
    }
    this.#keep(backup);
    return { bytes: state.bytes, body: this.#stream(backup, head, parts) };
  }

  /** Drops a backup that is not needed any more. @throws Problem */
  async drop(cut: string): Promise<void> {
    this.#of(cut);
    await this.#drop();
  }

  /** Gives up a backup under way, and removes the files. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#parts.hold.close();
    await this.#drop();
  }

  #of(cut: string): Backup {
    if (this.#backup?.cut === cut) return this.#backup;
    throw new Problem(
      "not_found",
      `there is no backup ${cut} at this site: it was fetched and removed, or never made`,
    );
  }

  #prepared(cut: string): Backup {
    const backup = this.#of(cut);
    if (backup.state.state === "prepared") return backup;
    throw new Problem("interrupted", `the backup ${cut} is ${backup.state.state}: its moment has passed`);
  }

  async #drop(): Promise<void> {
    const backup = this.#backup;
    this.#backup = null;
    if (backup === null) return;
    clearTimeout(backup.timer);
    await backup.snapshot.close();
    await backup.settled;
    await removed(backup.spool);
  }

  #keep(backup: Backup): void {
    clearTimeout(backup.timer);
    backup.timer = setTimeout(() => {
      if (this.#backup === backup) void this.#drop();
    }, KEPT_MS);
    Deno.unrefTimer(backup.timer);
  }

  async #copy(backup: Backup, facts: SiteFacts, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
    const { note, secrets, engine, data } = this.#parts, { cut, snapshot, spool, found } = backup;
    try {
      await snapshot.copied;
      await snapshot.close();
      for (const [name, bytes] of files) await Deno.writeFile(copyOf(spool, name), bytes, { mode: 0o600 });
      const parts: BackupPart[] = [];
      for (const name of [...files.keys(), ...found.databases]) {
        parts.push(await partOf(name, copyOf(spool, name)));
      }
      const manifest: BackupManifest = {
        ...facts,
        engine: engine === "denokv" ? engine : "sqlite",
        cut,
        secrets: [...new Set([...secrets.map(fingerprintOf), ...await formerSecrets(data)])],
        parts,
      };
      backup.head = encodeArchiveHead(manifest, secrets[0]);
      backup.parts = parts;
      const bytes = archiveBytes(backup.head, manifest);
      backup.state = { cut, state: "ready", copiedBytes: bytes, bytes };
      if (this.#backup === backup) this.#keep(backup);
      note("backup_made", { cut, bytes });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      backup.state = { ...backup.state, state: "failed", why };
      if (this.#backup !== backup) return; // the backup was given up
      note("backup_failed", { cut, error: why });
      await snapshot.close();
      await removed(spool);
    }
  }

  #stream(
    backup: Backup,
    head: Uint8Array<ArrayBuffer>,
    parts: readonly BackupPart[],
  ): ReadableStream<Uint8Array<ArrayBuffer>> {
    const { spool } = backup;
    const names = parts.map(({ name }) => name);
    let file: Deno.FsFile | null = null, isHeadSent = false;
    const next = async (): Promise<Uint8Array<ArrayBuffer> | null> => {
      if (!isHeadSent) {
        isHeadSent = true;
        return head;
      }
      this.#keep(backup);
      for (;;) {
        if (file === null) {
          const name = names.shift();
          if (name === undefined) return null;
          file = await Deno.open(copyOf(spool, name));
        }
        const chunk = new Uint8Array(CHUNK_BYTES), length = await file.read(chunk);
        if (length !== null) return chunk.subarray(0, length);
        file.close();
        file = null;
      }
    };
    return pulledBody(next, () => {
      file?.close();
      file = null;
    });
  }
}

/** Bytes of a page, as both engines have it. */
const PAGE_BYTES = 4096;

const copyOf = (spool: string, name: string): string => `${spool}/${name.replace("/", "-")}`;

interface DataFiles {
  readonly files: readonly string[];
  readonly databases: readonly string[];
  readonly bytes: number;
}

/** Returns the files of a site's data that go into a backup. The store's database comes last (snapshot.ts SN1). */
function dataFiles(data: string): DataFiles {
  const files: string[] = [], databases: string[] = [];
  let bytes = 0;
  const look = (name: string, to: string[]) => {
    const size = sizeOf(`${data}/${name}`);
    if (size === null) return;
    to.push(name);
    // Pages in the write-ahead log may be beyond the database's own.
    bytes += size + (to === databases ? sizeOf(`${data}/${name}-wal`) ?? 0 : 0);
  };
  for (const name of SITE_FILES) look(name, files);
  for (const folder of FOLDERS) {
    for (const file of FOLDER_FILES) look(`${folder}/${file}`, DATABASES.includes(file) ? databases : files);
  }
  return { files, databases, bytes };
}

function sizeOf(path: string): number | null {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function freeOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Checks that the disk has room (SB2). @throws Problem */
function assertRoom(data: string, bytes: number, freeBytes: number): void {
  if (freeBytes >= bytes + RESERVE_BYTES) return;
  throw new Problem(
    "disk_failed",
    `the copies take ${bytes} bytes in ${data}, and ${RESERVE_BYTES} have to stay free; there are ${freeBytes}`,
  );
}

async function partOf(name: string, path: string): Promise<BackupPart> {
  const hash = createHash("sha256"), chunk = new Uint8Array(CHUNK_BYTES);
  using file = await Deno.open(path);
  let bytes = 0;
  for (let length = await file.read(chunk); length !== null; length = await file.read(chunk)) {
    hash.update(chunk.subarray(0, length));
    bytes += length;
  }
  return { name, bytes, sha256: hash.digest("hex") };
}

async function removed(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
