/**
 * One opening of a stateful session at its home: its log at the owners, its state in an isolate, its session at the
 * store, and what goes between them. What leaves after a commit is in releases.ts, checkpoints in run_checkpoints.ts.
 *
 * Stages: `open` (the home's log is replayed in an isolate, what may not have left yet leaves) → events in, commits out
 * → over, once, for one reason (RunOver).
 *
 * R1  A commit's entries are at all owners before anything of it leaves: then its writes are applied, and on disk here,
 *     then its messages to queues stored, then its answers leave, then its timers are set and its calls made; one commit
 *     after the other (commit.ts, CM1).
 *     In the same way all of the log that the run was opened with is at all owners before what the log left open
 *     leaves.
 * R2  After the run is over nothing of it leaves, and nothing is heard of its isolate.
 * R3  An event is done when a commit says so; events that are not done are handed back when the run is over.
 * R4, R10  run_checkpoints.ts.
 * R5  What the isolate says of its log fits the home's log, entry by entry; where it does not the isolate is ended, and
 *     the log is as it was.
 * R11  More calls (open_calls.ts OC4) or timers than a program may have end the isolate that sends them, too, as do more
 *      messages to queues than a handler may send.
 * R9  The session's writes have versions that are its own (run_versions.ts); where not, the isolate is ended, and
 *     nothing of such writes has left.
 * R7  A call of the store is made when all that earlier commits wrote is applied: a session reads its own writes.
 * R8  A commit is appended when what its piece says that the session has seen is on disk, and all of it that homes
 *     before may have done is known (releases.ts RL3, RL4): mostly that is so already, and the commit is appended at
 *     once. No commit is appended before the one before it. Commits that an isolate sent before it was lost are
 *     appended all the same, and the run is over behind them: after them the event to blame is looked for.
 * R6  Where hosts hold the log they may be told of a commit as soon as it is appended, with the log up to there: unless
 *     the commit, or one before it that has not left, wrote to the store.
 */
import {
  type Acknowledged,
  type Call,
  type CallKind,
  type CallOutcome,
  type Checkpoint,
  type Commit,
  type HandledEvent,
  leavesMarks,
  type OpenedProgram,
  type Output,
  type Parked,
  sendsTooMuch,
  TIMERS_MAX,
} from "../turn/mod.ts";
import type { Home, OpenedSession as OpenedHome } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import type { ChannelSink, OpenChannel, StatefulEnd } from "./ports.ts";
import type { ClockValue } from "../../../store/model/row.ts";
import type { FrameWay } from "../attach/frame_way.ts";
import { Ending } from "./ending.ts";
import { EventLine } from "./event_line.ts";
import type { CallMaker } from "./ports.ts";
import { type CallingRun, OpenCalls } from "./open_calls.ts";
import type { RunQueues, RunStore } from "./ports.ts";
import { OPEN_WORK, type PieceHead, wrapPiece } from "./pieces.ts";
import { Releases, type ReleasingRun } from "./releases.ts";
import { type CheckpointingRun, RunCheckpoints } from "./run_checkpoints.ts";
import { RunFailed, type RunListener, type RunOver } from "./run_over.ts";
import type { Unsent } from "./run_sends.ts";
import type { RunVersions } from "./run_versions.ts";
import { Timers } from "./timers.ts";

/** Parts of which a run is made. */
export interface RunParts {
  readonly home: OpenedHome;
  /** Version of the app whose code runs. */
  readonly version: string;
  readonly store: RunStore;
  readonly queues: RunQueues;
  readonly listener: RunListener;
  readonly calls: CallMaker;
  /** Opens a way to the end of the origin that attaches to sessions of the class; null: it names no origin. */
  readonly originWay: (() => Promise<FrameWay>) | null;
  /** Reads the wall clock. */
  readonly nowMs: () => number;
  readonly clock: PeerClock;
  /** True where hosts hold the log, too (R6). */
  readonly isShared: boolean;
  /**
   * True where the run goes on from what other code has written, with nothing after it: from now on this code runs the
   * session.
   */
  readonly isAdopted: boolean;
  /** Number of the last effect that the log says to be applied. */
  readonly applied: number;
  /** Work that the log says it leaves open (pieces.ts P3). */
  readonly open: number;
  /** Versions under which the run may write (R9). */
  readonly versions: RunVersions;
}

