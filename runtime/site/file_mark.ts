/** Returns a mark that differs between two states of a file, without reading it; an absent file always has the same. */
export function fileMarkOf(path: string): string {
  try {
    const { mtime, ctime, size, ino } = Deno.statSync(path);
    return `${mtime?.getTime()} ${ctime?.getTime()} ${size} ${ino}`;
  } catch {
    return "absent";
  }
}

/**
 * Reports whether others than its owner may read a file; false where the system has no such notion, or no such file.
 */
export function isOpenToOthers(path: string): boolean {
  try {
    const { mode } = Deno.statSync(path);
    return mode !== null && (mode & 0o077) !== 0;
  } catch {
    return false;
  }
}
