/**
 * What a disk may hold after a power cut, from the record of what a process asked of it.
 *
 * Life: `recorded` runs a process under strace and gives its calls on the files of one folder, in order, and the
 * lines it said → `cutAt` gives the files as a cut after the n-th call may leave them.
 *
 * T1  What was written before a sync of its file that has returned is there, byte for byte.
 * T2  Of what was written since, each sector is there, or not, or (drawn) is garbled within the bytes that the
 *     write covered: whatever order and whichever halves of pages the disk had got to. A file's length goes with
 *     its last sector that is there.
 * T3  Names that appear, change hands or disappear do so in order; of what was done since the last sync of the folder
 *     that has returned only a first part is there. A file has what it has under whichever name.
 * T4  Shared memory files are not part of a disk's contents: they are rebuilt.
 */
import { Draws } from "../sim/random.ts";

/** One call on a file of the folder. */
export type Call =
  | { readonly kind: "write"; readonly file: string; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly kind: "length"; readonly file: string; readonly bytes: number }
  /** A sync that returned; it covers the calls before `from`. Of {@link FOLDER}: of the names. */
  | { readonly kind: "sync"; readonly file: string; readonly from: number }
  | { readonly kind: "unlink"; readonly file: string }
  | { readonly kind: "rename"; readonly file: string; readonly to: string }
  /** The process said a line: what it promised is on disk. */
  | { readonly kind: "said"; readonly text: string };

/** How much of what was not synced is there. */
export type Tear = "nothing" | "a beginning" | "some sectors" | "some sectors, some garbled" | "all";
export const TEARS: readonly Tear[] = [
  "nothing",
  "a beginning",
  "some sectors",
  "some sectors, some garbled",
  "all",
];

/** The folder itself, where calls name a file. */
export const FOLDER = ".";
const SECTOR_BYTES = 512;
const CALLS = "pwrite64,write,ftruncate,fdatasync,fsync,unlink,rename";
/** Longer than any single write of SQLite: a page. */
const SHOWN_BYTES = 70_000;
const IGNORED = /^lock$|-shm$/;

/** Runs a command under strace; null where there is no strace. */
export async function recorded(
  command: readonly string[],
  folder: string,
  traceFile: string,
): Promise<Call[] | null> {
  const args = ["-f", "-qq", "-y", "-xx", "-s", `${SHOWN_BYTES}`, "-o", traceFile, "-e", `trace=${CALLS}`];
  try {
    const { success, stderr } = await new Deno.Command("strace", {
      args: [...args, ...command],
      stderr: "piped",
    })
      .output();
    if (!success) {
      const text = new TextDecoder().decode(stderr);
      if (/PTRACE|ptrace|Operation not permitted/.test(text)) return null;
      throw new Error(`the traced process failed: ${text}`);
    }
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  return callsOf(await Deno.readTextFile(traceFile), folder);
}

/** Reads strace's lines; a call that others interrupted has two, its data in the first. */
export function callsOf(trace: string, folder: string): Call[] {
  const calls: Call[] = [];
  const lengths = new Map<string, number>();
  const syncing = new Map<string, { file: string; from: number }>();
  const fileOf = (path: string) => {
    if (path === folder) return FOLDER;
    return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : null;
  };
  for (const line of trace.split("\n")) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (/^<\.\.\. f(data)?sync resumed>.* = 0$/.test(text)) {
      const sync = syncing.get(thread);
      if (sync !== undefined) calls.push({ kind: "sync", ...sync });
      continue;
    }
    const [, name = "", number = "", path = "", rest = ""] = /^(\w+)\((\d+)<([^>]*)>(.*)$/.exec(text) ?? [];
    if (name === "write" && number === "1") {
      calls.push({ kind: "said", text: new TextDecoder().decode(bytesOf(rest)).trim() });
      continue;
    }
    if (name === "" && text.startsWith("unlink(") && text.endsWith("= 0")) {
      const file = fileOf(textOf(/^unlink\("([^"]*)"/.exec(text)?.[1] ?? ""));
      if (file !== null && !IGNORED.test(file)) calls.push({ kind: "unlink", file });
      continue;
    }
    if (name === "" && text.startsWith("rename(") && text.endsWith("= 0")) {
      const [, from = "", to = ""] = /^rename\("([^"]*)", "([^"]*)"/.exec(text) ?? [];
      const file = fileOf(textOf(from)), target = fileOf(textOf(to));
      if (file === null || target === null) continue;
      calls.push({ kind: "rename", file, to: target });
      lengths.set(target, lengths.get(file) ?? 0);
      lengths.delete(file);
      continue;
    }
    const file = fileOf(textOf(path));
    if (file === null || IGNORED.test(file)) continue;
    const last = Number(/, (\d+)(?:\)| <)/.exec(rest.slice(rest.lastIndexOf('"') + 1))?.[1]);
    if (name === "pwrite64") {
      const [, , offset = ""] = rest.slice(rest.lastIndexOf('"') + 1).split(/[ ,)]+/);
      calls.push({ kind: "write", file, offset: Number(offset), bytes: bytesOf(rest) });
    } else if (name === "write") {
      const bytes = bytesOf(rest);
      const offset = lengths.get(file) ?? 0;
      lengths.set(file, offset + bytes.length);
      calls.push({ kind: "write", file, offset, bytes });
    } else if (name === "ftruncate") calls.push({ kind: "length", file, bytes: last || 0 });
    else if (/unfinished/.test(rest)) syncing.set(thread, { file, from: calls.length });
    else if (/ = 0$/.test(rest)) calls.push({ kind: "sync", file, from: calls.length });
  }
  return calls;
}

const textOf = (hex: string): string =>
  hex.replaceAll(/\\x([0-9a-f]{2})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));

