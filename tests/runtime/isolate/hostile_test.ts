/** Handlers that loop, allocate, exit or never answer: what happens to them, and that nobody else notices (watchdog.ts W3). */
import assert from "node:assert/strict";
import {
  type IsolateAnswer,
  type IsolateApp,
  IsolatePool,
  type PoolOptions,
} from "../../../runtime/isolate/mod.ts";
import { appOf, callOf } from "./apps.ts";

async function withPool(
  work: (pool: IsolatePool) => Promise<void>,
  options: PoolOptions = {},
): Promise<void> {
  const pool = new IsolatePool(options);
  try {
    await work(pool);
  } finally {
    await pool.close();
  }
}

const codeOf = (answer: IsolateAnswer): string => answer.kind === "error" ? answer.code : answer.kind;

async function textOf(answer: IsolateAnswer): Promise<string> {
  if (answer.kind !== "response") throw new Error(`no response: ${JSON.stringify(answer)}`);
  return await answer.response.text();
}

const post = (path: string) => callOf(new Request(`http://localhost${path}`, { method: "POST" }));

/** Small limits, so that the tests are quick; the isolate that is killed is the app's only one. */
const LIMITS = { cpuMs: 200, wallMs: 5_000, isolatesMax: 1 };

const HOSTILE = `
  const hog = [];
  async function fork() { for (;;) { fork(); await null; } }
  export default {
    async fetch(request) {
      switch (new URL(request.url).pathname) {
        case "/loop": for (;;);
        case "/later": await new Promise((r) => setTimeout(r, 1)); for (;;);
        case "/regexp": return new Response(String(/^(a+)+$/.test("a".repeat(40) + "b")));
        case "/heap": for (;;) hog.push(new Array(1000).fill(Math.random()));
        case "/buffers": for (;;) { const b = new Uint8Array(16 << 20); b.fill(1); hog.push(b); await null; }
        case "/microtasks": fork(); break;
        case "/timers": { const f = () => { const t = Date.now(); while (Date.now() - t < 5); setTimeout(f); }; f(); break; }
        case "/never": await new Promise(() => {}); break;
        case "/wait": Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); break;
        case "/exit": try { Deno.exit(0); } catch {} try { process.exit(0); } catch {} try { close(); } catch {} break;
        case "/reject": Promise.reject(new Error("nobody catches this")); setTimeout(() => { throw new Error("nor this"); }); break;
        case "/abort": queueMicrotask(() => { throw new Error("in a microtask"); }); break;
        case "/stack": { const f = () => f(); f(); break; }
      }
      return new Response("still here");
    },
  };`;

/** Two codes where the system decides: a buffer that is refused is the handler's own RangeError. */
const KIND: readonly (readonly [path: string, method: "GET" | "POST", ...codes: string[]])[] = [
  ["/loop", "POST", "isolate_killed"],
  ["/loop", "GET", "isolate_killed"],
  ["/later", "POST", "isolate_killed"],
  ["/regexp", "POST", "isolate_killed"],
  ["/heap", "POST", "isolate_killed"],
  ["/buffers", "POST", "isolate_killed", "app_error"],
  ["/microtasks", "POST", "isolate_killed"],
  ["/never", "POST", "wall_time"],
  ["/wait", "POST", "app_error"],
  ["/exit", "POST", "response"],
  ["/reject", "POST", "response"],
  ["/abort", "POST", "response"],
  ["/stack", "POST", "app_error"],
  ["/timers", "POST", "response"],
];

