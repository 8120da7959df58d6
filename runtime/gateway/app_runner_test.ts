import assert from "node:assert/strict";
import { type AttachedSession, StoreUnavailable } from "../../store/api/api.ts";
import { packKey } from "../../store/model/key.ts";
import { encodeCall } from "../../functions/calls/call.ts";
import { failure } from "../admin/failure.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { IsolateApp, IsolateCall } from "../isolate/call.ts";
import { RequestMetrics } from "./request_metrics.ts";
import { AppRunner, type RunnerServices, safe } from "./app_runner.ts";
import { type Arrival, NO_CONTENT } from "./arrival.ts";
import { refusalResponse } from "./link_requests.ts";
import type { RequestHead } from "./request_head.ts";
import { SessionTokens } from "./session_tokens.ts";

/** A session that has touched a position, for a replica whose disk is as far as `synced` says. */
const sessionAt = (highest: number) =>
  ({
    id: new Uint8Array(16),
    how: "new",
    ...{ highest, isDurable: highest === 0, durable: () => Promise.resolve() },
    token: () => ({}),
    get: () => Promise.resolve([]),
  }) as unknown as AttachedSession;

Deno.test("what leaves an isolate waits for what another request of its version has touched (AR4)", async () => {
  const sessions = [sessionAt(7), sessionAt(0)];
  const waitedFor: number[] = [];
  const calls: IsolateCall[] = [];
  const services = {
    site: "here",
    replica: {
      attach: () => Promise.resolve(sessions.shift()),
      isDurable: () => false,
      durable: (position: number) => {
        waitedFor.push(position);
        return Promise.resolve();
      },
    },
    isolates: {
      call: (_: IsolateApp, call: IsolateCall) => {
        calls.push(call);
        return new Promise(() => {});
      },
    },
    tokens: new SessionTokens({
      seal: () => "",
      open: () => ({ ok: false, code: "token_forged", message: "" }),
    }, () => 0),
    isolateApp: () => ({}),
    nowMs: () => 0,
    metrics: new RequestMetrics(),
  } as unknown as RunnerServices;
  const runner = new AppRunner(services);
  const version = { app: "app", version: "v" } as LiveVersion;
  const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
  for (let i = 0; i < 2; i++) {
    runner.run(arrival, { headers: [], tokens: [] } as unknown as RequestHead, version, [], true);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const [writer, reader] = calls;
  assert.ok(writer !== undefined && reader !== undefined);
  await reader.gate();
  await writer.store.get([], "session");
  await reader.gate();
  assert.deepEqual(waitedFor, [0, 7]);
});

Deno.test("who waits in vain for what it rests on to be safe is told so, wherever that is waited for", async () => {
  const silent = new StoreUnavailable("owners_unreachable", "its owners are silent");
  const session = { ...sessionAt(7), durable: () => Promise.reject(silent) };
  const services = {
    site: "here",
    replica: {
      attach: () => Promise.resolve(session),
      isDurable: () => false,
      durable: () => Promise.reject(silent),
    },
    isolates: {
      // The app's own error came through the gate; then its session touched more.
      call: async (_: IsolateApp, call: IsolateCall) => {
        await call.store.get([], "session");
        return { kind: "error", code: "app_error", message: "of the app", stack: "" };
      },
    },
    tokens: { seal: () => ({ text: "token" }) },
    answerHeaders: "always",
    redact: (_: string, text: string) => text,
    appLog: () => {},
    isolateApp: () => ({}),
    nowMs: () => 0,
    metrics: new RequestMetrics(),
  } as unknown as RunnerServices;
  const runner = new AppRunner(services);
  const version = { app: "app", version: "v" } as LiveVersion;
  const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
  const head = { headers: [], tokens: [] } as unknown as RequestHead;
  const waits: (() => Promise<unknown>)[] = [
    () => runner.run(arrival, head, version, [], true),
    () => runner.session([]),
    () => safe(session, { durable: () => Promise.resolve() }, 1),
  ];
  for (const wait of waits) {
    const error = await wait().then(() => assert.fail("it was to fail"), (thrown: unknown) => thrown);
    for (const answer of [refusalResponse(error), failure(error, { note: () => assert.fail("no fault") })]) {
      assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
      assert.equal((await answer.json()).code, "owners_unreachable");
    }
  }
});

Deno.test("a failure that only an operator can mend is not asked for again in a second", async () => {
  const answer = refusalResponse(new StoreUnavailable("disk_failed", "no space"));
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, null]);
  assert.equal((await answer.json()).retry, "operator");
});

