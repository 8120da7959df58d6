/** Env and manifest of apps of every kind; the running request's env. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { Hono } from "hono";
import { z } from "zod";
import { ambientKv, CONTEXT_SLOT, env as ambientEnv } from "../../functions/context.ts";
import { type BaseEnv, defineApp, type EnvOf, table } from "../../functions/define.ts";
import { buildEnv, type EnvServices } from "../../functions/env.ts";
import { codeOf } from "../../functions/vocabulary/errors.ts";
import { parseManifest, readManifest } from "../../functions/manifest.ts";
import { Session } from "../../functions/class/session.ts";
import { MemoryStore } from "./memory_store.ts";
import sample from "./sample_app.ts";

const services = (more: Partial<EnvServices> = {}): EnvServices => ({
  store: new MemoryStore(),
  vars: {},
  ...more,
});

Deno.test("the sample app's manifest says all that it declares (manifest.ts M2)", () => {
  const manifest = readManifest(sample);
  assert.deepEqual(manifest, {
    tables: {
      users: { key: ["name"], indexes: {}, consistency: "session", at: "root" },
      orders: { key: ["by", "id"], indexes: { newest: ["by", "at"] }, consistency: "session" },
    },
    queues: { sms: { f: 1, maxAttempts: 5 } },
    sessions: { card: { durability: "owners", whenThrown: "reject", standby: false, methods: ["stamp"] } },
    secrets: { PEPPER: { at: "root" }, SMS_KEY: {} },
    vars: { CURRENCY: "EUR" },
    routes: { "/login/*": { at: "root" } },
    cron: { nightly: "0 3 * * *" },
    fetchHosts: ["api.sms.example"],
    assets: "./public",
    handlers: ["fetch", "scheduled", "queue"],
  });
  assert.deepEqual(parseManifest(JSON.parse(JSON.stringify(manifest))), manifest);
});

Deno.test("a module without declarations is an app: an object with fetch, a Hono app, a class instance", () => {
  const hono = new Hono().get("/", (c) => c.text("hi"));
  const instance = new (class {
    fetch() {
      return new Response();
    }
  })();
  for (const app of [{ fetch: () => new Response() }, hono, instance]) {
    const { handlers, routes, tables } = readManifest(app);
    assert.deepEqual({ handlers, routes, tables }, { handlers: ["fetch"], routes: {}, tables: {} });
  }
});

Deno.test("a manifest has all of its fields, whatever of them was left out (manifest.ts M1)", () => {
  const none = { queues: {}, sessions: {}, secrets: {}, vars: {}, routes: {}, cron: {}, fetchHosts: [] };
  const handlers = ["fetch"];
  assert.deepEqual(parseManifest({ handlers }), { ...none, tables: {}, handlers });
  const read = parseManifest({ handlers, tables: { t: { key: ["id"] } }, queues: { q: {} } });
  assert.deepEqual(read.tables, { t: { key: ["id"], indexes: {}, consistency: "session" } });
  assert.deepEqual(read.queues, { q: { f: 1, maxAttempts: 5 } });
});

Deno.test("a bad declaration is refused with path, value and what was expected (manifest.ts M3)", () => {
  const fetch = () => new Response();
  const schema = z.object({ id: z.string() });
  const good = table({ schema, key: ["id"] });
  const many = (count: number, value: unknown, start = "n") =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`${start}${at}`, value]));
  const refused: [unknown, string, RegExp, RegExp][] = [
    [undefined, "default", /undefined/, /default export with a fetch/],
    [{}, "handlers", /\[\]/, /at least one handler/],
    [{ fetch: 1 }, "handlers", /\[\]/, /at least one handler/],
    [{ fetch, name: "Shop" }, "name", /"Shop"/, /lower-case letter/],
    [{ fetch, tables: { t: {} } }, "tables.t.schema", /undefined/, /Standard Schema/],
    [{ fetch, tables: { t: null } }, "tables.t.schema", /undefined/, /Standard Schema/],
    [{ fetch, tables: { "a b": good } }, "tables.a b", /"a b"/, /a name: a letter/],
    [{ fetch, tables: { t: { ...good, key: [] } } }, "tables.t.key", /\[\]/, />=1|at least/],
    [
      { fetch, tables: { t: { ...good, key: ["id", "id"] } } },
      "tables.t.key",
      /"id","id"/,
      /each field once/,
    ],
    [{ fetch, tables: { t: { ...good, at: "edge" } } }, "tables.t.at", /"edge"/, /"root"/],
    [{ fetch, sessions: { card: class {} } }, "sessions.card", /a function/, /extends Session/],
    [{ fetch, sessions: { card: {} } }, "sessions.card", /\{\}/, /extends Session/],
    [{ fetch, vars: { A: 1 } }, "vars.A", /1/, /string/],
    [{ fetch, routes: { "login": { at: "root" } } }, "routes.login", /"login"/, /URLPattern path/],
    [{ fetch, routes: { "/(": { at: "root" } } }, "routes./(", /"\/\("/, /URLPattern path/],
    [{ fetch, routes: { "/:id(\\d+)": { at: "root" } } }, "routes./:id(\\d+)", /id/, /expression/],
    [{ fetch, routes: many(65, { at: "root" }, "/:id/") }, "routes", /65 patterns/, /at most 64/],
    [{ fetch, routes: many(1_001, { at: "root" }, "/") }, "routes", /1001 routes/, /at most 1000/],
    [
      { fetch, tables: { ["__proto__"]: { schema, key: ["id"] } } },
      "tables.__proto__",
      /__proto__/,
      /another name/,
    ],
    [
      { fetch, tables: { t: { ...good, indexes: { ["__proto__"]: ["id"] } } } },
      "tables.t.indexes.__proto__",
      /__proto__/,
      /another name/,
    ],
    [{ fetch, vars: JSON.parse('{"__proto__":"x"}') }, "vars.__proto__", /__proto__/, /another name/],
    [
      { fetch, sessions: { ["__proto__"]: class extends Session {} } },
      "sessions.__proto__",
      /__proto__/,
      /another name/,
    ],
    [{ fetch, secrets: { ["__proto__"]: {} } }, "secrets.__proto__", /__proto__/, /another name/],
    [
      { fetch, scheduled: fetch, cron: { ["__proto__"]: "0 3 * * *" } },
      "cron.__proto__",
      /__proto__/,
      /another name/,
    ],
    [{ fetch, routes: { ["__proto__"]: { at: "root" } } }, "routes.__proto__", /__proto__/, /another name/],
    [{ fetch, vars: { __proto__: { A: "x" } } }, "vars", /\{\}/, /inherits nothing/],
    [{ fetch, routes: { "/a": { at: "cloud" } } }, "routes./a.at", /"cloud"/, /"root"\|"core"\|"edge"/],
    [{ fetch, cron: { nightly: "0 25 * * *" } }, "cron.nightly", /25/, /five fields/],
    [{ fetch, cron: { nightly: "daily" } }, "cron.nightly", /daily/, /five fields/],
    [{ fetch, cron: { nightly: "0 3 * * *" } }, "cron", /nightly/, /a scheduled handler/],
    [{ fetch, scheduled: fetch, cron: many(101, "0 3 * * *") }, "cron", /101 jobs/, /at most 100/],
    [{ fetch, vars: many(17, "x".repeat(65_000)) }, "default", /\d{7} characters/, /at most 1048576/],
    [{ fetch, fetchHosts: ["https://a.example"] }, "fetchHosts.0", /https/, /host or host:port/],
  ];
  for (const [app, path, value, expected] of refused) {
    assert.throws(
      () => readManifest(app),
      (error: Error & { detail?: { issues?: Record<string, string>[] } }) => {
        assert.equal(codeOf(error), "deploy_invalid");
        const issue = error.detail?.issues?.[0];
        assert.equal(issue?.["path"], path);
        assert.match(issue?.["value"] ?? "", value);
        assert.match(issue?.["expected"] ?? "", expected);
        return true;
      },
    );
  }
  for (const cron of ["* * * * *", "*/5 0-6,12 1 1-12/2 0,7"]) {
    readManifest({ scheduled: fetch, cron: { c: cron } });
  }
  const primary = { fetch, tables: { t: { ...good, consistency: "primary" } } };
  assert.throws(() => readManifest(primary), {
    code: "not_available",
    message: /tables.t.consistency: "primary"/,
  });
});

