/**
 * One cron job: what is due, and what comes of a run. Pure: times come in, states go out.
 *
 * States: waiting (for `dueMs`) → begun (attempt n) → waiting for the next, or for another attempt of the same.
 *
 * J1  What is due is begun again until it has succeeded, was tried JOB_ATTEMPTS_MAX times, or was overtaken by the next:
 *     at least once, whatever happens in between.
 * J2  However many were missed, one is made up: the last of them.
 * J3  A state that says it was begun, read from a row, is of a run that was cut off: it counts as a failed attempt,
 *     so that a job that takes its site down does not do so for ever.
 * J4  A clock that was ahead and has been set right leaves no job waiting for the time that it showed.
 */
import { CronTimes } from "../../functions/cron_times.ts";

/** How a run ended. */
export type RunOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly retry: boolean };

/** The last run that ended for good. */
export interface LastRun {
  readonly scheduledMs: number;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly ok: boolean;
  /** How often it was tried. */
  readonly attempts: number;
  /** By a command, and not because it was due. */
  readonly manual: boolean;
  readonly error?: string | undefined;
}

/** A job as its row has it. */
export interface JobState {
  readonly cron: string;
  /** What is to run next, or being tried. */
  readonly dueMs: number;
  /** Attempts begun of what is due. */
  readonly attempts: number;
  /** When the present attempt, or the last one, began. */
  readonly startedMs: number;
  readonly running: boolean;
  /** Not before this, after an attempt that failed. */
  readonly retryMs: number;
  readonly last: LastRun | null;
}

/** Pauses after failed attempts: long enough for a restarted neighbour, then for its operator. */
export const RETRY_MS = [1_000, 10_000, 60_000] as const;
/** The first, and one after each pause. */
export const JOB_ATTEMPTS_MAX = RETRY_MS.length + 1;
/** A message longer than this is cut: a state is a row at every site. */
const ERROR_CHARS_MAX = 500;

const next = (cron: string, afterMs: number): number => new CronTimes(cron).after(afterMs);

/** A job that is new, or whose expression is: what was due before it was declared is not made up. */
export const newJob = (cron: string, nowMs: number, last: LastRun | null = null): JobState => ({
  cron,
  dueMs: next(cron, nowMs),
  attempts: 0,
  startedMs: 0,
  running: false,
  retryMs: 0,
  last,
});

/** When there is something to begin. */
export function dueAt(job: JobState): number {
  if (job.running) return Infinity;
  if (job.attempts === 0) return Math.max(job.dueMs, job.retryMs);
  return Math.min(job.retryMs, next(job.cron, job.dueMs));
}

/** Begins what is due: another attempt, or the last that was missed (J2). */
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

/** An attempt has ended. */
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

/** A run by command has ended: it changes nothing of what is due. */
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

/** J3 */
export const recovered = (job: JobState, nowMs: number): JobState =>
  job.running
    ? end(
      job,
      { ok: false, code: "isolate_killed", message: "the root stopped during the run", retry: true },
      nowMs,
    )
    : job;

/** The job after the clock was set back (J4): due anew, where that is sooner than what it waits for by far. */
export function setBack(job: JobState, nowMs: number): JobState {
  if (job.running || dueAt(job) <= next(job.cron, next(job.cron, nowMs))) return job;
  return newJob(job.cron, nowMs, job.last);
}
