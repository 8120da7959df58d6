/** What a well-behaved app finds inside an isolate. */
import type { ProcessUsage } from "../../../runtime/isolate/process_usage.ts";
import assert from "node:assert/strict";
import { bundleApp } from "../../../runtime/bundle/mod.ts";
import { Isolate } from "../../../runtime/isolate/isolate.ts";
import { type IsolateAnswer, IsolatePool, type SocketSink } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf, MemoryStore } from "./apps.ts";

async function withPool(
  work: (pool: IsolatePool) => Promise<void>,
  options: ConstructorParameters<typeof IsolatePool>[0] = { spares: 0 },
): Promise<void> {
  const pool = new IsolatePool(options);
  try {
    await work(pool);
  } finally {
    await pool.close();
  }
}

function responseOf(answer: IsolateAnswer): Response {
  if (answer.kind !== "response") throw new Error(`no response: ${JSON.stringify(answer)}`);
  return answer.response;
}

/** An app that uses packages or `sojourn`, bundled. */
async function bundled(source: string): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    await Deno.writeTextFile(`${folder}/app.ts`, source);
    const result = await bundleApp(`${folder}/app.ts`);
    if (result.kind === "failed") throw new Error(result.message);
    return new TextDecoder().decode(result.code);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const untilTrue = async (what: string, condition: () => boolean): Promise<void> => {
  const deadlineMs = performance.now() + 60_000;
  while (!condition()) {
    assert.ok(performance.now() < deadlineMs, what);
    await new Promise((r) => setTimeout(r, 5));
  }
};

Deno.test("env, Deno.openKv and `import { env }` are the running request's", async () => {
  const code = await bundled(`
    import { defineApp, env } from "sojourn";
    import { AsyncLocalStorage } from "node:async_hooks";
    const kv = await Deno.openKv();
    export default defineApp({
      vars: { CURRENCY: "EUR" },
      async fetch(request: Request, given: { kv: Deno.Kv }, ctx: { session: { id: string } }) {
        const who = ctx.session.id;
        await kv.set(["who", who], who);
        await new Promise((r) => setTimeout(r, Math.random() * 5));
        const viaEnv = (await (env as unknown as { kv: Deno.Kv }).kv.get(["who", who])).value;
        const viaGiven = (await given.kv.get(["who", who])).value;
        return Response.json([viaEnv, viaGiven, Deno.env.get("CURRENCY"), Deno.env.get("HOME") ?? null]);
      },
    });`);
  await withPool(async (pool) => {
    const app = appOf(code, { vars: { CURRENCY: "EUR" } });
    const answers = await Promise.all(Array.from({ length: 20 }, async (_, i) => {
      const store = new MemoryStore(); // a session each: a request that saw another's would find nothing
      const context = { sessionId: `s${i}`, site: "e", version: "v" };
      return await responseOf(await pool.call(app, callOf("/", { store, context }))).json();
    }));
    for (const [i, answer] of answers.entries()) assert.deepEqual(answer, [`s${i}`, `s${i}`, "EUR", null]);
  });
});

const AT_LOAD: readonly (readonly [what: string, code: string, says: RegExp])[] = [
  ["fetches", `await fetch("http://example.com"); export default { fetch() {} };`, /module loads/],
  [
    "reads the store",
    `const kv = await Deno.openKv(); await kv.get(["a"]); export default { fetch() {} };`,
    /module loads/,
  ],
  ["throws", `throw new Error("at load");`, /at load/],
  ["reads a file", `import fs from "node:fs"; fs.readFileSync("/etc/passwd"); export default {};`, /node:fs/],
  ["has no default export", `export const fetch = 1;`, /default/],
  ["does not parse", `export default {`, /no module/],
  ["listens", `Deno.serve(() => new Response()); export default { fetch() {} };`, /Deno\.serve/],
  ["loops", `for (;;);`, /did not load/],
  ["never ends", `await new Promise(() => {}); export default { fetch() {} };`, /did not load/],
];

for (const [what, code, says] of AT_LOAD) {
  Deno.test(`evaluation of a bundle that ${what} when it loads fails with the reason`, async () => {
    await withPool(async (pool) => {
      const result = await pool.evaluate(new TextEncoder().encode(code), { loadMs: 1_000 });
      assert.equal(result.kind, "error");
      assert.match(result.kind === "error" ? result.message : "", says);
    });
  });
}

