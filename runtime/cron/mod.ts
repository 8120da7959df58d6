/** Cron: a job's state (job.ts), its rows (cron_rows.ts), and the scheduler that runs the jobs (scheduler.ts). */
export { CronScheduler, type CronServices, type DueEvent, type ManualRun } from "./scheduler.ts";
export type { JobState, LastRun, RunOutcome } from "./job.ts";
export { decodeJob, jobOf, jobRange } from "./cron_rows.ts";
