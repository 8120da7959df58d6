/**
 * Peer of a session, at the session's home.
 *
 * Stages: attaching (its attach is with the session) → attached → detaching (its detach is with the session) → gone.
 *
 * HP1  A message is taken for the session once: those up to `taken` were, whatever a channel brings again. The session
 *      has up to HANDED_MAX of one peer at a time, so that no peer's messages wait for all of another's.
 * HP2  `received` counts messages that are in the log; nothing else is ever acknowledged.
 * HP3  An output is kept from when it is told here until the peer says that it has it: the first `sent − kept.length`
 *      are acknowledged.
 * HP4  On each line outputs go in order, each once, from where the hello said, as far as they may (reach.ts).
 */
import type { OpenedPeer } from "../turn/commit.ts";
import type { Peer } from "../turn/event.ts";
import type { MessageFrame, PeerHello } from "./frame.ts";
import { COUNT_STEP_MAX, countFrom, DISMISSAL, encodeKept, isSequence } from "./frame_bytes.ts";
import type { HomeLine } from "./home_line.ts";
import {
  HANDED_MAX,
  OUTBOX_BYTES_MAX,
  OUTBOX_OUTPUTS_MAX,
  PEER_WINDOW_BYTES,
  PROGRAM_ATTEMPTS,
  WINDOW_MESSAGES,
} from "./limits.ts";
import type { OutputToPeer, PeerInput } from "./ports.ts";

/** Output with the entry of the log that it follows from. */
interface Kept extends OutputToPeer {
  readonly entry: number;
}

/** Entry of all outputs that a session was opened with: they are released. */
export const OPENED_WITH = 0;

/** Number of former host sides of a peer that are remembered: those alive are a few windows of one program. */
const BEFORE_MAX = 16;

/** Event that waits for the session, or is with it and not done. */
export interface WaitingEvent {
  readonly event: PeerInput;
  readonly bytes: number;
  /** Number of the event in the order in which those of all peers came. */
  readonly order: number;
}

const NONE: readonly WaitingEvent[] = [];

/** Peer of a session, at its home (see the file's header). */
export class HomePeer {
  readonly peer: Peer;
  readonly key: Uint8Array;
  stage: "attaching" | "attached" | "detaching";
  /** Number of the host side that speaks for the peer; 0 as long as none has. */
  instance = 0;
  /** Number of the host side that the peer was attached for. */
  begunBy = 0;
  attempt = 0;
  line: HomeLine<HomePeer> | null = null;
  /** Last frame to the peer when its detach is in the log; null: a bye. */
  lastWord: ((line: HomeLine<HomePeer>) => void) | null = null;
  /** Ends the timer of the peer's grace, which runs while it has no line. */
  cancelGrace: (() => void) | null = null;
  /** Number of messages taken for the session (HP1). */
  taken: number;
  #received: number;
  sent: number;
  /** Number of outputs that the session was told to keep no longer. */
  reported = 0;
  readonly waiting: WaitingEvent[] = [];
  /** Number of waiting events that the session has. */
  handed = 0;
  waitingBytes = 0;
  /** True once the session has sent the peer away, with its last output. */
  #isDismissed: boolean;
  readonly #kept: Kept[] = [];
  #keptBytes = 0;
  /** Host sides that the peer was taken from. */
  #before: readonly number[] = [];

  constructor(
    peer: Peer,
    key: Uint8Array,
    logged: OpenedPeer | null,
    outputs: readonly OutputToPeer[],
  ) {
    this.peer = peer;
    this.key = key;
    this.stage = logged === null ? "attaching" : "attached";
    this.taken = this.#received = logged?.received ?? 0;
    this.sent = logged?.sent ?? 0;
    this.#isDismissed = logged?.isClosed ?? false;
    // Where some outputs in between are missing, only those behind can go out in order.
    for (let next = this.sent, i = outputs.length - 1; i >= 0; i--, next--) {
      const output = outputs[i];
      if (output?.sequence !== next) break;
      this.#kept.unshift({ ...output, entry: OPENED_WITH });
      this.#keptBytes += sizeOf(output);
    }
  }

  /** Number of messages that are in the log (HP2). */
  get received(): number {
    return this.#received;
  }

  /** Number of outputs that the peer is known to have, all from the first on. */
  get acknowledged(): number {
    return this.sent - this.#kept.length;
  }

