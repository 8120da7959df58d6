/**
 * A stateful session that this site serves, from one opening to the next: the requests that wait for its answers.
 *
 * H1  A request is answered once, by whichever run has its answer; the same request that comes again meanwhile waits
 *     for that answer, too.
 * H2  When a run is over and another can follow here (its isolate was killed, it rested, other code is to run it),
 *     requests without an answer are handed to the next; the log says which of them were done (`Home.ask`).
 * H3  An event in whose handler the isolate was killed counts as one that threw: its request is told so, others are
 *     given up, tried again or the session parked, as its class says. What kills isolates otherwise, KILLS_MAX times,
 *     parks the session.
 * H4  Where several events were under way none is blamed at first: the next run is given them in single file
 *     (event_line.ts), so that a second end shows in which one it was. Where that does not show it, the first event is
 *     blamed. When all events that waited are done, none of them was to blame: the next end counts as a first one.
 * H5  An event that had not been begun is run in the next isolate. Where that isolate ends, too, before the event is
 *     begun, the event is blamed for ending them.
 * H6  An object of this class is the one of its name here (`gone`) as long as a run of it is open, opens, or is to
 *     follow one that ends.
 * H7  A call for which another stateful session waits is not begun when that session waits no longer, or when both wait
 *     for each other (waits.ts): only here it is known that it was not begun.
 */
import { HomeError, type StatefulName } from "../home/mod.ts";
import { chainName, type HandledEvent, type Rejection } from "../turn/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";
import { Problem } from "../../vocabulary/problem.ts";
import type { ChannelSink } from "./ports.ts";
import { moveRun } from "./moves.ts";
import type { PeerClock } from "../attach/mod.ts";
import { HostedPeers, type PeersSession, type PeersSite } from "./hosted_peers.ts";
import { RunFailed, type RunListener, type RunOver } from "./run_over.ts";
import type { SessionRun } from "./session_run.ts";
import { difference, type Reason } from "./reason.ts";
import type { LastAnswers } from "./last_answers.ts";
import type { Openings } from "./openings.ts";
import type { Parking } from "./parking.ts";
import type { Answered, HostedRequest } from "./request.ts";
import { mapKey, shownSession } from "./session_name.ts";
import { SessionRoom } from "./session_room.ts";
import { type CallWait, NO_WAITS, victim, WAITED_CALLS_MAX, type WaitedCall } from "./waits.ts";

/** Host of a site's sessions (session_host.ts), as each of them needs it: one for all, for there may be many. */
export interface HostedSite {
  readonly ports: HostedPorts;
  readonly openings: Pick<Openings, "open">;
  readonly parking: Pick<Parking, "why" | "park">;
  readonly lastAnswers: Pick<LastAnswers, "keep">;
  /**
   * Tells that nothing is left of the session here. It may be told again by an object whose name another has by now.
   */
  gone(one: { readonly name: StatefulName }): void;
  log(name: StatefulName, level: string, text: string): void;
  /** Tells that the session goes on: this run serves from now on. */
  serves(name: StatefulName, run: SessionRun): void;
  /** Keeps the log of a session that has ended, and whose log is about to go: it may go when that resolves. Never rejects. */
  keepLog(name: StatefulName): Promise<void>;
  /** Returns the ports of a session's peers. */
  peersOf(name: StatefulName): PeersSite;
}

/** Site, as its sessions need it. */
export interface HostedPorts {
  readonly clock: PeerClock;
  /** Returns what a call waits for, at whichever site. Never rejects. */
  readonly waitsOf: (call: WaitedCall) => Promise<CallWait>;
  /** Counts rejected handlers, by what they were for. */
  readonly countRejected: (what: string) => void;
  /** Reports a fault that concerns one session. */
  readonly failed: (name: StatefulName, error: unknown) => void;
}

interface Waiting extends HostedRequest {
  readonly done: PromiseWithResolvers<Answered>;
  /** Why the isolate was killed in the request's handler (H3); null: it was not. */
  killed: string | null;
  /** True once the request was on its way to an isolate that was killed. */
  wasLost: boolean;
  isSettled: boolean;
  /** True once it was given to a run's line: it may be in a log (H7). */
  wasGiven: boolean;
  /** Number of callers that wait for it. */
  askers: number;
}

