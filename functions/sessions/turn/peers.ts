/**
 * Peers of a program, the clients and the origin that are attached to it: as its handlers see them, and what is counted
 * of each.
 *
 * PE1  Messages to one peer are numbered 1, 2, 3 … from its attaching on (CM3): a replay gives the same number to the
 *      same message. The peer's closing is the last of them. What a handler that is not over has sent has not left:
 *      whoever opens the log is told of it with the handler's commit.
 * PE2  A peer that has gone, or was closed, gets nothing, whoever still holds its `from`, as with a socket that is
 *      closed.
 * PE3  `received` counts the messages of a peer that are in the log, also those whose handler was undone: its host,
 *      which keeps what the peer sent, sends the next one after these.
 */
import { AppError } from "../../vocabulary/errors.ts";
import type { SessionPeer } from "../../class/session_slot.ts";
import type { OpenedPeer, Output } from "./commit.ts";
import type { Peer } from "./event.ts";

/** State of one attached peer. */
export interface PeerState {
  readonly peer: Peer;
  /** Number of messages to the peer, its closing included. */
  sent: number;
  /** Number of messages of the peer that are in the log (PE3). */
  received: number;
  /** True once the session has closed the peer, which is there until it is detached. */
  isClosed: boolean;
}

/** The program's part that peers need. */
interface PeersPorts {
  /** Allows an act. @throws AppError where nothing may be given out now. */
  mayAct(what: string): void;
  give(to: string, sequence: number, bytes: Uint8Array): void;
}

/** The attached peers, by id. */
export class Peers {
  readonly #ports: PeersPorts;
  readonly #states = new Map<string, PeerState>();
  /** Bytes and number of messages given out since the last commit point: those leave together. */
  #givenBytes = 0;
  #given = 0;

  constructor(ports: PeersPorts) {
    this.#ports = ports;
  }

  has(id: string): boolean {
    return this.#states.has(id);
  }

  /** Returns the peers in the order in which they were attached. */
  values(): IterableIterator<PeerState> {
    return this.#states.values();
  }

  attach(peer: Peer): void {
    this.restore({ peer, sent: 0, received: 0, isClosed: false });
  }

  /** Adds a peer of a checkpoint. */
  restore(state: PeerState): void {
    this.#states.set(state.peer.id, state);
  }

  /** Counts a message of the peer that is in the log (PE3). */
  received(id: string): void {
    const state = this.#states.get(id);
    if (state !== undefined) state.received++;
  }

  /** Marks a peer as going: `onClose` may look at it, and send it nothing (PE2). */
  leaves(id: string): void {
    const state = this.#states.get(id);
    if (state !== undefined) state.isClosed = true;
  }

  /** Resets what was given out: that leaves with this commit. */
  commit(): void {
    this.#givenBytes = 0;
    this.#given = 0;
  }

  detach(id: string): void {
    this.#states.delete(id);
  }

