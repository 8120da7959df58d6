import { strict as assert } from "node:assert";
import { connect as connectFrom } from "node:net";
import { IdleConnections } from "./idle_connections.ts";
import { Surplus } from "./surplus.ts";

const LATE_MS = 60_000, IDLE_MS = 1_500, ROUND_MS = 50;
const isLinux = Deno.build.os === "linux";
const GET = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const lateMs = performance.now() + LATE_MS; !isSo(); await pause(10)) {
    assert.ok(performance.now() < lateMs, what);
  }
}

/** A server that answers at once, or when it is told to, or opens a WebSocket; and looks for who is idle. */
function serve(how: "answers" | "waits" | "upgrades" = "answers") {
  const answer = Promise.withResolvers<void>(), answered = new Set<string>();
  const idle = new IdleConnections({
    port: () => server.addr.port,
    isAnswered: ({ hostname, port }) => answered.has(`${hostname} ${port}`),
    idleMs: IDLE_MS,
    roundMs: ROUND_MS,
  });
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request, { remoteAddr }) => {
      if (how === "answers") return new Response("done");
      if (how === "upgrades") {
        const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
        idle.upgraded({ remoteAddr });
        socket.onmessage = () => {};
        return response;
      }
      answered.add(`${remoteAddr.hostname} ${remoteAddr.port}`);
      await answer.promise;
      answered.clear();
      return new Response("done");
    },
  );
  return {
    idle,
    port: server.addr.port,
    answer: () => answer.resolve(),
    async [Symbol.asyncDispose]() {
      answer.resolve();
      idle.close();
      await server.shutdown();
    },
  };
}

async function connect(port: number) {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  let heard = "", isOver = false;
  const reading = (async () => {
    const into = new Uint8Array(4_096);
    for (;;) {
      const read = await connection.read(into).catch(() => null);
      if (read === null) break;
      heard += new TextDecoder().decode(into.subarray(0, read));
    }
    isOver = true;
  })();
  return {
    send: (text: string) => connection.write(new TextEncoder().encode(text)).catch(() => 0),
    heard: () => heard.split("done").length - 1,
    isOver: () => isOver,
    async [Symbol.asyncDispose]() {
      connection.close();
      await reading;
    },
  };
}

/** A connection from an address of the loopback, and a port. */
async function connectAs(port: number, localAddress: string, localPort: number) {
  const client = connectFrom({ host: "127.0.0.1", port, localAddress, localPort });
  await new Promise((resolve, reject) => client.once("connect", resolve).once("error", reject));
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.resume();
  return {
    client,
    isOver: () => client.closed || client.readableEnded,
    async [Symbol.asyncDispose]() {
      client.destroy();
      await closed;
    },
  };
}

/** A port that nobody has. */
function freePort(): number {
  const free = Deno.listen({ port: 0, hostname: "127.0.0.1" }), { port } = free.addr;
  free.close();
  return port;
}

const idle: [what: string, said: string, more?: string][] = [
  ["who says nothing", ""],
  ["who says half of a head", GET.slice(0, 20)],
  ["who says half of a head, and a byte now and then", GET.slice(0, 20), "x"],
  ["who was answered, and says nothing more", GET],
  [
    "who was answered before his body had come",
    GET.replace("GET", "POST").replace("\r\n\r\n", "\r\ncontent-length: 9\r\n\r\n"),
  ],
];
for (const [what, said, more] of idle) {
  Deno.test({
    name: `idle is, and is cut off (IC1), ${what}`,
    ignore: !isLinux,
    async fn() {
      await using server = serve();
      await using client = await connect(server.port);
      const sinceMs = performance.now();
      await client.send(said);
      while (!client.isOver() && performance.now() < sinceMs + LATE_MS) {
        await pause(100);
        if (more !== undefined) await client.send(more);
      }
      assert.ok(client.isOver());
      assert.ok(performance.now() - sinceMs >= IDLE_MS, "he had the time");
    },
  });
}

