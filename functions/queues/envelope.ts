/**
 * A message as it lies in a tuple: its body, and what goes with it from its producer to its consumer. Nothing of it ever
 * changes. Bytes and vectors: docs/protocol/queues.md.
 *
 * EN1 What was sent at one time under one id is one message, and two that were not are two: whoever finishes one names
 *     the time as well.
 */
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";

/** What the bytes of a body are. */
export type BodyFormat = "bytes" | "text" | "json" | "value";

export interface MessageEnvelope {
  /** Given by the producer; "": the tuple's id stands for it. */
  readonly id: string;
  /** By the wall clock of the site that took it (EN1). */
  readonly sentMs: number;
  /** The producer's traceparent; "": none. */
  readonly trace: string;
  /** The pauses before it is tried again; null: its queue's. It is given up after the last of them. */
  readonly backoffMs: readonly number[] | null;
  /** For whoever deals with it once it is given up; nobody else reads it. */
  readonly undelivered: Uint8Array;
  readonly format: BodyFormat;
  readonly body: Uint8Array;
}

/** The only one there is so far. */
const FORM = 1;
const FORMATS: readonly BodyFormat[] = ["bytes", "text", "json", "value"];

export function encodeEnvelope(envelope: MessageEnvelope): Uint8Array<ArrayBuffer> {
  const { id, sentMs, trace, backoffMs, undelivered, format, body } = envelope;
  const w = new Writer(64 + body.length + undelivered.length).byte(FORM).text(id).uint(sentMs).text(trace);
  w.flag(backoffMs !== null);
  if (backoffMs !== null) w.list(backoffMs, (ms) => w.uint(ms));
  return w.bytes(undelivered).byte(FORMATS.indexOf(format)).bytes(body).done();
}

/** @throws CodecError for bytes that `encodeEnvelope` does not make. */
export function decodeEnvelope(bytes: Uint8Array): MessageEnvelope {
  const r = new Reader(bytes), form = r.byte();
  if (form !== FORM) throw new CodecError(`a message of a queue is of form ${form}, not ${FORM}`);
  const head = {
    id: r.text(),
    sentMs: r.uint(),
    trace: r.text(),
    backoffMs: r.flag() ? r.list(() => r.uint()) : null,
    undelivered: r.bytes(),
  };
  const format = FORMATS[r.byte()], body = r.bytes();
  r.end();
  if (format === undefined) throw new CodecError("a message's body is of an unknown format");
  return { ...head, format, body };
}