Deno.test("an env has kv, vars and tables, and refuses what is not built", async () => {
  const resources = {
    tables: { notes: table({ schema: z.object({ id: z.string() }), key: ["id"] }) },
    secrets: { KEY: {}, PEPPER: { at: "root" } },
    vars: { A: "declared", B: "declared" },
  } as const;
  const app = defineApp({ ...resources, fetch: () => new Response() });
  const given = services({ vars: { B: "set", C: "more" }, secrets: { KEY: "k" }, remoteAddr: "[::1]:80" });
  const env = buildEnv(app, given) as EnvOf<typeof resources>;
  assert.deepEqual(env.vars, { A: "declared", B: "set", C: "more" });
  assert.deepEqual(env.remoteAddr, { transport: "tcp", hostname: "::1", port: 80 });
  await env.completed;
  await env.tables.notes.put({ id: "1" });
  assert.equal(env.tables.notes, env.tables.notes);
  assert.equal((await env.tables.notes.get(["1"]))?.value.id, "1");
  await env.kv.set(["a"], 1);
  assert.equal((await env.kv.get(["a"])).value, 1);
  assert.equal(env.secrets.KEY, "k");
  assert.throws(() => env.secrets.PEPPER, {
    code: "not_available",
    message: "the secret PEPPER has no value: sojourn secrets APP set PEPPER",
  });
  const below = buildEnv(app, { ...given, app: "shop", atRoot: false }) as typeof env;
  assert.throws(() => below.secrets.PEPPER, { code: "not_available", message: /kept at the root/ });
  assert.equal((env.secrets as { OTHER?: string }).OTHER, undefined);
  assert.equal(JSON.stringify(env.secrets), "{}", "a printed env shows no secret");
  assert.deepEqual(buildEnv({}, services()).remoteAddr.hostname, "");
});

