/** Cron jobs in an isolate: what the handler is given, when it has ended, and what bounds it. */
import assert from "node:assert/strict";
import { type IsolateAnswer, IsolatePool } from "../../../runtime/isolate/mod.ts";
import type { ScheduledCall } from "../../../runtime/isolate/call.ts";
import { packKey } from "../../../store/model/key.ts";
import { appOf, callOf, MemoryStore } from "./apps.ts";

const DUE_MS = Date.UTC(2026, 10, 21, 3);

/** Runs a job of an app once. */
async function runOnce(
  pool: IsolatePool,
  app: ReturnType<typeof appOf>,
  more: { name?: string; store?: MemoryStore; limits?: ScheduledCall["limits"] } = {},
) {
  const said: string[] = [];
  let retry = true;
  const { name = "nightly", store = new MemoryStore(), limits = { wallMs: 10_000, cpuMs: 5_000 } } = more;
  const answer = await pool.call(app, {
    ...callOf(new Request("http://localhost/", { method: "POST" }), {
      store,
      log: ({ text }) => void said.push(text),
    }),
    scheduled: { name, cron: "0 3 * * *", scheduledTime: DUE_MS, noRetry: () => retry = false, limits },
  });
  return { answer, said, retry, outcome: outcomeOf(answer) };
}

const outcomeOf = (answer: IsolateAnswer): string =>
  answer.kind === "error"
    ? `${answer.code}: ${answer.message}`
    : answer.kind === "response"
    ? "done"
    : "upgrade";

const APP = appOf(`
  import { AsyncLocalStorage } from "node:async_hooks";
  const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  let calls = 0;
  export default {
    fetch: () => new Response("fetched"),
    async scheduled(event, env, ctx) {
      calls++;
      switch (event.name) {
        case "nightly":
          console.log(JSON.stringify([event.type, event.name, event.cron, event.scheduledTime]));
          console.log(typeof ctx.waitUntil, ctx.site, ctx.session.id, typeof env.kv.get);
          return await env.kv.set(["ran", event.name], event.scheduledTime);
        case "waits":
          ctx.waitUntil(later(30).then(() => ctx.waitUntil(later(30).then(() => env.kv.set(["late"], 1)))));
          return;
        case "throws":
          throw new RangeError("not today");
        case "waits-in-vain":
          ctx.waitUntil(later(10).then(() => { throw new Error("too late"); }));
          return;
        case "gives-up":
          event.noRetry();
          throw new Error("never");
        case "never-ends":
          return await new Promise(() => {});
        case "computes":
        case "goes-on-computing":
          for (let i = 0; i < 40 || event.name === "goes-on-computing"; i++) {
            for (const until = performance.now() + 50; performance.now() < until;);
            await later(0);
          }
          return;
        case "loops":
          for (;;);
      }
    },
  };`);

Deno.test("a scheduled handler is given its event, and has ended when what it began has", async (t) => {
  const pool = new IsolatePool({ spares: 0 });
  const store = new MemoryStore();
  try {
    await t.step("the event is that of Workers, with the job's name", async () => {
      const { outcome, said } = await runOnce(pool, APP, { store });
      assert.equal(outcome, "done");
      assert.deepEqual(said, [
        `["scheduled","nightly","0 3 * * *",${DUE_MS}]`,
        "function edge-1 s1 function",
      ]);
      assert(store.rows.has(packKey(["kv", "ran", "nightly"])));
    });
    await t.step("waitUntil work is part of it", async () => {
      assert.equal((await runOnce(pool, APP, { name: "waits", store })).outcome, "done");
      assert(store.rows.has(packKey(["kv", "late"])));
    });
    const failing: [name: string, outcome: RegExp, retry: boolean][] = [
      ["throws", /^app_error: not today$/, true],
      ["waits-in-vain", /^app_error: too late$/, true],
      ["gives-up", /^app_error: never$/, false],
    ];
    for (const [name, expected, mayRetry] of failing) {
      await t.step(`a job that ${name.replaceAll("-", " ")} fails`, async () => {
        const { outcome, retry } = await runOnce(pool, APP, { name });
        assert.match(outcome, expected);
        assert.equal(retry, mayRetry);
      });
    }
    await t.step("one that never ends is given up", async () => {
      const { outcome } = await runOnce(pool, APP, {
        name: "never-ends",
        limits: { wallMs: 300, cpuMs: 1_000 },
      });
      assert.match(outcome, /^wall_time: the handler did not end in 300 ms/);
    });
    await t.step("requests go on beside it", async () => {
      const slow = runOnce(pool, APP, { name: "waits" });
      const answer = await pool.call(APP, callOf("/"));
      assert(answer.kind === "response" && await answer.response.text() === "fetched");
      assert.equal((await slow).outcome, "done");
    });
    await t.step("an app without the handler says so", async () => {
      const { outcome } = await runOnce(pool, appOf("export default { fetch: () => new Response() };"));
      assert.match(outcome, /the app has no scheduled handler/);
    });
  } finally {
    await pool.close();
  }
});

Deno.test("a scheduled handler may use more CPU than a request, and hold the event loop no longer", async (t) => {
  const pool = new IsolatePool({ spares: 0 });
  const app = { ...APP, version: "bounded", limits: { ...APP.limits, cpuMs: 400 } };
  try {
    await t.step("in turns", async () => {
      const { outcome } = await runOnce(pool, app, {
        name: "computes",
        limits: { wallMs: 60_000, cpuMs: 30_000 },
      });
      assert.equal(outcome, "done");
    });
    await t.step("in turns, up to its own limit", async () => {
      const { outcome } = await runOnce(pool, app, {
        name: "goes-on-computing", // a busy machine may give two seconds of "computes" less than the limit
        limits: { wallMs: 60_000, cpuMs: 600 },
      });
      assert.match(outcome, /isolate_killed: .*more than 600 ms of CPU time/);
    });
    await t.step("at once", async () => {
      const { outcome } = await runOnce(pool, app, {
        name: "loops",
        limits: { wallMs: 60_000, cpuMs: 30_000 },
      });
      assert.match(outcome, /isolate_killed: .*held the event loop for more than 400 ms/);
    });
  } finally {
    await pool.close();
  }
});