/**
 * Milliseconds between looks for circles: a circle fails within a second; most calls are over by the first look (H7).
 */
const LOOK_MS = 250;
/** Number of kills in a row, without an event that was done. */
const KILLS_MAX = 3;
/**
 * Number of events in single file beyond those that were under way: for what comes meanwhile and is given before them
 * (H4).
 */
const SINGLE_MORE = 16;
/** Number of attempts to open the session, where isolates end meanwhile in turns of others. */
const OPENINGS_MAX = 5;
/** Milliseconds for which events wait until other code runs; then they go on with the code that runs. */
const SWITCH_MS_MAX = 2_000;

/** See the file's header. */
export class Hosted implements RunListener, PeersSession {
  readonly name: StatefulName;
  readonly peers: HostedPeers;
  readonly #site: HostedSite;
  readonly #waiting = new Map<string, Waiting>();
  readonly #room = new SessionRoom();
  #run: SessionRun | null = null;
  #opening: Promise<SessionRun> | null = null;
  /** Number of callers that will open the session when what goes on here is over (H6). */
  #following = 0;
  /** Work on the home while no run is open or opens (`apart`); null: there is none. */
  #aside: Promise<void> | null = null;
  #isMoving = false;
  #kills = 0;
  /**
   * Number of isolates that ended since one event was blamed or all were done, and number of events that the next run
   * is given in single file (H4).
   */
  #unclear = 0;
  #single = 0;
  /**
   * Mark for events that are no requests: true once one of them was on its way to an isolate that was killed, and none
   * was done since.
   */
  readonly #others = { wasLost: false };
  #parked: string | null = null;
  /** Cancels the next look for circles (H7); null: none is due. */
  #cancelLook: (() => void) | null = null;
  #isLooking = false;
  /**
   * Event that the next run is told first, in place of the event that killed the run before (H3), while that run's
   * epoch lasts.
   */
  #rejected: { readonly event: HandledEvent; readonly epoch: number } | null = null;

  constructor(name: StatefulName, site: HostedSite) {
    this.name = name;
    this.#site = site;
    this.peers = new HostedPeers(this);
  }

  get run(): SessionRun | null {
    return this.#run;
  }

