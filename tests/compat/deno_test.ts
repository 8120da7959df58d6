/** Modules written for `deno serve` and Deno Deploy. */
import assert from "node:assert/strict";
import { untilTrue } from "./apps.ts";
import { runApp } from "./apps.ts";

const SERVE = `
  export default {
    async fetch(request, info) {
      const { pathname } = new URL(request.url);
      info.completed.then(() => console.log("completed " + pathname));
      return Response.json([info.remoteAddr, Deno.env.get("NAME"), Deno.env.get("NONE"), Deno.env.has("NAME"), Deno.env.toObject()]);
    },
  } satisfies Deno.ServeDefaultExport;`;

Deno.test("a deno serve module gets its info and its variables", async () => {
  await using app = await runApp(SERVE, { vars: { NAME: "given" } });
  const answer = await (await app.fetch("/a")).json();
  assert.deepEqual(answer, [
    { transport: "tcp", hostname: "127.0.0.1", port: 9 },
    "given",
    null,
    true,
    { NAME: "given" },
  ]);
  await untilTrue("completed resolves", () => app.lines.includes("info completed /a"));
});

/** Each way to call Deno.serve, as a program for Deno Deploy does while it loads. */
const SERVED: Readonly<Record<string, string>> = {
  "a handler": `Deno.serve((request, info) => answer(request, info));`,
  "options and a handler":
    `const server = Deno.serve({ port: 8080, onListen() {} }, answer); server.finished.then(() => {});`,
  "a handler in its options": `Deno.serve({ hostname: "0.0.0.0", handler: answer });`,
};

for (const [how, call] of Object.entries(SERVED)) {
  Deno.test(`a program that gives Deno.serve ${how} is an app`, async () => {
    await using app = await runApp(`
      const kv = await Deno.openKv();
      const answer = async (request: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>) => {
        await kv.atomic().sum(["hits"], 1n).commit();
        return new Response(new URL(request.url).pathname + " for " + info.remoteAddr.hostname);
      };
      ${call}`);
    assert.equal(await (await app.fetch("/x")).text(), "/x for 127.0.0.1");
    assert.deepEqual((await app.manifest() as { handlers: string[] }).handlers, ["fetch"]);
  });
}

Deno.test("a program that calls Deno.serve declares what it needs by named exports", async () => {
  await using app = await runApp(`
    export const fetchHosts = ["api.example"];
    export const vars = { NAME: "declared" };
    export const other = 1;
    Deno.serve((_request, info) => new Response((info as unknown as { vars: { NAME: string } }).vars.NAME));`);
  const { fetchHosts, vars, handlers } = await app.manifest() as Record<string, unknown>;
  assert.deepEqual([fetchHosts, vars, handlers], [["api.example"], { NAME: "declared" }, ["fetch"]]);
  assert.equal(await (await app.fetch("/")).text(), "declared");
});

Deno.test("jobs of Deno.cron are the app's cron, and run as its scheduled handler (deno_cron.ts D1)", async () => {
  await using app = await runApp(`
    const kv = await Deno.openKv();
    Deno.cron("every night", "0 3 * JAN-MAR mon-fri", async () => { await kv.set(["ran"], 1); });
    Deno.cron("hourly", "0 */2 * * 2-6,1", { backoffSchedule: [1000] }, () => {});
    Deno.serve(async () => Response.json((await kv.get(["ran"])).value));`);
  const { cron, handlers } = await app.manifest() as Record<string, unknown>;
  assert.deepEqual(cron, { "every-night": "0 3 * JAN-MAR mon-fri", hourly: "0 */2 * * MON-FRI,SUN" });
  assert.deepEqual(handlers, ["fetch", "scheduled"]);
  assert.equal(await app.schedule("every-night"), "response");
  assert.equal(await (await app.fetch("/")).text(), "1");
});

Deno.test("Deno.serve tells its address to onListen, and its errors to onError", async () => {
  await using app = await runApp(`
    const seen: unknown[] = [];
    const server = Deno.serve({
      onListen: (address) => seen.push(address),
      onError: (error) => new Response(String(error), { status: 418 }),
    }, () => { throw new Error(JSON.stringify([seen, server.addr])); });`);
  const response = await app.fetch("/");
  const addr = { transport: "tcp", hostname: "0.0.0.0", port: 8000 };
  assert.equal(response.status, 418);
  assert.equal(await response.text(), `Error: ${JSON.stringify([[addr], addr])}`);
});

