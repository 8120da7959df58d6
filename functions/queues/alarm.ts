/**
 * An alarm: one timer for all that waits for time to pass in a part of the program.
 *
 * AL1 It rings once at the earliest moment that was asked for, or soon after, and has to be set anew then.
 */
import type { Clock } from "../../store/model/ports.ts";

export class Alarm {
  readonly #clock: Pick<Clock, "after" | "steadyMs">;
  readonly #ring: () => void;
  #atMs = Infinity;
  #cancel: () => void = () => {};

  constructor(clock: Pick<Clock, "after" | "steadyMs">, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Has the alarm ring at `atMs` at the latest, by the steady clock. */
  set(atMs: number): void {
    if (atMs >= this.#atMs) return;
    this.#cancel();
    this.#atMs = atMs;
    this.#cancel = this.#clock.after(Math.max(0, atMs - this.#clock.steadyMs()), () => {
      this.#atMs = Infinity;
      this.#ring();
    });
  }

  stop(): void {
    this.#cancel();
    this.#atMs = -Infinity;
  }
}