Deno.test("an app's Server-Timing follows the platform's, and its connection headers are dropped", async () => {
  let head: [string, string][] = [
    ["server-timing", "db;dur=1"],
    ["connection", "close, x-own"],
    ["x-own", "kept"],
    ["transfer-encoding", "chunked"],
    ["keep-alive", "timeout=5"],
    ["upgrade", "h2c"],
    ["sojourn-site", "elsewhere"],
    ["server-timing", "view;dur=2"],
  ];
  const services = {
    site: "here",
    replica: {
      attach: () => Promise.resolve(sessionAt(0)),
      isDurable: () => true,
      durable: () => Promise.resolve(),
    },
    isolates: {
      call: async (_: IsolateApp, call: IsolateCall) => {
        await call.head?.(head, { open: false, named: true });
        return { kind: "response", response: new Response(null) };
      },
    },
    tokens: { seal: () => ({ text: "token" }) },
    answerHeaders: "always",
    isolateApp: () => ({}),
    nowMs: () => 0,
    metrics: new RequestMetrics(),
  } as unknown as RunnerServices;
  const version = { app: "app", version: "v" } as LiveVersion;
  const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
  const runner = new AppRunner(services);
  await runner.run(arrival, { headers: [], tokens: [] } as unknown as RequestHead, version, [], false);
  const timing = head.filter(([name]) => name === "server-timing");
  assert.equal(timing.length, 1);
  assert.match(timing[0]?.[1] ?? "", /^handoff;.*, store;.*, app;dur=[\d.]+, db;dur=1, view;dur=2$/);
  head = head.filter(([name]) => name !== "server-timing");
  assert.deepEqual(head.map(([name]) => name), [
    "x-own",
    "sojourn-site",
    "sojourn-version",
    "sojourn-session",
  ]);
});

Deno.test("an answer says where it ran, and what took how long, to who asks for it", async () => {
  const named = async (answerHeaders: "asked" | "always", asksWhere: boolean, own: [string, string][]) => {
    const head = [...own];
    const services = {
      site: "here",
      replica: { attach: () => sessionAt(0), isDurable: () => true, durable: () => Promise.resolve() },
      isolates: {
        call: async (_: IsolateApp, call: IsolateCall) => {
          await call.head?.(head, { open: false, named: false });
          return { kind: "response", response: new Response(null) };
        },
      },
      tokens: { seal: () => ({ text: "token" }) },
      answerHeaders,
      isolateApp: () => ({}),
      nowMs: () => 0,
      metrics: new RequestMetrics(),
    } as unknown as RunnerServices;
    const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
    const asked = { headers: [], tokens: [], asksWhere } as unknown as RequestHead;
    await new AppRunner(services).run(arrival, asked, { app: "app", version: "v" } as LiveVersion, [], false);
    return head;
  };
  assert.deepEqual(await named("asked", false, [["x-own", "1"]]), [["x-own", "1"]]);
  const own: [string, string][] = [["server-timing", "db;dur=1"], ["sojourn-site", "elsewhere"]];
  assert.deepEqual(await named("asked", false, own), [["server-timing", "db;dur=1"]]);
  for (const all of [await named("asked", true, own), await named("always", false, own)]) {
    assert.deepEqual(all.map(([name]) => name), ["sojourn-site", "sojourn-version", "server-timing"]);
    assert.match(all[2]?.[1] ?? "", /^handoff;.*, db;dur=1$/);
  }
});

Deno.test("below a prefix an app sets nothing for the whole host, and nowhere the session's cookie", async () => {
  const own: [string, string][] = [
    ["clear-site-data", '"*"'],
    ["strict-transport-security", "max-age=63072000; includeSubDomains"],
    ["nel", "{}"],
    ["report-to", "{}"],
    ["alt-svc", 'h3="evil.example:443"'],
    ["accept-ch", "UA"],
    ["origin-agent-cluster", "?1"],
    ["service-worker-allowed", "/"],
    ["set-cookie", "sojourn_session=x; Path=/"],
    ["set-cookie", " sojourn_session =x"],
    ["set-cookie", "=sojourn_session=x"],
    ["set-cookie", "__Host-sojourn_session=x; Secure; Path=/"],
    ["set-cookie", "own=1"],
    ["content-security-policy", "default-src 'self'"],
  ];
  const kept = async (headers: [string, string][]): Promise<string[]> => {
    const head = own.map((pair): [string, string] => [...pair]);
    const services = {
      site: "here",
      replica: {
        attach: () => Promise.resolve(sessionAt(0)),
        isDurable: () => true,
        durable: () => Promise.resolve(),
      },
      isolates: {
        call: async (_: IsolateApp, call: IsolateCall) => {
          await call.head?.(head, { open: false, named: true });
          return { kind: "response", response: new Response(null) };
        },
      },
      tokens: { seal: () => ({ text: "token" }) },
      answerHeaders: "always",
      isolateApp: () => ({}),
      nowMs: () => 0,
      metrics: new RequestMetrics(),
    } as unknown as RunnerServices;
    const version = { app: "app", version: "v" } as LiveVersion;
    const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
    await new AppRunner(services).run(
      arrival,
      { headers, tokens: [] } as unknown as RequestHead,
      version,
      [],
      false,
    );
    return head.map(([name, value]) => (name === "set-cookie" ? value : name));
  };
  const platform = ["sojourn-site", "sojourn-version", "sojourn-session", "server-timing"];
  assert.deepEqual(await kept([["x-forwarded-prefix", "/app"]]), [
    "own=1",
    "content-security-policy",
    ...platform,
  ]);
  assert.deepEqual(await kept([]), [
    ...own.slice(0, 8).map(([name]) => name),
    ...["own=1", "content-security-policy", ...platform],
  ]);
});

