import { strict as assert } from "node:assert";
import { contentOf, Surplus, SURPLUS_BYTES_MAX, type SurplusOptions } from "./surplus.ts";

const LATE_MS = 60_000, MIB = 1024 * 1024;
const isLinux = Deno.build.os === "linux";

const pem = (name: string) =>
  Deno.readTextFileSync(new URL(`../../tests/runtime/link/tls/${name}`, import.meta.url));
const tls = () => ({ cert: pem("site.pem"), key: pem("site.key") });

interface Served extends SurplusOptions {
  readonly tls?: { cert: string; key: string };
  /** Tells which requests are watched; all, unless it is given. */
  readonly isWatched?: (request: Request) => boolean;
}

/**
 * A server that answers when it is told to, or at once with a stream that ends then, or opens a WebSocket a little later; and
 * what its watches tell. It takes the body first.
 */
function serve(how: "waits" | "streams" | "upgrades", options: Served = {}) {
  const answer = Promise.withResolvers<void>(), asked = Promise.withResolvers<void>();
  const notes: number[] = [];
  let withoutHost = 0, bytes: number | null = null, heard = 0;
  const surplus = new Surplus({
    port: () => server.addr.port,
    ...options,
    note: (clients) => notes.push(clients),
  });
  const server = Deno.serve(
    { ...options.tls, port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request, client) => {
      if (!request.headers.has("host")) withoutHost++;
      const content = contentOf(request);
      surplus.asked(client);
      if (options.isWatched?.(request) !== false) surplus.begin(request, client, content);
      asked.resolve();
      if (how === "upgrades") {
        await looks();
        const { socket, response } = Deno.upgradeWebSocket(request);
        socket.onmessage = () => heard++;
        return response;
      }
      if (request.body !== null) bytes = (await content.bytes()).length;
      if (how === "streams") {
        return new Response(
          new ReadableStream({
            async pull(controller) {
              controller.enqueue(new Uint8Array(1));
              await answer.promise;
              controller.close();
            },
          }),
        );
      }
      await answer.promise;
      return new Response("done");
    },
  );
  return {
    asked: asked.promise,
    surplus,
    port: server.addr.port,
    notes,
    cutOff: () => notes.reduce((sum, clients) => sum + clients, 0),
    /** Requests of HTTP/2. */
    withoutHost: () => withoutHost,
    bytes: () => bytes,
    /** WebSocket messages. */
    heard: () => heard,
    answer: () => answer.resolve(),
    async [Symbol.asyncDispose]() {
      answer.resolve();
      surplus.close();
      await server.shutdown();
    },
  };
}

