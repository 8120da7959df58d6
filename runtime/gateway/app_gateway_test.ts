import { INERT } from "../telemetry/mod.ts";
import { RequestTelemetry } from "./request_telemetry.ts";
import { strict as assert } from "node:assert";
import type { TokenState } from "../../store/api/api.ts";
import { deriveKeyRing, openToken, sealToken } from "../../store/session/token.ts";
import type { AppTable } from "../deploy/app_table.ts";
import type { Tier } from "../../functions/define.ts";
import { addressOf } from "./address.ts";
import { AppGateway } from "./app_gateway.ts";
import type { AppRunner } from "./app_runner.ts";
import { NO_CONTENT, respond } from "./arrival.ts";
import { decodeRequestHead, encodeAnswerHead, type ForwardedRequest } from "./forward.ts";
import type { RequestLinks } from "../../functions/vocabulary/site_links.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { SessionTokens } from "./session_tokens.ts";

const STATE: TokenState = {
  session: new Uint8Array(16),
  sequence: 0,
  replica: 1,
  clock: 1,
  path: [1],
  open: false,
};

function setUp(tier: Tier, links: Partial<RequestLinks> = {}, live: object = {}) {
  const ring = deriveKeyRing([new Uint8Array(32)]);
  const random = { bytes: (length: number) => new Uint8Array(length) };
  const tokens = new SessionTokens({
    seal: (state) => sealToken(state, ring, { nowMs: 1.8e12, random }),
    open: (text) => openToken(text, ring, 1.8e12),
  }, () => 1.8e12);
  const counted: string[] = [];
  const traffic = { answered: (version: { app: string }) => void counted.push(version.app) };
  const ran: { target: string; fromClient: boolean }[] = [];
  const sent: { to: string; kind: string; head: ForwardedRequest }[] = [];
  const current = {
    app: "book",
    version: "0".repeat(64),
    tierOf: (path: string): Tier | null =>
      path.startsWith("/long/")
        ? null
        : path.startsWith("/root/")
        ? "root"
        : path.startsWith("/core/")
        ? "core"
        : "edge",
  };
  const gateway = new AppGateway({
    telemetry: new RequestTelemetry("edge-1", INERT),
    tier,
    parent: tier === "root" ? null : "above",
    assets: {
      answerHeaders: "asked" as const,
      site: "edge-1",
      traffic,
      reader: { body: (content) => Promise.resolve(content.sha256.slice(0, 3)) },
    },
    links: {
      request: (to, kind, head) => {
        sent.push({ to, kind, head: decodeRequestHead(head) });
        const headers: [string, string][] = [["sojourn-session", "token-from-above"], [
          "sojourn-site",
          "above",
        ]];
        return Promise.resolve({ head: encodeAnswerHead({ status: 200, headers }), body: null });
      },
      ...links,
    },
    apps: {
      get: (name: string) => name === "book" ? { name, current, ...live } : undefined,
      version: () => Promise.resolve(undefined),
    } as unknown as AppTable,
    tokens,
    runner: {
      newSession: () => Promise.resolve({ text: "", state: STATE, issuedMs: 0 }),
      run: (
        _arrival: unknown,
        head: { target: string },
        _version: unknown,
        _tokens: unknown,
        fromClient: boolean,
      ) => {
        ran.push({ target: head.target, fromClient });
        return Promise.resolve(respond(new Response("ran here")));
      },
    } as unknown as AppRunner,
    headerBytesMax: 1024,
    bodyBytesMax: 100,
  });
  const handle = (
    url: string,
    headers: Record<string, string> = {},
    forwarded: ForwardedRequest | null = null,
  ) => {
    const address = addressOf(url);
    if (address.kind !== "app") throw new Error(`${url} names no app`);
    const arrival = {
      method: "GET",
      url,
      headers: Object.entries(headers),
      content: NO_CONTENT,
      remote: "10.1.2.3",
    };
    return gateway.handle(arrival, gateway.head(arrival, address), address.app, forwarded);
  };
  return { handle, ran, sent, counted, token: tokens.seal(STATE, []).text };
}

Deno.test("a request runs at the nearest site of its route's tier, upwards (AG2)", async () => {
  const rows: [Tier, string, "here" | "above"][] = [
    ["edge", "/x", "here"],
    ["edge", "/core/x", "above"],
    ["edge", "/root/x", "above"],
    ["core", "/x", "here"],
    ["core", "/core/x", "here"],
    ["core", "/root/x", "above"],
    ["root", "/core/x", "here"],
    ["root", "/root/x?q=/x", "here"],
  ];
  for (const [tier, path, where] of rows) {
    const { handle, ran, sent } = setUp(tier);
    await handle(`http://h/book${path}`);
    assert.deepEqual([ran.length, sent.length], where === "here" ? [1, 0] : [0, 1], `${path} at a ${tier}`);
  }
});

