/**
 * One opening of a stateful session at its home: its log at the owners, its state in an isolate, its session at the
 * store, and what goes between them.
 *
 * Stages: `open` (the home's log is replayed in an isolate, what may not have left yet leaves) → events in, commits out
 * → over, once, for one reason (RunOver).
 *
 * R1  A commit's entries are at all owners before anything of it leaves: then its writes are applied, and on disk here,
 *     then its answers leave, then its timers are set and its calls made; one commit after the other (commit.ts, CM1).
 * R2  After it is over nothing of it leaves, and nothing is heard of its isolate.
 * R3  An event is done when a commit says so; those that are not are handed back when it is over.
 * R4  A checkpoint names the code that reads it: where that is other code than this run's, no event was under way when
 *     it was taken, and the run is over with it.
 * R5  What the isolate says of its log fits the home's, entry by entry; where it does not the run is over, and the log
 *     is as it was.
 */
import type {
  Acknowledged,
  Call,
  Checkpoint,
  Commit,
  Effect,
  HandledEvent,
  Opened,
  Parked,
} from "../../functions/turns/mod.ts";
import type { Home, Opened as OpenedHome } from "../../functions/homes/mod.ts";
import { StoreUnavailable, type TokenState } from "../../store/api.ts";
import type { ChannelSink, StatefulEnd } from "../isolate/mod.ts";
import type { OpenChannel } from "../isolate/mod.ts";
import type { CallMaker } from "./made_calls.ts";
import { OpenCalls } from "./open_calls.ts";
import type { OwnStore } from "./own_store.ts";
import { wrapPiece } from "./pieces.ts";
import { RunFailed, type RunListener, type RunOver } from "./run_over.ts";
import { Timers } from "./timers.ts";

/** What a run is made of. */
export interface RunParts {
  readonly home: OpenedHome;
  /** The code that runs: a version of the app. */
  readonly version: string;
  readonly store: OwnStore;
  readonly listener: RunListener;
  readonly calls: Omit<CallMaker, "store" | "signal">;
  readonly nowMs: () => number;
  /** The checkpoint was written by other code, and nothing after it: from now on this code reads it. */
  readonly isAdopted: boolean;
}

