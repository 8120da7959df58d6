/**
 * Runs a cron job of an app at this site: a call of its `scheduled` handler, with a session of its own. When it has ended
 * well says own_run.ts, OWR1.
 */
import { StoreUnavailable } from "../../store/api/api.ts";
import type { RunOutcome } from "../cron/job.ts";
import type { DueEvent } from "../cron/scheduler.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { ScheduledCall } from "../isolate/call.ts";
import type { Prepared } from "./app_runner.ts";
import { OwnRun, type OwnRunServices } from "./own_run.ts";
import type { RequestTelemetry } from "./request_telemetry.ts";

/** Services that a run uses beside those that requests use. */
export interface ScheduledServices extends OwnRunServices {
  /** Recorder of runs: every one is recorded where telemetry is on, as there are few. */
  readonly telemetry: Pick<RequestTelemetry, "timed">;
  readonly scheduledLimits: ScheduledCall["limits"];
}

/** Runs a job once. */
export async function runScheduled(
  services: ScheduledServices,
  prepared: Prepared,
  version: LiveVersion,
  event: DueEvent,
): Promise<RunOutcome> {
  let run: OwnRun;
  try {
    run = await OwnRun.begin(services, prepared, version, {
      spanOf: () => services.telemetry.timed(version, event),
    });
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return { ok: false, code: error.code, message: error.message, retry: true };
  }
  let retry = true;
  const scheduled = { ...event, limits: services.scheduledLimits, noRetry: () => void (retry = false) };
  const failure = await run.end({ scheduled }, "timer");
  return failure === null ? { ok: true } : { ok: false, code: failure.code, message: failure.message, retry };
}