Deno.test("two requests' envs reach their own stores only (N1)", async () => {
  const app = { tables: { notes: table({ schema: z.object({ id: z.string() }), key: ["id"] }) } };
  const [a, b] = [buildEnv(app, services()), buildEnv(app, services())] as EnvOf<typeof app>[];
  await a?.tables.notes.put({ id: "1" });
  assert.equal(await b?.tables.notes.get(["1"]), null);
});

Deno.test("queues and stateful sessions throw not_available when used where nobody carries them (env.ts N2)", async () => {
  const env = buildEnv(sample, services()) as EnvOf<
    { queues: { sms: NonNullable<typeof sample.queues>["sms"] } },
    { card: { stamp(): number } }
  >;
  assert.ok("sms" in env.queues);
  await assert.rejects(async () => await env.queues.sms.send({ to: "a", text: "b" }), {
    code: "not_available",
  });
  await assert.rejects(async () => await env.sessions.card.get("1").stamp(), { code: "not_available" });
  const Card = sample.sessions?.card;
  assert.throws(() => Card && new Card(), { code: "not_available", message: /stateful session/ });
});

Deno.test("an uncaught row_invalid leaves a Hono app's fetch (E2)", async () => {
  const tables = { notes: table({ schema: z.object({ id: z.string() }), key: ["id"] }) };
  const http = new Hono<{ Bindings: EnvOf<{ tables: typeof tables }> }>();
  http.use(async (_, next) => await next());
  http.post("/notes", async (c) => c.json(await c.env.tables.notes.put(await c.req.json())));
  const send = async (row: unknown) =>
    await http.request(
      "/notes",
      { method: "POST", body: JSON.stringify(row) },
      buildEnv({ tables }, services()),
    );
  assert.equal((await send({ id: "1" })).status, 200);
  await assert.rejects(() => send({ id: 1 }), { code: "row_invalid" });
});