  /** True where the peer was sent away, and knows it. */
  get hasLeft(): boolean {
    return this.#isDismissed && this.#kept.length === 0;
  }

  /** True where the peer never said a thing, and never took one. */
  get isSilent(): boolean {
    return this.taken === 0 && this.acknowledged === 0;
  }

  isTooSlow(bytesMax = OUTBOX_BYTES_MAX): boolean {
    const { length } = this.#kept;
    return length > OUTBOX_OUTPUTS_MAX || (length > 1 && this.#keptBytes > bytesMax);
  }

  // ── Lines ──

  /** Returns why a host can't go on where its hello says; null where it can. */
  misfit({ received, first }: PeerHello): { readonly code: string; readonly message: string } | null {
    const { id } = this.peer;
    if (received > this.sent) {
      const message = `peer ${id} says to have ${received} outputs: it was given ${this.sent}`;
      return { code: "peer_ahead", message };
    }
    if (first > this.received + 1) {
      const message =
        `peer ${id} keeps its messages from ${first} on: those up to ${this.received} are in the log`;
      return { code: "peer_ahead", message };
    }
    if (received < this.acknowledged) {
      const message =
        `peer ${id} says to have ${received} outputs: it had ${this.acknowledged}, and they are kept no more`;
      return { code: "peer_behind", message };
    }
    return null;
  }

  /** Reports whether the peer was taken from that host side, which does not know yet, or would have it back. */
  hasTakenFrom(instance: number): boolean {
    return this.#before.includes(instance);
  }

  /**
   * Reports whether the host side that speaks for the peer is of a later program than the one that says hello: it may
   * come again, where it lives. Numbers are compared where both have one (docs/protocol/session-frames.md, Programs
   * that speak for one peer).
   */
  isLaterThan({ instance, attempt }: PeerHello): boolean {
    const own = programOf(this.attempt), other = programOf(attempt);
    return instance !== this.instance && other > 0 && own > other;
  }

  /** Makes a line, whose hello fits, the peer's line, and takes what the hello says of outputs. */
  bind(line: HomeLine<HomePeer>, hello: PeerHello): void {
    this.cancelGrace?.();
    this.cancelGrace = null;
    this.line = line;
    if (this.instance !== 0 && this.instance !== hello.instance && !this.isLaterThan(hello)) {
      this.#before = [this.instance, ...this.#before].slice(0, BEFORE_MAX);
    }
    this.instance = hello.instance;
    this.attempt = hello.attempt;
    line.peer = this;
    line.heard = hello.received;
    this.acknowledge(hello.received);
  }

  /** Welcomes the host: outputs go from where its hello said (HP4). */
  welcome(epoch: number): void {
    const { line } = this;
    if (line === null) return;
    line.isWelcomed = true;
    const received = line.told = this.received;
    line.next = received + 1;
    line.given = this.acknowledged;
    const { id } = this.peer;
    line.send({ kind: "welcome", identity: { id, key: this.key }, epoch, received });
  }

  // ── Messages ──

  /** Reports whether a message is a new one; null where it can't be taken, and its line was told. */
  isNew(line: HomeLine<HomePeer>, frame: MessageFrame, bytes: number): boolean | null {
    if (!isSequence(line.next, frame.sequence)) {
      line.refuse("message_gap", `message ${line.next} was to come, and another one did`, "retry");
      return null;
    }
    if (!this.heard(line, countFrom(line.heard, frame.received))) return null;
    if (line.next++ <= this.taken) return false; // HP1
    const isFull = this.waitingBytes > 0 && this.waitingBytes + bytes > PEER_WINDOW_BYTES;
    if (isFull || this.waiting.length >= WINDOW_MESSAGES) {
      const message =
        `peer ${this.peer.id} has ${this.waiting.length} messages of ${this.waitingBytes} bytes on their way: ` +
        `up to ${WINDOW_MESSAGES} and ${PEER_WINDOW_BYTES} bytes may be`;
      line.refuse("limit_window", message, "fix");
      return null;
    }
    return true;
  }

  /**
   * Takes the number of outputs that the host says to have. Returns false where that can't be, and its line was told.
   */
  heard(line: HomeLine<HomePeer>, count: number): boolean {
    if (count < line.heard || count > line.given) {
      const message = `outputs up to ${count} are acknowledged: ${line.heard} to ${line.given} may be`;
      line.refuse("message_malformed", message, "fix");
      return false;
    }
    line.heard = count;
    return this.acknowledge(count);
  }

  /** Adds an event for the session. */
  wait(waiting: WaitingEvent): void {
    if (waiting.event.kind === "message") this.taken++;
    this.waiting.push(waiting);
    this.waitingBytes += waiting.bytes;
  }

  /** Hands the session those waiting events that it may have now. */
  hand(max = HANDED_MAX): readonly WaitingEvent[] {
    if (this.handed >= Math.min(this.waiting.length, max)) return NONE;
    const now = this.waiting.slice(this.handed, max);
    this.handed += now.length; // home_side.ts HM2
    return now;
  }

  /** Removes the first waiting event: it is done. */
  done(kind: PeerInput["kind"]): void {
    const first = this.waiting.shift();
    if (first?.event.kind !== kind) {
      throw new Error(`a ${kind} of peer ${this.peer.id} is done, and ${first?.event.kind} was before it`);
    }
    this.waitingBytes -= first.bytes;
    this.handed = Math.max(0, this.handed - 1);
    if (kind === "message") this.#received++; // HP2
  }

  // ── Outputs ──

  /** Keeps an output (HP3). @param entry that it follows from. @throws Error where it is not the next. */
  output(output: OutputToPeer, entry: number): void {
    if (output.sequence <= this.sent) return;
    if (output.sequence !== this.sent + 1) {
      throw new Error(`output ${output.sequence} of peer ${this.peer.id} comes after ${this.sent}`);
    }
    this.sent++;
    this.#isDismissed = output.bytes[0] === DISMISSAL;
    this.#kept.push({ ...output, entry });
    this.#keptBytes += sizeOf(output);
  }

  /** Reports whether an output is to be sent that follows from entries up to this one. */
  hasDue(reach: number): boolean {
    const next = this.#next;
    return next !== undefined && next.entry <= reach;
  }

  /** True where every output was sent, or there is no line to send it on. */
  get isToldAll(): boolean {
    return this.#next === undefined;
  }

  /** First output that the line has not had. */
  get #next(): Kept | undefined {
    const { line } = this;
    return line?.isWelcomed === true ? this.#kept[line.given - this.acknowledged] : undefined;
  }