Deno.test("hostile handler is stopped, and another app answers meanwhile (main.ts B2)", async () => {
  await withPool(async (pool) => {
    const hostile = appOf(HOSTILE, { name: "hostile", limits: LIMITS });
    const good = appOf(`export default { fetch: () => new Response("fine") };`, { name: "good" });
    await textOf(await pool.call(good, callOf("/")));
    const [goodPid] = pool.status().apps.find((a) => a.app === "good")?.isolates ?? [];
    for (const [path, method, ...codes] of KIND) {
      const what = `${method} ${path}`;
      const bad = pool.call(hostile, callOf(new Request(`http://localhost${path}`, { method })));
      let meanwhile = 0;
      let answered = false;
      bad.then(() => answered = true);
      for (; !answered; meanwhile++) {
        assert.equal(await textOf(await pool.call(good, callOf("/"))), "fine", what);
        await new Promise((r) => setTimeout(r, 10));
      }
      const code = codeOf(await bad);
      assert.ok(codes.includes(code), `${what}: ${code}, not ${codes.join(" or ")}`);
      assert.equal(await textOf(await pool.call(hostile, callOf("/"))), "still here", what);
      // If it held up the site as well, the other app would be answered when it is over.
      if (code === "isolate_killed" || code === "wall_time") assert.ok(meanwhile > 1, what);
    }
    const [goodPidAfter] = pool.status().apps.find((a) => a.app === "good")?.isolates ?? [];
    assert.equal(goodPidAfter?.pid, goodPid?.pid, "the good app's isolate was never replaced");
  });
});

Deno.test("isolate with timers that never stop is killed once its requests are over", async () => {
  await withPool(async (pool) => {
    const app: IsolateApp = appOf(HOSTILE, { limits: LIMITS });
    await textOf(await pool.call(app, post("/timers")));
    const deadlineMs = performance.now() + 60_000;
    while ((pool.status().apps[0]?.isolates.length ?? 0) > 0) {
      assert.ok(performance.now() < deadlineMs, "it still runs");
      await new Promise((r) => setTimeout(r, 20));
    }
    assert.equal(await textOf(await pool.call(app, callOf("/"))), "still here");
  });
});

Deno.test("requests that had not started go to another isolate; those that ran get isolate_killed (call.ts C1, C2; fleet.ts L1, L2; isolate.ts I2)", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname === "/loop") for (;;);
        if (pathname === "/slow") { await new Promise((r) => setTimeout(r, 400)); return new Response("slow"); }
        return new Response(request.method + " " + await request.text());
      } };`,
      { limits: LIMITS },
    );
    await textOf(await pool.call(app, callOf("/")));
    const slowPost = pool.call(app, post("/slow"));
    const slowGet = pool.call(app, callOf("/slow"));
    const loop = pool.call(app, post("/loop"));
    const waiting = Array.from(
      { length: 8 },
      (_, i) => pool.call(app, callOf(new Request("http://localhost/ok", { method: "POST", body: `b${i}` }))),
    );
    const streamed = pool.call(
      app,
      callOf(
        new Request("http://localhost/ok", {
          method: "POST",
          body: ReadableStream.from([new TextEncoder().encode("streamed")]),
        }),
      ),
    );
    assert.equal(codeOf(await loop), "isolate_killed");
    assert.equal(codeOf(await slowPost), "isolate_killed");
    assert.equal(await textOf(await slowGet), "slow");
    for (const [i, answer] of (await Promise.all(waiting)).entries()) {
      assert.equal(await textOf(answer), `POST b${i}`);
    }
    assert.equal(await textOf(await streamed), "POST streamed");
  });
});

Deno.test("GET that wrote is not run again when its isolate dies (call.ts C2)", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch(request, env) {
        await env.kv.set(["ran"], 1);
        for (;;);
      } };`,
      { limits: LIMITS },
    );
    let commits = 0;
    const call = callOf("/");
    const commit = call.store.commit.bind(call.store);
    call.store.commit = (checks, mutations) => (commits++, commit(checks, mutations));
    assert.equal(codeOf(await pool.call(app, call)), "isolate_killed");
    assert.equal(commits, 1);
  });
});

