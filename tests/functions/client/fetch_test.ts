/** `fetch` of the client library, in virtual time, at sites that die, freeze, stop and answer late. */
import { strict as assert } from "node:assert";
import {
  type Client,
  type ConnectOptions,
  connectWith,
  type Move,
} from "../../../functions/client/client.ts";
import { ClientError } from "../../../functions/client/client_error.ts";
import { MemoryClientStorage, storageOf } from "../../../functions/client/storage.ts";
import { problem, VirtualHost } from "./virtual_host.ts";

interface Setting {
  readonly host: VirtualHost;
  readonly client: Client;
  readonly moves: string[];
}

async function connected(host = new VirtualHost(), more: Partial<ConnectOptions> = {}): Promise<Setting> {
  const client = await host.run(connectWith(host, { sites: "http://edge-1.test/shop", ...more }));
  const moves: string[] = [];
  client.addEventListener("move", (event) => {
    const { from, to, why } = (event as CustomEvent<Move>).detail;
    moves.push(`${from.id} → ${to.id}: ${why}`);
  });
  return { host, client, moves };
}

/** Counts, as a stateful session behind the app does: once for each `Idempotency-Key`. */
function counting(host: VirtualHost): { total: () => number } {
  const done = new Map<string, number>();
  let total = 0;
  host.app = (call, site) => {
    const key = call.headers.get("idempotency-key");
    const known = key === null ? undefined : done.get(key);
    const count = known ?? (call.method === "POST" ? ++total : total);
    if (key !== null) done.set(key, count);
    return host.answer(call, site, `${count}`);
  };
  return { total: () => total };
}

const text = async (host: VirtualHost, answer: Promise<Response>) => await (await host.run(answer)).text();

Deno.test("a request goes to the site that was named, to the app's path there, with the session's token", async () => {
  const { host, client } = await connected();
  host.app = (call, site) => host.answer(call, site, `${call.method} ${call.path}`);
  assert.equal(await text(host, client.fetch("/orders?by=ann")), "GET /shop/orders?by=ann");
  assert.equal(await text(host, client.fetch("http://edge-2.test/shop/orders#top")), "GET /shop/orders");
  const posted = client.fetch(new Request("http://edge-1.test/shop/x", { method: "POST", body: "hi" }));
  assert.equal(await text(host, posted), "POST /shop/x");
  const calls = host.at("edge-1").calls;
  assert.equal(calls.length, 3);
  const sessions = calls.map((call) => call.headers.get("sojourn-session")?.split(":")[0]);
  assert.deepEqual(new Set(sessions).size, 1, "all of one session, the first one too");
  assert.equal(calls[0]?.headers.get("idempotency-key"), null);
  assert.match(calls[2]?.headers.get("idempotency-key") ?? "", /^drawn-/);
  await client.close();
  assert.equal(host.timers, 0);
});

Deno.test("requests that begin at once begin one session (token_set.ts S3)", async () => {
  const { host, client } = await connected();
  host.app = (call, site) => host.answer(call, site, "");
  await host.run(Promise.all(Array.from({ length: 5 }, () => client.fetch("/x"))));
  const tokens = host.at("edge-1").calls.map((call) => call.headers.get("sojourn-session"));
  assert.deepEqual([tokens.length, new Set(tokens).size], [5, 1]);
  assert(tokens[0], "a request without one would begin a session of its own");
  await client.close();
});

Deno.test("what was answered side by side is presented together, merged where it is too much (S1, S2, app_fetch.ts A1)", async () => {
  const { host, client } = await connected();
  host.app = (call, site) => host.answer(call, site, "");
  await host.run(Promise.all(Array.from({ length: 30 }, () => client.fetch("/x"))));
  await host.run(client.fetch("/y"));
  const last = host.at("edge-1").calls.at(-1)?.headers.get("sojourn-session")?.split(", ") ?? [];
  assert(last.length <= 8, `${last.length} tokens`);
  const facts = new Set(last.flatMap((token) => token.split(":").slice(1)));
  for (let fact = 0; fact <= 30; fact++) assert(facts.has(`${fact}`), `the answer ${fact} is missing`);
  await client.close();
});

