/**
 * Restoring of a site's data from a backup, while the site is stopped.
 *
 * Stages: the whole file is compared with its digests → the disk's free room is checked → the parts are written into a
 * folder within the data → (the old data is moved aside) → the parts get their names → `restored.json` is the last.
 *
 * RT1  Nothing of the data changes before the whole file was found to be as the cluster wrote it.
 * RT2  Old data is never removed: it is moved into a folder beside, where that was asked for; else the data folder has
 *      to be empty.
 * RT3  Between the first name that changes and the last, the file RESTORING lies there, and no site starts on the data:
 *      a restore that was cut off is run again.
 * RT4  No count of commits comes with the files, and no former one stays: restored data is not compared with any count.
 */
import { createHash } from "node:crypto";
import { statfsSync } from "node:fs";
import { folderOf, replaceFile, syncFolder } from "../../functions/client/replace_file.ts";
import { ArchiveError, ArchiveReader, assertSigned, type BackupManifest, fingerprintOf } from "./archive.ts";
import { keepRestored, readRestored, RESTORED, RESTORING, secretsOfBefore } from "./restored.ts";

/** Error for a backup that is not put back. */
export class RestoreError extends Error {
  override readonly name = "RestoreError";
  constructor(
    readonly code:
      | "file_not_read"
      | "site_differs"
      | "site_running"
      | "folder_not_empty"
      | "secret_of_before"
      | "disk_failed",
    message: string,
  ) {
    super(message);
  }
}

/** Findings about a whole file. */
export interface Verified {
  readonly manifest: BackupManifest;
  readonly bytes: number;
  readonly sha256: string;
  /** True where one of the given secrets signed it; null: none was given. */
  readonly isSigned: boolean | null;
}

/** Order to restore a site. */
export interface RestoreOrder {
  readonly file: string;
  /** Facts of the site, from its site file. */
  readonly site: {
    readonly id: string;
    readonly isRoot: boolean;
    readonly engine: string;
    readonly data: string;
  };
  /** Secrets of the site's secret file. */
  readonly secrets: readonly Uint8Array[];
  /** Secrets that were in force when the backup was made, or some of them. */
  readonly formerSecrets: readonly Uint8Array[];
  /** True where old data is to be moved aside. */
  readonly replace: boolean;
  /** Time of the restore, in ISO 8601. */
  readonly now: string;
  readonly progress?: (says: "compares" | "writes", bytes: number, of: number) => void;
}

/** Result of a restore. */
export interface Restoration extends Verified {
  /** Folder of the old data now; null: there was none. */
  readonly aside: string | null;
}

const CHUNK_BYTES = 1024 * 1024;
const STAGED = "restoring";
/** Names that do not count as data: files that a site makes again, or that backups and restores left behind. */
const NOTHING: readonly string[] = ["cache", "backup", STAGED];

/** Reads a whole file. @throws ArchiveError, RestoreError */
export async function verifyBackup(
  file: string,
  secrets: readonly Uint8Array[] | null,
  progress: RestoreOrder["progress"] = () => {},
): Promise<Verified> {
  const hash = createHash("sha256");
  let isSigned: boolean | null = null;
  const reader = new ArchiveReader({
    manifest: (_manifest, isSignedBy) => {
      if (secrets === null) return;
      assertSigned(isSignedBy, secrets);
      isSigned = true;
    },
  });
  let bytes = 0;
  await eachChunk(file, (chunk, size) => {
    reader.push(chunk);
    hash.update(chunk);
    progress("compares", bytes += chunk.length, size);
  });
  return { manifest: reader.end(), bytes, sha256: hash.digest("hex"), isSigned };
}

