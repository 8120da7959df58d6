/**
 * The steps of a monotone function from positions of this site's journal to positions of an ancestor's, known at a few
 * points: a step (own, theirs) says that all of this journal up to `own` is in theirs up to `theirs`.
 *
 * T1  Steps rise strictly in both coordinates.
 * T2  Forgetting a step makes answers coarser (larger bounds, earlier reach), never wrong.
 */
import { STEPS_MAX } from "./limits.ts";
import type { Position } from "./row.ts";

export class Steps {
  readonly #own: Position[] = [];
  readonly #theirs: Position[] = [];

  /** Largest own position known to be included; 0 for none. */
  get top(): Position {
    return this.#own.at(-1) ?? 0;
  }

  /** Newest step, to be kept across a restart. */
  get last(): readonly [Position, Position] {
    return [this.top, this.#theirs.at(-1) ?? 0];
  }

  add(own: Position, theirs: Position): void {
    if (own <= this.top) return;
    while (this.#theirs.length > 0 && (this.#theirs.at(-1) ?? 0) >= theirs) {
      this.#own.pop();
      this.#theirs.pop();
    }
    this.#own.push(own);
    this.#theirs.push(theirs);
    if (this.#own.length > STEPS_MAX) this.#thin();
  }

  /** Drops every second step of the older half: the newest stay exact. */
  #thin(): void {
    const half = STEPS_MAX / 2;
    for (const list of [this.#own, this.#theirs]) {
      const kept = list.slice(0, half).filter((_, i) => i % 2 === 1);
      list.splice(0, half, ...kept);
    }
  }

  /** Returns a position of theirs that includes all of this journal up to `own`; null where none is known. */
  bound(own: Position): Position | null {
    if (own <= 0) return 0;
    if (own > this.top) return null;
    let low = 0, high = this.#own.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#own[middle] ?? 0) >= own) high = middle;
      else low = middle + 1;
    }
    return this.#theirs[low] ?? null;
  }

  /** Returns the largest own position whose bound is at most `theirs`; 0 for none. */
  reached(theirs: Position): Position {
    for (let i = this.#own.length - 1; i >= 0; i--) {
      if ((this.#theirs[i] ?? 0) <= theirs) return this.#own[i] ?? 0;
    }
    return 0;
  }
}