Deno.test("when its site is dead a request goes to another, and once only where it has a key (A2, A3)", async () => {
  const { host, client, moves } = await connected();
  const { total } = counting(host);
  assert.equal(await text(host, client.fetch("/add", { method: "POST" })), "1");
  // The site dies after it has added, before it has answered.
  host.losesAnswer = (call, site) => {
    if (site.id !== "edge-1" || call.path !== "/shop/add") return false;
    site.state = "dead";
    return true;
  };
  assert.equal(await text(host, client.fetch("/add", { method: "POST", body: "1" })), "2");
  assert.equal(total(), 2);
  const [first, again] = [host.at("edge-1").calls.at(-1), host.at("edge-2").calls.at(-1)];
  assert.equal(first?.headers.get("idempotency-key"), again?.headers.get("idempotency-key"));
  assert.equal(again?.body, "1");
  assert.deepEqual(moves, ["edge-1 → edge-2: dead"]);
  assert.equal(await text(host, client.fetch("/add")), "2");
  await client.close();
});

Deno.test("what may not be sent twice is not (A2, app_request.ts Q1)", async () => {
  const bodies: [ConnectOptions["repeat"], RequestInit, boolean][] = [
    [true, { method: "POST", body: "x" }, true],
    [false, { method: "POST", body: "x" }, false],
    [false, { method: "POST", body: "x", headers: { "idempotency-key": "mine" } }, true],
    [false, { method: "GET" }, true],
    [true, { method: "PUT", body: new Blob(["x"]).stream() }, false],
  ];
  for (const [repeat, init, isRepeated] of bodies) {
    const { host, client } = await connected(new VirtualHost(), { repeat: repeat ?? true });
    counting(host);
    await host.run(client.fetch("/warm"));
    host.losesAnswer = (_, { id }) => id === "edge-1";
    const outcome = await host.run(
      client.fetch("/x", init).then((answer) => answer.status, (error) => error.name),
    );
    const label = `${repeat} ${init.method}`;
    if (isRepeated) assert.equal(outcome, 200, label);
    else assert.equal(outcome, "TypeError", label);
    assert.equal(host.at("edge-2").calls.length, isRepeated ? 1 : 0, label);
    await client.close();
  }
});

Deno.test("a site that stops, as planned, is left before it is gone, by every request", async () => {
  const { host, client, moves } = await connected();
  counting(host);
  await host.run(client.fetch("/warm"));
  host.at("edge-1").state = "draining";
  const body = "stateless, and not to be repeated";
  assert.equal((await host.run(client.fetch("/x", { method: "POST", body }))).status, 200);
  assert.deepEqual(moves, ["edge-1 → edge-2: away"]);
  assert.equal(host.at("edge-1").calls.length, 1, "only the first one");
  await client.close();
});

Deno.test("a frozen site is left within seconds, a handler that takes long is waited for (A4)", async () => {
  const { host, client, moves } = await connected();
  counting(host);
  await host.run(client.fetch("/warm"));
  host.at("edge-1").state = "frozen";
  const begunMs = host.nowMs();
  assert.equal(await text(host, client.fetch("/x")), "0");
  assert(host.nowMs() - begunMs < 5_000, `${host.nowMs() - begunMs} ms`);
  assert.deepEqual(moves, ["edge-1 → edge-2: dead"]);

  host.app = async (call, site) => {
    await new Promise<void>((resolve) => host.after(25_000, resolve));
    return host.answer(call, site, "at last", 25_000);
  };
  assert.equal(await text(host, client.fetch("/slow")), "at last");
  assert.deepEqual(moves.length, 1);
  assert.equal(host.at("edge-2").calls.filter(({ path }) => path === "/shop/slow").length, 1);
  await client.close();
});

