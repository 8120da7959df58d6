/**
 * Runs the cron jobs of a cluster, at its root.
 *
 * Life: `open` (rows read; runs that were cut off are tried again) → jobs follow the apps that serve → due ones run →
 * `close`: nothing more is begun; running jobs are cut off with their isolates, and tried again by the next root
 * process.
 *
 * C1  A job has at most one run at a time, by schedule or by command.
 * C2  A run is begun only when its row, on disk, says so; and its outcome is in the row before the next one begins.
 * C3  A job whose row can't be written waits, and is tried again; it does not run without its row.
 */
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Clock } from "../../store/model/ports.ts";
import type { AppTable, LiveVersion, SystemStore } from "../deploy/app_table.ts";
import {
  begin,
  dueAt,
  end,
  endManual,
  type JobState,
  newJob,
  recovered,
  type RunOutcome,
  setBack,
} from "./job.ts";
import { decodeJob, encodeJob, jobKey, jobOf, jobRange } from "./cron_rows.ts";

/** Event that a handler gets for its run. */
export interface DueEvent {
  readonly name: string;
  readonly cron: string;
  readonly scheduledTime: number;
}

/** Services of the site that the scheduler uses. */
export interface CronServices {
  readonly system: SystemStore;
  readonly apps: Pick<AppTable, "list" | "onChange">;
  readonly clock: Pick<Clock, "nowMs" | "after">;
  /** Runs the `scheduled` handler of a version here. */
  run(version: LiveVersion, event: DueEvent): Promise<RunOutcome>;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** Outcome of a run by command. */
export type ManualRun =
  | {
    readonly kind: "ended";
    readonly startedMs: number;
    readonly endedMs: number;
    readonly outcome: RunOutcome;
  }
  | { readonly kind: "unknown" | "running" | "closed" };

interface Job {
  readonly app: string;
  readonly name: string;
  state: JobState;
  /** True while a run by command is under way; the state knows of the others. */
  busy: boolean;
  /** True where its declaration has changed while it ran: taken over when the run has ended. */
  stale: boolean;
}

/** Jobs that run at the same time: all that are due at midnight need not start at once. */
const RUNS_MAX = 16;
/** Milliseconds between two looks at the clock: one that is set, or a machine that slept, is noticed within this. */
const LOOK_MS_MAX = 30_000;
/** Milliseconds after which a row that can't be written is tried again (C3). */
const ROW_RETRY_MS = 5_000;

/** The cron jobs of a cluster. One per root process. */
export class CronScheduler {
  readonly #services: CronServices;
  readonly #jobs = new Map<string, Job>();
  readonly #versions = new Map<string, LiveVersion>();
  #runs = 0;
  /** Time of the clock at the last look. */
  #lookedMs = -Infinity;
  #cancel = () => {};
  #unlisten = () => {};
  #following: Promise<void> = Promise.resolve();
  #closed = false;

  private constructor(services: CronServices) {
    this.#services = services;
  }

  /** Reads the rows, and begins to follow the apps. */
  static async open(services: CronServices): Promise<CronScheduler> {
    const scheduler = new CronScheduler(services);
    await scheduler.#read();
    scheduler.#unlisten = services.apps.onChange(() => void scheduler.follow());
    await scheduler.follow();
    return scheduler;
  }

  /** Ends the scheduler: nothing more is begun. */
  close(): void {
    this.#closed = true;
    this.#cancel();
    this.#unlisten();
  }

  /** Runs a job now, beside its schedule; resolves when it has ended. */
  async runNow(app: string, name: string): Promise<ManualRun> {
    const job = this.#jobs.get(idOf(app, name));
    const version = this.#versions.get(app);
    if (this.#closed) return { kind: "closed" };
    if (job === undefined || version === undefined) return { kind: "unknown" };
    if (job.busy || job.state.running) return { kind: "running" };
    job.busy = true;
    const startedMs = this.#services.clock.nowMs();
    try {
      const outcome = await this.#run(job, version, startedMs);
      const endedMs = this.#services.clock.nowMs();
      job.state = endManual(job.state, startedMs, outcome, endedMs);
      await this.#write(job);
      return { kind: "ended", startedMs, endedMs, outcome };
    } finally {
      job.busy = false;
      this.#ended(job);
    }
  }

  /** Takes over the jobs that the serving apps declare; resolves when the rows say so. */
  follow(): Promise<void> {
    const step = this.#following.then(() => this.#follow());
    this.#following = step.catch((error: unknown) => {
      if (this.#closed) return;
      this.#services.note("cron_unwritten", { error: String(error) });
      this.#services.clock.after(ROW_RETRY_MS, () => void this.follow());
    });
    return this.#following;
  }

