/**
 * The turn loop of one isolate: its stateful sessions, and whose turn it is.
 *
 * Sessions with something to do stand in a queue; a macrotask runs turns until none is left or its slice is over, so
 * that frames are read in between. Each turn runs to its last microtask before the next begins.
 *
 * TL1  `current` is the program whose turn runs, and nothing else: the globals of an app act on it. Between turns there
 *      is none.
 * TL2  Turns run in a macrotask, never inside a promise reaction: the drain would not run there.
 * TL3  A session waits for no other's handler: after each turn the next session has its own.
 * TL4  What acts in a turn is code of the session whose turn it is, as far as the host can tell whose code runs:
 *      through what sessions share in a module, code of another session may have run. That other session is parked.
 */
import type { Acknowledged } from "./commit.ts";
import type { OpenSession, SessionEvent } from "./event.ts";
import { FollowingSession, type Promotion } from "./following_session.ts";
import type { SessionObject } from "./handler.ts";
import { Leak } from "./leak.ts";
import { LoggedProgram } from "./logged_program.ts";
import type { Program } from "./program.ts";
import { SalvagedSession } from "./salvage.ts";
import type { Alarmed, Runnable, SessionIsolate } from "./session_host.ts";
import { SharedCache } from "./shared_cache.ts";
import type { SessionSink } from "./sink.ts";
import { StatefulSession } from "./stateful_session.ts";
import type { TurnEnd, TurnInput, TurnSource } from "./turn.ts";

/** The isolate's part that the loop needs. */
export interface LoopHost {
  readonly sink: SessionSink;
  nowMs(): number;
  /** Returns a store clock, as {@link Clocks} has it. */
  storeClock(after: number): number;
  /** Runs all microtasks, and ticks of node's libraries, until none is left. */
  drain(): void;
  /** Calls back in a macrotask of its own. */
  schedule(callback: () => void): void;
  after(ms: number, callback: () => void): () => void;
  /** Runs something as code of a program: what it begins, and what follows from that, has this owner. */
  enter?(program: Program, run: () => void): void;
  /** Returns the program whose code runs; undefined: nobody's, as far as is known. */
  owner?(): Program | undefined;
  /** Notes the program whose turn begins; undefined: the turn is over. */
  turnOf?(program: Program | undefined): void;
  /**
   * Returns why the turn that ran can not end so: it has changed what all sessions share, which is put back by this
   * call.
   */
  changed?(program: Program): Error | undefined;
  /** Returns an error as people are told of it. */
  told?(error: unknown): unknown;
  /**
   * Writes down whose turn begins, and the number of the newest event that has come to that session. When the isolate
   * is lost, its site reads there which session took it along, and which of the session's events can't have done so.
   */
  mark(channel: number, received: number): void;
  make(className: string, program: Program): SessionObject;
  envOf(program: Program): unknown;
  unpin?(program: Program): void;
  /** Returns the place of a method of a class, as a stack frame; "" where that is not known. */
  placeOf?(className: string, method: string): string;
  readonly cache?: SharedCache;
  /** Bytes of state above which a state is written down behind what came of its last event (ST7). */
  readonly largeBytes?: number;
}

/**
 * Limits of one macrotask, in turns and milliseconds: then frames are read and written, and the site sees that turns
 * end.
 */
const SLICE_TURNS = 256;
const SLICE_MS = 10;

/** The sessions of one isolate. */
export class TurnLoop implements SessionIsolate {
  readonly #host: LoopHost;
  readonly #sessions = new Map<number, StatefulSession>();
  readonly #following = new Map<number, FollowingSession>();
  /** Followed sessions that are to go on here, in their turn (TL2). */
  readonly #promoting = new Map<Runnable, Promotion>();
  readonly #ready: Runnable[] = [];
  readonly #isReady = new Set<Runnable>();
  readonly #alarms = new Map<Alarmed, Map<number, () => void>>();
  readonly #cache: SharedCache;
  #isScheduled = false;
  #isRunning = false;
  #current: Program | undefined;
  #channel = 0;

  constructor(host: LoopHost) {
    this.#host = host;
    this.#cache = host.cache ?? new SharedCache(() => host.nowMs());
  }

  /** Program whose turn runs (TL1). */
  get current(): Program | undefined {
    return this.#current;
  }

  /** Program whose turn runs, for what acts. @throws Leak for code of another session (TL4). */
  get acting(): Program | undefined {
    const owner = this.#host.owner?.();
    const current = this.#current;
    if (owner === undefined || current === undefined || owner === current) return current;
    throw this.leaked(owner, "what it asks for");
  }

