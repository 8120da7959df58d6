/** What waits for somebody who takes nothing: with real isolates, and how much of it the site keeps. */
import assert from "node:assert/strict";
import { IsolateEnd } from "../../runtime/gateway/isolate_socket.ts";
import { SiteQueues } from "../../runtime/isolate/app_queues.ts";
import { type HostSocket, IsolatePool } from "../../runtime/isolate/mod.ts";
import { SOCKET_WINDOW_BYTES } from "../../runtime/isolate/socket_window.ts";
import { appOf, callOf } from "./apps.ts";

const MESSAGE = 64 * 1024;

/** Sends 800 messages at once, and says what is still to be sent when it is asked. */
const SENDER = `export default { fetch(request) {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.onopen = () => { for (let i = 0; i < 800; i++) socket.send(new Uint8Array(${MESSAGE}).fill(i)); };
  socket.onmessage = () => console.log("buffered " + socket.bufferedAmount);
  socket.onclose = (e) => console.log("closed " + e.code);
  return response;
} };`;

async function socketOf(pool: IsolatePool, app = appOf(SENDER), lines: string[] = []): Promise<HostSocket> {
  const request = new Request("http://localhost/", { headers: { upgrade: "websocket" } });
  const answer = await pool.call(app, callOf(request, { log: ({ text }) => lines.push(text) }));
  assert.equal(answer.kind, "upgrade", JSON.stringify(answer));
  if (answer.kind !== "upgrade") throw new Error("no socket");
  return answer.socket;
}

