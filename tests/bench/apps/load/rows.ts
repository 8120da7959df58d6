/**
 * Rows for benchmarks: they come in named sets, are numbered within a set, and hold text of a given length.
 * Times are taken inside the function, around the store call alone.
 */
import type { Kv } from "sojourn";

const rowKey = (set: string, n: number) => ["rows", set, n];

function span(query: URLSearchParams) {
  return {
    set: query.get("set") ?? "",
    from: Number(query.get("from") ?? 0),
    count: Number(query.get("count") ?? 1),
    value: "x".repeat(Number(query.get("bytes") ?? 1024)),
  };
}

/** One operation on each of `count` rows, one after the other: how long each took, and how many rows were there. */
export async function timed(kv: Kv, query: URLSearchParams): Promise<{ ms: number[]; found: number }> {
  const { set, from, count, value } = span(query);
  const isPut = query.get("op") === "put";
  const ms: number[] = [];
  let found = 0;
  for (let n = from; n < from + count; n++) {
    const start = performance.now();
    if (isPut) await kv.set(rowKey(set, n), value);
    else if ((await kv.get(rowKey(set, n))).versionstamp !== null) found++;
    ms.push(performance.now() - start);
  }
  return { ms, found };
}

/** Writes `count` rows at once. */
export async function fill(kv: Kv, query: URLSearchParams): Promise<{ written: number }> {
  const { set, from, count, value } = span(query);
  const atomic = kv.atomic();
  for (let n = from; n < from + count; n++) atomic.set(rowKey(set, n), value);
  await atomic.commit();
  return { written: count };
}

/** Reads a whole set, which brings it to the site that this runs at. */
export async function cover(kv: Kv, query: URLSearchParams): Promise<{ rows: number }> {
  let rows = 0;
  for await (const _ of kv.list({ prefix: ["rows", query.get("set") ?? ""] }, { batchSize: 1000 })) rows++;
  return { rows };
}

/** performance.now() at some moment of the system's clock, which all processes of a machine share. */
let skewMs: number | null = null;

/** The system's clock in milliseconds and fractions; `Date.now()` alone has whole ones. */
function nowMs(): number {
  if (skewMs === null) {
    // The moment at which it ticks is known as finely as performance.now() goes.
    const before = Date.now();
    let tick = before;
    while (tick === before) tick = Date.now();
    skewMs = tick - performance.now();
  }
  return performance.now() + skewMs;
}

interface Stamp {
  readonly n: number;
  readonly atMs: number;
}

/** Writes the time into a row. */
export async function stamp(kv: Kv, query: URLSearchParams): Promise<Stamp> {
  nowMs();
  const written: Stamp = { n: Number(query.get("n")), atMs: nowMs() };
  await kv.set(["stamps", query.get("set") ?? ""], written);
  return written;
}

/** Server-sent events: how long each written time took to be seen by this function. */
export function changes(kv: Kv, query: URLSearchParams): Response {
  nowMs();
  const encoder = new TextEncoder();
  const rows = kv.watch<[Stamp]>([["stamps", query.get("set") ?? ""]]).getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await rows.read();
      if (done) return controller.close();
      const seen = value[0].value;
      const event = seen === null ? { n: -1, lagMs: 0 } : { n: seen.n, lagMs: nowMs() - seen.atMs };
      controller.enqueue(encoder.encode(`data: ${JSON.stringify(event)}\n\n`));
    },
    cancel: () => rows.cancel(),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
