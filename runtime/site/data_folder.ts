/**
 * What a site keeps on disk and reads at start: its storage, the name of its disk, the cluster's secret, the admin
 * tokens, certificates.
 *
 * D1  The disk's name lives and dies with its rows: a wiped folder gets another one, and neighbours can tell.
 * D2  Rows without the name of their disk are not taken for anything: under a new name neighbours would count them as lost
 *     while this site still showed them.
 * D3  Rows that are older than what was said of them are not opened: whoever had seen the others would be shown the past.
 */
import { replaceFile } from "../../functions/client/replace_file.ts";
import { StoreUnavailable } from "../../store/api.ts";
import type { Storage } from "../../store/ports.ts";
import { AdminTokens, type TokenRoles } from "../deploy/mod.ts";
import { openDenoKv } from "../storage/denokv.ts";
import type { DiskReport } from "../storage/disk_report.ts";
import { MemoryStorage } from "../storage/memory.ts";
import { openSqlite } from "../storage/sqlite.ts";
import { AdminTokenFile } from "./admin_token_file.ts";
import { ConfigError, type SiteConfig } from "./config.ts";

/** A site's storage, open. */
export interface OpenedData {
  readonly storage: Storage;
  /** Names this disk, from its first start on. */
  readonly disk: string;
}

/** Opens the storage that the site file names. */
export async function openData(config: SiteConfig, report: DiskReport): Promise<OpenedData> {
  if (config.engine === "memory") return { storage: new MemoryStorage(), disk: crypto.randomUUID() };
  await Deno.mkdir(config.data, { recursive: true, mode: 0o700 });
  const folder = `${config.data}/store`;
  const storage = config.engine === "denokv"
    ? await openDenoKv({ folder }, report)
    : openSqlite(folder, report);
  try {
    assertCurrent(folder, storage, config.parent === null);
    return { storage, disk: await diskName(`${folder}/disk`, storage) };
  } catch (error) {
    await storage.close();
    throw error;
  }
}

/** D3 @throws StoreUnavailable `disk_failed` */
export function assertCurrent(
  folder: string,
  { wentBack }: { readonly wentBack: boolean },
  isLast: boolean,
): void {
  if (!wentBack) return;
  const how = isLast
    ? `put back a backup of it, or remove the file \`commits\` in it and go on with what is left, which nobody is told of`
    : `empty the data folder, and the site starts as after the loss of its disk`;
  throw new StoreUnavailable(
    "disk_failed",
    `the disk went back: ${folder} has fewer commits than it had synced, so what was acknowledged since is gone; ${how}`,
  );
}

const NAME = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** D1, D2 @throws StoreUnavailable `disk_failed` */
async function diskName(path: string, storage: Storage): Promise<string> {
  const found = await Deno.readTextFile(path).catch((error: unknown) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (found !== null && NAME.test(found.trim())) return found.trim();
  const isBlank = found === null && (await storage.load()).size === 0;
  if (!isBlank) {
    throw new StoreUnavailable(
      "disk_failed",
      `${path} ${
        found === null ? "is missing" : "holds no name of a disk"
      }, and there are rows beside it: put back the file ` +
        `from the same copy as the rows, or empty the folder, and the site starts as after the loss of its disk`,
    );
  }
  const name = crypto.randomUUID();
  (await replaceFile(Deno, path, name + "\n")).close();
  return name;
}

/** The cluster's secrets, newest first: one a line of the secret file, each at least 16 bytes of text. */
export async function readSecrets(config: SiteConfig): Promise<[Uint8Array, ...Uint8Array[]]> {
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

/** The admin tokens that the site file names; none where it names no file. */
export function readAdminTokens(
  config: SiteConfig,
  note: (event: string, fields: Record<string, unknown>) => void,
): TokenRoles {
  const { adminTokenFile } = config;
  return adminTokenFile === undefined ? new AdminTokens("") : AdminTokenFile.open(adminTokenFile, note);
}

/** What a site's TLS needs, read. */
export interface TlsFiles {
  /** What it listens with; null where it only dials with TLS. */
  readonly own: { readonly cert: string; readonly key: string } | null;
  readonly caCerts: readonly string[];
}

/** The files of `tls`; null where the site file has none. */
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
