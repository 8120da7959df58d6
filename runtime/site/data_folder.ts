/**
 * Data folder of a site, read at its start: its storage, the name of its disk, the cluster's secret, the admin tokens,
 * certificates.
 *
 * D1  The disk's name lives and dies with its rows: a wiped folder gets another one, and neighbours can tell. The name
 *     is in a record beside the rows, and in a file: where the file has lost it the record has it.
 * D2  Rows without the name of their disk are not opened: under a new name neighbours would count them as lost while
 *     this site still showed them.
 * D3  A store that holds fewer commits than were synced, or less than neighbours have had of it, is not opened: whoever
 *     had seen the newer state would be shown the past. Below the root, where others can make up for it, such a folder
 *     is set aside (lost_folder.ts), and so are files that differ from what was written.
 */
import { replaceFile } from "../../functions/client/replace_file.ts";
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Storage } from "../../store/model/ports.ts";
import { AdminTokens, type TokenRoles } from "../deploy/mod.ts";
import { openDenoKv } from "../storage/denokv.ts";
import { type DiskReport, FilesSpoiled } from "../storage/disk_report.ts";
import { MemoryStorage } from "../storage/memory.ts";
import { openSqlite } from "../storage/sqlite.ts";
import { AdminTokenFile } from "./admin_token_file.ts";
import { ConfigError, type SiteConfig } from "./config.ts";
import { notOpened, olderMark, setAside, witnessOf } from "./lost_folder.ts";

/** Storage of a site, open. */
export interface OpenedData {
  readonly storage: Storage;
  /** Name of this disk, from its first start on. */
  readonly disk: string;
}

/** Events that opening a site's data tells beside those of any storage. */
export interface DataReport extends DiskReport {
  /** Called when a folder was set aside, with the reason, and where it lies. */
  readonly lost?: (folder: string, why: string, aside: string) => void;
  /** Called when the file with the disk's name was not what it should be, and was written anew. */
  readonly renamed?: (file: string) => void;
}

/** Folders whose rows are as old as the store's in a copy of a whole site. */
const BESIDE = ["homes", "ended", "queues"];

/** Opens the storage that the site file names. @throws StoreUnavailable `disk_failed` */
export async function openData(config: SiteConfig, report: DataReport): Promise<OpenedData> {
  if (config.engine === "memory") return { storage: new MemoryStorage(), disk: crypto.randomUUID() };
  await Deno.mkdir(config.data, { recursive: true, mode: 0o700 });
  const folder = `${config.data}/store`;
  await setOlderAside(config, report);
  const open = async () => {
    const storage = config.engine === "denokv"
      ? await openDenoKv({ folder, witness: witnessOf(folder) }, report)
      : openSqlite(folder, report, witnessOf(folder));
    return await current(folder, storage);
  };
  const storage = await openOrSetAside(folder, { open, isLast: config.parent === null, report });
  try {
    return { storage, disk: await diskName(`${folder}/disk`, storage, report) };
  } catch (error) {
    await storage.close();
    throw error;
  }
}

/**
 * Sets all folders aside when neighbours have had more of this site than they hold: that is a copy of a whole site, of
 * which no part can be told to be newer.
 */
async function setOlderAside(config: SiteConfig, report: DataReport): Promise<void> {
  const why = await olderMark(`${config.data}/store`);
  if (why === null || config.parent === null) return;
  for (const name of [...BESIDE, "store"]) { // the mark goes last
    const folder = `${config.data}/${name}`;
    if (!await Deno.stat(folder).then(() => true, () => false)) continue;
    report.lost?.(folder, why, await setAside(folder, why));
  }
}

/**
 * Opens a folder; where its files are not what they should be it is set aside, and a blank one opened in its place.
 *
 * @param isLast true where no other site can make up for the folder: spoiled files are an error then.
 * @throws StoreUnavailable `disk_failed`
 */
export async function openOrSetAside<Opened>(
  folder: string,
  { open, isLast, report }: {
    readonly open: () => Opened | Promise<Opened>;
    readonly isLast: boolean;
    readonly report: DataReport;
  },
): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof FilesSpoiled)) throw error;
    if (isLast) throw notOpened(error);
    report.lost?.(folder, error.why, await setAside(folder, error.why));
    return await open();
  }
}

