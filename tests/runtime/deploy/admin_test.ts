import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { Hono } from "hono";
import { adminApp } from "../../../runtime/admin/mod.ts";
import { withProgress } from "../../../runtime/admin/progress.ts";
import type { AdminHono } from "../../../runtime/admin/services.ts";
import { AdminClient, AnswerBrokenOff } from "../../../runtime/deploy/client.ts";
import { AdminError } from "../../../runtime/deploy/admin_api.ts";
import { AdminTokens, AppTable, Deployments, type Role } from "../../../runtime/deploy/mod.ts";
import { encodeSystem } from "../../../store/model/system_value.ts";
import { readNdjson } from "../../../runtime/observe/ndjson.ts";
import { Problem } from "../../../functions/vocabulary/problem.ts";
import { memorySecrets } from "./memory_secrets.ts";
import { MemorySystem } from "./memory_system.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Three sites over one store: the root writes, edge-2 does not answer. */
async function setUp() {
  const system = new MemorySystem();
  for (const [index, id] of ["cloud", "edge-1", "edge-2"].entries()) {
    const record = { id, number: index + 1, parent: index === 0 ? null : "cloud", depth: Math.min(index, 1) };
    const rest = { tier: index === 0 ? "root" : "edge", url: `http://${id}`, linkAddress: "" };
    await system.write([{
      kind: "set",
      key: packKey(["s", "site", id]),
      value: encodeSystem({ ...record, ...rest }),
    }]);
  }
  const deployments = new Deployments({
    system,
    nowMs: () => 1,
    evaluate: (bundle) =>
      Promise.resolve(
        bundle.length === 0
          ? { ok: false, message: "it is empty", stack: "app.ts:1:1" }
          : { ok: true, manifest: { tables: { users: { key: ["name"] } } } },
      ),
  });
  const tables: AppTable[] = [];
  const secrets = await memorySecrets(system);
  const gone = { root: false, noted: [] as string[] };
  const site = async (id: string, isRoot: boolean): Promise<ReturnType<typeof adminApp>> => {
    const apps = await AppTable.open(system);
    tables.push(apps);
    return adminApp({
      site: id,
      system,
      apps,
      deployments: isRoot ? deployments : null,
      secrets: isRoot ? secrets : { ...secrets, store: null },
      nowMs: () => performance.now(),
      note: (event) => void gone.noted.push(event),
      forwardToRoot: async (request, role) => {
        if (gone.root) throw new Problem("store_unreachable", "root cannot be reached");
        return await cloud.fetch(request, { role });
      },
      forward: async (to, request, role) => {
        if (to !== "edge-1") throw new Error(`${to} is unreachable`);
        return await edge.fetch(request, { role });
      },
      forwardTwice: (to) => Promise.reject(new Error(`${to} is unreachable`)),
    });
  };
  const cloud = await site("cloud", true);
  const edge = await site("edge-1", false);
  const call = async (path: string, role: Role | null = "admin", init: RequestInit = {}) =>
    await edge.fetch(new Request(`http://edge-1/_sojourn/admin${path}`, init), { role });
  const close = () => tables.forEach((table) => table.close());
  return { system, cloud, edge, gone, call, close };
}

const post = (body: string): RequestInit => ({ method: "POST", body });

Deno.test("a deploy through an edge reaches the root, and the answer names the sites that have it", async () => {
  const { call, close } = await setUp();
  const answer = await call("/deploy?app=shop&waitMs=200", "deploy", post("code"));
  assert.equal(answer.status, 200);
  const deployed = await answer.json();
  assert.equal(deployed.app, "shop");
  assert.deepEqual(deployed.sites.map((site: { id: string }) => site.id).sort(), ["cloud", "edge-1"]);
  assert.deepEqual(deployed.missing, ["edge-2"]);
  const apps = await (await call("/apps")).json();
  assert.deepEqual([apps[0].app, apps[0].version, apps[0].tables], ["shop", deployed.version, ["users"]]);
  close();
});

Deno.test("a refused deploy says why and where", async () => {
  const { call, close } = await setUp();
  const answer = await call("/deploy?app=shop", "deploy", post(""));
  assert.equal(answer.status, 422);
  const problem = await answer.json();
  assert.deepEqual([problem.code, problem.detail, problem.place], [
    "deploy_invalid",
    "it is empty",
    "app.ts:1:1",
  ]);
  close();
});