Deno.test("an answer that says to come again is not the last word, until the time is over (A5)", async () => {
  const { host, client } = await connected(new VirtualHost(), { giveUpMs: 10_000 });
  let left = 3;
  host.app = (call, site) =>
    left-- > 0 ? problem(503, "stateful_unreachable", "retry") : host.answer(call, site, "back");
  assert.equal(await text(host, client.fetch("/x", { method: "POST" })), "back");

  left = Infinity;
  const begunMs = host.nowMs();
  const last = await host.run(client.fetch("/x"));
  assert.equal((JSON.parse(await last.text()) as { code: string }).code, "stateful_unreachable");
  assert(host.nowMs() - begunMs <= 10_000);

  host.app = () => problem(503, "stateful_parked", "operator");
  const calls = host.sites.flatMap((site) => site.calls).length;
  assert.equal((await host.run(client.fetch("/x"))).status, 503);
  assert.equal(
    host.sites.flatMap((site) => site.calls).length,
    calls + 1,
    "what only an operator can mend is told at once",
  );
  await client.close();
});

Deno.test("what one site can't reach is asked of another, and the client stays there", async () => {
  const { host, client, moves } = await connected();
  const { total } = counting(host);
  const answers = host.app;
  host.app = (call, site) =>
    site.id === "edge-1" ? problem(503, "stateful_unreachable", "retry") : answers(call, site);
  assert.equal(await text(host, client.fetch("/x", { method: "POST" })), "1");
  assert.deepEqual([moves, host.at("edge-1").calls.length], [["edge-1 → edge-2: stuck"], 2]);
  assert.equal(await text(host, client.fetch("/x", { method: "POST" })), "2");
  assert.deepEqual([total(), host.at("edge-1").calls.length], [2, 2]);
  await client.close();
});

Deno.test("a site that is cut off from the others is left when it keeps a request waiting, and taken again later (site_choice.ts C4)", async () => {
  const { host, client, moves } = await connected();
  const { total } = counting(host);
  const answers = host.app;
  host.app = async (call, site) => {
    while (site.isCutOff) await new Promise<void>((resolve) => host.after(1_000, resolve));
    return await answers(call, site);
  };
  await host.run(client.fetch("/x"));
  host.at("edge-1").isCutOff = true;
  const begunMs = host.nowMs();
  assert.equal(await text(host, client.fetch("/x", { method: "POST" })), "1");
  assert(host.nowMs() - begunMs < 3_000, `${host.nowMs() - begunMs} ms`);
  assert.deepEqual(moves, ["edge-1 → edge-2: stuck"]);
  for (const site of host.sites) site.isCutOff = true;
  const waiting = client.fetch("/x", { method: "POST" });
  await host.pass(8_000);
  for (const site of host.sites) site.isCutOff = false;
  assert.equal(await text(host, waiting), "2");
  assert.equal(total(), 2);
  await client.close();
});

Deno.test("with no site left a request waits for one, then fails as fetch does; nothing goes on after that", async () => {
  const { host, client } = await connected(new VirtualHost(), { giveUpMs: 12_000 });
  counting(host);
  await host.run(client.fetch("/warm"));
  for (const site of host.sites) site.state = "dead";
  const begunMs = host.nowMs();
  await assert.rejects(host.run(client.fetch("/x")), TypeError);
  assert(host.nowMs() - begunMs <= 12_000);

  const waiting = client.fetch("/x");
  await host.pass(3_000);
  host.at("cloud").state = "up";
  assert.equal(await text(host, waiting), "0");
  assert.equal(client.status().site.id, "cloud");
  await client.close();
  await assert.rejects(
    client.fetch("/x"),
    (error) => error instanceof ClientError && error.code === "closed",
  );
  await host.pass(60_000);
  assert.equal(host.timers, 0);
});

Deno.test("who gives up is not kept waiting", async () => {
  const { host, client } = await connected();
  counting(host);
  await host.run(client.fetch("/warm"));
  for (const site of host.sites) site.state = "frozen";
  const late = new AbortController();
  const asked = client.fetch("/x", { signal: late.signal });
  host.after(500, () => late.abort(new Error("no more")));
  const begunMs = host.nowMs();
  await assert.rejects(host.run(asked), /no more/);
  assert.equal(host.nowMs() - begunMs, 500);
  await client.close();
});

