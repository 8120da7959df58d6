/**
 * One pass of the benchmark `link`, in a process of its own: measures against a second process (`--far`) that
 * holds the parent's side and a bare TCP echo.
 */
import { LinkHub, type LinkHubOptions } from "../../runtime/link/mod.ts";
import { freshAnswer, freshInput } from "./fresh.ts";
import { quantile } from "./record.ts";

interface Input {
  readonly quick: boolean;
}

const SECRET = new Uint8Array(32).fill(7);
const RTTS = [0, 2, 20];

function hub(site: string, rttMs: number, options: Partial<LinkHubOptions>): LinkHub {
  return LinkHub.start({
    site,
    incarnation: "1",
    secrets: [SECRET],
    listen: { hostname: "127.0.0.1", port: 0 },
    parent: null,
    addressOf: () => null,
    admit: () => null,
    emulate: () => rttMs > 0 ? { rttMs, mbps: 1000, jitterMs: 0, loss: 0 } : null,
    log: () => {},
    handlers: {
      connected: () => {},
      disconnected: () => {},
      message: () => {},
      request: (_site, { head }) => Promise.resolve({ head }),
    },
    ...options,
  });
}

/** The far side: a hub per round trip, a bare echo; ends when its stdin does. */
async function far(): Promise<void> {
  const hubs = RTTS.map((rttMs) => {
    let messages = 0;
    return hub("core", rttMs, {
      handlers: {
        connected: () => messages = 0,
        disconnected: () => {},
        message: () => void messages++,
        // "count" answers when so many messages have arrived.
        request: async (_site, { kind, head }) => {
          const wanted = kind === "count" ? new DataView(head.buffer, head.byteOffset).getUint32(0) : 0;
          while (messages < wanted) await new Promise((resolve) => setImmediate(resolve));
          return { head };
        },
      },
    });
  });
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  (async () => {
    for await (const connection of listener) {
      connection.setNoDelay(true);
      connection.readable.pipeTo(connection.writable).catch(() => {});
    }
  })();
  console.log(JSON.stringify([...hubs.map((hub) => hub.address), `127.0.0.1:${listener.addr.port}`]));
  for await (const _ of Deno.stdin.readable) { /* until the other process ends */ }
  listener.close();
  await Promise.all(hubs.map((hub) => hub.close()));
}

async function connected(address: string, rttMs: number): Promise<LinkHub> {
  const near = hub("edge", rttMs, { parent: { site: "core", address } });
  while (!near.status().links[0]?.connected) await new Promise((resolve) => setTimeout(resolve, 5));
  return near;
}

async function echoMs(address: string, rttMs: number, count: number): Promise<number> {
  const near = await connected(address, rttMs);
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const startMs = performance.now();
    await near.request("core", "echo", new Uint8Array(100));
    times.push(performance.now() - startMs);
  }
  await near.close();
  return quantile(times, 0.5);
}

/** Messages a second, until the far side has taken the last. */
async function messagesPerS(address: string, bytes: number, count: number): Promise<number> {
  const near = await connected(address, 0);
  const message = new Uint8Array(bytes);
  const wanted = new Uint8Array(4);
  new DataView(wanted.buffer).setUint32(0, count);
  const startMs = performance.now();
  for (let i = 0; i < count; i++) {
    const room = near.send("core", message);
    if (i % 64 === 0) await room;
  }
  await near.request("core", "count", wanted);
  const tookMs = performance.now() - startMs;
  await near.close();
  return 1000 * count / tookMs;
}

async function bareEchoMs(address: string, count: number): Promise<number> {
  const [hostname = "", port] = address.split(":");
  const connection = await Deno.connect({ hostname, port: Number(port) });
  connection.setNoDelay(true);
  const into = new Uint8Array(1000);
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const startMs = performance.now();
    await connection.write(new Uint8Array(100));
    for (let at = 0; at < 100;) at += await connection.read(into) ?? 100;
    times.push(performance.now() - startMs);
  }
  connection.close();
  return quantile(times, 0.5);
}

async function measure(addresses: readonly string[], quick: boolean): Promise<Record<string, number>> {
  const [direct = "", near = "", wide = "", bare = ""] = addresses;
  const count = quick ? 200 : 2_000;
  await echoMs(direct, 0, 200);
  return {
    echo: await echoMs(direct, 0, count),
    bareEcho: await bareEchoMs(bare, count),
    echo2: await echoMs(near, 2, count / 4),
    echo20: await echoMs(wide, 20, count / 20),
    small: await messagesPerS(direct, 100, quick ? 100_000 : 1_000_000),
    large: await messagesPerS(direct, 60_000, quick ? 2_000 : 20_000),
  };
}

if (import.meta.main) {
  if (Deno.args[0] === "--far") await far();
  else {
    const { quick } = freshInput() as Input;
    const other = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", import.meta.url, "--far"],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const reader = other.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { value = "[]" } = await reader.read();
    freshAnswer(await measure(JSON.parse(value), quick));
    await other.stdin.close();
    await reader.cancel();
    await other.status;
  }
}