/** Returns an opened storage, unless it has fewer commits than were synced (D3). @throws FilesSpoiled */
export async function current<Opened extends Storage & { readonly wentBack: boolean }>(
  folder: string,
  storage: Opened,
): Promise<Opened> {
  if (!storage.wentBack) return storage;
  await storage.close();
  throw new FilesSpoiled(
    folder,
    "the disk went back: there are fewer commits than were synced, so what was acknowledged since is gone",
  );
}

const NAME = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const NAME_RECORD = "disk";

/** Returns the disk's name; a new one for a blank disk (D1, D2). @throws StoreUnavailable `disk_failed` */
async function diskName(path: string, storage: Storage, report: DataReport): Promise<string> {
  const found = await Deno.readTextFile(path).catch((error: unknown) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  const records = await storage.load(), record = records.get(NAME_RECORD);
  const inFile = found !== null && NAME.test(found.trim()) ? found.trim() : null;
  const known = record === undefined ? inFile : new TextDecoder().decode(record);
  const isBlank = found === null && records.size === 0;
  if (known === null && !isBlank) {
    throw new StoreUnavailable(
      "disk_failed",
      `${path} ${
        found === null ? "is missing" : "holds no name of a disk"
      }, and there are rows beside it: put back the file ` +
        `from the same copy as the rows, or empty the folder, and the site starts as after the loss of its disk`,
    );
  }
  const name = known ?? crypto.randomUUID();
  if (record === undefined) {
    const bytes = new TextEncoder().encode(name);
    await storage.commit({ rows: [], drop: [], records: new Map([[NAME_RECORD, bytes]]) });
  }
  if (name === inFile) return name;
  if (!isBlank) report.renamed?.(path);
  (await replaceFile(Deno, path, name + "\n")).close();
  return name;
}

/** Returns the cluster's secrets, newest first: one a line of the secret file, each at least 16 bytes of text. */
export async function readSecrets(
  config: Pick<SiteConfig, "secretFile">,
): Promise<[Uint8Array, ...Uint8Array[]]> {
  const text = await readOwn(config.secretFile, "secretFile");
  const lines = text.split("\n").map((line) => line.trim()).filter((line) =>
    line !== "" && !line.startsWith("#")
  );
  const [first, ...rest] = lines.map((line) => new TextEncoder().encode(line));
  if (first === undefined || lines.some((line) => line.length < 16)) {
    throw new ConfigError(
      `secretFile: ${config.secretFile} holds ${lines.length} secrets; expected one a line, each of at least 16 characters`,
    );
  }
  return [first, ...rest];
}

/** Returns the admin tokens that the site file names; none where it names no file. */
export function readAdminTokens(
  config: SiteConfig,
  note: (event: string, fields: Record<string, unknown>) => void,
): TokenRoles {
  const { adminTokenFile } = config;
  return adminTokenFile === undefined ? new AdminTokens("") : AdminTokenFile.open(adminTokenFile, note);
}

/** Contents of a site's TLS files. */
export interface TlsFiles {
  /** Certificate and key to listen with; null where the site only dials with TLS. */
  readonly own: { readonly cert: string; readonly key: string } | null;
  readonly caCerts: readonly string[];
}

/** Reads the files of `tls`; null where the site file has none. */
export async function readTls(config: SiteConfig): Promise<TlsFiles | null> {
  const { tls } = config;
  if (tls === undefined) return null;
  const { cert, key, ca } = tls;
  return {
    own: cert === undefined || key === undefined ? null : {
      cert: await readPem(cert, "tls.cert", /-----BEGIN CERTIFICATE-----/),
      key: await readPem(key, "tls.key", /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/),
    },
    caCerts: ca === undefined ? [] : [await readPem(ca, "tls.ca", /-----BEGIN CERTIFICATE-----/)],
  };
}

async function readPem(path: string, field: string, begins: RegExp): Promise<string> {
  const text = await readOwn(path, field);
  if (begins.test(text)) return text;
  const expected = field === "tls.key"
    ? "an unencrypted private key in PEM"
    : "a certificate in PEM, -----BEGIN CERTIFICATE-----";
  throw new ConfigError(`${field}: ${path} holds no such thing; expected ${expected}`);
}

async function readOwn(path: string, field: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    throw new ConfigError(`${field}: cannot read ${path}: ${error instanceof Error ? error.message : error}`);
  }
}
