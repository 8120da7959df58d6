/** What any client can send to a site with an honest app, and what comes of it. */
import { strict as assert } from "node:assert";
import { resolve } from "node:path";
import { eventually, PROBE, startCluster, type TestCluster } from "./cluster.ts";
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

const FLOODED = 4;

/** Clients that open a WebSocket and read nothing: what is sent to them stays with the app, not with the site. */
async function unread(cluster: TestCluster): Promise<void> {
  const { hostname, port, host } = new URL(cluster.url("cloud"));
  const { pid } = await cluster.site("cloud");
  const siteBytes = () =>
    1024 * Number(/^VmRSS:\s+(\d+)/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1]);
  const handshake = `GET /flood/ HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
    "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
  const buffered = async () => await (await fetch(`http://${host}/flood/buffered`)).json() as number[];
  await buffered();
  const before = siteBytes();
  const clients: Deno.Conn[] = [];
  try {
    for (let i = 0; i < FLOODED; i++) {
      const client = await Deno.connect({ hostname, port: Number(port) });
      clients.push(client);
      await client.write(new TextEncoder().encode(handshake));
    }
    let still: number[] = [];
    await eventually("the app knows that little was taken", async () => {
      still = await buffered();
      return still.length === FLOODED;
    });
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // what a site takes by itself it has taken by now
    still = await buffered();
    const grown = siteBytes() - before;
    // The system's buffers of a connection over loopback take some megabytes, the site a message or two of each.
    assert.ok(still.every((bytes) => bytes > 10 << 20), `${still}`);
    assert.ok(grown < 40 << 20, `the site has ${grown >> 20} MiB more, for ${FLOODED} clients`);
  } finally {
    for (const client of clients) client.close();
  }
  await eventually("the app sees them go", async () => (await buffered()).length === 0);
}

Deno.test("a client that sends what no browser does is answered by the platform, and harms nobody", async (t) => {
  await using cluster = await startCluster({
    topology: "single",
    apps: [PROBE, resolve(PROBE, "..", "flood")],
    env: { SOJOURN_LIMITS_WALLMS: "3000" },
  });
  await t.step("hosts that are more than a host, and methods of proxies", () => requestLines(cluster));
  await t.step("bodies that are announced and do not come", () => halfBodies(cluster));
  await t.step("WebSockets of clients that read nothing", () => unread(cluster));
  await t.step("WebSocket messages that are too long", () => longMessages(cluster));
});
