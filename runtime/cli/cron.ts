/**
 * `sojourn cron`: the jobs of an app, and a run at once.
 */
import { z } from "zod";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import {
  columns,
  type Command,
  EXIT,
  type ExitCode,
  type Parsed,
  type Shell,
  UsageError,
} from "./command.ts";

const jobsSchema = z.array(z.object({
  name: z.string(),
  cron: z.string(),
  nextMs: z.number().nullable(),
  running: z.boolean(),
  attempts: z.number(),
  last: z.object({
    scheduledMs: z.number(),
    startedMs: z.number(),
    endedMs: z.number(),
    ok: z.boolean(),
    attempts: z.number(),
    manual: z.boolean(),
    error: z.string().optional(),
  }).nullable(),
}));
type Job = z.infer<typeof jobsSchema>[number];

const runSchema = z.object({
  app: z.string(),
  name: z.string(),
  ok: z.boolean(),
  ms: z.number(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

/** `sojourn cron APP [run NAME]` */
export const cron: Command = {
  name: "cron",
  usage: "APP [run NAME]",
  summary: "Lists an app's cron jobs with their next and last runs, or runs one now, at the root.",
  options: CLUSTER_OPTIONS,
  words: [1, 3],
  async run(args, shell) {
    const [app = "", verb, name] = args.words;
    if (verb !== undefined && verb !== "run") {
      throw new UsageError(`after the app comes run NAME, not ${verb}`);
    }
    if (verb === "run" && name === undefined) throw new UsageError("cron APP run takes the job's name");
    const client = await findCluster(args, shell);
    const path = `/apps/${encodeURIComponent(app)}/cron`;
    if (name === undefined) return list(jobsSchema.parse(await client.call("GET", path)), app, args, shell);
    const ran = runSchema.parse(await client.runJob(app, name));
    if (args.json) shell.out(JSON.stringify(ran));
    else if (ran.ok) shell.out(`${ran.name} of ${ran.app} ran in ${ran.ms} ms`);
    if (ran.ok) return EXIT.done;
    shell.err(
      `${ran.name} of ${ran.app} failed after ${ran.ms} ms: ${ran.error?.code}: ${ran.error?.message}`,
    );
    return EXIT.failed;
  },
};

function list(jobs: readonly Job[], app: string, args: Parsed, shell: Shell): ExitCode {
  if (args.json) shell.out(JSON.stringify(jobs));
  else if (jobs.length === 0) shell.err(`${app} declares no cron jobs`);
  else {
    const cells = jobs.map((job) => [job.name, job.cron, nextOf(job), lastOf(job)]);
    for (const line of columns([["job", "cron (UTC)", "next", "last"], ...cells])) shell.out(line);
  }
  return EXIT.done;
}

const time = (ms: number): string => new Date(ms).toISOString().slice(0, 19) + "Z";

function nextOf(job: Job): string {
  if (job.running) return `runs (attempt ${job.attempts})`;
  return job.nextMs === null
    ? "-"
    : time(job.nextMs) + (job.attempts > 0 ? ` (attempt ${job.attempts + 1})` : "");
}

function lastOf({ last }: Job): string {
  if (last === null) return "never";
  const how = `${last.endedMs - last.startedMs} ms${last.manual ? ", by command" : ""}`;
  return `${time(last.startedMs)} ${last.ok ? `ok (${how})` : `failed (${how}): ${last.error ?? ""}`}`;
}
