import { strict as assert } from "node:assert";
import { contentOf, Surplus, SURPLUS_BYTES_MAX } from "./surplus.ts";

const LATE_MS = 60_000, MIB = 1024 * 1024;
const isLinux = Deno.build.os === "linux";

/** A server that answers when it is told to, or at once with a stream that ends then; and what its watches tell. */
function serve(
  how: "waits" | "streams",
  tls: { cert: string; key: string } | Record<string, never> = {},
  port?: number,
) {
  const answer = Promise.withResolvers<void>(), asked = Promise.withResolvers<void>();
  let cutOff = 0, withoutHost = 0, bytes: number | null = null;
  const surplus = new Surplus((clients) => cutOff += clients, () => port ?? server.addr.port);
  const server = Deno.serve(
    { ...tls, port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request, client) => {
      if (!request.headers.has("host")) withoutHost++;
      const content = contentOf(request);
      surplus.asked(client);
      surplus.begin(request, client, content);
      asked.resolve();
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
      if (request.body !== null) bytes = (await content.bytes()).length;
      await answer.promise;
      return new Response("done");
    },
  );
  return {
    asked: asked.promise,
    surplus,
    port: server.addr.port,
    cutOff: () => cutOff,
    /** Requests of HTTP/2. */
    withoutHost: () => withoutHost,
    bytes: () => bytes,
    answer: () => answer.resolve(),
    async [Symbol.asyncDispose]() {
      answer.resolve();
      surplus.close();
      await server.shutdown();
    },
  };
}

async function connect(port: number) {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
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
  return {
    send,
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

for (const how of ["waits", "streams"] as const) {
  Deno.test({
    name: `who goes on sending is cut off, and nothing more is read of him, while his answer ${how} (SU1)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve(how);
      await using client = await connect(server.port);
      await client.send(GET);
      await server.asked;
      await looks();
      let sent = 0;
      while (!client.isBroken()) {
        await client.send(some);
        sent += some.length;
        assert.ok(sent < 1024 * MIB, "a gibibyte was taken");
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      assert.equal(server.cutOff(), 1);
      await until("it is over", () => server.surplus.size === 0);
    },
  });
}

Deno.test({
  name: "a few heads of what is asked next are no surplus (SU1)",
  ignore: !isLinux,
  async fn() {
    await using server = serve("waits");
    await using client = await connect(server.port);
    await client.send(GET);
    await server.asked;
    await looks();
    await client.send(GET.repeat(1_000));
    await looks();
    assert.deepEqual([server.cutOff(), client.isBroken()], [0, false]);
    server.answer();
    await until("all are answered", () => client.heard().split("done").length === 1_002);
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
      await using server = serve("waits");
      await using client = await connect(server.port);
      await client.send(headOf(10));
      await piece(client, some.subarray(0, 10));
      if (!isKnown) await client.send("0\r\n\r\n");
      await until("it is taken", () => server.bytes() === 10);
      await looks();
      const sending = (async () => {
        while (!client.isBroken()) {
          await client.send(some);
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })();
      await until("it is cut off", () => server.cutOff() === 1);
      server.answer();
      await sending;
    },
  });
}

for (const order of ["before", "after"]) {
  Deno.test({
    name: `over HTTP/2 a body beside a request that waits is no surplus, begun ${order} it (SU3)`,
    ignore: !isLinux,
    async fn() {
      const pem = (name: string) =>
        Deno.readTextFileSync(new URL(`../../tests/runtime/link/tls/${name}`, import.meta.url));
      await using server = serve("waits", { cert: pem("site.pem"), key: pem("site.key") });
      using client = Deno.createHttpClient({ caCerts: [pem("ca.pem")] });
      const url = `https://127.0.0.1:${server.port}/`;
      let left = 600;
      const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        async pull(controller) {
          if (left-- === 0) return controller.close();
          controller.enqueue(some);
          await new Promise((resolve) => setTimeout(resolve, 1));
        },
      });
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
    await using server = serve("waits", {}, 1);
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

assert.ok(SURPLUS_BYTES_MAX >= GET.length * 1_000);
