/** All that an app can do to its site: each path is one of it, and `clients.ts` asks for them again and again. */
import { defineApp, type EnvOf, Session, table } from "sojourn";
import * as z from "zod";

const numbers = table({ schema: z.object({ number: z.number() }), key: ["number"] });

type Env = EnvOf<{ tables: { numbers: typeof numbers } }, { greedy: Greedy }>;

const MIB = 1 << 20;
/** Longer than a client waits, shorter than the site's own bound. */
const HELD_MS = 3_000;

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const held = () => new Promise((resolve) => setTimeout(resolve, HELD_MS));

/** A stateful session with what a log and a checkpoint like least. */
export class Greedy extends Session<Env> {
  texts: string[] = [];

  grow(): number {
    this.texts.push("x".repeat(MIB));
    if (this.texts.length > 8) this.texts = [];
    return this.texts.length;
  }

  loop(): never {
    for (;;);
  }

  deep(): never {
    throw new Error(nested(6_000));
  }
}

/** Built-ins of this realm, bent so that what it sends its site is none of what the platform wrote. */
function bend(how: string): void {
  const global = globalThis as unknown as Record<string, { prototype: Record<string, unknown> }>;
  const text = () => nested(6_000);
  if (how === "json") Object.assign(JSON, { stringify: text });
  if (how === "numbers") {
    Object.assign(DataView.prototype, { setUint32() {}, setBigUint64() {}, setUint8() {} });
  }
  if (how === "bytes") {
    Object.assign(Uint8Array.prototype, {
      set() {},
      subarray: () => new Uint8Array(64 * MIB),
    });
  }
  if (how === "text") {
    Object.assign(TextEncoder.prototype, { encode: () => crypto.getRandomValues(new Uint8Array(999)) });
  }
  if (how === "then") Object.assign(Promise.prototype, { then: () => {} });
  if (how === "all") { for (const name of Object.keys(global)) delete global[name]; }
}

async function watchMany(env: Env): Promise<void> {
  for (let i = 0; i < 15_000; i++) {
    env.kv.watch([["watched", i]]).getReader().read().catch(() => {});
    if (i % 500 === 0) await null;
  }
  await held();
}

/** Each holds all that come after it. */
async function watchNested(env: Env): Promise<void> {
  for (let i = 0; i < 2_000; i++) {
    void env.tables.numbers.watchList({ start: [i], end: [100_000 - i] })[Symbol.asyncIterator]().next()
      .catch(() => {});
    if (i % 500 === 0) await null;
  }
  await held();
}

/** All of one row, which is written again and again. */
async function watchOne(env: Env): Promise<void> {
  for (let i = 0; i < 1_000; i++) {
    const reader = env.kv.watch([["told"]]).getReader();
    const next = (): void => void reader.read().then(next, () => {});
    next();
  }
  const untilMs = Date.now() + HELD_MS;
  for (let i = 0; Date.now() < untilMs; i++) await env.kv.set(["told"], i);
}

const LONG_ROWS = 64;

/** Rows as long as rows are, by as many reads at once as there may be. */
async function readLong(env: Env): Promise<void> {
  const value = new Uint8Array(MIB - 1_024);
  for (let i = 0; i < LONG_ROWS; i += 2) {
    if ((await env.kv.get(["long", i])).value !== null) continue;
    await env.kv.atomic().set(["long", i], value).set(["long", i + 1], value).commit();
  }
  const keys = Array.from({ length: LONG_ROWS }, (_, i) => ["long", i]);
  await Promise.allSettled(Array.from({ length: 32 }, async (_, i) => {
    if (i % 2 === 0) await env.kv.getMany(keys.slice(0, 10));
    else for await (const _ of env.kv.list({ prefix: ["long"] }, { limit: 4, reverse: i % 3 === 0 }));
  }));
}

/** Checks and sums on such. */
async function checkLong(env: Env): Promise<void> {
  await Promise.allSettled(Array.from({ length: 16 }, (_, i) => {
    const atomic = env.kv.atomic();
    for (let each = 0; each < LONG_ROWS; each++) atomic.check({ key: ["long", each], versionstamp: null });
    for (let each = 0; each < 100; each++) atomic.sum(["long", (each + i) % LONG_ROWS], 1n);
    return atomic.commit();
  }));
}

