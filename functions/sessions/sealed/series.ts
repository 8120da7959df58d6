/**
 * A series of records that a home seals for one host: the log since the last output to it, record by record.
 *
 * Records are sealed by AES-128-GCM, the tag cut to 12 bytes; the nonce is the record's number in its series (12 bytes,
 * big endian); associated data are the tag of the record before it (12 zero bytes where there is none) and the record's
 * clear bytes. Records are sealed at the site, never in an isolate.
 *
 * SE1  A key seals one series, by one process: its salt is drawn anew whenever records begin again, after a broken
 *      channel, a rest or a takeover. So no number is used twice under a key.
 * SE2  Records chain: none can be left out, turned round, or put behind another log without it showing. Only the end
 *      can be cut off, and that is what the keepers' own log is for.
 */
import { createCipheriv } from "node:crypto";
import type { Buffer } from "node:buffer";
import { Writer } from "../../../store/model/codec.ts";
import type { LogCopy, LogPiece } from "../log/asks.ts";
import { CommitForm } from "./commits.ts";
import { type SealedFor, seriesKey } from "./keys.ts";
import { SALT_BYTES, TAG_BYTES } from "./limits.ts";
import { KINDS, type RecordKind } from "./record.ts";
import { writeStart } from "./whole_log.ts";

const NONCE_BYTES = 12;
const NO_TAG = new Uint8Array(TAG_BYTES);

/** A series of records under one key. */
export class SealedSeries {
  readonly #key: Buffer;
  readonly #form: CommitForm;
  readonly #nonce = new Uint8Array(NONCE_BYTES);
  readonly #plain = new Writer(512);
  /** Associated data of records of pieces: the tag of the last record, and their kind. */
  readonly #pieces = new Uint8Array(TAG_BYTES + 1);
  /** Record that begins the series. */
  readonly first: Uint8Array<ArrayBuffer>;
  /** Last entry that the series' records hold. */
  through: number;

  private constructor(
    kind: RecordKind,
    { secret, of, epoch, salt }: SeriesStart,
    { before, after, plain, pieces }: {
      readonly before: Uint8Array;
      readonly after: number;
      readonly plain: (writer: Writer) => void;
      readonly pieces: readonly LogPiece[];
    },
  ) {
    this.#key = seriesKey(secret, of, epoch, salt);
    this.#form = new CommitForm(epoch, of.receiver);
    this.#pieces[TAG_BYTES] = PIECES;
    this.through = after;
    const clear = new Writer(32).byte(KINDS.indexOf(kind)).uint(epoch).raw(salt).done();
    plain(this.#plain.clear());
    this.#write(pieces);
    this.first = this.#seal(associated(before, clear));
  }

  /** Begins a series with the log from its base on: the host needs nothing else. */
  static whole(start: SeriesStart, log: LogCopy): SealedSeries {
    const { base, pieces } = log;
    const plain = (writer: Writer) => writeStart(writer, log);
    return new SealedSeries("whole", start, { before: NO_TAG, after: base?.at ?? 0, plain, pieces });
  }

  /** Begins a series for a host that has the log up to the entry `after`, and whose last record has this tag. */
  static further(
    start: SeriesStart,
    { tag, after, pieces }: {
      readonly tag: Uint8Array;
      readonly after: number;
      readonly pieces: readonly LogPiece[];
    },
  ): SealedSeries {
    return new SealedSeries("further", start, {
      before: tag,
      after,
      plain: (w) => void w.uint(after),
      pieces,
    });
  }

  /** Tag of the last record: its host names it when it comes back. */
  get tag(): Uint8Array {
    return this.#pieces.slice(0, TAG_BYTES);
  }

  /** Seals the next commits as a record: at least one commit, and they follow those before. */
  next(pieces: readonly LogPiece[]): Uint8Array<ArrayBuffer> {
    this.#plain.clear();
    this.#write(pieces);
    return this.#seal(this.#pieces);
  }

  #write(pieces: readonly LogPiece[]): void {
    for (const piece of pieces) {
      const { first, count } = piece;
      if (first !== this.through + 1) throw new Error(`entry ${first} does not follow ${this.through}`);
      this.#form.write(this.#plain, piece);
      this.through = first + count - 1;
    }
  }

  /** Seals a record. @param associated a tag, and the clear bytes that the record begins with. */
  #seal(associated: Uint8Array): Uint8Array<ArrayBuffer> {
    const cipher = createCipheriv("aes-128-gcm", this.#key, this.#nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associated); // SE2
    const sealed = cipher.update(this.#plain.view());
    cipher.final();
    const tag = cipher.getAuthTag(), clear = associated.length - TAG_BYTES;
    const record = new Uint8Array(clear + sealed.length + TAG_BYTES);
    for (let at = 0; at < clear; at++) record[at] = associated[TAG_BYTES + at] ?? 0;
    record.set(sealed, clear);
    record.set(tag, clear + sealed.length);
    this.#pieces.set(tag); // SE2
    countUp(this.#nonce); // SE1
    return record;
  }
}

const PIECES = KINDS.indexOf("pieces");

/** Session and host of a series, and what its key is made of. */
export interface SeriesStart {
  /** The cluster's newest secret. */
  readonly secret: Uint8Array;
  readonly of: SealedFor;
  readonly epoch: number;
  /** Salt of {@link SALT_BYTES} random bytes. */
  readonly salt: Uint8Array;
}

/** Returns the bytes that a record is authenticated with, besides those that it holds. */
export function associated(before: Uint8Array, clear: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(TAG_BYTES + clear.length);
  bytes.set(before);
  bytes.set(clear, TAG_BYTES);
  return bytes;
}

/** Counts a nonce up by one. */
export function countUp(nonce: Uint8Array): void {
  for (let at = NONCE_BYTES - 1; at >= 0; at--) {
    nonce[at] = ((nonce[at] ?? 0) + 1) & 0xff;
    if (nonce[at] !== 0) return;
  }
}

export { NO_TAG, NONCE_BYTES, SALT_BYTES };
