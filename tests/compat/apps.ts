/** Apps written for other platforms, bundled as `deploy` does and run in a real isolate. */
import { join } from "node:path";
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import { bundleApp } from "../../runtime/bundle/mod.ts";
import { type IsolateAnswer, IsolatePool } from "../../runtime/isolate/mod.ts";
import { appOf, callOf, MemoryStore } from "../runtime/isolate/apps.ts";

/** What an app runs with. */
export interface RunOptions {
  readonly vars?: Record<string, string>;
  /** Private addresses that its fetch may reach, as `127.0.0.1:PORT`. */
  readonly mayFetch?: readonly string[];
  /** The entry's name among the files; `app.ts` if it is not said. */
  readonly entry?: string;
  readonly store?: StoreClient;
}

/** A running app. */
export interface RunningApp extends AsyncDisposable {
  readonly store: StoreClient;
  /** Lines that it logged, as `level text`. */
  readonly lines: string[];
  /** What its manifest says; evaluated as a deploy does. */
  manifest(): Promise<unknown>;
  call(path: string | Request, init?: RequestInit): Promise<IsolateAnswer>;
  /** Runs a cron job once; what came of it. */
  schedule(name: string): Promise<string>;
  /** The response; throws for anything else. */
  fetch(path: string | Request, init?: RequestInit): Promise<Response>;
}

/** Bundles an app's files (by name; one text is `app.ts`); its path is one of a deploy. */
export async function bundleText(
  files: string | Readonly<Record<string, string>>,
  entry = "app.ts",
): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    const all = typeof files === "string" ? { "app.ts": files } : files;
    for (const [name, text] of Object.entries(all)) await Deno.writeTextFile(join(folder, name), text);
    const result = await bundleApp(join(folder, entry));
    if (result.kind === "failed") throw new Error(result.message.replaceAll(`${folder}/`, ""));
    return new TextDecoder().decode(result.code);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Bundles an app and runs it. */
export async function runApp(
  files: string | Readonly<Record<string, string>>,
  options: RunOptions = {},
): Promise<RunningApp> {
  return runBundle(await bundleText(files, options.entry), options);
}

/** Runs what is one module already. */
export function runBundle(code: string, options: RunOptions = {}): RunningApp {
  const mayFetch = [...options.mayFetch ?? []];
  const pool = new IsolatePool({ spares: 0, egress: { privateHosts: mayFetch } });
  const app = appOf(code, {
    vars: options.vars ?? {},
    fetchHosts: mayFetch,
    limits: { wallMs: 120_000, cpuMs: 30_000 },
  });
  const store = options.store ?? new MemoryStore();
  const lines: string[] = [];
  const log = ({ level, text }: { level: string; text: string }) => void lines.push(`${level} ${text}`);
  const call = (path: string | Request, init?: RequestInit) => {
    const request = typeof path === "string" ? new Request(`http://localhost${path}`, init) : path;
    return pool.call(
      app,
      callOf(request, { store, log }),
    );
  };
  return {
    store,
    lines,
    call,
    manifest: async () => {
      const result = await pool.evaluate(new TextEncoder().encode(code), { vars: options.vars ?? {} });
      if (result.kind === "error") throw new Error(`${result.code}: ${result.message}`);
      return result.manifest;
    },
    schedule: async (name) => {
      const limits = { wallMs: 10_000, cpuMs: 5_000 };
      const answer = await pool.call(app, {
        ...callOf(new Request("http://localhost/", { method: "POST" }), { store, log }),
        scheduled: { name, cron: "* * * * *", scheduledTime: 0, noRetry: () => {}, limits },
      });
      return answer.kind === "error" ? answer.message : answer.kind;
    },
    fetch: async (path, init) => {
      const answer = await call(path, init);
      if (answer.kind === "response") return answer.response;
      throw new Error(JSON.stringify(answer));
    },
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

/** Waits for what comes later. */
export async function untilTrue(what: string, condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
