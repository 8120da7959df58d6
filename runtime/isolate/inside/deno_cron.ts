/**
 * `Deno.cron` while a module loads, for programs that also call `Deno.serve`: its jobs become `cron` and
 * `scheduled` of the app.
 *
 * D1  A schedule means what it means in Deno, whose weekdays are 1 (Sunday) to 7 (Saturday): they are written by name,
 *     since cron counts from 0.
 */

const WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

type Job = () => unknown;

/** The app's declarations that jobs amount to. */
export interface CronDeclarations {
  readonly cron: Readonly<Record<string, string>>;
  readonly scheduled: (event: { readonly name: string }) => unknown;
}

/** The jobs that a module declares. */
export class CronJobs {
  readonly #jobs = new Map<string, { readonly schedule: string; readonly run: Job }>();
  #isLoading = true;

  /** Takes a job. Deno's promise resolves when the job is taken off, which it never is. */
  readonly cron = (name: unknown, schedule: unknown, ...rest: unknown[]): Promise<void> => {
    if (!this.#isLoading) {
      throw new TypeError("Deno.cron works while the module loads, not while a request runs");
    }
    const run = rest.find((arg): arg is Job => typeof arg === "function");
    if (run === undefined) throw new TypeError("Deno.cron: a handler is missing");
    const declared = jobName(name);
    if (this.#jobs.has(declared)) throw new TypeError(`Deno.cron: there is a job "${declared}" already`);
    this.#jobs.set(declared, { schedule: translated(schedule), run });
    return new Promise(() => {});
  };

  /** Returns the jobs of a module that has loaded; undefined where it has none. */
  declarations(): CronDeclarations | undefined {
    this.#isLoading = false;
    if (this.#jobs.size === 0) return undefined;
    return {
      cron: Object.fromEntries([...this.#jobs].map(([name, { schedule }]) => [name, schedule])),
      scheduled: ({ name }) => this.#jobs.get(name)?.run(),
    };
  }
}

/** Returns a job's name without spaces, which names of cron jobs don't have here. */
function jobName(name: unknown): string {
  if (typeof name !== "string" || !/^[\w\s-]{1,64}$/.test(name)) {
    throw new TypeError(
      `Deno.cron: a name has 1 to 64 letters, digits, spaces, _ and -, not ${Deno.inspect(name)}`,
    );
  }
  return name.trim().replace(/\s+/g, "-");
}

/** Returns a schedule in five fields (D1). The root parses it, with the manifest. */
function translated(schedule: unknown): string {
  const fields = typeof schedule === "string" ? schedule.trim().split(/\s+/) : [];
  const weekday = fields.pop();
  if (fields.length !== 4 || weekday === undefined) {
    throw new TypeError(
      `Deno.cron: a schedule is a text of five fields, such as "0 3 * * *", not ${Deno.inspect(schedule)}`,
    );
  }
  const named = weekday.replace(/(?<![/#\d])\d+/g, (number) => {
    const name = WEEKDAYS[Number(number) - 1];
    if (name !== undefined) return name;
    throw new TypeError(`Deno.cron: a weekday is 1 (Sunday) to 7 (Saturday), not ${number}`);
  });
  return [...fields, named].join(" ");
}
