/** The schedule of cron jobs, in virtual time: over rows in memory, with restarts of the root. */
import assert from "node:assert/strict";
import type { Clock } from "../../../store/model/ports.ts";
import { CronScheduler, type DueEvent, jobOf, jobRange, type RunOutcome } from "../../../runtime/cron/mod.ts";
import { decodeJob } from "../../../runtime/cron/mod.ts";
import type { LiveApp } from "../../../runtime/deploy/mod.ts";
import { MemorySystem } from "../deploy/memory_system.ts";

const MINUTE_MS = 60_000;
const BEGUN_MS = Date.UTC(2026, 10, 21, 12, 0, 30);

/** A clock that stands still until it is moved. */
class VirtualClock implements Pick<Clock, "nowMs" | "after"> {
  #nowMs = BEGUN_MS;
  readonly #timers = new Set<{ atMs: number; callback: () => void }>();

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Moves the clock; what is due meanwhile is called in order. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const [first] = [...this.#timers].filter((timer) => timer.atMs <= untilMs).sort((a, b) =>
        a.atMs - b.atMs
      );
      if (first === undefined) break;
      this.#timers.delete(first);
      this.#nowMs = Math.max(this.#nowMs, first.atMs);
      first.callback();
      await settle();
    }
    this.#nowMs = untilMs;
  }

  /** The clock is set; timers go on as they were. */
  set(byMs: number): void {
    this.#nowMs += byMs;
    for (const timer of this.#timers) timer.atMs += byMs;
  }

  /** The machine was off: time has passed, and nobody was called. */
  skip(ms: number): void {
    this.#timers.clear();
    this.#nowMs += ms;
  }
}

/** Lets promises that are settled go on, and those that wait for them. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

interface Run extends DueEvent {
  readonly app: string;
  readonly version: string;
  readonly atMs: number;
  end(outcome?: RunOutcome): void;
}

const DONE: RunOutcome = { ok: true };
const FAILED: RunOutcome = { ok: false, code: "app_error", message: "not today", retry: true };

/** A root that starts and stops over the same rows. */
class Root {
  readonly clock = new VirtualClock();
  readonly system = new MemorySystem();
  readonly runs: Run[] = [];
  readonly notes: string[] = [];
  /** Runs end at once with this; null: when the test says so. */
  outcome: RunOutcome | null = DONE;
  #apps: LiveApp[] = [];
  #changed = new Set<() => void>();
  scheduler: CronScheduler | undefined;

  async start(): Promise<CronScheduler> {
    return this.scheduler = await CronScheduler.open({
      system: this.system,
      clock: this.clock,
      apps: {
        list: () => this.#apps,
        onChange: (listener) => {
          this.#changed.add(listener);
          return () => void this.#changed.delete(listener);
        },
      },
      note: (event) => void this.notes.push(event),
      run: (version, event) => {
        const ended = Promise.withResolvers<RunOutcome>();
        this.runs.push({
          ...event,
          app: version.app,
          version: version.version,
          atMs: this.clock.nowMs(),
          end: (outcome = DONE) => ended.resolve(outcome),
        });
        if (this.outcome !== null) ended.resolve(this.outcome);
        return ended.promise;
      },
    });
  }

  /** What the apps that serve declare; `next`: and the version that nearly all sessions get instead. */
  async deploy(
    apps: Record<string, Record<string, string>>,
    next: Record<string, Record<string, string>> = {},
  ): Promise<void> {
    this.#apps = Object.entries(apps).map(([name, cron]) => {
      const rollout = next[name] &&
        { next: { app: name, version: "next", manifest: { cron: next[name] } }, weight: 99 };
      const current = { app: name, version: "v", manifest: { cron } };
      return { name, current, ...rollout === undefined ? {} : { rollout } } as unknown as LiveApp;
    });
    for (const changed of [...this.#changed]) changed();
    await settle();
  }

  /** The process ends without a word. */
  crash(): void {
    this.scheduler?.close();
  }

  /** Minutes after 12:00 at which runs were due, and at which they began. */
  times(name?: string): [due: number, began: number][] {
    const minute = (ms: number) => (ms - Date.UTC(2026, 10, 21, 12)) / MINUTE_MS;
    return this.runs.filter((run) => name === undefined || run.name === name)
      .map((run) => [minute(run.scheduledTime), minute(run.atMs)]);
  }

  async row(name: string) {
    const rows = await this.system.list(jobRange());
    const row = rows.find((each) => jobOf(each.key).name === name);
    return row?.value ? decodeJob(row.value) : null;
  }

  async rows(): Promise<string[]> {
    return (await this.system.list(jobRange())).map(({ key }) => `${jobOf(key).app} ${jobOf(key).name}`);
  }
}