/** A run of a session at its home. */
export class SessionRun implements ChannelSink, ReleasingRun, CheckpointingRun, CallingRun {
  readonly version: string;
  readonly store: RunStore;
  readonly queues: RunQueues;
  readonly originWay: RunParts["originWay"];
  /**
   * Id of the request whose handler the log left running: it goes on, and is not delivered again; null: there is none.
   */
  handling: string | null = null;
  readonly #parts: RunParts;
  /** True until the handler that the log left running has ended. */
  #isHandling = false;
  /** Resolves when the run has opened; null: it has. */
  #opening: PromiseWithResolvers<void> | null = Promise.withResolvers();
  /** Resolves when the run serves; null: it does. */
  #serving: PromiseWithResolvers<void> | null = Promise.withResolvers();
  readonly clock: PeerClock;
  readonly listener: RunListener;
  readonly timers: Timers;
  readonly undone = new Map<number, HandledEvent>();
  /** Clocks of the undone events, with which their first turns write; also of some that are done. */
  readonly #clocks = new Map<number, ClockValue>();
  /** Clock as in `begunAt`, for the handler that the log left running. */
  #leftAt: ClockValue;
  readonly calls: OpenCalls;
  readonly releases: Releases;
  readonly #checkpoints: RunCheckpoints;
  #home: Home | null = null;
  /** True once peers know what the run was opened with (R6). */
  #isTelling = false;
  /** Number of commits that have not left and that no host was told of (R6). */
  #untold = 0;
  /** Calls that are to be made when what was written before is applied (R7). */
  readonly #waiting = new Set<number>();
  /** Resolves when all commits that wait to be appended are; null: none waits (R8). */
  #appending: Promise<void> | null = null;
  /** Resolves when a commit is at all owners, or the run is over; null: that is not waited for (releases.ts RL4). */
  #naming: PromiseWithResolvers<void> | null = null;
  /** Number of the last entry that the isolate has told (R5). */
  #told = 0;
  /** Number of the last event that a commit says to be done, whether that commit has left or not. */
  #through = 0;
  #at: OpenChannel | null = null;
  #nextEvent = 1;
  #over: RunOver | null = null;
  #finished: PromiseWithResolvers<void> | null = null;
  #isFinished = false;
  /** True while the session is at rest, as the isolate said last. */
  #isQuiescent = false;
  readonly line: EventLine;
  #usedMs: number;
  #ending: Ending | null = null;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const { version, store, queues, listener, nowMs, clock } = parts;
    this.version = version;
    this.originWay = parts.originWay;
    this.store = store;
    this.queues = queues;
    this.#usedMs = clock.nowMs();
    this.#leftAt = parts.open > OPEN_WORK ? parts.open : Infinity;
    this.clock = clock;
    this.listener = listener;
    this.timers = new Timers(nowMs, clock, (name, dueMs) => this.deliver({ kind: "timer", name, dueMs }));
    this.calls = new OpenCalls(parts.calls, this);
    this.releases = new Releases(this, parts.applied);
    this.#checkpoints = new RunCheckpoints(this, parts.home.checkpoint?.at ?? 0);
    this.line = new EventLine({
      ...{ give: (event) => this.#give(event), isFree: () => this.first === undefined, nowMs },
      isIdle: () => this.first === undefined && !this.#isHandling,
    });
    this.#opening?.promise.catch(() => {});
  }

  /**
   * Starts the run. Resolves when it has opened, and can serve. @throws RunFailed where its state could not be made,
   * StatefulLoadError, HomeError …
   */
  async start(at: Promise<OpenChannel>): Promise<void> {
    try {
      this.#at = await at;
      await this.#opening?.promise;
    } catch (error) {
      this.#end({ kind: "failed", error });
      throw error;
    }
  }

