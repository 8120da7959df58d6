/** What stateful sessions are to their isolate, and what they need of it (turn_loop.ts). */
import type { RunHost } from "./logged_program.ts";
import type { SessionSink } from "./sink.ts";

/** Something of an isolate that has turns. */
export interface Runnable {
  readonly channel: number;
  readonly hasWork: boolean;
  /** The number of the newest event that has come; 0: none. */
  readonly received: number;
  /** Does one thing. */
  step(): void;
  /** The executor itself failed. */
  broke(error: unknown): void;
  close(): void;
}

/** Something that waits for its time. */
export interface Alarmed {
  localDue(local: number): void;
}

/** What a session needs of the isolate. */
export interface SessionIsolate extends RunHost {
  readonly sink: SessionSink;
  /** Calls `localDue` after so many milliseconds. */
  arm(session: Alarmed, local: number, ms: number): void;
  disarm(session: Alarmed, local: number): void;
  /** It has something to do. */
  wake(session: Runnable): void;
  /** Calls back when what was given out so far is on its way. */
  later(callback: () => void): void;
}