Deno.test("evaluation answers the manifest", async () => {
  const code = await bundled(`
    import { defineApp, table } from "sojourn";
    import { z } from "zod";
    export default defineApp({
      name: "shop",
      tables: { orders: table({ schema: z.object({ by: z.string(), id: z.string() }), key: ["by", "id"] }) },
      routes: { "/login/*": { at: "root" } },
      fetch: () => new Response("x"),
    });`);
  await withPool(async (pool) => {
    const result = await pool.evaluate(new TextEncoder().encode(code));
    assert.equal(result.kind, "manifest", JSON.stringify(result));
    const manifest = (result.kind === "manifest" ? result.manifest : {}) as Record<string, unknown>;
    assert.equal(manifest["name"], "shop");
    assert.deepEqual(manifest["routes"], { "/login/*": { at: "root" } });
  });
});

Deno.test("Hono app streams server-sent events and stops when the client goes", async () => {
  const code = await bundled(`
    import { Hono } from "hono";
    import { streamSSE } from "hono/streaming";
    const app = new Hono();
    app.get("/events", (c) => streamSSE(c, async (stream) => {
      stream.onAbort(() => console.log("client gone"));
      for (let n = 0; ; n++) {
        await stream.writeSSE({ data: String(n) });
        await stream.sleep(5);
      }
    }));
    export default app;`);
  await withPool(async (pool) => {
    const lines: string[] = [];
    const answer = await pool.call(
      appOf(code),
      callOf("/events", { log: (entry) => lines.push(entry.text) }),
    );
    const response = responseOf(answer);
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("data: 3")) text += (await reader?.read())?.value ?? "";
    await reader?.cancel();
    await untilTrue("the app is told", () => lines.includes("client gone"));
    if (answer.kind === "response") await answer.settled;
  });
});

Deno.test("bodies of many sizes come through unchanged, both ways", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { async fetch(request) {
      const url = new URL(request.url);
      if (url.pathname === "/pipe") return new Response(request.body);
      return new Response(await request.bytes());
    } };`);
    for (const size of [0, 1, 65_535, 65_536, 65_537, 3_000_000]) {
      const bytes = new Uint8Array(size).map((_, i) => i * 31 + (i >> 8));
      for (const path of ["/pipe", "/bytes"]) {
        for (const streamed of [false, true]) {
          const body = streamed ? new Blob([bytes]).stream() : bytes;
          const request = new Request(`http://localhost${path}`, { method: "POST", body });
          const got = await responseOf(await pool.call(app, callOf(request))).bytes();
          assert.equal(got.length, size, `${path} ${size} ${streamed}`);
          assert.deepEqual(got, bytes);
        }
      }
    }
  });
});

Deno.test("a body over the limit is refused, whether it says so or not", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch(request) { return new Response(await request.bytes()); } };`,
      {
        limits: { bodyBytesMax: 100_000 },
      },
    );
    const big = new Uint8Array(200_000);
    const declared = new Request("http://localhost/", {
      method: "POST",
      body: big,
      headers: { "content-length": "200000" },
    });
    const streamed = new Request("http://localhost/", { method: "POST", body: new Blob([big]).stream() });
    for (const request of [declared, streamed]) {
      const answer = await pool.call(app, callOf(request));
      assert.equal(answer.kind === "error" && answer.code, "limit_body");
    }
  });
});

Deno.test("headers beyond what one head may have are that response's error, or that fetch's, and no more", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `let count = 0;
      export default { async fetch(request) {
        const headers = { "x-long": "a".repeat(140 * 1024) };
        const { pathname } = new URL(request.url);
        if (pathname === "/response") return new Response("", { headers });
        if (pathname === "/stream") return new Response(new ReadableStream(), { headers });
        if (pathname === "/fetch") {
          return await fetch("http://a.example/", { headers }).then(() => new Response(), (error) => new Response(error.message));
        }
        return new Response(String(++count));
      } };`,
    );
    const ask = (path: string) => pool.call(app, callOf(new Request(`http://localhost${path}`)));
    assert.equal(await responseOf(await ask("/")).text(), "1");
    for (const path of ["/response", "/stream"]) {
      const answer = await ask(path);
      assert.ok(
        answer.kind === "error" && /143\d{3} bytes together; at most 131072/.test(answer.message),
        path,
      );
      assert.equal(answer.code, "app_error");
    }
    assert.match(await responseOf(await ask("/fetch")).text(), /143\d{3} bytes together/);
    assert.equal(await responseOf(await ask("/")).text(), "2");
  });
});

