/**
 * What of one app waits in its site's memory, over all queues: bodies and messages that nobody takes yet, calls that wait
 * for those before them, what its isolates have not read. Each queue has a bound of its own (docs/queues.md has the
 * table); this is the bound of them all together, for an app can open thousands of them.
 *
 * Life of a hold: `hold` → `add` as what waits grows and shrinks → `end`.
 *
 * Q1  `bytes` is the sum of what the holds of the app hold; a hold that has ended holds nothing.
 * Q2  Over `bytesMax` the hold that has most is shed, and the next, until the rest fits: whoever keeps most waiting pays,
 *     and no other app does.
 * Q3  A hold is shed once. Who is shed lets go of what waits, and ends the hold.
 */
import { strict as assert } from "node:assert";
import { AppCores } from "./app_cores.ts";
import { AppTurns, SiteTurns } from "./app_turns.ts";

/** Of which queue. Each is a row of the table in docs/queues.md. */
export type QueueName =
  | "isolate"
  | "response body"
  | "outgoing body"
  | "socket to client"
  | "socket from client"
  | "socket of a session";

/** One queue's share. */
export class QueueHold {
  readonly queue: QueueName;
  /** Of the app. */
  readonly queues: AppQueues;
  readonly #shed: (why: string) => void;
  #bytes = 0;
  #over = false;
  /** Neighbours among those of the app (a list as in departures.ts, for the same reason). */
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

  /** More waits, or less. What is added may be shed at once (Q2). */
  add(bytes: number): void {
    if (this.#over) return;
    this.#bytes += bytes;
    assert(this.#bytes >= 0, "Q1: a queue gives back more than it held");
    this.queues.changed(bytes);
  }

  /** Nothing of it waits any more, and nothing will. */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    const bytes = this.#bytes;
    this.#bytes = 0;
    this.queues.ended(this, bytes);
  }

  /** Q3 */
  shed(why: string): void {
    this.#shed(why);
    this.end();
  }
}

/** The queues of one app at one site. */
export class AppQueues {
  readonly bytesMax: number;
  /** When the frames of its isolates are read. */
  readonly turns: AppTurns;
  /** Whether its processes give way to others. */
  readonly cores: AppCores;
  /** Stands before the first hold and after the last. */
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

  /** What waits now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many queues there are. */
  get size(): number {
    return this.#size;
  }

  /** A queue of the app. `shed` lets go of all that it holds, and says why to who needs to know. */
  hold(queue: QueueName, shed: (why: string) => void): QueueHold {
    const hold = new QueueHold(this, queue, shed), last = this.#ends.before;
    hold.before = last;
    hold.after = this.#ends;
    last.after = this.#ends.before = hold;
    this.#size++;
    return hold;
  }

  /** Of a hold: it has grown or shrunk (Q2). */
  changed(bytes: number): void {
    this.#bytes += bytes;
    while (bytes > 0 && this.#bytes > this.bytesMax) {
      const most = this.#most();
      if (most === undefined) return;
      this.#note({ queue: most.queue, bytes: most.bytes });
      most.shed(`${this.#bytes >> 20} MiB of the app wait at this site, of ${this.bytesMax >> 20}`);
    }
  }

  /** Of a hold: it has ended. */
  ended(hold: QueueHold, bytes: number): void {
    this.#bytes -= bytes;
    this.#size--;
    hold.before.after = hold.after;
    hold.after.before = hold.before;
    hold.before = hold.after = hold;
  }

  /** What waits now, by queue; those in which nothing waits are left out. */
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
 * All of an app's queues at a site: what two isolates may leave unread (frames.ts), or the largest states of a few
 * sessions that come at once (state_frames.ts), and something beside it; so that a busy moment is not what sheds one.
 */
export const QUEUES_BYTES_MAX = 384 * 1024 * 1024;

/** Who has one queue shed has hundreds. */
const NOTE_MS = 60_000;

/** What is said of queues that were shed: the last of them, and how many there were since it was said before. */
export interface ShedNote {
  readonly app: string;
  readonly queue: QueueName;
  readonly bytes: number;
  readonly shed: number;
}

/** Who is told of queues that were shed. */
export interface ShedListener {
  /** Each of them. */
  readonly shed?: (shed: { readonly app: string; readonly queue: QueueName }) => void;
  /** What is worth a line of the log. */
  readonly note?: (note: ShedNote) => void;
}

/** What of an app waits in one kind of its queues. */
export interface QueuedBytes {
  readonly app: string;
  readonly queue: QueueName;
  readonly bytes: number;
}

/**
 * The queues of all apps of a site: those of an app outlive its isolates, and are dropped when nothing holds any and it has
 * rested from what it computed.
 */
export class SiteQueues {
  readonly bytesMax: number;
  readonly #told: ShedListener;
  readonly #nowMs: () => number;
  readonly #apps = new Map<string, AppQueues>();
  readonly #turns = new SiteTurns();

  /** @param nowMs of a clock that never goes back. */
  constructor(
    bytesMax: number = QUEUES_BYTES_MAX,
    told: ShedListener = {},
    nowMs: () => number = () => performance.now(),
  ) {
    this.bytesMax = bytesMax;
    this.#told = told;
    this.#nowMs = nowMs;
  }

  /** Of one app. */
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

  /** One note of an app within NOTE_MS, however many of its queues are shed. */
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

  /** What waits, by app and queue. */
  *waiting(): Generator<QueuedBytes> {
    for (const [app, { byQueue }] of this.#apps) {
      for (const [queue, bytes] of byQueue) yield { app, queue, bytes };
    }
  }
}
