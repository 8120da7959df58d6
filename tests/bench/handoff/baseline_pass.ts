/**
 * The paper's reconciliation strategies (SessionStore, sections V.B and VI), over our links between two processes
 * with an emulated round trip, into our storage on disk. Written for comparison only.
 *
 *   full      the source sends every row that it holds and the destination lacks or has older
 *   session   it sends the rows that the session touched
 *   delta     it says which rows and versions the session touched; the destination asks for those that it lacks
 *   sibling   it says which rows the session touched; the destination will fetch them from its parent on use
 *
 * The far side (`--far`) is the source. Input (fresh.ts): {@link BaselineInput}; answer: {@link BaselineResult}.
 */
import { join } from "node:path";
import { LinkHub, type LinkHubOptions } from "../../../runtime/link/mod.ts";
import { openSqlite } from "../../../runtime/storage/sqlite.ts";
import { type Key, packKey } from "../../../store/key.ts";
import { chunks, decodeMessage, encodeMessage, type WireRow } from "../../../store/message.ts";
import type { Storage } from "../../../store/ports.ts";
import { freshAnswer, freshInput } from "../fresh.ts";
import { median } from "../record.ts";

export type Strategy = "full" | "session" | "delta" | "sibling";

export interface BaselineInput {
  readonly strategy: Strategy;
  /** Rows that the source holds. */
  readonly rows: number;
  readonly rowBytes: number;
  /** Rows that the session has touched. */
  readonly touched: number;
  /** Share of them that the destination has already (delta). */
  readonly shared: number;
  readonly rttMs: number;
  readonly times: number;
  readonly folder: string;
}

export interface BaselineResult {
  readonly ms: number;
  readonly bytes: number;
}

const CHUNK_BYTES = 256 * 1024;
/** Later than any row was written. */
const CLOCK = 1_000_000;

