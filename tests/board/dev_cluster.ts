/**
 * A dev cluster that serves the board, started by the same command that people use.
 *
 * Life: `start` (the command, until it says `ready`) → `sites` … → `stop` (as Ctrl-C would).
 */
import { z } from "zod";
import type { SiteAddress } from "./site_status.ts";
import type { BoardCluster } from "./trial.ts";

const clusterSchema = z.object({
  adminToken: z.string(),
  sites: z.array(z.object({
    id: z.string(),
    parent: z.string().nullable(),
    tier: z.string(),
    url: z.url(),
    pid: z.number(),
  })),
});

/** Six processes, a bundle and an isolate at each: seconds on a quiet machine. */
const READY_MS = 120_000;
/** After this, what has not stopped is killed. */
const STOP_MS = 20_000;
const ROOT = new URL("../../", import.meta.url);

/** A running `deno task dev`. */
export class DevCluster implements BoardCluster {
  readonly #process: Deno.ChildProcess;
  readonly #data: string;
  readonly #output: Promise<void>;
  adminToken = "";

  private constructor(process: Deno.ChildProcess, data: string, output: Promise<void>) {
    this.#process = process;
    this.#data = data;
    this.#output = output;
  }

  /** Starts a cluster; what its sites log goes to `log`. @throws Error when it is not ready in time. */
  static async start(
    options: { data: string; topology?: string; log: (line: string) => void },
  ): Promise<DevCluster> {
    const { data, topology = "three-tier", log } = options;
    const module = new URL("tests/board/operated_app.ts", ROOT).pathname;
    const process = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "runtime/main.ts",
        "dev",
        module,
        "--topology",
        topology,
        "--port",
        "0",
        "--data",
        data,
      ],
      cwd: ROOT.pathname,
      env: { NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const ready = Promise.withResolvers<void>();
    const output = Promise.all([
      lines(process.stdout, (line) => {
        log(line);
        if (line.trim() === "ready") ready.resolve();
      }),
      lines(process.stderr, log),
    ]).then(() => ready.reject(new Error("the cluster ended before it was ready")));
    const timer = setTimeout(
      () => ready.reject(new Error(`the cluster is not ready after ${READY_MS} ms`)),
      READY_MS,
    );
    const cluster = new DevCluster(process, data, output);
    try {
      await ready.promise;
    } catch (error) {
      await cluster.stop();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    cluster.adminToken = (await cluster.#file()).adminToken;
    return cluster;
  }

  async sites(): Promise<readonly SiteAddress[]> {
    return (await this.#file()).sites;
  }

  /** Stops all its processes. */
  async stop(): Promise<void> {
    try {
      this.#process.kill("SIGINT");
    } catch {
      // It has ended already.
    }
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
    await this.#process.status;
    clearTimeout(timer);
    await this.#output;
  }

  async #file(): Promise<z.infer<typeof clusterSchema>> {
    return clusterSchema.parse(JSON.parse(await Deno.readTextFile(`${this.#data}/cluster.json`)));
  }
}

async function lines(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  each: (line: string) => void,
): Promise<void> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) each(line);
  }
  if (rest !== "") each(rest);
}
