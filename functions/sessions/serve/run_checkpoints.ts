/**
 * The checkpoints of a run of a stateful session: when one is asked of its isolate, where it goes, and with which code
 * the session goes on after it.
 *
 * R4  A checkpoint names the code that reads it: where that is other code than this run's, no event was under way when
 *     it was taken, and the run is over with it. A run that goes on from a checkpoint of other code takes one of its own
 *     before any event, and events wait until all owners have it: none has a log of two codes behind one checkpoint.
 * RC1  A checkpoint goes to the home when all that was committed before it has left, its writes to the store among it: a
 *      base leaves nothing open (pieces.ts P3).
 * R10  Whoever is to rest is asked for one checkpoint of what its log has, however long that is on its way to owners.
 */
import type { Home } from "../home/mod.ts";
import type { Checkpoint } from "../turn/mod.ts";
import { wrapPiece } from "./pieces.ts";
import { packState } from "./state_parts.ts";
import type { Releases } from "./releases.ts";

/** What checkpoints need of their run. */
export interface CheckpointingRun {
  /** The code that runs. */
  readonly version: string;
  readonly releases: Releases;
  readonly home: Home;
  readonly isOver: boolean;
  readonly isIdle: boolean;
  /** Changes when an event is delivered. */
  readonly events: number;
  /** Has the isolate take one when it is at rest; false: it is not there yet. */
  askCheckpoint(): boolean;
  /** The log is in its checkpoint, and the run is over. */
  rested(): void;
  failed(error: unknown): void;
}

/**
 * A log of so many bytes is replaced by a checkpoint: some milliseconds of replay, and small beside what a site keeps of
 * a session anyway.
 */
const CHECKPOINT_LOG_BYTES = 256 * 1024;

const SETTLED = Promise.resolve();

/** See the file's header. */
export class RunCheckpoints {
  readonly #run: CheckpointingRun;
  #at: number;
  #taken: number;
  /** Resolves when the home has been given all so far, or rejects. */
  #written: Promise<unknown> = SETTLED;
  #isAsked = false;
  #isLeaving = false;
  /** The code that the next checkpoint is for (R4). */
  #next: string | null = null;
  /** Where it goes on from what other code has written: its first checkpoint (R4). */
  #first: PromiseWithResolvers<Checkpoint> | null = null;

  constructor(run: CheckpointingRun, at: number) {
    this.#run = run;
    this.#at = this.#taken = at;
  }

  /** The last entry that the newest one stands for which all owners have. */
  get at(): number {
    return this.#at;
  }

  /** The last entry that the newest one stands for: it may be on its way to owners. */
  get taken(): number {
    return this.#taken;
  }

  /** The isolate is to take one. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  /** The last one is on its way: no event may come after it (R4). */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Other code is to run it. */
  get isSwitching(): boolean {
    return this.#next !== null;
  }

  /** It goes on from what other code has written: the first checkpoint comes before all else (R4). */
  begin(): void {
    this.#first = Promise.withResolvers<Checkpoint>();
    this.#first.promise.catch(() => {});
    this.#run.askCheckpoint();
  }

  get isBeginning(): boolean {
    return this.#first !== null;
  }

  /** Waits until all owners have that one. @throws what ended the run meanwhile */
  async begun(): Promise<void> {
    if (this.#first === null) return;
    const checkpoint = await this.#first.promise;
    this.#first = null;
    await this.#write(
      checkpoint,
      wrapPiece(this.#run.releases.baseHead, checkpoint.bytes),
      this.#run.version,
    );
    this.#at = checkpoint.at;
  }

  /** The run is over before. */
  over(error: unknown): void {
    this.#first?.reject(error);
  }

  /** Asks for one; with `next`, for that code (R4). */
  ask(next: string | null = null): void {
    this.#next = next ?? this.#next;
    if (this.#isAsked || this.#run.isOver) return;
    if (this.#next !== null && !this.#run.isIdle) return;
    this.#isAsked = this.#run.askCheckpoint();
  }

  /** A commit has left. */
  released(): void {
    if (this.#run.home.logBytes > CHECKPOINT_LOG_BYTES || this.#next !== null) this.ask();
  }

  /** One after the other, as they were taken: the next goes on from this one. */
  #write({ at, on, state }: Checkpoint, bytes: Uint8Array, version: string): Promise<void> {
    const packed = packState(state);
    const written = this.#written.then(async () => {
      const parts = await packed;
      if (!this.#run.isOver) {
        return { held: this.#run.home.checkpoint({ at, on, bytes, version, parts }) };
      }
    });
    this.#written = written;
    return written.then((home) => home?.held);
  }

  /** The isolate has taken one; resolves when nothing of it waits. */
  came(checkpoint: Checkpoint): Promise<void> | void {
    this.#isAsked = false;
    this.#taken = checkpoint.at;
    if (this.#first !== null) return this.#first.resolve(checkpoint);
    const run = this.#run, { releases, version: own, events } = run;
    let held = SETTLED;
    const begun = releases.afterwards(async () => { // RC1
      this.#isLeaving = this.#next !== null && run.isIdle && run.events === events;
      const version = this.#isLeaving ? this.#next ?? own : own;
      held = this.#write(checkpoint, wrapPiece(releases.baseHead, checkpoint.bytes), version).then(
        () => {
          this.#at = checkpoint.at;
          if (this.#isLeaving) this.#run.rested(); // R4
        },
      );
      // Answers do not wait until all owners have it.
      if (this.#isLeaving) await held;
      else held = held.catch((error) => this.#run.failed(error));
    });
    return begun.then(() => held).catch(() => {});
  }
}