Deno.test("a root that cannot be reached, and a disk that fails, are told as what they are", async (t) => {
  const { system, cloud, edge, gone, call, close } = await setUp();
  await call("/deploy?app=shop", "deploy", post("code"));
  const progress = { accept: "application/x-ndjson" };
  const url = "http://here/_sojourn/admin/apps/shop";
  await t.step("at a site whose root is away", async () => {
    gone.root = true;
    const answer = await edge.fetch(new Request(url, { method: "DELETE", headers: progress }), {
      role: "admin",
    });
    assert.deepEqual([answer.status, (await answer.json()).code], [503, "store_unreachable"]);
  });
  await t.step("in an answer that has begun", async () => {
    system.failAfterWrites = 0;
    const answer = await cloud.fetch(new Request(url, { method: "DELETE", headers: progress }), {
      role: "admin",
    });
    const last = JSON.parse((await answer.text()).trim().split("\n").at(-1) ?? "");
    assert.deepEqual([last.status, last.body.code, last.body.detail], [
      500,
      "admin_failed",
      "the disk is full",
    ]);
  });
  assert.deepEqual(gone.noted.filter((event) => event !== "site_silent"), ["admin_failed"]);
  close();
});

Deno.test("an admin call needs a token with the right role", async (t) => {
  const { call, close } = await setUp();
  await call("/deploy?app=shop", "deploy", post("code"));
  const cases: [string, Role | null, RequestInit, number][] = [
    ["/apps", null, {}, 401],
    ["/apps", "read", {}, 200],
    ["/deploy", "read", post("x"), 403],
    ["/apps/shop/rollback", "read", post(""), 403],
    ["/apps/shop/rollback", "deploy", post(""), 404],
    ["/apps/other/versions", "read", {}, 404],
    ["/apps/shop/rows?prefix=026b7600", "deploy", {}, 403],
    ["/apps/shop/rows?prefix=026b7600", "admin", {}, 200],
    ["/apps/shop/rows?prefix=", "admin", {}, 404],
    ["/apps/shop/rows?prefix=zz", "admin", {}, 404],
    ["/queues", "admin", {}, 501],
  ];
  for (const [path, role, init, status] of cases) {
    await t.step(`${init.method ?? "GET"} ${path} as ${role}: ${status}`, async () => {
      const answer = await call(path, role, init);
      assert.equal(answer.status, status, await answer.clone().text());
      await answer.body?.cancel();
    });
  }
  close();
});

Deno.test("rows are shown within the app only", async () => {
  const { system, call, close } = await setUp();
  await call("/deploy?app=shop", "deploy", post("code"));
  const put = (key: string[], value: unknown) =>
    system.write([{ kind: "set", key: packKey(key), value: encodeValue(value) }]);
  await put(["a", "shop", "kv", "greeting"], "hello");
  await put(["a", "shopper", "kv", "greeting"], "not yours");
  await put(["r", "shop", "t", "users", "ann"], { name: "ann" });
  const rows = async (parts: string[]) => {
    const prefix = Array.from(packKey(parts), (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
    return await (await call(`/apps/shop/rows?prefix=${prefix}`)).json();
  };
  assert.equal((await rows(["kv"])).length, 1);
  assert.equal((await rows(["root", "t", "users"])).length, 1);
  close();
});

Deno.test("the client reports problems by code, and a site that is not there", async () => {
  const { edge, close } = await setUp();
  const tokens = new AdminTokens("read 0123456789abcdef # ops\n\nfedcba9876543210\n");
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request) => await edge.fetch(request, { role: tokens.roleOf(request.headers) }),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  const admin = new AdminClient({ url, token: "fedcba9876543210" });
  const deployed = await admin.deploy({ bundle: bytes("code"), fallback: "shop", waitMs: 100 });
  assert.equal(deployed.changed, true);
  assert.equal((await admin.versions("shop"))[0]?.version, deployed.version);
  assert.deepEqual((await admin.sites()).map((site) => site.id), ["cloud", "edge-1", "edge-2"]);
  assert.deepEqual(await admin.rows("shop", { prefix: packKey(["kv"]), limit: 5 }), []);
  const reader = new AdminClient({ url, token: "0123456789abcdef" });
  await assert.rejects(
    reader.rollback("shop", undefined, 0),
    (error: unknown) => error instanceof AdminError && error.code === "admin_role",
  );
  await server.shutdown();
  await assert.rejects(
    admin.apps(),
    (error: unknown) => error instanceof AdminError && error.code === "site_unreachable",
  );
  close();
});

Deno.test("a read of a site that stands still ends, and says what did not come", async (t) => {
  const hold = Promise.withResolvers<void>();
  for (
    const [where, answer] of [
      ["before the head", () => hold.promise.then(() => new Response())],
      ["in the body", () => new Response(new ReadableStream({ start: (c) => c.enqueue(bytes("[")) }))],
    ] as const
  ) {
    await t.step(where, async () => {
      const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, answer);
      const admin = new AdminClient({ url: `http://127.0.0.1:${server.addr.port}`, readMs: 50 });
      await assert.rejects(
        admin.apps(),
        (error: unknown) =>
          error instanceof AdminError && error.code === "site_unreachable" &&
          error.message.includes("nothing came in 50 ms"),
      );
      hold.resolve();
      await server.shutdown();
    });
  }
});