  /**
   * Returns the peers of a kind that can be sent something, as handlers see them, in the order in which they attached.
   */
  attached(kind: Peer["kind"]): SessionPeer[] {
    return [...this.#states.values()].filter(({ peer, isClosed }) => peer.kind === kind && !isClosed)
      .map(({ peer }) => this.asSeen(peer.id));
  }

  /** Returns one peer as handlers see it. */
  asSeen(id: string): SessionPeer {
    const state = this.#states.get(id);
    const kind = state?.peer.kind ?? "client";
    const give = (bytes: Uint8Array): boolean => {
      // PE2
      if (state === undefined || state.isClosed || this.#states.get(id) !== state) return false;
      if (this.#givenBytes + bytes.length > COMMIT_BYTES_MAX || this.#given >= COMMIT_MESSAGES_MAX) {
        throw new AppError(
          "limit_value",
          `a handler sends at most ${COMMIT_BYTES_MAX} bytes, in ${COMMIT_MESSAGES_MAX} messages, to all clients ` +
            "together",
        );
      }
      this.#givenBytes += bytes.length;
      this.#given++;
      this.#ports.give(id, ++state.sent, bytes); // PE1
      return true;
    };
    return Object.freeze({
      kind,
      id,
      send: (message: string | Uint8Array) => {
        this.#ports.mayAct("send");
        give(messageBytes(message));
      },
      close: (code?: number, reason?: string) => {
        this.#ports.mayAct("close");
        if (give(closeBytes(code, reason)) && state !== undefined) state.isClosed = true;
      },
    });
  }
}

/**
 * Returns the attached peers without outputs that were made and have not left: those come with the commit of their
 * handler.
 */
export function openedPeers(peers: Iterable<PeerState>, made: readonly Output[]): OpenedPeer[] {
  return [...peers].map(({ peer, sent, received, isClosed }) => {
    const unsent = made.filter(({ to }) => to === peer.id); // PE1
    const isClosing = unsent.some(({ bytes }) => bytes[0] === FORM.close);
    return { ...peer, sent: sent - unsent.length, received, isClosed: isClosed && !isClosing };
  });
}

/** Content of an output to a peer (commit.ts, Output). */
export type PeerOutput =
  | { readonly kind: "message"; readonly message: string | Uint8Array<ArrayBuffer> }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

const FORM = { text: 0, bytes: 1, close: 2 } as const;
/** Bytes of one message, as a frame of 48 MiB between a site and its isolate takes it, with room for others. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes that a handler sends, which leave in one such frame; a broadcast counts once for each receiver. */
const COMMIT_BYTES_MAX = 24 * 1024 * 1024;
/**
 * Messages that a handler sends: half of what one frame may name (runtime/isolate/frames.ts, FRAME_THINGS_MAX), since
 * its site reads a frame at one go.
 */
const COMMIT_MESSAGES_MAX = 64 * 1024;
/** Bytes of a closing's reason, as WebSockets limit it. */
const REASON_BYTES_MAX = 123;

const utf8 = new TextEncoder();
const utf8Decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Returns the bytes of a message to a peer: 0 and text, or 1 and bytes. */
function messageBytes(message: string | Uint8Array): Uint8Array {
  const isText = typeof message === "string";
  if (!isText && !(message instanceof Uint8Array)) {
    throw new AppError("value_invalid", `a message is a text or a Uint8Array, not ${typeof message}`);
  }
  const body = isText ? utf8.encode(message) : message;
  if (body.length > MESSAGE_BYTES_MAX) {
    throw new AppError(
      "limit_value",
      `a message has at most ${MESSAGE_BYTES_MAX} bytes; this one has ${body.length}`,
    );
  }
  return formed(isText ? FORM.text : FORM.bytes, body);
}

/** Returns the bytes of a closing: 2, two bytes of code, and the reason. */
function closeBytes(code = 1000, reason = ""): Uint8Array {
  if (code !== 1000 && !(Number.isInteger(code) && code >= 3000 && code <= 4999)) {
    throw new AppError("value_invalid", `close(${code}): a code is 1000, or from 3000 to 4999`);
  }
  const text = utf8.encode(String(reason));
  if (text.length > REASON_BYTES_MAX) {
    throw new AppError(
      "value_invalid",
      `close: a reason has at most ${REASON_BYTES_MAX} bytes; this one has ${text.length}`,
    );
  }
  const bytes = formed(FORM.close, new Uint8Array(2 + text.length));
  bytes.set([code >> 8, code & 0xff], 1);
  bytes.set(text, 3);
  return bytes;
}

function formed(form: number, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(body.length + 1);
  bytes[0] = form;
  bytes.set(body, 1);
  return bytes;
}

/** Decodes the bytes of an output to a peer. @throws TypeError for bytes that are no such output. */
export function peerOutput(bytes: Uint8Array): PeerOutput {
  const body = bytes.subarray(1);
  if (bytes[0] === FORM.text) return { kind: "message", message: utf8Decoder.decode(body) };
  if (bytes[0] === FORM.bytes) return { kind: "message", message: body.slice() };
  const [high, low] = body;
  if (bytes[0] !== FORM.close || high === undefined || low === undefined) {
    throw new TypeError(`no output to a peer begins with ${bytes[0]}`);
  }
  return { kind: "close", code: high << 8 | low, reason: utf8Decoder.decode(body.subarray(2)) };
}
