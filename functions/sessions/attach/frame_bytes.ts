/**
 * Frames as bytes (docs/protocol/session-frames.md).
 *
 *   data     byte 80 | bytes 40 | increment 20 | sequence mod 32 · byte received mod 256 · [ bytes increment ] · payload
 *   others   byte kind · fields
 *
 * FR1  One form for each frame: a decoded frame encodes to the bytes that it came from; all else is a CodecError. The
 *      two directions share no kind, so that a frame that is reflected is refused.
 * FR2  A payload is a view of the bytes that it came in; a record, which is kept, is not.
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import type { Data, PeerHello, PeerIdentity, ToHome, ToHost } from "./frame.ts";
import * as limits from "./limits.ts";

const DATA = 0x80, BYTES = 0x40, INCREMENT = 0x20, SEQUENCE_MASK = 0x1f;
const TO_HOME = { hello: 0x01, ack: 0x02, ping: 0x03, leave: 0x04, log: 0x05, taken: 0x06 } as const;
const TO_HOST = {
  ...{ welcome: 0x41, ack: 0x42, pong: 0x43, bye: 0x44 } as const,
  ...{ refused: 0x45, rejected: 0x46, moved: 0x47, dismissed: 0x48 } as const,
  ...{ fence: 0x49, record: 0x4a } as const,
} as const;
const PEERS = ["client", "origin"] as const;
const RETRIES = ["fix", "retry", "reset"] as const;

const utf8 = new TextEncoder();
const utf8Strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Encodes a frame to a home. */
export function encodeToHome(frame: ToHome): Uint8Array<ArrayBuffer> {
  switch (frame.kind) {
    case "message":
      return encodeData(frame, null);
    case "hello":
      return writeHello(new Writer(256), frame).done();
    case "ack":
      return new Writer(8).byte(TO_HOME.ack).uint(frame.received).done();
    case "ping":
      return new Writer(8).byte(TO_HOME.ping).uint(frame.number).done();
    case "leave":
      return new Writer(32).byte(TO_HOME.leave).uint(frame.last).uint(frame.code).text(frame.reason).done();
    case "log": {
      const w = new Writer(256).byte(TO_HOME.log).uint(frame.epoch).flag(frame.records !== null);
      return w.list(frame.records ?? [], (record) => void w.bytes(record)).done();
    }
    case "taken":
      return new Writer(8).byte(TO_HOME.taken).uint(frame.records).done();
  }
}

/** Encodes a frame to a host. */
export function encodeToHost(frame: ToHost): Uint8Array<ArrayBuffer> {
  switch (frame.kind) {
    case "output":
      return encodeData(frame, frame.increment);
    case "welcome": {
      const w = new Writer(128).byte(TO_HOST.welcome).text(frame.identity.id).bytes(frame.identity.key);
      return w.uint(frame.epoch).uint(frame.received).done();
    }
    case "ack":
      return new Writer(8).byte(TO_HOST.ack).uint(frame.received).done();
    case "pong":
      return new Writer(8).byte(TO_HOST.pong).uint(frame.number).done();
    case "bye":
      return new Writer(32).byte(TO_HOST.bye).uint(frame.code).text(frame.reason).done();
    case "refused": {
      const w = new Writer(128).byte(TO_HOST.refused).text(frame.code).text(frame.message);
      return w.byte(RETRIES.indexOf(frame.retry)).done();
    }
    case "rejected":
      return new Writer(128).byte(TO_HOST.rejected).uint(frame.sequence).text(frame.code).text(frame.message)
        .done();
    case "dismissed":
      return dismissed(frame.sequence, frame.code, frame.reason);
    case "moved":
      return new Writer(32).byte(TO_HOST.moved).flag(frame.site !== null).text(frame.site ?? "").done();
    case "fence":
      return new Writer(8).byte(TO_HOST.fence).uint(frame.epoch).done();
    case "record":
      return new Writer(8 + frame.record.length).byte(TO_HOST.record).bytes(frame.record).done();
  }
}