  /** Sends outputs that follow from entries up to this one, behind these records of the log (HP4). */
  flush(reach: number, records: readonly Uint8Array[] = []): void {
    const { line } = this;
    if (line?.isWelcomed !== true) return;
    const first = this.hasDue(reach) ? this.#next : undefined;
    const carried = first?.bytes[0] === DISMISSAL ? undefined : first && records.at(-1);
    for (const record of carried === undefined ? records : records.slice(0, -1)) {
      line.send({ kind: "record", record });
    }
    for (
      let next = first, increment = carried;
      next !== undefined && next.entry <= reach;
      next = this.#next
    ) {
      line.given = next.sequence;
      this.#send(line, next, increment);
      increment = undefined;
    }
  }

  #send(line: HomeLine<HomePeer>, { sequence, bytes }: Kept, increment: Uint8Array | undefined): void {
    const { received } = this;
    if (received - line.told > COUNT_STEP_MAX) this.tell();
    line.told = received;
    line.sendBytes(encodeKept({ sequence, received, tagged: bytes, increment }));
  }

  /** Tells the host which messages are in the log, where that was not said. */
  tell(): void {
    const { line, received } = this;
    if (line?.isWelcomed !== true || line.told === received) return;
    line.told = received;
    line.send({ kind: "ack", received });
  }

  /**
   * Answers a frame that was sent by itself. A socket that keeps what it sends until all before it was acknowledged
   * (Nagle; Deno's WebSockets do) would keep the next message for as long as our system waits to say so, 40 ms.
   */
  answer(): void {
    const { line, received } = this;
    if (line?.isWelcomed !== true) return;
    line.told = received;
    line.send({ kind: "ack", received });
  }

  acknowledge(count: number): true {
    const gone = this.#kept.splice(0, Math.max(0, count - this.acknowledged));
    for (const output of gone) this.#keptBytes -= sizeOf(output);
    return true;
  }
}

/** Returns the number of a program; 0 where it is not known. */
const programOf = (attempt: number): number => Math.floor(attempt / PROGRAM_ATTEMPTS);

const sizeOf = ({ bytes }: OutputToPeer): number => bytes.length;
