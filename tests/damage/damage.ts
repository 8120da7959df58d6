/** What is done to the files of a site that does not run: one file, or the files of one database, at drawn places. */
import { join } from "node:path";
import type { Draws } from "../sim/random.ts";
import { copyFolder } from "./past.ts";
import { SITES, type TreeSite } from "./tree.ts";

/** One damage, in words that name what was done. */
export interface Damage {
  readonly site: TreeSite;
  readonly says: string;
  /** An older copy of all that a folder has, `commits` among it: nothing in it can tell. */
  readonly isCopy: boolean;
  /** The folder, or the file, relative to the site's. */
  readonly path: string;
}

const KINDS = {
  cut: 4,
  flip: 5,
  zero: 3,
  remove: 3,
  older: 3,
  /** A database and its log, older than what is beside them. */
  olderDatabase: 3,
  /** All of a folder, as after `cp -r` of an old backup. */
  olderFolder: 2,
  /** All that the site has. */
  olderSite: 3,
} as const;
const FLIPS_MAX = 25, PAGE_BYTES = 4_096;

/** Files of a site, as paths from its folder. */
async function filesOf(folder: string, under = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(folder, under))) {
    const path = under === "" ? name : `${under}/${name}`;
    if (isDirectory) found.push(...await filesOf(folder, path));
    else found.push(path);
  }
  return found.sort();
}

const isThere = async (path: string): Promise<boolean> => await Deno.stat(path).then(() => true, () => false);

/** Damages one site's files. @param before folders of all sites, as they were some time ago. */
export async function damage(draws: Draws, sites: string, before: string): Promise<Damage> {
  const site = draws.pick(SITES).id, folder = join(sites, site), old = join(before, site);
  const kind = draws.weighted(KINDS);
  const done = (says: string, path: string, isCopy = false) => ({
    site,
    path,
    isCopy,
    says: `${site}: ${says}`,
  });
  if (kind === "olderSite") {
    await Deno.remove(folder, { recursive: true });
    await copyFolder(old, folder);
    return done("an older copy of the whole folder", "", true);
  }
  const files = await filesOf(folder);
  const file = draws.pick(files), path = join(folder, file);
  if (kind === "olderFolder" || kind === "olderDatabase") {
    const [database = "store"] = draws.pick(files.filter((name) => name.includes("/"))).split("/");
    const isDatabase = (name: string) => /^(?:rows\.db|root\.kv)/.test(name);
    for (const name of await namesOf(join(folder, database))) {
      if (kind === "olderFolder" || isDatabase(name)) await Deno.remove(join(folder, database, name));
    }
    for (const name of await namesOf(join(old, database))) {
      if (kind === "olderFolder" || isDatabase(name)) {
        await Deno.copyFile(join(old, database, name), join(folder, database, name));
      }
    }
    return done(
      `an older copy of ${kind === "olderFolder" ? "all" : "the database"} in ${database}`,
      database,
      kind === "olderFolder",
    );
  }
  if (kind === "remove") {
    await Deno.remove(path);
    return done(`${file} removed`, file);
  }
  if (kind === "older") {
    if (!await isThere(join(old, file))) {
      await Deno.remove(path);
      return done(`${file}, which was not there before, removed`, file);
    }
    await Deno.copyFile(join(old, file), path);
    return done(`an older copy of ${file}`, file);
  }
  const bytes = await Deno.readFile(path);
  if (bytes.length === 0) {
    await Deno.remove(path);
    return done(`${file}, which was empty, removed`, file);
  }
  const says = spoil(draws, kind, bytes);
  await Deno.writeFile(path, kind === "cut" ? bytes.subarray(0, says.at) : bytes);
  return done(`${file} ${says.text}`, file);
}

async function namesOf(folder: string): Promise<string[]> {
  const names: string[] = [];
  if (await isThere(folder)) { for await (const { name } of Deno.readDir(folder)) names.push(name); }
  return names;
}

/** Changes bytes in place; a cut is the caller's. */
function spoil(
  draws: Draws,
  kind: "cut" | "flip" | "zero",
  bytes: Uint8Array,
): { readonly text: string; readonly at: number } {
  const at = draws.integer(0, bytes.length - 1);
  if (kind === "cut") {
    const length = draws.pick([0, at, at, at, Math.floor(bytes.length / 2), at - at % PAGE_BYTES]);
    return { text: `cut to ${length} of ${bytes.length} bytes`, at: length };
  }
  if (kind === "flip") {
    const flips = draws.pick([1, 1, 3, FLIPS_MAX]);
    for (let i = 0; i < flips; i++) {
      const place = draws.integer(0, bytes.length - 1);
      bytes[place] = (bytes[place] ?? 0) ^ (1 << draws.integer(0, 7));
    }
    return { text: `with ${flips} flipped bits`, at };
  }
  const from = draws.pick([at, at - at % PAGE_BYTES]);
  const length = draws.pick([1, 100, PAGE_BYTES, bytes.length]);
  bytes.fill(0, from, from + length);
  return { text: `zeroed from ${from} for ${length} bytes`, at };
}
