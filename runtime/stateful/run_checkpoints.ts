/**
 * The checkpoints of a run of a stateful session: when one is asked of its isolate, where it goes, and with which code
 * the session goes on after it.
 *
 * R4  A checkpoint names the code that reads it: where that is other code than this run's, no event was under way when
 *     it was taken, and the run is over with it.
 */
import type { Home, Opened as OpenedHome } from "../../functions/homes/mod.ts";
import type { Checkpoint } from "../../functions/turns/mod.ts";
import { wrapPiece } from "./pieces.ts";
import type { Releases } from "./releases.ts";

/** What checkpoints need of their run. */
export interface RunCheckpointPorts {
  /** The code that runs. */
  readonly version: string;
  readonly releases: Releases;
  readonly home: () => Home;
  readonly isOver: () => boolean;
  readonly isIdle: () => boolean;
  /** Changes when an event is delivered. */
  readonly events: () => number;
  /** Has the isolate take one when it is at rest; false: it is not there yet. */
  readonly ask: () => boolean;
  /** The log is in its checkpoint, and the run is over. */
  readonly rested: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A log of so many bytes is replaced by a checkpoint: some milliseconds of replay, and small beside what a site keeps of
 * a session anyway.
 */
const CHECKPOINT_LOG_BYTES = 256 * 1024;

/** See the file's header. */
export class RunCheckpoints {
  readonly #ports: RunCheckpointPorts;
  #at: number;
  #isAsked = false;
  #isLeaving = false;
  /** The code that the next checkpoint is for (R4). */
  #next: string | null = null;
  /** A checkpoint of other code is on disk as one of this code's (R4). */
  #adopted: Promise<void> = Promise.resolve();

  constructor(ports: RunCheckpointPorts, at: number) {
    this.#ports = ports;
    this.#at = at;
  }

  /** The last entry that the newest one stands for. */
  get at(): number {
    return this.#at;
  }

  /** The last one is on its way: no event may come after it (R4). */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Other code is to run it. */
  get isSwitching(): boolean {
    return this.#next !== null;
  }

  /** Resolves when the checkpoint that the run goes on from is one of its own code. */
  get adopted(): Promise<void> {
    return this.#adopted;
  }

  /** The checkpoint was written by other code, and nothing after it: from now on this code reads it. */
  adopt(home: Home, checkpoint: NonNullable<OpenedHome["checkpoint"]>): void {
    this.#adopted = home.checkpoint({ ...checkpoint, version: this.#ports.version });
  }

  /** Asks for one; with `next`, for that code (R4). */
  ask(next: string | null = null): void {
    this.#next = next ?? this.#next;
    if (this.#isAsked || this.#ports.isOver()) return;
    if (this.#next !== null && !this.#ports.isIdle()) return;
    this.#isAsked = this.#ports.ask();
  }

  /** A commit has left. */
  released(): void {
    if (this.#ports.home().logBytes > CHECKPOINT_LOG_BYTES || this.#next !== null) this.ask();
  }

  /** The isolate has taken one. */
  taken(checkpoint: Checkpoint): void {
    this.#isAsked = false;
    const { releases, isIdle, version: own, events: eventsOf } = this.#ports;
    const home = this.#ports.home();
    const events = eventsOf();
    releases.afterwards(async () => {
      this.#isLeaving = this.#next !== null && isIdle() && eventsOf() === events;
      const version = this.#isLeaving ? this.#next ?? own : own;
      const bytes = wrapPiece(releases.seen, checkpoint.bytes);
      const held = home.checkpoint({ at: checkpoint.at, bytes, version }).then(() => {
        this.#at = checkpoint.at;
        if (this.#isLeaving) this.#ports.rested(); // R4
      });
      // Answers do not wait until all owners have it.
      if (this.#isLeaving) await held;
      else held.catch((error) => this.#ports.failed(error));
    });
  }
}