Deno.test("a session that is not taken any more is begun anew, and that is told", async () => {
  const storage = new MemoryClientStorage();
  const first = await connected(new VirtualHost(), { storage });
  counting(first.host);
  await first.host.run(first.client.fetch("/x"));
  await first.client.close();

  const later = new VirtualHost();
  later.issued = 100;
  const { host, client } = await connected(later, { storage });
  const told: unknown[] = [];
  client.addEventListener("session", (event) => told.push((event as CustomEvent).detail));
  const old = new TextDecoder().decode((await storage.list("at/shop/session/"))[0]?.[1]);
  host.app = (call, site) =>
    call.headers.get("sojourn-session") === old
      ? problem(401, "token_expired", "reset")
      : host.answer(call, site, "anew");
  assert.equal(await text(host, client.fetch("/x", { method: "POST" })), "anew");
  assert.deepEqual(told, [{ code: "token_expired" }]);
  assert.notEqual(new TextDecoder().decode((await storage.list("at/shop/session/"))[0]?.[1]), old);
  await client.close();
});

Deno.test("with a storage the next client goes on in the session, and finds a site though the one it knows is gone", async () => {
  const storage = new MemoryClientStorage();
  const first = await connected(new VirtualHost(), { storage });
  counting(first.host);
  await first.host.run(first.client.fetch("/x"));
  await first.client.close();
  const token = new TextDecoder().decode((await storage.list("at/shop/session/"))[0]?.[1]);

  const host = new VirtualHost();
  host.at("edge-1").state = "dead";
  const { client } = await connected(host, { storage });
  counting(host);
  assert.equal((await host.run(client.fetch("/x"))).status, 200);
  assert.equal(host.at("edge-2").calls[0]?.headers.get("sojourn-session"), token);
  await client.close();
});

Deno.test("apps below one address find what is theirs in one storage, and nothing of each other", async () => {
  const storage = new MemoryClientStorage();
  for (const app of ["shop", "shop/", "news"]) {
    const host = new VirtualHost();
    host.issued = 100 * app.length;
    const { client } = await connected(host, { storage, sites: `http://edge-1.test/${app}` });
    counting(host);
    await host.run(client.fetch("/x"));
    await client.close();
  }
  const kept = (await storage.list("")).map(([name]) => name);
  assert.deepEqual(kept, ["at/news/session/0", "at/news/sites", "at/shop/session/0", "at/shop/sites"]);
  const own = storageOf("http://edge-1.test/shop", storage);
  assert.deepEqual((await own.list("s")).map(([name]) => name), ["session/0", "sites"]);
  const mine = await own.claim("session/0", false);
  assert.notEqual(await storageOf("http://edge-1.test/news", storage).claim("session/0", false), null);
  assert.equal(await own.claim("session/0", false), null);
  mine?.();
  assert.equal(storageOf("http://shop.test", storage), storage);
});

Deno.test("without anybody who lists the sites there is an error that says so", async () => {
  const host = new VirtualHost();
  for (const site of host.sites) site.state = "dead";
  await assert.rejects(
    host.run(connectWith(host, { sites: "http://edge-1.test/shop", giveUpMs: 5_000 })),
    (error) => error instanceof ClientError && error.code === "sites_unreachable",
  );
  for (const sites of ["ftp://x", "http://", "", []]) {
    await assert.rejects(
      host.run(connectWith(host, { sites })),
      (error) => error instanceof ClientError && error.code === "site_invalid",
      JSON.stringify(sites),
    );
  }
});

Deno.test("a client moves to a site that is clearly nearer, measured by its own requests and few probes", async () => {
  const { host, client, moves } = await connected();
  host.app = async (call, site) => {
    await new Promise<void>((resolve) => host.after(100, resolve)); // a handler's time is no way
    return host.answer(call, site, "", 100);
  };
  for (let i = 0; i < 20; i++) {
    await host.run(client.fetch("/x"));
    await host.pass(500);
  }
  assert.deepEqual(moves, []);
  const { sites } = client.status();
  assert.deepEqual(sites.map(({ id, rttMs }) => [id, Math.round(rttMs ?? -1)]), [
    ["edge-1", 10],
    ["edge-2", 10],
    ["cloud", 10],
  ]);
  assert.equal(host.at("edge-1").probes, 0, "its own site is measured by what it does there");
  host.at("edge-1").rttMs = 90;
  for (let i = 0; i < 40; i++) {
    await host.run(client.fetch("/x"));
    await host.pass(500);
  }
  assert.deepEqual(moves, ["edge-1 → edge-2: nearer"]);
  await client.close();
});
