/**
 * A site's part of an answer to `logs`, as it goes to the site that gathers them: lines of its ring, each with the
 * place after it (`at`), by which a reader that lost the connection goes on.
 *
 * Stages: the ring's lines → with `follow`, each new line, and `at` alone while there is none → the reader leaves.
 *
 * T1  A tail reads only as fast as its reader: lines that are gone by then are counted, and the count is told.
 */
import { type LogLine, type SiteLogQuery, wants } from "./log_line.ts";
import { ndjsonLine, pulledBody } from "./ndjson.ts";
import type { LogRing, RingPart } from "./log_ring.ts";

/** Lines of one chunk: at 16 KiB a line no more than a link's window would hold anyway. */
const CHUNK_LINES_MAX = 64;
/** Milliseconds between signs of life of a tail that has no line to send. */
const IDLE_MS = 5_000;

/** Services of the site that a tail reads. */
export interface TailSource {
  readonly site: string;
  readonly ring: LogRing;
  readonly nowMs: () => number;
}

/** Returns the lines of one site that a query asks for. */
export function logTail(source: TailSource, query: SiteLogQuery): ReadableStream<Uint8Array<ArrayBuffer>> {
  const gone = new AbortController();
  const tail = new Tail(source, query, gone.signal);
  return pulledBody(() => tail.next(), () => gone.abort());
}

class Tail {
  readonly #source: TailSource;
  readonly #query: SiteLogQuery;
  readonly #gone: AbortSignal;
  readonly #passes: (line: LogLine) => boolean;
  #from: number | null;
  #over = false;
  #greeted = false;

  constructor(source: TailSource, query: SiteLogQuery, gone: AbortSignal) {
    this.#source = source;
    this.#query = query;
    this.#gone = gone;
    this.#passes = (line) => wants(query, line);
    const [boot, number] = query.after?.split(":") ?? [];
    // The place is of another ring: this site has begun anew, and all its lines are new to the reader.
    const isOwn = boot === source.ring.boot;
    this.#from = boot === undefined ? null : isOwn ? Math.min(Number(number), source.ring.next) : 0;
  }

  async next(): Promise<Uint8Array<ArrayBuffer> | null> {
    const { ring } = this.#source;
    if (this.#over || this.#gone.aborted) return null;
    if (this.#from === null) {
      const part = ring.newest(this.#query.limit, this.#passes);
      this.#over = !this.#query.follow;
      return this.#encode(part);
    }
    for (;;) {
      const part = ring.read(this.#from, CHUNK_LINES_MAX, this.#passes);
      const isEnd = part.next === ring.next && !this.#query.follow;
      if (isEnd) this.#over = true;
      const isFirst = !this.#greeted; // at once, so that the reader knows that this site is there
      if (part.lines.length > 0 || part.lost > 0 || isEnd || isFirst) return this.#encode(part);
      this.#from = part.next;
      const begunMs = performance.now();
      await ring.reaches(part.next, this.#gone, IDLE_MS);
      if (this.#gone.aborted) return null;
      if (performance.now() - begunMs >= IDLE_MS) return ndjsonLine({ at: this.#place(part.next) });
    }
  }

  #encode(part: RingPart): Uint8Array<ArrayBuffer> {
    this.#from = part.next;
    this.#greeted = true;
    const { site, nowMs } = this.#source;
    const lines: string[] = [];
    if (part.lost > 0) {
      const text = `${part.lost} lines of ${site} were dropped before they were read`;
      lines.push(JSON.stringify({ atMs: nowMs(), site, level: "warn", text, notice: "dropped" })); // T1
    }
    for (const { line, number } of part.lines) {
      lines.push(JSON.stringify({ ...line, at: this.#place(number + 1) }));
    }
    lines.push(JSON.stringify({ at: this.#place(part.next) }));
    return new TextEncoder().encode(lines.join("\n") + "\n");
  }

  #place(number: number): string {
    return `${this.#source.ring.boot}:${number}`;
  }
}
