/**
 * The times of cron expressions: five fields (minute, hour, day of the month, month, weekday), in UTC. The reckoning is
 * croner's: leap years, months' ends and the rule for day and weekday are where implementations of one's own go wrong.
 *
 * C1  A text is an expression only if it comes due at some time.
 * C2  Where both day and weekday are given, either is enough, as in every cron since Version 7.
 */
import { Cron } from "croner";

const EXPECTED = "a cron expression of five fields in UTC (minute hour day month weekday), such as 0 3 * * *";
/** Pattern of a field. Croner takes more (`?`, `+`, nicknames, seconds), which other implementations do not know. */
const FIELD = /^[0-9A-Za-z*,/#-]+$/;

const cronOf = (text: string): Cron =>
  new Cron(text.trim().replaceAll(/\s+/g, " "), { mode: "5-part", utcOffset: 0, paused: true });

/** Returns why a text is no cron expression; null where it is one. */
export function cronProblem(text: string): string | null {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== 5 || !fields.every((field) => FIELD.test(field))) return EXPECTED;
  try {
    return cronOf(text).nextRun(new Date(0)) === null ? `${EXPECTED}; this one never comes due` : null; // C1
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    return `${EXPECTED} (${why})`;
  }
}

/** Times at which a cron expression comes due. */
export class CronTimes {
  readonly #cron: Cron;

  /** Reads an expression. @throws RangeError for a text that {@link cronProblem} refuses. */
  constructor(text: string) {
    const problem = cronProblem(text);
    if (problem !== null) throw new RangeError(`${JSON.stringify(text)} is not ${problem}`);
    this.#cron = cronOf(text);
  }

  /** Returns the first time after `ms`, in milliseconds since 1970; Infinity where there is none. */
  after(ms: number): number {
    return this.#cron.nextRun(new Date(ms))?.getTime() ?? Infinity;
  }

  /** Returns the last time up to `ms`, in milliseconds since 1970; -Infinity where there was none. */
  upTo(ms: number): number {
    // Whole seconds are compared: a second later, the time itself is before it.
    const [found] = this.#cron.previousRuns(1, new Date(Math.floor(ms / 1000) * 1000 + 1000));
    return found?.getTime() ?? -Infinity;
  }
}
