/**
 * The isolates of one app version, and the calls that wait for them.
 *
 * L1  A call is in one isolate, or waits here, or is answered.
 * L2  A call that comes back from an isolate that ended runs again only as C2 (call.ts) allows; the one that may
 *     have ended it runs again in an isolate of its own, so that it takes no other call down with it.
 * L3  Calls wait within bounds of number and of time (call_queue.ts); one that is sent away never began.
 * L4  So do calls that may have ended an isolate (L2): as many as calls may wait, and each as long as it may take to
 *     answer. None waits for one before it that has its answer and goes on, as a stream or a WebSocket does, unless
 *     there are as many isolates as there may be.
 * L5  A call whose client has gone while it waited is not begun.
 */
import { messageOf } from "./bodies.ts";
import type { IsolateApp, PendingCall } from "./call.ts";
import { CallQueue } from "./call_queue.ts";
import type { IsolateEnd } from "./app_process.ts";
import type { Isolate, IsolateOwner, LeftOver } from "./isolate.ts";

/** Opens a loaded isolate, or says why there is none. */
export type OpenIsolate = (app: IsolateApp, owner: IsolateOwner) => Promise<OpenOutcome>;

/** The outcome of opening an isolate. */
export type OpenOutcome = { readonly kind: "isolate"; readonly isolate: Isolate } | FleetRefusal;

/** The reason why no isolate could be opened. */
export interface FleetRefusal {
  readonly kind: "failed";
  readonly code: string;
  readonly message: string;
  readonly stack: string;
}

/**
 * Milliseconds for which a refusal is repeated: a version that cannot be loaded costs a process a second at most,
 * however many ask for it.
 */
const REFUSAL_MS = 1_000;
/** Milliseconds between looks at whether calls have waited too long, and whether isolates have time for them by now. */
const LOOK_MS = 50;
/**
 * Milliseconds after a request ended for which the isolates count as serving, also where an event loop stands for a
 * moment.
 */
const SERVES_MS = 1_000;

/** The isolates of one app version. */
export class Fleet implements IsolateOwner {
  readonly app: IsolateApp;
  readonly isolates = new Set<Isolate>();
  /** Time at which the fleet last had something to do. */
  usedMs: number;
  readonly #open: OpenIsolate;
  readonly #waiting = new CallQueue<PendingCall>();
  /** Timer that runs while calls wait. */
  #look: ReturnType<typeof setInterval> | undefined;
  #suspects: { readonly pending: PendingCall; readonly sinceMs: number }[] = [];
  /** The isolate that a suspect runs in; one at a time, so that suspects cost one process. */
  #cell: Isolate | undefined;
  /** Time at which a request ended last. */
  #servedMs = -Infinity;
  #opening = 0;
  #openingCell = false;
  #closed = false;
  /** Reason why the last isolate could not be opened, and the time until which nobody tries again. */
  #refusal: { readonly outcome: FleetRefusal; readonly untilMs: number } | undefined;

  constructor(app: IsolateApp, open: OpenIsolate) {
    this.app = app;
    this.#open = open;
    this.usedMs = performance.now();
  }