function encodeData(frame: Data, increment: Uint8Array | null): Uint8Array<ArrayBuffer> {
  const isText = typeof frame.payload === "string";
  const payload = typeof frame.payload === "string" ? utf8.encode(frame.payload) : frame.payload;
  return joined(frame, isText, payload, increment);
}

/** Encodes a data frame. Written by hand: there are no other frames by the thousand. */
function joined(
  { sequence, received }: { readonly sequence: number; readonly received: number },
  isText: boolean,
  payload: Uint8Array,
  increment: Uint8Array | null,
): Uint8Array<ArrayBuffer> {
  const head = DATA | (isText ? 0 : BYTES) | (sequence & SEQUENCE_MASK);
  if (increment !== null) {
    const size = new Writer(8).uint(increment.length).view();
    const bytes = new Uint8Array(2 + size.length + increment.length + payload.length);
    bytes[0] = head | INCREMENT;
    bytes[1] = received & 0xff;
    bytes.set(size, 2);
    bytes.set(increment, 2 + size.length);
    bytes.set(payload, 2 + size.length + increment.length);
    return bytes;
  }
  const bytes = new Uint8Array(2 + payload.length);
  bytes[0] = head;
  bytes[1] = received & 0xff;
  bytes.set(payload, 2);
  return bytes;
}

/**
 * Encodes a message or an output whose payload is kept as commits have it: 0 and text in UTF-8, 1 and bytes, or (an
 * output) 2, a close code in two bytes, and the reason. `sequence` and `received` are whole numbers, of which the low
 * bits are sent.
 */
export function encodeKept(
  { sequence, received, tagged, increment = null }: {
    readonly sequence: number;
    readonly received: number;
    readonly tagged: Uint8Array;
    readonly increment?: Uint8Array | null | undefined;
  },
): Uint8Array<ArrayBuffer> {
  const payload = tagged.subarray(1);
  if (tagged[0] === DISMISSAL) {
    const code = (payload[0] ?? 0) << 8 | (payload[1] ?? 0);
    const reason = new TextDecoder().decode(payload.subarray(2));
    return dismissed(sequence, code, reason);
  }
  return joined({ sequence, received }, tagged[0] === 0, payload, increment);
}

/** Encodes a dismissal. A function of its own, so that a host side's bundle has nothing else of what a home says. */
const dismissed = (sequence: number, code: number, reason: string): Uint8Array<ArrayBuffer> =>
  new Writer(32).byte(TO_HOST.dismissed).uint(sequence).uint(code).text(reason).done();

/** Tag of an output that sends a peer away, as it is kept (functions/sessions/turn/peers.ts). */
export const DISMISSAL = 2;

/** Returns a payload as it is kept. */
export function tag(payload: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const body = typeof payload === "string" ? utf8.encode(payload) : payload;
  const bytes = new Uint8Array(body.length + 1);
  bytes[0] = typeof payload === "string" ? 0 : 1;
  bytes.set(body, 1);
  return bytes;
}

/** Returns a text of up to so many bytes: what is too long ends early. */
export function cut(value: string, bytesMax: number): string {
  const bytes = utf8.encode(value);
  if (bytes.length <= bytesMax) return value;
  // A character that was cut in two is left away.
  return new TextDecoder().decode(bytes.subarray(0, bytesMax)).replace(/(?<!\ufffd)\ufffd+$/, "");
}

function writeHello(w: Writer, hello: PeerHello): Writer {
  w.byte(TO_HOME.hello).uint(limits.FRAMES_VERSION).byte(PEERS.indexOf(hello.peer));
  w.uint(hello.instance).uint(hello.attempt).flag(hello.identity !== null);
  if (hello.identity !== null) {
    w.text(hello.identity.id).bytes(hello.identity.key);
    w.uint(hello.epoch).uint(hello.received);
  }
  w.uint(hello.first).flag(hello.log !== null);
  return hello.log === null ? w : w.bytes(hello.log);
}

