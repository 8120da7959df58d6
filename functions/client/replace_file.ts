/**
 * The replacement of a file's content as a whole: after a crash or a power cut at any moment the name stands for all of
 * the old content or all of the new.
 *
 * Stages: written under another name → synced → renamed → the folder synced.
 *
 * RF1  The name changes hands only when the new content is on disk: a file system may write a rename down before
 *      the bytes that it leads to, and a cut between the two would leave an empty file.
 * RF2  Once the replacement resolves, the new content stays: the folder, which holds the name, is synced last.
 * RF3  The name is never seen without a file, or with a part of one. A file that an unfinished replacement left under
 *      the other name is removed by the next: it may have other permissions.
 *
 * The file system is passed in, since pages have none: `Deno` itself fits.
 */

/** Open file, as far as a replacement uses it. */
interface OpenFile {
  write(bytes: Uint8Array): Promise<number>;
  sync(): Promise<void>;
  lock(exclusive?: boolean): Promise<void>;
  close(): void;
}

/** Calls of a file system that a replacement makes. */
export interface Files<File extends OpenFile> {
  open(
    path: string,
    options: { read?: boolean; write?: boolean; createNew?: boolean; mode?: number },
  ): Promise<File>;
  remove(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  readonly build?: { readonly os: string };
}

/** Options for the new file. */
export interface ReplaceOptions {
  /** Permissions; by default those that the process gives new files. */
  readonly mode?: number;
  /** True: an exclusive lock is taken on the new file before it has the name. */
  readonly isLocked?: boolean;
  /** Other name, in the same folder; by default the path and `.new`. Two writers of one path need two. */
  readonly aside?: string;
}

/**
 * Replaces a file, or makes it. Resolves with the new file, open at its end, when the content is on disk under the
 * name (RF2); the caller closes it.
 *
 * @throws whatever the file system throws: then the old content stands, or, where only the last sync failed, either.
 */
export async function replaceFile<File extends OpenFile>(
  files: Files<File>,
  path: string,
  content: Uint8Array | string,
  { mode, isLocked = false, aside = `${path}.new` }: ReplaceOptions = {},
): Promise<File> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  await files.remove(aside).catch((error) => {
    if (!(error instanceof Error) || error.name !== "NotFound") throw error;
  });
  const access = { read: true, write: true, createNew: true };
  const file = await files.open(aside, mode === undefined ? access : { ...access, mode });
  try {
    if (isLocked) await file.lock(true);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync(); // RF1
    await files.rename(aside, path);
    await syncFolder(files, folderOf(path)); // RF2
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/**
 * Syncs a folder: the names in it are then on disk, of files that were made, renamed and removed. Windows, where a
 * folder can't be opened as a file, writes names down with the files.
 */
export async function syncFolder(
  files: Pick<Files<OpenFile>, "open" | "build">,
  folder: string,
): Promise<void> {
  if (files.build?.os === "windows") return;
  const open = await files.open(folder, { read: true });
  try {
    await open.sync();
  } finally {
    open.close();
  }
}

/** Returns the folder that a path's name is in. */
export function folderOf(path: string): string {
  const end = path.lastIndexOf("/");
  return end < 0 ? "." : path.slice(0, end) || "/";
}
