import { strict as assert } from "node:assert";

const LATE_MS = 60_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** What a process does that may open few files: it listens, and says what it notes. */
const SERVER = `
  // At once, as a site does: Deno panics where it opens its pipe for signals later, and can't.
  Deno.addSignalListener("SIGHUP", () => http.shutdown().then(() => console.log("stopped")));
  const [listener, idle, idleMs] = Deno.args;
  const { HttpListener } = await import(listener);
  const { IdleConnections } = await import(idle);
  const http = new HttpListener({
    at: { hostname: "127.0.0.1", port: 0 },
    handle: () => new Response("done"),
    signal: new AbortController().signal,
    note: (error) => console.log("fell", String(error)),
  }, {});
  new IdleConnections({
    port: () => http.addr.port,
    isAnswered: () => false,
    idleMs: Number(idleMs),
    roundMs: 100,
    note: ({ files }) => console.log("scarce", files),
  });
  console.log("port", http.addr.port);
`;

async function serve(files: number, idleMs: number) {
  const url = (name: string) => new URL(name, import.meta.url).href;
  const process = new Deno.Command("sh", {
    args: [
      "-c",
      `ulimit -n ${files}; exec "$0" eval --no-check "$@"`,
      ...[Deno.execPath(), SERVER, url("http_listener.ts"), url("../gateway/idle_connections.ts")],
      String(idleMs),
    ],
    stdout: "piped",
  }).spawn();
  let said = "";
  const reading = process.stdout.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({ write: (text) => void (said += text) }),
  );
  const until = async (what: string) => {
    for (const lateMs = performance.now() + LATE_MS; !said.includes(what); await pause(10)) {
      assert.ok(performance.now() < lateMs, `${what} was not said: ${said}`);
    }
  };
  await until("port");
  return {
    port: Number(/port (\d+)/.exec(said)?.[1]),
    stop: () => process.kill("SIGHUP"),
    until,
    async [Symbol.asyncDispose]() {
      process.kill("SIGKILL");
      await Promise.all([process.status, reading]);
    },
  };
}

/** Asks until it is answered. */
async function answered(port: number): Promise<void> {
  for (const lateMs = performance.now() + LATE_MS;; await pause(100)) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
      assert.equal(await answer.text(), "done");
      return;
    } catch (error) {
      if (performance.now() > lateMs) throw error;
    }
  }
}

/** Connections that say nothing: as many as there can be, 200 at most. */
async function crowd(port: number) {
  const connections: Deno.TcpConn[] = [];
  for (let i = 0; i < 200; i++) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => null);
    if (connection === null) break;
    connections.push(connection);
  }
  return { [Symbol.dispose]: () => connections.forEach((connection) => connection.close()) };
}

Deno.test("where no file can be opened any more, who is there is served, and others when there is room again (L2)", async () => {
  await using server = await serve(96, 3_600_000);
  const kept = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const ask = async () => {
    await kept.write(new TextEncoder().encode("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
    const into = new Uint8Array(4_096), read = await kept.read(into);
    assert.match(new TextDecoder().decode(into.subarray(0, read ?? 0)), /done$/);
  };
  await ask();
  {
    using _crowd = await crowd(server.port);
    await server.until("fell");
    await ask();
  }
  await answered(server.port);
  await ask();
  kept.close();
});

Deno.test({
  name: "a crowd that says nothing keeps nobody out for long (L2, IC3)",
  ignore: Deno.build.os !== "linux",
  async fn() {
    await using server = await serve(96, 24_000);
    using _crowd = await crowd(server.port);
    await server.until("scarce 96");
    await answered(server.port);
  },
});

Deno.test("who stops while nobody listens does not listen again", async () => {
  await using server = await serve(96, 3_600_000);
  {
    using _crowd = await crowd(server.port);
    await server.until("fell");
    server.stop();
  }
  await server.until("stopped");
  await pause(1_000);
  await assert.rejects(
    Deno.connect({ hostname: "127.0.0.1", port: server.port }),
    Deno.errors.ConnectionRefused,
  );
});