Deno.test("a forwarded request carries the client's url, its token as a header, and no prefix", async () => {
  const { handle, sent, token } = setUp("edge");
  const outcome = await handle("http://h/book/root/x?q=1", {
    cookie: `a=1; sojourn_session=${token}`,
    accept: "*/*",
  });
  const [request] = sent;
  assert.equal(request?.to, "above");
  assert.equal(request?.head.url, "http://h/book/root/x?q=1");
  assert.equal(request?.head.remote, "10.1.2.3");
  assert.deepEqual(request?.head.headers, [["cookie", "a=1"], ["accept", "*/*"], ["sojourn-session", token]]);
  assert.equal(outcome.kind, "response");
  if (outcome.kind !== "response") return;
  assert.match(outcome.response.headers.get("set-cookie") ?? "", /^sojourn_session=token-from-above;/);
  assert.equal(outcome.response.headers.get("sojourn-site"), "above");
});

Deno.test("a request that came over a link goes one hop further, and its answer sets no cookie", async () => {
  const { handle, sent } = setUp("core");
  const forwarded = { method: "GET", url: "http://h/book/root/x", headers: [], upgrade: false, hops: 3 };
  const outcome = await handle("http://h/book/root/x", {}, forwarded);
  assert.equal(sent[0]?.head.hops, 2);
  assert.equal(outcome.kind === "response" && outcome.response.headers.get("set-cookie"), null);
});

Deno.test("what is refused is refused where it arrives (AG1)", async () => {
  const rows: [string, Record<string, string>, string][] = [
    ["/book/root/x", { "sojourn-session": "made-up" }, "token_malformed"],
    ["/nobody/x", {}, "app_unknown"],
    ["/book/x", { "sojourn-version": "1".repeat(64) }, "version_unknown"],
    ["/book/root/x", { "content-length": "101" }, "limit_body"],
    ["/book/x", { a: "x".repeat(2000) }, "limit_headers"],
    ["/book/long/x", {}, "limit_headers"],
  ];
  for (const [path, headers, code] of rows) {
    const { handle, ran, sent } = setUp("edge");
    await assert.rejects(
      async () => await handle(`http://h${path}`, headers),
      (error) => error instanceof Problem && error.code === code,
      code,
    );
    assert.deepEqual([ran, sent], [[], []], code);
  }
});

Deno.test("a parent that cannot be reached is a problem that says so", async () => {
  const { handle } = setUp("edge", { request: () => Promise.reject(new Error("the link is closed")) });
  await assert.rejects(
    handle("http://h/book/root/x"),
    (error) =>
      error instanceof Problem && error.code === "store_unreachable" &&
      /above cannot be reached/.test(error.message),
  );
});

/** A version with one file at `/app.js`. */
const withFile = (mark: string, handlers = ["fetch"]) => ({
  app: "book",
  version: mark.repeat(64),
  manifest: { handlers },
  tierOf: (): Tier => "root",
  files: () => Promise.resolve(new Map([["/app.js", { sha256: mark.repeat(64), bytes: 3 }]])),
});

Deno.test("a file is answered where it is asked for, in the version that its session gets", async () => {
  const only = { current: withFile("a") };
  const { handle, ran, sent, counted, token } = setUp("edge", {}, only);
  const textOf = async (outcome: Awaited<ReturnType<typeof handle>>) =>
    outcome.kind === "response" ? await outcome.response.text() : "";
  assert.equal(await textOf(await handle("http://h/book/app.js")), "aaa");
  assert.deepEqual([ran.length, sent.length], [0, 0], "whatever tier the route names");
  assert.deepEqual(counted, ["book"]);
  await handle("http://h/book/other.js");
  assert.equal(sent.length, 1, "what is no file goes the route's way");

  const half = setUp("edge", {}, { ...only, rollout: { next: withFile("b"), weight: 100 } });
  assert.equal(
    await textOf(await half.handle("http://h/book/app.js")),
    "aaa",
    "nobody's session: the current one",
  );
  const mine = await half.handle("http://h/book/app.js", { "sojourn-session": token });
  assert.equal(await textOf(mine), "bbb");

  const page = setUp("edge", {}, { current: withFile("a", []) });
  await assert.rejects(
    page.handle("http://h/book/other.js"),
    (error) => error instanceof Problem && error.code === "not_found",
  );
});
