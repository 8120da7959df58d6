/**
 * Bytes by their SHA-256: an app's static files, their index, and its source map. Rows like a bundle's chunks,
 * fetched by ordinary reads where they are needed; versions that share a file share its blob.
 *
 *   ["b", "blob", digest]     → {@link BlobRecord}   says that a blob is whole; written again when it is announced
 *   ["b", "part", digest, i]  → tag and raw bytes    part i of its bytes, each of BUNDLE_CHUNK_BYTES but the last
 *
 * Life of a blob at the root: announced (`missing`) → `put` → referred to by a version's rows → swept, once no
 * version refers to it and nobody has announced it for a while.
 *
 * BLB1  A record says `whole` only after all parts are durable and had the digest.
 * BLB2  A version is written only in the turn in which its blobs were seen whole; sweeping takes turns with that.
 * BLB3  A reader never gets bytes that are not the blob's: whole ones are checked against the digest, and a stream ends
 *       with an error where they were not.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Replica, StoreMutation } from "../../store/api/api.ts";
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import { prefixRange, type Range } from "../../store/model/range.ts";
import { BUNDLE_CHUNK_BYTES, taggedBytes } from "./records.ts";
import { decodeSystem, encodeSystem } from "../../store/model/system_value.ts";

type SystemStore = Replica["system"];

/** Pattern of a blob's digest. */
export const DIGEST = /^[0-9a-f]{64}$/;

const blobRecord = z.object({ bytes: z.number().int().min(0), whole: z.boolean(), announcedMs: z.number() });
/** Record of a blob. */
export type BlobRecord = z.infer<typeof blobRecord>;

const recordKey = (digest: string): Key => packKey(["b", "blob", digest]);
const RECORDS: Range = prefixRange(packKey(["b", "blob"]));
const partKey = (digest: string, index: number): Key => packKey(["b", "part", digest, index]);
const partsRange = (digest: string): Range => prefixRange(packKey(["b", "part", digest]));

/** Parts in one write or read: about 2 MB, as for bundles. */
const PARTS_AT_ONCE = 32;
/**
 * Milliseconds that an announced blob stays: a deploy uploads its blobs and then names them; one that has not within
 * this long is over.
 */
export const ANNOUNCED_MS = 10 * 60_000;

/** Outcome of an upload. */
export type StoredBlob = { readonly ok: true } | {
  readonly ok: false;
  readonly code: "limit_bundle" | "deploy_invalid";
  readonly message: string;
};

/** The writer of blobs, at the root. */
export class Blobs {
  readonly #system: SystemStore;
  readonly #nowMs: () => number;
  /** Uploads under way, by digest: the second of two waits, so that neither writes into what the other made whole. */
  readonly #puts = new Map<string, Promise<StoredBlob>>();
  readonly reader: BlobReader;

  constructor(system: SystemStore, nowMs: () => number) {
    this.#system = system;
    this.#nowMs = nowMs;
    this.reader = new BlobReader(system);
  }

  /** Returns which of these blobs are not here; the others stay for a while, whoever refers to them. */
  async missing(digests: readonly string[]): Promise<string[]> {
    const records = await this.#records(digests);
    const missing: string[] = [];
    const again: StoreMutation[] = [];
    const nowMs = this.#nowMs();
    digests.forEach((digest, i) => {
      const record = records[i];
      if (record?.whole !== true) missing.push(digest);
      else if (nowMs - record.announcedMs > ANNOUNCED_MS / 2) {
        again.push(set(digest, { ...record, announcedMs: nowMs }));
      }
    });
    if (again.length > 0) await this.#system.write(again);
    return missing;
  }

  /** Reports whether a blob is whole here and has the stated size; if so, it stays for a while. */
  async has(blob: BlobRef): Promise<boolean> {
    const [record] = await this.#records([blob.sha256]);
    return record?.bytes === blob.bytes && (await this.missing([blob.sha256])).length === 0;
  }