async function until(what: string, reached: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 20_000;
  while (!reached()) {
    assert.ok(performance.now() < deadlineMs, what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function askBuffered(socket: HostSocket, lines: string[]): Promise<number> {
  const from = lines.length;
  await socket.send("?");
  await until("the app says what is buffered", () => lines.length > from);
  return Number(lines.at(-1)?.split(" ")[1]);
}

Deno.test("a client that takes nothing has the app keep what it sends: the site has a window of it, and the app sees how much (W2, SW1)", async () => {
  const queues = new SiteQueues();
  const pool = new IsolatePool({ queues });
  try {
    const lines: string[] = [], got: Uint8Array[] = [];
    const socket = await socketOf(pool, appOf(SENDER), lines);
    let lastBytes = 0;
    socket.bridge({
      message: (data, bytes) => {
        assert.ok(data instanceof Uint8Array);
        got.push(data);
        lastBytes = bytes;
      },
      close: () => {},
    });
    await until("a window has come", () => got.length * MESSAGE >= SOCKET_WINDOW_BYTES - MESSAGE);
    assert.equal(await askBuffered(socket, lines), 800 * MESSAGE);
    const kept = queues.of("app").bytes;
    assert.ok(got.length * MESSAGE <= SOCKET_WINDOW_BYTES, `${got.length} messages came`);
    assert.ok(kept >= SOCKET_WINDOW_BYTES - MESSAGE && kept <= SOCKET_WINDOW_BYTES + 2 * MESSAGE, `${kept}`);
    // As it is taken, the rest comes, in order.
    for (let taken = 0; taken < 800; taken++) {
      await until(`message ${taken}`, () => got.length > taken);
      socket.taken(lastBytes, taken === got.length - 1);
    }
    assert.deepEqual(got.map(([first]) => first), Array.from({ length: 800 }, (_, i) => i % 256));
    await until("all is given back", () => queues.of("app").bytes === 0);
    assert.equal(await askBuffered(socket, lines), 0);
    socket.close(1000, "");
  } finally {
    await pool.close();
  }
});

Deno.test("empty messages count, too", async () => {
  const pool = new IsolatePool();
  try {
    const code = SENDER.replace(`new Uint8Array(${MESSAGE}).fill(i)`, `""`).replace("800", "100_000");
    let got = 0;
    const lines: string[] = [];
    const socket = await socketOf(pool, appOf(code), lines);
    socket.bridge({ message: () => got++, close: () => {} });
    assert.equal(await askBuffered(socket, lines), 0);
    assert.ok(got > 100 && got <= SOCKET_WINDOW_BYTES / 256, `${got}`);
  } finally {
    await pool.close();
  }
});

Deno.test("over the budget of its app the socket that holds most is closed, and another app's goes on (Q2)", async () => {
  const queues = new SiteQueues(6 * SOCKET_WINDOW_BYTES);
  const pool = new IsolatePool({ queues });
  try {
    const lines: string[] = [], closed: number[] = [];
    const quiet = await socketOf(pool, appOf(SENDER.replace("800", "3"), { name: "quiet" }));
    let quietGot = 0;
    quiet.bridge({
      message: (_, bytes) => quiet.taken(bytes, ++quietGot === 3),
      close: (code) => closed.push(-code),
    });
    for (let i = 0; i < 10; i++) {
      const end = new IsolateEnd(await socketOf(pool, appOf(SENDER.replace("800", "8")), lines));
      end.whenCut((code) => closed.push(code));
    }
    await until("some are closed", () => closed.length >= 4);
    await until("the app hears of each", () => lines.filter((line) => line === "closed 1013").length >= 4);
    await until("the rest fits", () => queues.of("app").bytes <= 6 * SOCKET_WINDOW_BYTES);
    assert.ok(closed.length <= 6 && closed.every((code) => code === 1013), closed.join());
    await until("the quiet one has all", () => quietGot === 3);
  } finally {
    await pool.close();
  }
});

Deno.test("a client that sends more than its isolate reads waits, and its neighbours' isolate lives (W3)", async () => {
  const pool = new IsolatePool();
  try {
    const code = `export default { fetch(request) {
      const { socket, response } = Deno.upgradeWebSocket(request);
      let bytes = 0;
      socket.binaryType = "arraybuffer";
      socket.onmessage = (e) => {
        bytes += e.data.byteLength;
        const t = Date.now(); while (Date.now() - t < 5);
        socket.send(String(bytes));
      };
      return response;
    } };`;
    const socket = await socketOf(pool, appOf(code));
    let last = "";
    socket.bridge({
      message: (data, bytes) => {
        last = String(data);
        socket.taken(bytes, true);
      },
      close: () => last = "closed",
    });
    const mib = new Uint8Array(1 << 20);
    for (let i = 0; i < 200; i++) await socket.send(mib); // more than an isolate may leave unread
    await until("all has come", () => last === String(200 << 20) || last === "closed");
    assert.equal(last, String(200 << 20));
  } finally {
    await pool.close();
  }
});

Deno.test("a server that reads nothing of what an app fetches has the app wait: neither its site nor it holds the rest", async () => {
  const queues = new SiteQueues();
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const { port } = listener.addr;
  const pool = new IsolatePool({ queues, egress: { privateHosts: [`127.0.0.1:${port}`] } });
  try {
    const code = `export default { async fetch() {
      let pulled = 0;
      const body = new ReadableStream({ pull(c) {
        pulled += 65536;
        if (pulled > 1 << 30) return c.close();
        c.enqueue(new Uint8Array(65536));
        if (pulled % (1 << 20) === 0) console.log(String(pulled));
      } }, { highWaterMark: 0 });
      await fetch("http://127.0.0.1:${port}/", { method: "POST", body, duplex: "half" });
      return new Response("answered");
    } };`;
    const lines: string[] = [];
    const app = appOf(code, { fetchHosts: [`127.0.0.1:${port}`], limits: { wallMs: 4_000 } });
    const answer = pool.call(app, callOf("/", { log: ({ text }) => lines.push(text) }));
    using connection = await listener.accept();
    assert.ok(connection);
    assert.equal((await answer).kind, "error");
    const pulled = Number(lines.filter((line) => /^\d+$/.test(line)).at(-1));
    // What the two ends of a connection over loopback take by themselves is some megabytes.
    assert.ok(pulled < 24 << 20, `${pulled >> 20} MiB left the app`);
    assert.ok(queues.of("app").bytes < 1 << 20, `${queues.of("app").bytes}`);
  } finally {
    await pool.close();
    listener.close();
  }
});