/** Restores a site; see the file's header. @throws ArchiveError, RestoreError */
export async function restoreSite(order: RestoreOrder): Promise<Restoration> {
  const { file, site, secrets, formerSecrets } = order, { data } = site;
  const verified = await verifyBackup(file, formerSecrets, order.progress); // RT1
  const { manifest } = verified;
  assertFits(manifest, site);
  assertNewSecret(manifest, secrets);
  await Deno.mkdir(data, { recursive: true, mode: 0o700 });
  using _stopped = await stopped(data);
  const found = await entries(data);
  if (order.replace && !found.includes(RESTORING)) await assertNotGoneOn(data, secrets);
  if (found.length > 0 && !order.replace) {
    throw new RestoreError(
      "folder_not_empty",
      `${data} has ${found.slice(0, 3).join(", ")}${
        found.length > 3 ? ", …" : ""
      }: with --replace that is moved aside ` +
        "within the folder, and not removed",
    );
  }
  assertRoom(data, verified.bytes);
  const staged = `${data}/${STAGED}`;
  await removed(staged);
  try {
    await written(order, staged);
    await keepRestored(staged, {
      cut: manifest.cut,
      at: manifest.at,
      restoredAt: order.now,
      formerSecrets: manifest.secrets,
      copy: crypto.randomUUID(),
      secrets: secrets.map(fingerprintOf),
      joined: false,
    });
    await syncFolder(Deno, staged);
  } catch (error) {
    await removed(staged).catch(() => {}); // the first error says more
    throw error instanceof ArchiveError ? error : failed(data, error);
  }
  try {
    return { ...verified, aside: await exchanged(data, staged, { found, now: order.now }) };
  } catch (error) {
    throw failed(data, error);
  }
}

function assertFits({ site, parent, engine }: BackupManifest, to: RestoreOrder["site"]): void {
  const differs = (what: string) => {
    throw new RestoreError("site_differs", `${what}: the site file is of another site than the backup`);
  };
  if (site !== to.id) differs(`the backup is of site ${site}, and the site file of ${to.id}`);
  if ((parent === null) !== to.isRoot) {
    differs(parent === null ? "the backup is of the root" : `the backup is of a site below ${parent}`);
  }
  if (engine !== to.engine) {
    throw new RestoreError("site_differs", `the backup has engine ${engine}, and the site file ${to.engine}`);
  }
}

/** Refuses a secret that was in force when the backup was made (restored.ts RS1). */
function assertNewSecret(manifest: BackupManifest, secrets: readonly Uint8Array[]): void {
  const [found] = secretsOfBefore(secrets, { formerSecrets: manifest.secrets });
  if (found === undefined) return;
  throw new RestoreError(
    "secret_of_before",
    `line ${
      found + 1
    } of the secrets in the site's secretFile was in force when the backup was made: sites and clients ` +
      "that have it may have seen what the backup lacks, and would take this disk for lost. Put a new secret alone into " +
      "that file, the same at all sites, and name a file with the one of before by --secret",
  );
}

/** Refuses a secret of a tree that was restored before: that tree went on with it. */
async function assertNotGoneOn(data: string, secrets: readonly Uint8Array[]): Promise<void> {
  const before = await readRestored(data);
  if (before?.joined !== true) return;
  const [found] = secretsOfBefore(secrets, { formerSecrets: before.secrets });
  if (found === undefined) return;
  throw new RestoreError(
    "secret_of_before",
    `line ${
      found + 1
    } of the secrets in the site's secretFile is that of a tree which was restored before, and has gone ` +
      "on since: what it has seen would meet what is restored now. Put a new secret alone into that file",
  );
}

/** Holds the site's lock, so that none starts meanwhile. @throws RestoreError where one runs. */
async function stopped(data: string): Promise<Disposable> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(`${data}/store/lock`, { read: true, write: true });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { [Symbol.dispose]: () => {} };
    throw failed(data, error);
  }
  if (file.tryLockSync(true)) return { [Symbol.dispose]: () => file.close() };
  file.close();
  const pid = (await Deno.readTextFile(`${data}/store/lock`)).trim();
  throw new RestoreError(
    "site_running",
    `process ${pid || "(unknown)"} runs on ${data}: stop the site first`,
  );
}

