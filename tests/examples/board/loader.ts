/**
 * Loads generated data through the app's own operator routes at the root, in large batches, a few at a time.
 */
import type { Datum } from "./generator.ts";

/** Sends one request to the app at one site. */
export type Send = (path: string, init: RequestInit) => Promise<Response>;

/** What was loaded. */
export interface Loaded {
  readonly rows: number;
  readonly sums: number;
  readonly bytes: number;
  readonly tookMs: number;
}

/** Rows in one request. */
const ROWS_PER_REQUEST = 500;
/** Characters of JSON in one request: well under the body limit, large enough to hide the round trip. */
const CHARS_PER_REQUEST = 4 * 2 ** 20;
/** Requests under way: the next one is parsed while the last one is written. */
const REQUESTS_AT_ONCE = 2;

/**
 * Loads everything.
 *
 * @throws Error when a request is refused, with its status and answer.
 */
export async function load(data: Iterable<Datum>, send: Send, adminToken: string): Promise<Loaded> {
  const start = performance.now();
  const totals = { rows: 0, sums: 0, bytes: 0 };
  const batches = batchesOf(data);
  const worker = async () => {
    for (let next = batches.next(); next.done !== true; next = batches.next()) {
      const { rows, sums, body } = next.value;
      await postJson(send, "/admin/rows", body, adminToken);
      totals.rows += rows;
      totals.sums += sums;
      totals.bytes += body.length;
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, worker));
  return { ...totals, tookMs: performance.now() - start };
}

/** Posts JSON to an operator's route. @throws Error for any answer but 2xx. */
export async function postJson(send: Send, path: string, body: string, adminToken: string): Promise<unknown> {
  const response = await send(path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${adminToken}` },
    body,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}

function* batchesOf(data: Iterable<Datum>): Generator<{ rows: number; sums: number; body: string }> {
  let rows: string[] = [];
  let sums: string[] = [];
  let chars = 0;
  const flush = () => {
    const body = `{"rows":[${rows.join()}],"sums":[${sums.join()}]}`;
    const batch = { rows: rows.length, sums: sums.length, body };
    [rows, sums, chars] = [[], [], 0];
    return batch;
  };
  for (const datum of data) {
    const json = datum.kind === "row"
      ? JSON.stringify({ table: datum.table, value: datum.value })
      : JSON.stringify({ key: datum.key, by: datum.by });
    (datum.kind === "row" ? rows : sums).push(json);
    chars += json.length;
    if (rows.length >= ROWS_PER_REQUEST || chars >= CHARS_PER_REQUEST) yield flush();
  }
  if (rows.length + sums.length > 0) yield flush();
}