/** Decodes a frame to a home. @throws CodecError (FR1) */
export function decodeToHome(bytes: Uint8Array): ToHome {
  const [head = 0, received] = bytes;
  if ((head & DATA) !== 0) {
    if ((head & INCREMENT) !== 0) throw new CodecError("a message brings no increment of a log");
    if (received === undefined) throw new CodecError("a message ends too early");
    return {
      kind: "message",
      sequence: head & SEQUENCE_MASK,
      received,
      payload: readPayload(head, bytes, 2),
    };
  }
  const r = new Reader(bytes);
  const kind = r.byte();
  const frame = readToHome(r, kind);
  r.end();
  return frame;
}

function readToHome(r: Reader, kind: number): ToHome {
  switch (kind) {
    case TO_HOME.hello:
      return readHello(r);
    case TO_HOME.ack:
      return { kind: "ack", received: r.uint() };
    case TO_HOME.ping:
      return { kind: "ping", number: r.uint() };
    case TO_HOME.leave:
      return { kind: "leave", last: r.uint(), ...readClose(r) };
    case TO_HOME.log:
      return readLog(r);
    case TO_HOME.taken:
      return { kind: "taken", records: readSequence(r) };
  }
  throw new CodecError(`there is no frame ${kind} to a home`);
}

/** Decodes a frame to a host. @throws CodecError (FR1) */
export function decodeToHost(bytes: Uint8Array): ToHost {
  const r = new Reader(bytes);
  const kind = r.byte();
  if ((kind & DATA) !== 0) {
    const sequence = kind & SEQUENCE_MASK, received = r.byte();
    const increment = (kind & INCREMENT) === 0 ? null : short(r.bytes(), limits.INCREMENT_BYTES_MAX);
    return { kind: "output", sequence, received, increment, payload: readPayload(kind, bytes, r.position) };
  }
  const frame = readToHost(r, kind);
  r.end();
  return frame;
}

function readToHost(r: Reader, kind: number): ToHost {
  switch (kind) {
    case TO_HOST.welcome:
      return { kind: "welcome", identity: readIdentity(r), epoch: r.uint(), received: r.uint() };
    case TO_HOST.ack:
      return { kind: "ack", received: r.uint() };
    case TO_HOST.pong:
      return { kind: "pong", number: r.uint() };
    case TO_HOST.bye:
      return { kind: "bye", ...readClose(r) };
    case TO_HOST.refused: {
      const code = text(r, limits.CODE_BYTES_MAX), message = text(r, limits.TEXT_BYTES_MAX);
      const retry = RETRIES[r.byte()];
      if (retry === undefined) throw new CodecError("a refusal says nothing of what to do next");
      return { kind: "refused", code, message, retry };
    }
    case TO_HOST.dismissed: {
      const sequence = readSequence(r);
      return { kind: "dismissed", sequence, ...readClose(r) };
    }
    case TO_HOST.rejected: {
      const sequence = readSequence(r);
      const code = text(r, limits.CODE_BYTES_MAX);
      return { kind: "rejected", sequence, code, message: text(r, limits.TEXT_BYTES_MAX) };
    }
    case TO_HOST.moved: {
      const isKnown = r.flag();
      const site = text(r, limits.CODE_BYTES_MAX);
      if (isKnown !== (site !== "")) throw new CodecError("a site has a name");
      return { kind: "moved", site: isKnown ? site : null };
    }
    case TO_HOST.fence:
      return { kind: "fence", epoch: readSequence(r) };
    case TO_HOST.record:
      return { kind: "record", record: short(r.bytes(), limits.INCREMENT_BYTES_MAX) };
  }
  throw new CodecError(`there is no frame ${kind} to a host`);
}

// ── Parts ──

