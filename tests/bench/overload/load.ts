/**
 * A load generator in a process of its own that does not wait for answers: so many requests begin each second, as those of
 * clients do that know nothing of each other. Each takes a connection that is free, or another one, up to a number of them;
 * what finds none is counted, and not sent.
 *
 * Input (fresh.ts): {@link OpenLoad}; answer: {@link OpenResult}.
 */
import { freshAnswer, freshInput } from "../fresh.ts";
import { Connection } from "../http/load.ts";
import { quantile } from "../record.ts";

/** What to ask, how often, for how long. */
export interface OpenLoad {
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  /** Requests that begin a second; null: as soon as a connection is free. */
  readonly perSecond: number | null;
  readonly connections: number;
  /** Not counted: by then a queue stands, if one may. */
  readonly warmMs: number;
  readonly runMs: number;
}

/** Times of those that were answered with one status. */
export interface Answered {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What came of those that began after the warm-up. */
export interface OpenResult {
  readonly accepted: Answered;
  /** 503, told to come again. */
  readonly refused: Answered;
  /** Any other answer, or none. */
  readonly failed: number;
  /** No connection was free. */
  readonly unsent: number;
}

/** Begins requests for a while, and waits for the last answers. */
export async function offer(input: OpenLoad): Promise<OpenResult> {
  const { hostname, port, perSecond, connections, warmMs, runMs } = input;
  const free: Connection[] = [], acceptedMs: number[] = [], refusedMs: number[] = [];
  const request = `GET ${input.path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
  const beganMs = performance.now(), countFromMs = beganMs + warmMs, endMs = countFromMs + runMs;
  const all: Promise<void>[] = [];
  let open = 0, failed = 0, unsent = 0;
  const one = async (dueMs: number) => {
    const isCounted = dueMs >= countFromMs;
    try {
      const connection = free.pop() ?? new Connection(await Deno.connect({ hostname, port }));
      const { status } = await connection.ask(request);
      free.push(connection);
      if (!isCounted) return;
      if (status === 200) acceptedMs.push(performance.now() - dueMs);
      else if (status === 503) refusedMs.push(performance.now() - dueMs);
      else failed++;
    } catch {
      open--;
      if (isCounted) failed++;
    }
  };
  const begin = (dueMs: number): boolean => {
    if (free.length === 0 && open >= connections) return false;
    if (free.length === 0) open++;
    all.push(one(dueMs));
    return true;
  };
  for (let begun = 0;;) {
    const nowMs = performance.now();
    if (nowMs >= endMs) break;
    if (perSecond === null) { while (begin(nowMs)); }
    else {
      for (const due = (nowMs - beganMs) * perSecond / 1_000; begun < due; begun++) {
        const dueMs = beganMs + begun * 1_000 / perSecond;
        if (!begin(dueMs) && dueMs >= countFromMs) unsent++;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(all);
  for (const connection of free) connection.close();
  const told = (ms: number[]): Answered => ({
    perSecond: ms.length / runMs * 1_000,
    p50Ms: ms.length === 0 ? 0 : quantile(ms, 0.5),
    p99Ms: ms.length === 0 ? 0 : quantile(ms, 0.99),
  });
  return { accepted: told(acceptedMs), refused: told(refusedMs), failed, unsent };
}

if (import.meta.main) freshAnswer(await offer(freshInput() as OpenLoad));
