/**
 * Releases of a run of a stateful session: writes, answers, timers and calls that leave, in the order of its commits
 * (session_run.ts R1), and what its log says of the store meanwhile (pieces.ts).
 *
 * RL1  Commits leave one after the other, each when the one before has left. After the run is over nothing leaves (R2).
 * RL2  The writes of a commit are applied, and on disk, with all writes of commits before it, then its messages to
 *      queues stored (run_sends.ts), before anything else of it leaves, and before the log says so.
 * RL3  What a piece says that the session has seen is on disk before the piece leaves (pieces.ts P1). Effects that are
 *      on their way there are no part of it before a read meets them: the pieces behind them wait for nothing.
 * RL4  Work of which only a mark tells whether it was done (own_store.ts, O2), and which a home before may have done,
 *      is done when two things are so: it is known whether it was done (O5), and after that a piece of this epoch was
 *      given to all owners. No piece leaves before the first is so. So the last piece of a log names the one site that
 *      may have done such work since: whoever opens the log next asks that site, and none before it, and a site that
 *      left no piece has done nothing.
 * RL5  An answer has the token of all that the run has seen when it leaves, and that is on disk before: a handler behind
 *      it may have read what is not yet.
 */
import {
  type Acknowledged,
  type Commit,
  type Effect,
  type HandledEvent,
  isMergeEffect,
  type OpenedProgram,
} from "../turn/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import type { Home } from "../home/mod.ts";
import { StoreUnavailable, type TokenState } from "../../../store/api/api.ts";
import type { ClockValue } from "../../../store/model/row.ts";
import { pauseBy } from "./clock.ts";
import type { OpenCalls } from "./open_calls.ts";
import type { RunQueues, RunStore } from "./ports.ts";
import { OPEN_WORK, type PieceHead, type Seen } from "./pieces.ts";
import type { RunListener } from "./run_over.ts";
import { RunSends, type Unsent } from "./run_sends.ts";
import type { Timers } from "./timers.ts";

/** The run's part that releases need. */
export interface ReleasingRun {
  readonly store: RunStore;
  readonly queues: RunQueues;
  readonly clock: PeerClock;
  readonly listener: RunListener;
  readonly timers: Timers;
  readonly calls: OpenCalls;
  /** Events that are not done, by their number (R3). */
  readonly undone: Map<number, HandledEvent>;
  readonly home: Home;
  readonly isOver: boolean;
  /** Replica number under which the run writes (pieces.ts P5). */
  readonly writer: number;
  /** Clock of the first write that the running handler may have made; Infinity: none runs. */
  readonly begunAt: ClockValue;
  /** Tells the isolate what was acknowledged. */
  acknowledged(acknowledged: Acknowledged): void;
  /** Reports that something which was to leave could not. */
  failed(error: unknown): void;
}

const SETTLED = Promise.resolve();

/** See the file's header. */
export class Releases {
  readonly #run: ReleasingRun;
  readonly #sends: RunSends;
  #tail: Promise<void> = SETTLED;
  /** Token of what the run had seen when it last looked, and how much it had touched then. */
  #seen: TokenState | null = null;
  #touches = -1;
  /** Part of that which the log tells (`#written`), and what was on disk after the last commit that has left (`#settled`). */
  #written: Seen | null = null;
  #settled: Seen | null = null;
  /** Number of the last effect that is applied, and on disk; the effects after it, in their order. */
  #applied: number;
  #unapplied: Effect[] = [];
  /** Number of the last effect with merges. */
  #merges = 0;
  /** Resolves when it is known what homes before have done (RL4); null: it is. */
  #knowing: Promise<void> | null = null;
  /** True once work that homes before may have done may be done here (RL4). */
  #isKnown = false;

  /** @param applied the number of the last effect that the log says to be applied. */
  constructor(run: ReleasingRun, applied: number) {
    this.#run = run;
    this.#sends = new RunSends(run);
    this.#applied = applied;
  }

  /** Messages to queues that wait to be stored; null: none. */
  get unsent(): Unsent | null {
    return this.#sends.unsent;
  }

  /** Clock of the oldest effect that is still to be applied; Infinity: none is. */
  get owed(): ClockValue {
    return this.#unapplied[0]?.clock ?? Infinity;
  }

  /** True while writes of commits are on their way to the store. */
  get areWriting(): boolean {
    return this.#unapplied.length > 0;
  }

