/**
 * A reader who does what a page says: saves its files into an empty folder, types its commands into one shell, and
 * holds what they print against the page.
 *
 * R1  Commands run as they stand. Only this differs from a reader's: `deno task` in this folder runs the checkout's
 *     tasks, ports are free ones (the page's are replaced, in files, commands and what they print), `deno task dev`
 *     runs behind the next commands, and `npx --yes deno@2.9.6` is the deno that runs the test.
 * R2  A command must succeed, or end with the code that a comment names: `# exits 3`. `curl -N` is stopped after a
 *     moment, since it would follow for ever.
 * R3  A `curl` that only reads is typed again until it prints what the page shows, for a minute at most: what one
 *     session has written takes its time to another.
 * R4  What a page shows is what goes to standard output; of a command that is refused, to both outputs, but
 *     for the progress of slow ones.
 * R5  Where pages share a cluster (shared_cluster.ts), a page's `deno task dev` finds it running, with the apps that the
 *     page names.
 */
import { strict as assert } from "node:assert";
import { rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { startCluster, type TestCluster } from "../e2e/cluster.ts";
import { FreePorts } from "../../runtime/dev/free_port.ts";
import { isAsShown, type Step, stepsOf, type TypedCommand } from "./blocks.ts";
import { type DevWords, devWords, type SharedCluster } from "./shared_cluster.ts";
import { Shell } from "./shell.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
/** The order in which `dev` gives out ports from 8000. */
const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];
/** Ports of sites that a page starts by hand: HTTP and links. */
const BY_HAND = [8000, 8001, 8002, 7000, 7001, 7002];
const SITE = /deno task site\b/;
const EXITS = /# exits (\d+)/;
const READS = /^curl (?!.*(?:--json| -d | -X | -F ))/;
const READS_MS_MAX = 60_000;
/** What commands print while they take longer than a second. */
const PROGRESS = /^ +\d+\.\d s .*\n/gm;
/** Long enough for what is on its way to be printed. */
const FOLLOW_S = 4;

const PRELUDE = [
  `curl() { case " $* " in *" -N "*) timeout ${FOLLOW_S} curl -s "$@" || [ $? = 124 ];; *) command curl -s "$@";; esac; }`,
  "export NO_COLOR=1",
  `export CHECKOUT=${ROOT}`,
  'export PATH="$PWD/.bin:$PATH"',
  "trap 'kill $(jobs -p) 2>/dev/null' EXIT",
].join("\n");
/** R1: programs that stand before the machine's own. */
const PROGRAMS = {
  deno: `[ "$1" = task ] || exec ${Deno.execPath()} "$@"; shift; exec ${Deno.execPath()} task --quiet "$@"`,
  npx: 'shift 2; exec deno "$@"',
};

/** The steps of a page of this checkout. */
export const readSteps = async (path: string): Promise<Step[]> =>
  stepsOf(await Deno.readTextFile(join(ROOT, path)));

/**
 * Does all that a page says; resolves to the number of commands that ran. Its `dev` starts a cluster for it alone, or
 * finds the one that it shares with other pages.
 */