/** Returns the names in a data folder that would be lost with it. */
async function entries(data: string): Promise<string[]> {
  const names = await Array.fromAsync(Deno.readDir(data), ({ name }) => name);
  return names.filter((name) => !NOTHING.includes(name) && !name.startsWith(ASIDE)).sort();
}

const ASIDE = "before-";

function assertRoom(data: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(data), freeBytes = bavail * bsize;
  if (freeBytes >= bytes) return;
  throw new RestoreError(
    "disk_failed",
    `the backup has ${bytes} bytes, and ${data} has room for ${freeBytes}`,
  );
}

/** Writes the parts, compared once more as they are written. */
async function written({ file, progress }: RestoreOrder, staged: string): Promise<void> {
  await Deno.mkdir(staged, { mode: 0o700 });
  const folders = new Set<string>();
  let open: Deno.FsFile | null = null, bytes = 0;
  const reader = new ArchiveReader({
    bytes: ({ name }, chunk) => {
      open ??= created(`${staged}/${name}`, folders);
      for (let at = 0; at < chunk.length;) at += open.writeSync(chunk.subarray(at));
    },
    part: ({ name }) => {
      open ??= created(`${staged}/${name}`, folders); // a part without a byte
      open.syncSync();
      open.close();
      open = null;
    },
  });
  try {
    await eachChunk(file, (chunk, size) => {
      reader.push(chunk);
      progress?.("writes", bytes += chunk.length, size);
    });
    reader.end();
  } finally {
    (open as Deno.FsFile | null)?.close();
  }
  for (const folder of folders) await syncFolder(Deno, folder);
}

function created(path: string, folders: Set<string>): Deno.FsFile {
  const folder = folderOf(path);
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  folders.add(folder);
  return Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
}

/** Moves the old data aside and gives the parts their names (RT2, RT3). */
async function exchanged(
  data: string,
  staged: string,
  { found, now }: { readonly found: readonly string[]; readonly now: string },
): Promise<string | null> {
  const marker = `${data}/${RESTORING}`;
  (await replaceFile(Deno, marker, `begun at ${now}\n`, { mode: 0o600 })).close();
  const moved = found.filter((name) => name !== RESTORING);
  const aside = moved.length === 0 ? null : `${data}/${ASIDE}${now.replaceAll(/[^0-9TZ]/g, "")}`;
  if (aside !== null) {
    await Deno.mkdir(aside, { mode: 0o700 });
    for (const name of moved) await Deno.rename(`${data}/${name}`, `${aside}/${name}`);
    await syncFolder(Deno, aside);
  }
  const names = await Array.fromAsync(Deno.readDir(staged), ({ name }) => name);
  for (const name of names.filter((name) => name !== RESTORED)) {
    await Deno.rename(`${staged}/${name}`, `${data}/${name}`);
  }
  await Deno.rename(`${staged}/${RESTORED}`, `${data}/${RESTORED}`);
  await syncFolder(Deno, data);
  await Deno.remove(marker);
  await removed(staged);
  await syncFolder(Deno, data);
  return aside;
}

async function eachChunk(file: string, take: (chunk: Uint8Array, size: number) => void): Promise<void> {
  let open: Deno.FsFile;
  try {
    open = await Deno.open(file);
  } catch (error) {
    throw new RestoreError(
      "file_not_read",
      `${file} cannot be read: ${error instanceof Error ? error.message : error}`,
    );
  }
  try {
    const { size } = await open.stat(), chunk = new Uint8Array(CHUNK_BYTES);
    for (let length = await open.read(chunk); length !== null; length = await open.read(chunk)) {
      take(chunk.subarray(0, length), size);
    }
  } finally {
    open.close();
  }
}

function failed(data: string, error: unknown): RestoreError {
  if (error instanceof RestoreError) return error;
  return new RestoreError("disk_failed", `${data}: ${error instanceof Error ? error.message : error}`);
}

async function removed(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