const REFUSED: readonly (readonly [what: string, code: string, says: RegExp])[] = [
  [
    "Deno.serve beside a default export",
    `Deno.serve(() => new Response()); export default { fetch: () => new Response() };`,
    /not both/,
  ],
  [
    "Deno.serve twice",
    `Deno.serve(() => new Response()); Deno.serve(() => new Response());`,
    /called before/,
  ],
  ["Deno.serve without a handler", `Deno.serve({ port: 1 } as never);`, /a handler is missing/],
  [
    "Deno.cron beside a default export",
    `Deno.cron("x", "* * * * *", () => {}); export default {};`,
    /not by Deno\.cron/,
  ],
  [
    "a weekday that Deno has not",
    `Deno.cron("x", "0 3 * * 0", () => {});`,
    /1 \(Sunday\) to 7 \(Saturday\), not 0/,
  ],
  ["a schedule that is none", `Deno.cron("x", { hour: 3 }, () => {});`, /a text of five fields/],
  ["a schedule that cron has not", `Deno.cron("x", "61 3 * * *", () => {});`, /cron\.x is "61 3 \* \* \*"/],
  [
    "two jobs of one name",
    `for (const n of ["a b", "a-b"]) Deno.cron(n, "* * * * *", () => {});`,
    /a job "a-b" already/,
  ],
  ["a job without a handler", `Deno.cron("x", "* * * * *", {} as never);`, /a handler is missing/],
  [
    "a file",
    `const text = Deno.readTextFileSync("x"); Deno.serve(() => new Response(text));`,
    /readTextFileSync/,
  ],
  [
    "a listener for fetch events",
    `addEventListener("fetch", (event) => (event as any).respondWith(new Response()));`,
    /default/,
  ],
];

for (const [what, code, says] of REFUSED) {
  Deno.test(`a program with ${what} is refused where it is deployed`, async () => {
    await using app = await runApp(code);
    await assert.rejects(app.manifest(), says);
  });
}

Deno.test("what Deno has and a function has not refuses as it would fail, and Deno.openKv knows one key space", async () => {
  await using app = await runApp(`
    const failure = (work: () => unknown) => { try { return work(); } catch (error) { return String(error); } };
    Deno.serve(async () => {
      const [a, b] = [await Deno.openKv("/some/path"), await Deno.openKv()];
      await a.set(["x"], 1);
      a.close();
      return Response.json([
        (await b.get(["x"])).value,
        await Deno.readTextFile("x").catch(String),
        failure(() => Deno.readTextFileSync("x")),
        failure(() => new Deno.Command("id")),
        failure(() => Deno.exit()),
        [typeof Deno.stdin, typeof Deno.pid, typeof Deno.mainModule, typeof Deno.permissions],
        Deno.args,
      ]);
    });`);
  assert.deepEqual(await (await app.fetch("/")).json(), [
    1,
    "TypeError: Deno.readTextFile is not available in a function: import files into the bundle, or serve them as assets",
    "TypeError: Deno.readTextFileSync is not available in a function: import files into the bundle, or serve them as assets",
    "TypeError: Deno.Command is not available in a function",
    "TypeError: Deno.exit is not available in a function: a function cannot end its isolate",
    ["undefined", "undefined", "undefined", "undefined"],
    [],
  ]);
  assert.equal(app.lines.filter((line) => line.includes("Deno.Command was used")).length, 1);
});

Deno.test("Deno.serve while a request runs is refused", async () => {
  await using app = await runApp(`
    Deno.serve(() => {
      try { Deno.serve(() => new Response()); return new Response("served"); }
      catch (error) { return new Response(String(error)); }
    });`);
  assert.match(await (await app.fetch("/")).text(), /^TypeError: Deno\.serve works while the module loads/);
});

Deno.test("Deno.upgradeWebSocket answers a Deno Deploy chat, by every kind of message", async () => {
  await using app = await runApp(`
    Deno.serve((request) => {
      if (request.headers.get("upgrade") !== "websocket") return new Response("no socket", { status: 426 });
      const { socket, response } = Deno.upgradeWebSocket(request, { protocol: "chat" });
      socket.addEventListener("open", () => socket.send("open " + socket.readyState + (socket instanceof WebSocket)));
      socket.onmessage = async ({ data }) =>
        socket.send(data instanceof Blob ? new Uint8Array(await data.arrayBuffer()) : data.toUpperCase());
      return response;
    });`);
  assert.equal((await app.fetch("/")).status, 426);
  const answer = await app.call(new Request("http://localhost/", { headers: { upgrade: "websocket" } }));
  assert.equal(answer.kind, "upgrade");
  if (answer.kind !== "upgrade") return;
  const got: unknown[] = [];
  answer.socket.bridge({ message: (data) => got.push(data), close: () => {} });
  answer.socket.send("a");
  answer.socket.send(new Uint8Array([7]));
  await untilTrue("three messages", () => got.length === 3);
  assert.deepEqual(got, ["open 1true", "A", new Uint8Array([7])]);
  answer.socket.close(1000, "");
  await answer.settled;
});