Deno.test("nothing leaves before the gate opens (host_exchange.ts H1)", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch: () => new Response("out") };`);
    await pool.call(app, callOf("/"));
    const held = Promise.withResolvers<void>();
    let answered = false;
    const answer = pool.call(app, callOf("/", { gate: () => held.promise })).then((
      a,
    ) => (answered = true, a));
    await pool.call(app, callOf("/"));
    assert.equal(answered, false);
    held.resolve();
    assert.equal(await responseOf(await answer).text(), "out");
    const failing = await pool.call(app, callOf("/", { gate: () => Promise.reject(new Error("disk")) }));
    assert.equal(failing.kind, "error");
  });
});

Deno.test("waitUntil work goes on after the response, and settles it", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch(request, env, ctx) {
      ctx.waitUntil((async () => { await new Promise((r) => setTimeout(r, 50)); await env.kv.set(["late"], 1); })());
      return new Response("now");
    } };`);
    const store = new MemoryStore();
    const answer = await pool.call(app, callOf("/", { store }));
    assert.equal(await responseOf(answer).text(), "now");
    assert.equal(answer.kind === "response" && answer.open, true);
    assert.equal(store.rows.size, 0);
    if (answer.kind === "response") await answer.settled;
    assert.equal(store.rows.size, 1);
    const plain = await pool.call(appOf(`export default { fetch: () => new Response("x") };`), callOf("/"));
    assert.equal(plain.kind === "response" && plain.open, false);
  });
});

Deno.test("a token is open while its function can still write, however large the body", async () => {
  await withPool(async (pool) => {
    const text = (chars: number) => `new Response("x".repeat(${chars}))`;
    const stream = `new Response(new Blob(["x"]).stream())`;
    const waits = `ctx.waitUntil(new Promise((r) => setTimeout(r, 250)));`;
    for (
      const [body, waiting, expected] of [
        [text(10), "", false],
        [text(40_000), "", false], // three bytes a character would be too many
        [text(300_000), "", false],
        [`new Response(new Uint8Array(300_000))`, "", false],
        [`Response.json("x".repeat(300_000))`, "", false],
        [stream, "", true],
        [text(10), waits, true],
        [text(300_000), waits, true],
      ] as const
    ) {
      const app = appOf(`export default { fetch(request, env, ctx) { ${waiting} return ${body}; } };`);
      const opens: boolean[] = [];
      const answer = await pool.call(app, { ...callOf("/"), head: (_, { open }) => void opens.push(open) });
      await responseOf(answer).bytes();
      assert.deepEqual(opens, [expected], `${waiting} ${body}`);
    }
  });
});

Deno.test("an app that asks for the name of its session says so with its answer", async () => {
  await withPool(async (pool) => {
    for (
      const [asks, expected] of [["", false], ["ctx.session.id", true], [
        "const { session } = ctx",
        true,
      ]] as const
    ) {
      for (
        const body of ["'short'", "'x'.repeat(300_000)", "new ReadableStream({ start: (c) => c.close() })"]
      ) {
        const app = appOf(
          `export default { fetch(request, env, ctx) { ${asks}; return new Response(${body}); } };`,
        );
        const told: boolean[] = [];
        const answer = await pool.call(app, {
          ...callOf("/"),
          head: (_, { named }) => void told.push(named),
        });
        await responseOf(answer).bytes();
        assert.deepEqual(told, [expected], `${asks} ${body}`);
      }
    }
  });
});