async function rootWith(apps: Record<string, Record<string, string>>): Promise<Root> {
  const root = new Root();
  await root.deploy(apps);
  await root.start();
  return root;
}

Deno.test("a job runs each time it is due, and is told when that was", async () => {
  const root = await rootWith({ shop: { often: "*/5 * * * *", daily: "30 12 * * *" } });
  await root.clock.pass(31 * MINUTE_MS);
  assert.deepEqual(root.times("often"), [[5, 5], [10, 10], [15, 15], [20, 20], [25, 25], [30, 30]]);
  assert.deepEqual(root.times("daily"), [[30, 30]]);
  assert.deepEqual(root.runs[0]?.cron, "*/5 * * * *");
  const row = await root.row("often");
  assert.equal(row?.dueMs, Date.UTC(2026, 10, 21, 12, 35));
  assert.deepEqual([row?.last?.ok, row?.last?.attempts, row?.last?.manual], [true, 1, false]);
  root.crash();
});

Deno.test("jobs are the current version's, and run with it, while a rollout runs", async () => {
  const root = await rootWith({ shop: { job: "*/5 * * * *" } });
  await root.deploy({ shop: { job: "*/5 * * * *" } }, { shop: { job: "*/2 * * * *", more: "* * * * *" } });
  await root.clock.pass(11 * MINUTE_MS);
  assert.deepEqual(root.times(), [[5, 5], [10, 10]]);
  assert.deepEqual(root.runs.map(({ version }) => version), ["v", "v"]);
  await root.deploy({ shop: { job: "*/2 * * * *", more: "* * * * *" } });
  await root.clock.pass(MINUTE_MS);
  assert.deepEqual(root.times("more"), [[12, 12]]);
  root.crash();
});

Deno.test("runs of one job never overlap; what fell due meanwhile is made up once (scheduler.ts C1)", async () => {
  const root = await rootWith({ shop: { a: "* * * * *", b: "* * * * *" } });
  root.outcome = null;
  await root.clock.pass(4 * MINUTE_MS);
  assert.deepEqual([root.times("a"), root.times("b")], [[[1, 1]], [[1, 1]]], "each job by itself");
  root.runs.find((run) => run.name === "a")?.end();
  await root.clock.pass(0);
  assert.deepEqual(root.times("a"), [[1, 1], [4, 4.5]]);
  root.runs.filter((run) => run.name === "a")[1]?.end();
  await root.clock.pass(MINUTE_MS);
  assert.deepEqual(root.times("a"), [[1, 1], [4, 4.5], [5, 5]]);
  assert.deepEqual(root.times("b"), [[1, 1]]);
  root.crash();
});

Deno.test("of the runs missed while the root was down one is made up, the last (job.ts J2)", async () => {
  const root = await rootWith({ shop: { often: "*/10 * * * *", nightly: "0 3 * * *", later: "0 23 * * *" } });
  root.crash();
  root.clock.skip(3 * 24 * 60 * MINUTE_MS);
  await root.start();
  await root.clock.pass(0);
  const days = 3 * 24 * 60;
  assert.deepEqual(root.times("often"), [[days, days + 0.5]]);
  assert.deepEqual(root.times("nightly"), [[days - 9 * 60, days + 0.5]]);
  assert.equal(root.times("later").length, 1);
  await root.clock.pass(10 * MINUTE_MS);
  assert.deepEqual(root.times("often").slice(1), [[days + 10, days + 10]]);
  assert.equal(root.times("nightly").length, 1);
  root.crash();
});

Deno.test("a job that is new, or has another expression, makes up nothing", async () => {
  const root = await rootWith({});
  root.clock.skip(60 * MINUTE_MS);
  await root.deploy({ shop: { job: "*/7 * * * *" } });
  await root.clock.pass(MINUTE_MS);
  assert.deepEqual(root.times(), []);
  await root.deploy({ shop: { job: "*/4 * * * *" } });
  await root.clock.pass(5 * MINUTE_MS);
  assert.deepEqual(root.times(), [[64, 64]]);
  assert.equal((await root.row("job"))?.cron, "*/4 * * * *");
  root.crash();
});

