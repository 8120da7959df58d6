/** Interfaces between stateful sessions and the isolate that runs them (turn_loop.ts). */
import type { RunHost } from "./logged_program.ts";
import type { SessionSink } from "./sink.ts";

/** A session that the isolate gives turns, run or followed. */
export interface Runnable {
  readonly channel: number;
  readonly hasWork: boolean;
  /** Number of the newest event that has come; 0: none has. */
  readonly received: number;
  /** Does one thing. */
  step(): void;
  /** Reports that the executor itself failed. */
  broke(error: unknown): void;
  close(): void;
}

/** Object that is called when a closure timer is due. */
export interface Alarmed {
  localDue(local: number): void;
}

/** The isolate's part that a session needs. */
export interface SessionIsolate extends RunHost {
  readonly sink: SessionSink;
  /** Calls `localDue` after `ms` milliseconds. */
  arm(session: Alarmed, local: number, ms: number): void;
  disarm(session: Alarmed, local: number): void;
  /** Puts a session that has something to do into the queue. */
  wake(session: Runnable): void;
  /** Calls back when what was given out so far is on its way. */
  later(callback: () => void): void;
}
