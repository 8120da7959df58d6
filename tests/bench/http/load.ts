/**
 * A load generator in a process of its own: N keep-alive connections, each with one request under way, over raw
 * TCP (Deno's `fetch` would be the bottleneck). Sessions are real: each connection takes turns with its share of
 * the sessions, and presents the token that the session's last answer brought.
 *
 * Input (fresh.ts): {@link LoadInput}; answer: {@link LoadResult}.
 */
import { freshAnswer, freshInput } from "../fresh.ts";
import { quantile } from "../record.ts";

/** What to ask, how often, for how long. */
export interface LoadInput {
  readonly hostname: string;
  readonly port: number;
  /** `{session}` stands for the number of the session. */
  readonly path: string;
  readonly connections: number;
  /** 0: requests carry no session. */
  readonly sessions: number;
  readonly warmMs: number;
  readonly runMs: number;
}

/** What came of it, the warm-up left out. At least one request is counted, however slow the machine is. */
export interface LoadResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly requests: number;
  /** With those of the warm-up. */
  readonly total: number;
  readonly errors: number;
}

/** Begins a session that has a token before anything was done in it. */
const NEW_SESSION = "sojourn-session-reset: 1\r\n";
const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");

/** One connection; answers are small, so most arrive in one read. */
export class Connection {
  readonly #conn: Deno.TcpConn;
  readonly #buffer = new Uint8Array(65_536);

  constructor(conn: Deno.TcpConn) {
    conn.setNoDelay(true);
    this.#conn = conn;
  }

  async ask(request: string): Promise<{ status: number; head: string }> {
    await this.#conn.write(encoder.encode(request));
    let text = "";
    for (;;) {
      const n = await this.#conn.read(this.#buffer);
      if (n === null) throw new Error("the server closed the connection");
      text += decoder.decode(this.#buffer.subarray(0, n));
      const end = text.indexOf("\r\n\r\n");
      if (end >= 0 && isWhole(text, end)) {
        return { status: Number(text.slice(9, 12)), head: text.slice(0, end) };
      }
    }
  }

  close(): void {
    this.#conn.close();
  }
}

function isWhole(text: string, end: number): boolean {
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end + 2));
  if (length !== null) return text.length >= end + 4 + Number(length[1]);
  return text.endsWith("0\r\n\r\n");
}

/** Runs the load and returns its figures. */
export async function run(input: LoadInput): Promise<LoadResult> {
  const tookMs: number[] = [];
  let errors = 0, total = 0;
  const begun = performance.now();
  const countFrom = begun + input.warmMs, end = countFrom + input.runMs;
  let spanMs = input.runMs;
  const tokens = new Map<number, string>();
  const worker = async (n: number) => {
    const connection = new Connection(await Deno.connect({ hostname: input.hostname, port: input.port }));
    const mine = Math.max(1, Math.floor(input.sessions / input.connections));
    for (let i = 0; performance.now() < end || tookMs.length === 0; i++) {
      const session = n * mine + i % mine;
      const token = tokens.get(session);
      const start = performance.now();
      const { status, head } = await connection.ask(
        `GET ${input.path.replace("{session}", String(session))} HTTP/1.1\r\nhost: localhost\r\n` +
          (input.sessions === 0 ? "" : token === undefined ? NEW_SESSION : `sojourn-session: ${token}\r\n`) +
          "\r\n",
      );
      const now = performance.now();
      total++;
      if (start >= countFrom) {
        if (tookMs.length === 0) spanMs = Math.max(spanMs, now - countFrom);
        tookMs.push(now - start);
      }
      if (status !== 200) errors++;
      const fresh = /\r\nsojourn-session: ([^\r]+)/i.exec(head)?.[1];
      if (fresh !== undefined && input.sessions > 0) tokens.set(session, fresh);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: input.connections }, (_, n) => worker(n)));
  return {
    perSecond: tookMs.length / spanMs * 1000,
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
    requests: tookMs.length,
    total,
    errors,
  };
}

if (import.meta.main) freshAnswer(await run(freshInput() as LoadInput));