Deno.test("GET that ends its isolate is run once more, and no more (call.ts C2)", async () => {
  const ended: string[] = [];
  const note = (_: string, { why }: Record<string, unknown>) => void ended.push(String(why));
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch() { for (;;); } };`, { limits: LIMITS });
    assert.equal(codeOf(await pool.call(app, callOf("/"))), "isolate_killed");
    await new Promise((r) => setTimeout(r, 0)); // the last end is noted
    assert.equal(ended.length, 2, ended.join());
  }, { note });
});

Deno.test("isolate killed from outside in the middle of a response ends that response with an error", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch: () => new Response(new ReadableStream({
      start(c) { c.enqueue(new TextEncoder().encode("first")); },
    })) };`);
    const answer = await pool.call(app, callOf("/"));
    assert.equal(answer.kind, "response");
    if (answer.kind !== "response") return;
    const reader = answer.response.body?.getReader();
    assert.equal(new TextDecoder().decode((await reader?.read())?.value), "first");
    const pid = pool.status().apps[0]?.isolates[0]?.pid;
    assert.ok(pid !== undefined);
    Deno.kill(pid, "SIGKILL");
    await assert.rejects(async () => await reader?.read());
    await answer.settled;
  });
});

Deno.test("idle app gives its isolates back", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch: () => new Response("x") };`);
    await textOf(await pool.call(app, callOf("/")));
    const deadlineMs = performance.now() + 60_000;
    while (pool.status().apps.length > 0) {
      assert.ok(performance.now() < deadlineMs);
      await new Promise((r) => setTimeout(r, 10));
    }
    assert.equal(await textOf(await pool.call(app, callOf("/"))), "x");
  }, { idleMs: 100 });
});

Deno.test("more requests than an isolate takes wait, and too many are refused", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch() { await new Promise((r) => setTimeout(r, 30)); return new Response("x"); } };`,
      { limits: { requestsMax: 2, waitingMax: 3, isolatesMax: 1 } },
    );
    await textOf(await pool.call(app, callOf("/")));
    let taken = 0;
    // An isolate that gives no sign of life for a moment, on a busy machine, is given nothing meanwhile.
    for (let tries = 0; tries < 20 && taken !== 5; tries++) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => pool.call(app, callOf("/"))));
      const codes = answers.map(codeOf);
      taken = codes.filter((code) => code === "response").length;
      assert.ok(taken >= 3 && taken <= 5, `${taken} were taken`);
      assert.equal(codes.filter((code) => code === "overloaded").length, 8 - taken);
    }
    assert.equal(taken, 5);
  });
});