  leaked(owner: Program, what: string): Leak {
    const leak = new Leak(owner, this.#current, what);
    for (const session of this.#sessions.values()) if (session.program === owner) session.leaked(leak);
    return leak;
  }

  /** Channel of the session whose turn it is, or was last. */
  get channel(): number {
    return this.#channel;
  }

  get sink(): SessionSink {
    return this.#host.sink;
  }

  // From the site

  open(channel: number, open: OpenSession): void {
    if (open.salvages === true) return this.wake(new SalvagedSession(this, channel, open));
    const session = new StatefulSession(this, channel, open, new LoggedProgram(this, open));
    this.#sessions.set(channel, session);
    this.wake(session);
  }

  /** Follows a session that runs elsewhere. */
  follow(channel: number, open: OpenSession): void {
    const session = new FollowingSession(this, channel, open);
    this.#following.set(channel, session);
    this.wake(session);
  }

  /** Passes on a piece that was appended to the log of a session that is followed. */
  piece(channel: number, bytes: Uint8Array): void {
    this.#following.get(channel)?.piece(bytes);
  }

  /** Makes a session that is followed run here from now on, on the same channel. */
  promote(channel: number, promotion: Promotion): void {
    const following = this.#following.get(channel);
    if (following === undefined) return;
    this.#promoting.set(following, promotion);
    this.wake(following);
  }

  deliver(channel: number, event: SessionEvent): void {
    this.#sessions.get(channel)?.deliver(event);
  }

  acknowledge(channel: number, acknowledged: Acknowledged): void {
    this.#sessions.get(channel)?.acknowledge(acknowledged);
  }

  checkpointNow(channel: number): void {
    this.#sessions.get(channel)?.checkpointNow();
  }

  /** Tells all sessions that their env has changed outside. */
  renew(): void {
    for (const session of this.#sessions.values()) session.renew();
  }

  close(channel: number): void {
    this.#sessions.get(channel)?.close();
    this.#sessions.delete(channel);
    const following = this.#following.get(channel);
    following?.close();
    this.#following.delete(channel);
    if (following !== undefined) this.#promoting.delete(following);
  }

  // For the sessions

  nowMs(): number {
    return this.#host.nowMs();
  }

  storeClock(after: number): number {
    return this.#host.storeClock(after);
  }

  make(className: string, program: Program): SessionObject {
    return this.aside(program, () => this.#host.make(className, program));
  }

  aside<T>(program: Program, work: () => T): T {
    if (this.#current !== undefined) return work();
    // Where the object is made for a checkpoint to be put into it: what its constructor starts runs before that, and
    // leaves nothing.
    this.#turnOf(program);
    try {
      const made: { result?: T } = {};
      this.#enter(program, () => made.result = work());
      this.#host.drain();
      const changed = this.#host.changed?.(program);
      if (changed !== undefined) throw changed;
      return made.result as T;
    } finally {
      this.#turnOf(undefined);
    }
  }

  envOf(program: Program): unknown {
    return this.#host.envOf(program);
  }

  get largeBytes(): number | undefined {
    return this.#host.largeBytes;
  }

  get cache(): SharedCache {
    return this.#cache;
  }

  unpin(program: Program): void {
    this.#host.unpin?.(program);
  }

  placeOf(className: string, method: string): string {
    return this.#host.placeOf?.(className, method) ?? "";
  }

  told(error: unknown): unknown {
    return this.#host.told === undefined ? error : this.#host.told(error);
  }

  readonly run = (program: Program, input: TurnInput, source: TurnSource): TurnEnd => {
    if (this.#current !== undefined) throw new Error("a turn began within another (TL1)");
    this.#turnOf(program);
    try {
      this.#enter(program, () => program.begin(input, source));
      this.#host.drain(); // TL2
      // Before the turn is over: nothing of a turn that changed what is shared leaves.
      const changed = this.#host.changed?.(program);
      if (changed !== undefined) program.refuse(changed);
      return program.finish();
    } finally {
      this.#turnOf(undefined);
    }
  };

  #turnOf(program: Program | undefined): void {
    this.#current = program;
    this.#host.turnOf?.(program);
  }

  #enter(program: Program, run: () => void): void {
    if (this.#host.enter === undefined) run();
    else this.#host.enter(program, run);
  }

  arm(session: Alarmed, local: number, ms: number): void {
    let alarms = this.#alarms.get(session);
    if (alarms === undefined) this.#alarms.set(session, alarms = new Map());
    alarms.get(local)?.();
    const cancel = this.#host.after(ms, () => {
      this.#forget(session, local);
      session.localDue(local);
    });
    alarms.set(local, cancel);
  }

  disarm(session: Alarmed, local: number): void {
    this.#alarms.get(session)?.get(local)?.();
    this.#forget(session, local);
  }

  #forget(session: Alarmed, local: number): void {
    const alarms = this.#alarms.get(session);
    if (alarms?.delete(local) && alarms.size === 0) this.#alarms.delete(session);
  }

  wake(session: Runnable): void {
    if (this.#isReady.has(session)) return;
    this.#isReady.add(session);
    this.#ready.push(session);
    if (this.#isScheduled || this.#isRunning) return;
    this.#isScheduled = true;
    this.#host.schedule(this.#runSlice);
  }

  later(callback: () => void): void {
    this.#host.schedule(callback);
  }

  // Turns

  #step(session: Runnable): void {
    try {
      session.step();
    } catch (error) {
      session.broke(error);
    }
    if (session.hasWork) this.wake(session); // TL3
  }

  /**
   * Promotes a follower. What is left to follow, and the first turn of the new epoch, are one step: the site that
   * promotes it waits for that.
   */
  #promote(channel: number, following: Runnable, promotion: Promotion): void {
    this.#promoting.delete(following);
    const session = this.#following.get(channel)?.promoted(promotion) ?? null;
    this.#following.delete(channel);
    if (session === null) return;
    this.#sessions.set(channel, session);
    this.#step(session);
  }

  #runSlice = (): void => {
    this.#isScheduled = false;
    this.#isRunning = true;
    const endMs = this.#host.nowMs() + SLICE_MS;
    try {
      for (let turns = 0; turns < SLICE_TURNS && this.#host.nowMs() < endMs; turns++) {
        const session = this.#ready.shift();
        if (session === undefined) break;
        this.#isReady.delete(session);
        const promotion = this.#promoting.size === 0 ? undefined : this.#promoting.get(session);
        if (!session.hasWork && promotion === undefined) continue;
        this.#channel = session.channel;
        this.#host.mark(session.channel, session.received);
        if (promotion !== undefined) this.#promote(session.channel, session, promotion);
        else this.#step(session);
      }
    } finally {
      this.#isRunning = false;
      if (this.#ready.length > 0 && !this.#isScheduled) {
        this.#isScheduled = true;
        this.#host.schedule(this.#runSlice);
      }
    }
  };
}
