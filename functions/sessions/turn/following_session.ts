/**
 * A stateful session that another isolate runs, at another site, and that this isolate follows: what is appended to the
 * session's log is replayed here as it comes, so that the session can go on here at once.
 *
 * Life: opened (checkpoint and log replayed) → pieces → `promoted`: a StatefulSession goes on with its program. Or closed.
 *
 * FO1  Nothing leaves a follower: no calls, no outputs, no timers. Its program is what checkpoint and log make (LP1).
 * FO2  A follower that can't go on says so once, as a reason to park, and does nothing more. The isolate that runs the
 *      session is not concerned.
 * FO3  Pieces come whole, in the order of the log.
 */
import type { OpenSession } from "./event.ts";
import { stackText } from "./handler.ts";
import { LoggedProgram } from "./logged_program.ts";
import { parkedError } from "./recovery.ts";
import type { Runnable, SessionIsolate } from "./session_host.ts";
import { StatefulSession } from "./stateful_session.ts";

/** Arguments with which a follower becomes the session itself. */
export type Promotion = Pick<OpenSession, "epoch" | "replica" | "out" | "effectsApplied">;

/** See the file's header. */
export class FollowingSession implements Runnable {
  readonly channel: number;
  readonly received = 0;
  readonly #host: SessionIsolate;
  readonly #logged: LoggedProgram;
  #pieces: Uint8Array[] = [];
  #isStarted = false;
  #isOver = false;

  constructor(host: SessionIsolate, channel: number, open: OpenSession) {
    this.#host = host;
    this.channel = channel;
    this.#logged = new LoggedProgram(host, open);
  }

  /** Takes a piece that was appended to the session's log. */
  piece(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#pieces.push(bytes);
    this.#host.wake(this);
  }

  get hasWork(): boolean {
    return !this.#isOver && (!this.#isStarted || this.#pieces.length > 0);
  }

  step(): void {
    try {
      if (!this.#isStarted) this.#start();
      else {
        const piece = this.#pieces.shift(); // FO3
        if (piece !== undefined) this.#logged.piece(piece);
      }
    } catch (error) {
      const { code, message, detail } = parkedError(error);
      this.close();
      this.#host.sink.parked(this.channel, { code, message, detail }); // FO2
    }
  }

  #start(): void {
    this.#isStarted = true;
    this.#logged.follow();
  }

  broke(error: unknown): void {
    this.close();
    const message = `the session could not be followed: ${stackText(error)}`;
    this.#host.sink.parked(this.channel, { code: "internal", message, detail: {} });
  }

  close(): void {
    this.#isOver = true;
    this.#pieces = [];
  }

  /**
   * Makes the session go on here, after what is left to follow. Returns null where it could not be followed; the sink
   * was told then.
   */
  promoted(promotion: Promotion): StatefulSession | null {
    while (this.hasWork) this.step();
    if (this.#isOver) return null;
    this.close();
    this.#logged.goOn(promotion);
    return new StatefulSession(this.#host, this.channel, promotion, this.#logged);
  }
}
