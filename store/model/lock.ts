/**
 * Who has the store's one thread next, of those that need more of it than a moment: whoever changes rows, or reads several of
 * them, holds the lock; a read of the disk beside it has its turn.
 *
 * TL1  Bodies that hold the lock run one after the other; those of one lane in the order in which they were asked for.
 * TL2  Lanes take turns, one body at a time: who asks for a thousand things at once waits for himself. What a body took is
 *      told to its lane, which then says when its next one may begin; where no lane may, nothing runs.
 * TL3  After SLICE_MS of bodies everything else that is ready is handled before the next.
 */
import type { Clock } from "./ports.ts";

/** On whose behalf rows are read and changed; the site's own work has none. */
export interface Lane {
  /** Its next body may begin. */
  readonly mayHold: boolean;
  /** A body of it took so long. */
  held(ms: number): void;
  /** Calls back, once, when `mayHold` may have become true. */
  whenMayHold(go: () => void): void;
}

/** As an app's turn has it (runtime/isolate/app_turns.ts): short of what a person notices, long enough for most bodies. */
export const SLICE_MS = 1;

interface Line {
  readonly lane: Lane | null;
  readonly bodies: (() => Promise<void>)[];
}

/** Bodies by lane, in rotation. */
class Lines {
  readonly #clock: Pick<Clock, "steadyMs" | "turn">;
  readonly #isExclusive: boolean;
  /** Those with bodies that wait, next first. */
  #waiting: Line[] = [];
  /** Lanes that call back. */
  readonly #awaited = new Set<Lane>();
  #isServing = false;
  #busyMs = 0;

  /** @param isExclusive whether a body has to end before the next begins. */
  constructor(clock: Pick<Clock, "steadyMs" | "turn">, isExclusive: boolean) {
    this.#clock = clock;
    this.#isExclusive = isExclusive;
  }

  run<T>(body: () => Promise<T>, lane: Lane | null): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const whole = () => Promise.try(body).then(resolve, reject);
    const line = this.#waiting.find((each) => each.lane === lane);
    if (line === undefined) this.#waiting.push({ lane, bodies: [whole] });
    else line.bodies.push(whole);
    this.#wake();
    return promise;
  }

  #wake = (): void => {
    if (this.#isServing || this.#waiting.length === 0) return;
    this.#isServing = true;
    queueMicrotask(() => void this.#serve());
  };

  async #serve(): Promise<void> {
    for (let line = this.#next(); line !== undefined; line = this.#next()) {
      const begunMs = this.#clock.steadyMs();
      const body = line.bodies.shift();
      if (line.bodies.length > 0) this.#waiting.push(line);
      const ended = body?.();
      if (this.#isExclusive) await ended;
      const ms = this.#clock.steadyMs() - begunMs;
      line.lane?.held(ms);
      this.#busyMs += ms;
      if (this.#busyMs < SLICE_MS) continue;
      this.#busyMs = 0;
      await this.#clock.turn();
    }
    this.#isServing = false;
    for (const { lane } of this.#waiting) if (lane !== null) this.#await(lane);
  }

  #await(lane: Lane): void {
    if (this.#awaited.has(lane)) return;
    this.#awaited.add(lane);
    lane.whenMayHold(() => {
      this.#awaited.delete(lane);
      this.#wake();
    });
  }

  /** The first that may go, taken out of the rotation. */
  #next(): Line | undefined {
    const at = this.#waiting.findIndex(({ lane }) => lane === null || lane.mayHold);
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
  }
}

/** See the file's header. */
export class Lock {
  readonly #holders: Lines;
  readonly #readers: Lines;

  constructor(clock: Pick<Clock, "steadyMs" | "turn">) {
    this.#holders = new Lines(clock, true);
    this.#readers = new Lines(clock, false);
  }

  /** Holds the lock while the body runs. */
  run<T>(body: () => Promise<T>, lane: Lane | null = null): Promise<T> {
    return this.#holders.run(body, lane);
  }

  /** For a read of the disk that needs no lock. */
  read<T>(body: () => Promise<T>, lane: Lane | null = null): Promise<T> {
    return this.#readers.run(body, lane);
  }
}
