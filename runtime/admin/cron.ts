/**
 * Admin paths of cron jobs: their states, which every site reads from its own rows, and a run at once, made by the
 * root.
 */
import {
  type CronScheduler,
  decodeJob,
  jobOf,
  jobRange,
  type JobState,
  type ManualRun,
} from "../cron/mod.ts";
import { problemResponse } from "../gateway/problem.ts";
import { withProgress } from "./progress.ts";
import { type AdminHono, type AdminServices, unknownApp } from "./services.ts";

/** A job as operators see it. */
interface JobSummary {
  readonly name: string;
  readonly cron: string;
  /** Time of the next run; null: it never comes due again, or the root has not looked at the job yet. */
  readonly nextMs: number | null;
  readonly running: boolean;
  /** Failed attempts of the run that is being tried. */
  readonly attempts: number;
  readonly last: JobState["last"];
}

/** Adds `GET /apps/:app/cron` and `POST /apps/:app/cron/:name/run`. */
export function cronRoutes(app: AdminHono, services: AdminServices, scheduler: CronScheduler | null): void {
  app.get("/apps/:app/cron", async (c) => {
    const name = c.req.param("app");
    const live = services.apps.get(name);
    if (live === undefined) return unknownApp(name);
    const rows = await services.system.list(jobRange(name));
    const states = new Map(
      rows.flatMap((row) => row.value === null ? [] : [[jobOf(row.key).name, decodeJob(row.value)]]),
    );
    const { cron } = live.current.manifest;
    return c.json(Object.keys(cron).sort().map((job) => summaryOf(job, cron[job] ?? "", states.get(job))));
  });

  app.post("/apps/:app/cron/:name/run", async (c) => {
    if (scheduler === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const { app: name, name: job } = c.req.param();
    if (services.apps.get(name) === undefined) return unknownApp(name);
    return await withProgress(services, c, async () => ended(name, job, await scheduler.runNow(name, job)));
  });
}

/** Returns the answer for a run's outcome. */
function ended(name: string, job: string, run: ManualRun): Response {
  switch (run.kind) {
    case "unknown":
      return problemResponse("not_found", `${name} declares no cron job called ${JSON.stringify(job)}`);
    case "running":
      return problemResponse(
        "cron_running",
        `${job} of ${name} is running; two runs of a job never overlap`,
      );
    case "closed":
      return problemResponse("not_ready", "the root is stopping");
    case "ended": {
      const { outcome, startedMs, endedMs } = run;
      const error = outcome.ok ? {} : { error: { code: outcome.code, message: outcome.message } };
      return Response.json({ app: name, name: job, ok: outcome.ok, ms: endedMs - startedMs, ...error });
    }
  }
}

function summaryOf(name: string, cron: string, state: JobState | undefined): JobSummary {
  if (state === undefined || state.cron !== cron) {
    return {
      name,
      cron,
      nextMs: null,
      running: state?.running ?? false,
      attempts: 0,
      last: state?.last ?? null,
    };
  }
  const nextMs = Math.max(state.dueMs, state.retryMs);
  return {
    name,
    cron,
    nextMs: Number.isFinite(nextMs) ? nextMs : null,
    running: state.running,
    attempts: state.attempts,
    last: state.last,
  };
}
