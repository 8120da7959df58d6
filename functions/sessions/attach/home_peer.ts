/**
 * One peer of a session, at the session's home.
 *
 * Stages: attaching (its attach is with the session) → attached → detaching (its detach is with the session) → gone.
 *
 * HP1  A message is taken for the session once: those up to `taken` were, whatever a channel brings again. It has up to
 *      HANDED_MAX of one peer at a time, so that nobody's are kept waiting for all of another's.
 * HP2  `received` counts messages that are in the log; nothing else is ever acknowledged.
 * HP3  An output is kept from when it is told here until the peer says that it has it: `sent − kept.length` is acknowledged.
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

/** An output, and the entry of the log that it follows from. */
interface Kept extends OutputToPeer {
  readonly entry: number;
}

/** The entry of all that a session was opened with: it is released. */
export const OPENED_WITH = 0;

/** Host sides that spoke for one peer and were taken over: those that are alive are a few windows of one program. */
const BEFORE_MAX = 16;

/** What is for the session and not done. */
export interface WaitingEvent {
  readonly event: PeerInput;
  readonly bytes: number;
  /** In which it came, among those of all peers. */
  readonly order: number;
}

const NONE: readonly WaitingEvent[] = [];

/** See the file's header. */
export class HomePeer {
  readonly peer: Peer;
  readonly key: Uint8Array;
  stage: "attaching" | "attached" | "detaching";
  /** The host side that speaks for it, and its latest channel; 0 as long as none has. */
  instance = 0;
  /** The one that it was attached for. */
  begunBy = 0;
  attempt = 0;
  line: HomeLine<HomePeer> | null = null;
  /** What it is told when its detach is in the log, where that is no bye. */
  lastWord: ((line: HomeLine<HomePeer>) => void) | null = null;
  /** What its grace ends with, while it has no line. */
  cancelGrace: (() => void) | null = null;
  /** HP1, HP2 */
  taken: number;
  #received: number;
  sent: number;
  /** Outputs that the session was told to keep no longer. */
  reported = 0;
  readonly waiting: WaitingEvent[] = [];
  /** So many of these the session has. */
  handed = 0;
  waitingBytes = 0;
  /** Its session has sent it away, with its last output. */
  #isDismissed: boolean;
  readonly #kept: Kept[] = [];
  #keptBytes = 0;
  /** Host sides that it was taken from. */
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
    // Where some are missing in between, only what is behind can go out in order.
    for (let next = this.sent, i = outputs.length - 1; i >= 0; i--, next--) {
      const output = outputs[i];
      if (output?.sequence !== next) break;
      this.#kept.unshift({ ...output, entry: OPENED_WITH });
      this.#keptBytes += sizeOf(output);
    }
  }

  /** HP2 */
  get received(): number {
    return this.#received;
  }

  /** Outputs that it is known to have, all up to this one. */
  get acknowledged(): number {
    return this.sent - this.#kept.length;
  }

  /** It was sent away, and knows it. */
  get hasLeft(): boolean {
    return this.#isDismissed && this.#kept.length === 0;
  }

  /** It never said a thing, and never took one. */
  get isSilent(): boolean {
    return this.taken === 0 && this.acknowledged === 0;
  }

  isTooSlow(bytesMax = OUTBOX_BYTES_MAX): boolean {
    const { length } = this.#kept;
    return length > OUTBOX_OUTPUTS_MAX || (length > 1 && this.#keptBytes > bytesMax);
  }

  // ── Lines ──

  /** Why a host can't go on where its hello says; null where it can. */
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

  /** Another host side has taken it from that one, which does not know yet, or would have it back. */
  hasTakenFrom(instance: number): boolean {
    return this.#before.includes(instance);
  }

  /**
   * The host side that speaks for it is of a later program than that one: it may come again, where it lives. Numbers are
   * compared where both have one (docs/protocol/session-frames.md, Programs that speak for one peer).
   */
  isLaterThan({ instance, attempt }: PeerHello): boolean {
    const own = programOf(this.attempt), other = programOf(attempt);
    return instance !== this.instance && other > 0 && own > other;
  }

  /** A line is its line, where its hello fits. What it says of outputs is taken. */
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

  /** HP4 */
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

  /** Whether a message is a new one; null where it is none at all, and its line was told. */
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

  /** It has outputs up to this one, it says: false where that can't be, and its line was told. */
  heard(line: HomeLine<HomePeer>, count: number): boolean {
    if (count < line.heard || count > line.given) {
      const message = `outputs up to ${count} are acknowledged: ${line.heard} to ${line.given} may be`;
      line.refuse("message_malformed", message, "fix");
      return false;
    }
    line.heard = count;
    return this.acknowledge(count);
  }

  /** It is for the session. */
  wait(waiting: WaitingEvent): void {
    if (waiting.event.kind === "message") this.taken++;
    this.waiting.push(waiting);
    this.waitingBytes += waiting.bytes;
  }

  /** What the session may have now of what waits: it has it then. */
  hand(max = HANDED_MAX): readonly WaitingEvent[] {
    if (this.handed >= Math.min(this.waiting.length, max)) return NONE;
    const now = this.waiting.slice(this.handed, max);
    this.handed += now.length; // home_side.ts HM2
    return now;
  }

  /** The first that waits is done. */
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

  /** HP3. @param entry that it follows from. @throws Error where it is not the next. */
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

  /** Whether something is to be sent that follows from entries up to this one. */
  hasDue(reach: number): boolean {
    const next = this.#next;
    return next !== undefined && next.entry <= reach;
  }

  /** All that there is was sent, or there is nowhere to send it. */
  get isToldAll(): boolean {
    return this.#next === undefined;
  }

  /** The first output that its line has not had. */
  get #next(): Kept | undefined {
    const { line } = this;
    return line?.isWelcomed === true ? this.#kept[line.given - this.acknowledged] : undefined;
  }

  /** HP4: sends what follows from entries up to this one, behind these records of the log. */
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

  /** Says which messages are in the log, where that was not said. */
  tell(): void {
    const { line, received } = this;
    if (line?.isWelcomed !== true || line.told === received) return;
    line.told = received;
    line.send({ kind: "ack", received });
  }

  /**
   * To what was said by itself. A socket that keeps what it sends until all before it was acknowledged (Nagle; Deno's
   * WebSockets do) would keep the next message for as long as our system waits to say so, 40 ms.
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

/** 0: it is not known. */
const programOf = (attempt: number): number => Math.floor(attempt / PROGRAM_ATTEMPTS);

const sizeOf = ({ bytes }: OutputToPeer): number => bytes.length;
