/**
 * Limits of an app's prints at a site: characters a second, over all of its versions, isolates and sessions, and
 * characters of a line. Isolates have a limit of their own, in the app's realm, where an app can bend it; this one is
 * out of its reach.
 *
 * LB1  Lines beyond the limit are dropped, and a second later a line of the app's log tells how many.
 * LB2  A line is cut after its secrets are taken out: half of a secret would not be found any more.
 */

/** A line of an app. */
export interface AppLine {
  readonly app: string;
  readonly version: string;
  readonly level: string;
  readonly text: string;
  readonly traceId: string;
}

/** Characters of an app each second. Its site writes each line at once, before it does anything else. */
const CHARACTERS_A_SECOND = 256 * 1024;
/** Characters that a line costs beside its text: two thousand empty ones a second are enough. */
const LINE_CHARACTERS = 128;
/** Characters of the longest line: a log is no way to move data. */
const TEXT_MAX = 16 * 1024;
const SECOND_MS = 1_000;

interface Budget {
  sinceMs: number;
  left: number;
  dropped: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** The budgets of a site's apps. */
export class AppLogBudgets<Line extends AppLine> {
  readonly #pass: (line: Line | AppLine) => void;
  readonly #nowMs: () => number;
  readonly #apps = new Map<string, Budget>();

  constructor(pass: (line: Line | AppLine) => void, nowMs: () => number = () => performance.now()) {
    this.#pass = pass;
    this.#nowMs = nowMs;
  }

  /** Passes a line on, cut where it is too long, or drops it (LB1, LB2). */
  line(line: Line): void {
    const budget = this.#budget(line.app);
    const text = line.text.length > TEXT_MAX ? line.text.slice(0, TEXT_MAX).toWellFormed() + "…" : line.text;
    const cost = text.length + LINE_CHARACTERS;
    if (cost > budget.left) return this.#drop(budget, line);
    budget.left -= cost;
    this.#pass(text === line.text ? line : { ...line, text });
  }

  /** Stops telling of dropped lines. */
  close(): void {
    for (const { timer } of this.#apps.values()) clearTimeout(timer);
    this.#apps.clear();
  }

  #budget(app: string): Budget {
    const nowMs = this.#nowMs();
    let budget = this.#apps.get(app);
    if (budget === undefined) {
      for (const [name, { sinceMs, timer }] of this.#apps) {
        if (timer === undefined && nowMs - sinceMs >= SECOND_MS) this.#apps.delete(name);
      }
      budget = { sinceMs: nowMs, left: CHARACTERS_A_SECOND, dropped: 0, timer: undefined };
      this.#apps.set(app, budget);
    } else if (nowMs - budget.sinceMs >= SECOND_MS) {
      [budget.sinceMs, budget.left] = [nowMs, CHARACTERS_A_SECOND];
    }
    return budget;
  }

  #drop(budget: Budget, { app, version, traceId }: Line): void {
    budget.dropped++;
    budget.timer ??= setTimeout(() => {
      const text = `${budget.dropped} lines were dropped: an app may log ${
        CHARACTERS_A_SECOND >> 10
      } KiB a second at a site`;
      budget.dropped = 0;
      budget.timer = undefined;
      this.#pass({ app, version, level: "warn", text, traceId });
    }, SECOND_MS);
  }
}
