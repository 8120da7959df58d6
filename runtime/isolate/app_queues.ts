/**
 * The queues of apps in their site's memory, and the bound on all of one app's together: bodies and messages that
 * nobody takes yet, calls that wait for those before them, frames that its isolates have not read. Each queue has a
 * bound of its own (docs/queues.md has the table); this is the bound of them all, for an app can open thousands of
 * them.
 *
 * Life of a hold: `hold` → `add` as what waits grows and shrinks → `end`.
 *
 * Q1  `bytes` is the sum of what the holds of the app hold; a hold that has ended holds nothing.
 * Q2  Over `bytesMax` the hold that has most is shed, and the next, until the rest fits: the part of the app that keeps
 *     most waiting pays, and no other app does.
 * Q3  A hold is shed once. Its owner is called, lets go of what waits, and ends the hold.
 */
import { strict as assert } from "node:assert";
import { AppCores } from "./app_cores.ts";
import { AppTurns, SiteTurns } from "./app_turns.ts";

/** Kind of a queue. Each is a row of the table in docs/queues.md. */
export type QueueName =
  | "isolate"
  | "response body"
  | "outgoing body"
  | "webhook body"
  | "socket to client"
  | "socket from client"
  | "socket of a session";

/** The share of one queue in what waits of its app. */
export class QueueHold {
  readonly queue: QueueName;
  /** Queues of the app that it belongs to. */
  readonly queues: AppQueues;
  readonly #shed: (why: string) => void;
  #bytes = 0;
  #over = false;
  /** Neighbours in the list of the app's holds (a list as in departures.ts, for the same reason). */
  before: QueueHold = this;
  after: QueueHold = this;

