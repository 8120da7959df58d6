/** The cron jobs of a site: run at the root, and nowhere else. */
import { CronScheduler, type CronServices } from "../cron/mod.ts";
import type { AppRunner } from "../gateway/app_runner.ts";
import { runScheduled, type ScheduledServices } from "../gateway/scheduled_run.ts";
import type { SiteConfig } from "./config.ts";

/** Services of the site that running jobs uses. */
export interface CronParts extends Omit<CronServices, "run"> {
  readonly config: SiteConfig;
  readonly runner: AppRunner;
  readonly running: Omit<ScheduledServices, "scheduledLimits">;
}

/** Opens the scheduler at the root; null below it. */
export async function openCron(parts: CronParts): Promise<CronScheduler | null> {
  const { config: { parent, limits }, runner, running, ...services } = parts;
  if (parent !== null) return null;
  const scheduled = { ...running, scheduledLimits: { wallMs: limits.cronMs, cpuMs: limits.cronCpuMs } };
  return await CronScheduler.open({
    ...services,
    run: (version, event) => runScheduled(scheduled, runner.prepared(version), version, event),
  });
}
