/**
 * The envelope of a message: the payload of its tuple, that is the message's body and what goes with it from its
 * producer to its consumer. An envelope never changes. Bytes and vectors: docs/protocol/queues.md.
 *
 * EN1 What was sent at one time under one id is one message, and two that were not are two: a verdict on a message
 *     therefore names the time as well.
 */
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";

/** Kind of content that the bytes of a body are. */
export type BodyFormat = "bytes" | "text" | "json" | "value";

export interface MessageEnvelope {
  /** Id that the producer gave the message; "": the tuple's id stands for it. */
  readonly id: string;
  /** Time at which the message was sent, by the wall clock of the site that took it (EN1). */
  readonly sentMs: number;
  /** Traceparent of the producer; "": none. */
  readonly trace: string;
  /**
   * Pauses in milliseconds before each retry of the message; null: its queue's. It is given up after the last of them.
   */
  readonly backoffMs: readonly number[] | null;
  /** Bytes for who handles the message, or deals with it once it is given up; the queues themselves do not read them. */
  readonly undelivered: Uint8Array;
  readonly format: BodyFormat;
  readonly body: Uint8Array;
}

/** Version byte of the format, the only one so far. */
const FORM = 1;
const FORMATS: readonly BodyFormat[] = ["bytes", "text", "json", "value"];

export function encodeEnvelope(envelope: MessageEnvelope): Uint8Array<ArrayBuffer> {
  const { id, sentMs, trace, backoffMs, undelivered, format, body } = envelope;
  const w = new Writer(64 + body.length + undelivered.length).byte(FORM).text(id).uint(sentMs).text(trace);
  w.flag(backoffMs !== null);
  if (backoffMs !== null) w.list(backoffMs, (ms) => w.uint(ms));
  return w.bytes(undelivered).byte(FORMATS.indexOf(format)).bytes(body).done();
}

/** Decodes an envelope. @throws CodecError for bytes that `encodeEnvelope` does not make. */
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
