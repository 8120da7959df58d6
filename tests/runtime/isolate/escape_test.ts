/** What app code tries in order to reach out of its isolate; each attempt must fail inside, and leave nothing. */
import assert from "node:assert/strict";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf } from "./apps.ts";

/** Expressions that would each reach something outside. */
const ATTEMPTS: readonly string[] = [
  `Deno.readTextFileSync("/etc/passwd")`,
  `await Deno.readTextFile("/etc/passwd")`,
  `Deno.writeTextFileSync("/tmp/sojourn-escape", "x")`,
  `new Deno.Command("id").outputSync()`,
  `Deno.env.set("A", "b")`,
  `Deno.dlopen("libc.so.6", {})`,
  `Deno.kill(1, "SIGTERM")`,
  `Deno.permissions.request({ name: "read" })`,
  `await Deno.connect({ port: 1 })`,
  `Deno.listen({ port: 0 })`,
  `Deno[Deno.internal].core.ops`,
  `Deno[Object.getOwnPropertySymbols(Deno)[0]].core`,
  `await import("node:fs")`,
  `await import("node:child_process")`,
  `await import("node:net")`,
  `await import("node:process")`,
  `await import("node:module")`,
  `await import("node:" + "worker_threads")`,
  `await import("npm:chalk")`,
  `await import("jsr:@std/fs")`,
  `await import("https://deno.land/std/version.ts")`,
  `await import("data:text/javascript,export default 1")`,
  `await import("file:///etc/hostname")`,
  `await import("/etc/hostname")`,
  `require("node:fs")`,
  `process.binding("fs")`,
  `process.getBuiltinModule("fs").readFileSync("/etc/passwd")`,
  `process.kill(1)`,
  `nodeBootstrap({ runningOnMainThread: true })`,
  `new Worker("data:text/javascript,")`,
  `new BroadcastChannel("x")`,
  `localStorage.setItem("a", "b")`,
  `await navigator.gpu.requestAdapter()`,
  `new OffscreenCanvas(1, 1).getContext("webgpu").canvas`,
  `await navigator.locks.request("x", () => {})`,
  `new CacheStorage()`,
  `new Cache()`,
  `Object.getPrototypeOf(caches.default).constructor === Cache`,
  `await new caches.default.constructor({ bytes: 0 }).put("file:///etc/passwd", await fetch("file:///etc/passwd"))`,
  `new WebSocket("ws://127.0.0.1:1/")`,
  `new (Object.getPrototypeOf(new WebSocketPair()[0]).constructor)("ws://127.0.0.1:1/")`,
  `await new WebSocketStream("ws://127.0.0.1:1/").opened`,
  `Deno.serve(() => new Response("x"))`,
  `Deno.cron("x", "* * * * *", () => {})`,
  `new EventSource("http://127.0.0.1:1/")`,
  `await fetch("file:///etc/passwd")`,
  `await fetch("http://127.0.0.1:1/")`,
  `await fetch(new URL("file:///etc/passwd"))`,
  `await fetch("blob:null/00000000-0000-0000-0000-000000000000")`,
  `await fetch({ toString: () => "data:text/plain,x", get url() { return "file:///etc/passwd" } }.url)`,
  `await (await import("node:stream/consumers")).constructor.constructor("return import('node:fs')")()`,
  `(await import("node:zlib")).constructor.constructor("return Deno.openSync('/etc/passwd')")()`,
  `(await import("node:diagnostics_channel")).channel("x").constructor.constructor("return Deno.openSync('/etc/passwd')")()`,
  `await import("node:worker_threads")`,
  `await import("node:fs/promises")`,
  `await import("node:perf_hooks")`,
  `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)`,
  `await (await import("node:crypto")).constructor.constructor("return import('node:fs')")()`,
  `await new Function("return import('node:os')")()`,
  `(await import("node:util")).constructor.constructor("return Deno.readTextFileSync('/etc/passwd')")()`,
  // Deno's own fetch is there for data: and blob:; an app that lies about an address gets no further with it.
  `(Object.defineProperty(URL.prototype, "protocol", { get: () => "data:", configurable: true }), await fetch("file:///etc/hostname"))`,
  `await fetch("http://127.0.0.1:1/")`,
  `new (await import("node:async_hooks")).AsyncResource("x").constructor.constructor("return Deno.exit(3)")()`,
];

