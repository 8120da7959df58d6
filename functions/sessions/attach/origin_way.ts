/**
 * Way of a stateful session to its origin, at its home: to the end that the root or an agent holds
 * (origins/origin_ends.ts).
 *
 * OW1  The way is found again whenever it breaks, with a pause that doubles, until the session is over here.
 */
import type { Channel, ChannelReader, PeerClock } from "./mod.ts";
import { channelOf, feed, type FrameWay } from "./frame_way.ts";

/**
 * Shortest pause: a home that was taken over asks at once; an origin that is not there is asked for every few seconds.
 */
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 5_000;

/** Way to the origin (see the file's header). */
export class OriginWay {
  readonly #dial: () => Promise<FrameWay>;
  readonly #accept: (channel: Channel) => ChannelReader;
  readonly #failed: (error: unknown) => void;
  readonly #clock: PeerClock;
  #way: FrameWay | null = null;
  #isOver = false;
  #wake: () => void = () => {};

  /** @param failed told of a fault of the session's side of a way. */
  constructor(
    dial: () => Promise<FrameWay>,
    accept: (channel: Channel) => ChannelReader,
    failed: (error: unknown) => void,
    clock: PeerClock,
  ) {
    this.#dial = dial;
    this.#clock = clock;
    this.#accept = accept;
    this.#failed = failed;
    this.#run();
  }

  /** Ends the way: the session is over here. */
  close(): void {
    this.#isOver = true;
    this.#wake();
    this.#way?.close();
  }

  async #run(): Promise<void> {
    for (let pauseMs = PAUSE_MS_MIN; !this.#isOver; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) { // OW1
      const begunMs = this.#clock.nowMs();
      try {
        const way = this.#way = await this.#dial();
        if (this.#isOver) return way.close();
        await feed(way, this.#accept(channelOf(way)), this.#failed);
      } catch {
        // The root can't be reached: it is asked again.
      }
      if (this.#clock.nowMs() - begunMs > PAUSE_MS_MAX) pauseMs = PAUSE_MS_MIN; // OW1
      if (!this.#isOver) await this.#pause(pauseMs);
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