  async #follow(): Promise<void> {
    if (this.#closed) return;
    const nowMs = this.#services.clock.nowMs();
    const declared = new Map<string, { app: string; name: string; cron: string }>();
    this.#versions.clear();
    for (const { name: app, current } of this.#services.apps.list()) {
      this.#versions.set(app, current);
      for (const [name, cron] of Object.entries(current.manifest.cron)) {
        declared.set(idOf(app, name), { app, name, cron });
      }
    }
    for (const [id, job] of [...this.#jobs]) {
      if (declared.get(id)?.cron === job.state.cron) continue;
      job.stale = job.busy || job.state.running;
      if (job.stale || declared.has(id)) continue;
      await this.#services.system.write([{ kind: "delete", key: jobKey(job.app, job.name) }]);
      this.#jobs.delete(id);
    }
    for (const [id, { app, name, cron }] of declared) {
      const known = this.#jobs.get(id);
      if (known?.state.cron === cron || known?.stale) continue;
      const job = { app, name, state: newJob(cron, nowMs, known?.state.last), busy: false, stale: false };
      await this.#write(job);
      this.#jobs.set(id, job);
    }
    this.#arm();
  }

  async #read(): Promise<void> {
    const { system, clock, note } = this.#services;
    const cutOff: Job[] = [];
    for (const row of await system.list(jobRange())) {
      if (row.value === null) continue;
      const { app, name } = jobOf(row.key);
      try {
        const before = decodeJob(row.value);
        const job = { app, name, state: recovered(before, clock.nowMs()), busy: false, stale: false };
        this.#jobs.set(idOf(app, name), job);
        await this.#setRight(job);
        if (before.running) cutOff.push(job);
      } catch (error) {
        note("cron_row_invalid", { app, job: name, error: String(error) });
      }
    }
    for (const job of cutOff) {
      note("cron_cut_off", { app: job.app, job: job.name, attempt: job.state.attempts });
      await this.#write(job);
    }
  }

  /** Waits for the job that is due next. */
  #arm(): void {
    this.#cancel();
    if (this.#closed) return;
    const nowMs = this.#services.clock.nowMs();
    let dueMs = nowMs + LOOK_MS_MAX;
    for (const job of this.#jobs.values()) {
      if (this.#mayRun(job)) dueMs = Math.min(dueMs, dueAt(job.state));
    }
    const waitMs = this.#runs >= RUNS_MAX ? LOOK_MS_MAX : Math.max(0, dueMs - nowMs);
    this.#cancel = this.#services.clock.after(waitMs, () => this.#look());
  }

  #mayRun(job: Job): boolean {
    return !job.busy && !job.stale && this.#versions.has(job.app);
  }

  /** Handles the end of a run: another may have been waiting for it. */
  #ended(job: Job): void {
    if (!job.stale) return this.#arm();
    job.stale = false;
    void this.follow();
  }

  #look(): void {
    if (this.#closed) return;
    const nowMs = this.#services.clock.nowMs();
    if (nowMs < this.#lookedMs) {
      for (const job of this.#jobs.values()) {
        if (!this.#mayRun(job)) continue;
        this.#setRight(job).catch((error) => this.#services.note("cron_unwritten", { error: String(error) }));
      }
    }
    this.#lookedMs = nowMs;
    const due = [...this.#jobs.values()].filter((job) => this.#mayRun(job) && dueAt(job.state) <= nowMs)
      .sort((a, b) => dueAt(a.state) - dueAt(b.state));
    for (const job of due.slice(0, RUNS_MAX - this.#runs)) void this.#runDue(job);
    this.#arm();
  }

  /** Corrects a job's state where the clock may have been set back since it was made. */
  async #setRight(job: Job): Promise<void> {
    const state = setBack(job.state, this.#services.clock.nowMs());
    if (state === job.state) return;
    job.state = state;
    this.#services.note("cron_rescheduled", { app: job.app, job: job.name, why: "the clock was set back" });
    await this.#write(job);
  }

  async #runDue(job: Job): Promise<void> {
    const { clock, note } = this.#services;
    const version = this.#versions.get(job.app);
    if (version === undefined) return;
    const before = job.state;
    job.state = begin(before, clock.nowMs());
    this.#runs++;
    try {
      await this.#write(job); // C2
      const outcome = await this.#run(job, version, job.state.dueMs);
      // The run was cut off by the end of this process: its row says that it was begun, and the next process goes on
      // (J3).
      if (this.#closed) return;
      job.state = setBack(end(job.state, outcome, clock.nowMs()), clock.nowMs());
      if (!outcome.ok) this.#failed(job, outcome);
      await this.#write(job);
    } catch (error) {
      if (this.#closed) return;
      note("cron_unwritten", { app: job.app, job: job.name, error: String(error) });
      if (job.state.running) job.state = { ...before, running: false, retryMs: clock.nowMs() + ROW_RETRY_MS };
    } finally {
      this.#runs--;
      this.#ended(job);
    }
  }

  #failed(job: Job, outcome: RunOutcome & { ok: false }): void {
    const { attempts, retryMs } = job.state;
    this.#services.note("cron_failed", {
      app: job.app,
      job: job.name,
      code: outcome.code,
      error: outcome.message,
      ...(attempts === 0
        ? { gaveUp: true }
        : { attempt: attempts, againInMs: retryMs - this.#services.clock.nowMs() }),
    });
  }

  async #run(job: Job, version: LiveVersion, scheduledTime: number): Promise<RunOutcome> {
    try {
      return await this.#services.run(version, { name: job.name, cron: job.state.cron, scheduledTime });
    } catch (error) {
      const known = error instanceof StoreUnavailable ? error.code : "internal";
      return { ok: false, code: known, message: String(error), retry: true };
    }
  }

  /** Writes a job's row; it is on disk when this resolves. */
  async #write(job: Job): Promise<void> {
    const { system } = this.#services;
    await system.write([{ kind: "set", key: jobKey(job.app, job.name), value: encodeJob(job.state) }]);
    await system.durable();
  }
}

const idOf = (app: string, name: string): string => `${app}\0${name}`;
