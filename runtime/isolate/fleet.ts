/**
 * The isolates of one app version, and the calls that wait for them.
 *
 * L1  A call is in one isolate, or waits here, or is answered.
 * L2  A call that comes back from an isolate that ended runs again only as C2 (call.ts) allows.
 */
import type { PendingCall } from "./call.ts";
import type { IsolateApp } from "./call.ts";
import type { HostExchange } from "./host_exchange.ts";
import type { Isolate, IsolateEnd, IsolateOwner } from "./isolate.ts";

/** Gives a loaded isolate, or says why there is none. */
export type OpenIsolate = (app: IsolateApp, owner: IsolateOwner) => Promise<OpenOutcome>;

export type OpenOutcome =
  | { readonly kind: "isolate"; readonly isolate: Isolate }
  | { readonly kind: "failed"; readonly code: string; readonly message: string; readonly stack: string };

/** The isolates of one app version. */
export class Fleet implements IsolateOwner {
  readonly app: IsolateApp;
  readonly isolates = new Set<Isolate>();
  /** When it last had something to do. */
  usedMs: number;
  readonly #open: OpenIsolate;
  readonly #nowMs: () => number;
  #waiting: PendingCall[] = [];
  #opening = 0;
  #closed = false;

  constructor(app: IsolateApp, open: OpenIsolate, nowMs: () => number) {
    this.app = app;
    this.#open = open;
    this.#nowMs = nowMs;
    this.usedMs = nowMs();
  }

  get running(): number {
    let sum = 0;
    for (const isolate of this.isolates) sum += isolate.exchanges.size;
    return sum;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#opening === 0 && this.running === 0;
  }

  submit(pending: PendingCall): void {
    const nowMs = this.usedMs = this.#nowMs();
    const isolate = this.#free();
    if (isolate !== undefined) return isolate.start(pending, nowMs);
    if (this.#waiting.length >= this.app.limits.waitingMax) {
      return pending.fail(
        "overloaded",
        `${this.#waiting.length} requests wait for an isolate of ${this.app.app}; no more are accepted`,
      );
    }
    this.#waiting.push(pending);
    this.#grow();
  }

  freed(isolate: Isolate): void {
    this.usedMs = this.#nowMs();
    if (this.#waiting.length > 0 && this.#hasRoom(isolate)) this.#drain();
  }

  ended(isolate: Isolate, end: IsolateEnd, cut: readonly HostExchange[]): void {
    this.isolates.delete(isolate);
    const why = end.kind === "closed" ? "the isolate was closed" : end.why;
    for (const { pending, started } of cut) {
      if (pending.answered) continue;
      if (!started && pending.attempts < 3) {
        this.#waiting.push(pending);
      } else if (pending.mayRunAgain) this.#waiting.push(pending);
      else pending.fail("isolate_killed", `the isolate that ran the request was ended: ${why}`);
    }
    if (this.#waiting.length > 0) this.#grow();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const pending of this.#waiting) pending.fail("overloaded", "the site is stopping");
    this.#waiting = [];
    await Promise.all([...this.isolates].map((isolate) => isolate.close()));
  }

  #hasRoom(isolate: Isolate): boolean {
    return !isolate.isOver && isolate.exchanges.size < this.app.limits.requestsMax;
  }

  /** The isolate with the fewest requests that still has room. */
  #free(): Isolate | undefined {
    let best: Isolate | undefined;
    for (const isolate of this.isolates) {
      if (!this.#hasRoom(isolate)) continue;
      if (best === undefined || isolate.exchanges.size < best.exchanges.size) best = isolate;
    }
    return best;
  }

  #grow(): void {
    if (this.#closed || this.#opening > 0) return;
    if (this.isolates.size >= this.app.limits.isolatesMax) return;
    this.#opening++;
    this.#open(this.app, this).then((outcome) => {
      this.#opening--;
      if (outcome.kind === "isolate") {
        if (this.#closed) return void outcome.isolate.close();
        this.isolates.add(outcome.isolate);
        return this.#drain();
      }
      this.#refuse(outcome);
    });
  }

  #refuse(outcome: { code: string; message: string; stack: string }): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const pending of waiting) pending.fail(outcome.code, outcome.message, outcome.stack);
  }

  #drain(): void {
    const nowMs = this.#nowMs();
    while (this.#waiting.length > 0) {
      const isolate = this.#free();
      if (isolate === undefined) return this.#grow();
      const pending = this.#waiting.shift();
      if (pending !== undefined && !pending.answered) isolate.start(pending, nowMs);
    }
  }
}