function hub(site: string, rttMs: number, options: Partial<LinkHubOptions>): LinkHub {
  return LinkHub.start({
    site,
    incarnation: "1",
    secret: new Uint8Array(32).fill(7),
    listen: { hostname: "127.0.0.1", port: 0 },
    parent: null,
    addressOf: () => null,
    admit: () => null,
    emulate: () => ({ rttMs, mbps: 1000, jitterMs: 0, loss: 0 }),
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

const keyOf = (n: number): Key => packKey(["a", "board", "comments", n]);

const rowOf = (n: number, rowBytes: number): WireRow => ({
  key: keyOf(n),
  value: new Uint8Array(rowBytes).fill(n % 251),
  clock: CLOCK - 1,
  replica: 2,
  known: 0,
  expiresAtMs: 0,
});

/** What is asked of the source. */
interface Question {
  readonly rows: number;
  readonly rowBytes: number;
  /** Only these; all by default. */
  readonly only?: readonly number[];
  /** Keys and versions without values. */
  readonly bare?: boolean;
}

/** The source: answers with as many messages as it takes, each after its length. */
function answer(question: Question): ReadableStream<Uint8Array> {
  const numbers = question.only ?? Array.from({ length: question.rows }, (_, n) => n);
  const rows = numbers.map((n) => rowOf(n, question.bare ? 0 : question.rowBytes));
  const messages = chunks(rows, CHUNK_BYTES);
  return new ReadableStream({
    pull(controller) {
      const { done, value } = messages.next();
      if (done) return controller.close();
      const bytes = encodeMessage({
        kind: "carry",
        id: 1,
        outcome: "rows",
        need: 0,
        clock: CLOCK,
        rows: value.rows,
      });
      const framed = new Uint8Array(4 + bytes.length);
      new DataView(framed.buffer).setUint32(0, bytes.length);
      framed.set(bytes, 4);
      controller.enqueue(framed);
    },
  });
}

async function far(rttMs: number): Promise<void> {
  const decoder = new TextDecoder();
  const source = hub("source", rttMs, {
    handlers: {
      connected: () => {},
      disconnected: () => {},
      message: () => {},
      request: (_site, { head }) =>
        Promise.resolve({ head: new Uint8Array(), body: answer(JSON.parse(decoder.decode(head))) }),
    },
  });
  console.log(source.address);
  for await (const _ of Deno.stdin.readable) { /* until the other process ends */ }
  await source.close();
}

/** The rows of an answer. */
async function ask(near: LinkHub, question: Question): Promise<WireRow[]> {
  const { body } = await near.request(
    "source",
    "reconcile",
    new TextEncoder().encode(JSON.stringify(question)),
  );
  const rows: WireRow[] = [];
  let buffer = new Uint8Array();
  for await (const part of body ?? []) {
    const joined = new Uint8Array(buffer.length + part.length);
    joined.set(buffer);
    joined.set(part, buffer.length);
    buffer = joined;
    while (buffer.length >= 4) {
      const length = new DataView(buffer.buffer, buffer.byteOffset).getUint32(0);
      if (buffer.length < 4 + length) break;
      const message = decodeMessage(buffer.subarray(4, 4 + length));
      if (message.kind === "carry") rows.push(...message.rows);
      buffer = buffer.slice(4 + length);
    }
  }
  return rows;
}

let position = 0;

async function store(storage: Storage, rows: readonly WireRow[]): Promise<void> {
  await storage.commit({
    rows: rows.map((row) => ({ ...row, position: ++position })),
    drop: [],
    records: new Map(),
  });
}

async function reconcile(near: LinkHub, storage: Storage, input: BaselineInput): Promise<void> {
  const { strategy, rows, rowBytes, touched } = input;
  const question: Question = { rows, rowBytes };
  const footprint = Array.from({ length: touched }, (_, n) => n);
  if (strategy === "full") return await store(storage, await ask(near, question));
  if (strategy === "session") return await store(storage, await ask(near, { ...question, only: footprint }));
  const named = await ask(near, { ...question, only: footprint, bare: true });
  if (strategy === "sibling") return;
  const held = await storage.getMany(named.map((row) => row.key));
  const lacking = footprint.filter((n) => (held[n]?.clock ?? 0) < (named[n]?.clock ?? 0));
  await store(storage, await ask(near, { ...question, only: lacking }));
}

async function measure(address: string, input: BaselineInput): Promise<BaselineResult> {
  const near = hub("destination", input.rttMs, { parent: { site: "source", address } });
  while (!near.status().links[0]?.connected) await new Promise((resolve) => setTimeout(resolve, 5));
  const bytes = () => {
    const counters = near.status().links[0]?.counters;
    return (counters?.requestBytesIn ?? 0) + (counters?.requestBytesOut ?? 0);
  };
  const ms: number[] = [], sent: number[] = [];
  for (let time = 0; time <= input.times; time++) {
    const storage = openSqlite(join(input.folder, crypto.randomUUID()));
    const there = Array.from({ length: Math.floor(input.shared * input.touched) }, (_, n) => n);
    await store(storage, there.map((n) => rowOf(n, input.rowBytes)));
    const before = bytes(), beforeMs = performance.now();
    await reconcile(near, storage, input);
    // The first time warms the compiler.
    if (time > 0) ms.push(performance.now() - beforeMs);
    if (time > 0) sent.push(bytes() - before);
    await storage.close();
  }
  await near.close();
  return { ms: median(ms), bytes: median(sent) };
}

if (import.meta.main) {
  if (Deno.args[0] === "--far") await far(Number(Deno.args[1]));
  else {
    const input = freshInput() as BaselineInput;
    const other = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", import.meta.url, "--far", String(input.rttMs)],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const reader = other.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { value = "" } = await reader.read();
    freshAnswer(await measure(value.trim(), input));
    await other.stdin.close();
    await reader.cancel();
    await other.status;
  }
}