Deno.test("the ambient env and kv are the running request's, and throw where none runs (X1)", async () => {
  const running = new AsyncLocalStorage<BaseEnv>();
  Object.defineProperty(globalThis, CONTEXT_SLOT, {
    configurable: true,
    value: { current: () => running.getStore() },
  });
  try {
    assert.throws(() => ambientEnv.kv, { code: "no_request" });
    await assert.rejects(async () => await ambientKv.get(["a"]), { code: "no_request" });
    const app = { vars: { NAME: "x" } };
    await running.run(buildEnv(app, services()), async () => {
      await ambientKv.set(["a"], 1);
      assert.equal((await ambientEnv.kv.get(["a"])).value, 1);
      assert.equal(ambientEnv.vars["NAME"], "x");
      assert.ok("kv" in ambientEnv && Object.keys(ambientEnv).includes("vars"));
      assert.equal(Reflect.set(ambientEnv, "kv", null), false);
    });
    await running.run(buildEnv(app, services()), async () => {
      assert.equal((await ambientKv.get(["a"])).value, null);
    });
  } finally {
    Reflect.deleteProperty(globalThis, CONTEXT_SLOT);
  }
});

Deno.test("declared variables and secrets are also env.NAME, as in Workers, but for the platform's names (N3)", () => {
  const app = {
    fetch: () => new Response(),
    vars: { GREETING: "hello", kv: "mine", constructor: "mine", remoteAddr: "mine" },
    secrets: { KEY: {}, NONE: {} },
  };
  const env = buildEnv(app, services({ vars: { GREETING: "given" }, secrets: { KEY: "k", OTHER: "o" } }));
  const named = env as unknown as Record<string, unknown>;
  assert.deepEqual([named["GREETING"], named["KEY"], named["OTHER"]], ["given", "k", undefined]);
  assert.throws(() => named["NONE"], /the secret NONE has no value/);
  assert.equal(typeof env.kv.get, "function");
  assert.equal(typeof named["constructor"], "function");
  assert.equal(env.remoteAddr.transport, "tcp");
  assert.ok(!Deno.inspect(env).includes(`"k"`));
  const other = buildEnv({ fetch: app.fetch }, services()) as unknown as Record<string, unknown>;
  assert.equal(other["GREETING"], undefined);
});

Deno.test("env.ASSETS fetches an app's own files, and says where there are none", async () => {
  const asked: string[] = [];
  const assets = (request: Request) => {
    asked.push(request.url);
    return Promise.resolve(new Response("a file"));
  };
  const own = buildEnv({ assets: "./public" }, services({ assets }));
  assert.equal(await (await own.ASSETS.fetch("http://any.example/x.txt")).text(), "a file");
  assert.deepEqual(asked, ["http://any.example/x.txt"]);
  await assert.rejects(
    buildEnv({}, services({ assets })).ASSETS.fetch("http://any.example/x.txt"),
    (error) => codeOf(error) === "not_available",
  );
});

Deno.test("a stateful session names its origin in the manifest, when it is an address", () => {
  const fetch = () => new Response();
  class Line extends Session {
    static origin = "tcp://127.0.0.1:7000";
  }
  assert.equal(readManifest({ fetch, sessions: { line: Line } }).sessions.line?.origin, Line.origin);
  Line.origin = "127.0.0.1:7000";
  assert.throws(() => readManifest({ fetch, sessions: { line: Line } }), { code: "deploy_invalid" });
});

Deno.test("a stateful session says who holds its log", () => {
  const fetch = () => new Response();
  class Game extends Session {
    static durability = "hosts";
  }
  assert.equal(readManifest({ fetch, sessions: { game: Game } }).sessions.game?.durability, "hosts");
  class Wrong extends Session {
    static durability = "nobody";
  }
  assert.throws(() => readManifest({ fetch, sessions: { game: Wrong } }), { code: "deploy_invalid" });
  class Base extends Session {
    inherited(): void {}
  }
  class Plain extends Base {
    static durability = "owners";
    field = (): void => {};
    get got(): number {
      return 1;
    }
    override onTimer(): void {}
    override fetch(): Response {
      return new Response();
    }
    own(): void {}
  }
  assert.deepEqual(readManifest({ fetch, sessions: { plain: Plain } }).sessions, {
    plain: { durability: "owners", whenThrown: "reject", standby: false, methods: ["own", "inherited"] },
  });
});
