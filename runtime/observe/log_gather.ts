/**
 * `logs` of all sites, at the site that was asked: the answer to `GET /_sojourn/admin/logs`.
 *
 * Stages: every site is asked for its newest lines, with a short time-out → merged by time, cut to the limit → with
 * `follow`, every site is followed from there; one that is lost is asked again until it is back → the reader leaves.
 *
 * G1  A site that does not answer is a line that says so, once; its lines come when it is back.
 * G2  When the reader has gone, nothing is held: requests are given up, timers end.
 * G3  A slow reader slows nobody: lines that it does not take wait in the sites' rings, and are dropped there with a
 *     count.
 */
import { z } from "zod";
import { type LogLine, logLineSchema, type LogQuery, siteQuery } from "./log_line.ts";
import { LogMerge } from "./log_merge.ts";
import { BLANK_LINE, LIFE_SIGN_MS, pulledBody, readNdjson } from "./ndjson.ts";
import { pause } from "./pause.ts";

/** Milliseconds that a person waits for sites: one that is there answers within a round trip. */
const ANSWER_MS = 2_000;
/** Milliseconds until a lost site is asked again: a killed one is back within a second or two. */
const AGAIN_MS = 500;

/** Services of the site that gathering uses. */
export interface LogSources {
  /** Returns all sites that are known, this one among them. */
  readonly sites: () => readonly string[];
  /** Asks a site for its own lines. */
  readonly ask: (site: string, query: URLSearchParams, signal: AbortSignal) => Promise<Response>;
  readonly nowMs: () => number;
}

/** Schema of the lines that a site sends: a log line with the place after it, or that place alone. */
const tailSchema = z.union([
  logLineSchema.extend({ at: z.string().optional() }),
  z.object({ at: z.string() }),
]);

/**
 * Returns the stream of lines that a query asks for. `readers` is told once of its beginning, when somebody begins to
 * read, and once of its end.
 */
export function gatherLogs(
  sources: LogSources,
  query: LogQuery,
  readers: { begun(): void; ended(): void },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const gone = new AbortController();
  const gathering = new Gathering(sources, query, gone.signal);
  let isBegun = false;
  return pulledBody(() => {
    if (!isBegun) readers.begun();
    isBegun = true;
    return gathering.next();
  }, () => {
    if (gone.signal.aborted) return;
    gone.abort();
    gathering.close();
    if (isBegun) readers.ended();
  });
}

class Gathering {
  readonly #sources: LogSources;
  readonly #query: LogQuery;
  readonly #gone: AbortSignal;
  readonly #merge = new LogMerge();
  readonly #followed = new Set<string>();
  #begun = false;

  constructor(sources: LogSources, query: LogQuery, gone: AbortSignal) {
    this.#sources = sources;
    this.#query = query;
    this.#gone = gone;
  }

  async next(): Promise<Uint8Array<ArrayBuffer> | null> {
    if (!this.#begun) {
      this.#begun = true;
      return encode(await this.#first());
    }
    if (!this.#query.follow || this.#gone.aborted) return null;
    for (const site of this.#wanted()) this.#follow(site, { after: null, down: false });
    const lines = await this.#merge.next(LIFE_SIGN_MS, this.#gone); // a new site is followed within that time, too
    return lines.length === 0 ? BLANK_LINE : encode(lines);
  }

  close(): void {
    this.#merge.close();
  }

  #wanted(): readonly string[] {
    return this.#query.site === null ? this.#sources.sites() : [this.#query.site];
  }

  /** Returns the lines that the sites have now. */
  async #first(): Promise<LogLine[]> {
    const found: LogLine[] = [];
    const notices: LogLine[] = [];
    await Promise.all(
      this.#wanted().map(async (site) => {
        const followUp = { after: null as string | null, down: false };
        try {
          const tail = this.#ask(site, { follow: false, after: null });
          for await (const { line, after } of tail) {
            if (line !== null) found.push(line);
            followUp.after = after;
          }
        } catch (error) {
          if (this.#gone.aborted) return;
          followUp.down = true;
          notices.push(this.#notice(site, "unreachable", `${site} does not answer: ${messageOf(error)}`));
        }
        if (this.#query.follow) this.#follow(site, followUp);
      }),
    );
    found.sort((a, b) => a.atMs - b.atMs);
    const kept = this.#query.limit === 0 ? [] : found.slice(-this.#query.limit);
    return [...kept, ...notices];
  }

  #follow(site: string, from: { after: string | null; down: boolean }): void {
    if (this.#followed.has(site) || this.#gone.aborted) return;
    this.#followed.add(site);
    void this.#keepFollowing(site, from);
  }

  /** Follows a site until the reader leaves (G1). */
  async #keepFollowing(site: string, from: { after: string | null; down: boolean }): Promise<void> {
    let { after, down } = from;
    while (!this.#gone.aborted) {
      let why = "it has stopped";
      try {
        for await (const part of this.#ask(site, { follow: true, after })) {
          if (down) await this.#merge.add(this.#notice(site, "back", `${site} answers again`), this.#gone);
          down = false;
          after = part.after ?? after;
          if (part.line !== null) await this.#merge.add(part.line, this.#gone);
        }
      } catch (error) {
        why = messageOf(error);
      }
      if (this.#gone.aborted) return;
      if (!down) {
        const text = `${site} does not answer: ${why}`;
        await this.#merge.add(this.#notice(site, "unreachable", text), this.#gone);
      }
      down = true;
      await pause(AGAIN_MS, this.#gone);
    }
  }

  /** Yields the lines of one site. @throws where it does not answer, or no longer. */
  async *#ask(
    site: string,
    more: { follow: boolean; after: string | null },
  ): AsyncGenerator<{ line: LogLine | null; after: string | null }> {
    const late = new AbortController();
    const signal = AbortSignal.any([this.#gone, late.signal]);
    const timer = setTimeout(() => late.abort(new Error(`not within ${ANSWER_MS} ms`)), ANSWER_MS);
    try {
      const answer = await unless(this.#sources.ask(site, siteQuery(this.#query, more), signal), signal);
      if (!answer.ok || answer.body === null) throw new Error(await refusalOf(answer));
      if (more.follow) clearTimeout(timer);
      for await (const value of readNdjson(answer.body, signal)) {
        if (value === undefined) continue;
        const part = tailSchema.parse(value);
        const { at = null } = part;
        if (!("text" in part)) yield { line: null, after: at };
        else {
          const { at: _place, ...line } = part;
          yield { line: { ...line, site }, after: at };
        }
      }
      late.signal.throwIfAborted();
    } finally {
      clearTimeout(timer);
    }
  }

  #notice(site: string, notice: "unreachable" | "back", text: string): LogLine {
    return { atMs: this.#sources.nowMs(), site, level: "warn", text, notice };
  }
}

const encoder = new TextEncoder();
const encode = (lines: readonly LogLine[]): Uint8Array<ArrayBuffer> =>
  encoder.encode(lines.map((line) => JSON.stringify(line) + "\n").join("") || "\n");

/** Returns a promise's result, unless the signal aborts first. */
function unless<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

async function refusalOf(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    return z.object({ detail: z.string() }).parse(JSON.parse(text)).detail;
  } catch {
    return `HTTP ${answer.status}`;
  }
}

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error);
