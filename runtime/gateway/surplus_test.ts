import { strict as assert } from "node:assert";
import { type ConnectionWatch, descriptors } from "../link/descriptors.ts";
import {
  contentOf,
  CountedContent,
  Surplus,
  SURPLUS_BYTES_MAX,
  type SurplusOptions,
  UPGRADE_BYTES_MAX,
} from "./surplus.ts";

const LATE_MS = 60_000, MIB = 1024 * 1024, KIB = 1024;
const isLinux = Deno.build.os === "linux";

const pem = (name: string) =>
  Deno.readTextFileSync(new URL(`../../tests/runtime/link/tls/${name}`, import.meta.url));
const tls = () => ({ cert: pem("site.pem"), key: pem("site.key") });

interface Served extends SurplusOptions {
  readonly tls?: { cert: string; key: string };
  /** Tells which requests are watched; all, unless it is given. */
  readonly isWatched?: (request: Request) => boolean;
  /** So many bytes stream at once; one, unless it is given. */
  readonly streamed?: number;
  /** Bodies are left where they are. */
  readonly takesNone?: boolean;
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
      surplus.asked(client, request.headers.get("host"));
      if (options.isWatched?.(request) !== false) surplus.begin(request, client, content);
      asked.resolve();
      if (how === "upgrades") {
        await looks();
        const { socket, response } = Deno.upgradeWebSocket(request);
        socket.onmessage = () => heard++;
        return response;
      }
      if (request.body !== null && options.takesNone !== true) {
        bytes = (await content.bytes().catch(() => some)).length;
      }
      if (how === "streams") {
        let streamed = 0;
        return new Response(
          new ReadableStream({
            async pull(controller) {
              if (streamed < (options.streamed ?? 1)) {
                const piece = new Uint8Array(Math.min(some.length, (options.streamed ?? 1) - streamed));
                streamed += piece.length;
                return controller.enqueue(piece);
              }
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
  let isBroken = false, heard = "", read = 0;
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
      const came = await connection.read(into).catch(() => null);
      if (came === null) return;
      read += came;
      if (read < MIB) heard += text.decode(into.subarray(0, came));
    }
  })();
  /** How much went until it was cut off. */
  const sendOn = async (atMost = TAKEN_MAX): Promise<number> => {
    let sent = 0;
    while (!isBroken) {
      await send(some);
      sent += some.length;
      assert.ok(sent < atMost, `${sent / MIB} MiB were taken`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return sent;
  };
  return {
    local: connection.localAddr as Deno.NetAddr,
    send,
    sendOn,
    isBroken: () => isBroken,
    /** The first mebibyte of what came. */
    heard: () => heard,
    read: () => read,
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
/** Of a deploy's file. */
const LONGEST_BODY_BYTES = 25 * MIB;

const hostile: [what: string, how: "waits" | "streams", head: string, isTls?: boolean][] = [
  ["while his answer waits", "waits", GET],
  ["while his answer streams", "streams", GET],
  ["over TLS", "waits", GET, true],
  ["without naming a host", "waits", GET.replace("host", "x-host")],
  ["without naming a host, while his answer streams", "streams", GET.replace("host", "x-host")],
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
  name: "who asks for a WebSocket has nothing to say until it is there, from the beginning (SU7)",
  ignore: !isLinux,
  async fn() {
    await using server = serve("waits", { judgedMs: LATE_MS });
    const asks = GET.replace("\r\n\r\n", "\r\nconnection: upgrade\r\nupgrade: WebSocket\r\n\r\n");
    await using plain = await connect(server.port);
    await using socket = await connect(server.port);
    for (const [client, head] of [[plain, GET], [socket, asks]] as const) {
      await client.send(head);
      await until("it is asked", () => server.surplus.has(client.local));
      await looks();
      for (let sent = 0; sent <= UPGRADE_BYTES_MAX; sent += some.length) await client.send(some);
      await looks();
    }
    assert.deepEqual([server.notes, server.surplus.size], [[1], 1]);
  },
});

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

for (const bytes of [1, 64]) {
  Deno.test({
    name: `over TLS the records of a body, of ${bytes} bytes each, have room (SU2)`,
    ignore: !isLinux,
    async fn() {
      const RECORDS = 60_000; // each has 22 bytes beside: together more than a surplus
      await using server = serve("waits", { tls: tls() });
      await using client = await connect(server.port, { caCerts: [pem("ca.pem")] });
      await client.send(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${RECORDS * bytes}\r\n\r\n`);
      await server.asked;
      await looks();
      const record = new Uint8Array(bytes);
      for (let i = 0; i < RECORDS && !client.isBroken(); i++) await client.send(record);
      await until("it is taken", () => server.bytes() === RECORDS * bytes || client.isBroken());
      await looks();
      assert.deepEqual([server.cutOff(), client.isBroken()], [0, false]);
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
  name: "over HTTP/2 the body of one that takes no while is no surplus of an answer that streams (SU3)",
  ignore: !isLinux,
  async fn() {
    const isWatched = ({ method }: Request) => method === "GET";
    await using server = serve("streams", { tls: tls(), isWatched, judgedMs: 0 });
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
    assert.deepEqual([server.cutOff(), server.withoutHost(), server.surplus.size], [0, 2, 0]);
    server.answer();
    await Promise.all([streams.text(), posted.then((answer) => answer.text())]);
  },
});

/**
 * A GET of HTTP/2 (RFC 9113, 3.4; of its heads all are in the table of RFC 7541) by whom any answer may be sent at once
 * (SETTINGS_INITIAL_WINDOW_SIZE, and a gibibyte for the connection), and a window's update by one byte.
 */
const HTTP2_GET = new Uint8Array([
  ...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  ...[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff],
  ...[0, 0, 4, 8, 0, 0, 0, 0, 0, 0x40, 0, 0, 0],
  ...[0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x84, 0x87],
]);
const WINDOW_UPDATE = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];

for (
  const [streamed, may, mayNot] of [[64 * MIB, 8 * MIB, 64 * MIB], [1, MIB / 2, 4 * MIB]] as const
) {
  Deno.test({
    name: `over HTTP/2 a client that is sent ${streamed} bytes may say a part of that (SU4)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve("streams", { tls: tls(), streamed });
      await using client = await connect(server.port, { caCerts: [pem("ca.pem")], alpnProtocols: ["h2"] });
      await client.send(HTTP2_GET);
      await looks();
      await until("all is sent", () => client.read() >= streamed);
      const updates = new Uint8Array(Array.from({ length: 8_192 }, () => WINDOW_UPDATE).flat());
      const send = async (bytes: number) => {
        for (let sent = 0; sent < bytes && !client.isBroken(); sent += updates.length) {
          await client.send(updates);
        }
        await looks();
      };
      await send(may);
      assert.deepEqual([server.cutOff(), client.isBroken(), server.withoutHost()], [0, false, 1]);
      await send(mayNot);
      assert.equal(server.cutOff(), 1);
    },
  });
}

Deno.test({
  name: "nobody is cut off at first, and what comes then counts (SU3)",
  ignore: !isLinux,
  async fn() {
    await using server = serve("waits", { judgedMs: 1_500 });
    await using client = await connect(server.port);
    await client.send(GET);
    await server.asked;
    await looks();
    for (let sent = 0; sent < 4 * MIB; sent += some.length) await client.send(some);
    await looks();
    assert.deepEqual([server.cutOff(), client.isBroken()], [0, false]);
    await until("he is cut off", () => server.cutOff() === 1);
  },
});

Deno.test({
  name: "a body that is longer than any that is taken may not come whole (SU2)",
  ignore: !isLinux,
  async fn() {
    await using server = serve("streams", { bodyBytesMax: 1 });
    await using client = await connect(server.port);
    // It is taken here as it comes: only its length tells.
    await client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000000\r\n\r\n");
    await server.asked;
    await looks();
    const sent = await client.sendOn(LONGEST_BODY_BYTES + TAKEN_MAX);
    assert.ok(sent > LONGEST_BODY_BYTES, `${sent} bytes`);
    assert.deepEqual(server.notes, [1]);
  },
});

for (const what of ["sends on", "sends a body that nobody takes"]) {
  Deno.test({
    name: `where too much is held of all, who ${what} is cut off before the others (SU5)`,
    ignore: !isLinux,
    async fn() {
      await using server = serve("streams", { heldBytesMax: MIB, takesNone: true });
      const open = () => connect(server.port);
      await using quiet = await open();
      const clients = [await open(), await open(), await open()];
      const isBody = what !== "sends on";
      const head = isBody
        ? GET.replace("GET", "POST").replace("\r\n\r\n", "\r\ncontent-length: 9000000\r\n\r\n")
        : GET;
      for (const client of clients) await client.send(head);
      await quiet.send(GET);
      await looks();
      await looks();
      const send = async (client: typeof quiet, pieces: number) => {
        for (let i = 0; i < pieces; i++) await client.send(some);
        await looks();
      };
      const [first, second, third] = clients;
      assert.ok(first !== undefined && second !== undefined && third !== undefined);
      await send(first, 6);
      await send(second, 5);
      assert.deepEqual([server.cutOff(), first.isBroken()], [0, false]);
      await send(third, 8); // of nineteen, where sixteen are held: more than a quarter
      for (let i = 0; i < 20 && !third.isBroken(); i++) await send(third, 1);
      assert.deepEqual([server.cutOff(), third.isBroken()], [1, true]);
      await send(first, 1);
      await send(second, 1);
      await send(quiet, 1);
      assert.deepEqual([server.cutOff(), first.isBroken(), second.isBroken(), quiet.isBroken()], [
        1,
        false,
        false,
        false,
      ]);
      for (const client of clients) await client[Symbol.asyncDispose]();
    },
  });
}

const peer = (port: number, completed: Promise<void> = new Promise<void>(() => {})) => ({
  remoteAddr: { transport: "tcp" as const, hostname: "127.0.0.1", port },
  completed,
});
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

/** Watches of connections that are made up: whoever has a watch says what the system tells of it. */
function madeUp() {
  const watches: ConnectionWatch[] = [], cut: ConnectionWatch[] = [], lost: ConnectionWatch[] = [];
  const own: Partial<typeof descriptors> = {
    watch: (watch) => void watches.push(watch),
    isStill: () => true,
    cut: (watch) => void cut.push(watch),
    lose(watch) {
      lost.push(watch);
      watch.lost();
    },
    end: () => {},
  };
  Object.assign(descriptors, own);
  return {
    own,
    cut,
    lost,
    /** Begins a watch of one whose request is answered. */
    begin(
      surplus: Surplus,
      request: Request,
      content = contentOf(request),
      client = peer(watches.length + 1),
    ) {
      surplus.begin(request, client, content);
      const watch = watches.at(-1);
      assert.ok(watch !== undefined);
      watch.looked(0, performance.now(), 0);
      return { client, watch };
    },
    [Symbol.dispose]: () =>
      Object.keys(own).forEach((name) => void Reflect.deleteProperty(descriptors, name)),
  };
}

const GIB = 1024 * MIB, HOUR_MS = 3_600_000;
interface Allowed {
  readonly what: string;
  readonly url?: string;
  /** null: it does not tell. */
  readonly length?: number | null;
  /** Of a body that is counted. */
  readonly taken?: number;
  readonly method?: string;
  readonly sent?: number;
  readonly afterMs?: number;
  readonly bytes: number;
}
const allowed: Allowed[] = [
  { what: "a GET has no body (SU2)", method: "GET", length: 9_000_000, bytes: 0 },
  { what: "nor has a HEAD (SU2)", method: "HEAD", length: 9_000_000, bytes: 0 },
  { what: "a body has its length (SU2)", length: 9_000_000, bytes: 9_000_000 },
  { what: "a longer one than is taken has as much as is (SU2)", length: 9 * GIB, bytes: 2 * GIB },
  { what: "over TLS: records of one byte (SU2)", url: "https://x/", length: 80_000, bytes: 30.125 * 80_000 },
  { what: "over TLS: long bodies (SU2)", url: "https://x/", length: GIB, bytes: 1.125 * GIB + 16 * MIB },
  { what: "over TLS: no body (SU2)", url: "https://x/", method: "GET", length: null, bytes: 0 },
  { what: "what does not tell its length is read ahead (SU2)", length: null, bytes: 8 * MIB },
  { what: "… and taken in pieces (SU2)", length: null, taken: 80_000, bytes: 8 * MIB + 30 * 80_000 },
  { what: "… which frame no more than that (SU2)", length: null, taken: GIB, bytes: GIB + 24 * MIB },
  { what: "updates for each piece (SU4)", method: "GET", length: null, sent: MIB, bytes: 3 * MIB + MIB / 64 },
  { what: "updates of a long answer (SU4)", method: "GET", length: null, sent: GIB, bytes: 32 * MIB },
  { what: "pings (SU4)", method: "GET", length: null, afterMs: 100 * HOUR_MS, bytes: 64 * 360_000 },
];
for (const { what, url = "http://x/", method = "POST", length = null, bytes, ...more } of allowed) {
  Deno.test(`so much may come, and a surplus: ${what}`, () => {
    for (const isBeyond of [false, true]) {
      using connections = madeUp();
      const surplus = new Surplus({ judgedMs: 0, heldBytesMax: Infinity, bodyBytesMax: 2 * GIB });
      const request = new Request(url, { method, body: method === "POST" ? "x" : null });
      if (length !== null) request.headers.set("content-length", `${length}`);
      const content = contentOf(request);
      if (more.taken !== undefined) {
        assert.ok(content instanceof CountedContent);
        content.taken = more.taken;
      }
      const { watch } = connections.begin(surplus, request, content);
      const came = bytes + MIB + (isBeyond ? 16 * KIB : -16 * KIB);
      watch.looked(came, performance.now() + (more.afterMs ?? 0), more.sent ?? 0);
      assert.equal(connections.cut.length, isBeyond ? 1 : 0, `${came} bytes`);
      surplus.close();
    }
  });
}

Deno.test("the longest file of a deploy may come, however little apps may take (SU2)", () => {
  using connections = madeUp();
  const surplus = new Surplus({ judgedMs: 0, bodyBytesMax: 1 });
  const request = new Request("http://x/", { method: "POST", body: "x" });
  request.headers.set("content-length", `${LONGEST_BODY_BYTES}`);
  const { watch } = connections.begin(surplus, request);
  watch.looked(LONGEST_BODY_BYTES + MIB / 2, performance.now(), 0);
  assert.equal(connections.cut.length, 0);
  surplus.close();
});

Deno.test("who turns out to be another's connection is not cut off, and is counted anew (SU1)", () => {
  using connections = madeUp();
  const surplus = new Surplus({ judgedMs: 0 }), request = new Request("http://x/");
  const { watch } = connections.begin(surplus, request);
  connections.own.isStill = () => false;
  Object.assign(descriptors, connections.own);
  watch.looked(9 * MIB, performance.now(), 0);
  assert.deepEqual([connections.cut, connections.lost.length], [[], 1]);
  watch.looked(9 * MIB, performance.now(), 0);
  watch.looked(9 * MIB + 1, performance.now(), 0);
  assert.equal(connections.lost.length, 1);
  watch.looked(1, performance.now(), 0); // fewer than before: of another connection, too
  assert.equal(connections.lost.length, 2);
  surplus.close();
});

for (const how of ["is over", "turns out to be another's"]) {
  Deno.test(`what was held of a connection that ${how} is held no more (SU5)`, async () => {
    using connections = madeUp();
    const surplus = new Surplus({ judgedMs: 0, heldBytesMax: MIB }), request = new Request("http://x/");
    const over = Promise.withResolvers<void>();
    const gone = connections.begin(surplus, request, undefined, peer(99, over.promise));
    const { watch } = connections.begin(surplus, request);
    connections.begin(surplus, request); // of whom nothing comes
    gone.watch.looked(700 * KIB, performance.now(), 0);
    if (how === "is over") over.resolve();
    else gone.watch.looked(-1, performance.now(), 0);
    await settled();
    watch.looked(900 * KIB, performance.now(), 0);
    assert.deepEqual(connections.cut, []);
    surplus.close();
  });
}

const held: [
  what: string,
  url: string,
  length: number | null,
  came: number,
  taken: boolean,
  isHeld: boolean,
][] = [
  ["a short body that nobody has begun", "http://x/", MIB, MIB, false, true],
  ["a short body that is being taken", "http://x/", MIB, MIB, true, false],
  ["a long body that nobody has taken", "http://x/", 9 * MIB, 9 * MIB, false, true],
  ["a long body that was taken", "http://x/", 9 * MIB, 9 * MIB, true, false],
  ["a body of unknown length that nobody has taken", "http://x/", null, 8 * MIB, false, true],
  ["a body of unknown length that was taken", "http://x/", null, 8 * MIB, true, false],
  ["a body that was taken, in small records", "https://x/", 80_000, 30 * 80_000, true, false],
];
for (const [what, url, length, came, isTaken, isHeld] of held) {
  Deno.test(`${what} is ${isHeld ? "held" : "not held"} (SU5)`, async () => {
    using connections = madeUp();
    const surplus = new Surplus({ judgedMs: 0, heldBytesMax: MIB / 2 });
    const request = new Request(url, { method: "POST", body: new Uint8Array(isTaken ? length ?? came : 1) });
    if (length !== null) request.headers.set("content-length", `${length}`);
    const content = contentOf(request);
    assert.equal(content instanceof CountedContent, length === null || length > MIB);
    const { watch } = connections.begin(surplus, request, content);
    if (isTaken) await content.bytes();
    watch.looked(came, performance.now(), 0);
    assert.equal(connections.cut.length, isHeld ? 1 : 0);
    surplus.close();
  });
}

Deno.test("who sends less than he may makes no room for others (SU5)", () => {
  using connections = madeUp();
  const surplus = new Surplus({ judgedMs: 0, heldBytesMax: MIB / 2 }), request = new Request("http://x/");
  const { watch: quiet } = connections.begin(surplus, request);
  const { watch } = connections.begin(surplus, request);
  quiet.looked(0, performance.now(), GIB);
  watch.looked(900 * KIB, performance.now(), 0);
  assert.deepEqual(connections.cut, [watch]);
  surplus.close();
});

Deno.test("when a body is over a surplus may come, and not the body again (SU2)", () => {
  for (const isBeyond of [false, true]) {
    using connections = madeUp();
    const surplus = new Surplus({ judgedMs: 0 });
    const request = new Request("http://x/", { method: "POST", body: "x" }), content = contentOf(request);
    assert.ok(content instanceof CountedContent);
    const { watch } = connections.begin(surplus, request, content);
    content.taken = 90 * MIB;
    content.isOver = true;
    watch.looked(90 * MIB, performance.now(), 0);
    watch.looked(91 * MIB + (isBeyond ? 1 : -1) * 16 * KIB, performance.now(), 0);
    assert.equal(connections.cut.length, isBeyond ? 1 : 0);
    surplus.close();
  }
});

Deno.test("the average is over those that are still watched (SU5)", async () => {
  using connections = madeUp();
  const surplus = new Surplus({ judgedMs: 0, heldBytesMax: MIB }), request = new Request("http://x/");
  for (let i = 0; i < 8; i++) {
    const over = Promise.withResolvers<void>();
    connections.begin(surplus, request, undefined, peer(99, over.promise));
    over.resolve();
    await settled();
  }
  const { watch: most } = connections.begin(surplus, request);
  const { watch: least } = connections.begin(surplus, request);
  most.looked(900 * KIB, performance.now(), 0);
  least.looked(300 * KIB, performance.now(), 0); // a quarter, of two
  assert.deepEqual(connections.cut, []);
  most.looked(900 * KIB, performance.now(), 0);
  assert.deepEqual(connections.cut, [most]);
  surplus.close();
});

Deno.test("a peer that has the same port at another address is another (SU3)", () => {
  const surplus = new Surplus(), request = new Request("http://x/"), first = peer(1);
  const other = { ...peer(1), remoteAddr: { ...first.remoteAddr, hostname: "127.0.0.2" } };
  surplus.asked(first, "x");
  surplus.begin(request, first, request);
  assert.equal(surplus.has(other.remoteAddr), false);
  surplus.asked(other, "x");
  assert.deepEqual([surplus.size, surplus.has(other.remoteAddr)], [1, false], "it takes no while, so far");
  surplus.begin(request, other, request);
  assert.equal(surplus.size, 2);
  surplus.close();
});

for (const host of ["x", null]) {
  const named = host === null ? "no host" : "a host", request = new Request("http://x/");

  Deno.test(`a connection on which another request begins, that names ${named}, is watched no more for the first (SU3)`, async () => {
    const surplus = new Surplus(), over = Promise.withResolvers<void>();
    surplus.asked(peer(1), host);
    surplus.begin(request, peer(1), request);
    assert.equal(surplus.size, host === null ? 0 : 1);
    surplus.close();

    const other = new Surplus(), first = peer(1), second = peer(1, over.promise);
    other.asked(first, host);
    other.begin(request, first, request);
    other.asked(peer(2), host);
    assert.equal(other.size, 1, "another connection's changes nothing");
    other.asked(second, host);
    assert.equal(other.size, 0);
    over.resolve();
    await settled();
    assert.equal(other.size, 0);
    other.close();
  });

  Deno.test(`of two requests at one time, that name ${named}, none is watched, and the other when one is over (SU3)`, async () => {
    const surplus = new Surplus(), over = Promise.withResolvers<void>();
    const first = peer(1, over.promise), second = peer(1);
    surplus.asked(first, host);
    surplus.begin(request, first, request);
    surplus.asked(second, host);
    surplus.begin(request, second, request);
    assert.equal(surplus.size, 0);
    over.resolve();
    await settled();
    assert.equal(surplus.size, 1);
    surplus.close();
  });
}

Deno.test("of two requests that are known only when they take a while none is watched, and the other when one is over (SU3)", async () => {
  const surplus = new Surplus(), request = new Request("http://x/"), over = Promise.withResolvers<void>();
  const first = peer(1, over.promise), second = peer(1);
  for (const client of [first, second]) surplus.asked(client, "x");
  surplus.begin(request, first, request);
  assert.equal(surplus.size, 1);
  surplus.begin(request, second, request);
  assert.equal(surplus.size, 0);
  over.resolve();
  await settled();
  assert.equal(surplus.size, 1);
  surplus.close();
});

Deno.test("a request whose client goes before it is answered is watched no more, and the next from there is", async () => {
  const surplus = new Surplus(), request = new Request("http://x/"), gone = new AbortController();
  surplus.begin(request, peer(1), request, gone.signal);
  assert.deepEqual([surplus.size, surplus.has(peer(1).remoteAddr)], [1, true]);
  gone.abort();
  assert.deepEqual([surplus.size, surplus.has(peer(1).remoteAddr)], [0, false]);
  surplus.begin(request, peer(1), request, gone.signal);
  assert.equal(surplus.size, 0);
  surplus.begin(request, peer(1), request, new AbortController().signal);
  assert.equal(surplus.size, 1);
  await settled();
  surplus.close();
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

Deno.test({
  name: "where the system can't tell nobody is cut off (SU6)",
  permissions: { net: true, read: true, ffi: false },
  async fn() {
    await using server = serve("waits");
    await using client = await connect(server.port);
    await client.send(GET);
    await server.asked;
    await looks();
    for (let i = 0; i < 128; i++) await client.send(some);
    await looks();
    assert.deepEqual([server.cutOff(), client.isBroken(), server.surplus.size], [0, false, 1]);
  },
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