  /** Takes over what the log leaves to be done, and asks what homes before have done of it. */
  opened(opened: Pick<OpenedProgram, "effects" | "calls">): void {
    this.#comes(opened.effects);
    const { store } = this.#run;
    if (store.knowsMarks) return;
    const known = this.#knowing = this.#untilDone(() => store.knowMarks(opened)).then(() => {
      if (store.knowsMarks) this.#knowing = null;
    });
    known.catch((error) => this.#run.failed(error));
  }

  /**
   * Allows the work that the log leaves to be done, once it is known what was done (RL4). @param named resolves when a
   * piece of this epoch is at all owners; null: none need be.
   */
  async known(named: Promise<void> | null): Promise<void> {
    await this.#knowing;
    await named;
    this.#isKnown = true;
  }

  #comes(effects: readonly Effect[]): void {
    for (const effect of effects) {
      this.#unapplied.push(effect);
      if (effect.mutations.some(isMergeEffect)) this.#merges = effect.effect;
    }
  }

  /** Returns the head of a commit's piece; at once, or when the piece may leave (RL3, RL4). */
  committed({ effects, isPoint }: Pick<Commit, "effects" | "isPoint">): PieceHead | Promise<PieceHead> {
    const { calls } = this.#run;
    this.#comes(effects);
    const owed = Math.min(this.owed, isPoint ? Infinity : this.#run.begunAt);
    const open = owed !== Infinity ? owed : calls.areOpen ? OPEN_WORK : 0;
    const marks = calls.areChecked || this.#merges > this.#applied;
    const head = () => this.#headOf({ open, marks });
    return this.#knowing === null ? head() : this.#knowing.then(head);
  }

  #headOf(left: Pick<PieceHead, "open" | "marks">): PieceHead | Promise<PieceHead> {
    const { store } = this.#run;
    if (this.#seen === null || this.#touches !== store.touches) this.#look();
    const head = { seen: this.#unwritten(), ...left };
    return store.isDurable ? head : store.durable().then(() => head); // pieces.ts P1
  }

  /** Head of a base all of whose writes are applied: it leaves nothing open (pieces.ts P5). */
  get baseHead(): PieceHead {
    const seen = this.#settled, { writer } = this.#run;
    return { seen, open: 0, marks: false, ...(seen?.token.replica === writer ? {} : { writer }) };
  }

  #look(): TokenState {
    const { store } = this.#run;
    this.#touches = store.touches;
    return this.#seen = store.seen();
  }

  /** Returns what was seen that the log does not say yet; null: nothing. */
  #unwritten(): Seen | null {
    const token = this.#seen, applied = this.#applied, before = this.#written;
    if (token === null || (before?.applied === applied && isSame(token, before.token))) return null;
    return this.#written = { token, applied, isWhole: true };
  }

  /** Resolves when what was committed so far has left. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  /**
   * Does some work when all before it has left, unless the run is over (RL1). Resolves when nothing of the work waits.
   */
  afterwards(work: () => unknown): Promise<void> {
    return this.#tail = this.#tail.then(async () => {
      if (!this.#run.isOver) await work();
    }).catch((error) => this.#run.failed(error));
  }

  /** Releases what the log left open, before anything that is new. */
  async begin(opened: OpenedProgram): Promise<void> {
    const { timers, calls } = this.#run;
    if (this.#knowing !== null || !this.#isKnown) {
      throw new Error("what a home before may have done is about to be done again (RL4)");
    }
    await this.#applyAll(opened.effects, true);
    if (this.#run.isOver) return;
    this.#acknowledge(opened);
    for (const { name, dueMs } of opened.timers) timers.set(name, dueMs);
    const handler = opened.handling === null ? -1 : calls.handler;
    for (const call of opened.calls) calls.make(call, true, handler);
  }

  /**
   * Gives the answers of a session whose log says that it ended, and whose home died before that was on record, to
   * those who wait for them.
   */
  async answerAgain({ outputs }: OpenedProgram): Promise<void> {
    const { home, listener, store } = this.#run;
    for (const { to } of outputs) {
      if (listener.peers.isPeer(to)) continue;
      const asked = home.ask(to, true);
      if (asked.kind !== "known") continue;
      const bytes = await asked.answer;
      listener.answered(to, bytes, await store.token());
    }
  }

  /**
   * Releases a commit that is at all owners (R1, commit.ts CM1). @param entry its last one. @param handler the one that
   * made its calls (open_calls.ts).
   */
  async release(commit: Commit, entry: number, handler: number): Promise<void> {
    const { listener, undone, timers, calls, home } = this.#run;
    const token = await this.#applyAll(commit.effects, false);
    if (this.#run.isOver) return;
    if ((this.#unapplied[0]?.effect ?? Infinity) <= (commit.effects.at(-1)?.effect ?? 0)) {
      throw new Error("what a commit wrote is not applied, and it was to leave (RL2)");
    }
    const answered = new Set<string>();
    for (const { to, bytes } of commit.outputs) {
      if (listener.peers.isPeer(to)) continue;
      answered.add(to);
      listener.answered(to, bytes, token);
    }
    if (commit.rejected !== null) listener.rejected(commit.rejected);
    const done: [number, HandledEvent][] = [];
    for (const [number, event] of undone) {
      if (number > commit.through) break;
      undone.delete(number);
      done.push([number, event]);
      if (event.kind === "request" && !answered.has(event.request)) {
        home.dropped(event.request);
        listener.unanswered(event.request);
      }
    }
    if (done.some(([, { kind }]) => kind !== "reject")) listener.done();
    listener.peers.released(commit, done, entry);
    this.#acknowledge(commit);
    for (const { name, dueMs } of commit.timers) timers.set(name, dueMs);
    for (const call of commit.calls) calls.make(call, false, handler);
  }

  /**
   * Applies effects, and returns the token of what the run has seen then (RL2). @param isAgain they may be applied
   * already.
   */
  async #applyAll(effects: readonly Effect[], isAgain: boolean): Promise<TokenState> {
    const { store } = this.#run;
    if (isAgain && effects.length > 0) await this.#untilDone(() => store.applyOld(effects));
    for (const effect of effects) await this.#untilDone(() => store.apply(effect));
    await store.settle();
    await this.#sends.store(effects);
    if (this.#run.isOver) return store.seen();
    const last = effects.at(-1)?.effect ?? 0;
    this.#applied = Math.max(this.#applied, last);
    const left = this.#unapplied.findIndex(({ effect }) => effect > last);
    this.#unapplied.splice(0, left < 0 ? this.#unapplied.length : left);
    const token = this.#look(), applied = this.#applied;
    await store.durable(); // RL5
    this.#settled = { token, applied, isWhole: true };
    return token;
  }

  /**
   * Repeats a step until the store takes it, however long that takes: the session waits, and so do its callers. A write
   * that the store refuses for good is left out, and that is logged.
   */
  async #untilDone(apply: () => Promise<void>): Promise<void> {
    const { clock, listener } = this.#run;
    for (let isTold = false; !this.#run.isOver; isTold = true) {
      try {
        return await apply();
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) {
          return listener.log("error", `a write of a stateful session is refused: ${error}`);
        }
        if (FOR_GOOD.has(error.code)) throw error;
        if (!isTold) listener.log("warn", `a write of a stateful session waits: ${error.message}`);
        await pauseBy(clock, APPLY_RETRY_MS);
      }
    }
  }

  /**
   * Acknowledges outputs and effects. This site keeps the answers that are needed; peers say themselves what they have.
   */
  #acknowledge({ outputs: all, effects }: Pick<Commit, "outputs" | "effects">): void {
    const outputs = all.filter(({ to }) => !this.#run.listener.peers.isPeer(to));
    if (outputs.length === 0 && effects.length === 0) return;
    this.#run.acknowledged({
      outputs: Object.fromEntries(outputs.map(({ to, sequence }) => [to, sequence])),
      effects: effects.at(-1)?.effect ?? 0,
    });
  }
}

const isSame = (a: TokenState, b: TokenState | null): boolean =>
  b !== null && a.sequence === b.sequence && a.replica === b.replica && a.clock === b.clock &&
  a.open === b.open &&
  isEqual(a.session, b.session) && isEqual(a.path, b.path);

const isEqual = (a: ArrayLike<unknown>, b: ArrayLike<unknown>): boolean =>
  a.length === b.length && Array.prototype.every.call(a, (each, at) => each === b[at]);

/** Codes after which no later attempt of this run is better. */
const FOR_GOOD: ReadonlySet<string> = new Set(["closed", "disk_failed", "source_lost"]);
/** Milliseconds between attempts: the way to the root may be back, or there may be room again. */
const APPLY_RETRY_MS = 500;
