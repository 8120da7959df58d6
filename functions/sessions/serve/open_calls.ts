/**
 * The calls that one stateful session waits for: made by its home, given up when nobody waits for them any more.
 *
 * OC1  A call with an effect is open work of its log from the piece with its intent on, until a piece has its outcome,
 *      or the session is at rest: whoever opens the log in between makes the call again. A call that was dropped before
 *      it was made is not made.
 * OC2  A handler waits for the calls that it made itself: calls of a handler before it are waited for by no handler
 *      that runs.
 * OC3  A write with checks that the home before may have made is asked for until the store can be reached: a handler
 *      that were told that it can't be would make another write.
 * OC4  Two calls of one number, or more than WAITING_MAX under way, be they dropped or not, are made by no true
 *      program: an isolate that reports them has been compromised.
 */
import {
  type Call,
  type CallKind,
  type CallOutcome,
  type Commit,
  decodeCallToSession,
  resultsIn,
} from "../turn/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import { pauseBy } from "./clock.ts";
import type { CallMaker, Making } from "./ports.ts";
import type { WaitedCall } from "./waits.ts";

/** Milliseconds between attempts to learn the outcome of such a write (OC3). */
const KNOWN_RETRY_MS = 500;
/**
 * Number of calls under way: four times what a program lets wait, since calls that it has dropped end when they end
 * (OC4).
 */
const WAITING_MAX = 4_000;
const UNREACHABLE: ReadonlySet<string> = new Set(["source_unreachable", "store_unreachable"]);

/** The run whose calls they are. */
export interface CallingRun {
  readonly clock: PeerClock;
  readonly isOver: boolean;
  done(call: number, outcome: CallOutcome): void;
  /** Counts bytes of a call that wait at this site. Returns a function that gives them back. */
  holds(bytes: number): () => void;
  /** Reports that an outcome could not be told: the session can't go on as it is. */
  failed(error: unknown): void;
}

interface OpenCall {
  readonly call: Call;
  readonly controller: AbortController;
  readonly handler: number;
}

/** See the file's header. */
export class OpenCalls {
  readonly #maker: CallMaker;
  readonly #run: CallingRun;
  /** Open calls by number; null, as most sessions have it: none has been made. */
  #open: Map<number, OpenCall> | null = null;
  /** Number of calls that are being made, also where nobody waits for them any more. */
  #making = 0;
  /** Number of handlers that are over, as commits say (OC2). */
  #handlers = 0;

  /**
   * Functions that tell that an answer is in the log, by call, for answers that the log does not have yet
   * (made_calls.ts, M2); null, as most have it: there are none.
   */
  #unheard: Map<number, () => void> | null = null;
  /** Kinds of the calls that the log leaves open (OC1); null, as most have it: there are none. */
  #intents: Map<number, CallKind> | null = null;

  constructor(maker: CallMaker, run: CallingRun) {
    this.#maker = maker;
    this.#run = run;
  }

  get size(): number {
    return this.#open?.size ?? 0;
  }