  /** Stores a blob, which may come in pieces; bytes that do not have its digest are not kept (BLB1). */
  async put(digest: string, content: AsyncIterable<Uint8Array>, bytesMax: number): Promise<StoredBlob> {
    const before = this.#puts.get(digest);
    const putting = Promise.resolve(before).catch(() => {}).then(() => this.#put(digest, content, bytesMax));
    this.#puts.set(digest, putting);
    try {
      return await putting;
    } finally {
      if (this.#puts.get(digest) === putting) this.#puts.delete(digest);
    }
  }

  async #put(digest: string, content: AsyncIterable<Uint8Array>, bytesMax: number): Promise<StoredBlob> {
    if ((await this.missing([digest])).length === 0) return { ok: true };
    const announcedMs = this.#nowMs();
    await this.#system.write([set(digest, { bytes: 0, whole: false, announcedMs })]);
    const hash = createHash("sha256");
    let bytes = 0, index = 0;
    let parts: StoreMutation[] = [];
    for await (const value of cut(content)) {
      bytes += value.length;
      if (bytes > bytesMax) {
        return { ok: false, code: "limit_bundle", message: `blob ${digest} has more than ${bytesMax} bytes` };
      }
      hash.update(value);
      parts.push({ kind: "set", key: partKey(digest, index++), value: taggedBytes(value) });
      if (parts.length < PARTS_AT_ONCE) continue;
      await this.#system.write(parts);
      parts = [];
    }
    if (parts.length > 0) await this.#system.write(parts);
    if (hash.digest("hex") !== digest) {
      return {
        ok: false,
        code: "deploy_invalid",
        message: `the ${bytes} bytes sent as blob ${digest} are others`,
      };
    }
    await this.#system.durable();
    await this.#system.write([set(digest, { bytes, whole: true, announcedMs })]);
    await this.#system.durable();
    return { ok: true };
  }

  /**
   * Removes blobs that no version refers to and that were not announced lately; returns how many. Call in a turn (BLB2).
   */
  async sweep(referred: ReadonlySet<string>): Promise<number> {
    const beforeMs = this.#nowMs() - ANNOUNCED_MS;
    let swept = 0;
    for (const row of await this.#system.list(RECORDS)) {
      const digest = String(unpackKey(row.key)[2]);
      if (row.value === null || referred.has(digest)) continue;
      if (blobRecord.parse(decodeSystem(row.value)).announcedMs > beforeMs) continue;
      await this.#remove(digest);
      swept++;
    }
    return swept;
  }

  /** Removes a blob, its parts first: a removal that is cut short is found again by the record. */
  async #remove(digest: string): Promise<void> {
    for (;;) {
      const parts = await this.#system.list(partsRange(digest), { limit: PARTS_AT_ONCE });
      if (parts.length === 0) break;
      await this.#system.write(parts.map((part) => ({ kind: "delete", key: part.key })));
    }
    await this.#system.write([{ kind: "delete", key: recordKey(digest) }]);
  }

  async #records(digests: readonly string[]): Promise<(BlobRecord | undefined)[]> {
    const rows = await this.#system.get(digests.map(recordKey));
    return rows.map((row) => row?.value ? blobRecord.parse(decodeSystem(row.value)) : undefined);
  }
}

const set = (digest: string, record: BlobRecord): StoreMutation => ({
  kind: "set",
  key: recordKey(digest),
  value: encodeSystem(record),
});