/** See the file's header. */
export class SessionRun implements ChannelSink {
  readonly version: string;
  readonly store: OwnStore;
  /** The request whose handler the log left running: it goes on, and is not delivered again. */
  handling: string | null = null;
  readonly #parts: RunParts;
  readonly #opening = Promise.withResolvers<void>();
  readonly #timers: Timers;
  readonly #undone = new Map<number, HandledEvent>();
  readonly #calls: OpenCalls;
  #home: Home | null = null;
  /** The last entry that the isolate has told (R5). */
  #told = 0;
  /** A checkpoint of other code is on disk as one of this code's (R4). */
  #adopted: Promise<void> = Promise.resolve();
  #at: OpenChannel | null = null;
  #nextEvent = 1;
  /** What is to happen in the order of commits (R1). */
  #tail: Promise<void> = Promise.resolve();
  #over: RunOver | null = null;
  readonly #finished = Promise.withResolvers<void>();
  #isQuiescent = false;
  #checkpointAt: number;
  #isAsked = false;
  /** Its last checkpoint is on its way: no event may come after it (R4). */
  #isLeaving = false;
  /** The code that the next checkpoint is for (R4). */
  #next: string | null = null;
  #usedMs: number;
  /** As the log says it. */
  #written: TokenState | null = null;
  #seen: TokenState | null = null;

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.version = parts.version;
    this.store = parts.store;
    this.#checkpointAt = parts.home.checkpoint?.at ?? 0;
    this.#usedMs = parts.nowMs();
    this.#timers = new Timers(parts.nowMs, (name, dueMs) => this.deliver({ kind: "timer", name, dueMs }));
    this.#calls = new OpenCalls({ ...parts.calls, store: parts.store }, (call, outcome) => {
      const storeClock = this.store.tick();
      this.#at?.isolate.deliver(this.#at.channel, { kind: "result", storeClock, call, outcome });
    });
    this.#opening.promise.catch(() => {});
  }

  /** Resolves when it serves. @throws RunFailed where its state could not be made, StatefulLoadError, HomeError … */
  async start(at: Promise<OpenChannel>): Promise<void> {
    try {
      await this.#start(at);
    } catch (error) {
      this.#end({ kind: "failed", error });
      throw error;
    }
  }

  async #start(at: Promise<OpenChannel>): Promise<void> {
    this.#at = await at;
    await this.#opening.promise;
  }

  /** What its log left open leaves, before anything that is new. */
  async #begin(opened: Opened): Promise<void> {
    await this.#adopted;
    for (const effect of opened.effects) await this.#apply(effect);
    this.#seen = await this.store.token();
    this.#acknowledge(opened);
    for (const { name, dueMs } of opened.timers) this.#timers.set(name, dueMs);
    for (const call of opened.calls) this.#calls.make(call);
    if (opened.isEnded) await this.#endAgain(opened);
    this.#opening.resolve();
  }

  /** Its log says that it ended, and its home died before that was on record: those who wait for its answers have them. */
  async #endAgain({ outputs }: Opened): Promise<void> {
    for (const { to } of outputs) {
      const asked = this.home.ask(to, true);
      if (asked.kind !== "known") continue;
      const bytes = await asked.answer;
      this.#parts.listener.answered(to, bytes, this.#seen ?? await this.store.token());
    }
    await this.remove();
  }

  /** The home that it serves as. @throws Error before `start`. */
  get home(): Home {
    if (this.#home === null) throw new Error("a run serves when it has started");
    return this.#home;
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  /** Resolves when it is over, and another run may follow. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** When an event last began or ended. */
  get usedMs(): number {
    return this.#usedMs;
  }

  /** Nothing is under way: it could leave memory. */
  get isIdle(): boolean {
    return this.#undone.size === 0 && this.#isQuiescent && this.#calls.size === 0;
  }

  /** For operators. */
  get state() {
    return {
      sequence: this.#home?.sequence ?? this.#checkpointAt,
      checkpoint: this.#checkpointAt,
      logBytes: this.#home?.logBytes ?? 0,
      timers: this.#timers.list(),
      waiting: this.#undone.size,
    };
  }

  /** Hands an event to the session. */
  deliver(event: HandledEvent): void {
    if (this.#over !== null || this.#isLeaving || this.#at === null) return;
    const number = this.#nextEvent++;
    this.#usedMs = this.#parts.nowMs();
    this.#isQuiescent = false;
    this.#undone.set(number, event);
    const { isolate, channel } = this.#at;
    isolate.deliver(channel, { ...event, number, storeClock: this.store.tick() });
  }

  /** The event whose handler runs. */
  get first(): HandledEvent | undefined {
    for (const event of this.#undone.values()) return event;
    return undefined;
  }

  /** Writes a checkpoint when it is at rest; with `next`, for that code, and is over then (R4). */
  checkpoint(next: string | null = null): void {
    this.#next = next ?? this.#next;
    if (this.#isAsked || this.#at === null || this.#over !== null) return;
    if (this.#next !== null && !this.isIdle) return;
    this.#isAsked = true;
    this.#at.isolate.checkpointNow(this.#at.channel);
  }

  /** Other code is to run it: it takes no events for now, so that it comes to rest. */
  get isSwitching(): boolean {
    return this.#next !== null && this.#over === null;
  }

  /** Leaves memory: at once where the log is in its checkpoint, else after writing one. */
  rest(): void {
    if (!this.isIdle || this.#over !== null) return;
    if (this.#home !== null && this.#home.sequence === this.#checkpointAt) {
      this.#afterwards(() => Promise.resolve(this.isIdle && this.#end({ kind: "rested" })));
    } else this.checkpoint();
  }

  /** Ends it here, for good: its log goes. */
  async remove(): Promise<void> {
    await this.store.forget().catch(() => {}); // marks that nobody reads any more
    await this.home.end();
    this.#end({ kind: "ended" });
  }

  /** Resolves when what was committed so far has left. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  // ── What the isolate says ──

  opened(opened: Opened): void {
    if (this.#over !== null || this.#home !== null) return;
    const answers = opened.outputs.map(({ to, bytes }) => ({ request: to, bytes }));
    const { home: opening, isAdopted } = this.#parts;
    const home = this.#home = opening.start(answers);
    home.over.then((error) => this.#end({ kind: "moved", error }));
    this.#told = home.sequence;
    if (opened.sequence !== this.#told) return this.#misfit(opened.sequence);
    if (isAdopted && opening.checkpoint !== null) {
      this.#adopted = home.checkpoint({ ...opening.checkpoint, version: this.version });
    }
    this.handling = opened.handling;
    this.#isQuiescent = opened.isQuiescent;
    for (const { name, dueMs } of opened.timers) this.#timers.plan(name, dueMs);
    this.#afterwards(() => this.#begin(opened));
  }

  commit(commit: Commit): void {
    const home = this.#home;
    if (this.#over !== null || home === null) return;
    if (commit.count > 0 && commit.first !== this.#told + 1) return this.#misfit(commit.first);
    this.#told += commit.count;
    this.#isQuiescent = commit.isQuiescent;
    for (const [number, event] of this.#undone) {
      if (number > commit.through) break;
      if (event.kind === "timer") this.#timers.fired(event.name, event.dueMs);
    }
    for (const { name, dueMs } of commit.timers) this.#timers.plan(name, dueMs);
    const token = this.#seen === this.#written ? null : this.#written = this.#seen;
    const piece = {
      count: commit.count,
      entries: wrapPiece(token, commit.entries),
      answers: commit.outputs.map(({ to, bytes }) => ({ request: to, bytes })),
      wakeAtMs: this.#timers.earliest,
    };
    const appended = commit.count === 0
      ? this.#adopted
      : this.#parts.isAdopted
      ? this.#adopted.then(() => home.commit(piece))
      : home.commit(piece);
    appended.catch(() => {});
    this.#afterwards(async () => {
      await appended;
      await this.#release(commit);
    });
  }

  call(call: Call): void {
    if (this.#over === null) this.#calls.make(call);
  }

  dropped(call: number): void {
    this.#calls.drop(call);
  }

  checkpointed(checkpoint: Checkpoint): void {
    this.#isAsked = false;
    if (checkpoint.at > this.#told) return this.#misfit(checkpoint.at);
    const { home } = this;
    const events = this.#nextEvent;
    this.#afterwards(async () => {
      this.#isLeaving = this.#next !== null && this.isIdle && this.#nextEvent === events;
      const version = this.#isLeaving ? this.#next ?? this.version : this.version;
      const bytes = wrapPiece(this.#seen, checkpoint.bytes);
      const held = home.checkpoint({ at: checkpoint.at, bytes, version }).then(() => {
        this.#checkpointAt = checkpoint.at;
        if (this.#isLeaving) this.#end({ kind: "rested" }); // R4
      });
      // Answers do not wait until all owners have it.
      if (this.#isLeaving) await held;
      else held.catch((error) => this.#end({ kind: "failed", error }));
    });
  }

  parked(parked: Parked): void {
    this.#end({ kind: "parked", parked });
  }

  log(level: string, text: string): void {
    this.#parts.listener.log(level, text);
  }

  ended(end: StatefulEnd, isCause: boolean): void {
    this.#end({ kind: "killed", why: end.why, isCause });
  }

  /** R5 */
  #misfit(entry: number): void {
    const error = new Error(
      `an isolate tells of entry ${entry} of a log that it has told up to ${this.#told}`,
    );
    this.#opening.reject(error);
    this.#end({ kind: "failed", error });
  }

  // ── What leaves ──

  #afterwards(work: () => unknown): void {
    this.#tail = this.#tail.then(async () => {
      if (this.#over === null) await work();
    }).catch((error) => this.#end({ kind: "failed", error }));
  }

  /** R1 */
  async #release(commit: Commit): Promise<void> {
    const { listener, nowMs } = this.#parts;
    for (const effect of commit.effects) await this.#apply(effect);
    const token = this.#seen = await this.store.token();
    if (this.#over !== null) return;
    const answered = new Set<string>();
    for (const { to, bytes } of commit.outputs) {
      answered.add(to);
      listener.answered(to, bytes, token);
    }
    this.#usedMs = nowMs();
    for (const [number, event] of this.#undone) {
      if (number > commit.through) break;
      this.#undone.delete(number);
      if (event.kind === "request" && !answered.has(event.request)) {
        this.home.dropped(event.request);
        listener.unanswered(event.request);
      }
    }
    this.#acknowledge(commit);
    for (const { name, dueMs } of commit.timers) this.#timers.set(name, dueMs);
    for (const call of commit.calls) this.#calls.make(call);
    if (commit.isEnded) await this.remove();
    else if (this.home.logBytes > CHECKPOINT_LOG_BYTES || this.#next !== null) this.checkpoint();
  }

  /**
   * What a turn wrote is applied however long that takes: its session waits, and those who ask it. Only what this site
   * takes from nobody is left out, and said.
   */
  async #apply(effect: Effect): Promise<void> {
    while (this.#over === null) {
      try {
        return await this.store.apply(effect);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) {
          return this.#parts.listener.log("error", `a write of a stateful session is refused: ${error}`);
        }
        if (FOR_GOOD.has(error.code)) throw error;
        await new Promise((resolve) => setTimeout(resolve, APPLY_RETRY_MS));
      }
    }
  }

  #acknowledge({ outputs, effects }: Pick<Commit, "outputs" | "effects">): void {
    if (this.#at === null || (outputs.length === 0 && effects.length === 0)) return;
    const acknowledged: Acknowledged = {
      outputs: Object.fromEntries(outputs.map(({ to, sequence }) => [to, sequence])),
      effects: effects.at(-1)?.effect ?? 0,
    };
    this.#at.isolate.acknowledge(this.#at.channel, acknowledged);
  }

  /** R2, R3 */
  #end(over: RunOver): void {
    if (this.#over !== null) return;
    this.#over = over;
    this.#opening.reject(new RunFailed(over));
    this.#timers.close();
    this.#calls.close();
    this.#at?.isolate.closeChannel(this.#at.channel);
    const home = this.#home;
    const gone = over.kind === "moved" || over.kind === "ended" || home === null;
    const rested = gone ? Promise.resolve() : home.rest();
    rested.catch(() => {}).then(() => {
      if (home === null) this.#parts.home.abandon();
      this.#parts.listener.over(over);
      this.#finished.resolve();
    });
  }
}

/**
 * A log of so many bytes is replaced by a checkpoint: some milliseconds of replay, and small beside what a site keeps of
 * a session anyway.
 */
const CHECKPOINT_LOG_BYTES = 256 * 1024;
/** No later attempt of this run is better. */
const FOR_GOOD: ReadonlySet<string> = new Set(["closed", "disk_failed", "source_lost"]);
/** The way to the root is back, or there is room again: looked at so often. */
const APPLY_RETRY_MS = 500;
