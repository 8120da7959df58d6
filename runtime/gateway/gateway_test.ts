import { INERT } from "../telemetry/mod.ts";
import { RequestTelemetry } from "./request_telemetry.ts";
import assert from "node:assert/strict";
import { AppGateway, type AppGatewayServices } from "./app_gateway.ts";
import { BURST } from "../loop/refusal_pace.ts";
import { Gateway } from "./gateway.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { SessionTokens } from "./session_tokens.ts";

const CLIENT = { remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port: 9 } } as const;

/** A gateway with these apps behind it. */
const gatewayTo = (apps: AppGateway): Gateway =>
  new Gateway({
    messageBytesMax: () => 1_000,
    telemetry: new RequestTelemetry("edge-1", INERT),
    apps: () => apps,
    sites: () => [],
    platform: () => new Response(),
    front: () => new Response(),
    link: () => Promise.resolve(),
    fault: () => {},
  });

/** What it answers. */
async function answerOf(request: Request, apps: AppGateway): Promise<Response> {
  const gateway = gatewayTo(apps);
  const answer = await gateway.handle(request, CLIENT);
  gateway.close();
  return answer;
}

/** Apps of a site that takes every token for a forged one: nothing behind the tokens is ever asked for. */
function refusingApps(): AppGateway {
  const tokens = new SessionTokens({
    seal: () => "",
    open: () => ({ ok: false, code: "token_forged", message: "made up" }),
  }, () => 0);
  return new AppGateway({ tokens, headerBytesMax: 1_000, bodyBytesMax: 1_000 } as AppGatewayServices);
}

async function locationFor(url: string): Promise<URL> {
  const request = new Request(url, { headers: { accept: "text/html", cookie: "sojourn_session=x" } });
  const answer = await answerOf(request, refusingApps());
  assert.equal(answer.status, 303);
  return new URL(answer.headers.get("location") ?? "", url);
}

Deno.test("a navigation with a bad cookie is sent to the same place, and nowhere else", async () => {
  assert.equal((await locationFor("http://h/app/x?q=1")).href, "http://h/app/x?q=1");
  assert.equal((await locationFor("http://app.localhost/")).href, "http://app.localhost/");
  assert.equal((await locationFor("http://app.localhost//evil.example/x")).host, "app.localhost");
});

Deno.test("every request is answered, and what fails for a reason of ours is a problem and a fault (GT1)", async () => {
  const faults: unknown[] = [];
  const fails = (error: unknown) => () => Promise.reject(error);
  const own = new TypeError("ours"), known = new Problem("overloaded", "no room");
  for (
    const [error, status, isFault] of [[own, 500, true], [known, 503, false], [null, 500, true]] as const
  ) {
    const gateway = new Gateway({
      ...{ messageBytesMax: () => 1_000, telemetry: new RequestTelemetry("edge-1", INERT), sites: () => [] },
      apps: () => ({ head: () => null, handle: fails(error) }) as unknown as AppGateway,
      platform: fails(error),
      front: () => new Response(),
      link: () => Promise.resolve(),
      fault: (each) => faults.push(each),
    });
    for (const path of ["/app/x", "/_sojourn/sites", "/_sojourn/agent/x"]) {
      faults.length = 0;
      const headers = path.includes("agent") ? { upgrade: "websocket" } : {};
      const answer = await gateway.handle(new Request(`http://h${path}`, { headers }), CLIENT);
      assert.deepEqual([answer.status, faults], [status, isFault ? [error] : []], path);
      assert.equal(answer.headers.get("content-type"), "application/problem+json");
      assert.ok(JSON.parse(await answer.text()).code);
    }
    gateway.close();
  }
});

/** What a client is told whose session can't go on. */
async function stuck(
  code: "source_lost" | "source_unreachable" | "overloaded",
  headers: Record<string, string>,
) {
  const real = new AppGateway({ headerBytesMax: 1_000, bodyBytesMax: 1_000 } as AppGatewayServices);
  const apps = {
    head: (...asked: Parameters<AppGateway["head"]>) => real.head(...asked),
    handle: () =>
      Promise.reject(new Problem(code, "the disk of <edge-1> is lost", { mayBeLost: { site: "edge-1" } })),
  } as unknown as AppGateway;
  const answer = await answerOf(new Request("http://h/app/x", { headers }), apps);
  return {
    status: answer.status,
    type: answer.headers.get("content-type"),
    text: await answer.text(),
    answer,
  };
}