Deno.test("outside dev, clients are not told what only author and operator should know; the log is", async () => {
  const logged: string[] = [];
  const services = {
    site: "here",
    dev: false,
    replica: {
      attach: () => Promise.resolve(sessionAt(0)),
      isDurable: () => true,
      durable: () => Promise.resolve(),
    },
    isolates: { call: () => Promise.resolve(answer) },
    tokens: { seal: () => ({ text: "token" }) },
    answerHeaders: "always",
    isolateApp: () => ({}),
    nowMs: () => 0,
    metrics: new RequestMetrics(),
    redact: (_app: string, text: string) => text,
    appLog: ({ text }: { text: string }) => void logged.push(text),
  } as unknown as RunnerServices;
  let answer = { kind: "error", code: "", message: "", stack: "" };
  const version = { app: "app", version: "v" } as LiveVersion;
  const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
  const told = async (code: string) => {
    answer = { kind: "error", code, message: `why: ${code}`, stack: "" };
    const head = { headers: [], tokens: [] } as unknown as RequestHead;
    const outcome = await new AppRunner(services).run(arrival, head, version, [], false);
    assert(outcome.kind === "response");
    return JSON.stringify(await outcome.response.json());
  };
  assert.doesNotMatch(await told("app_error"), /why: /);
  assert.doesNotMatch(await told("not_available"), /why: /);
  assert.match(await told("row_invalid"), /why: row_invalid/);
  assert.deepEqual(logged, ["why: app_error", "why: not_available"]);
});

Deno.test("who is sent away before anything was begun is given no session: sealing costs as much as all of that (AR6)", async () => {
  const given = async (more: { readonly neverBegan?: true }) => {
    const services = {
      site: "here",
      replica: { attach: () => Promise.resolve(sessionAt(0)), isDurable: () => true },
      isolates: {
        call: () => Promise.resolve({ kind: "error", code: "overloaded", message: "too many", ...more }),
      },
      tokens: { seal: () => ({ text: "token" }) },
      isolateApp: () => ({}),
      nowMs: () => 0,
      metrics: new RequestMetrics(),
      redact: (_app: string, text: string) => text,
    } as unknown as RunnerServices;
    const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
    const head = { headers: [], tokens: [] } as unknown as RequestHead;
    const version = { app: "app", version: "v" } as LiveVersion;
    const outcome = await new AppRunner(services).run(arrival, head, version, [], false);
    assert(outcome.kind === "response");
    return [outcome.response.status, outcome.response.headers.get("sojourn-session")];
  };
  assert.deepEqual(await given({ neverBegan: true }), [503, null]);
  assert.deepEqual(await given({}), [503, "token"], "what it did before is nobody's to guess");
});

