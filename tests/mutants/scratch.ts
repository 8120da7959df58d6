/**
 * A copy of the tree in which mutants are made, so that the checkout never holds one.
 *
 * SC1  It lies at the same place each time: what Deno keeps of a file (its JavaScript, its compiled code) it keeps by
 *      the file's address.
 * SC2  One run at a time has it.
 * SC3  It holds what the checkout holds when a run begins, and nothing else but one mutant while that is tried.
 */
import { dirname, join } from "node:path";
import { tmpdir } from "node:os";
import { digest } from "./syntax.ts";

/** See the file's header. */
export class Scratch {
  /** Where it lies, with a slash at its end. */
  readonly root: string;
  readonly #lock: Deno.FsFile;
  /** What files hold in the checkout, by path. */
  readonly #texts = new Map<string, string>();

  private constructor(root: string, lock: Deno.FsFile) {
    this.root = root;
    this.#lock = lock;
  }

  /**
   * @param checkout the folder that is copied
   * @param name of one of several
   * @throws Error where another run has it (SC2)
   */
  static async open(checkout: string, name: string): Promise<Scratch> {
    const base = join(tmpdir(), "sojourn-mutants", `${(await digest(checkout)).slice(0, 8)}-${name}`);
    await Deno.mkdir(base, { recursive: true });
    const lock = await Deno.open(join(base, "lock"), { create: true, write: true });
    if (!lock.tryLockSync(true)) throw new Error(`another run has ${base}: give this one a name (--scratch)`);
    const scratch = new Scratch(join(base, "tree/"), lock);
    await scratch.#sync(checkout);
    return scratch;
  }

  /** Writes a file of the tree, be it with a mutant or with probes. */
  async write(file: string, text: string): Promise<void> {
    await Deno.writeTextFile(this.root + file, text);
  }

  /** Writes a file beside the tree, and says where. */
  async note(name: string, text: string): Promise<string> {
    const path = join(dirname(this.root), name);
    await Deno.writeTextFile(path, text);
    return path;
  }

  /** What a file holds in the checkout. */
  text(file: string): string {
    const text = this.#texts.get(file) ?? Deno.readTextFileSync(this.root + file);
    this.#texts.set(file, text);
    return text;
  }

  /** Puts a file back. */
  async restore(file: string): Promise<void> {
    await this.write(file, this.text(file));
  }

  close(): void {
    this.#lock.close();
  }

  /** SC3 */
  async #sync(checkout: string): Promise<void> {
    const wanted = new Set(await filesOf(checkout));
    for await (const file of filesBelow(this.root, "")) {
      if (!wanted.has(file)) await Deno.remove(this.root + file);
    }
    for (const file of wanted) {
      const from = join(checkout, file), to = this.root + file;
      const bytes = await Deno.readFile(from).catch(() => null);
      if (bytes === null) continue;
      const there = await Deno.readFile(to).catch(() => null);
      if (there !== null && isSame(bytes, there)) continue;
      await Deno.mkdir(dirname(to), { recursive: true });
      await Deno.writeFile(to, bytes);
    }
  }
}

/** Files that git knows, or would add. */
async function filesOf(checkout: string): Promise<string[]> {
  const { success, stdout, stderr } = await new Deno.Command("git", {
    args: ["ls-files", "--cached", "--others", "--exclude-standard", "-z"],
    cwd: checkout,
  }).output();
  if (!success) throw new Error(`the files of ${checkout}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout).split("\0").filter((file) => file !== "");
}

async function* filesBelow(root: string, folder: string): AsyncGenerator<string> {
  const entries: Deno.DirEntry[] = [];
  try {
    for await (const entry of Deno.readDir(root + folder)) entries.push(entry);
  } catch {
    return; // There is no such folder yet.
  }
  for (const { name, isDirectory } of entries) {
    if (isDirectory) yield* filesBelow(root, `${folder}${name}/`);
    else yield folder + name;
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