function readPayload(head: number, bytes: Uint8Array, at: number): string | Uint8Array {
  const payload = short(bytes.subarray(at), limits.MESSAGE_BYTES_MAX);
  return (head & BYTES) !== 0 ? payload : decodedText(payload);
}

function decodedText(bytes: Uint8Array): string {
  try {
    return utf8Strict.decode(bytes);
  } catch {
    throw new CodecError("a text is not UTF-8");
  }
}

function short(bytes: Uint8Array, max: number): Uint8Array {
  if (bytes.length > max) throw new CodecError(`${bytes.length} bytes: expected up to ${max}`);
  return bytes;
}

function text(r: Reader, bytesMax: number): string {
  return decodedText(short(r.view(), bytesMax));
}

function readIdentity(r: Reader): PeerIdentity {
  const id = text(r, limits.PEER_ID_BYTES_MAX);
  const key = r.bytes();
  if (id === "" || key.length < limits.KEY_BYTES_MIN || key.length > limits.PEER_KEY_BYTES_MAX) {
    throw new CodecError("a peer has an id and a key");
  }
  return { id, key };
}

function readHello(r: Reader): PeerHello {
  const version = r.uint();
  if (version !== limits.FRAMES_VERSION) {
    throw new CodecError(`frames of version ${version}: expected ${limits.FRAMES_VERSION}`);
  }
  const peer = PEERS[r.byte()];
  if (peer === undefined) throw new CodecError("there is no such kind of peer");
  const instance = r.uint(), attempt = r.uint();
  if (instance === 0 || attempt === 0) throw new CodecError("instances and attempts are numbered from 1");
  const identity = r.flag() ? readIdentity(r) : null;
  const epoch = identity === null ? 0 : r.uint();
  const received = identity === null ? 0 : r.uint();
  const first = r.uint();
  if (first === 0 || (identity === null && first !== 1)) {
    throw new CodecError("a new peer has acknowledged nothing, and messages are numbered from 1");
  }
  const log = r.flag() ? r.bytes() : null;
  if (log !== null) short(log, limits.LOG_SUMMARY_BYTES_MAX);
  return { kind: "hello", peer, identity, instance, attempt, epoch, received, first, log };
}

function readLog(r: Reader): Extract<ToHome, { readonly kind: "log" }> {
  const epoch = readSequence(r), isHeld = r.flag();
  let bytes = 0, count = 0;
  const records = r.list(() => {
    const record = r.bytes();
    bytes += record.length;
    if (bytes > limits.HOST_LOG_BYTES_MAX || ++count > limits.HOST_RECORDS_MAX) {
      throw new CodecError(
        `a log of more than ${limits.HOST_LOG_BYTES_MAX} bytes or ${limits.HOST_RECORDS_MAX} records`,
      );
    }
    return record;
  });
  if (!isHeld && records.length > 0) throw new CodecError("who has promised another epoch gives nothing");
  return { kind: "log", epoch, records: isHeld ? records : null };
}

function readSequence(r: Reader): number {
  const sequence = r.uint();
  if (sequence === 0) throw new CodecError("messages, outputs, records and epochs are numbered from 1");
  return sequence;
}

function readClose(r: Reader): { readonly code: number; readonly reason: string } {
  const code = r.uint();
  if (code < 1000 || code > 4999) throw new CodecError(`${code} is no close code`);
  return { code, reason: text(r, limits.REASON_BYTES_MAX) };
}

/** Returns how many the sender has received, from the low bits in a data frame and what it had said before. */
export const countFrom = (before: number, low: number): number => before + ((low - before) & 0xff);

/** Largest step that the low bits of a data frame can add: more is said in an `ack` before it. */
export const COUNT_STEP_MAX = 0xff;

/** Reports whether these are the low bits of a sequence. */
export const isSequence = (sequence: number, low: number): boolean => (sequence & SEQUENCE_MASK) === low;
