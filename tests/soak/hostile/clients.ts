/**
 * Clients of the hostile app, in a process of their own: what they cost must not count for who measures. Each kind of
 * attack is made again and again while it is on, by one client, or by some, over lines of a gigabit a second.
 *
 * Its standard output says, as JSON, the port of a server that reads nothing, to which the app is to send, and the names of
 * the attacks; and at the end how often each was made. Its standard input takes lines: the URL of a site, then `on`, `on
 * ATTACK` and `off`.
 */
import process from "node:process";
import { createInterface } from "node:readline";

const MIB = 1 << 20;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const PAUSE_MS = 100;
const ANSWER_MS_MAX = 4_000;

/** A server that takes connections, and reads nothing. */
const sink = Deno.listen({ hostname: "127.0.0.1", port: 0 });
let url = "";
const sunk: Deno.Conn[] = [];
const SUNK_MAX = 64;
void (async () => {
  for await (const connection of sink) {
    if (sunk.push(connection) <= SUNK_MAX) continue;
    const oldest = sunk.shift();
    if (oldest !== undefined) closeQuietly(oldest);
  }
})();

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It is closed.
  }
}

async function ask(path: string, body?: string): Promise<void> {
  const answer = await fetch(`${url}/hostile${path}`, {
    ...body === undefined ? {} : { method: "POST", body },
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  });
  await answer.body?.cancel();
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const encoded = (text: string) => new TextEncoder().encode(text);

/** What a line takes in a millisecond, and how much is given to it at once. */
const LINE_BYTES_PER_MS = 125_000;
const PART_BYTES = 64 * 1024;

/** Opens a connection, sends bytes and keeps it for a while, without reading. */
async function hold(head: string, ...parts: Uint8Array[]): Promise<void> {
  const { hostname, port } = new URL(url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  try {
    await connection.write(encoded(head));
    for (const part of parts) await send(connection, part);
    await pause(ANSWER_MS_MAX);
  } finally {
    closeQuietly(connection);
  }
}

async function send(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  const beganMs = performance.now();
  for (let at = 0; at < bytes.length;) {
    const aheadMs = at / LINE_BYTES_PER_MS - (performance.now() - beganMs);
    if (aheadMs > 1) await pause(aheadMs);
    at += await connection.write(bytes.subarray(at, at + PART_BYTES));
  }
}

const hostOf = () => new URL(url).host;
const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: ${hostOf()}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
  "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/** A binary frame, masked with nothing: a whole message, or the beginning of one that has no end. */
function frameOf(bytes: number, isWhole: boolean): Uint8Array {
  const opcode = isWhole ? 0x82 : 0x02;
  if (bytes < 126) {
    const frame = new Uint8Array(6 + bytes);
    frame.set([opcode, 0x80 | bytes]);
    return frame;
  }
  const frame = new Uint8Array(14 + bytes);
  frame.set([opcode, 0xff]);
  new DataView(frame.buffer).setBigUint64(2, BigInt(bytes));
  return frame;
}

/** Messages of a client that an app reads, as many as a line takes in some seconds. */
async function talk(bytes: number): Promise<void> {
  const frame = frameOf(bytes, true), count = Math.ceil(PART_BYTES / frame.length);
  const some = new Uint8Array(count * frame.length);
  for (let i = 0; i < count; i++) some.set(frame, i * frame.length);
  const all = Array.from({ length: Math.ceil(200 * MIB / some.length) }, () => some);
  await hold(upgrade("/hostile/heard"), ...all);
}

const long = "a".repeat(60_000);
const place = "blob:null/".repeat(6_000) + ":1:1";

/** Each of them once. */
const ATTACKS: Readonly<Record<string, () => Promise<unknown>>> = {
  "text for the places of stacks": () => ask("/throw", place),
  "text of an error": () => ask("/throw", long.repeat(10)),
  "lines without end": () => ask("/print"),
  "forged frames: text": () => ask("/bend?of=json"),
  "forged frames: numbers": () => ask("/bend?of=numbers"),
  "forged frames: bytes": () => ask("/bend?of=bytes"),
  "forged frames: encoder": () => ask("/bend?of=text"),
  "forged frames: promises": () => ask("/bend?of=then"),
  "forged frames: no globals": () => ask("/bend?of=all"),
  "watches": () => ask("/watch"),
  "watches: nested": () => ask("/watch-nested"),
  "watches: one row": () => ask("/watch-one"),
  "reads: long rows": () => ask("/read-long"),
  "checks: long rows": () => ask("/check-long"),
  "lists: deleted rows": () => ask("/list-deleted"),
  "commits": () => ask("/commits"),
  "commits: large": () => ask("/commits?of=large"),
  "native threads": () => ask("/native"),
  "loop": () => ask("/loop"),
  "heap": () => ask("/heap"),
  "buffers": () => ask("/buffers"),
  "never answered": () => ask("/never"),
  "cookies": () => ask("/cookies"),
  "session: large state": () => ask("/session", ""),
  "session: loop": () => ask("/session?of=loop", ""),
  "session: deep": () => ask("/session?of=deep", ""),
  "upload that nobody reads": () => ask(`/upload?of=${(sink.addr as Deno.NetAddr).port}`),
  "download that nobody reads": () => hold(`GET /hostile/endless HTTP/1.1\r\nhost: ${hostOf()}\r\n\r\n`),
  "socket that nobody reads": () => hold(upgrade("/hostile/socket")),
  "message of 50 MiB": () => hold(upgrade("/hostile/socket"), frameOf(50 * MIB, true)),
  "messages without end: small": () => talk(50),
  "messages without end: large": () => talk(2 * MIB),
  "half a message": () => hold(upgrade("/hostile/socket"), frameOf(30 * MIB, false)),
  "half a message at the link": () => hold(upgrade("/_sojourn/link"), frameOf(16 * MIB, false)),
  "half a head": () => hold("GET /hostile/ HTTP/1.1\r\nhost: "),
  "half a body": () =>
    hold(
      `POST /hostile/throw HTTP/1.1\r\nhost: ${hostOf()}\r\ncontent-length: 100000\r\n\r\n`,
      encoded("half"),
    ),
  "upload that is read": () =>
    hold(
      `POST /hostile/upload-here HTTP/1.1\r\nhost: ${hostOf()}\r\ncontent-length: ${30 * MIB}\r\n\r\n`,
      new Uint8Array(30 * MIB),
    ),
  "odd method": () => hold(`TRACE /hostile/ HTTP/1.1\r\nhost: evil.localhost/..\r\n\r\n`),
};

console.log(JSON.stringify({ port: (sink.addr as Deno.NetAddr).port, attacks: Object.keys(ATTACKS) }));
url = (await lines.next()).value ?? "";

const made: Record<string, number> = {};
let isOn = Promise.withResolvers<void>();
/** All of them, where it is empty. */
let only = "";
let isWanted = false;

async function again(name: string, attack: () => Promise<unknown>): Promise<void> {
  for (;;) {
    while (!isWanted || (only !== "" && only !== name)) await isOn.promise;
    made[name] = (made[name] ?? 0) + 1;
    await attack().catch(() => {}); // it was refused, cut off or late
    await pause(PAUSE_MS);
  }
}

for (const [name, attack] of Object.entries(ATTACKS)) void again(name, attack);
for (let line = await lines.next(); !line.done; line = await lines.next()) {
  const [word = "", ...rest] = line.value.split(" ");
  isWanted = word === "on";
  only = rest.join(" ");
  isOn.resolve();
  isOn = Promise.withResolvers();
}
console.log(JSON.stringify(made));
Deno.exit(0);