Deno.test({
  name: "who is answered now and then, waits for his answer, or has a WebSocket is not (IC1, IC2)",
  ignore: !isLinux,
  async fn() {
    await using asks = serve();
    await using waits = serve("waits");
    await using upgrades = serve("upgrades");
    await using asking = await connect(asks.port);
    await using waiting = await connect(waits.port);
    const socket = new WebSocket(`ws://127.0.0.1:${upgrades.port}`);
    await new Promise((resolve) => socket.onopen = resolve);
    await waiting.send(GET);
    let asked = 0;
    for (const untilMs = performance.now() + 3 * IDLE_MS; performance.now() < untilMs; asked++) {
      await asking.send(GET);
      socket.send("nothing is sent in turn");
      await pause(IDLE_MS / 4);
    }
    assert.deepEqual([asking.heard(), asking.isOver(), waiting.isOver()], [asked, false, false]);
    assert.equal(socket.readyState, WebSocket.OPEN);
    waits.answer();
    await until("it is answered", () => waiting.heard() === 1);
    await until("and idle from then on", () => waiting.isOver());
    const closed = new Promise((resolve) => socket.onclose = resolve);
    socket.close();
    await closed;
  },
});

Deno.test({
  name: "the address of a WebSocket that is gone is another's (IC4)",
  ignore: !isLinux,
  async fn() {
    await using server = serve();
    const port = freePort();
    server.idle.upgraded({ remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port } });
    await pause(4 * ROUND_MS);
    await using client = await connectAs(server.port, "127.0.0.1", port);
    await until("it is cut off", () => client.isOver());
  },
});

Deno.test({
  name: "connections at other ports are nobody's here",
  ignore: !isLinux,
  async fn() {
    await using server = serve();
    await using other = serve();
    other.idle.close();
    await using client = await connect(other.port);
    await using own = await connect(server.port);
    await until("the own one is cut off", () => own.isOver());
    await pause(4 * ROUND_MS);
    assert.equal(client.isOver(), false);
  },
});

for (const how of ["waits", "upgrades"] as const) {
  Deno.test({
    name: `one who ${how} keeps nobody who has his port at another address (IC2)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve(how);
      const port = freePort();
      await using busy = await connectAs(server.port, "127.0.0.2", port);
      busy.client.write(
        how === "waits" ? GET : GET.replace(
          "\r\n\r\n",
          "\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" +
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        ),
      );
      await using quiet = await connectAs(server.port, "127.0.0.1", port);
      await until("the quiet one is cut off", () => quiet.isOver());
      await pause(4 * ROUND_MS);
      assert.equal(busy.isOver(), false);
    },
  });
}

Deno.test({
  name: "who has just sent something is left for a twelfth of the time more (IC2)",
  ignore: !isLinux,
  async fn() {
    const sent = [];
    for (const isSending of [false, true]) {
      await using server = serve();
      await using client = await connect(server.port);
      await client.send(GET.slice(0, 20));
      const sinceMs = performance.now();
      while (!client.isOver()) {
        assert.ok(performance.now() < sinceMs + LATE_MS, "nobody was cut off");
        await pause(5);
        if (isSending) await client.send("x");
      }
      sent.push(performance.now() - sinceMs);
    }
    assert.ok(Math.min(...sent) >= IDLE_MS);
    assert.ok((sent[1] ?? 0) >= IDLE_MS + IDLE_MS / 12, `${sent}`);
  },
});

Deno.test({
  name: "while idle connections are looked for libc stays open, however often nobody is watched",
  ignore: !isLinux,
  async fn() {
    const { dlopen } = Deno;
    let opened = 0;
    Object.assign(Deno, {
      dlopen: (name: string, calls: Deno.ForeignLibraryInterface) => {
        opened++;
        return dlopen(name, calls);
      },
    });
    try {
      await using server = serve();
      await using client = await connect(server.port);
      await client.send(GET);
      await until("it is met", () => server.idle.size === 1);
      const surplus = new Surplus(), request = new Request("http://x/");
      for (let i = 0; i < 3; i++) {
        const over = Promise.withResolvers<void>();
        const remoteAddr = { transport: "tcp" as const, hostname: "127.0.0.1", port: 1 };
        surplus.begin(request, { remoteAddr, completed: over.promise }, request);
        assert.equal(surplus.size, 1);
        await pause(3 * ROUND_MS);
        over.resolve();
        await until("nobody is watched", () => surplus.size === 0);
      }
      surplus.close();
    } finally {
      Object.assign(Deno, { dlopen });
    }
    assert.equal(opened, 1);
  },
});

Deno.test({
  name: "where the system can't tell nobody is cut off (IC5)",
  permissions: { net: true, read: true, ffi: false },
  async fn() {
    await using server = serve();
    await using client = await connect(server.port);
    await pause(IDLE_MS + 10 * ROUND_MS);
    assert.deepEqual([client.isOver(), server.idle.size], [false, 0]);
  },
});