  /** Reason for which the session stands still; null: it does not. */
  get parked(): string | null {
    return this.#parked;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Lets a session that stood still go on: its code has changed. */
  unpark(): void {
    this.#parked = null;
    this.#kills = 0;
  }

  /** Answers a request. @throws HomeError, Problem, StoreUnavailable */
  async request(asked: HostedRequest): Promise<Answered> {
    const known = this.#waiting.get(asked.request);
    if (known !== undefined) return await this.#waitFor(known, asked.signal); // H1
    const nowMs = this.#site.ports.clock.nowMs();
    if (!this.#room.isFor(this.#waiting.size, nowMs)) {
      throw new Problem(
        "overloaded",
        `${this.#waiting.size} requests wait for ${
          shownSession(this.name)
        }, which is more than it answers in time`,
      );
    }
    const done = Promise.withResolvers<Answered>();
    const waiting: Waiting = {
      ...asked,
      done,
      killed: null,
      wasLost: false,
      isSettled: false,
      wasGiven: false,
      askers: 0,
    };
    this.#waiting.set(asked.request, waiting);
    this.#room.came(this.#waiting.size, nowMs);
    void this.#submit(waiting);
    if (isCall(waiting)) this.#lookLater();
    return await this.#waitFor(waiting, asked.signal);
  }

  /** Waits for a request's answer, and takes the call back where its last caller leaves (H7). */
  async #waitFor(waiting: Waiting, signal: AbortSignal | undefined): Promise<Answered> {
    waiting.askers++;
    const left = () => {
      waiting.askers--;
      if (waiting.askers > 0 || !isCall(waiting)) return;
      this.#refuse(
        waiting,
        new Problem("superseded", `nobody waits for this call of ${shownSession(this.name)}`),
      );
    };
    if (signal?.aborted) left();
    signal?.addEventListener("abort", left, { once: true });
    try {
      return await waiting.done.promise;
    } finally {
      signal?.removeEventListener("abort", left);
    }
  }

  /** Refuses a request that has not been begun (H7). */
  #refuse(waiting: Waiting, problem: Problem): void {
    if (waiting.isSettled || waiting.killed !== null) return;
    if (waiting.wasGiven) {
      const run = this.#run;
      if (run?.line.take(waiting.request) !== true) return;
      run.home.dropped(waiting.request); // a caller that asks again with its id has it begun
    }
    this.#settle(waiting.request, ({ done }) => done.reject(problem));
    this.tidy();
  }

  /** Returns what a call of this session waits for (waits.ts). */
  waits(request: string): CallWait {
    const run = this.#run;
    if (run === null || run.isOver || !this.#waiting.has(request)) return NO_WAITS;
    return {
      isQueued: run.line.has(request),
      calls: run.calls.waited(this.name.app).slice(0, WAITED_CALLS_MAX),
    };
  }

  #lookLater(): void {
    if (this.#isLooking || this.#cancelLook !== null) return;
    this.#cancelLook = this.#site.ports.clock.after(LOOK_MS, () => {
      this.#cancelLook = null;
      this.#isLooking = true;
      void this.#look().catch((error) => this.failed(error)).then(() => {
        this.#isLooking = false;
        if (this.#waiting.values().some(isCall)) this.#lookLater();
      });
    });
  }

  /** Looks for a circle of calls, and refuses the call that has to fail where it waits here (H7). */
  async #look(): Promise<void> {
    const look = () => {
      const run = this.#run;
      if (run === null || run.isOver) return { calls: [], queued: new Set<string>() };
      const queued = this.#waiting.keys().filter((request) => run.line.has(request));
      return { calls: run.calls.waited(this.name.app), queued: new Set(queued) };
    };
    const found = await victim(look, (call) => this.#site.ports.waitsOf(call));
    const waiting = found === null ? undefined : this.#waiting.get(found.request);
    if (found === null || waiting === undefined) return;
    const path = [this.name, ...found.circle.map(({ name }) => name)].map(({ class: of, id }) =>
      chainName(of, id)
    );
    this.#refuse(waiting, new Problem("cycle", `stateful sessions wait for each other: ${path.join(" → ")}`));
  }

  /**
   * Moves the session to another site, from memory or from the disk. @throws HomeError `move_refused`: it goes on here.
   *
   * @param unopened moves the session where no run is open here.
   * @returns its epoch here.
   */
  async move(to: string, unopened: () => Promise<number>, drainMs: number): Promise<number> {
    if (this.#aside !== null || this.#isMoving) {
      throw new HomeError(
        "move_refused",
        `cannot move ${shownSession(this.name)}: it is being moved already`,
      );
    }
    this.#isMoving = true;
    try {
      while (this.#opening !== null || this.#run?.isOver === true) await this.#changed();
      const run = this.#run;
      if (run !== null) {
        const { epoch } = run.home;
        await moveRun(run, to, drainMs, this.#site.ports.clock).catch((error) =>
          this.#notMoved(run, to, error)
        );
        await run.finished;
        return epoch;
      }
      const epoch = await this.apart(unopened);
      this.unpark();
      return epoch;
    } finally {
      this.#isMoving = false;
      this.tidy();
    }
  }

  /** Does some work on the home while no run is open or opens: nobody opens the session before the work is over. */
  async apart<T>(work: () => Promise<T>): Promise<T> {
    const done = work();
    const aside = this.#aside = done.then(() => {}, () => {});
    try {
      return await done;
    } finally {
      if (this.#aside === aside) this.#aside = null;
      this.tidy();
    }
  }

  /**
   * Waits until the opening under way has succeeded or failed, or a run that is over has ended: by then the session may
   * have been opened again.
   */
  async #changed(): Promise<void> {
    const run = this.#run;
    if (this.#opening !== null) return void await this.#opening.catch(() => {});
    await run?.finished;
    if (this.#run === run) this.#run = null;
  }

  /**
   * Throws why a move failed: the checkpoint for it may have shown that the session can't go on at all. @throws
   * HomeError
   */
  async #notMoved(run: SessionRun, to: string, error: unknown): Promise<never> {
    if (run.isOver) await run.finished;
    if (this.#parked === null) throw error;
    const why = `it stands still: ${this.#parked}`;
    throw new HomeError("move_refused", `cannot move ${shownSession(this.name)} to ${to}: ${why}`);
  }

  /** Returns the open run, or opens one. @throws as request */
  ensure(): Promise<SessionRun> {
    const run = this.#run;
    if (run === null && this.#aside !== null) return this.#follows(this.#aside, null);
    if (run?.isOver) return this.#follows(run.finished, run);
    if (run !== null) return Promise.resolve(run);
    return this.#opening ??= this.#start().finally(() => this.#opening = null); // session_host.ts S1
  }

  async #follows(before: Promise<void>, run: SessionRun | null): Promise<SessionRun> {
    this.#following++;
    await before;
    this.#following--;
    if (this.#run === run) this.#run = null;
    return await this.ensure();
  }

  /**
   * Opens a run, again where an isolate ends in the turn of another session: that is no reason not to open this one in
   * the next isolate (H3).
   */
  async #start(): Promise<SessionRun> {
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#startOnce();
      } catch (error) {
        this.peers.notOpened();
        if (!(error instanceof RunFailed)) throw error;
        const { over } = error;
        if (over.kind !== "killed") throw this.#failed(over);
        if (over.isCause && ++this.#kills >= KILLS_MAX) this.#killedTooOften(over.why);
        if (this.#parked !== null || attempt >= OPENINGS_MAX) throw this.#failed(over);
      }
    }
  }

  async #startOnce(): Promise<SessionRun> {
    this.#parked ??= this.#site.parking.why(this.name);
    if (this.#parked !== null) throw parked(this.name, this.#parked);
    const run = await this.#site.openings.open(this.name, this);
    const { over } = run;
    if (run.isOver && over !== null) { // the run did not serve yet: nobody was told of its end
      await run.finished;
      throw new RunFailed(over);
    }
    // A rejected event of an earlier epoch may have been done at another site since.
    const rejected = this.#rejected?.epoch === run.home.epoch ? this.#rejected.event : null;
    this.#rejected = null;
    if (this.#run?.isOver === false) {
      throw new Error(`${shownSession(this.name)} has two runs at this site (session_host.ts S1)`);
    }
    this.#run = run;
    run.line.single(this.#single);
    this.#single = 0;
    const stopped = this.#stopped(run);
    if (stopped !== null) run.deliver(stopped);
    run.serve(rejected);
    this.#room.opened(this.#waiting.size, this.#site.ports.clock.nowMs());
    this.#site.serves(this.name, run);
    return run;
  }

  /**
   * Returns the rejection of a handler that goes on in the log and took its isolate with it: it ends before any other
   * event (H3).
   */
  #stopped(run: SessionRun): HandledEvent | null {
    const waiting = run.handling === null ? undefined : this.#waiting.get(run.handling);
    return waiting === undefined ? null : killedOf(waiting);
  }

  async #submit(waiting: Waiting): Promise<void> {
    let run: SessionRun | undefined;
    try {
      run = await this.ensure();
      if (run.isOver) return void this.#submit(waiting);
      if (run.isSwitching) await this.#switched(run);
      if (waiting.token !== null && waiting.killed === null) await run.store.see(waiting.token);
      if (waiting.isSettled || run !== this.#run || run.isOver) return; // H2
      const isBegun = run.handling === waiting.request || waiting.killed !== null;
      const asked = run.home.ask(waiting.request, isBegun);
      if (asked.kind === "known") return this.#relay(run, waiting, asked.answer);
      if (asked.kind === "past") {
        throw new Problem(
          "superseded",
          `a request of ${shownSession(this.name)} was answered before, and not kept`,
        );
      }
      // The answer comes with a commit; a handler that took its isolate with it was stopped before all else.
      if (run.handling === waiting.request) return;
      const { request, chain, bytes } = waiting;
      waiting.wasGiven = true;
      run.deliver(killedOf(waiting) ?? { kind: "request", request, chain, bytes });
    } catch (error) {
      if (run?.isOver === true) return; // H2
      this.#settle(waiting.request, (w) => w.done.reject(error));
      this.tidy();
    }
  }

  /**
   * Passes on the answer of a request that was run before: the answer is there, or on its way. What the log wrote may
   * be applied by the next run only, where this one is over meanwhile: nothing of it leaves then (session_run.ts R2).
   */
  #relay(run: SessionRun, waiting: Waiting, answer: Promise<Uint8Array>): void {
    answer.then(async (bytes) => {
      await run.settled;
      const token = await run.store.token();
      if (run.isOver) return; // H2
      this.#settle(waiting.request, (w) => w.done.resolve({ answer: bytes, token }));
    }).catch(() => {}); // the run is over, or will be: H2
  }

  async #switched(run: SessionRun): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#site.ports.clock.after(SWITCH_MS_MAX, late.resolve);
    await Promise.race([run.finished, late.promise]);
    cancel();
  }

  #settle(request: string, settle: (waiting: Waiting) => void): void {
    const waiting = this.#waiting.get(request);
    if (waiting === undefined) return;
    this.#kills = 0;
    waiting.isSettled = true;
    this.#waiting.delete(request);
    if (this.#waiting.size === 0) {
      this.#cancelLook?.();
      this.#cancelLook = null;
    }
    waiting.done.promise.catch(() => {});
    this.#room.answered(this.#waiting.size, this.#site.ports.clock.nowMs());
    settle(waiting);
  }

  over(sink: ChannelSink, over: RunOver): void {
    const run = this.#run;
    if (run === null || run !== sink) return; // that run never served: `#start` tells why
    this.#run = null;
    this.#room.closed();
    for (const waiting of this.#waiting.values()) { // H7
      if (isCall(waiting) && run.line.has(waiting.request)) waiting.wasGiven = false;
    }
    if (over.kind === "killed" || over.kind === "rested") {
      if (over.kind === "killed") this.#killed(run, over);
      if (this.#parked === null) {
        for (const waiting of this.#waiting.values()) void this.#submit(waiting);
        this.peers.runOver(this.#rejected?.event ?? null);
        // Also where nobody asks: the event that killed the isolate would be due again, and kill the next.
        if (this.#rejected !== null || this.#single > 0) this.ensure().catch(() => {}); // the next caller is told
        return this.tidy();
      }
    }
    const error = this.#failed(over);
    if (over.kind === "ended") this.#site.lastAnswers.keep(mapKey(this.name), run.unheard); // ending.ts EN2
    if (over.kind === "ended") this.peers.ended();
    else this.peers.over(over.kind === "moved" ? over.error.site : null);
    for (const { request } of [...this.#waiting.values()]) this.#settle(request, (w) => w.done.reject(error));
    this.tidy();
  }

  // ── What runs say ──

  answered(request: string, answer: Uint8Array, token: TokenState): void {
    this.#settle(request, (waiting) => waiting.done.resolve({ answer, token }));
  }

  unanswered(request: string): void {
    this.#settle(request, ({ done }) => done.reject(new Problem("internal", "the request was dropped")));
  }

  done(): void {
    this.#kills = 0;
    this.#others.wasLost = false;
    if (this.#waiting.size === 0 && this.#run?.isAllDone === true) this.#unclear = 0; // H4
  }

  ending(): Promise<void> {
    return this.#site.keepLog(this.name);
  }

  log(level: string, text: string): void {
    this.#site.log(this.name, level, text);
  }

  failed(error: unknown): void {
    this.#site.ports.failed(this.name, error);
  }

  /**
   * Reports a rejected handler, so that nothing is given up in silence: a caller is told by the answer, all else by the
   * app's log.
   */
  rejected({ subject, attempt, code, message }: Rejection): void {
    this.#site.ports.countRejected(subject?.kind ?? "local");
    if (subject?.kind === "request") return;
    const what = subject === null ? "a closure timer" : `${subject.kind} ${JSON.stringify(subject.id)}`;
    // Tried again by itself, or when an operator resumes the session: as its class says.
    const then = attempt === 0 ? "it is given up" : `attempt ${attempt}, it is kept to be tried again`;
    this.log("warn", `${shownSession(this.name)} rejected ${what}, ${then}: ${code}: ${message}`);
  }

  /** Notes a run whose isolate was killed, and finds the event to blame (H3). */
  #killed(
    run: SessionRun,
    { isCause, isUnbegun, underWay, why }: Extract<RunOver, { kind: "killed" }>,
  ): void {
    const { first } = run;
    const waiting = first?.kind === "request" ? this.#waiting.get(first.request) : undefined;
    const lost = waiting ?? this.#others;
    const isLostAgain = isUnbegun && lost.wasLost;
    if (isUnbegun) lost.wasLost = true;
    if (!isCause && !isLostAgain) return; // H5
    this.#single = SINGLE_MORE + 2 * underWay;
    if (underWay > 1 && this.#unclear++ === 0) return; // H4
    this.#unclear = 0;
    if (waiting !== undefined) {
      waiting.killed = `the isolate that ran the request was ended: ${why}`;
      return; // a Map keeps the order of insertion: this request comes before the others, as it did
    }
    // Kills are counted where no event of the app is to blame. For an event its class says what happens (static
    // whenThrown), and that comes to an end. A rejection that was given in place of an event, and in which an isolate
    // is ended again, counts as no event.
    const isOfNone = first === undefined || first.kind === "reject";
    if (isOfNone && ++this.#kills >= KILLS_MAX) this.#killedTooOften(why);
    const of = first?.kind === "reject" ? first.of : first ?? null;
    const event = { kind: "reject", of, code: "isolate_killed", message: why } as const;
    this.#rejected = { event, epoch: run.home.epoch };
  }

  /** Returns the error that those who wait are told. */
  #failed(over: RunOver): Error {
    switch (over.kind) {
      case "moved":
        return over.error;
      case "parked":
        return parked(this.name, this.#park(over.parked));
      case "killed":
        if (this.#parked !== null) return parked(this.name, this.#parked);
        return new Problem("isolate_killed", `${shownSession(this.name)} could not be opened: ${over.why}`);
      case "ended":
        return new HomeError("ended", `${shownSession(this.name)} has ended`);
      case "rested":
        return new HomeError("closed", `${shownSession(this.name)} rests`);
      case "failed":
        if (!(over.error instanceof HomeError)) {
          this.log("error", `${shownSession(this.name)} could not go on: ${over.error}`);
        }
        return over.error instanceof Error ? over.error : new Error(String(over.error));
    }
  }

  #killedTooOften(why: string): void {
    const message = `its isolate was ended ${KILLS_MAX} times: ${why}`;
    this.#park({ code: "isolate_killed", message, detail: {} });
  }

  /** Parks the session, and returns why. */
  #park(reason: Reason): string {
    const why = this.#parked = `${reason.code}: ${reason.message}`;
    this.#site.parking.park(this.name, reason);
    this.log("error", `${shownSession(this.name)} stands still: ${why}${difference(reason)}`);
    return why;
  }

  /** Notes that this site is not the home of that epoch any more, whether a run serves or not. */
  homeOver(epoch: number, error: HomeError): void {
    if (this.#rejected?.epoch === epoch) this.#rejected = null;
    this.peers.homeOver(epoch, error);
    this.tidy();
  }

  /** Returns the ports of the attached peers. */
  peersSite(): PeersSite {
    return this.#site.peersOf(this.name);
  }

  /**
   * Notes that the session was ended while no run was open: its peers begin anew, and what was to come next is dropped.
   */
  forgotten(): void {
    this.unpark();
    this.#rejected = null;
    this.#single = 0;
    this.peers.ended();
    this.tidy();
  }

  /** Removes the session from its site where nothing of it is left here. */
  tidy(): void { // H6
    const isRunning = this.#run !== null || this.#opening !== null || this.#following > 0 || this.#isMoving ||
      this.#aside !== null;
    if (
      this.#waiting.size > 0 || isRunning || this.#rejected !== null || this.#parked !== null ||
      this.peers.isUsed
    ) return;
    this.peers.close();
    this.#site.gone(this);
  }
}

/** Reports whether another stateful session waits for a request. */
const isCall = ({ chain }: Waiting): boolean => chain.length > 0;

/** Returns the rejection in place of a request in whose handler an isolate was killed (H3); null: none was. */
function killedOf({ request, chain, bytes, killed }: Waiting): HandledEvent | null {
  const of = { kind: "request", request, chain, bytes } as const;
  return killed === null ? null : { kind: "reject", of, code: "isolate_killed", message: killed };
}

const parked = (name: StatefulName, why: string): Problem =>
  new Problem("stateful_parked", `${shownSession(name)} stands still: ${why}`);
