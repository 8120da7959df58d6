/**
 * The words that the owner of messages and an outlet say to each other: which queue has messages, how many an outlet's
 * consumers want, which messages it got, and what consumers say of them. Owner and outlet may be at one site. Bytes and
 * vectors: docs/protocol/queues.md.
 */
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import { Names, ReadNames } from "../../store/model/names.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { isTupleId, type TupleId } from "../../store/owners/packet.ts";
import { BATCH_MESSAGES_MAX } from "./limits.ts";
import { cutText } from "./note.ts";

/** A message on its way to a consumer. */
export interface HandedMessage {
  readonly id: TupleId;
  /** Number of the lease under which the message is lent. */
  readonly lease: number;
  /** Number of deliveries of the message, this one included. */
  readonly attempt: number;
  /** Time at which the message expires, by the wall clock; 0: never. */
  readonly expiresAtMs: number;
  /** Sites that own the message's tuple; the one that hands it over is the first. */
  readonly owners: readonly SiteId[];
  /** Envelope of the message (envelope.ts). */
  readonly payload: Uint8Array;
}

/** Statement of a consumer about a message that it was lent. */
export interface Verdict {
  /** Number of the verdict; it rises from verdict to verdict of an outlet. */
  readonly number: number;
  readonly id: TupleId;
  readonly lease: number;
  /** Time at which the message was sent (envelope.ts EN1). */
  readonly sentMs: number;
  /**
   * Kind of the verdict. `ack`: the message is done. `retry`: it is to come again, after `ms`, or its queue's pause.
   * `reject`: it is given up. `extend`: the consumer has it for `ms` longer from now on. `release`: no consumer took
   * it.
   */
  readonly kind: "ack" | "retry" | "reject" | "extend" | "release";
  readonly ms: number | null;
  /** Reason of the verdict, in a few words. */
  readonly error: string;
}

/**
 * Answer of an owner to a verdict. `over`: the message is not lent to that consumer any more. `unknown`: the site does
 * not have the message.
 */
export type VerdictResult = "done" | "over" | "unknown";

/** Request of an outlet for messages: what it has room for. */
export interface Want {
  readonly kind: "want";
  readonly queue: string;
  /** Number of the want; it rises from want to want of a queue, and the last one holds. */
  readonly number: number;
  /** Number of the last batch that the outlet had of this owner: what was sent later counts against the want. */
  readonly seen: number;
  readonly messages: number;
  readonly bytes: number;
  /** True where the messages are for clients that pull: those keep them whatever becomes of the outlet's site. */
  readonly isPull: boolean;
}

export interface Batch {
  readonly kind: "batch";
  /** Number of the batch; it rises from batch to batch. A batch is confirmed by this number, or sent again under it. */
  readonly number: number;
  readonly queue: string;
  /** Number of messages that are still ready at the owner; 0: the offer is over. */
  readonly left: number;
  readonly leaseMs: number;
  readonly messages: readonly HandedMessage[];
}

export type OwnerWord =
  /** Offer of an owner: `count` messages are ready; 0: none is any more. */
  | { readonly kind: "offer"; readonly queue: string; readonly count: number }
  | Batch
  | {
    readonly kind: "settled";
    /** Result of each verdict, by the verdict's number. */
    readonly results: readonly { readonly number: number; readonly result: VerdictResult }[];
  };

export type OutletWord =
  | Want
  | { readonly kind: "got"; readonly batch: number }
  | { readonly kind: "verdicts"; readonly verdicts: readonly Verdict[] };

export type QueueWord = OwnerWord | OutletWord;

export interface QueuePacket {
  /** Random number that names the sender's process; drawn when that process began. */
  readonly boot: number;
  /** Number (`boot`) of the receiver's process, as far as the sender knows it; 0: unknown. */
  readonly to: number;
  readonly words: readonly QueueWord[];
}

const WORD = { offer: 0, batch: 1, settled: 2, want: 3, got: 4, verdicts: 5 } as const;
const VERDICTS: readonly Verdict["kind"][] = ["ack", "retry", "reject", "extend", "release"];
const RESULTS: readonly VerdictResult[] = ["done", "over", "unknown"];
/** Bytes of a verdict's error text that an outlet sends; an owner keeps fewer (ERROR_BYTES_MAX). */
const ERROR_BYTES_TOLD = 200;

export const isOwnerWord = (word: QueueWord): word is OwnerWord =>
  word.kind === "offer" || word.kind === "batch" || word.kind === "settled";

/** Returns roughly how many bytes a word takes. */
export function wordBytes(word: QueueWord): number {
  if (word.kind === "batch") return word.messages.reduce((sum, { payload }) => sum + payload.length + 40, 40);
  if (word.kind === "verdicts") return 80 * word.verdicts.length;
  return word.kind === "settled" ? 10 * word.results.length : 30;
}