const ATTEMPTS_APP = `
  const AsyncFunction = (async () => {}).constructor;
  const attempts = ${JSON.stringify(ATTEMPTS)};
  export default {
    async fetch() {
      const reached = [];
      for (const attempt of attempts) {
        try {
          await (new AsyncFunction("return " + attempt))();
          reached.push(attempt);
        } catch (error) {
          if (!(error instanceof Error)) reached.push(attempt + " threw " + error);
        }
      }
      return Response.json(reached);
    },
  };`;

Deno.test("app code reaches nothing outside of its isolate", async () => {
  const pool = new IsolatePool({ spares: 0 });
  try {
    const answer = await pool.call(appOf(ATTEMPTS_APP, { fetchHosts: ["127.0.0.1"] }), callOf("/"));
    assert.equal(answer.kind, "response", JSON.stringify(answer));
    assert.deepEqual(answer.kind === "response" && await answer.response.json(), []);
  } finally {
    await pool.close();
  }
});

Deno.test("app that bends the built-ins hurts only itself", async () => {
  const pool = new IsolatePool({ spares: 0 });
  try {
    const bent = appOf(
      `Map.prototype.get = () => { throw new Error("bent"); };
      Promise.prototype.then = () => {};
      Uint8Array.prototype.subarray = () => new Uint8Array(1 << 20);
      export default { fetch: () => new Response("x") };`,
      { name: "bent", limits: { wallMs: 500, loadMs: 1_000 } },
    );
    const good = appOf(`export default { fetch: () => new Response("fine") };`, { name: "good" });
    const answer = await pool.call(bent, callOf("/"));
    assert.equal(answer.kind, "error");
    const fine = await pool.call(good, callOf("/"));
    assert.equal(fine.kind === "response" && await fine.response.text(), "fine");
  } finally {
    await pool.close();
  }
});

Deno.test("isolates end with the process that started them, also while they loop", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  const script = `${folder}/host.ts`;
  const root = new URL("../../../", import.meta.url).href;
  await Deno.writeTextFile(
    script,
    `import { IsolatePool } from "${root}runtime/isolate/mod.ts";
    import { appOf, callOf } from "${root}tests/runtime/isolate/apps.ts";
    const pool = new IsolatePool({ spares: 0 });
    const app = appOf("export default { fetch(r) { if (r.url.endsWith('loop')) for (;;); return new Response() } }", {
      limits: { cpuMs: 60_000 },
    });
    await pool.call(app, callOf("/"));
    pool.call(app, callOf("/loop"));
    setTimeout(() => console.log(pool.status().apps[0].isolates[0].pid), 100);`,
  );
  const config = new URL("../../../deno.json", import.meta.url).pathname;
  const host = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-check", "-A", `--config=${config}`, script],
    stdout: "piped",
  }).spawn();
  try {
    const reader = host.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const pid = Number((await reader.read()).value);
    assert.ok(pid > 0);
    host.kill("SIGKILL");
    await host.status;
    const deadlineMs = performance.now() + 60_000;
    while (await isRunning(pid)) {
      assert.ok(performance.now() < deadlineMs, `process ${pid} goes on without its site`);
      await new Promise((r) => setTimeout(r, 20));
    }
    await reader.cancel();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** A zombie has ended; somebody has only not asked yet how. */
async function isRunning(pid: number): Promise<boolean> {
  try {
    return !/^State:\s+Z/m.test(await Deno.readTextFile(`/proc/${pid}/status`));
  } catch {
    return false;
  }
}
