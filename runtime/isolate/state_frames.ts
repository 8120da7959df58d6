/**
 * The state of a stateful session on its way between an isolate and its site, either way: its segments in frames of
 * their own (`sessionState`), before the frame that they belong to (`sessionOpen`, `sessionCheckpoint`).
 *
 *   sessionState: flag: a segment begins, then u32 its length · bytes
 *
 * ST1  The part of a checkpoint that is in the writer is bounded: the next part is written when the system has taken
 *      those before, and other frames go between them.
 * ST2  Checkpoints leave in the order in which they were taken. What is under way of a channel that is closed is not
 *      sent any more.
 * ST3  Of what comes no more is kept than a state may have, in all channels together; what is begun has to be ended.
 */
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { FrameError, ISOLATE_FRAME } from "./frames.ts";

/**
 * Bytes of a part: transfer costs flatten out before; with these two numbers the buffers at both ends are kept, and not
 * made anew for each part.
 */
const PART_BYTES = 256 << 10;
/** Bytes in the writer beyond which the system is waited for. */
const BACKLOG_BYTES = 512 << 10;
/**
 * Bytes of states that may be on their way here: as much as keepers take of one state
 * (functions/sessions/log/limits.ts).
 */
const COMING_BYTES_MAX = 256 << 20;
/** Bytes of a segment's flag and its length. */
const SEGMENT_HEAD_BYTES = 5;
/** Bytes that a segment counts for at least, however few it has. */
const SEGMENT_BYTES_LEAST = 256;

interface Leaving {
  readonly channel: number;
  readonly state: readonly Uint8Array[];
  /** Writes the frame that the state belongs to. */
  readonly done: () => void;
  segment: number;
  at: number;
}

/** Sends states in parts. */
export class StateSender {
  readonly #writer: FrameWriter;
  #queue: Leaving[] = [];
  #isWaiting = false;

  constructor(writer: FrameWriter) {
    this.#writer = writer;
  }

  /** Sends segments, and then has the frame written that they belong to: at once, where they are small. */
  send(channel: number, state: readonly Uint8Array[], done: () => void): void {
    this.#queue.push({ channel, state, done, segment: 0, at: 0 });
    this.#pump();
  }

  /** Drops what is still to be sent on a channel. */
  drop(channel: number): void {
    this.#queue = this.#queue.filter((one) => one.channel !== channel);
  }

  #pump = (): void => {
    if (this.#isWaiting) return;
    if (this.#writer.isClosed) this.#queue = [];
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (this.#writer.backlogBytes > BACKLOG_BYTES) {
        this.#isWaiting = true;
        return this.#writer.onDrained(() => {
          this.#isWaiting = false;
          this.#pump();
        });
      }
      if (this.#part(next)) continue;
      this.#queue.shift();
      next.done();
    }
  };

  /** Writes the next part; returns false where there is none. */
  #part(leaving: Leaving): boolean {
    const segment = leaving.state[leaving.segment];
    if (segment === undefined) return false;
    const { at } = leaving;
    this.#writer.begin(ISOLATE_FRAME.sessionState, leaving.channel).u8(at === 0 ? 1 : 0);
    if (at === 0) this.#writer.u32(segment.length);
    this.#writer.rest(segment.subarray(at, at + PART_BYTES)).end();
    leaving.at += PART_BYTES;
    if (leaving.at >= segment.length) [leaving.segment, leaving.at] = [leaving.segment + 1, 0];
    return true;
  }
}

interface Coming {
  readonly segments: Uint8Array[];
  /** Number of bytes of the last segment that are there. */
  filled: number;
}

/** Collects the states that come. */
export class StatesComing {
  readonly #channels = new Map<number, Coming>();
  readonly #kept: (bytes: number) => void;
  #bytes = 0;

  /** @param kept is told of the bytes of states that are kept more, or less. */
  constructor(kept: (bytes: number) => void = () => {}) {
    this.#kept = kept;
  }

  /** Takes a part of a state. @throws FrameError (ST3) */
  add(channel: number, payload: Payload): void {
    const coming = this.#channels.get(channel) ?? { segments: [], filled: 0 };
    this.#channels.set(channel, coming);
    const isFirst = payload.u8() === 1;
    if (isFirst) this.#begin(coming, payload.u32());
    const segment = coming.segments.at(-1);
    const bytes = payload.restView();
    if (segment === undefined || coming.filled + bytes.length > segment.length) {
      throw new FrameError("a part of a state belongs to no segment, or is longer than that");
    }
    segment.set(bytes, coming.filled);
    coming.filled += bytes.length;
  }

  /** Returns the segments that have come, before the frame that they belong to. @throws FrameError (ST3) */
  take(channel: number): Uint8Array[] {
    const coming = this.#channels.get(channel);
    this.drop(channel);
    if (coming === undefined) return [];
    if (!isWhole(coming)) throw new FrameError("a segment of a state is not whole");
    return coming.segments;
  }

  drop(channel: number): void {
    const coming = this.#channels.get(channel);
    if (!this.#channels.delete(channel) || coming === undefined) return;
    for (const { length } of coming.segments) this.#keep(-costOf(length));
  }

  #begin(coming: Coming, length: number): void {
    if (!isWhole(coming)) throw new FrameError("a segment of a state is not whole");
    this.#keep(costOf(length));
    if (this.#bytes > COMING_BYTES_MAX) {
      throw new FrameError(`more than ${COMING_BYTES_MAX} bytes of state are on their way`);
    }
    coming.segments.push(new Uint8Array(length));
    coming.filled = 0;
  }

  #keep(bytes: number): void {
    this.#bytes += bytes;
    this.#kept(bytes);
  }
}

const costOf = (length: number): number => Math.max(SEGMENT_BYTES_LEAST, length + SEGMENT_HEAD_BYTES);

const isWhole = ({ segments, filled }: Coming): boolean => filled === (segments.at(-1)?.length ?? 0);
