import { strict as assert } from "node:assert";
import { HttpListener } from "./http_listener.ts";

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
    /** How often it was said. */
    count: (what: string) => said.split(what).length - 1,
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
    assert.equal(server.count("scarce"), 1, "it is told once a minute, and looked at ten times a second");
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

/**
 * A listener whose servers are made up, at a clock that stands still until a timer is run: each server lasts until it is told
 * to fall, and where `isFull` none begins.
 */
function madeUp() {
  const { serve } = Deno, { setTimeout, clearTimeout } = globalThis, { now } = performance;
  const servers: { fall(): Promise<void>; isShutDown: boolean }[] = [], notes: string[] = [];
  const timers = new Map<number, { run: () => void; ms: number }>();
  let nowMs = 0, timer = 0, isFull = false;
  Object.assign(Deno, {
    serve({ hostname, port }: Deno.NetAddr) {
      if (isFull) throw new Error("full");
      const finished = Promise.withResolvers<void>();
      const server = {
        addr: { transport: "tcp", hostname, port },
        finished: finished.promise,
        shutdown() {
          server.isShutDown = true;
          return Promise.resolve();
        },
        async fall() {
          finished.reject(new Error("no file"));
          await finished.promise.catch(() => {});
          await null;
        },
        isShutDown: false,
      };
      servers.push(server);
      return server;
    },
  });
  Object.assign(globalThis, {
    setTimeout(run: () => void, ms: number) {
      timers.set(++timer, { run, ms });
      return timer;
    },
    clearTimeout: (id: number) => void timers.delete(id),
  });
  performance.now = () => nowMs;
  const listener = new HttpListener({
    at: { hostname: "127.0.0.1", port: 8_000 },
    handle: () => new Response(),
    signal: new AbortController().signal,
    note: (error) => notes.push(String(error)),
  }, {});
  return {
    listener,
    servers,
    notes,
    timers: () => timers.size,
    full: (is: boolean) => void (isFull = is),
    /** The last server falls after a while. */
    async fall(afterMs: number) {
      nowMs += afterMs;
      await servers.at(-1)?.fall();
    },
    /** Runs the timer that waits. @returns how long it waited. */
    next(): number {
      const [[id, { run, ms }] = assert.fail("nothing waits")] = timers;
      assert.equal(timers.size, 1);
      timers.delete(id);
      nowMs += ms;
      run();
      return ms;
    },
    [Symbol.dispose]() {
      Object.assign(Deno, { serve });
      Object.assign(globalThis, { setTimeout, clearTimeout });
      performance.now = now;
    },
  };
}

Deno.test("the next one listens later each time, where it ends soon or can't begin, up to five seconds (L2)", async () => {
  using made = madeUp();
  const waited: number[] = [];
  for (let i = 0; i < 3; i++) {
    await made.fall(100);
    waited.push(made.next());
  }
  assert.equal(made.servers.length, 4);
  made.full(true);
  await made.fall(19_000);
  for (let i = 0; i < 4; i++) waited.push(made.next());
  made.full(false);
  waited.push(made.next());
  assert.equal(made.servers.length, 5);
  await made.fall(21_000); // it listened long
  waited.push(made.next());
  assert.deepEqual(waited, [200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000, 100]);
  assert.deepEqual(made.notes, [
    ...Array(4).fill("Error: no file"),
    ...Array(4).fill("Error: full"),
    "Error: no file",
  ]);
  await made.listener.shutdown();
});

Deno.test("of servers that listen no more 256 are kept, and all end with the listener (L3)", async () => {
  using made = madeUp();
  const ended = () => made.servers.filter(({ isShutDown }) => isShutDown).length;
  for (let i = 0; i < 256; i++) {
    await made.fall(60_000);
    made.next();
  }
  assert.equal(ended(), 0);
  await made.fall(60_000);
  assert.deepEqual([ended(), made.servers[0]?.isShutDown], [1, true]);
  made.next();
  await made.listener.shutdown();
  assert.deepEqual([ended(), made.servers.length, made.timers()], [258, 258, 0]);
});

Deno.test("who is renewed while nobody listens goes on waiting (L2)", async () => {
  using made = madeUp();
  await made.fall(100);
  await made.listener.renew({});
  assert.deepEqual([made.servers.length, made.timers()], [1, 1]);
  made.next();
  assert.equal(made.servers.length, 2);
  await made.listener.renew({}); // the one that listens is ended, and does not count as fallen
  await made.servers[1]?.fall();
  assert.deepEqual([made.servers.length, made.timers(), made.servers[1]?.isShutDown], [3, 0, true]);
  await made.listener.shutdown();
  await made.fall(100); // nor does one that falls while it is stopped
  assert.deepEqual([made.servers.length, made.timers()], [3, 0]);
});