Deno.test("who came without a session is given one when something has been done in it (AR6)", async () => {
  const blank = {
    headers: [],
    tokens: [],
    tokenFrom: "none",
    reset: false,
    navigation: false,
    isCrossSite: false,
  };
  const still = { open: false, named: false };
  const given = async (
    head: Partial<RequestHead>,
    how: { open: boolean; named: boolean },
    use: (call: IsolateCall) => unknown = () => {},
  ): Promise<string[]> => {
    const told: [string, string][] = [];
    const services = {
      site: "here",
      replica: {
        attach: () => Promise.resolve({ ...sessionAt(0), get: () => Promise.resolve([undefined]) }),
        isDurable: () => true,
        durable: () => Promise.resolve(),
      },
      isolates: {
        call: async (_: IsolateApp, call: IsolateCall) => {
          await use(call);
          await call.head?.(told, how);
          return { kind: "response", response: new Response(null) };
        },
      },
      tokens: { seal: () => ({ text: "token" }) },
      answerHeaders: "always",
      limits: { keyBytes: 100, valueBytes: 100, atomicMutations: 1, atomicBytes: 100 },
      isolateApp: () => ({}),
      nowMs: () => 0,
      metrics: new RequestMetrics(),
    } as unknown as RunnerServices;
    const arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
    const version = { app: "app", version: "v" } as LiveVersion;
    await new AppRunner(services).run(
      arrival,
      { ...blank, ...head } as unknown as RequestHead,
      version,
      [],
      true,
    );
    return told.map(([name]) => name).filter((name) => name === "sojourn-session" || name === "set-cookie");
  };
  const both = ["sojourn-session", "set-cookie"];
  assert.deepEqual(await given({}, still), []);
  assert.deepEqual(await given({}, still, (call) => call.store.get([packKey(["a"])], "session")), both);
  assert.deepEqual(await given({}, { ...still, named: true }), both);
  assert.deepEqual(await given({}, { ...still, open: true }), both);
  assert.deepEqual(
    await given({ navigation: true }, still),
    both,
    "what a page loads belongs to one session",
  );
  assert.deepEqual(await given({ reset: true }, still), both);
  assert.deepEqual(await given({ tokens: ["expired"], tokenFrom: "cookie" }, still), both);
});

Deno.test("who would be sent away by the isolates is told so before a session is made for it, and is counted (AR7)", async () => {
  const metrics = new RequestMetrics(), failed: boolean[] = [];
  const services = {
    site: "here",
    replica: { attach: () => assert.fail("no session is wanted") },
    isolates: { refusal: () => "there is no room", call: () => assert.fail("nothing is called") },
    isolateApp: () => ({}),
    metrics,
    traffic: {
      arrived: () => assert.fail("nobody came in"),
      answered: (_version: unknown, _begunMs: number, has: boolean) => failed.push(has),
    },
  } as unknown as RunnerServices;
  const version = { app: "app", version: "v" } as LiveVersion;
  const runner = new AppRunner(services), head = { headers: [], tokens: [] } as unknown as RequestHead;
  for (let i = 0; i < 2; i++) {
    const arrival: Arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
    const outcome = await runner.run(arrival, head, version, [], true);
    assert.ok(outcome.kind === "response" && arrival.isSentAway);
    const { response } = outcome;
    assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "1"]);
    assert.equal(response.headers.get("content-type"), "application/problem+json");
    const { code, retry, detail } = await response.json();
    assert.deepEqual([code, retry, detail], ["overloaded", "retry", "there is no room"]);
  }
  assert.deepEqual(failed, [true, true]);
  const errors = metrics.families.find(({ name }) => name === "faas.errors");
  assert.deepEqual([...errors?.series ?? []].map((series) => "value" in series && series.value), [2]);
});

const BLANK = { tokens: [], tokenFrom: "none", reset: false, navigation: false, isCrossSite: false };
const VERSION = { app: "app", version: "v", manifest: { sessions: { room: {} } } } as unknown as LiveVersion;

/** A runner whose isolate does what the test says; texts are told without "s3cr3t". */
function runnerTo(
  run: (call: IsolateCall) => Promise<unknown>,
  more: { readonly session?: object; readonly services?: object } = {},
): { readonly services: RunnerServices; readonly runner: AppRunner; readonly logged: string[] } {
  const logged: string[] = [];
  const services = {
    site: "here",
    dev: true,
    replica: {
      attach: () => Promise.resolve(more.session ?? sessionAt(0)),
      isDurable: () => true,
      durable: () => Promise.resolve(),
    },
    isolates: { call: (_: IsolateApp, call: IsolateCall) => run(call) },
    tokens: { seal: (state: { open?: boolean }) => ({ text: `open: ${state.open}` }) },
    answerHeaders: "always",
    limits: { keyBytes: 100, valueBytes: 100, atomicMutations: 1, atomicBytes: 100 },
    isolateApp: () => ({}),
    nowMs: () => 0,
    metrics: new RequestMetrics(),
    redact: (_: string, text: string) => text.replaceAll("s3cr3t", "[secret KEY]"),
    appLog: ({ text }: { text: string }) => void logged.push(text),
    ...more.services,
  } as unknown as RunnerServices;
  return { services, runner: new AppRunner(services), logged };
}

const ARRIVAL: Arrival = { method: "GET", url: "http://h/", headers: [], content: NO_CONTENT };
const headOf = (more: object = {}) => ({ headers: [], ...BLANK, ...more }) as unknown as RequestHead;

