/** What any client can send to a site with an honest app, and what comes of it. */
import { strict as assert } from "node:assert";
import { startCluster, type TestCluster } from "./cluster.ts";
import { exchange, statusOf } from "./raw_http.ts";

async function requestLines(cluster: TestCluster): Promise<void> {
  const url = cluster.url("cloud");
  const { host } = new URL(url);
  const rows: [line: string, host: string | null, status: number][] = [
    ["GET /probe/where", host, 200],
    ["GET /probe/where", null, 200],
    ["GET /where", "probe.localhost", 200],
    ["GET http://probe.localhost/where", "probe.localhost", 200],
    // The path of the request line is what a proxy before the site has seen.
    ["GET /_sojourn/readyz", "probe.localhost/..", 400],
    ["GET /x", `${host}/_sojourn/readyz?`, 400],
    ["GET /where", "probe.localhost/where?", 400],
    ["GET /where", "probe.localhost#", 400],
    ["GET /where", "user@probe.localhost", 400],
    ["GET http://probe.localhost/where", host, 400],
    ["TRACE /probe/where", host, 405],
    ["TRACE /_sojourn/readyz", host, 405],
    ["TRACK /probe/where", host, 405],
    [`CONNECT ${host}`, host, 405],
  ];
  for (const [line, named, status] of rows) {
    const header = named === null ? "" : `host: ${named}\r\n`;
    const answer = await exchange(url, `${line} HTTP/1.1\r\n${header}connection: close\r\n\r\n`);
    assert.equal(statusOf(answer), status, `${line}, Host ${named}: ${answer.slice(0, 300)}`);
  }
}

/** Announces a body and sends three bytes of it; the connection stays as it is (docs/security.md). */
async function halfBody(url: string, announced: string): Promise<string> {
  const head = `POST /probe/length HTTP/1.1\r\nhost: ${new URL(url).host}\r\n${announced}\r\n\r\n`;
  return await exchange(url, head + (announced.includes("chunked") ? "3\r\nabc\r\n" : "abc"), 30_000);
}

async function halfBodies(cluster: TestCluster): Promise<void> {
  const rows: [announced: string, status: number, code: string][] = [
    ["content-length: 10", 408, "body_late"],
    ["content-length: 200000", 504, "wall_time"],
    ["transfer-encoding: chunked", 504, "wall_time"],
  ];
  await Promise.all(rows.map(async ([announced, status, code]) => {
    const answer = await halfBody(cluster.url("cloud"), announced);
    assert.equal(statusOf(answer), status, `${announced}: ${answer.slice(0, 300)}`);
    assert.ok(answer.includes(`"${code}"`), answer);
  }));
}

async function longMessages(cluster: TestCluster): Promise<void> {
  const url = `${cluster.url("cloud").replace("http:", "ws:")}/probe/socket`;
  const open = async () => {
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    await new Promise((resolve) => socket.onopen = resolve);
    return socket;
  };
  const answerTo = async (socket: WebSocket, message: string): Promise<unknown> => {
    const answer = new Promise((resolve) => socket.onmessage = ({ data }) => resolve(data));
    socket.send(message);
    return await answer;
  };
  const neighbour = await open();
  assert.equal(await answerTo(neighbour, "one"), "heard one");
  for (const message of [new Uint8Array(50 << 20), "x".repeat(5 << 20), "\u20ac".repeat(2 << 20)]) {
    const hostile = await open();
    const closed = new Promise<CloseEvent>((resolve) => hostile.onclose = resolve);
    hostile.send(message);
    assert.equal((await closed).code, 1009);
  }
  // The isolate that has both goes on, and what is allowed is heard.
  assert.equal(await answerTo(neighbour, "two"), "heard two");
  const long = "y".repeat(4 << 20);
  assert.equal(await answerTo(neighbour, long), `heard ${long}`);
  const gone = new Promise((resolve) => neighbour.onclose = resolve);
  neighbour.close();
  await gone;
}

Deno.test("a client that sends what no browser does is answered by the platform, and harms nobody", async (t) => {
  await using cluster = await startCluster({ topology: "single", env: { SOJOURN_LIMITS_WALLMS: "3000" } });
  await t.step("hosts that are more than a host, and methods of proxies", () => requestLines(cluster));
  await t.step("bodies that are announced and do not come", () => halfBodies(cluster));
  await t.step("WebSocket messages that are too long", () => longMessages(cluster));
});
