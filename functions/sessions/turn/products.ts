/** What a turn makes, until its session takes it. */
import type { Effect, Output, TimerChange } from "./commit.ts";

/** What a program made since it was last asked. */
export interface Products {
  outputs: Output[];
  effects: Effect[];
  timers: TimerChange[];
  /** Peers that have gone: nobody acknowledges any more what they were sent. */
  left: string[];
  calls: number[];
  dropped: number[];
  armed: number[];
  disarmed: number[];
}

export const noProducts = (): Products => ({
  outputs: [],
  effects: [],
  timers: [],
  left: [],
  calls: [],
  dropped: [],
  armed: [],
  disarmed: [],
});