Deno.test("at ten times what an app can do its requests are served fresh, or sent away soon (L3)", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch() { await new Promise((r) => setTimeout(r, 20)); return new Response("x"); } };`,
      { limits: { requestsMax: 1, isolatesMax: 1 } },
    );
    await textOf(await pool.call(app, callOf("/")));
    const served: number[] = [], sentAway: number[] = [];
    const one = async () => {
      const begunMs = performance.now();
      const code = codeOf(await pool.call(app, callOf("/")));
      (code === "response" ? served : sentAway).push(performance.now() - begunMs);
    };
    const all: Promise<void>[] = [];
    for (const endMs = performance.now() + 4_000; performance.now() < endMs;) {
      for (let i = 0; i < 10; i++) all.push(one());
      await new Promise((r) => setTimeout(r, 20));
    }
    await Promise.all(all);
    const middle = (times: number[]) => times.sort((a, b) => a - b)[times.length >> 1] ?? Infinity;
    assert.ok(served.length > 20 && sentAway.length > served.length, `${served.length}, ${sentAway.length}`);
    assert.ok(middle(served) <= 1_000, `those who were served waited ${middle(served)} ms`);
    assert.ok(middle(sentAway) <= 2_500, `the others were told after ${middle(sentAway)} ms`);
  });
});

Deno.test("requests that compute do not stand in line inside of their isolate, where nobody bounds their time", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `export default { async fetch(_, env) {
        await env.kv.get(["k"]);
        for (const end = performance.now() + 10; performance.now() < end;);
        return new Response("x");
      } };`,
      { limits: { isolatesMax: 1 } },
    );
    await textOf(await pool.call(app, callOf("/")));
    const served: number[] = [], sentAway: number[] = [];
    const one = async () => {
      const begunMs = performance.now();
      const answer = await pool.call(app, callOf("/")), code = codeOf(answer);
      (code === "response" ? served : sentAway).push(performance.now() - begunMs);
      if (answer.kind === "error") assert.ok(answer.neverBegan);
    };
    const all: Promise<void>[] = [];
    for (const endMs = performance.now() + 5_000; performance.now() < endMs;) {
      for (let i = 0; i < 20; i++) all.push(one());
      await new Promise((r) => setTimeout(r, 20));
    }
    await Promise.all(all);
    const middle = (times: number[]) => times.sort((a, b) => a - b)[times.length >> 1] ?? Infinity;
    assert.ok(served.length > 20 && sentAway.length > served.length, `${served.length}, ${sentAway.length}`);
    assert.ok(middle(served) <= 1_000, `those who were served waited ${middle(served)} ms`);
    assert.ok(middle(sentAway) <= 2_500, `the others were told after ${middle(sentAway)} ms`);
  });
});

Deno.test("requests that only wait are not held back by those that compute: as many run as may", async () => {
  await withPool(async (pool) => {
    const app = appOf(
      `let running = 0;
      const all = Promise.withResolvers();
      export default { async fetch(request) {
        if (new URL(request.url).pathname === "/first") return new Response("");
        if (++running === 200) all.resolve();
        await Promise.race([all.promise, new Promise((r) => setTimeout(r, 20_000))]);
        return new Response(String(running));
      } };`,
      { limits: { isolatesMax: 1, requestsMax: 200 } },
    );
    await textOf(await pool.call(app, callOf("/first")));
    const answers = await Promise.all(Array.from({ length: 200 }, () => pool.call(app, callOf("/"))));
    assert.deepEqual(new Set(await Promise.all(answers.map(textOf))), new Set(["200"]), "all run at a time");
  });
});

Deno.test("thousands of reads at once do not run at once at the site", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { async fetch(_, env) {
      const reads = await Promise.all(Array.from({ length: 3_000 }, () => env.kv.get(["k"])));
      return new Response(String(reads.length));
    } };`);
    const call = callOf("/");
    const get = call.store.get.bind(call.store);
    let running = 0, most = 0;
    call.store.get = async (keys, level) => {
      most = Math.max(most, ++running);
      try {
        return await get(keys, level);
      } finally {
        running--;
      }
    };
    assert.equal(await textOf(await pool.call(app, call)), "3000");
    assert.ok(most <= 64, `${most} reads ran at once`);
  });
});

