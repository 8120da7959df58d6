/**
 * Format of the file of a site's backup (docs/protocol/backups.md): a manifest that names the parts by size and
 * SHA-256, a MAC over it under the cluster's secret, the parts one after the other.
 *
 * BA1  A file made without a secret of the cluster is not taken for a backup: the MAC is over the manifest, and the
 *      manifest has the digest of every byte after it.
 * BA2  Each read from a file is bounded beforehand, and names come from the format, never from the file: no part has
 *      another name than those of a site's data folder.
 * BA3  A file that was cut, changed anywhere, or has more than its manifest says, is refused.
 */
import { createHash, createHmac, type Hash, hkdfSync, timingSafeEqual } from "node:crypto";
import { Buffer } from "node:buffer";
import { z } from "zod";

const MAGIC = "sojourn backup ", FORMAT = 1;
const HEAD = new TextEncoder().encode(`${MAGIC}${FORMAT}\n`);
/**
 * Bytes of the longest manifest: twenty parts at most, each of some 120 bytes; the rest is for fields of releases to
 * come.
 */
const MANIFEST_BYTES_MAX = 64 * 1024;
const LENGTH_BYTES = 4, MAC_BYTES = 32, FINGERPRINT_BYTES = 8;
/** Bytes of the largest part: a petabyte; a size beyond it is no size. */
const PART_BYTES_MAX = 2 ** 50;

/** Folders of a site's data that a backup has. Those whose database another thread writes come last. */
export const FOLDERS = ["homes", "ended", "queues", "arbiter", "outcomes", "store"] as const;
/** Files of a folder: the mark of its engine, the disk's name, the database. */
export const FOLDER_FILES = ["SOJOURN", "disk", "rows.db", "root.kv"] as const;
/** Files beside the folders. */
export const SITE_FILES = ["parent.json"] as const;

/** All names that a part may have (BA2). */
export const PART_NAMES: readonly string[] = [
  ...SITE_FILES,
  ...FOLDERS.flatMap((folder) => FOLDER_FILES.map((file) => `${folder}/${file}`)),
];

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const partSchema = z.strictObject({
  name: z.string().refine((name) => PART_NAMES.includes(name), "is no file of a site's data"),
  bytes: z.int().min(0).max(PART_BYTES_MAX),
  sha256,
});

const manifestSchema = z.object({
  site: z.string().regex(/^[a-z][a-z0-9-]{0,39}$/),
  /** Id of the parent; null at the root. */
  parent: z.string().nullable(),
  tier: z.string(),
  engine: z.enum(["denokv", "sqlite"]),
  /** Release that wrote the backup. */
  release: z.string(),
  /** Time of the site at the moment of the copies, in ISO 8601. */
  at: z.iso.datetime(),
  /** Name of the moment: copies of several sites that share it fit together. */
  cut: z.string().regex(/^[0-9a-f]{32}$/),
  /** Number of the site's incarnation; 0: it had none yet. */
  incarnation: z.int().min(0),
  /** Position of the end of the site's journal at that moment, or before. */
  position: z.int().min(0),
  /** Number of rows that waited for the parent. */
  pending: z.int().min(0),
  /**
   * Fingerprints of the secrets that were in force, and of those in force at an earlier backup that the site was
   * restored from.
   */
  secrets: z.array(z.string().regex(/^[0-9a-f]{16}$/)).min(1).max(100),
  parts: z.array(partSchema).min(1).max(PART_NAMES.length),
}).refine(
  ({ parts }) => new Set(parts.map(({ name }) => name)).size === parts.length,
  "names a part twice",
);

/** Manifest of a backup. */
export type BackupManifest = z.infer<typeof manifestSchema>;
/** A file of a site's data in a backup. */
export type BackupPart = BackupManifest["parts"][number];

/** Error for a file that is not taken. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
  constructor(
    readonly code: "backup_invalid" | "backup_newer" | "backup_forged" | "backup_cut_off" | "backup_damaged",
    message: string,
  ) {
    super(message);
  }
}

const derive = (secret: Uint8Array, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, new Uint8Array(), `sojourn ${purpose}`, bytes));

/** Returns a fingerprint, which tells one secret from another, and nothing else of it. */
export const fingerprintOf = (secret: Uint8Array): string =>
  derive(secret, "backup fingerprint", FINGERPRINT_BYTES).toString("hex");

const macOf = (secret: Uint8Array, bytes: Uint8Array): Buffer =>
  createHmac("sha256", derive(secret, "backup key", 32)).update(bytes).digest();

/** Encodes the bytes before the first part. */
export function encodeArchiveHead(manifest: BackupManifest, secret: Uint8Array): Uint8Array<ArrayBuffer> {
  const json = Buffer.from(JSON.stringify(manifestSchema.parse(manifest)));
  if (json.length > MANIFEST_BYTES_MAX) {
    throw new RangeError(`a manifest has at most ${MANIFEST_BYTES_MAX} bytes, not ${json.length}`);
  }
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(json.length);
  const signed = Buffer.concat([HEAD, length, json]);
  return new Uint8Array(Buffer.concat([signed, macOf(secret, signed)]));
}

/** Returns the size of a whole file. */
export const archiveBytes = (head: Uint8Array, { parts }: BackupManifest): number =>
  parts.reduce((sum, { bytes }) => sum + bytes, head.length);