  constructor(queues: AppQueues, queue: QueueName, shed: (why: string) => void) {
    this.queues = queues;
    this.queue = queue;
    this.#shed = shed;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes that wait, or takes off some with a number below 0. A hold that grows may be shed at once (Q2). */
  add(bytes: number): void {
    if (this.#over) return;
    this.#bytes += bytes;
    assert(this.#bytes >= 0, "Q1: a queue gives back more than it held");
    this.queues.changed(bytes);
  }

  /** Ends the hold: nothing of the queue waits any more, and nothing will. */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.queues.ended(this, bytes);
  }

  /** Has the owner let go of what waits, and ends the hold (Q3). */
  shed(why: string): void {
    this.#shed(why);
    this.end();
  }
}

/** The queues of one app at one site. */
export class AppQueues {
  readonly bytesMax: number;
  /** Turns in which the frames of the app's isolates are read. */
  readonly turns: AppTurns;
  /** CPU time of the app's processes, by which they give way to others. */
  readonly cores: AppCores;
  /** Hold that stands before the first and after the last. */
  readonly #ends: QueueHold;
  readonly #note: (shed: { readonly queue: QueueName; readonly bytes: number }) => void;
  #bytes = 0;
  #size = 0;

  constructor(
    bytesMax: number = QUEUES_BYTES_MAX,
    note: (shed: { readonly queue: QueueName; readonly bytes: number }) => void = () => {},
    nowMs?: () => number,
    site?: SiteTurns,
  ) {
    this.bytesMax = bytesMax;
    this.turns = new AppTurns(site);
    this.cores = new AppCores(nowMs);
    this.#note = note;
    this.#ends = new QueueHold(this, "isolate", () => {});
  }

  /** Bytes that wait now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of queues. */
  get size(): number {
    return this.#size;
  }

  /**
   * Begins a queue of the app. `shed` lets go of all that it holds, and tells the reason to those who need to know it.
   */
  hold(queue: QueueName, shed: (why: string) => void): QueueHold {
    const hold = new QueueHold(this, queue, shed), last = this.#ends.before;
    hold.before = last;
    hold.after = this.#ends;
    last.after = this.#ends.before = hold;
    this.#size++;
    return hold;
  }

  /** Called by a hold when it has grown or shrunk (Q2). */
  changed(bytes: number): void {
    this.#bytes += bytes;
    while (bytes > 0 && this.#bytes > this.bytesMax) {
      const most = this.#most();
      if (most === undefined) return;
      this.#note({ queue: most.queue, bytes: most.bytes });
      most.shed(`${this.#bytes >> 20} MiB of the app wait at this site, of ${this.bytesMax >> 20}`);
    }
  }

  /** Called by a hold when it has ended. */
  ended(hold: QueueHold, bytes: number): void {
    this.#bytes -= bytes;
    this.#size--;
    hold.before.after = hold.after;
    hold.after.before = hold.before;
    hold.before = hold.after = hold;
  }

  /** Bytes that wait now, by queue; queues in which nothing waits are left out. */
  get byQueue(): ReadonlyMap<QueueName, number> {
    const sums = new Map<QueueName, number>();
    for (let hold = this.#ends.after; hold !== this.#ends; hold = hold.after) {
      if (hold.bytes > 0) sums.set(hold.queue, (sums.get(hold.queue) ?? 0) + hold.bytes);
    }
    return sums;
  }

  #most(): QueueHold | undefined {
    let most: QueueHold | undefined;
    for (let hold = this.#ends.after; hold !== this.#ends; hold = hold.after) {
      if (hold.bytes > (most?.bytes ?? 0)) most = hold;
    }
    return most;
  }
}

/**
 * Bytes in all queues of an app at a site: as much as two isolates may leave unread (frames.ts), or the largest states
 * of a few sessions that come at once (state_frames.ts), and something beside it; so that a busy moment is not what
 * sheds one.
 */
export const QUEUES_BYTES_MAX = 384 * 1024 * 1024;

/** Milliseconds between notes of an app: one of which a queue was shed sheds hundreds. */
const NOTE_MS = 60_000;

/** A note of queues that were shed: the last of them, and the number of them since the note before. */
export interface ShedNote {
  readonly app: string;
  readonly queue: QueueName;
  readonly bytes: number;
  readonly shed: number;
}

/** The part of a site that is told of queues that were shed. */
export interface ShedListener {
  /** Called for each queue that was shed. */
  readonly shed?: (shed: { readonly app: string; readonly queue: QueueName }) => void;
  /** Takes a note that is worth a line of the log. */
  readonly note?: (note: ShedNote) => void;
}

/** Bytes of an app that wait in one kind of its queues. */
export interface QueuedBytes {
  readonly app: string;
  readonly queue: QueueName;
  readonly bytes: number;
}

/**
 * The queues of all apps of a site: those of an app outlive its isolates, and are dropped when nothing holds any and
 * the app has rested from what it computed.
 */
export class SiteQueues {
  readonly bytesMax: number;
  readonly #told: ShedListener;
  readonly #nowMs: () => number;
  readonly #apps = new Map<string, AppQueues>();
  readonly #turns = new SiteTurns();

  /** @param nowMs a clock that never goes back. */
  constructor(
    bytesMax: number = QUEUES_BYTES_MAX,
    told: ShedListener = {},
    nowMs: () => number = () => performance.now(),
  ) {
    this.bytesMax = bytesMax;
    this.#told = told;
    this.#nowMs = nowMs;
  }

  /** Returns the queues of one app. */
  of(app: string): AppQueues {
    let queues = this.#apps.get(app);
    if (queues === undefined) {
      for (const [name, { size, cores }] of this.#apps) {
        if (size === 0 && cores.isRested) this.#apps.delete(name);
      }
      queues = new AppQueues(this.bytesMax, this.#listener(app), this.#nowMs, this.#turns);
      this.#apps.set(app, queues);
    }
    return queues;
  }

  /** Returns a listener that passes on one note of an app within NOTE_MS, however many of its queues are shed. */
  #listener(app: string): (shed: { readonly queue: QueueName; readonly bytes: number }) => void {
    let sinceMs = -Infinity, shedSince = 0;
    return (shed) => {
      shedSince++;
      this.#told.shed?.({ app, queue: shed.queue });
      const nowMs = this.#nowMs();
      if (nowMs - sinceMs < NOTE_MS) return;
      this.#told.note?.({ app, ...shed, shed: shedSince });
      sinceMs = nowMs;
      shedSince = 0;
    };
  }

  /** Yields the bytes that wait, by app and queue. */
  *waiting(): Generator<QueuedBytes> {
    for (const [app, { byQueue }] of this.#apps) {
      for (const [queue, bytes] of byQueue) yield { app, queue, bytes };
    }
  }
}