Deno.test("an answer that is none is the app's error; a bent frame's names come in lower case", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { fetch(request) {
      if (request.url.endsWith("/error")) return Response.error();
      const { charCodeAt } = String.prototype;
      // The bootstrap writes short texts unit by unit.
      String.prototype.charCodeAt = function (i) {
        const code = charCodeAt.call(this, i);
        return this.includes("x-bent") && code >= 97 && code <= 122 ? code - 32 : code;
      };
      return new Response("bent", { headers: { "x-bent": "1" } });
    } };`);
    assert.equal(codeOf(await pool.call(app, callOf("/error"))), "app_error");
    const answer = await pool.call(app, callOf("/"));
    if (answer.kind !== "response") throw new Error(codeOf(answer));
    assert.deepEqual(answer.headers.map(([name]) => name).toSorted(), ["content-type", "x-bent"]);
  });
});

Deno.test("rows that the site gives in several replies come as one answer", async () => {
  await withPool(async (pool) => {
    const app = appOf(`export default { async fetch(_, env) {
      for (let i = 0; i < 10; i++) await env.kv.set(["k", i], i);
      const many = await env.kv.getMany(Array.from({ length: 10 }, (_, i) => ["k", i]));
      const listed = [];
      for await (const { value } of env.kv.list({ prefix: ["k"] })) listed.push(value);
      return Response.json([many.map((entry) => entry.value), listed]);
    } };`);
    const call = callOf("/");
    const { get, list } = call.store;
    call.store.get = (keys, level) => get.call(call.store, keys.slice(0, 3), level);
    call.store.list = (request) => list.call(call.store, { ...request, limit: Math.min(request.limit, 3) });
    const all = Array.from({ length: 10 }, (_, i) => i);
    assert.deepEqual(JSON.parse(await textOf(await pool.call(app, call))), [all, all]);
  });
});

Deno.test("isolate that runs out of memory with unread frames ended for that reason", async () => {
  const whys: unknown[] = [];
  await withPool(async (pool) => {
    const app = appOf(HOSTILE, { limits: { ...LIMITS, cpuMs: 60_000, wallMs: 120_000 } });
    await textOf(await pool.call(app, callOf("/")));
    const hog = pool.call(app, post("/heap"));
    const unread = Array.from({ length: 20 }, () => pool.call(app, post("/")));
    assert.equal(codeOf(await hog), "isolate_killed");
    for (const answer of await Promise.all(unread)) assert.equal(await textOf(answer), "still here");
  }, { note: (_, { why }) => whys.push(why) });
  assert.deepEqual(whys, ["it ran out of memory"]);
});

/** Keys are derived on native threads, as many at a time as there are; JavaScript waits, and answers pings. */
const NATIVE = `
  const key = crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
  const derive = async (iterations) => await crypto.subtle.deriveBits(
    { name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(8), iterations }, await key, 256);
  const keepBusy = async () => { for (;;) await derive(100_000); };
  export default { async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/once") return new Response(new Uint8Array(await derive(1_000)).length);
    for (let i = 0; i < 40; i++) keepBusy();
    if (pathname === "/later") return new Response("I go on");
    await new Promise(() => {});
  } };`;

/** Which bound ends it hangs on what else the machine does: threads that take all of it also hold the event loop up. */
const OVERUSED = /CPU time|1.5 cores/;

Deno.test("native threads are charged to who has them compute (W3, W4, W5)", async (t) => {
  if (Deno.build.os !== "linux") return;
  const ended: string[] = [];
  const note = (_: string, { why }: Record<string, unknown>) => void ended.push(String(why));
  await withPool(async (pool) => {
    const app = appOf(NATIVE, { name: "native", limits: { cpuMs: 1_000, wallMs: 60_000, isolatesMax: 1 } });
    const killed = async (what: string) => {
      const deadlineMs = performance.now() + 60_000;
      for (; ended.length === 0; await new Promise((r) => setTimeout(r, 20))) {
        assert.ok(performance.now() < deadlineMs, `${what}: its threads run free`);
      }
      return ended.splice(0).join();
    };
    await t.step("one request", async () => {
      assert.equal(codeOf(await pool.call(app, post("/"))), "isolate_killed");
      assert.match(await killed("one request"), OVERUSED);
    });
    await t.step("after its answer", async () => {
      assert.equal(await textOf(await pool.call(app, post("/later"))), "I go on");
      assert.match(await killed("after its answer"), OVERUSED);
    });
    await t.step("several requests at once", async () => {
      const both = await Promise.all([pool.call(app, post("/")), pool.call(app, post("/"))]);
      assert.deepEqual(both.map(codeOf), ["isolate_killed", "isolate_killed"]);
      assert.match(await killed("several requests"), OVERUSED);
    });
    await t.step("and not to who has them compute a little", async () => {
      for (let i = 0; i < 20; i++) await textOf(await pool.call(app, callOf("/once")));
      assert.deepEqual(ended, []);
    });
  }, { note });
});
