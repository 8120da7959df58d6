/**
 * What waits for somebody who takes nothing: with real isolates, and how much of it the site keeps (host_socket.ts W2, W3;
 * of an isolate that its site does not read: watchdog.ts W2).
 */
import assert from "node:assert/strict";
import { bundleApp } from "../../../runtime/bundle/mod.ts";
import { SocketOfIsolate } from "../../../runtime/gateway/isolate_socket.ts";
import type { CommitResult, Mutation } from "../../../functions/vocabulary/store_client.ts";
import { SiteQueues } from "../../../runtime/isolate/app_queues.ts";
import { HELD_BYTES_MAX } from "../../../runtime/isolate/app_turns.ts";
import { type HostSocket, IsolatePool } from "../../../runtime/isolate/mod.ts";
import { SOCKET_WINDOW_BYTES } from "../../../runtime/isolate/socket_window.ts";
import { appOf, callOf, MemoryStore } from "./apps.ts";

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

Deno.test("a client that takes nothing has the app keep what it sends: the site has a window of it, and the app sees how much (W2, SW1, SW2)", async () => {
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
      const end = new SocketOfIsolate(await socketOf(pool, appOf(SENDER.replace("800", "8")), lines));
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

/** Takes its time, and counts what is under way. */
class SlowStore extends MemoryStore {
  readonly #ms: number;
  #bytes = 0;
  bytesMax = 0;
  commits = 0;

  constructor(ms: number) {
    super();
    this.#ms = ms;
  }

  override async commit(_checks: readonly unknown[], mutations: readonly Mutation[]): Promise<CommitResult> {
    let bytes = 0;
    for (const mutation of mutations) if (mutation.kind !== "delete") bytes += mutation.value.length;
    this.#bytes += bytes;
    this.bytesMax = Math.max(this.bytesMax, this.#bytes);
    await new Promise((resolve) => setTimeout(resolve, this.#ms));
    this.#bytes -= bytes;
    this.commits++;
    return await super.commit([], mutations);
  }
}

const WRITER_VALUE = 100_000;
const WRITER = `import { defineApp } from "sojourn";
  export default defineApp({ name: "writer", async fetch(request, env) {
    const count = Number(new URL(request.url).searchParams.get("count"));
    const value = new Uint8Array(${WRITER_VALUE});
    await Promise.all(Array.from({ length: count }, (_, i) => env.kv.set(["k", i], value)));
    return new Response("written");
  } });`;

async function bundled(source: string): Promise<string> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/app.ts`, source);
    const result = await bundleApp(`${folder}/app.ts`);
    if (result.kind === "failed") throw new Error(result.message);
    return new TextDecoder().decode(result.code);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function write(pool: IsolatePool, store: MemoryStore, count: number, limits = {}): Promise<string> {
  const app = appOf(await bundled(WRITER), { name: "writer", limits });
  const answer = await pool.call(app, callOf(new Request(`http://localhost/?count=${count}`), { store }));
  return answer.kind === "response" ? await answer.response.text() : JSON.stringify(answer);
}

Deno.test("what an app commits at once waits in its isolate: the site has a bound of it, and all of it is done (AT3)", async () => {
  const queues = new SiteQueues();
  const pool = new IsolatePool({ queues });
  try {
    const store = new SlowStore(5);
    assert.equal(await write(pool, store, 100), "written");
    assert.equal(store.commits, 100);
    assert.ok(store.bytesMax <= HELD_BYTES_MAX + WRITER_VALUE, `${store.bytesMax} bytes were under way`);
    await until("all is given back", () => queues.of("writer").bytes === 0);
    assert.equal(queues.of("writer").turns.heldBytes, 0);
  } finally {
    await pool.close();
  }
});

Deno.test("an isolate that its site does not read is not taken for one that stands still (AT3, W2)", async () => {
  const pool = new IsolatePool();
  try {
    // Ten times that is how long an event loop may stand still.
    assert.equal(await write(pool, new SlowStore(1_500), 6, { cpuMs: 100 }), "written");
  } finally {
    await pool.close();
  }
});

Deno.test("an app that has no turn costs another one none (AT1, AT3)", async () => {
  const pool = new IsolatePool();
  try {
    const slow = write(pool, new SlowStore(1_000), 8);
    const other = appOf(`export default { fetch: () => new Response("other") };`, { name: "other" });
    await pool.call(other, callOf(new Request("http://localhost/")));
    const answer = await pool.call(other, callOf(new Request("http://localhost/")));
    assert.equal(answer.kind, "response");
    let isWritten = false;
    void slow.then(() => isWritten = true);
    await null;
    assert.ok(!isWritten);
    assert.equal(await slow, "written");
  } finally {
    await pool.close();
  }
});
