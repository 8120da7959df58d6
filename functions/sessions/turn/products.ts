/** Products of a turn, until its session takes them. */
import type { Effect, Output, TimerChange } from "./commit.ts";

/** Things that a program made since its products were taken last. */
export interface Products {
  outputs: Output[];
  effects: Effect[];
  timers: TimerChange[];
  /** Ids of peers that have gone: outputs to them are not acknowledged any more. */
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