export function encodeQueuePacket({ boot, to, words }: QueuePacket): Uint8Array<ArrayBuffer> {
  const w = new Writer(256).uint(boot).uint(to), names = new Names();
  for (const word of words) {
    if (word.kind === "offer" || word.kind === "batch" || word.kind === "want") names.add(word.queue);
    if (word.kind !== "batch") continue;
    for (const { owners } of word.messages) for (const site of owners) names.add(site);
  }
  names.write(w);
  return w.list(words, (word) => writeWord(w, word, names)).done();
}

function writeWord(w: Writer, word: QueueWord, names: Names): void {
  w.byte(WORD[word.kind]);
  switch (word.kind) {
    case "offer":
      return void w.uint(names.place(word.queue)).uint(word.count);
    case "batch":
      w.uint(names.place(word.queue)).uint(word.number).uint(word.left).uint(word.leaseMs);
      return void w.list(word.messages, ({ id, lease, attempt, expiresAtMs, owners, payload }) => {
        w.text(id).uint(lease).uint(attempt).uint(expiresAtMs).list(
          owners,
          (site) => w.uint(names.place(site)),
        ).bytes(payload);
      });
    case "settled":
      return void w.list(word.results, ({ number, result }) => w.uint(number).byte(RESULTS.indexOf(result)));
    case "want":
      w.uint(names.place(word.queue)).uint(word.number).uint(word.seen).uint(word.messages).uint(word.bytes);
      return void w.flag(word.isPull);
    case "got":
      return void w.uint(word.batch);
    case "verdicts":
      return void w.list(word.verdicts, ({ number, id, lease, sentMs, kind, ms, error }) => {
        w.uint(number).text(id).uint(lease).uint(sentMs).byte(VERDICTS.indexOf(kind)).flag(ms !== null);
        if (ms !== null) w.uint(ms);
        w.text(cutText(error, ERROR_BYTES_TOLD));
      });
  }
}

/** Decodes a packet. @throws CodecError for anything that encodeQueuePacket does not produce. */
export function decodeQueuePacket(bytes: Uint8Array): QueuePacket {
  const r = new Reader(bytes), boot = r.uint(), to = r.uint(), names = new ReadNames(r);
  const words = r.list(() => readWord(r, names));
  names.end();
  r.end();
  return { boot, to, words };
}

function readWord(r: Reader, names: ReadNames): QueueWord {
  const kind = r.byte();
  switch (kind) {
    case WORD.offer:
      return { kind: "offer", queue: names.at(r.uint()), count: r.uint() };
    case WORD.batch: {
      const queue = names.at(r.uint());
      const head = { number: r.uint(), left: r.uint(), leaseMs: r.uint() };
      const messages = r.list(() => readMessage(r, names));
      if (messages.length > BATCH_MESSAGES_MAX) {
        throw new CodecError(`a batch has ${messages.length} messages`);
      }
      return { kind: "batch", queue, ...head, messages };
    }
    case WORD.settled:
      return {
        kind: "settled",
        results: r.list(() => ({ number: r.uint(), result: oneOf(RESULTS, r.byte()) })),
      };
    case WORD.want:
      return {
        kind: "want",
        queue: names.at(r.uint()),
        number: r.uint(),
        seen: r.uint(),
        messages: r.uint(),
        bytes: r.uint(),
        isPull: r.flag(),
      };
    case WORD.got:
      return { kind: "got", batch: r.uint() };
    case WORD.verdicts:
      return { kind: "verdicts", verdicts: r.list(() => readVerdict(r)) };
    default:
      throw new CodecError(`a queue's packet has a word of kind ${kind}`);
  }
}

function readMessage(r: Reader, names: ReadNames): HandedMessage {
  const message = {
    id: readTupleId(r),
    lease: r.uint(),
    attempt: r.uint(),
    expiresAtMs: r.uint(),
    owners: r.list(() => names.at(r.uint())),
    payload: r.bytes(),
  };
  if (message.owners.length === 0) throw new CodecError("a message has no owner");
  return message;
}

function readVerdict(r: Reader): Verdict {
  const verdict = {
    number: r.uint(),
    id: readTupleId(r),
    lease: r.uint(),
    sentMs: r.uint(),
    kind: oneOf(VERDICTS, r.byte()),
    ms: r.flag() ? r.uint() : null,
    error: r.text(),
  };
  if (cutText(verdict.error, ERROR_BYTES_TOLD) !== verdict.error) {
    throw new CodecError("an error is too long");
  }
  return verdict;
}

function readTupleId(r: Reader): TupleId {
  const id = r.text();
  if (!isTupleId(id)) throw new CodecError("a message has a bad id");
  return id;
}

function oneOf<T>(all: readonly T[], place: number): T {
  const found = all[place];
  if (found === undefined) {
    throw new CodecError(`a queue's packet says ${place} where there are ${all.length}`);
  }
  return found;
}
