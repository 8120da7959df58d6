/**
 * Parts of states on this site's disk: taken, named by a base, read, dropped (state_parts.ts has their life).
 *
 * KP1  What a base names is what its mark says, part by part, or it is refused and nothing is changed.
 * KP2  An upload for an earlier base than one that has come changes nothing; one for a later base begins anew. Of one
 *      base a part is taken once.
 * KP3  After a crash the numbers of parts that no base names are known (["u"]): the next upload takes their place, and the
 *      next base, or the end of the log, drops what is left.
 */
import type { Storage } from "../../../store/model/ports.ts";
import { Reader, Writer } from "../../../store/model/codec.ts";
import type { Base } from "./asks.ts";
import type { GroupCommit } from "./group_commit.ts";
import { ENDS, type KeptLog, type KeptParts, partKey } from "./kept_log.ts";
import { keyOf } from "./name.ts";
import { batchFrom, isSameState, isWithin, marksAfter, type StateMark, stateMarkOf } from "./state_parts.ts";

/** Parts that a home sends of a base to come. */
interface Uploaded {
  readonly at: number;
  readonly first: number;
  readonly parts: readonly Uint8Array[];
}

/** Rows of parts on the disk (see the file's header). */
export class KeptPartRows {
  readonly #disk: GroupCommit;
  readonly #storage: Storage;
  readonly #batchBytes: number;

  /** @param batchBytes bytes that are read at once. */
  constructor(disk: GroupCommit, storage: Storage, batchBytes: number) {
    this.#disk = disk;
    this.#storage = storage;
    this.#batchBytes = batchBytes;
  }

  /** Takes parts for a base to come (KP2). Returns false where others have to come before, or there are too many. */
  upload(log: KeptLog, { at, first, parts }: Uploaded): boolean {
    if (at <= (log.base?.at ?? 0)) return true;
    let { upload } = log;
    if (upload !== null && upload.at > at) return false;
    if (upload === null || upload.at < at || (first === 0 && upload.start > 0)) {
      if (first !== 0 && first !== log.parts.marks.length) return false;
      log.setUpload(upload = { at, start: first, marks: [] });
    }
    const have = upload.start + upload.marks.length;
    if (first > have) return false;
    const before = upload.start === 0 ? [] : log.parts.marks;
    const more = parts.slice(have - first);
    const marks = marksAfter(stateMarkOf([...before, ...upload.marks]), more);
    if (!isWithin([...before, ...upload.marks, ...marks])) return false;
    for (const [i, part] of more.entries()) this.#put(log, log.nextPart + i, part);
    for (const mark of marks) log.uploaded(mark);
    this.#end(log);
    return true;
  }

  /** Returns the parts of a base, which go on disk with it; null where they are not those that it names (KP1). */
  named(log: KeptLog, base: Base, kept: StateMark, last: readonly Uint8Array[]): KeptParts | null {
    const here = log.parts, { upload } = log;
    const isAfter = upload !== null && upload.at === base.at && upload.start === kept.count;
    const before = kept.count === 0 ? [] : here.marks;
    const taken = [...before, ...isAfter ? upload.marks : []];
    const marks = taken.concat(marksAfter(stateMarkOf(taken), last));
    const isHere = isSameState(stateMarkOf(before), kept);
    if (!isHere || !isSameState(stateMarkOf(marks), base.state) || !isWithin(marks)) {
      log.setUpload(null);
      return null;
    }
    const next = here.first + here.marks.length;
    const first = kept.count === 0 ? next : here.first;
    const put = first + taken.length;
    for (const [i, part] of last.entries()) this.#put(log, put + i, part);
    if (kept.count === 0) this.#drop(log, here.first, next);
    this.#drop(log, put + last.length, log.partsEnd);
    log.partsEnd = put + last.length;
    if (log.hasEnd) this.#disk.drop(keyOf(ENDS, log.name));
    log.hasEnd = false;
    return { first, marks };
  }

  /** Drops all parts of a log: the log goes, or its base does. */
  dropAll(log: KeptLog): void {
    this.#drop(log, log.parts.first, log.partsEnd);
    if (log.hasEnd) this.#disk.drop(keyOf(ENDS, log.name));
    log.hasEnd = false;
  }

  /** Reads parts of the base's state, as many as go at once; null where they are not there any more. */
  async read(log: KeptLog, first: number): Promise<Uint8Array[] | null> {
    const { marks, first: number } = log.parts;
    const keys = [];
    for (let i = first; i < batchFrom(marks, first, this.#batchBytes); i++) {
      keys.push(partKey(log.name, number + i));
    }
    if (keys.length === 0) return [];
    const rows = await this.#storage.getMany(keys);
    const parts = rows.flatMap((row) => row?.value ? [row.value] : []);
    return parts.length === keys.length ? parts : null;
  }

  #put({ name }: KeptLog, number: number, part: Uint8Array): void {
    this.#disk.put(partKey(name, number), part);
  }

  #drop({ name }: KeptLog, from: number, to: number): void {
    for (let number = from; number < to; number++) this.#disk.drop(partKey(name, number));
  }

  /** Puts the number after the last part on disk (KP3). */
  #end(log: KeptLog): void {
    if (log.nextPart <= log.partsEnd) return;
    log.partsEnd = log.nextPart;
    log.hasEnd = true;
    this.#disk.put(keyOf(ENDS, log.name), new Writer(8).uint(log.partsEnd).done());
  }
}

/** Reads the number after the last part. @throws CodecError */
export function decodeEnd(bytes: Uint8Array): number {
  const r = new Reader(bytes);
  const end = r.uint();
  r.end();
  return end;
}