  /** True while nothing runs and nothing waits. */
  get isIdle(): boolean {
    if (this.#waiting.size + this.#suspects.length + this.#opening > 0) return false;
    for (const isolate of this.isolates) if (isolate.exchanges.size > 0) return false;
    return this.#cell === undefined && !this.#openingCell;
  }

  /** Begins a call, or lets it wait. */
  submit(pending: PendingCall): void {
    const nowMs = this.usedMs = performance.now();
    const isolate = this.#waiting.size === 0 ? this.#free() : undefined;
    if (isolate !== undefined) return isolate.start(pending, nowMs);
    if (this.#closed) return pending.fail("overloaded", "the site is stopping");
    if (this.#refusal !== undefined && nowMs < this.#refusal.untilMs) {
      const { code, message, stack } = this.#refusal.outcome;
      return pending.fail(code, message, stack);
    }
    const refusal = this.refusal(nowMs);
    if (refusal !== null) return pending.fail("overloaded", refusal);
    this.#waiting.push(pending, nowMs);
    this.#watch();
    this.#more(nowMs);
  }

  /** Returns the reason why a call that came now would be sent away (L3); null where it would not. */
  refusal(nowMs: number): string | null {
    const { app, limits: { waitingMax } } = this.app;
    if (!this.#waiting.isFull(waitingMax, nowMs)) return null;
    return `as many requests wait for an isolate of ${app} as may; no more are accepted`;
  }

  /** Opens a first isolate before there is a call. */
  warm(): void {
    if (this.isolates.size === 0) this.grow();
  }

  /** Called by an isolate when a place has become free, or its event loop turns again. */
  freed(isolate: Isolate): void {
    this.usedMs = this.#servedMs = performance.now();
    if (isolate === this.#cell) {
      if (isolate.exchanges.size === 0) isolate.close();
      return;
    }
    if (this.#waiting.size > 0) this.#drain();
  }

  ended(isolate: Isolate, end: IsolateEnd, left: LeftOver): void {
    this.isolates.delete(isolate);
    if (isolate === this.#cell) this.#cell = undefined;
    const why = end.kind === "closed" ? "it was closed" : end.why;
    const nowMs = performance.now();
    const again: PendingCall[] = [];
    for (const { id, pending } of left.cut) {
      if (pending.answered) continue;
      if (!pending.mayRunAgain(id <= left.lastStarted) || this.#closed) {
        pending.fail("isolate_killed", `the isolate that ran the request was ended: ${why}`);
      } else if (id === left.lastStarted) this.#suspects.push({ pending, sinceMs: nowMs });
      else again.push(pending);
    }
    if (this.#suspects.length > this.app.limits.waitingMax) {
      this.#suspects.shift()?.pending.fail(...SENT_AWAY);
    }
    this.#waiting.return(again, nowMs);
    if (this.#waiting.size + this.#suspects.length > 0) this.#watch();
    if (this.#waiting.size > 0) this.#drain();
    if (this.#suspects.length > 0) this.#openCell();
  }

  /** Gives every isolate back; calls that wait are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#look);
    for (const pending of [...this.#waiting.takeAll(), ...this.#suspects.map(({ pending }) => pending)]) {
      pending.fail("overloaded", "the site is stopping");
    }
    this.#suspects = [];
    await Promise.all([...this.isolates].map((isolate) => isolate.close()));
    await this.#cell?.close();
  }

  /** Returns the isolate with the fewest requests that still has room. */
  #free(): Isolate | undefined {
    let best: Isolate | undefined;
    for (const isolate of this.isolates) {
      if (!isolate.hasRoom) continue;
      if (best === undefined || isolate.exchanges.size < best.exchanges.size) best = isolate;
    }
    return best;
  }

  /**
   * Makes room for calls that wait: isolates that have time for more are given more (loop_room.ts), and where none has
   * there is to be another.
   */
  #more(nowMs: number): void {
    let isFull = true;
    for (const isolate of this.isolates) {
      isolate.want(nowMs);
      isFull &&= isolate.isFull;
    }
    if (isFull) this.grow();
  }

  /** Opens another isolate, unless one is being opened or there are as many as there may be. */
  grow(): void {
    if (this.#closed || this.#opening > 0 || this.isolates.size >= this.app.limits.isolatesMax) return;
    this.#opening++;
    this.#open(this.app, this).then((outcome) => {
      this.#opening--;
      if (outcome.kind === "failed") return this.#refuse(outcome);
      if (this.#closed) return void outcome.isolate.close();
      if (!outcome.isolate.hasEnded) this.isolates.add(outcome.isolate);
      this.#drain();
    });
  }

  /** Notes that no isolate could be opened: calls that wait are told, unless another isolate still serves. */
  #refuse(outcome: FleetRefusal): void {
    if (this.isolates.size > 0) return;
    this.#refusal = { outcome, untilMs: performance.now() + REFUSAL_MS };
    for (const pending of this.#waiting.takeAll()) pending.fail(outcome.code, outcome.message, outcome.stack);
  }

  /** Opens an isolate of its own for the next suspect, when the one before it has left the cell. */
  #openCell(): void {
    if (this.#closed || this.#openingCell || this.#cell !== undefined || this.#suspects.length === 0) return;
    this.#openingCell = true;
    this.#open(this.app, this).then((outcome) => {
      this.#openingCell = false;
      if (outcome.kind === "failed") return this.#refuseSuspects(outcome);
      const { isolate } = outcome, suspect = this.#nextSuspect();
      if (isolate.hasEnded) suspect?.fail("isolate_killed", "the isolate ended");
      else if (suspect === undefined || this.#closed) return void isolate.close();
      else {
        this.#cell = isolate;
        begin(isolate, suspect, performance.now());
        suspect.answer.then(() => this.#leaveCell(isolate));
      }
      this.#openCell();
    });
  }

  /** Takes out the first suspect that still wants an answer (L5). */
  #nextSuspect(): PendingCall | undefined {
    for (;;) {
      const pending = this.#suspects.shift()?.pending;
      if (pending === undefined || isWanted(pending)) return pending;
    }
  }

  #refuseSuspects({ code, message, stack }: FleetRefusal): void {
    for (const { pending } of this.#suspects.splice(0)) pending.fail(code, message, stack);
  }

  /** Makes the cell an isolate like the others: its suspect did not end it, and there may be one more (L4). */
  #leaveCell(isolate: Isolate): void {
    const others = this.isolates.size + this.#opening;
    if (isolate !== this.#cell || isolate.isOver || others >= this.app.limits.isolatesMax) return;
    this.#cell = undefined;
    this.isolates.add(isolate);
    if (this.#waiting.size > 0) this.#drain();
    this.#openCell();
  }

  /** Starts to look at calls that wait (L3, L4). */
  #watch(): void {
    this.#look ??= setInterval(() => this.#shed(), LOOK_MS);
  }

  #shed(): void {
    const nowMs = performance.now();
    if (!this.#isServing(nowMs)) this.#waiting.nobodyServes(nowMs);
    for (const pending of this.#waiting.shed(nowMs)) {
      pending.fail("overloaded", `more requests of ${this.app.app} come than this site can do`);
    }
    const isLate = ({ pending, sinceMs }: { pending: PendingCall; sinceMs: number }) =>
      nowMs - sinceMs >= pending.wallMs;
    for (const { pending } of this.#suspects.filter(isLate)) pending.fail(...SENT_AWAY);
    this.#suspects = this.#suspects.filter((each) => !isLate(each) && isWanted(each.pending));
    if (this.#waiting.size > 0) this.#drain();
    if (this.#waiting.size + this.#suspects.length > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }

  /** Reports whether the isolates begin calls: one that is stuck may compute for many requests, and end them. */
  #isServing(nowMs: number): boolean {
    if (this.isolates.size > 0 && nowMs < this.#servedMs + SERVES_MS) return true;
    return [...this.isolates].some((isolate) => !isolate.isOver && !isolate.isStuck);
  }

  #drain(): void {
    const nowMs = performance.now();
    while (this.#waiting.size > 0) {
      const isolate = this.#free();
      if (isolate === undefined) return this.#more(nowMs);
      const pending = this.#waiting.next(nowMs);
      if (pending !== undefined && isWanted(pending)) begin(isolate, pending, nowMs);
    }
  }
}

/** Code and message of a suspect that was not run again. */
const SENT_AWAY = [
  "isolate_killed",
  "the isolate that ran the request was ended, and there is none to run it again",
] as const;

/** Reports whether somebody waits for the call's answer (L5); where the client has gone, the call is failed. */
function isWanted(pending: PendingCall): boolean {
  if (pending.call.signal?.aborted) {
    pending.fail("overloaded", "the client has gone before the request was begun");
  }
  return !pending.answered;
}

/** Begins a call; one that can't be begun fails alone, since the calls behind it wait, too. */
function begin(isolate: Isolate, pending: PendingCall, nowMs: number): void {
  try {
    isolate.start(pending, nowMs);
  } catch (error) {
    pending.fail("internal", `the request could not be begun: ${messageOf(error)}`);
  }
}