Deno.test("a failed run is tried again with growing pauses, a bounded number of times (job.ts J1)", async () => {
  const root = await rootWith({ shop: { job: "0 * * * *" } });
  root.outcome = FAILED;
  await root.clock.pass(90 * MINUTE_MS);
  const seconds = root.runs.map((run) => (run.atMs - Date.UTC(2026, 10, 21, 13)) / 1000);
  assert.deepEqual(seconds, [0, 1, 11, 71]);
  assert(root.runs.every((run) => run.scheduledTime === Date.UTC(2026, 10, 21, 13)));
  assert.equal(root.notes.filter((note) => note === "cron_failed").length, 4);
  const { last, dueMs } = await root.row("job") ?? assert.fail("no row");
  assert.deepEqual([last?.ok, last?.attempts, last?.error], [false, 4, "app_error: not today"]);
  assert.equal(dueMs, Date.UTC(2026, 10, 21, 14));
  root.outcome = DONE;
  await root.clock.pass(MINUTE_MS * 30);
  assert.deepEqual([(await root.row("job"))?.last?.ok, root.runs.length], [true, 5]);
  root.crash();
});

Deno.test("a run that says so is not tried again, and the next one overtakes the tries of the last", async () => {
  const root = await rootWith({ shop: { job: "* * * * *" } });
  root.outcome = { ...FAILED, retry: false } as RunOutcome;
  await root.clock.pass(MINUTE_MS);
  assert.equal(root.runs.length, 1);
  root.outcome = FAILED;
  await root.clock.pass(2 * MINUTE_MS);
  const due = root.runs.slice(1).map((run) =>
    [run.scheduledTime, run.atMs].map((ms) => (ms - BEGUN_MS) / 1000)
  );
  assert.deepEqual(due, [[90, 90], [90, 91], [90, 101], [150, 150], [150, 151], [150, 161]]);
  root.crash();
});

Deno.test("a run that was cut off by the end of the root is tried again, a bounded number of times (job.ts J3)", async () => {
  const root = await rootWith({ shop: { job: "0 13 * * *" } });
  root.outcome = null;
  await root.clock.pass(60 * MINUTE_MS);
  assert.deepEqual([root.runs.length, (await root.row("job"))?.running], [1, true]);
  for (let restart = 0; restart < 6; restart++) {
    root.crash();
    root.runs.at(-1)?.end(FAILED); // its isolates end with the process, and nobody is told
    await settle();
    root.clock.skip(MINUTE_MS);
    await root.start();
    await root.clock.pass(5 * MINUTE_MS);
  }
  assert.deepEqual(root.runs.map((run) => run.scheduledTime), Array(4).fill(Date.UTC(2026, 10, 21, 13)));
  const { last, running } = await root.row("job") ?? assert.fail("no row");
  assert.deepEqual([running, last?.ok, last?.attempts], [false, false, 4]);
  assert.equal(root.notes.filter((note) => note === "cron_cut_off").length, 4);
  assert(!root.notes.includes("cron_unwritten"));
  root.crash();
});

Deno.test("a restart continues where the root was", async () => {
  const root = await rootWith({ shop: { job: "*/5 * * * *" } });
  await root.clock.pass(6 * MINUTE_MS);
  root.crash();
  root.clock.skip(MINUTE_MS);
  await root.start();
  await root.clock.pass(5 * MINUTE_MS);
  assert.deepEqual(root.times(), [[5, 5], [10, 10]]);
  root.crash();
});

Deno.test("a job is due again soon when the clock was ahead and has been set right (J4)", async (t) => {
  const YEAR_MS = 365 * 24 * 60 * MINUTE_MS;
  /** A root that has run its job at 12:05, and once a year later by a clock that was wrong. */
  const ahead = async () => {
    const root = await rootWith({ shop: { job: "*/5 * * * *" } });
    await root.clock.pass(6 * MINUTE_MS);
    root.clock.set(YEAR_MS);
    await root.clock.pass(MINUTE_MS);
    assert.equal(root.runs.length, 2);
    return root;
  };
  const isRight = async (root: Root) => {
    await root.clock.pass(4 * MINUTE_MS);
    assert.deepEqual(root.times().slice(2), [[10, 10]]);
    assert.equal(root.notes.filter((note) => note === "cron_rescheduled").length, 1);
    root.crash();
  };
  await t.step("while the root runs", async () => {
    const root = await ahead();
    root.clock.set(-YEAR_MS);
    await isRight(root);
  });
  await t.step("while it is down", async () => {
    const root = await ahead();
    root.crash();
    root.clock.set(-YEAR_MS);
    await root.start();
    assert.equal((await root.row("job"))?.dueMs, Date.UTC(2026, 10, 21, 12, 10));
    await isRight(root);
  });
  await t.step("during a run", async () => {
    const root = await rootWith({ shop: { job: "*/5 * * * *" } });
    root.outcome = null;
    root.clock.set(YEAR_MS);
    await root.clock.pass(MINUTE_MS);
    root.clock.set(-YEAR_MS);
    root.runs[0]?.end();
    await root.clock.pass(5 * MINUTE_MS);
    assert.deepEqual(root.times().slice(1), [[5, 5]]);
    root.crash();
  });
  await t.step("and a small step back runs nothing twice", async () => {
    const root = await rootWith({ shop: { job: "*/5 * * * *" } });
    await root.clock.pass(5 * MINUTE_MS);
    root.clock.set(-MINUTE_MS);
    await root.clock.pass(6.5 * MINUTE_MS);
    assert.deepEqual(root.times().map(([due]) => due), [5, 10]);
    root.crash();
  });
});