async function connect(port: number, tls?: { caCerts: string[]; alpnProtocols?: string[] }) {
  const at = { hostname: "127.0.0.1", port };
  const connection = tls === undefined ? await Deno.connect(at) : await Deno.connectTls({ ...at, ...tls });
  let isBroken = false, heard = "";
  const send = async (bytes: Uint8Array | string) => {
    const all = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
    try {
      for (let at = 0; at < all.length;) at += await connection.write(all.subarray(at));
    } catch {
      isBroken = true;
    }
  };
  const reading = (async () => {
    const into = new Uint8Array(4_096), text = new TextDecoder();
    for (;;) {
      const read = await connection.read(into).catch(() => null);
      if (read === null) return;
      heard += text.decode(into.subarray(0, read));
    }
  })();
  /** How much went until it was cut off. */
  const sendOn = async (): Promise<number> => {
    let sent = 0;
    while (!isBroken) {
      await send(some);
      sent += some.length;
      assert.ok(sent < TAKEN_MAX, `${sent / MIB} MiB were taken`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return sent;
  };
  return {
    send,
    sendOn,
    isBroken: () => isBroken,
    heard: () => heard,
    async [Symbol.asyncDispose]() {
      connection.close();
      await reading;
    },
  };
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const lateMs = performance.now() + LATE_MS; !isSo();) {
    assert.ok(performance.now() < lateMs, what);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const GET = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const some = new Uint8Array(64 * 1024);
const looks = () => new Promise((resolve) => setTimeout(resolve, 300));
/** The surplus, what comes between two looks, and what the system keeps of a connection at both ends. */
const TAKEN_MAX = 14 * MIB;

const hostile: [what: string, how: "waits" | "streams", head: string, isTls?: boolean][] = [
  ["while his answer waits", "waits", GET],
  ["while his answer streams", "streams", GET],
  ["over TLS", "waits", GET, true],
  [
    "as the body of a GET, which nobody takes",
    "streams",
    GET.replace("\r\n\r\n", "\r\ncontent-length: 9000000000\r\n\r\n"),
  ],
];
for (const [what, how, head, isTls] of hostile) {
  Deno.test({
    name: `who goes on sending is cut off, and nothing more is read of him, ${what} (SU1)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve(how, isTls === true ? { tls: tls() } : {});
      await using client = await connect(
        server.port,
        isTls === true ? { caCerts: [pem("ca.pem")] } : undefined,
      );
      await client.send(head);
      await server.asked;
      await looks();
      await client.sendOn();
      assert.deepEqual(server.notes, [1]);
      await until("it is over", () => server.surplus.size === 0);
    },
  });
}

Deno.test({
  name: "of many that are cut off it is told once in a while, and of the last when it ends",
  ignore: !isLinux,
  async fn() {
    const server = serve("waits", { noteMs: 2_000 });
    const cut = async () => {
      await using client = await connect(server.port);
      await client.send(GET);
      await server.asked;
      await looks();
      await client.sendOn();
    };
    {
      await using _ = server;
      await cut();
      await Promise.all([cut(), cut()]);
      assert.deepEqual(server.notes, [1]);
      await until("the others are told of", () => server.notes.length === 2);
      await cut();
    }
    assert.deepEqual(server.notes, [1, 2, 1]);
  },
});

Deno.test({
  name: "a few heads of what is asked next are no surplus (SU1)",
  ignore: !isLinux,
  async fn() {
    await using server = serve("waits");
    await using client = await connect(server.port);
    await client.send(GET);
    await server.asked;
    await looks();
    const long = GET.replace("\r\n\r\n", `\r\nx: ${"x".repeat(900)}\r\n\r\n`);
    await client.send(long.repeat(1_000));
    await looks();
    assert.deepEqual([server.cutOff(), client.isBroken()], [0, false]);
    server.answer();
    await until("all are answered", () => client.heard().split("done").length === 1_002);
  },
});

Deno.test({
  name: "a WebSocket that was not opened at once may send",
  ignore: !isLinux,
  async fn() {
    await using server = serve("upgrades");
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}`);
    await new Promise((resolve) => socket.onopen = resolve);
    await until("it is watched no more", () => server.surplus.size === 0);
    for (let i = 0; i < 64; i++) socket.send(some);
    await until("all is heard", () => server.heard() === 64);
    assert.equal(server.cutOff(), 0);
    const closed = new Promise((resolve) => socket.onclose = resolve);
    socket.close();
    await closed;
  },
});

for (const framing of ["of known length", "in pieces"]) {
  const isKnown = framing === "of known length";
  const headOf = (bytes: number) =>
    `POST / HTTP/1.1\r\nhost: x\r\n${
      isKnown ? `content-length: ${bytes}` : "transfer-encoding: chunked"
    }\r\n\r\n`;
  const piece = async (client: { send(bytes: Uint8Array | string): Promise<void> }, bytes: Uint8Array) => {
    if (!isKnown) await client.send(`${bytes.length.toString(16)}\r\n`);
    await client.send(bytes);
    if (!isKnown) await client.send("\r\n");
  };

  Deno.test({
    name: `a long body ${framing} is no surplus (SU2)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve("waits");
      await using client = await connect(server.port);
      const BYTES = 24 * MIB;
      await client.send(headOf(BYTES));
      await server.asked;
      await looks();
      for (let sent = 0; sent < BYTES; sent += some.length) await piece(client, some);
      if (!isKnown) await client.send("0\r\n\r\n");
      await until("it is taken", () => server.bytes() === BYTES);
      await looks();
      assert.deepEqual([server.cutOff(), client.isBroken()], [0, false]);
    },
  });

  Deno.test({
    name: `what comes after a body ${framing} is surplus (SU2)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve("streams");
      await using client = await connect(server.port);
      const BYTES = 2 * MIB; // of which pieces might have as much as is taken of nobody
      await client.send(headOf(BYTES));
      await server.asked;
      for (let sent = 0; sent < BYTES; sent += some.length) await piece(client, some);
      if (!isKnown) await client.send("0\r\n\r\n");
      await until("it is taken", () => server.bytes() === BYTES);
      await looks();
      assert.deepEqual([server.cutOff(), client.isBroken()], [0, false]);
      await client.sendOn();
      assert.equal(server.cutOff(), 1);
    },
  });
}

/** So many pieces, one a millisecond. */
const bodyOf = (pieces: number) =>
  new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      if (pieces-- === 0) return controller.close();
      controller.enqueue(some);
      await new Promise((resolve) => setTimeout(resolve, 1));
    },
  });