/** Thousands of rows that are no more. */
async function listDeleted(env: Env): Promise<void> {
  for (let at = 0; at < 10_000; at += 500) {
    const atomic = env.kv.atomic();
    for (let i = 0; i < 500; i++) atomic.delete(["gone", at + i]);
    await atomic.commit();
  }
  await Promise.allSettled(Array.from({ length: 32 }, async () => {
    for await (const _ of env.kv.list({ prefix: ["gone"] }));
  }));
}

/** Reads all that comes. */
function heard(request: Request): Response {
  const { socket, response } = Deno.upgradeWebSocket(request);
  let bytes = 0;
  socket.onmessage = ({ data }) => bytes += data.length ?? data.size;
  return response;
}

function unread(request: Request): Response {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.onopen = () => {
    for (let i = 0; i < 64; i++) socket.send(new Uint8Array(MIB).fill(i));
  };
  return response;
}

const endless = () =>
  new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)) });

async function native(): Promise<void> {
  const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
  const how = { name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations: 300_000 };
  await Promise.all(Array.from({ length: 16 }, () => crypto.subtle.deriveBits(how, key, 512)));
}

async function commits(env: Env): Promise<void> {
  const value = "v".repeat(60_000);
  await Promise.allSettled(Array.from({ length: 400 }, (_, i) => env.kv.set(["flood", i % 50], value)));
}

/** Each is as large as an atomic operation may be. */
async function largeCommits(env: Env): Promise<void> {
  const value = new Uint8Array(MIB - 1_024);
  await Promise.allSettled(Array.from({ length: 15 }, (_, i) => {
    const atomic = env.kv.atomic();
    for (let each = 0; each < 3; each++) atomic.set(["large", i, each], value);
    return atomic.commit();
  }));
}

function print(): void {
  const line = "\x1b[2J\x1b]0;owned\x07" + "p".repeat(16 * 1024);
  for (let i = 0; i < 2_000; i++) console.error(line);
}

const hog: unknown[] = [];

export default defineApp({
  name: "hostile",
  sessions: { greedy: Greedy },
  tables: { numbers },
  fetchHosts: ["127.0.0.1"],
  async fetch(request, env: Env) {
    const { pathname, searchParams } = new URL(request.url);
    const argument = searchParams.get("of") ?? "";
    switch (pathname) {
      case "/throw":
        throw new Error(await request.text());
      case "/print":
        print();
        break;
      case "/bend":
        bend(argument);
        await env.kv.set(["bent"], argument);
        break;
      case "/watch":
        await watchMany(env);
        break;
      case "/watch-nested":
        await watchNested(env);
        break;
      case "/watch-one":
        await watchOne(env);
        break;
      case "/read-long":
        await readLong(env);
        break;
      case "/check-long":
        await checkLong(env);
        break;
      case "/list-deleted":
        await listDeleted(env);
        break;
      case "/socket":
        return unread(request);
      case "/heard":
        return heard(request);
      case "/upload-here":
        for await (const _ of request.body ?? []);
        break;
      case "/endless":
        return new Response(endless());
      case "/upload":
        await fetch(`http://127.0.0.1:${argument}/`, { method: "POST", body: endless() });
        break;
      case "/native":
        await native();
        break;
      case "/commits":
        await (argument === "large" ? largeCommits(env) : commits(env));
        break;
      case "/loop":
        for (;;);
      case "/heap":
        for (;;) hog.push(new Array(1_000).fill(Math.random()));
      // falls through: it never ends
      case "/buffers":
        for (;;) {
          hog.push(new Uint8Array(16 * MIB).fill(1));
          await null;
        }
      // falls through: it never ends
      case "/never":
        await new Promise(() => {});
        break;
      case "/cookies":
        return new Response("x", {
          headers: [
            ["set-cookie", "sojourn_session =stolen"],
            ["set-cookie", "=sojourn_session=stolen"],
            ["clear-site-data", '"*"'],
          ],
        });
      case "/session": {
        const session = env.sessions.greedy.get(`g${Math.floor(Math.random() * 20)}`);
        if (argument === "loop") await session.loop();
        else if (argument === "deep") await session.deep();
        else await session.grow();
        break;
      }
    }
    return new Response("done");
  },
});
