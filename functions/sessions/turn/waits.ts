/**
 * Waits of a session inside its isolate: closure timers, and results that are computed here.
 *
 * W1  An outcome is for the program that waited for it: a program that was made again waits anew.
 */
import { thrown } from "./handler.ts";
import type { Program } from "./program.ts";
import type { Alarmed, SessionIsolate } from "./session_host.ts";
import type { TurnInput } from "./turn.ts";

/** Outcome of a wait. */
export type WaitOutcome = Extract<TurnInput, { readonly kind: "local" | "result" | "error" }>;

/** An outcome that is to be delivered, while a handler runs too. */
export interface Delivery {
  readonly input: WaitOutcome;
  readonly storeClock: number;
}

/** The session that waits. */
export interface WaitingSession extends Alarmed {
  came(input: WaitOutcome): void;
  /** Program that runs now. */
  readonly program: Program;
}

/** See the file's header. */
export class Waits {
  readonly #host: Pick<SessionIsolate, "nowMs" | "arm" | "disarm">;
  readonly #session: WaitingSession;
  /** Times at which closure timers are due, by number, in the host's milliseconds; null: there was none. */
  #dueMs: Map<number, number> | null = null;

  constructor(host: Pick<SessionIsolate, "nowMs" | "arm" | "disarm">, session: WaitingSession) {
    this.#host = host;
    this.#session = session;
  }

  arm(local: number, ms: number): void {
    (this.#dueMs ??= new Map()).set(local, this.#host.nowMs() + ms);
    this.#host.arm(this.#session, local, ms);
  }

  disarm(local: number): void {
    if (this.#dueMs?.delete(local)) this.#host.disarm(this.#session, local);
  }

  /** Delivers a closure timer that is due. */
  due(local: number): void {
    if (this.#dueMs?.delete(local)) this.#session.came({ kind: "local", local });
  }

  /** Computes the result of a native call. */
  compute(call: number, start: () => Promise<Uint8Array>): void {
    const session = this.#session, { program } = session;
    const came = (input: WaitOutcome) => {
      if (session.program === program) session.came(input); // W1
    };
    start().then(
      (bytes) => came({ kind: "result", call, bytes }),
      (error) => came({ kind: "error", call, ...thrown(error) }),
    );
  }

  /**
   * Lets a program that was made again wait: its closure timers go on, its computations begin anew, but for what has
   * come already.
   */
  resume(program: Program, arrived: readonly WaitOutcome[]): void {
    const locals = new Set(arrived.map((input) => input.kind === "local" ? input.local : 0));
    const calls = new Set(arrived.map((input) => input.kind === "local" ? 0 : input.call));
    for (const local of [...this.#dueMs?.keys() ?? []]) if (!program.locals.has(local)) this.disarm(local);
    for (const [number, local] of program.locals) {
      if (this.#dueMs?.has(number) || locals.has(number)) continue;
      this.arm(number, program.locals.leftMs(local, this.#host.nowMs()));
    }
    for (const [call, { start }] of program.calls) {
      if (start !== undefined && !calls.has(call)) this.compute(call, start);
    }
  }

  close(): void {
    for (const local of this.#dueMs?.keys() ?? []) this.#host.disarm(this.#session, local);
    this.#dueMs = null;
  }
}
