/**
 * State of a cron job: its due time, and the outcome of its runs. Pure: times come in, states go out.
 *
 * States: waiting (for `dueMs`) → begun (attempt n) → waiting for the next, or for another attempt of the same.
 *
 * J1  A due run is begun again until it has succeeded, was tried JOB_ATTEMPTS_MAX times, or was overtaken by the next:
 *     at least once, whatever happens in between.
 * J2  However many runs were missed, one is made up: the last of them.
 * J3  A state that is read from a row as begun is of a run that was cut off: it counts as a failed attempt, so that a
 *     job that takes its site down does not do so for ever.
 * J4  A clock that was ahead and has been set right leaves no job waiting for the time that it showed.
 */
import { CronTimes } from "../../functions/cron_times.ts";

/** Outcome of a run. */
export type RunOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly retry: boolean };

/** The last run that ended for good. */
export interface LastRun {
  readonly scheduledMs: number;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly ok: boolean;
  /** Number of attempts. */
  readonly attempts: number;
  /** True where a command began the run, and not its schedule. */
  readonly manual: boolean;
  readonly error?: string | undefined;
}

/** State of a job, as its row has it. */
export interface JobState {
  readonly cron: string;
  /** Time of the run that is next, or being tried. */
  readonly dueMs: number;
  /** Number of attempts begun of the due run. */
  readonly attempts: number;
  /** Time at which the present attempt, or the last one, began. */
  readonly startedMs: number;
  readonly running: boolean;
  /** Time before which no attempt is begun, after one that failed. */
  readonly retryMs: number;
  readonly last: LastRun | null;
}

/** Milliseconds of the pauses after failed attempts: long enough for a restarted neighbour, then for its operator. */
export const RETRY_MS = [1_000, 10_000, 60_000] as const;
/** Attempts of a run: the first, and one after each pause. */
export const JOB_ATTEMPTS_MAX = RETRY_MS.length + 1;
/** Characters of an error's message: a longer one is cut, as a state is a row at every site. */
const ERROR_CHARS_MAX = 500;

const next = (cron: string, afterMs: number): number => new CronTimes(cron).after(afterMs);

/**
 * Returns the state of a job that is new, or has a new expression: runs that were due before it was declared are not
 * made up.
 */
export const newJob = (cron: string, nowMs: number, last: LastRun | null = null): JobState => ({
  cron,
  dueMs: next(cron, nowMs),
  attempts: 0,
  startedMs: 0,
  running: false,
  retryMs: 0,
  last,
});

/** Returns the time at which an attempt is to be begun. */
export function dueAt(job: JobState): number {
  if (job.running) return Infinity;
  if (job.attempts === 0) return Math.max(job.dueMs, job.retryMs);
  return Math.min(job.retryMs, next(job.cron, job.dueMs));
}

/** Begins the due run: another attempt, or the last one that was missed (J2). */
export function begin(job: JobState, nowMs: number): JobState {
  const latestMs = new CronTimes(job.cron).upTo(nowMs);
  const isNext = latestMs > job.dueMs;
  return {
    ...job,
    dueMs: isNext ? latestMs : job.dueMs,
    attempts: isNext ? 1 : job.attempts + 1,
    startedMs: nowMs,
    running: true,
    retryMs: 0,
  };
}

/** Returns the state after an attempt. */
export function end(job: JobState, outcome: RunOutcome, nowMs: number): JobState {
  const isOver = outcome.ok || !outcome.retry || job.attempts >= JOB_ATTEMPTS_MAX;
  if (!isOver) {
    return { ...job, running: false, retryMs: nowMs + (RETRY_MS[job.attempts - 1] ?? 0) };
  }
  const run = { scheduledMs: job.dueMs, startedMs: job.startedMs, attempts: job.attempts, manual: false };
  return {
    ...job,
    dueMs: next(job.cron, job.dueMs),
    attempts: 0,
    running: false,
    retryMs: 0,
    last: ended(run, outcome, nowMs),
  };
}

/** Returns the state after a run by command: it changes nothing of what is due. */
export function endManual(job: JobState, startedMs: number, outcome: RunOutcome, nowMs: number): JobState {
  const run = { scheduledMs: startedMs, startedMs, attempts: 1, manual: true };
  return { ...job, last: ended(run, outcome, nowMs) };
}

function ended(
  run: Omit<LastRun, "ok" | "endedMs" | "error">,
  outcome: RunOutcome,
  endedMs: number,
): LastRun {
  if (outcome.ok) return { ...run, endedMs, ok: true };
  return {
    ...run,
    endedMs,
    ok: false,
    error: `${outcome.code}: ${outcome.message}`.slice(0, ERROR_CHARS_MAX),
  };
}

/** Returns the state of a job whose run was cut off (J3). */
export const recovered = (job: JobState, nowMs: number): JobState =>
  job.running
    ? end(
      job,
      { ok: false, code: "isolate_killed", message: "the root stopped during the run", retry: true },
      nowMs,
    )
    : job;

/**
 * Returns the job after the clock was set back (J4): due anew, where that is sooner than its present due time by far.
 */
export function setBack(job: JobState, nowMs: number): JobState {
  if (job.running || dueAt(job) <= next(job.cron, next(job.cron, nowMs))) return job;
  return newJob(job.cron, nowMs, job.last);
}
