/**
 * Group commit of one disk for many writers: their rows gather, and go in one step, as many as came while the step
 * before was written.
 *
 * G1  `durable` resolves when everything put before the call is on disk, and only then.
 * G2  Steps are in the order of the puts: after a crash the disk has a prefix of them (storage contract S2).
 * G3  A step that fails ends it: nothing is ever durable again.
 * G4  After `close` no step begins: what is put then is not written, and never durable.
 */
import type { Key } from "../../../store/model/key.ts";
import type { Clock, Storage } from "../../../store/model/ports.ts";
import type { Row } from "../../../store/model/row.ts";

interface Step {
  readonly rows: Map<Key, Row>;
  readonly drop: Set<Key>;
  readonly done: PromiseWithResolvers<void>;
}

const newStep = (): Step => {
  const done = Promise.withResolvers<void>();
  done.promise.catch(() => {});
  return { rows: new Map(), drop: new Set(), done };
};

export class GroupCommit {
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #fatal: (error: Error) => void;
  #position: number;
  #next: Step = newStep();
  /** Promise of the newest step that was begun. */
  #last: Promise<void> = Promise.resolve();
  #writing = false;
  /** True while somebody waits for the next step. */
  #isWanted = false;
  #isClosing = false;
  #failure: Error | null = null;
  /** Number of steps written. */
  steps = 0;

  /** @param position at least that of every row on the disk. */
  constructor(
    { storage, clock, fatal }: { storage: Storage; clock: Clock; fatal: (error: Error) => void },
    position: number,
  ) {
    this.#storage = storage;
    this.#clock = clock;
    this.#fatal = fatal;
    this.#position = position;
  }

  /**
   * Puts a row without waking the disk: it goes with the next step that something else needs, or that somebody waits
   * for.
   */
  putLater(key: Key, value: Uint8Array): void {
    if (!this.#isClosing) this.#put(key, value);
  }

  put(key: Key, value: Uint8Array): void {
    if (this.#isClosing) return;
    this.#put(key, value);
    this.#wake();
  }

  #put(key: Key, value: Uint8Array): void {
    const { rows, drop } = this.#next;
    rows.delete(key); // rows of a step rise by position
    rows.set(key, {
      key,
      value,
      position: ++this.#position,
      clock: 0,
      replica: 0,
      known: 0,
      expiresAtMs: 0,
    });
    drop.delete(key);
  }

  drop(key: Key): void {
    if (this.#isClosing) return;
    this.#next.rows.delete(key);
    this.#next.drop.add(key);
    this.#wake();
  }

  /** Resolves when all that was put before is on disk (G1). @throws what the disk said. */
  durable(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return this.#isClosing ? new Promise(() => {}) : this.#written();
  }

  #written(): Promise<void> {
    if (this.#isEmpty) return this.#last;
    this.#wake();
    return this.#next.done.promise;
  }

  /** Writes what has gathered, and stops (G4). Resolves when the disk is left alone, also where it has failed. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#failure === null) await this.#written().catch(() => {}); // whoever put it is told
  }

  get #isEmpty(): boolean {
    return this.#next.rows.size === 0 && this.#next.drop.size === 0;
  }

  #wake(): void {
    this.#isWanted = true;
    if (this.#writing || this.#failure !== null) return; // G2
    this.#writing = true;
    void this.#write();
  }

  async #write(): Promise<void> {
    await this.#clock.turn();
    while (this.#isWanted) {
      this.#isWanted = false;
      const step = this.#next;
      this.#next = newStep();
      this.#last = step.done.promise;
      try {
        await this.#storage.commit({
          rows: [...step.rows.values()],
          drop: [...step.drop],
          records: new Map(),
        });
      } catch (error) {
        return this.#fail(step, error);
      }
      this.steps++;
      step.done.resolve();
      await this.#clock.turn();
    }
    this.#writing = false;
  }

  /** Ends it after a step that failed (G3). */
  #fail(step: Step, error: unknown): void {
    this.#failure = asError(error);
    step.done.reject(this.#failure);
    this.#next.done.reject(this.#failure);
    this.#fatal(this.#failure);
  }
}

/** Returns what a disk threw, as an error. */
export const asError = (error: unknown): Error => error instanceof Error ? error : new Error(String(error));