/** The data of a call: its only argument in quotes, four characters a byte. */
function bytesOf(rest: string): Uint8Array {
  const start = rest.indexOf('"') + 1;
  const out = new Uint8Array((rest.indexOf('"', start) - start) / 4);
  for (let i = 0; i < out.length; i++) {
    out[i] = 16 * nibble(rest.charCodeAt(start + 4 * i + 2)) + nibble(rest.charCodeAt(start + 4 * i + 3));
  }
  return out;
}

/** The value of a digit, 0–9 or a–f, by its code. */
const nibble = (code: number): number => code < 58 ? code - 48 : code - 87;

/** The files after a cut that follows the call at `index`, by name. */
export function cutAt(
  calls: readonly Call[],
  index: number,
  tear: Tear,
  draws: Draws,
): Map<string, Uint8Array> {
  const { acts, names } = byFile(calls.slice(0, index + 1));
  const synced = new Map<number, number>();
  for (const { call, file } of acts) if (call.kind === "sync") synced.set(file, call.from);
  const unsynced =
    acts.filter(({ call, at, file }) => call.kind === "write" && at >= (synced.get(file) ?? 0)).length;
  const contents = new Map<number, Content>();
  const content = (file: number) => {
    const found = contents.get(file) ?? new Content();
    contents.set(file, found);
    return found;
  };
  /** For a beginning: how many more writes arrive before the one that is torn. */
  let left = tear === "a beginning" ? draws.integer(0, unsynced) : Infinity;
  for (const { call, at, file } of acts) {
    if (call.kind === "length") content(file).resize(call.bytes);
    else if (call.kind === "write") {
      const isSafe = at < (synced.get(file) ?? 0);
      const isWhole = isSafe || tear === "all" || (tear === "a beginning" && left > 0);
      if (isWhole) content(file).put(call.offset, call.bytes);
      else if (tear !== "nothing" && left >= 0) tornWrite(content(file), call, draws, tear);
      if (!isSafe && tear === "a beginning") left--;
    }
  }
  return new Map([...namesAfter(names, tear, draws)].map(([name, file]) => [name, content(file).bytes]));
}

/** A call, and the number of the file that its name stood for. */
interface Act {
  readonly call: Call;
  readonly at: number;
  readonly file: number;
}

/** What became of a name; null: it disappeared. */
interface NameChange {
  readonly name: string;
  readonly file: number | null;
  /** The name that the file had before, and has no more. */
  readonly from?: string;
  readonly isSynced: boolean;
}

/** Calls with the files that they are about, and what happened to names. A name that is new is a new file's. */
function byFile(calls: readonly Call[]): { acts: Act[]; names: NameChange[] } {
  const current = new Map<string, number>();
  const acts: Act[] = [], changes: { change: Omit<NameChange, "isSynced">; at: number }[] = [];
  let files = 0, syncedTo = 0;
  const fileOf = (name: string, at: number) => {
    const known = current.get(name);
    if (known !== undefined) return known;
    current.set(name, ++files);
    changes.push({ change: { name, file: files }, at });
    return files;
  };
  calls.forEach((call, at) => {
    if (call.kind === "said") return;
    if (call.kind === "sync" && call.file === FOLDER) syncedTo = call.from;
    else if (call.kind === "unlink") {
      current.delete(call.file);
      changes.push({ change: { name: call.file, file: null }, at });
    } else if (call.kind === "rename") {
      const file = fileOf(call.file, at);
      current.delete(call.file);
      current.set(call.to, file);
      changes.push({ change: { name: call.to, file, from: call.file }, at });
    } else acts.push({ call, at, file: fileOf(call.file, at) });
  });
  return { acts, names: changes.map(({ change, at }) => ({ ...change, isSynced: at < syncedTo })) };
}

/** T3 */
function namesAfter(changes: readonly NameChange[], tear: Tear, draws: Draws): Map<string, number> {
  const unsynced = changes.filter(({ isSynced }) => !isSynced).length;
  let left = tear === "nothing" ? 0 : tear === "all" ? unsynced : draws.integer(0, unsynced);
  const names = new Map<string, number>();
  for (const { name, file, from, isSynced } of changes) {
    if (!isSynced && left-- <= 0) break;
    if (from !== undefined) names.delete(from);
    if (file === null) names.delete(name);
    else names.set(name, file);
  }
  return names;
}

/** T2 for one write. */
function tornWrite(
  content: Content,
  { offset, bytes }: Call & { kind: "write" },
  draws: Draws,
  tear: Tear,
): void {
  const whole = tear === "a beginning" ? draws.integer(0, bytes.length) : bytes.length;
  for (let at = 0; at < whole;) {
    const end = Math.min(whole, at + SECTOR_BYTES - (offset + at) % SECTOR_BYTES);
    const isThere = tear === "a beginning" || draws.chance(0.5);
    const isGarbled = tear === "some sectors, some garbled" && draws.chance(0.15);
    if (isThere) content.put(offset + at, isGarbled ? draws.bytes(end - at) : bytes.subarray(at, end));
    at = end;
  }
}

/** A file that grows: room for more than it has. */
class Content {
  #room = new Uint8Array(1 << 16);
  #length = 0;

  get bytes(): Uint8Array {
    return this.#room.subarray(0, this.#length);
  }

  put(offset: number, bytes: Uint8Array): void {
    this.#reserve(offset + bytes.length);
    this.#room.set(bytes, offset);
    this.#length = Math.max(this.#length, offset + bytes.length);
  }

  resize(length: number): void {
    this.#reserve(length);
    this.#room.fill(0, Math.min(length, this.#length));
    this.#length = length;
  }

  #reserve(length: number): void {
    if (length <= this.#room.length) return;
    const next = new Uint8Array(2 * length);
    next.set(this.bytes);
    this.#room = next;
  }
}
