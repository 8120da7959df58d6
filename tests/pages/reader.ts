/**
 * A reader who does what a page says: saves its files into an empty folder, types its commands into one shell, and
 * holds what they print against the page.
 *
 * R1  Commands run as they stand. Only three things differ from a reader's: `deno task` in this folder runs the
 *     checkout's tasks, a cluster takes free ports (the page's ports are replaced, in commands and in what they
 *     print), and `npx --yes deno@2.9.6` is the deno that runs the test.
 * R2  A command must succeed, or end with the code that a comment names: `# exits 3`. `curl -N` is stopped after a
 *     moment, since it would follow for ever.
 * R3  A `curl` that only reads is typed again for some seconds until it prints what the page shows: what one session
 *     has written takes its time to another.
 */
import { strict as assert } from "node:assert";
import { dirname, join, resolve } from "node:path";
import { startCluster, type TestCluster } from "../e2e/cluster.ts";
import { isAsShown, type Step, stepsOf, type TypedCommand } from "./blocks.ts";
import { Shell } from "./shell.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
/** The order in which `dev` gives out ports from 8000. */
const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];
const DEV = /^(?:npx --yes deno@2\.9\.6|deno) task dev\b([^#]*)/;
const EXITS = /# exits (\d+)/;
const READS = /^curl (?!.*(?:--json| -d | -X | -F | -N ))/;
const READS_MS_MAX = 20_000;
/** Long enough for what is on its way to be printed. */
const FOLLOW_S = 4;

const PRELUDE = [
  'deno() { if [ "$1" = task ]; then shift; command deno task --quiet "$@"; else command deno "$@"; fi; }',
  'npx() { shift 2; deno "$@"; }',
  `curl() { case " $* " in *" -N "*) timeout ${FOLLOW_S} curl -s "$@" || [ $? = 124 ];; *) command curl -s "$@";; esac; }`,
  "export NO_COLOR=1",
].join("\n");

/** Does all that a page says; resolves to the number of commands that ran. */
export async function readPage(path: string): Promise<number> {
  const steps = stepsOf(await Deno.readTextFile(join(ROOT, path)));
  const folder = await Deno.makeTempDir({ prefix: "page-" });
  await using reader = await Reader.sitDown(folder);
  let commands = 0;
  for (const step of steps) {
    if (step.kind === "command") commands++;
    await reader.do(step, path);
  }
  return commands;
}

class Reader implements AsyncDisposable {
  readonly #folder: string;
  readonly #shell: Shell;
  #cluster: TestCluster | null = null;

  private constructor(folder: string, shell: Shell) {
    this.#folder = folder;
    this.#shell = shell;
  }

  static async sitDown(folder: string): Promise<Reader> {
    const { tasks } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json"))) as {
      tasks: Record<string, string>;
    };
    const here = Object.entries(tasks).map(([name, text]) => [
      name,
      text.replace("deno run -A ", `deno run -A --config ${join(ROOT, "deno.json")} ${ROOT}/`),
    ]);
    await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify({ tasks: Object.fromEntries(here) }));
    const shell = new Shell(folder);
    await shell.run(PRELUDE);
    return new Reader(folder, shell);
  }

  async do(step: Step, page: string): Promise<void> {
    if (step.kind === "left out") return;
    if (step.kind === "file") {
      const file = join(this.#folder, step.path);
      await Deno.mkdir(dirname(file), { recursive: true });
      return await Deno.writeTextFile(file, step.text);
    }
    const dev = DEV.exec(step.text);
    if (dev !== null) return await this.#dev((dev[1] ?? "").trim().split(/\s+/).filter(Boolean));
    await this.#type(step, page);
  }

  async #dev(words: readonly string[]): Promise<void> {
    await this.#cluster?.stop();
    const apps = await Promise.all(words.map(async (word) => {
      const own = join(this.#folder, word);
      return await Deno.stat(own).then(() => own, () => word);
    }));
    const data = join(this.#folder, ".sojourn");
    this.#cluster = await startCluster({ data, apps: apps.length === 0 ? ["guestbook"] : apps });
  }

  async #type(command: TypedCommand, page: string): Promise<void> {
    const real = this.#ports(command.text, "real");
    const untilMs = performance.now() + (READS.test(command.text) ? READS_MS_MAX : 0);
    let { code, printed } = await this.#shell.run(real);
    const isShown = () => command.prints === null || isAsShown(this.#ports(printed, "page"), command.prints);
    while (!isShown() && performance.now() < untilMs) ({ code, printed } = await this.#shell.run(real)); // R3
    const where = `${page}:${command.line}: ${command.text}`;
    const wanted = Number(EXITS.exec(command.text)?.[1] ?? 0);
    assert.equal(code, wanted, `${where}\nended with ${code}:\n${printed}`);
    if (command.prints === null) return;
    const asPage = this.#ports(printed, "page");
    assert(
      isAsShown(asPage, command.prints),
      `${where}\nprinted:\n${asPage}\nthe page shows:\n${command.prints}`,
    );
  }

  /** R1 */
  #ports(text: string, to: "real" | "page"): string {
    if (this.#cluster === null) return text;
    SITES.forEach((site, i) => {
      const url = this.#cluster?.sites[site]?.url;
      if (url === undefined) return;
      const real = `:${new URL(url).port}`;
      const page = `:${8000 + i}`;
      text = to === "real" ? text.replaceAll(page, real) : text.replaceAll(real, page);
    });
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shell.close();
    await this.#cluster?.stop();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