for (const order of ["before", "after"]) {
  Deno.test({
    name: `over HTTP/2 a body beside a request that waits is no surplus, begun ${order} it (SU3)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve("waits", { tls: tls() });
      using client = Deno.createHttpClient({ caCerts: [pem("ca.pem")] });
      const url = `https://127.0.0.1:${server.port}/`, body = bodyOf(600);
      const begin = [
        () => fetch(url, { client }).then((answer) => answer.text()),
        () => fetch(url, { client, method: "POST", body }).then((answer) => answer.text()),
      ];
      const asked = (order === "before" ? begin.reverse() : begin).map((ask) => ask());
      await until("the body is taken", () => server.bytes() === 600 * some.length);
      await looks();
      assert.deepEqual([server.cutOff(), server.withoutHost()], [0, 2]);
      server.answer();
      assert.deepEqual(await Promise.all(asked), ["done", "done"]);
    },
  });
}

Deno.test({
  name:
    "over HTTP/2 the body of one that is not watched yet is no surplus of an answer that streams already (SU3)",
  ignore: !isLinux,
  async fn() {
    // A settling that no body here outlasts: what is tried is that there is one.
    const isWatched = ({ method }: Request) => method === "GET";
    await using server = serve("streams", { tls: tls(), isWatched, settleMs: LATE_MS });
    using client = Deno.createHttpClient({ caCerts: [pem("ca.pem")] });
    const url = `https://127.0.0.1:${server.port}/`, PIECES = 400, goes = Promise.withResolvers<void>();
    const rest = bodyOf(PIECES).getReader();
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => controller.enqueue(some),
      async pull(controller) {
        await goes.promise;
        const { value } = await rest.read();
        if (value === undefined) controller.close();
        else controller.enqueue(value);
      },
    });
    const posted = fetch(url, { client, method: "POST", body });
    await server.asked;
    const streams = await fetch(url, { client });
    await looks();
    goes.resolve();
    await until("the body is taken", () => server.bytes() === (PIECES + 1) * some.length);
    assert.deepEqual([server.cutOff(), server.withoutHost(), server.surplus.size], [0, 2, 1]);
    server.answer();
    await Promise.all([streams.text(), posted.then((answer) => answer.text())]);
  },
});

/** A GET of HTTP/2 (RFC 9113, 3.4; of its heads all are in the table of RFC 7541), and a window's update by one byte. */
const HTTP2_GET = new Uint8Array([
  ...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  ...[0, 0, 0, 4, 0, 0, 0, 0, 0],
  ...[0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x84, 0x87],
]);
const WINDOW_UPDATE = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];

