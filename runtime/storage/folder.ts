/**
 * A folder that one storage of one process owns.
 *
 * Life: `claimFolder` creates the folder or recognises its own mark, locks it, and returns the claim →
 * `release`. The lock is the operating system's, on an open file: a process that dies gives it back.
 *
 * F1  A folder that holds other files and not our mark is refused, never written to.
 * F2  Two processes, or two storages of one process, never hold one folder.
 * F3  A claimed folder is found again after a power cut, under its path and with its mark: each folder that was made
 *     on the way to it is synced into the one above, before anything in it is told to be on disk.
 */
import { folderOf } from "../../functions/client/replace_file.ts";
import { StoreUnavailable } from "../../store/api/api.ts";

/** Name of the file that marks a folder as a storage of ours, and names the engine that wrote it. */
const MARK_FILE = "SOJOURN";
const LOCK_FILE = "lock";
/** Pattern of the marks that any release has ever written. */
const KNOWN = /^sojourn storage: [a-z]+ \d+\n$/;

/** A folder that is held. */
export interface FolderClaim {
  readonly path: string;
  /** Engine that the mark names: the one that was asked for, or its former format. */
  readonly engine: string;
  /** Marks the folder as of the engine that was asked for. */
  upgraded(): void;
  /** Gives the folder back; the second call does nothing. */
  release(): void;
}

/**
 * Claims a folder for an engine, creating it where it does not exist.
 *
 * @param former the engine's former format, which it takes over ({@link FolderClaim.upgraded}).
 * @throws StoreUnavailable `disk_failed` where another process holds it, another engine or somebody else's files
 * are in it, or the file system refuses.
 */
export function claimFolder(path: string, engine: string, former?: string): FolderClaim {
  try {
    makeFolder(path);
    const found = checkMark(path, engine, former);
    const lock = takeLock(path);
    let held = true;
    return {
      path,
      engine: found,
      upgraded: () => replaceMark(path, markOf(engine)),
      release: () => {
        if (!held) return;
        held = false;
        lock.close();
      },
    };
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    throw refusal(path, error instanceof Error ? error.message : String(error));
  }
}

/** Creates a folder and those above it, and syncs each (F3). */
function makeFolder(path: string): void {
  try {
    Deno.mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound && folderOf(path) !== path) {
      makeFolder(folderOf(path));
      return makeFolder(path);
    }
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    if (!Deno.statSync(path).isDirectory) throw error;
  }
  // Synced also where it is there already: the process that made it may have died before.
  syncFolder(folderOf(path));
}

const markOf = (engine: string): string => `sojourn storage: ${engine}\n`;

/** Returns the engine that the mark names; a folder without a mark gets one. */
function checkMark(path: string, engine: string, former?: string): string {
  const wanted = markOf(engine);
  const names = [...Deno.readDirSync(path)].map((entry) => entry.name);
  if (names.includes(MARK_FILE)) {
    const found = Deno.readTextFileSync(`${path}/${MARK_FILE}`);
    if (found === wanted) return engine;
    if (former !== undefined && found === markOf(former)) return former;
    // A power cut came before it was synced, so nothing else was written here.
    const isTorn = wanted.startsWith(found) &&
      names.every((name) => name === MARK_FILE || name === LOCK_FILE);
    if (isTorn) {
      writeSynced(path, MARK_FILE, wanted);
      return engine;
    }
    const says = KNOWN.test(found)
      ? `it was written by "${found.trim()}", and "${wanted.trim()}" was asked for`
      : `its file ${MARK_FILE} does not say what wrote it`;
    throw refusal(
      path,
      `${says}; where its other files are this site's, put back the line "${wanted.trim()}" in that file, ` +
        `else empty the folder`,
    );
  }
  const others = names.filter((name) => name !== LOCK_FILE);
  if (others.length > 0) {
    throw refusal(
      path,
      `it holds other files (${
        others.slice(0, 3).join(", ")
      }); an empty folder is accepted, and, where they are this ` +
        `site's, put back the file ${MARK_FILE} with the line "${wanted.trim()}"`,
    );
  }
  writeSynced(path, MARK_FILE, wanted);
  return engine;
}

/** Replaces the mark in one step: a torn one would make a folder that has rows unrecognisable. */
function replaceMark(path: string, mark: string): void {
  writeSynced(path, `${MARK_FILE}.new`, mark);
  Deno.renameSync(`${path}/${MARK_FILE}.new`, `${path}/${MARK_FILE}`);
  syncFolder(path);
}

/** Writes a file and syncs it: a mark that a power cut could take back would turn our own files into unknown ones. */
function writeSynced(path: string, name: string, text: string): void {
  const file = Deno.openSync(`${path}/${name}`, { create: true, write: true, truncate: true });
  try {
    file.writeSync(new TextEncoder().encode(text));
    file.syncSync();
  } finally {
    file.close();
  }
  syncFolder(path);
}

function syncFolder(path: string): void {
  if (Deno.build.os === "windows") return; // a folder can't be opened as a file there
  const folder = Deno.openSync(path, { read: true });
  try {
    folder.syncSync();
  } finally {
    folder.close();
  }
}

function takeLock(path: string): Deno.FsFile {
  const file = Deno.openSync(`${path}/${LOCK_FILE}`, { create: true, read: true, write: true });
  try {
    if (!file.tryLockSync(true)) {
      const pid = Deno.readTextFileSync(`${path}/${LOCK_FILE}`).trim();
      throw refusal(path, `process ${pid || "(unknown)"} holds it; stop that process first`);
    }
    file.truncateSync(0);
    file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

const refusal = (path: string, why: string) =>
  new StoreUnavailable("disk_failed", `cannot use the data folder ${path}: ${why}`);
