/**
 * The checkpoints of a run of a stateful session: when one is asked of its isolate, where it goes, and with which code
 * the session goes on after it.
 *
 * R4  A checkpoint names the code that reads it: where that is other code than this run's, no event was under way when
 *     it was taken, and the run is over with it. A run that goes on from a checkpoint of other code takes one of its
 *     own before any event, and events wait until all owners have it: no owner has a log of two codes behind one
 *     checkpoint.
 * RC1  A checkpoint goes to the home when all that was committed before it has left, its writes to the store among it:
 *      a base leaves nothing open (pieces.ts P3).
 * R10  A session that is to rest is asked for one checkpoint of what its log has, however long that is on its way to
 *      owners.
 */
import type { Home } from "../home/mod.ts";
import type { Checkpoint } from "../turn/mod.ts";
import { wrapPiece } from "./pieces.ts";
import { packState } from "./state_parts.ts";
import type { Releases } from "./releases.ts";

/** The run's part that checkpoints need. */
export interface CheckpointingRun {
  /** Version of the app whose code runs. */
  readonly version: string;
  readonly releases: Releases;
  readonly home: Home;
  readonly isOver: boolean;
  readonly isIdle: boolean;
  /** Number that changes when an event is delivered. */
  readonly events: number;
  /** Has the isolate take a checkpoint when the session is at rest. Returns false where there is no isolate yet. */
  askCheckpoint(): boolean;
  /** Ends the run: the log is in its checkpoint. */
  rested(): void;
  failed(error: unknown): void;
}

/**
 * Bytes of log that are replaced by a checkpoint: some milliseconds of replay, and small beside what a site keeps of a
 * session anyway.
 */
const CHECKPOINT_LOG_BYTES = 256 * 1024;

const SETTLED = Promise.resolve();

/** The checkpoints of one run. */
export class RunCheckpoints {
  readonly #run: CheckpointingRun;
  #at: number;
  #taken: number;
  /** Resolves when the home has been given all checkpoints so far, or rejects. */
  #written: Promise<unknown> = SETTLED;
  #isAsked = false;
  #isLeaving = false;
  /** Code that the next checkpoint is for (R4); null: the code of this run. */
  #next: string | null = null;
  /** First checkpoint of a run that goes on from what other code has written (R4); null: it is not waited for. */
  #first: PromiseWithResolvers<Checkpoint> | null = null;

  constructor(run: CheckpointingRun, at: number) {
    this.#run = run;
    this.#at = this.#taken = at;
  }

  /** Last entry that is in the newest checkpoint which all owners have. */
  get at(): number {
    return this.#at;
  }

  /** Last entry that is in the newest checkpoint: it may be on its way to owners. */
  get taken(): number {
    return this.#taken;
  }

  /** True while the isolate is to take a checkpoint. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  /** True while the last checkpoint is on its way: no event may come after it (R4). */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** True while other code is to run the session. */
  get isSwitching(): boolean {
    return this.#next !== null;
  }

  /**
   * Asks for the first checkpoint of a run that goes on from what other code has written: it comes before all else
   * (R4).
   */
  begin(): void {
    this.#first = Promise.withResolvers<Checkpoint>();
    this.#first.promise.catch(() => {});
    this.#run.askCheckpoint();
  }

  get isBeginning(): boolean {
    return this.#first !== null;
  }

  /** Waits until all owners have that first checkpoint. @throws what ended the run meanwhile */
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

  /** Ends the wait for the first checkpoint: the run is over before. */
  over(error: unknown): void {
    this.#first?.reject(error);
  }

  /** Asks for a checkpoint; with `next`, for that code (R4). */
  ask(next: string | null = null): void {
    this.#next = next ?? this.#next;
    if (this.#isAsked || this.#run.isOver) return;
    if (this.#next !== null && !this.#run.isIdle) return;
    this.#isAsked = this.#run.askCheckpoint();
  }

  /** Asks for a checkpoint, where one is due, after a commit has left. */
  released(): void {
    if (this.#run.home.logBytes > CHECKPOINT_LOG_BYTES || this.#next !== null) this.ask();
  }

  /** Writes checkpoints one after the other, as they were taken: the next goes on from this one. */
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

  /** Takes a checkpoint of the isolate. Resolves when nothing of it waits here. */
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
      // Answers do not wait until all owners have the checkpoint.
      if (this.#isLeaving) await held;
      else held = held.catch((error) => this.#run.failed(error));
    });
    return begun.then(() => held).catch(() => {});
  }
}