Deno.test("a person whose session can't go on is told so in words, and can begin anew; a program is told as ever (STP1, STP2)", async () => {
  const page = "text/html; charset=utf-8", json = "application/problem+json";
  const cookie = "sojourn_session=x", accept = "text/html,*/*";
  const rows: [Parameters<typeof stuck>[0], Record<string, string>, number, string][] = [
    ["source_lost", { cookie, accept }, 410, page],
    ["source_unreachable", { cookie, accept }, 503, page],
    ["source_unreachable", { cookie, "sec-fetch-mode": "navigate" }, 503, page],
    ["source_lost", { cookie }, 410, json],
    ["source_lost", { cookie, accept: "application/json" }, 410, json],
    ["source_lost", { "sojourn-session": "x", accept }, 410, json],
    ["overloaded", { cookie, accept }, 503, json],
  ];
  for (const [code, headers, status, type] of rows) {
    const told = await stuck(code, headers);
    assert.deepEqual([told.status, told.type], [status, type], `${code} ${JSON.stringify(headers)}`);
    if (type === json) {
      assert.equal(JSON.parse(told.text).code, code);
      continue;
    }
    assert.match(told.text, /<form [^>]*method="post" action="\/_sojourn\/session\/reset">/);
    assert.match(told.text, new RegExp(`${code}: the disk of &lt;edge-1&gt; is lost`));
    assert.match(
      told.answer.headers.get("content-security-policy") ?? "",
      /^default-src 'none'; .*frame-ancestors 'none'$/,
    );
    assert.equal(told.answer.headers.get("set-cookie"), null, "nothing is decided for anybody");
    assert.equal(told.answer.headers.get("cache-control"), "no-store");
    assert.equal(told.answer.headers.get("retry-after"), status === 503 ? "1" : null);
  }
});

Deno.test("a crowd that is sent away is told so at its pace; nobody else waits for it (GT2)", async () => {
  const apps = {
    head: () => null,
    handle: (...[, , app]: Parameters<AppGateway["handle"]>) =>
      app === "full"
        ? Promise.reject(new Problem("overloaded", "there is no room"))
        : Promise.resolve({ kind: "response", response: new Response("served") }),
  } as unknown as AppGateway;
  const gateway = gatewayTo(apps), crowd = 2 * BURST;
  let told = 0;
  const answers = Array.from({ length: crowd }, async () => {
    const answer = await gateway.handle(new Request("http://h/full/x"), CLIENT);
    told++;
    return answer;
  });
  for (const path of ["/other/x", "/_sojourn/health", "/"]) {
    assert.equal((await gateway.handle(new Request(`http://h${path}`), CLIENT)).status, 200);
  }
  assert.ok(told >= BURST && told < crowd, `${told} of ${crowd} were told at once`);
  assert.equal(gateway.active, crowd - told, "who waits to be told counts among those that are under way");
  for (const answer of await Promise.all(answers)) {
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
  }
  assert.equal(gateway.active, 0);
  gateway.close();
});

Deno.test("clients whose answer streams are looked at for what they send on, who wait to be told that there is no room, and who ask for a WebSocket", async () => {
  const apps = {
    head: () => null,
    handle(...[arrival, , app]: Parameters<AppGateway["handle"]>) {
      if (app === "full") return Promise.reject(new Problem("overloaded", "there is no room"));
      if (app === "streams") arrival.isStreamed = true;
      return Promise.resolve({ kind: "response", response: new Response("served") });
    },
  } as unknown as AppGateway;
  const gateway = gatewayTo(apps);
  let watched = 0;
  const client = () => ({
    ...CLIENT,
    get completed() {
      watched++;
      return Promise.resolve();
    },
  });
  const ask = (app: string) =>
    gateway.handle(new Request(`http://h/${app}/x`, { headers: { host: "h" } }), client());
  await ask("other");
  assert.equal(watched, 0);
  await ask("streams");
  assert.equal(watched, 1);
  const answers = Array.from({ length: 2 * BURST }, () => ask("full"));
  await ask("other");
  const waiting = gateway.active;
  assert.ok(waiting > 0 && watched - 1 >= waiting && watched - 1 < 2 * BURST, `${watched} for ${waiting}`);
  await Promise.all(answers);
  const before = watched, headers = { host: "h", upgrade: "websocket" };
  const upgrades = gateway.handle(new Request("http://h/other/x", { headers }), client());
  assert.equal(watched, before + 1, "at once");
  await upgrades;
  gateway.close();
});

Deno.test("a program that sends to a queue waits while the site is held, as requests of apps do, and an operator does not", async () => {
  const hold = Promise.withResolvers<void>(), answered: string[] = [];
  const gateway = new Gateway({
    messageBytesMax: () => 1_000,
    telemetry: new RequestTelemetry("edge-1", INERT),
    apps: () => null,
    held: () => hold.promise,
    sites: () => [],
    platform: (_, path) => {
      answered.push(path);
      return new Response();
    },
    front: () => new Response(),
    link: () => Promise.resolve(),
    fault: () => {},
  });
  const ask = (path: string) => gateway.handle(new Request(`http://h${path}`, { method: "POST" }), CLIENT);
  const sent = ask("/_sojourn/queues/shop/sms");
  await ask("/_sojourn/admin/backups");
  assert.deepEqual(answered, ["/_sojourn/admin/backups"]);
  hold.resolve();
  await sent;
  assert.deepEqual(answered, ["/_sojourn/admin/backups", "/_sojourn/queues/shop/sms"]);
  gateway.close();
});