/** A site whose answers are these, and how a change of it fails. */
async function failureOfChange(
  answer: () => Response | Promise<Response>,
  change: (admin: AdminClient) => Promise<unknown>,
  patience: { changeMs?: number; silenceMs?: number },
): Promise<AdminError> {
  const stop = new AbortController();
  const { signal } = stop;
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", signal, onListen: () => {} }, answer);
  const url = `http://127.0.0.1:${server.addr.port}`;
  try {
    await change(new AdminClient({ url, ...patience }));
    assert.fail("the change came to an end");
  } catch (error) {
    if (!(error instanceof AdminError)) throw error;
    return error;
  } finally {
    stop.abort(); // no shutdown, which waits for answers that never end
    await server.finished;
  }
}

Deno.test("a change at a site that stands still ends, and says that nobody knows what became of it", async (t) => {
  const hold = Promise.withResolvers<void>();
  const nothing = () => hold.promise.then(() => new Response());
  const then = (...lines: string[]) => () =>
    new Response(new ReadableStream({ start: (c) => lines.forEach((line) => c.enqueue(bytes(line))) }));
  const rollback = (admin: AdminClient) => admin.rollback("shop", undefined, 0);
  const secret = (admin: AdminClient) => admin.deleteSecret("shop", "KEY");
  await t.step("before the head, and told line by line", async () => {
    const error = await failureOfChange(nothing, rollback, { changeMs: 300 });
    assert(error instanceof AnswerBrokenOff);
    assert.match(error.message, /nothing came within 0.3 s/);
  });
  await t.step("before the head, in one answer", async () => {
    const error = await failureOfChange(nothing, secret, { changeMs: 300 });
    assert.match(error.message, /nothing came in 300 ms; whether it was done is not known/);
  });
  hold.resolve();
  await t.step("between two lines", async () => {
    const line = JSON.stringify({ event: "site", id: "edge-1", ms: 3 });
    const error = await failureOfChange(then("\n", line + "\n"), rollback, { silenceMs: 200 });
    assert(error instanceof AnswerBrokenOff);
    assert.match(error.message, /broken off: .*nothing came within 0.2 s/);
  });
});

Deno.test("an answer of a change gives signs of life while it has nothing to tell", async () => {
  const done = Promise.withResolvers<Response>();
  const site: AdminHono = new Hono();
  site.post("/", (c) => withProgress({ note: () => {} }, c, () => done.promise, 10));
  const init = { method: "POST", headers: { accept: "application/x-ndjson" } };
  const answer = await site.request("/", init);
  const lines = readNdjson(answer.body ?? new ReadableStream());
  for (let i = 0; i < 3; i++) assert.deepEqual(await lines.next(), { done: false, value: undefined });
  done.resolve(Response.json({ did: "it" }));
  let last: unknown;
  for await (const line of lines) last = line ?? last;
  assert.deepEqual(last, { event: "answer", status: 200, body: { did: "it" } });
});