export async function readPage(path: string, shared: SharedCluster | null = null): Promise<number> {
  const steps = await readSteps(path);
  const folder = await Deno.makeTempDir({ prefix: "page-" });
  await using reader = await Reader.sitDown(folder, shared);
  if (steps.some((step) => step.kind === "command" && SITE.test(step.text))) await reader.drawPorts();
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
  readonly #ports = new FreePorts();
  readonly #shared: SharedCluster | null;
  /** Its own. */
  #cluster: TestCluster | null = null;
  /** From the page's words to this run's: ports, and what `where` says. */
  readonly #standIns: [page: string, real: string][] = [];

  private constructor(folder: string, shell: Shell, shared: SharedCluster | null) {
    this.#folder = folder;
    this.#shell = shell;
    this.#shared = shared;
  }

  static async sitDown(folder: string, shared: SharedCluster | null): Promise<Reader> {
    const { tasks } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json"))) as {
      tasks: Record<string, string>;
    };
    const here = Object.entries(tasks).map(([name, text]) => [
      name,
      text.replace("deno run -A ", `deno run -A --config ${join(ROOT, "deno.json")} ${ROOT}/`),
    ]);
    await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify({ tasks: Object.fromEntries(here) }));
    await Deno.mkdir(join(folder, ".bin"));
    for (const [name, program] of Object.entries(PROGRAMS)) {
      await Deno.writeTextFile(join(folder, ".bin", name), `#!/bin/sh\n${program}\n`, { mode: 0o755 });
    }
    const shell = new Shell(folder);
    await shell.run(PRELUDE);
    return new Reader(folder, shell, shared);
  }

  async do(step: Step, page: string): Promise<void> {
    if (step.kind === "left out") return;
    if (step.kind === "where") {
      const { printed } = await this.#shell.run(`printf %s ${this.#real(step.words)}`);
      return void this.#standIns.push([step.text, printed]);
    }
    if (step.kind === "file") {
      const file = join(this.#folder, step.path);
      await Deno.mkdir(dirname(file), { recursive: true });
      return await Deno.writeTextFile(file, this.#real(step.text));
    }
    const words = devWords(step.text);
    if (words === null) return await this.#type(step, page);
    const cluster = this.#shared === null ? await this.#dev(words) : await this.#join(this.#shared, words);
    for (const [i, site] of SITES.entries()) {
      const url = cluster.sites[site]?.url;
      if (url !== undefined) this.#standIns.push([`:${8000 + i}`, `:${new URL(url).port}`]);
    }
  }

  async #dev(words: DevWords): Promise<TestCluster> {
    await this.#cluster?.stop();
    const apps = await Promise.all(words.apps.map(async (word) => {
      const own = join(this.#folder, word);
      return await Deno.stat(own).then(() => own, () => word);
    }));
    const data = join(this.#folder, ".sojourn");
    return this.#cluster = await startCluster({ data, apps: [...apps, ...words.options] });
  }

  /** R5 */
  async #join(shared: SharedCluster, words: DevWords): Promise<TestCluster> {
    for (const app of await shared.join(this.#folder, words)) {
      const { code, printed, errors } = await this.#shell.run(`deno task deploy ${app}`);
      assert.equal(code, 0, printed + errors);
    }
    return shared.cluster;
  }

  async #type(command: TypedCommand, page: string): Promise<void> {
    const real = this.#real(command.text);
    const wanted = Number(EXITS.exec(command.text)?.[1] ?? 0);
    const untilMs = performance.now() + (READS.test(command.text) ? READS_MS_MAX : 0);
    for (;;) {
      const { code, printed, errors } = await this.#shell.run(real);
      // Of a command that was refused, the page shows why; of others, progress and notes go by.
      const asPage = this.#asPage(wanted === 0 ? printed : printed + errors.replace(PROGRESS, ""));
      const isShown = command.prints === null || isAsShown(asPage, command.prints);
      if (code === wanted && isShown) return;
      if (performance.now() < untilMs) continue; // R3
      assert.fail(
        `${page}:${command.line}: ${command.text}\nended with ${code}, printed:\n${asPage}${errors}\n` +
          `the page shows:\n${command.prints}`,
      );
    }
  }

  /** For sites that the page starts by hand. */
  async drawPorts(): Promise<void> {
    for (const port of BY_HAND) this.#standIns.push([`:${port}`, `:${await this.#ports.draw()}`]);
  }

  #real(text: string): string {
    return this.#standIns.reduce((all, [page, real]) => all.replaceAll(page, real), text);
  }

  #asPage(text: string): string {
    return this.#standIns.reduce((all, [page, real]) => real === "" ? all : all.replaceAll(real, page), text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shell.close();
    await this.#cluster?.stop();
    await this.#shared?.leave();
    this.#ports[Symbol.dispose]();
    // A site that the page started by hand may write its last as it is stopped.
    await rm(this.#folder, { recursive: true, maxRetries: 10, retryDelay: 200 });
  }
}