Deno.test("a token leaves when the disk has what was touched behind the gate, too (AR1)", async () => {
  const disk = Promise.withResolvers<void>();
  const session = {
    ...{ id: new Uint8Array(16), how: "new", highest: 0, isDurable: true, token: () => ({}) },
    get: () => Promise.resolve([undefined]),
    durable: () => disk.promise,
  };
  const told: [string, string][] = [];
  let has: "nothing" | "left" = "nothing", waits: Promise<void> | void;
  const { runner } = runnerTo(async (call) => {
    await call.gate();
    Object.assign(session, { highest: 9, isDurable: false });
    await call.store.get([packKey(["a"])], "session");
    waits = call.head?.(told, { open: true, named: false });
    void waits?.then(() => has = "left");
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.equal(has, "nothing");
    disk.resolve();
    await waits;
    return { kind: "response", response: new Response() };
  }, { session });
  await runner.run(ARRIVAL, headOf(), VERSION, [], false);
  assert.equal(has, "left");
  assert.ok(told.some(([name]) => name === "sojourn-session"));
});

Deno.test("a call that fails answers with its session's token, and one that goes on with an open one (AR2, AR3)", async () => {
  const session = { ...sessionAt(0), token: (open: boolean) => ({ open }) };
  const tokenOf = async (answer: object) => {
    const { runner } = runnerTo(() => Promise.resolve(answer), { session });
    const outcome = await runner.run(ARRIVAL, headOf({ tokens: ["t"] }), VERSION, [], false);
    const headers = outcome.kind === "response" ? [...outcome.response.headers] : outcome.headers;
    return headers.find(([name]) => name === "sojourn-session")?.[1];
  };
  for (const code of ["app_error", "isolate_killed", "wall_time", "overloaded"]) {
    assert.equal(await tokenOf({ kind: "error", code, message: "" }), "open: false", code);
  }
  assert.equal(await tokenOf({ kind: "upgrade", socket: { protocol: "", bridge: () => {} } }), "open: true");
  for (const open of [true, false]) {
    const told: [string, string][] = [];
    const { runner } = runnerTo(async (call) => {
      await call.head?.(told, { open, named: false });
      return { kind: "response", response: new Response() };
    }, { session });
    await runner.run(ARRIVAL, headOf({ tokens: ["t"] }), VERSION, [], false);
    assert.ok(told.some(([name, value]) => name === "sojourn-session" && value === `open: ${open}`));
  }
});

Deno.test("lines and errors of an app leave without the values of its secrets (AR5)", async () => {
  const { runner, logged } = runnerTo((call) => {
    call.log({ level: "log", text: "a line with s3cr3t" });
    call.strayLog?.({ level: "log", text: "a stray line with s3cr3t" });
    const failed = { code: "app_error", message: "no s3cr3t", stack: "Error: no s3cr3t\n  at s3cr3t.ts" };
    return Promise.resolve({ kind: "error", ...failed });
  });
  const outcome = await runner.run(ARRIVAL, headOf(), VERSION, [], false);
  assert.ok(outcome.kind === "response");
  const answer = await outcome.response.text();
  assert.equal(logged.length, 3);
  for (const text of [answer, ...logged]) {
    assert.match(text, /\[secret KEY\]/);
    assert.doesNotMatch(text, /s3cr3t/);
  }
});

Deno.test("a session that was made for this very request is no part of its calls' ids, and one that was there is (ON3)", async () => {
  const idsOf = async (isNew: boolean, sessions: number[]) => {
    const asked: (string | undefined)[] = [];
    const stateful = {
      call: ({ once }: { once?: string }) => {
        asked.push(once);
        return Promise.resolve({ answer: new Uint8Array(), token: null });
      },
    };
    const { runner } = runnerTo(async (call) => {
      const bytes = encodeCall({ kind: "rpc", method: "step", args: new Uint8Array() });
      await call.sessions?.call({ class: "room", id: "a" }, bytes);
      return { kind: "response", response: new Response() };
    }, { services: { stateful } });
    const head = headOf({ headers: [["idempotency-key", "k"]], method: "POST", target: "/x" });
    for (const byte of sessions) {
      const state = { session: new Uint8Array(16).fill(byte) };
      await runner.run(
        { ...ARRIVAL, isNew },
        head,
        VERSION,
        [{ state, names: { of: () => "s" } }] as never,
        false,
      );
    }
    return new Set(asked);
  };
  assert.equal((await idsOf(true, [1, 2])).size, 1);
  assert.equal((await idsOf(false, [1, 2])).size, 2);
  assert.equal((await idsOf(false, [1, 1])).size, 1);
});