Deno.test("a job that goes away has no row and does not run; one that runs ends first", async () => {
  const root = await rootWith({
    shop: { job: "*/5 * * * *", other: "0 3 * * *" },
    cafe: { job: "0 3 * * *" },
  });
  assert.deepEqual(await root.rows(), ["cafe job", "shop job", "shop other"]);
  root.outcome = null;
  await root.clock.pass(5 * MINUTE_MS);
  await root.deploy({ cafe: {} });
  assert.deepEqual(await root.rows(), ["shop job"]);
  // It is declared again while it still runs: not twice at once.
  await root.deploy({ shop: { job: "* * * * *" } });
  await root.clock.pass(5 * MINUTE_MS);
  assert.equal(root.runs.length, 1);
  root.runs[0]?.end();
  await settle();
  await root.clock.pass(MINUTE_MS);
  assert.deepEqual([root.runs.length, (await root.row("job"))?.cron], [2, "* * * * *"]);
  root.runs[1]?.end();
  await root.deploy({});
  await settle();
  assert.deepEqual(await root.rows(), []);
  root.crash();
});

Deno.test("a run by command stands beside the schedule, and overlaps nothing", async () => {
  const root = await rootWith({ shop: { job: "*/5 * * * *" } });
  const scheduler = root.scheduler ?? assert.fail("it runs");
  root.outcome = null;
  assert.equal((await scheduler.runNow("shop", "nothing")).kind, "unknown");
  const manual = scheduler.runNow("shop", "job");
  await settle();
  assert.equal((await scheduler.runNow("shop", "job")).kind, "running");
  await root.clock.pass(5 * MINUTE_MS);
  assert.equal(root.runs.length, 1, "what falls due waits");
  root.runs[0]?.end(FAILED);
  const ended = await manual;
  assert(ended.kind === "ended" && !ended.outcome.ok);
  await root.clock.pass(0);
  assert.deepEqual(root.times(), [[0.5, 0.5], [5, 5.5]]);
  assert.equal((await scheduler.runNow("shop", "job")).kind, "running");
  const row = await root.row("job");
  assert.deepEqual([row?.last?.manual, row?.last?.error, row?.attempts], [true, "app_error: not today", 1]);
  root.crash();
  assert.equal((await scheduler.runNow("shop", "job")).kind, "closed");
});

Deno.test("nothing runs without its row on disk, and rows that fail are tried again (C2, C3)", async () => {
  const root = await rootWith({ shop: { job: "*/5 * * * *" } });
  root.system.failAfterWrites = 0;
  await root.clock.pass(5 * MINUTE_MS);
  assert.equal(root.runs.length, 0);
  assert(root.notes.includes("cron_unwritten"));
  const tries = root.notes.length;
  await root.clock.pass(MINUTE_MS / 2);
  assert(root.notes.length > tries && root.notes.length < tries + 10, "in its own time");
  root.system.failAfterWrites = Infinity;
  await root.clock.pass(MINUTE_MS / 6);
  assert.deepEqual(root.times().map(([due]) => due), [5]);
  root.crash();
});

Deno.test("many jobs that are due at once run a bounded number at a time, and all of them", async () => {
  const jobs = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`job${i}`, "0 13 * * *"]));
  const root = await rootWith({ shop: jobs });
  root.outcome = null;
  await root.clock.pass(60 * MINUTE_MS);
  assert.equal(root.runs.length, 16);
  for (let ended = 0; ended < 40; ended++) {
    root.runs[ended]?.end();
    await root.clock.pass(0);
  }
  assert.deepEqual([root.runs.length, new Set(root.runs.map((run) => run.name)).size], [40, 40]);
  root.crash();
});
