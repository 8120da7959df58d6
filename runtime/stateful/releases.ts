/**
 * What leaves of a run of a stateful session: writes, answers, timers and calls, in the order of its commits
 * (session_run.ts R1), and what it has seen of the store meanwhile.
 *
 * RL1  One after the other, each when the one before has left. After the run is over nothing leaves (R2).
 */
import type { Acknowledged, Commit, Effect, HandledEvent, Opened } from "../../functions/turns/mod.ts";
import type { PeerClock } from "../../functions/peers/mod.ts";
import type { Home } from "../../functions/homes/mod.ts";
import { StoreUnavailable, type TokenState } from "../../store/api.ts";
import { pause } from "./clock.ts";
import type { OpenCalls } from "./open_calls.ts";
import type { OwnStore } from "./own_store.ts";
import type { RunListener } from "./run_over.ts";
import type { Timers } from "./timers.ts";

/** What releases need of their run. */
export interface ReleasingRun {
  readonly store: OwnStore;
  readonly clock: PeerClock;
  readonly listener: RunListener;
  readonly timers: Timers;
  readonly calls: OpenCalls;
  /** Events that are not done, by their number (R3). */
  readonly undone: Map<number, HandledEvent>;
  readonly home: Home;
  readonly isOver: boolean;
  /** The isolate is told. */
  acknowledged(acknowledged: Acknowledged): void;
  /** What was to leave could not. */
  failed(error: unknown): void;
}

const SETTLED = Promise.resolve();

/** See the file's header. */
export class Releases {
  readonly #run: ReleasingRun;
  #tail: Promise<void> = SETTLED;
  /** What the run has seen, and what of it the log says. */
  #seen: TokenState | null = null;
  #written: TokenState | null = null;

  constructor(run: ReleasingRun) {
    this.#run = run;
  }

  /** What the run has seen of the store. */
  get seen(): TokenState | null {
    return this.#seen;
  }

  /** What the next piece of the log has to say of it; null: as the piece before. */
  takeSeen(): TokenState | null {
    const seen = this.#seen;
    if (seen === this.#written || (seen !== null && isSame(seen, this.#written))) return null;
    return this.#written = seen;
  }

  /** Resolves when what was committed so far has left. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  /** Does something when all before it has left, unless the run is over (RL1). */
  afterwards(work: () => unknown): void {
    this.#tail = this.#tail.then(async () => {
      if (!this.#run.isOver) await work();
    }).catch((error) => this.#run.failed(error));
  }

  /** What its log left open leaves, before anything that is new. */
  async begin(opened: Opened): Promise<void> {
    const { store, timers, calls } = this.#run;
    for (const effect of opened.effects) await this.#apply(effect);
    this.#seen = await store.token();
    this.#acknowledge(opened);
    for (const { name, dueMs } of opened.timers) timers.set(name, dueMs);
    for (const call of opened.calls) calls.make(call);
  }

  /** Its log says that it ended, and its home died before that was on record: those who wait for its answers have them. */
  async answerAgain({ outputs }: Opened): Promise<void> {
    const { home, listener, store } = this.#run;
    for (const { to } of outputs) {
      if (listener.peers.isPeer(to)) continue;
      const asked = home.ask(to, true);
      if (asked.kind !== "known") continue;
      const bytes = await asked.answer;
      listener.answered(to, bytes, this.#seen ?? await store.token());
    }
  }

  /** R1: the commit is at all owners. @param entry its last one. */
  async release(commit: Commit, entry: number): Promise<void> {
    const { store, listener, undone, timers, calls, home } = this.#run;
    for (const effect of commit.effects) await this.#apply(effect);
    const token = this.#seen = await store.token();
    if (this.#run.isOver) return;
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
    for (const call of commit.calls) calls.make(call);
  }

  /**
   * What a turn wrote is applied however long that takes: its session waits, and those who ask it. Only what this site
   * takes from nobody is left out, and said.
   */
  async #apply(effect: Effect): Promise<void> {
    const { store, clock, listener } = this.#run;
    while (!this.#run.isOver) {
      try {
        return await store.apply(effect);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) {
          return listener.log("error", `a write of a stateful session is refused: ${error}`);
        }
        if (FOR_GOOD.has(error.code)) throw error;
        await pause(clock, APPLY_RETRY_MS);
      }
    }
  }

  /** Of answers this site keeps what is needed; peers say themselves what they have. */
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

/** No later attempt of this run is better. */
const FOR_GOOD: ReadonlySet<string> = new Set(["closed", "disk_failed", "source_lost"]);
/** The way to the root is back, or there is room again: looked at so often. */
const APPLY_RETRY_MS = 500;