  /**
   * Returns why these can't be calls of the session's program, beside a number that wait to be made; null: they can
   * (OC4).
   */
  misfit(calls: readonly Call[], waiting = 0): string | null {
    if (Math.max(this.#making + waiting, this.#intents?.size ?? 0) + calls.length > WAITING_MAX) {
      return `has more than ${WAITING_MAX} calls under way`;
    }
    const known = calls.find(({ call }) => this.#open?.has(call) || this.#intents?.has(call));
    return known === undefined ? null : `makes call ${known.call} a second time`;
  }

  /** Kinds of the open calls. */
  get kinds(): CallKind[] {
    return [...this.#open?.values() ?? []].map(({ call }) => call.kind);
  }

  /** Number of the handler that runs, for `make`; it changes when the log says that this handler is over. */
  get handler(): number {
    return this.#handlers;
  }

  /** Returns what the handler that runs waits for, of calls of other stateful sessions of its app (OC2). */
  waited(app: string): WaitedCall[] {
    const waited: WaitedCall[] = [];
    for (const { call, handler } of this.#open?.values() ?? []) {
      if (call.kind !== "session" || handler !== this.#handlers) continue;
      const { target } = decodeCallToSession(call.bytes);
      const request = this.#maker.keyOf(call.effect ?? call.call);
      waited.push({ name: { app, class: target.class, id: target.id }, request });
    }
    return waited;
  }

  /** True while the log leaves calls open (OC1). */
  get areOpen(): boolean {
    return this.#intents !== null;
  }

  /** True while writes with checks are among the calls that the log leaves open. */
  get areChecked(): boolean {
    return this.#intents?.values().some((kind) => kind === "commit") ?? false;
  }

  /** Notes calls of which a log has the intents, and no outcome. */
  intended(calls: readonly Call[]): void {
    for (const { call, kind, effect } of calls) {
      if (effect !== null) (this.#intents ??= new Map()).set(call, kind);
    }
  }

  /**
   * Makes a call.
   *
   * @param isAgain the home before may have made it.
   * @param handler the handler that made it (OC2); -1: one that is over.
   */
  make(call: Call, isAgain = false, handler = this.#handlers): void {
    if (!isAgain && call.effect !== null && this.#intents?.has(call.call) !== true) return; // OC1
    const controller = new AbortController();
    const open = this.#open ??= new Map();
    open.set(call.call, { call, controller, handler });
    const kept = (heard: () => void) => void (this.#unheard ??= new Map()).set(call.call, heard);
    const making = { signal: controller.signal, kept };
    const given = this.#run.holds(call.bytes.length);
    this.#making++;
    const made = isAgain && call.kind === "commit"
      ? this.#untilKnown(call, making)
      : this.#maker.make(call, making);
    made.then((outcome) => {
      this.#making--;
      given();
      if (open.get(call.call)?.controller !== controller) return;
      open.delete(call.call);
      this.#run.done(call.call, outcome);
    }).catch((error) => this.#run.failed(error));
  }

  /** Makes a write with checks again until its outcome is known (OC3). */
  async #untilKnown(call: Call, making: Making): Promise<CallOutcome> {
    for (;;) {
      const outcome = await this.#maker.make(call, making);
      const isUnknown = !outcome.ok && UNREACHABLE.has(outcome.code);
      if (!isUnknown || making.signal.aborted || this.#run.isOver) return outcome;
      await pauseBy(this.#run.clock, KNOWN_RETRY_MS);
    }
  }

  /** Drops a call: nobody waits for it any more. */
  drop(call: number): void {
    this.#open?.get(call)?.controller.abort();
    this.#open?.delete(call);
    this.#ended([call]);
  }

  #ended(calls: readonly number[]): void {
    for (const call of calls) this.#intents?.delete(call);
    if (this.#intents?.size === 0) this.#intents = null;
  }

  /** Notes a commit. Returns a function that is to be called when the commit is at all owners. */
  logged(
    { entries, calls, isQuiescent, isPoint }: Pick<Commit, "entries" | "calls" | "isQuiescent" | "isPoint">,
  ): () => void {
    if (isPoint) this.#handlers++;
    const heard = this.#unheard === null && this.#intents === null ? NOTHING : this.#outcomes(entries);
    // An intent or answer that is not in this commit will be in none: no call is open any more.
    if (isQuiescent) this.#unheard = this.#intents = null;
    this.intended(calls);
    return heard;
  }

  #outcomes(entries: Uint8Array): () => void {
    const calls = resultsOf(entries), unheard = this.#unheard;
    this.#ended(calls);
    const heard: (() => void)[] = [];
    for (const call of calls) {
      const tell = unheard?.get(call);
      if (tell !== undefined) heard.push(tell);
      unheard?.delete(call);
    }
    if (unheard?.size === 0) this.#unheard = null;
    return () => {
      for (const tell of heard) tell();
    };
  }

  close(): void {
    for (const call of [...this.#open?.keys() ?? []]) this.drop(call);
  }
}

const NOTHING = () => {};

/**
 * Returns the calls whose outcomes are among the entries. Entries that can't be read are reported by whoever replays
 * them.
 */
function resultsOf(entries: Uint8Array): number[] {
  try {
    return resultsIn(entries);
  } catch {
    return [];
  }
}