Deno.test("a function that has answered whole writes no more while its body is on its way", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch(request, env) {
      queueMicrotask(() => setTimeout(() => env.kv.set(["late"], 1).catch(() => {}), 0));
      return new Response("x".repeat(2_000_000));
    } };`);
    const store = new MemoryStore();
    const answer = await pool.call(app, callOf("/", { store }));
    await new Promise((resolve) => setTimeout(resolve, 50)); // the body waits for its reader; the timer does not
    assert.equal((await responseOf(answer).bytes()).length, 2_000_000);
    assert.equal(store.rows.size, 0);
  });
});

Deno.test("waitUntil work that never ends is cut off after its limit", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { fetch(request, env, ctx) { ctx.waitUntil(new Promise(() => {})); return new Response("x"); } };`,
      { limits: { waitUntilMs: 100 } },
    );
    const answer = await pool.call(app, callOf("/"));
    assert.equal(await responseOf(answer).text(), "x");
    if (answer.kind === "response") await answer.settled;
  });
});

Deno.test("console output and uncaught errors are log lines of their request", async () => {
  await withPool(async (pool) => {
    const lines: string[] = [];
    const app = appOf(`export default { async fetch() {
      console.log("hello", { a: 1 });
      console.error("bad");
      setTimeout(() => { throw new Error("in a timer"); });
      await new Promise((resolve) => setTimeout(resolve, 20));
      return new Response("x");
    } };`);
    await pool.call(app, callOf("/", { log: ({ level, text }) => lines.push(`${level} ${text}`) }));
    assert.deepEqual(lines.slice(0, 2), ["info hello { a: 1 }", "error bad"]);
    assert.match(lines[2] ?? "", /^error Uncaught Error: in a timer\n/);
    assert.equal(lines.length, 3);
    assert.equal(await responseOf(await pool.call(app, callOf("/"))).text(), "x");
  });
});

const SOCKET_APPS: readonly (readonly [how: string, code: string])[] = [
  [
    "Deno.upgradeWebSocket",
    `export default { fetch(request) {
      const { socket, response } = Deno.upgradeWebSocket(request);
      socket.binaryType = "arraybuffer";
      socket.onopen = () => socket.send("hi");
      socket.onmessage = (e) => typeof e.data === "string" ? socket.send("echo " + e.data) : socket.send(new Uint8Array(e.data));
      socket.onclose = (e) => console.log("closed " + e.code);
      return response;
    } };`,
  ],
  [
    "WebSocketPair",
    `export default { fetch() {
      const { 0: client, 1: server } = new WebSocketPair();
      server.accept();
      server.binaryType = "arraybuffer";
      server.send("hi");
      server.addEventListener("message", (e) => typeof e.data === "string" ? server.send("echo " + e.data) : server.send(e.data));
      server.addEventListener("close", (e) => console.log("closed " + e.code));
      return new Response(null, { status: 101, webSocket: client });
    } };`,
  ],
];

for (const [how, code] of SOCKET_APPS) {
  Deno.test(`WebSocket by ${how} carries messages both ways and closes`, async () => {
    await withPool(async (pool) => {
      const lines: string[] = [];
      const request = new Request("http://localhost/", { headers: { upgrade: "websocket" } });
      const answer = await pool.call(appOf(code), callOf(request, { log: ({ text }) => lines.push(text) }));
      assert.equal(answer.kind, "upgrade", JSON.stringify(answer));
      if (answer.kind !== "upgrade") return;
      const got: (string | Uint8Array)[] = [];
      const sink: SocketSink = { message: (data) => got.push(data), close: () => {} };
      answer.socket.bridge(sink);
      answer.socket.send("a");
      answer.socket.send(new Uint8Array([1, 2, 3]));
      await untilTrue("three messages", () => got.length === 3);
      assert.deepEqual(got, ["hi", "echo a", new Uint8Array([1, 2, 3])]);
      answer.socket.close(1000, "bye");
      await answer.settled;
      await untilTrue("the app sees the close", () => lines.includes("closed 1000"));
    });
  });
}