Deno.test({
  name:
    "over HTTP/2 a client may say what it has to of an answer that streams, and who says far more is cut off (SU3)",
  ignore: !isLinux,
  async fn() {
    await using server = serve("streams", { tls: tls(), settleMs: 0 });
    await using client = await connect(server.port, { caCerts: [pem("ca.pem")], alpnProtocols: ["h2"] });
    await client.send(HTTP2_GET);
    await server.asked;
    await looks();
    const updates = new Uint8Array(Array.from({ length: 8_192 }, () => WINDOW_UPDATE).flat());
    const send = async (bytes: number) => {
      for (let sent = 0; sent < bytes && !client.isBroken(); sent += updates.length) {
        await client.send(updates);
      }
    };
    await send(4 * MIB); // of windows: for two gigabytes
    await looks();
    assert.deepEqual([server.cutOff(), client.isBroken(), server.withoutHost()], [0, false, 1]);
    await send(64 * MIB);
    assert.deepEqual([server.cutOff(), client.isBroken()], [1, true]);
  },
});

Deno.test("a connection on which another request begins is watched no more (SU3), nor one whose answer is gone", () => {
  const surplus = new Surplus(), request = new Request("http://x/");
  const client = (port: number, completed: Promise<void>) => ({
    remoteAddr: { transport: "tcp" as const, hostname: "127.0.0.1", port },
    completed,
  });
  const never = new Promise<void>(() => {}), first = client(1, never);
  surplus.begin(request, first, request);
  assert.equal(surplus.size, 1);
  surplus.asked(client(2, never));
  assert.equal(surplus.size, 1);
  surplus.asked(first);
  assert.equal(surplus.size, 0);
  surplus.begin(request, first, request);
  surplus.begin(request, first, request);
  assert.equal(surplus.size, 0);
});

Deno.test({
  name: "a connection of the same peer to another port is not cut off",
  ignore: !isLinux,
  async fn() {
    await using server = serve("waits", { port: () => 1 });
    await using client = await connect(server.port);
    await client.send(GET);
    await server.asked;
    await looks();
    for (let i = 0; i < 128; i++) await client.send(some);
    await looks();
    assert.deepEqual([server.cutOff(), client.isBroken(), server.surplus.size], [0, false, 1]);
  },
});

Deno.test("over HTTP/1.1 each request of a connection is watched, also where the one before is over a little later", () => {
  const surplus = new Surplus(), never = new Promise<void>(() => {}), first = Promise.withResolvers<void>();
  const request = new Request("http://x/", { headers: { host: "x" } });
  const remoteAddr = { transport: "tcp" as const, hostname: "127.0.0.1", port: 1 };
  surplus.begin(request, { remoteAddr, completed: first.promise }, request);
  surplus.asked({ remoteAddr });
  surplus.begin(request, { remoteAddr, completed: never }, request);
  assert.equal(surplus.size, 1);
  surplus.close();
});

Deno.test("a request is watched until its answer is gone", async () => {
  const surplus = new Surplus(), request = new Request("http://x/"), gone = Promise.withResolvers<void>();
  const remoteAddr = { transport: "tcp" as const, hostname: "127.0.0.1", port: 1 };
  surplus.begin(request, { remoteAddr, completed: gone.promise }, request);
  assert.equal(surplus.size, 1);
  gone.reject(new Error("the client has gone"));
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(surplus.size, 0);
});

Deno.test("who has ended begins no watch", () => {
  const surplus = new Surplus(), request = new Request("http://x/");
  surplus.close();
  const remoteAddr = { transport: "tcp" as const, hostname: "127.0.0.1", port: 1 };
  surplus.begin(request, { remoteAddr, completed: new Promise<void>(() => {}) }, request);
  assert.equal(surplus.size, 0);
});

assert.ok(SURPLUS_BYTES_MAX >= 1_000 * (GET.length + 900));