  async #begin(opened: OpenedProgram, named: Promise<void> | null): Promise<void> {
    // R1: the end of the opened log may be on one disk only, and be lost with it. Where that disk is gone an opening
    // finds what hosts on record have: so these have all of the log, too, before any peer is told what the log says of
    // it.
    const leaves = opened.effects.length > 0 || opened.calls.some(({ effect }) => effect !== null);
    if (leaves || this.#parts.isShared) await this.home.settled();
    await this.releases.known(named);
    if (this.#over !== null) return;
    await this.releases.begin(opened);
    if (opened.isEnded) {
      await this.releases.answerAgain(opened);
      this.#endSoon(opened.outputs);
    } else if (this.#checkpoints.isBeginning) {
      await this.#checkpoints.begun();
      this.line.goOn();
    }
    this.#opening?.resolve();
    this.#opening = null;
  }

  /** Begins to take events, `rejected` before all others, once the run has started. */
  serve(rejected: HandledEvent | null): void {
    if (rejected !== null) this.deliver(rejected);
    this.#serving?.resolve();
    this.#serving = null;
  }

  /** Home that the run serves as. @throws Error before `start`. */
  get home(): Home {
    if (this.#home === null) throw new Error("a run serves when it has started");
    return this.#home;
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  get writer(): number {
    return this.#parts.versions.writer;
  }

  /** Reason for which the run is over; null: it is not. */
  get over(): RunOver | null {
    return this.#over;
  }

  /** Home of the run where hosts hold the log, too; null: they do not. */
  get shared(): Home | null {
    return this.#parts.isShared ? this.#home : null;
  }

  /** Resolves when the run is over, and another may follow. */
  get finished(): Promise<void> {
    if (this.#isFinished) return Promise.resolve();
    return (this.#finished ??= Promise.withResolvers()).promise;
  }

  /** Time at which an event last began or ended, by the run's clock. */
  get usedMs(): number {
    return this.#usedMs;
  }

  /** True while nothing is under way: the session could leave memory. */
  get isIdle(): boolean {
    return this.undone.size === 0 && this.#isQuiescent && this.calls.size === 0;
  }

  /** True while no event waits, or is under way. */
  get isAllDone(): boolean {
    return this.undone.size === 0 && this.line.isEmpty;
  }

  /** True while all of the log is in its checkpoint. */
  get isInCheckpoint(): boolean {
    return this.#home !== null && this.#told === this.#checkpoints.at;
  }

  /** Messages to queues that wait to be stored; null: none. */
  get unsent(): Unsent | null {
    return this.releases.unsent;
  }

  /** Text of what keeps the session from rest; null: nothing does. */
  get openWork(): string | null {
    const { first } = this, open = this.calls.kinds;
    if (first !== undefined) return `its handler of ${eventText(first)} is not over`;
    if (open.length > 0) return `it waits for what it asked for: ${open.join(", ")}`;
    const { unsent } = this;
    if (unsent !== null) return `what it sends to queues is not stored: ${unsent.why}`;
    return this.#isQuiescent ? null : "a timeout that it has set has not gone off";
  }

  /** State of the run, for operators. */
  get state() {
    return {
      sequence: this.#home?.sequence ?? this.#checkpoints.at,
      checkpoint: this.#checkpoints.at,
      logBytes: this.#home?.logBytes ?? 0,
      timers: this.timers.list(),
      waiting: this.undone.size,
      unsent: this.unsent,
    };
  }

  /** Hands an event to the session. */
  deliver(event: HandledEvent): void {
    if (this.#ending !== null) this.#ending.now();
    else this.line.push(event);
  }

  #give(event: HandledEvent): void {
    if (this.#over !== null || this.#checkpoints.isLeaving || this.#at === null) return;
    const number = this.#nextEvent++;
    this.#usedMs = this.clock.nowMs();
    this.undone.set(number, event);
    const { isolate, channel } = this.#at;
    const storeClock = this.store.tick();
    this.#clocks.set(number, storeClock);
    this.#parts.versions.gives(storeClock);
    isolate.deliver(channel, { ...event, number, storeClock });
  }

  /** Notes that a peer is attached no more, as all owners know. */
  detached(peer: string): void {
    this.home.hosts.gone(peer);
  }

  /** Tells the isolate that peers have these outputs. */
  acknowledge(outputs: Readonly<Record<string, number>>): void {
    if (this.#over === null) this.#at?.isolate.acknowledge(this.#at.channel, { outputs, effects: 0 });
  }

  /**
   * Clock of the oldest write that the run may still make: a handler may run for long. Infinity: none. To be read now
   * and then, since that drops clocks of events that are done.
   */
  get owed(): ClockValue {
    const { value: first = Infinity } = this.undone.keys().next();
    for (const number of this.#clocks.keys()) {
      if (number >= first) break;
      this.#clocks.delete(number);
    }
    return Math.min(this.#clocks.get(first) ?? Infinity, this.#leftAt, this.releases.owed);
  }

  get begunAt(): ClockValue {
    for (const number of this.undone.keys()) {
      if (number > this.#through) return Math.min(this.#leftAt, this.#clocks.get(number) ?? Infinity);
    }
    return this.#leftAt;
  }

  /** Event whose handler runs: the first of which no commit says that it is done. */
  get first(): HandledEvent | undefined {
    for (const [number, event] of this.undone) if (number > this.#through) return event;
    return undefined;
  }

  /** Asks for a checkpoint when the session is at rest; with `next`, for that code, and the run is over then (R4). */
  checkpoint(next: string | null = null): void {
    this.#checkpoints.ask(next);
  }

  /** True while other code is to run the session: it takes no events, so that it comes to rest. */
  get isSwitching(): boolean {
    return this.#checkpoints.isSwitching && this.#over === null;
  }

  /**
   * Takes the session out of memory: at once where owners have all of the log as a checkpoint, else when `rest` is
   * called again after they have.
   */
  rest(): void {
    if (!this.isIdle || this.#over !== null) return;
    if (this.isInCheckpoint) {
      this.releases.afterwards(() => Promise.resolve(this.isIdle && this.#end({ kind: "rested" })));
    } else if (this.#checkpoints.taken !== this.#told) this.checkpoint(); // R10
  }

  /** Ends the session here, for good: its log goes. */
  async remove(): Promise<void> {
    await this.home.end();
    // Marks in the store are forgotten after the log: whoever opened the log without them would write again what they
    // say is written (own_store.ts, O2).
    await this.store.forget().catch(() => {});
    this.#end({ kind: "ended" });
  }

  /** True once the session has called `end()`: it answers callers that ask again, and nobody else. */
  get isEnding(): boolean {
    return this.#ending !== null;
  }

  /** Last answers that nobody has heard, by request. */
  get unheard(): ReadonlyMap<string, Uint8Array> {
    return this.#ending?.unheard ?? new Map();
  }

  /** Notes that a caller has the answer to its request. */
  received(request: string): void {
    this.home.received(request);
    this.#ending?.heard(request);
  }

  /** Ends the session at once: somebody wants to begin it anew. */
  endNow(): void {
    this.#ending?.now();
  }

  #endSoon(outputs: readonly Output[]): void {
    if (this.#ending !== null) return; // the log said so already, and the commit with this epoch's entry says it again
    const ending = this.#ending = new Ending(this.#answersOf(outputs), this.clock);
    // Peers need not wait until callers have heard their answers.
    this.listener.peers.ended();
    // Requests behind the handler that ended the session are for the one that begins anew (EN3).
    if ([...this.undone.values(), ...this.line.waiting].some(({ kind }) => kind === "request")) ending.now();
    ending.over
      .then(() => this.#over === null ? this.listener.ending() : undefined)
      .then(() => this.#over === null ? this.remove() : undefined)
      .catch((error) => this.#end({ kind: "failed", error }));
  }

  /** Resolves when what was committed so far has left. */
  get settled(): Promise<void> {
    return this.releases.settled;
  }

  // ── What the isolate says ──

  opened(opened: OpenedProgram): void {
    if (this.#over !== null || this.#home !== null) return;
    const { home: opening, isAdopted, isShared, listener, versions } = this.#parts;
    const wrong = versions.ofLog(opened);
    if (wrong !== null) return this.#misfit(wrong);
    const { peers } = listener;
    peers.noted(opened);
    const answers = this.#answersOf(opened.outputs);
    const home = this.#home = opening.start(answers);
    this.#endWith(home);
    this.#told = home.sequence;
    const isMarked = leavesMarks(opened);
    // Where hosts held the log of the class before, they do no longer. And where a write that is made first waits for a
    // piece at all owners (RL4), hosts are sent none before it is made: they take their places again as new hosts do.
    if (!isShared || isMarked) { for (const host of home.hosts.asked) home.hosts.drop(host); }
    if (opened.sequence !== this.#told) return this.#misfitAt(opened.sequence);
    if (isAdopted) {
      this.line.hold();
      this.#checkpoints.begin();
    }
    this.handling = opened.handling;
    this.#isHandling = opened.handling !== null;
    if (opened.isQuiescent) this.#leftAt = Infinity;
    this.#isQuiescent = opened.isQuiescent;
    for (const { name, dueMs } of opened.timers) this.timers.plan(name, dueMs);
    this.releases.opened(opened);
    this.calls.intended(opened.calls);
    if (isMarked) this.#naming = Promise.withResolvers();
    const named = this.#naming?.promise ?? null;
    this.releases.afterwards(() => this.#begin(opened, named));
    this.releases.afterwards(async () => {
      await this.#serving?.promise;
      // A blank log of a later epoch may be one that another home has taken away: no peer is told that it is not in it.
      const isDoubted = opened.sequence === 0 && home.epoch > 1;
      if ((opened.peers.length > 0 || isDoubted) && !isShared) await home.settled();
      await peers.ready(this.store);
      if (this.#over !== null || opened.isEnded) return;
      peers.opened(opened);
      this.#isTelling = isShared;
    });
  }

  /** Ends the run with its home. A function of its own: what it keeps until then keeps nothing of the opening. */
  #endWith(home: Home): void {
    home.over.then((error) => {
      this.#end(error.code === "ended" ? { kind: "ended" } : { kind: "moved", error });
    }).catch((error) => this.listener.failed(error));
  }

  #answersOf(outputs: readonly Output[]): { readonly request: string; readonly bytes: Uint8Array }[] {
    const { peers } = this.listener;
    return outputs.filter(({ to }) => !peers.isPeer(to)).map(({ to, bytes }) => ({ request: to, bytes }));
  }

  commit(commit: Commit): Promise<void> | void {
    const home = this.#home;
    if (this.#over !== null || home === null) return;
    if (commit.count > 0 && commit.first !== this.#told + 1) return this.#misfitAt(commit.first);
    const wrong = this.#parts.versions.ofCommit(commit) ?? this.calls.misfit(commit.calls) ??
      this.#timersMisfit(commit) ??
      (sendsTooMuch(commit.effects) ? "sends more to queues than a handler may" : null);
    if (wrong !== null) return this.#misfit(wrong);
    this.#told += commit.count;
    const before = this.#through;
    this.#through = commit.through;
    this.#isQuiescent = commit.isQuiescent;
    if (commit.isPoint) {
      this.#leftAt = Infinity; // what that handler wrote is in this commit
      this.#isHandling = false;
    }
    for (const [number, event] of this.undone) {
      if (number > commit.through) break;
      // Events of earlier commits are in `undone`, too, while what they did has not left: their timers may have been
      // set anew since.
      if (number > before && event.kind === "timer") this.timers.fired(event.name, event.dueMs);
    }
    for (const { name, dueMs } of commit.timers) this.timers.plan(name, dueMs);
    this.line.advance();
    const { handler } = this.calls, entry = this.#told;
    const heard = this.calls.logged(commit);
    const head = this.releases.committed(commit);
    const { earliest: wakeAtMs } = this.timers;
    const appended = this.#append(home, { entry, commit, wakeAtMs }, head);
    if (this.#naming !== null) heldOf(appended).then(() => this.#named(), (error) => this.failed(error));
    return this.releases.afterwards(async () => {
      const { isTold, held } = await appended;
      await held;
      heard();
      await this.releases.release(commit, entry, handler);
      if (!isTold) this.#untold--;
      this.#usedMs = this.clock.nowMs();
      if (this.#over !== null) return;
      if (commit.isEnded) this.#endSoon(commit.outputs);
      else this.#checkpoints.released();
    });
  }

  /**
   * Returns what is wrong with the number of timers (R11); null: nothing. Timers that have gone off are taken off with
   * a later commit.
   */
  #timersMisfit({ timers }: Commit): string | null {
    const set = timers.filter(({ dueMs }) => dueMs !== null).length;
    return this.timers.size + set <= 4 * TIMERS_MAX ? null : `sets more than ${TIMERS_MAX} timers`;
  }

  #named(): void {
    this.#naming?.resolve();
    this.#naming = null;
  }

  /** Appends a commit: at once where nothing is waited for, and one after the other (R8). */
  #append(home: Home, leaving: Leaving, head: PieceHead | Promise<PieceHead>): Appended | Promise<Appended> {
    const before = this.#appending;
    if (before === null && !(head instanceof Promise)) return this.#appendNow(home, leaving, head);
    const appended = (async () => {
      const [safe] = await Promise.all([head, before]);
      // Where one commit is not appended, no later one is.
      if (this.#over !== null) throw new RunFailed(this.#over);
      return this.#appendNow(home, leaving, safe);
    })();
    const done = this.#appending = appended.then(() => {}, (error) => this.failed(error)).then(() => {
      if (this.#appending === done) this.#appending = null;
    });
    return appended;
  }

  #appendNow(home: Home, { entry, commit, wakeAtMs }: Leaving, head: PieceHead): Appended {
    const { count, entries, outputs } = commit, answers = this.#answersOf(outputs);
    const piece = { count, entries: wrapPiece(head, entries), answers, wakeAtMs };
    // A piece without entries follows from those before it, after which it leaves.
    const held = piece.count > 0 ? home.commit(piece) : Promise.resolve();
    held.catch(() => {});
    // A commit for which there is no room, or no home any more, follows from nothing that anybody has: the run ends
    // with it.
    const isAppended = home.sequence === entry;
    const isTold = this.#isTelling && isAppended && this.#untold === 0 && commit.effects.length === 0; // R6
    if (!isTold) this.#untold++;
    // The log itself goes to hosts in any case: what others are told may wait until hosts have it.
    if (this.#isTelling && isAppended) this.listener.peers.appended(entry, isTold ? commit.outputs : []);
    return { held, isTold };
  }

  call(call: Call): void {
    if (this.#over !== null) return;
    const wrong = this.#waiting.has(call.call)
      ? `makes call ${call.call} a second time`
      : this.calls.misfit([call], this.#waiting.size);
    if (wrong !== null) return this.#misfit(wrong); // R11
    if (!this.releases.areWriting || !ofStore.has(call.kind)) return this.calls.make(call);
    this.#waiting.add(call.call);
    this.releases.afterwards(() => {
      if (this.#waiting.delete(call.call)) this.calls.make(call); // R7
    });
  }

  dropped(call: number): void {
    this.#waiting.delete(call);
    this.calls.drop(call);
  }

  checkpointed(checkpoint: Checkpoint): Promise<void> | void {
    if (checkpoint.at > this.#told) return this.#misfitAt(checkpoint.at);
    return this.#checkpoints.came(checkpoint);
  }

  parked(parked: Parked): void {
    if (this.#checkpoints.isBeginning) return this.#end({ kind: "parked", parked });
    // Effects of what the session did before leave first.
    this.releases.afterwards(() => this.#end({ kind: "parked", parked }));
  }

  log(level: string, text: string): void {
    this.listener.log(level, text);
  }

  ended(end: StatefulEnd, isCause: boolean): void {
    const left = [...this.undone.keys()].filter((number) => number > this.#through);
    const begun = left.filter((number) => number <= end.received).length;
    // A session at rest was not what ran, though its turn was the last.
    const wasAtRest = this.#isQuiescent && this.calls.size === 0 && begun === 0 && !this.#checkpoints.isAsked;
    const isUnbegun = isCause && wasAtRest && left.length > 0;
    const underWay = begun || left.length;
    const over: RunOver = {
      kind: "killed",
      why: end.why,
      isCause: isCause && !wasAtRest,
      isUnbegun,
      underWay,
    };
    if (this.#appending === null) return this.#end(over);
    this.#at = null;
    this.line.hold(); // events that come meanwhile are for the next run
    void this.#appending.then(() => this.#end(over)); // R8
  }

  /** Ends the isolate, which tells of an entry that is not next in the log (R5). */
  #misfitAt(entry: number): void {
    this.#misfit(`tells of entry ${entry} of a log that it has told up to ${this.#told}`);
  }

  /** Ends the isolate for something that does not fit (R5, R9). */
  #misfit(what: string): void {
    const why = `it ${what}`;
    this.listener.log("error", `the isolate of a stateful session is ended: ${why}`);
    this.#end({ kind: "killed", why, isCause: true, isUnbegun: false, underWay: 1 });
    this.#at?.isolate.killFor(this.#at.channel, why);
  }

  /** Ends the run (R2, R3). */
  #end(over: RunOver): void {
    if (this.#over !== null) return;
    this.#over = over;
    // An isolate that is lost ends thousands of runs at once: most have nobody that is told so.
    if (this.#opening !== null || this.#checkpoints.isBeginning) {
      const failed = new RunFailed(over);
      this.#opening?.reject(failed);
      this.#checkpoints.over(failed);
    }
    this.#serving?.resolve();
    this.#named();
    this.#ending?.now();
    this.timers.close();
    this.calls.close();
    this.store.close();
    this.#at?.isolate.closeChannel(this.#at.channel);
    const home = this.#home;
    const gone = over.kind === "moved" || over.kind === "ended" || home === null;
    const rested = gone ? Promise.resolve() : home.rest();
    rested.catch(() => {}).then(() => {
      if (home === null) this.#parts.home.abandon();
      this.listener.over(this, over);
    }).catch((error) => this.listener.failed(error)).then(() => {
      this.#isFinished = true;
      this.#finished?.resolve();
    });
  }

  // ── For its parts ──

  /** Number that changes when an event is delivered. */
  get events(): number {
    return this.#nextEvent;
  }

  acknowledged(acknowledged: Acknowledged): void {
    this.#at?.isolate.acknowledge(this.#at.channel, acknowledged);
  }

  askCheckpoint(): boolean {
    this.#at?.isolate.checkpointNow(this.#at.channel);
    return this.#at !== null;
  }

  holds(bytes: number): () => void {
    const isolate = this.#at?.isolate;
    isolate?.holds(bytes);
    return () => isolate?.holds(-bytes);
  }

  done(call: number, outcome: CallOutcome): void {
    if (this.#over !== null) return;
    // A rejection of the handler that goes on in the log comes before any result that this handler waits for.
    if (this.#serving !== null) return void this.#serving.promise.then(() => this.done(call, outcome));
    const storeClock = this.store.tick();
    this.#parts.versions.gives(storeClock);
    this.#at?.isolate.deliver(this.#at.channel, { kind: "result", storeClock, call, outcome });
  }

  rested(): void {
    this.#end({ kind: "rested" });
  }

  failed(error: unknown): void {
    this.#end({ kind: "failed", error });
  }
}

/** A commit on its way to the home. */
interface Leaving {
  readonly commit: Commit;
  /** Last entry of the commit. */
  readonly entry: number;
  /** Time at which its earliest timer is due; null: there is none. */
  readonly wakeAtMs: number | null;
}

/** A commit that was appended. */
interface Appended {
  /** Resolves when the commit is at all owners. */
  readonly held: Promise<void>;
  /** True where hosts were told of the commit (R6). */
  readonly isTold: boolean;
}

const heldOf = async (appended: Appended | Promise<Appended>): Promise<void> => await (await appended).held;

/** Kinds of calls that go to the store (R7). */
const ofStore: ReadonlySet<CallKind> = new Set(["get", "list", "commit"]);

/** Returns an event in words. */
const eventText = (event: HandledEvent): string =>
  event.kind === "timer" ? `the timer ${event.name}` : `a ${event.kind}`;