/** Events of reading a file, in order: the manifest once, then the bytes of each part. */
export interface ArchiveEvents {
  /**
   * Called with the manifest. @param isSignedBy whether a secret of the cluster made its MAC; where none did it is
   * forged.
   */
  manifest?(manifest: BackupManifest, isSignedBy: (secret: Uint8Array) => boolean): void;
  /** Called with bytes of a part, not yet compared with its digest. */
  bytes?(part: BackupPart, bytes: Uint8Array): void;
  /** Called when a part is whole, and fits the manifest. */
  part?(part: BackupPart): void;
}

/** Reads a file that comes in pieces of any size. */
export class ArchiveReader {
  readonly #events: ArchiveEvents;
  /** Bytes of the head that have come. */
  #head = Buffer.alloc(0);
  #manifest: BackupManifest | null = null;
  #index = 0;
  #left = 0;
  #hash: Hash = createHash("sha256");

  constructor(events: ArchiveEvents) {
    this.#events = events;
  }

  /** Takes a piece of the file. @throws ArchiveError */
  push(bytes: Uint8Array): void {
    let rest: Uint8Array = bytes;
    if (this.#manifest === null) {
      this.#head = Buffer.concat([this.#head, bytes]);
      const end = this.#readHead();
      if (end === null) return;
      rest = this.#head.subarray(end);
      this.#head = Buffer.alloc(0);
    }
    while (rest.length > 0) {
      const part = this.#manifest?.parts[this.#index];
      if (part === undefined) {
        throw new ArchiveError("backup_damaged", "there is more in the file than its manifest says");
      }
      const taken = rest.subarray(0, this.#left);
      rest = rest.subarray(taken.length);
      this.#left -= taken.length;
      this.#hash.update(taken);
      this.#events.bytes?.(part, taken);
      if (this.#left === 0) this.#finish(part);
    }
  }

  /** Ends the file. @throws ArchiveError */
  end(): BackupManifest {
    const manifest = this.#manifest;
    if (manifest === null) {
      this.#assertMagic();
      throw new ArchiveError("backup_cut_off", "the file ends within its manifest");
    }
    const part = manifest.parts[this.#index];
    if (part !== undefined) {
      throw new ArchiveError(
        "backup_cut_off",
        `the file ends ${this.#left} bytes before the end of ${part.name}`,
      );
    }
    return manifest;
  }

  #finish(part: BackupPart): void {
    const found = this.#hash.digest("hex");
    if (found !== part.sha256) {
      throw new ArchiveError(
        "backup_damaged",
        `${part.name} is not what was written: its SHA-256 is ${found}, and the manifest says ${part.sha256}`,
      );
    }
    this.#events.part?.(part);
    this.#index++;
    this.#begin();
  }

  /** Begins the next part that has any bytes. */
  #begin(): void {
    const part = this.#manifest?.parts[this.#index];
    this.#hash = createHash("sha256");
    this.#left = part?.bytes ?? 0;
    if (part !== undefined && part.bytes === 0) this.#finish(part);
  }

  #assertMagic(): void {
    const text = this.#head.subarray(0, HEAD.length).toString("latin1");
    const newer = /^sojourn backup (\d{1,4})(?:\n|$)/.exec(text)?.[1];
    if (newer !== undefined && Number(newer) > FORMAT) {
      throw new ArchiveError(
        "backup_newer",
        `the file has format ${newer}, and this release reads ${FORMAT}: take the release that wrote it, or a later one`,
      );
    }
    const expected = Buffer.from(HEAD.subarray(0, this.#head.length)).toString("latin1");
    if (text !== expected || text === "") {
      throw new ArchiveError("backup_invalid", "the file is no backup of a site: it does not begin as one");
    }
  }

  /** Reads the head, and returns the offset at which the parts begin; null: more has to come. */
  #readHead(): number | null {
    const head = this.#head;
    this.#assertMagic();
    const at = HEAD.length + LENGTH_BYTES;
    if (head.length < at) return null;
    const length = head.readUInt32BE(HEAD.length);
    if (length > MANIFEST_BYTES_MAX) {
      throw new ArchiveError(
        "backup_invalid",
        `its manifest has ${length} bytes; at most ${MANIFEST_BYTES_MAX} are read`,
      );
    }
    const end = at + length + MAC_BYTES;
    if (head.length < end) return null;
    const signed = head.subarray(0, at + length), mac = head.subarray(at + length, end);
    const manifest = parseManifest(head.subarray(at, at + length));
    this.#manifest = manifest;
    this.#events.manifest?.(manifest, (secret) => timingSafeEqual(macOf(secret, signed), mac));
    this.#begin();
    return end;
  }
}

function parseManifest(json: Uint8Array): BackupManifest {
  try {
    return manifestSchema.parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json)));
  } catch (error) {
    const why = error instanceof z.ZodError
      ? z.prettifyError(error)
      : error instanceof Error
      ? error.message
      : "";
    throw new ArchiveError("backup_invalid", `its manifest can't be read: ${why}`);
  }
}

/** Checks the signature. @throws ArchiveError where no secret of these signed the file (BA1). */
export function assertSigned(
  isSignedBy: (secret: Uint8Array) => boolean,
  secrets: readonly Uint8Array[],
): void {
  if (secrets.some(isSignedBy)) return;
  throw new ArchiveError(
    "backup_forged",
    "no secret that was given signed this file: it is of another cluster, was made under another secret, or is forged",
  );
}
