/**
 * Cron: what is due (job.ts), where it is written down (cron_rows.ts), and who runs it (scheduler.ts).
 */
export { CronScheduler, type CronServices, type DueEvent, type ManualRun } from "./scheduler.ts";
export type { JobState, LastRun, RunOutcome } from "./job.ts";
export { decodeJob, jobOf, jobRange } from "./cron_rows.ts";
