/**
 * The lock, which decides what has the store's one thread next, of all that needs more of it than a moment: code that
 * changes rows, or reads several of them, holds the lock; a read of the disk beside it has its turn.
 *
 * TL1  Bodies that hold the lock run one after the other; those of one lane run in the order in which they were asked
 *      for.
 * TL2  Lanes take turns, one body at a time: a caller that asks for a thousand things at once waits for itself. The
 *      time that a body took is told to its lane, which then says when its next body may begin; where no lane may,
 *      nothing runs.
 * TL3  After SLICE_MS of bodies everything else that is ready is handled before the next.
 * TL4  A body in steps lets other bodies go first between two steps; where it keeps its place, only bodies of other
 *      lanes: rows that its own lane would change stay as they are until it ends. The site's own work is many things
 *      that don't wait for each other: none of it keeps its place.
 */
import type { Clock } from "./ports.ts";

/** Lane of a caller on whose behalf rows are read and changed; the site's own work has none. */
export interface Lane {
  /** True where the lane's next body may begin. */
  readonly mayHold: boolean;
  /** Notes the time that a body of the lane took. */
  held(ms: number): void;
  /** Calls back, once, when `mayHold` may have become true. */
  whenMayHold(go: () => void): void;
}

/**
 * Time of bodies after which others are handled, as an app's turn has it (runtime/isolate/app_turns.ts): short of what
 * a person notices, long enough for most bodies.
 */
export const SLICE_MS = 1;

/** Answer of a step after which another follows. */
export const GOES_ON = Symbol("goes on");

/** Body of work. It returns where its line goes on after this step; null: it has ended. */
type Body = () => Promise<"first" | "last" | null>;

interface Line {
  readonly lane: Lane | null;
  readonly bodies: Body[];
}

/** Bodies by lane, in rotation. */
class Lines {
  readonly #clock: Pick<Clock, "steadyMs" | "turn">;
  readonly #isExclusive: boolean;
  /** Lines with bodies that wait, next first. */
  #waiting: Line[] = [];
  /** Lanes that are to call back. */
  readonly #awaited = new Set<Lane>();
  #isServing = false;
  #busyMs = 0;

  /** Makes lines without bodies. @param isExclusive true where a body has to end before the next begins. */
  constructor(clock: Pick<Clock, "steadyMs" | "turn">, isExclusive: boolean) {
    this.#clock = clock;
    this.#isExclusive = isExclusive;
  }

  run<T>(step: () => Promise<T | typeof GOES_ON>, lane: Lane | null, keepsPlace = false): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const goesOn = keepsPlace && lane !== null ? "first" : "last"; // TL4
    const body = async () => {
      try {
        const result = await step();
        if (result === GOES_ON) return goesOn;
        resolve(result);
      } catch (error) {
        reject(error);
      }
      return null;
    };
    this.#lineOf(lane).bodies.push(body);
    this.#wake();
    return promise;
  }

  #lineOf(lane: Lane | null): Line {
    const found = this.#waiting.find((each) => each.lane === lane);
    if (found !== undefined) return found;
    const line = { lane, bodies: [] };
    this.#waiting.push(line);
    return line;
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
      const goesOn = this.#isExclusive ? await ended : null;
      if (goesOn === "first") this.#lineOf(line.lane).bodies.unshift(body as Body);
      if (goesOn === "last") this.#lineOf(line.lane).bodies.push(body as Body);
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

  /** Returns the first line that may go, taken out of the rotation. */
  #next(): Line | undefined {
    const at = this.#waiting.findIndex(({ lane }) => lane === null || lane.mayHold);
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
  }
}

/** Lock of a store, and the rotation of its disk reads. */
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

  /**
   * Holds the lock while each step of a body runs, until one returns something else than GOES_ON.
   *
   * @param keepsPlace true where other bodies of its lane wait until it has ended (TL4).
   */
  runSteps<T>(step: () => Promise<T | typeof GOES_ON>, lane: Lane | null, keepsPlace: boolean): Promise<T> {
    return this.#holders.run(step, lane, keepsPlace);
  }

  /** Runs a read of the disk that needs no lock. */
  read<T>(body: () => Promise<T>, lane: Lane | null = null): Promise<T> {
    return this.#readers.run(body, lane);
  }
}
