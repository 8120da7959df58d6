/**
 * How much has come of messages that are not whole yet. Deno collects a WebSocket message of up to 64 MiB, twice, before it
 * shows any of it, and takes no smaller limit; but the kernel counts what each connection has received (descriptors.ts).
 *
 * KR1  What has come is counted from the last look before which a message was whole: no message begins before the one
 *      ahead of it ends. So it is too little by what comes between two looks, and never too much but for KR2.
 * KR2  Of what comes for each message CONTROL_BYTES_MAX are not counted, and CONTROL_BYTES_PER_S: pings and pongs stand
 *      between messages, too.
 * KR3  Before anybody is told of more, it is made sure whose connection it is (DS1).
 * KR4  Where the system can't tell (DS2) nobody is told anything.
 */
import { ConnectionWatch, descriptors } from "./descriptors.ts";

/** Three pings of the longest kind. Whoever sends a message this slowly takes a day and a half for 64 MiB. */
const CONTROL_BYTES_PER_S = 512;
/** Several that come together. */
const CONTROL_BYTES_MAX = 4_096;

/** One connection that is watched, from `watchReceived` to `end`. */
export class ReceivedWatch extends ConnectionWatch {
  readonly #tell: (bytes: number) => void;
  /** Read of the connection at the last look; null: it was not found yet. */
  read: number | null = null;
  /** A message was whole since the last look. */
  #isWhole = true;
  /** Of what was read, what is no part of a message that is not whole. */
  #done = 0;
  /** KR2 */
  #controlBytes = 0;
  #lookedMs = 0;
  /** What was told last. */
  #told = 0;

  constructor(peer: Deno.NetAddr, tell: (bytes: number) => void) {
    super(peer);
    this.#tell = tell;
  }

  /** A message has come, whole. */
  whole(): void {
    this.#isWhole = true;
  }

  /** The connection is closed, or what comes matters to nobody any more. */
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

/** From now on `tell` hears how many bytes have come of a message that is not whole, each time that this has changed. */
export function watchReceived(peer: Deno.Addr, tell: (bytes: number) => void): ReceivedWatch | undefined {
  if (peer.transport !== "tcp") return undefined;
  const watch = new ReceivedWatch(peer, tell);
  descriptors.watch(watch);
  return watch;
}
