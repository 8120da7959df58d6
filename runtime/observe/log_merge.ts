/**
 * Lines of several sites on their way into one stream, by time.
 *
 * A line waits a moment for older ones of other sites; lines that come later than that are given late rather than
 * dropped. Times are each site's own, so the order is as good as their clocks.
 *
 * M1  Lines of one site keep their order.
 * M2  Memory is bounded: adding a line waits until there is room, which reaches the line's site as a tail that is not
 *     read (log_tail.ts, T1).
 */
import type { LogLine } from "./log_line.ts";

/** Milliseconds that a line waits: longer than lines are on their way between sites on most links. */
const HOLD_MS = 250;
/** Lines of one site that may wait. */
const QUEUE_MAX = 256;
/** Lines given out at once. */
const BATCH_MAX = 256;

interface Waiting {
  readonly line: LogLine;
  readonly dueMs: number;
}

/** Merges lines of several sites. */
export class LogMerge {
  readonly #queues = new Map<string, Waiting[]>();
  readonly #nowMs: () => number;
  #wakeReader = () => {};
  #room = Promise.withResolvers<void>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Adds a line; resolves when the next one may come (M2), or the signal aborts. */
  async add(line: LogLine, signal: AbortSignal): Promise<void> {
    const queue = this.#queues.get(line.site) ?? [];
    this.#queues.set(line.site, queue);
    queue.push({ line, dueMs: this.#nowMs() + HOLD_MS });
    this.#wakeReader();
    while (queue.length >= QUEUE_MAX && !signal.aborted) await this.#room.promise;
  }

  /** Releases those that wait for room: nobody reads any more. */
  close(): void {
    this.#room.resolve();
    this.#wakeReader();
  }

  /** Returns the lines that are due, waiting for the first one up to `limitMs`; empty where none came. */
  async next(limitMs: number, signal: AbortSignal): Promise<LogLine[]> {
    const untilMs = this.#nowMs() + limitMs;
    for (;;) {
      const lines = this.#due();
      if (lines.length > 0) return lines;
      const nowMs = this.#nowMs();
      if (signal.aborted || nowMs >= untilMs) return [];
      await this.#woken(Math.min(untilMs, this.#firstDueMs()) - nowMs);
    }
  }

  #due(): LogLine[] {
    const lines: LogLine[] = [];
    const nowMs = this.#nowMs();
    while (lines.length < BATCH_MAX) {
      let oldest: Waiting[] | null = null;
      for (const queue of this.#queues.values()) {
        const head = queue[0], best = oldest?.[0];
        if (head !== undefined && (best === undefined || head.line.atMs < best.line.atMs)) oldest = queue;
      }
      const head = oldest?.[0];
      if (oldest === null || head === undefined || head.dueMs > nowMs) break;
      oldest.shift();
      lines.push(head.line);
    }
    if (lines.length > 0) {
      this.#room.resolve();
      this.#room = Promise.withResolvers();
    }
    return lines;
  }

  /** Returns the time at which the earliest line may leave. */
  #firstDueMs(): number {
    let first: Waiting | undefined;
    for (const [head] of this.#queues.values()) {
      if (head !== undefined && (first === undefined || head.line.atMs < first.line.atMs)) first = head;
    }
    return first?.dueMs ?? Infinity;
  }

  #woken(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(ms, 1));
      this.#wakeReader = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
