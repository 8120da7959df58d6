/**
 * Count of the bytes that have come of WebSocket messages that are not whole yet. Deno collects a message of up to 64
 * MiB, twice, before it shows any of it, and takes no smaller limit; but the kernel counts what each connection has
 * received (descriptors.ts).
 *
 * KR1  Bytes are counted from the last look before which a message was whole: no message begins before the one ahead of
 *      it ends. So the count is too low by what comes between two looks, and never too high but for KR2.
 * KR2  For each message CONTROL_BYTES_MAX are not counted, and CONTROL_BYTES_PER_S: pings and pongs come between
 *      messages, too.
 * KR3  Before more is reported, it is checked that the descriptor still is the connection's (DS1).
 * KR4  Where the system can't tell (DS2) nothing is reported.
 */
import { ConnectionWatch, descriptors } from "./descriptors.ts";

/**
 * Bytes of control frames a second that are not counted: three pings of the longest kind. A client that sends a message
 * this slowly takes a day and a half for 64 MiB.
 */
const CONTROL_BYTES_PER_S = 512;
/** Bytes of several control frames that come together. */
const CONTROL_BYTES_MAX = 4_096;

/** Watch of one connection, from `watchReceived` to `end`. */
export class ReceivedWatch extends ConnectionWatch {
  readonly #tell: (bytes: number) => void;
  /** Bytes read of the connection at the last look; null: it was not found yet. */
  read: number | null = null;
  /** True where a message was whole since the last look. */
  #isWhole = true;
  /** Bytes read that are no part of an unfinished message. */
  #done = 0;
  /** Bytes that control frames may have (KR2). */
  #controlBytes = 0;
  #lookedMs = 0;
  /** Bytes that were reported last. */
  #told = 0;

  constructor(peer: Deno.NetAddr, tell: (bytes: number) => void) {
    super(peer);
    this.#tell = tell;
  }

  /** Notes that a message has come, whole. */
  whole(): void {
    this.#isWhole = true;
  }

  /** Ends the watch: the connection is closed, or what comes matters to nobody any more. */
  end(): void {
    descriptors.end(this);
  }

  override found(): void {
    this.#isWhole = true;
  }

  override lost(): void {
    this.read = null;
  }

  looked(read: number, nowMs: number): void {
    if (read < (this.read ?? 0)) return descriptors.lose(this);
    const came = read - (this.read ?? read), tookMs = nowMs - this.#lookedMs;
    this.read = read;
    this.#lookedMs = nowMs;
    const mayBytes = Math.min(CONTROL_BYTES_MAX, this.#controlBytes + CONTROL_BYTES_PER_S * tookMs / 1_000);
    const control = Math.min(Math.floor(mayBytes), came);
    this.#controlBytes = this.#isWhole ? CONTROL_BYTES_MAX : mayBytes - control;
    this.#done = this.#isWhole ? read : this.#done + control; // KR1, KR2
    this.#isWhole = false;
    const bytes = read - this.#done;
    if (bytes === this.#told) return;
    if (bytes > this.#told && !descriptors.isStill(this)) return descriptors.lose(this); // KR3
    this.#told = bytes;
    this.#tell(bytes);
  }
}

/**
 * Watches a connection: `tell` is called with the bytes that have come of an unfinished message, each time that they
 * have changed.
 */
export function watchReceived(peer: Deno.Addr, tell: (bytes: number) => void): ReceivedWatch | undefined {
  if (peer.transport !== "tcp") return undefined;
  const watch = new ReceivedWatch(peer, tell);
  descriptors.watch(watch);
  return watch;
}