Deno.test("a WebSocket that an app closes with a longer reason than a frame takes throws in the app, as elsewhere", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch(request) {
      const { socket, response } = Deno.upgradeWebSocket(request);
      socket.onmessage = () => {
        try {
          socket.close(4000, "x".repeat(124));
        } catch (error) {
          socket.close(4001, error.name);
        }
      };
      return response;
    } };`);
    const request = new Request("http://localhost/", { headers: { upgrade: "websocket" } });
    const answer = await pool.call(app, callOf(request));
    assert.equal(answer.kind, "upgrade", JSON.stringify(answer));
    if (answer.kind !== "upgrade") return;
    const closed: string[] = [];
    answer.socket.bridge({ message: () => {}, close: (code, reason) => closed.push(`${code} ${reason}`) });
    answer.socket.send("close");
    await untilTrue("it is closed", () => closed.length > 0);
    assert.equal(closed[0], "4001 SyntaxError");
    await answer.settled;
  });
});

Deno.test("request that the standard does not know is answered, and harms no other", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch(r) { return new Response(r.method + (await r.text()).length); } };`,
    );
    const call = (method: string, headers: [string, string][] = []) =>
      pool.call(app, {
        ...callOf("/"),
        request: {
          method,
          url: "http://localhost/",
          headers,
          body: null,
          bytes: () => Promise.resolve(new Uint8Array()),
        },
      });
    await call("GET");
    const pid = pool.status().apps[0]?.isolates[0]?.pid;
    assert.equal(await responseOf(await call("GET", [["content-length", "0"]])).text(), "GET0");
    assert.equal(await responseOf(await call("POST", [["content-length", "0"]])).text(), "POST0");
    assert.equal(await responseOf(await call("PURGE")).text(), "PURGE0");
    assert.equal((await call("CONNECT")).kind, "error");
    assert.equal((await call("GET", [["bad name", "x"]])).kind, "error");
    assert.equal(pool.status().apps[0]?.isolates[0]?.pid, pid);
  });
});

Deno.test("request.signal aborts when the client goes", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { async fetch(request) {
      const gone = new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      console.log("begun");
      await gone;
      return new Response("gone");
    } };`);
    const client = new AbortController(), begun = Promise.withResolvers<void>();
    const answer = pool.call(app, callOf("/", { signal: client.signal, log: () => begun.resolve() }));
    await begun.promise;
    client.abort();
    assert.equal(await responseOf(await answer).text(), "gone");
  });
});

/** Serves four clients at once; how many isolates the app has when `enough` says so. */
async function isolatesUnderLoad(enough: (isolates: number) => boolean): Promise<number> {
  let isolates = 0;
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch() {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return new Response("x");
    } };`,
      { limits: { isolatesMax: 2 } },
    );
    let stop = false;
    const clients = Array.from({ length: 4 }, async () => {
      while (!stop) await responseOf(await pool.call(app, callOf("/"))).text();
    });
    try {
      await untilTrue("enough isolates, or looks", () => {
        isolates = pool.status().apps[0]?.isolates.length ?? 0;
        return enough(isolates);
      });
    } finally {
      stop = true;
      await Promise.all(clients);
    }
  });
  return isolates;
}

// What an isolate gets of a core is the machine's affair, which may have other things to do: so it is given here.
Deno.test("app that keeps its isolate busy gets a second one, where there is a core for it (W6)", async (t) => {
  const read = Isolate.prototype.usage;
  const of = (cpuMs: number): ProcessUsage => ({ cpuMs, threads: 4, addressMib: 20_000, residentMib: 60 });
  try {
    await t.step("one that computes all the time", async () => {
      Isolate.prototype.usage = () => of(1.2 * performance.now());
      assert.equal(await isolatesUnderLoad((isolates) => isolates === 2), 2);
    });
    await t.step("none that gets half a core", async () => {
      let looks = 0;
      Isolate.prototype.usage = () => (looks++, of(0.5 * performance.now()));
      assert.equal(await isolatesUnderLoad(() => looks > 12), 1);
    });
  } finally {
    Isolate.prototype.usage = read;
  }
});

Deno.test("store watch wakes the app after a change", async () => {
  await withPool(async (pool) => {
    const store = new MemoryStore();
    const app = appOf(`export default { async fetch(request, env) {
      if (request.method === "POST") { await env.kv.set(["w"], "new"); return new Response("ok"); }
      for await (const [entry] of env.kv.watch([["w"]])) if (entry.value !== null) return new Response(entry.value);
    } };`);
    const watching = pool.call(app, callOf("/", { store }));
    await pool.call(app, callOf(new Request("http://localhost/", { method: "POST" }), { store }));
    assert.equal(await responseOf(await watching).text(), "new");
  });
});
