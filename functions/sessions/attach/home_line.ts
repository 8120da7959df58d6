/**
 * Line: a channel to a home, from its first frame to its last, with counts of what was said on it, both ways. Its hello
 * says which peer it belongs to; before that nothing is taken of it.
 *
 * HL1  After `refuse`, `farewell` or `broken` nothing is heard of the line and nothing sent.
 * HL2  A program that says much and reads nothing (pings, messages that are rejected) breaks its channel, and no
 *      memory.
 */
import { CodecError } from "../../../store/model/codec.ts";
import type { Peer } from "../turn/event.ts";
import { decodeSummary, type HostLogSummary } from "../sealed/host_log.ts";
import type { PeerHello, PeerRetry, ToHome, ToHost } from "./frame.ts";
import { cut, decodeToHome, encodeToHost } from "./frame_bytes.ts";
import {
  CHANNEL_BYTES_MAX,
  CODE_BYTES_MAX,
  HELLO_MS_MAX,
  REASON_BYTES_MAX,
  TEXT_BYTES_MAX,
} from "./limits.ts";
import { type Channel, type ChannelReader, CLOSE, type PeerClock } from "./ports.ts";

type LogFrame = Extract<ToHome, { readonly kind: "log" }>;
/** Frame that a peer may send once it is welcomed. */
export type Said = Exclude<ToHome, PeerHello | LogFrame>;

/** Listener of lines. */
export interface HomeLineListener<P> {
  greeted(line: HomeLine<P>, hello: PeerHello): void;
  /** Takes a frame of a line that has a peer. `bytes`: those of its payload, where it has one. */
  heard(line: HomeLine<P>, peer: P, frame: Said, bytes: number): void;
  /** Takes the log that a fenced line gives. */
  gave(line: HomeLine<P>, frame: LogFrame): void;
  gone(line: HomeLine<P>): void;
}

/** Line of a `P` (see the file's header). */
export class HomeLine<P> implements ChannelReader {
  /** Kind of peer that the program at the other end may attach as. */
  readonly kind: Peer["kind"];
  peer: P | null = null;
  isWelcomed = false;
  /** Summary of the log that the host holds; null where it can't hold one. */
  log: HostLogSummary | null = null;
  /** Sequence of the next message. */
  next = 1;
  /** Number of outputs that the host says to have. */
  heard = 0;
  /** Number of messages of which the host was told that they are in the log. */
  told = 0;
  /** Last output that went over this line, or was at the host before. */
  given = 0;
  /** Number of fences that the host has not answered: to open a log takes time, and is done once for each. */
  #asked = 0;
  readonly #channel: Channel;
  readonly #listener: HomeLineListener<P>;
  #hasGreeted = false;
  #isOver = false;
  #cancelHello: () => void;

  constructor(channel: Channel, kind: Peer["kind"], clock: PeerClock, listener: HomeLineListener<P>) {
    this.kind = kind;
    this.#channel = channel;
    this.#listener = listener;
    this.#cancelHello = clock.after(HELLO_MS_MAX, () => {
      this.refuse("message_malformed", `nobody said hello for ${HELLO_MS_MAX} ms`, "retry");
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  frame(bytes: Uint8Array): void {
    if (this.#isOver) return; // HL1
    let frame: ToHome;
    try {
      frame = decodeToHome(bytes);
      if (frame.kind === "hello" && frame.log !== null) this.log = decodeSummary(frame.log);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      return this.refuse("message_malformed", error.message, "fix");
    }
    if ((frame.kind === "hello") === this.#hasGreeted) {
      return this.refuse("message_malformed", "a channel begins with a hello, and has one", "fix");
    }
    if (frame.kind === "hello") {
      this.#hasGreeted = true;
      this.#cancelHello();
      this.#listener.greeted(this, frame);
    } else if (frame.kind === "log") {
      if (this.#asked > 0) {
        this.#asked--;
        this.#listener.gave(this, frame);
      } else this.refuse("message_malformed", "a log comes that was not asked for", "fix");
    } else if (this.peer !== null) this.#listener.heard(this, this.peer, frame, bytes.length - 2);
    else if (frame.kind === "ping") this.send({ kind: "pong", number: frame.number });
    else if (frame.kind === "leave") this.farewell({ kind: "bye", code: 1000, reason: "" });
    else this.refuse("message_malformed", "before its welcome a peer sends nothing", "fix");
  }

  /** Asks the host for its log, and to take nothing of an earlier epoch from now on. */
  fence(epoch: number): void {
    this.#asked++;
    this.send({ kind: "fence", epoch });
  }

  broken(): void {
    if (this.#isOver) return;
    this.#over();
    this.#listener.gone(this);
  }

  send(frame: ToHost): void {
    this.sendBytes(encodeToHost(frame));
  }

  sendBytes(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#isOver) return; // HL1
    const buffered = this.#channel.bufferedBytes?.() ?? 0;
    if (buffered <= CHANNEL_BYTES_MAX) return this.#channel.send(bytes); // HL2
    this.#channel.close(CLOSE.broken, "");
    this.broken();
  }

  /** Sends the last frame, a refusal, and closes the channel; the peer stays what it was. */
  refuse(code: string, message: string, retry: PeerRetry): void {
    const said = { code: cut(code, CODE_BYTES_MAX), message: cut(message, TEXT_BYTES_MAX) };
    this.#last({ kind: "refused", ...said, retry }, CLOSE.refused);
  }

  farewell(last: Extract<ToHost, { readonly kind: "bye" | "moved" }>): void {
    this.#last(
      last.kind === "bye" ? { ...last, reason: cut(last.reason, REASON_BYTES_MAX) } : last,
      CLOSE.done,
    );
  }

  /** Sends a host away from a home that is over: its program, if it lives, says hello again. */
  sendOn(): void {
    this.farewell({ kind: "moved", site: null });
  }

  #last(frame: ToHost, close: number): void {
    if (this.#isOver) return;
    this.send(frame);
    this.#over();
    this.#channel.close(close, "");
    this.#listener.gone(this);
  }

  #over(): void {
    this.#isOver = true;
    this.#cancelHello();
  }
}