/** Cuts pieces, as they come, to the size of a part. */
async function* cut(content: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array<ArrayBuffer>> {
  let part = new Uint8Array(BUNDLE_CHUNK_BYTES);
  let filled = 0;
  for await (const piece of content) {
    for (let at = 0; at < piece.length;) {
      const taken = piece.subarray(at, at + BUNDLE_CHUNK_BYTES - filled);
      part.set(taken, filled);
      filled += taken.length;
      at += taken.length;
      if (filled < BUNDLE_CHUNK_BYTES) continue;
      yield part;
      part = new Uint8Array(BUNDLE_CHUNK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield part.slice(0, filled);
}

/** Digest and size of a blob. */
export interface BlobRef {
  readonly sha256: string;
  readonly bytes: number;
}

/** Bytes of the largest blob that is read whole: larger ones are streamed from the replica, which has them on disk. */
const WHOLE_BYTES_MAX = 1024 * 1024;
/** Bytes of blobs kept in memory at a site; the one used longest ago goes first. */
const CACHE_BYTES = 32 * 1024 * 1024;

/** Reads blobs at any site, which fetches from its parent those that it lacks. */
export class BlobReader {
  readonly #system: SystemStore;
  readonly #cache = new Map<string, { bytes: number; read: Promise<Uint8Array<ArrayBuffer>> }>();
  #cached = 0;

  constructor(system: SystemStore) {
    this.#system = system;
  }

  /** Returns a blob's bytes, checked; kept in memory for the next caller. @throws Error where it is not whole here. */
  whole(blob: BlobRef): Promise<Uint8Array<ArrayBuffer>> {
    const known = this.#cache.get(blob.sha256);
    this.#cache.delete(blob.sha256); // and in again, as the newest
    const entry = known ?? { bytes: blob.bytes, read: this.#read(blob) };
    this.#cache.set(blob.sha256, entry);
    if (known === undefined) {
      this.#cached += blob.bytes;
      entry.read.catch(() => this.#drop(blob.sha256)); // the next caller tries again
      for (const oldest of this.#cache.keys()) {
        if (this.#cached <= CACHE_BYTES || oldest === blob.sha256) break;
        this.#drop(oldest);
      }
    }
    return entry.read;
  }

  /**
   * Returns a blob's bytes, checked and not kept, for a caller that keeps what it makes of them. @throws Error where
   * the blob is not whole here.
   */
  once(blob: BlobRef): Promise<Uint8Array<ArrayBuffer>> {
    return this.#read(blob);
  }

  /** Returns a blob, or a part of it, as a body: from memory where it is small, else streamed. */
  async body(blob: BlobRef, part?: { readonly from: number; readonly to: number }): Promise<BodyInit> {
    if (blob.bytes > WHOLE_BYTES_MAX) return await this.#stream(blob, part);
    const bytes = await this.whole(blob);
    return part === undefined ? bytes : bytes.subarray(part.from, part.to + 1);
  }

  #drop(digest: string): void {
    this.#cached -= this.#cache.get(digest)?.bytes ?? 0;
    this.#cache.delete(digest);
  }

  async #read(blob: BlobRef): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(blob.bytes);
    let at = 0;
    for await (const part of this.#parts(blob, 0)) {
      bytes.set(part, at);
      at += part.length;
    }
    if (createHash("sha256").update(bytes).digest("hex") !== blob.sha256) throw notWhole(blob);
    return bytes;
  }

  /** Yields a blob's parts from one on. @throws Error where one is missing or has another size. */
  async *#parts(blob: BlobRef, first: number): AsyncIterable<Uint8Array> {
    const count = Math.ceil(blob.bytes / BUNDLE_CHUNK_BYTES);
    for (let at = first; at < count; at += PARTS_AT_ONCE) {
      const end = Math.min(at + PARTS_AT_ONCE, count);
      const range = { start: partKey(blob.sha256, at), end: partKey(blob.sha256, end) };
      const rows = await this.#system.list(range);
      if (rows.length !== end - at) throw notWhole(blob);
      for (const [i, row] of rows.entries()) {
        const bytes = Math.min(BUNDLE_CHUNK_BYTES, blob.bytes - (at + i) * BUNDLE_CHUNK_BYTES);
        if (row.value?.length !== bytes + 1) throw notWhole(blob);
        yield row.value.subarray(1);
      }
    }
  }

  /**
   * Streams a blob. The first part is read before this resolves, so that a blob that is not here is an error and no
   * broken body.
   */
  async #stream(blob: BlobRef, part?: { from: number; to: number }): Promise<ReadableStream<Uint8Array>> {
    const { from, to } = part ?? { from: 0, to: blob.bytes - 1 };
    const first = Math.floor(from / BUNDLE_CHUNK_BYTES);
    const parts = this.#parts(blob, first)[Symbol.asyncIterator]();
    const hash = part === undefined ? createHash("sha256") : null;
    let at = first * BUNDLE_CHUNK_BYTES;
    let next: Promise<IteratorResult<Uint8Array>> | null = parts.next();
    await next;
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { value, done } = await (next ?? parts.next());
        next = null;
        if (done === true) return controller.close();
        hash?.update(value);
        const last = at + value.length > to;
        if (last && hash !== null && hash.digest("hex") !== blob.sha256) throw notWhole(blob); // BLB3
        controller.enqueue(value.slice(Math.max(from - at, 0), Math.min(to + 1 - at, value.length)));
        at += value.length;
        if (last) {
          await parts.return?.();
          controller.close();
        }
      },
      cancel: async () => void await parts.return?.(),
    }, { highWaterMark: 0 });
  }
}

const notWhole = (blob: BlobRef): Error =>
  new Error(`blob ${blob.sha256} of ${blob.bytes} bytes is not whole here`);
