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
    const { code } = await closed;
    // Who sends several times what he may is closed before he is done, and may not hear of it.
    assert.ok(code === 1009 || (message.length === 50 << 20 && [0, 1006].includes(code)), `${code}`);
  }
  // The isolate that has both goes on, and what is allowed is heard.
  assert.equal(await answerTo(neighbour, "two"), "heard two");
  const long = "y".repeat(4 << 20);
  assert.equal(await answerTo(neighbour, long), `heard ${long}`);
  const gone = new Promise((resolve) => neighbour.onclose = resolve);
  neighbour.close();
  await gone;
}

const MIB = 1 << 20;
/** As a line of a few hundred megabits a second brings it: a site looks four times a second. */
const PART_BYTES = MIB / 2, PART_MS = 20;

/** A WebSocket by hand, which answers no close. */
async function rawSocket(cluster: TestCluster, path: string) {
  const { hostname, port, host } = new URL(cluster.url("cloud"));
  const client = await Deno.connect({ hostname, port: Number(port) });
  await client.write(new TextEncoder().encode(
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  ));
  let heard = "", isOver = false;
  const over = (async () => {
    const into = new Uint8Array(64 * 1024);
    for (;;) {
      const count = await client.read(into).catch(() => null);
      if (count === null) break;
      heard += Array.from(into.subarray(0, count), (byte) => String.fromCharCode(byte)).join("");
    }
    isOver = true;
  })();
  return {
    /** All of it, or until the site ends it. */
    async send(bytes: Uint8Array) {
      for (let at = 0; at < bytes.length && !isOver;) {
        const part = bytes.subarray(at, at + PART_BYTES);
        for (let sent = 0; sent < part.length && !isOver;) {
          sent += await client.write(part.subarray(sent)).catch(() => Infinity);
        }
        at += part.length;
        await new Promise((resolve) => setTimeout(resolve, PART_MS));
      }
    },
    over,
    get isOver() {
      return isOver;
    },
    get heard() {
      return heard;
    },
    close: () => client.close(),
  };
}

/** A frame, masked with nothing, or its beginning. */
function frameOf(bytes: number, { opcode, isLast }: { opcode: number; isLast: boolean }): Uint8Array {
  const frame = new Uint8Array(14 + bytes);
  frame.set([(isLast ? 0x80 : 0) | opcode, 0xff]);
  new DataView(frame.buffer).setBigUint64(2, BigInt(bytes));
  return frame;
}

/** Messages that have no end, and that are still longer than one may be; and one that takes its time. */
async function halfMessages(cluster: TestCluster): Promise<void> {
  const { pid } = await cluster.site("cloud");
  const siteMib = () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1]) / 1_024;
  const slow = await rawSocket(cluster, "/probe/socket");
  const before = siteMib();
  let most = 0;
  const sampling = setInterval(() => most = Math.max(most, siteMib()), 50);
  // By itself a frame of 60 MiB of which half comes, and fragments, between which a client answers pings.
  const whole = frameOf(60 * MIB, { opcode: 2, isLast: true }).subarray(0, 30 * MIB);
  const fragments = new Uint8Array(
    await new Blob(
      Array.from(
        { length: 30 },
        (_, i) => frameOf(MIB, { opcode: i === 0 ? 2 : 0, isLast: false }) as Uint8Array<ArrayBuffer>,
      ),
    ).arrayBuffer(),
  );
  const rows: [path: string, bytes: Uint8Array][] = [
    ["/probe/socket", whole],
    ["/probe/socket", fragments],
    ["/_sojourn/link", whole],
  ];
  try {
    const patient = (async () => {
      for (let i = 0; i < 4; i++) {
        await slow.send(frameOf(MIB - 100, { opcode: i === 0 ? 1 : 0, isLast: i === 3 }).fill(97, 14));
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    })();
    await Promise.all(rows.map(async ([path, bytes]) => {
      const hostile = await rawSocket(cluster, path);
      try {
        const sent = hostile.send(bytes);
        await eventually(
          `a message without end at ${path} is cut off`,
          () => Promise.resolve(hostile.isOver),
        );
        await sent;
        await hostile.over;
        assert.ok(path !== "/probe/socket" || hostile.heard.includes("\x03\xf1a message has"), hostile.heard);
      } finally {
        hostile.close();
      }
    }));
    await patient;
    await eventually(
      "what was sent slowly is heard",
      () => Promise.resolve(slow.heard.includes("heard aaa")),
    );
    assert.ok(
      most - before < 120,
      `${most - before} MiB were kept of ${rows.length} messages of 30 and more`,
    );
  } finally {
    clearInterval(sampling);
    slow.close();
  }
}

/** Clients that go on sending while they wait for an answer, or hear it: little of that is kept, and they are cut off. */
async function sentOn(cluster: TestCluster): Promise<void> {
  const { hostname, port, host } = new URL(cluster.url("cloud"));
  const { pid } = await cluster.site("cloud");
  const siteMib = () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1]) / 1024;
  const before = siteMib(), noise = new Uint8Array(64 * 1024);
  const gets = ["/probe/slow", "/probe/forever"].map((path) =>
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  );
  const posts = ["/probe/slow", "/_sojourn/backup"].map((path) =>
    `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`
  );
  let most = before;
  const sampling = setInterval(() => most = Math.max(most, siteMib()), 20);
  try {
    for (const head of [...gets, ...posts]) {
      const client = await Deno.connect({ hostname, port: Number(port) });
      const reading = (async () => {
        const into = new Uint8Array(4_096);
        while (await client.read(into).catch(() => null) !== null);
      })();
      try {
        await client.write(new TextEncoder().encode(head));
        let sent = 0;
        for (let isOver = false; !isOver;) {
          await client.write(noise).then((count) => sent += count, () => isOver = true);
          assert.ok(sent < 32 << 20, `${sent >> 20} MiB were taken: ${head}`);
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      } finally {
        client.close();
        await reading;
      }
    }
  } finally {
    clearInterval(sampling);
  }
  await eventually("it is logged", () => Promise.resolve(cluster.log().includes("clients_cut_off")));
  assert.ok(most - before < 150, `the site had ${Math.round(most - before)} MiB more`);
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
      const first = new Uint8Array(64);
      const count = await client.read(first) ?? 0;
      assert.equal(statusOf(new TextDecoder().decode(first.subarray(0, count))), 101);
    }
    let still: number[] = [];
    await eventually("the app knows that little was taken", async () => {
      still = await buffered();
      assert.equal(still.length, FLOODED, `${still}`);
      return true;
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
    // One isolate of each app: the one that says what its clients have not taken is the one that has them all.
    env: { SOJOURN_LIMITS_WALLMS: "3000", SOJOURN_LIMITS_ISOLATESMAX: "1" },
  });
  await t.step("hosts that are more than a host, and methods of proxies", () => requestLines(cluster));
  await t.step("bodies that are announced and do not come", () => halfBodies(cluster));
  await t.step("WebSockets of clients that read nothing", () => unread(cluster));
  await t.step({
    name: "what is sent beyond a request while it is answered",
    ignore: Deno.build.os !== "linux", // elsewhere nobody tells what has come (docs/security.md)
    fn: () => sentOn(cluster),
  });
  await t.step("WebSocket messages that are too long", () => longMessages(cluster));
  await t.step({
    name: "WebSocket messages that are never whole",
    ignore: Deno.build.os !== "linux", // elsewhere nobody tells what has come (docs/security.md)
    fn: () => halfMessages(cluster),
  });
});
