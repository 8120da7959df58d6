/**
 * `sojourn backup`: a copy of all that a site has on disk, or of a whole tree, while it serves.
 *
 * BU1  A file under the backup's name is always whole: incoming bytes are written beside it, compared, synced, and only
 *      then renamed.
 * BU2  The copies of a tree fit together: every site holds back messages of others before the first has its moment
 *      (runtime/backup/site_backups.ts SB3). Where a hold had ended too early, all begin again.
 */
import { createHash } from "node:crypto";
import { statfsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { z } from "zod";
import { syncFolder } from "../../functions/client/replace_file.ts";
import { ArchiveError, ArchiveReader, type BackupManifest } from "../backup/archive.ts";
import { AdminClient } from "../deploy/client.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { Silence } from "../deploy/silence.ts";
import { pause } from "../observe/pause.ts";
import { CLUSTER_OPTIONS, findSite } from "./cluster.ts";
import { type Command, EXIT, type ExitCode, type Parsed, type Shell, UsageError } from "./command.ts";

const CUT_BYTES = 16;
const LOOK_MS = 100;
/** Milliseconds of a call: none takes longer than a moment, as slow work is polled. */
const CALL_MS_MAX = 30_000;
/** Tries of a hold, which lasts a second (runtime/link/hold.ts): machines that are busy may need some. */
const TRIES = 5;
/** Milliseconds of work after which progress is told. */
const QUIET_MS = 1_000;

/** Ending of a backup's name in a folder. */
const ENDING = ".sojourn";

/** `sojourn backup FILE [--site SITE]`, `sojourn backup FOLDER --tree` */
export const backup: Command = {
  name: "backup",
  usage: "FILE [--site SITE] | FOLDER --tree",
  summary: [
    "Copies all that a site has on disk into one file, as of one moment, while it serves: rows, logs of stateful",
    "sessions, and at the root who is at home where. With --tree every site of the cluster, each into FOLDER/SITE.sojourn,",
    "all as of moments that fit together: that is what a tree with its stateful sessions is restored from. Requests",
    "wait for the moment, less than a second. The files hold rows as they are: keep them as you keep the disks.",
    "`sojourn restore` puts them back.",
  ].join("\n"),
  options: {
    ...CLUSTER_OPTIONS,
    site: { type: "string", value: "SITE", says: "the site to be copied; the root by default" },
    tree: { type: "boolean", says: "every site of the cluster, into a folder" },
  },
  words: [1, 1],
  async run(args, shell) {
    const [path = ""] = args.words, one = args.text("site"), isTree = args.flag("tree");
    if (isTree && one !== undefined) {
      throw new UsageError("--tree takes every site: --site makes no sense with it");
    }
    const client = new AdminClient({ ...await findSite(args, shell), changeMs: CALL_MS_MAX });
    const known = await client.sites();
    const root = known.find(({ parent }) => parent === null)?.id;
    const sites = isTree ? known.map(({ id }) => id) : [one ?? root ?? ""];
    const to = (site: string) => resolve(isTree ? join(path, site + ENDING) : path);
    if (isTree) {
      await Deno.mkdir(path, { recursive: true, mode: 0o700 }).catch((error) => notWritten(path, error));
    }
    for (const site of sites) await assertAbsent(to(site));
    return await new Backups({ client, shell, args, to }).run(sites, isTree);
  },
};

const stateSchema = z.object({
  state: z.enum(["prepared", "copying", "ready", "failed"]),
  copiedBytes: z.number(),
  bytes: z.number(),
  why: z.string().optional(),
});

/** A file that was written. */
interface Made {
  readonly site: string;
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly at: string;
}

class Backups {
  readonly #client: AdminClient;
  readonly #shell: Shell;
  readonly #args: Parsed;
  readonly #to: (site: string) => string;
  readonly #stop: AbortSignal;
  readonly #begunMs = performance.now();

  constructor({ client, shell, args, to }: {
    readonly client: AdminClient;
    readonly shell: Shell;
    readonly args: Parsed;
    readonly to: (site: string) => string;
  }) {
    this.#client = client;
    this.#shell = shell;
    this.#args = args;
    this.#to = to;
    this.#stop = shell.interrupted?.() ?? new AbortController().signal;
  }

  async run(sites: readonly string[], isTree: boolean): Promise<ExitCode> {
    const { taken, missing } = await this.#take(sites, isTree);
    const made: Made[] = [];
    try {
      for (const site of taken.sites) made.push(await this.#fetched(site, taken.cut));
    } catch (error) {
      // Some of the files of one moment are of no use, and would look like all of them.
      for (const { file } of made) await removed(file);
      throw error;
    } finally {
      await Promise.all(taken.sites.map((site) => this.#dropped(site, taken.cut)));
    }
    if (this.#args.json) this.#shell.out(JSON.stringify({ cut: taken.cut, files: made, missing }));
    else {
      for (const { file, site, bytes, at, sha256 } of made) {
        this.#shell.out(`${file}: ${site} as of ${at}, ${sizeText(bytes)}, SHA-256 ${sha256}`);
      }
    }
    for (const site of missing) this.#shell.err(`${site} does not answer: what it has is in no file`);
    return missing.length === 0 ? EXIT.done : EXIT.partly;
  }

  /** Takes the moment of all sites; those that do not answer are left out of a tree. */
  async #take(sites: readonly string[], isTree: boolean): Promise<{
    readonly taken: { readonly cut: string; readonly sites: readonly string[] };
    readonly missing: readonly string[];
  }> {
    for (let tried = 1;; tried++) {
      const cut = crypto.getRandomValues(new Uint8Array(CUT_BYTES)).toHex();
      const missing: string[] = [], there: string[] = [];
      const each = (method: "PUT" | "POST", step: string) =>
        Promise.all(there.map((site) => this.#client.call(method, pathOf(site, cut) + step)));
      try {
        const prepared = await Promise.all(
          sites.map((site) =>
            this.#client.call("PUT", pathOf(site, cut)).then(
              () => null,
              (error: unknown) => isTree && isAway(error) ? site : Promise.reject(error),
            )
          ),
        );
        missing.push(...prepared.filter((site) => site !== null));
        there.push(...sites.filter((site) => !missing.includes(site)));
        if (isTree) await each("POST", "/hold");
        await each("POST", isTree ? "/take?held=1" : "/take");
        return { taken: { cut, sites: there }, missing };
      } catch (error) {
        await Promise.all(sites.map((site) => this.#dropped(site, cut)));
        const isAgain = error instanceof AdminError && error.code === "interrupted" && tried < TRIES;
        if (!isAgain || this.#stop.aborted) throw error;
        this.#tell(`once more: ${error.message}`);
        await pause(QUIET_MS, this.#stop);
      }
    }
  }

  /** Waits for the copy of a site, and fetches it. */
  async #fetched(site: string, cut: string): Promise<Made> {
    for (let toldMs = 0;;) {
      const state = stateSchema.parse(await this.#client.call("GET", pathOf(site, cut)));
      if (state.state === "ready") break;
      if (state.state === "failed") {
        throw new AdminError(
          "backup_failed",
          `${site} could not copy its disk: ${state.why ?? "it does not say why"}`,
        );
      }
      this.#assertGoesOn();
      if (performance.now() - Math.max(toldMs, this.#begunMs) > QUIET_MS) {
        toldMs = performance.now();
        this.#tell(`${site} copies: ${sizeText(state.copiedBytes)} of ${sizeText(state.bytes)}`);
      }
      await pause(LOOK_MS, this.#stop);
    }
    const file = this.#to(site);
    using silence = new Silence(this.#stop);
    const { bytes, body } = await this.#client.content(`${pathOf(site, cut)}/content`, silence.signal);
    assertRoom(dirname(file), bytes ?? 0);
    return await this.#written({ site, cut }, { file, body, bytes, silence });
  }

  /** Writes a backup to its file (BU1). */
  async #written(
    { site, cut }: { readonly site: string; readonly cut: string },
    { file, body, bytes, silence }: {
      readonly file: string;
      readonly body: ReadableStream<Uint8Array>;
      readonly bytes: number | null;
      readonly silence: Silence;
    },
  ): Promise<Made> {
    const aside = `${file}.new`, hash = createHash("sha256");
    let manifest: BackupManifest | undefined, written = 0, toldMs = performance.now();
    const reader = new ArchiveReader({ manifest: (found) => void (manifest = found) });
    await removed(aside);
    let open: Deno.FsFile;
    try {
      open = await Deno.open(aside, { write: true, createNew: true, mode: 0o600 });
    } catch (error) {
      return notWritten(aside, error);
    }
    try {
      try {
        for await (const chunk of body) {
          silence.begins();
          reader.push(chunk);
          hash.update(chunk);
          for (let at = 0; at < chunk.length;) at += await open.write(chunk.subarray(at));
          written += chunk.length;
          if (performance.now() - toldMs > QUIET_MS) {
            toldMs = performance.now();
            this.#tell(
              `${site} sends: ${sizeText(written)}${bytes === null ? "" : ` of ${sizeText(bytes)}`}`,
            );
          }
        }
        reader.end();
        await open.sync();
      } finally {
        open.close();
      }
      if (manifest?.site !== site || manifest.cut !== cut) {
        const came = `${manifest?.site} and moment ${manifest?.cut}`;
        throw new AdminError("backup_failed", `what came is of ${came}, and ${site} was asked for ${cut}`);
      }
      await Deno.rename(aside, file);
      await syncFolder(Deno, dirname(file));
      return { site, file, bytes: written, sha256: hash.digest("hex"), at: manifest.at };
    } catch (error) {
      await removed(aside);
      this.#assertGoesOn();
      if (error instanceof AdminError) throw error;
      if (error instanceof ArchiveError) {
        throw new AdminError(error.code, `what ${site} sent: ${error.message}`);
      }
      throw new AdminError("backup_failed", `${basename(file)} could not be fetched: ${messageOf(error)}`);
    }
  }

  #assertGoesOn(): void {
    if (this.#stop.aborted) {
      throw new AdminError("interrupted", "the backup was given up; nothing of it is left");
    }
  }

  async #dropped(site: string, cut: string): Promise<void> {
    await this.#client.call("DELETE", pathOf(site, cut)).catch(() => {}); // else the site drops it by itself
  }

  #tell(text: string): void {
    this.#shell.err(text);
  }
}

const pathOf = (site: string, cut: string): string => `/sites/${encodeURIComponent(site)}/backups/${cut}`;

const isAway = (error: unknown): boolean =>
  error instanceof AdminError && (error.code === "store_unreachable" || error.code === "not_ready");

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error);

function notWritten(path: string, error: unknown): never {
  throw new AdminError("file_not_written", `${path} cannot be written: ${messageOf(error)}`);
}

async function assertAbsent(file: string): Promise<void> {
  const found = await Deno.stat(file).then(() => true, () => false);
  if (found) throw new AdminError("file_exists", `${file} is there already: give another name, or remove it`);
}

function assertRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= bytes) return;
  throw new AdminError(
    "file_not_written",
    `${folder} has room for ${sizeText(bavail * bsize)}, and the backup has ${sizeText(bytes)}`,
  );
}

async function removed(path: string): Promise<void> {
  await Deno.remove(path).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

/** Returns a size for people. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}
