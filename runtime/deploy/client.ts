/**
 * The admin interface from outside: what commands and the dev cluster use. Plain HTTP to one site, which
 * forwards to the root what only the root can do.
 */
import { z } from "zod";
import { type Key, keyBytes } from "../../store/model/key.ts";
import { Silence } from "./silence.ts";
import { readNdjson } from "../observe/ndjson.ts";
import {
  appsSchema,
  type AppSummary,
  arrivedSchema,
  type Deployed,
  placementSchema,
  problemSchema,
  type ProgressEvent,
  progressSchema,
  rolloutSchema,
  type RolloutState,
  routesSchema,
  type RouteSummary,
  rowsSchema,
  type SecretListing,
  secretSetSchema,
  type SecretSetSummary,
  secretsSchema,
  sitesSchema,
  type SiteSummary,
  type StoredRowSummary,
  versionsSchema,
  type VersionSummary,
} from "./answers.ts";
import { ADMIN_PATH, AdminError } from "./admin_api.ts";
import type { BlobRef } from "./blobs.ts";
import { showBlobRef } from "./version_files.ts";

export type {
  AppSummary,
  Deployed,
  ProgressEvent,
  RolloutState,
  RouteSummary,
  SecretListing,
  SecretSetSummary,
  SiteSummary,
  StoredRowSummary,
  VersionSummary,
};

/** An answer that had begun and has no end: what it was to tell of may have happened. */
export class AnswerBrokenOff extends AdminError {
  constructor(message: string) {
    super("site_unreachable", message);
  }
}

/** How to reach a cluster. */
export interface AdminTarget {
  /** Any site's. */
  readonly url: string;
  /** Not needed in dev. */
  readonly token?: string | undefined;
  /** How long a read may take; {@link READ_MS} where it is not given. */
  readonly readMs?: number;
  /** How long a change may take before it begins to be answered; {@link CHANGE_MS} where it is not given. */
  readonly changeMs?: number;
  /** How long an answer that has begun may say nothing; that of silence.ts where it is not given. */
  readonly silenceMs?: number;
}

/** A site that stands still (stopped, swapping, behind a dead route) is told from one that is slow by this. */
const READ_MS = 30_000;
/** The same of a change: 25 MiB, the largest file, on a line of 1 Mbit/s. What takes longer gives signs of life. */
const CHANGE_MS = 300_000;

/** A bundle on its way to a cluster. */
export interface BundleUpload {
  readonly bundle: Uint8Array<ArrayBuffer>;
  /** From `--app`; wins over the manifest's name. */
  readonly app?: string | undefined;
  /** The module's folder. */
  readonly fallback?: string | undefined;
  /** Per cent of the sessions that get it; all where it is not given. */
  readonly weight?: number | undefined;
  /** How long to wait for the sites. */
  readonly waitMs: number;
  /** The index of the static files, and the source map, both sent before by {@link AdminClient.putBlob}. */
  readonly files?: BlobRef | undefined;
  readonly sourceMap?: BlobRef | undefined;
}

/** How a change is watched, and given up. */
export interface Progress {
  /** Told of what happens on the way. */
  readonly tell?: ((event: ProgressEvent) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Talks to the admin handlers of one site. Every method throws {@link AdminError}. */
export class AdminClient {
  readonly #target: AdminTarget;

  constructor(target: AdminTarget) {
    this.#target = target;
  }

  /** Uploads a bundle, and waits for the sites. */
  async deploy(upload: BundleUpload, progress: Progress = {}): Promise<Deployed> {
    const { bundle, waitMs, app, fallback, weight, files, sourceMap } = upload;
    const query = {
      waitMs,
      app,
      fallback,
      weight,
      files: files && showBlobRef(files),
      map: sourceMap && showBlobRef(sourceMap),
    };
    return await this.#change("/deploy", query, progress, bundle);
  }

  /** Which of these blobs the cluster lacks. */
  async missingBlobs(digests: readonly string[]): Promise<string[]> {
    const body = new TextEncoder().encode(JSON.stringify(digests));
    return z.array(z.string()).parse(await this.#ask("POST", "/blobs/missing", body));
  }

  /** Sends a blob. */
  async putBlob(digest: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#ask("PUT", `/blobs/${digest}`, bytes);
  }

  /** Makes an earlier version current; the previous one where none is named. */
  async rollback(
    app: string,
    version: string | undefined,
    waitMs: number,
    progress?: Progress,
  ): Promise<Deployed> {
    return await this.#change(`/apps/${encodeURIComponent(app)}/rollback`, { version, waitMs }, progress);
  }

  /** What of a rollout runs. */
  async rolloutOf(app: string): Promise<RolloutState> {
    return rolloutSchema.parse(await this.#ask("GET", `/apps/${encodeURIComponent(app)}/rollout`));
  }

  /** Gives a version to so many per cent of the sessions. */
  async rollout(
    app: string,
    to: { readonly version: string; readonly weight: number },
    waitMs: number,
    progress?: Progress,
  ): Promise<Deployed> {
    return await this.#change(`/apps/${encodeURIComponent(app)}/rollout`, { ...to, waitMs }, progress);
  }

  /** Ends a rollout: its version serves all, or nobody. */
  async endRollout(
    app: string,
    how: "finish" | "abort",
    waitMs: number,
    progress?: Progress,
  ): Promise<Deployed> {
    return await this.#change(`/apps/${encodeURIComponent(app)}/rollout/${how}`, { waitMs }, progress);
  }

  /** Where an app is reached. */
  async routes(app: string): Promise<RouteSummary> {
    return routesSchema.parse(await this.#ask("GET", `/apps/${encodeURIComponent(app)}/routes`));
  }

  /** Gives a host to an app, or takes it. */
  async changeHost(
    app: string,
    how: "add" | "remove",
    host: string,
    waitMs: number,
    progress?: Progress,
  ): Promise<Deployed> {
    const path = `/apps/${encodeURIComponent(app)}/hosts/${encodeURIComponent(host)}`;
    const method = how === "add" ? "PUT" : "DELETE";
    return placementSchema.parse(await this.#follow(method, path, { waitMs }, progress ?? {}, null));
  }

  /** Deletes an app and its rows. */
  async deleteApp(app: string, waitMs: number, progress?: Progress): Promise<Deployed> {
    const path = `/apps/${encodeURIComponent(app)}`;
    return placementSchema.parse(await this.#follow("DELETE", path, { waitMs }, progress ?? {}, null));
  }

  /** The apps that serve. */
  async apps(): Promise<AppSummary[]> {
    return appsSchema.parse(await this.#ask("GET", "/apps"));
  }

  /** An app's versions, newest first. */
  async versions(app: string): Promise<VersionSummary[]> {
    return versionsSchema.parse(await this.#ask("GET", `/apps/${encodeURIComponent(app)}/versions`));
  }

  /** The sites that the cluster knows, root first. */
  async sites(): Promise<SiteSummary[]> {
    return sitesSchema.parse(await this.#ask("GET", "/sites"));
  }

  /** One row of an app, or the rows below a prefix, as the root has them; keys are relative to the app. */
  async rows(
    app: string,
    where:
      | { readonly key: Key }
      | { readonly prefix: Key; readonly limit: number; readonly after?: Key | undefined },
  ): Promise<StoredRowSummary[]> {
    const query = new URLSearchParams();
    if ("key" in where) query.set("key", keyBytes(where.key).toHex());
    else {
      query.set("prefix", keyBytes(where.prefix).toHex());
      query.set("limit", String(where.limit));
      if (where.after !== undefined) query.set("after", keyBytes(where.after).toHex());
    }
    return rowsSchema.parse(await this.#ask("GET", `/apps/${encodeURIComponent(app)}/rows?${query}`));
  }

  /** Any call below the admin path, with a JSON body; what it answers is for the caller to check. */
  async call(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: object): Promise<unknown> {
    const bytes = body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body));
    return await this.#ask(method, path, bytes);
  }

  /** A file, as it comes. @param signal gives it up. */
  async content(
    path: string,
    signal: AbortSignal,
  ): Promise<{ readonly bytes: number | null; readonly body: ReadableStream<Uint8Array> }> {
    const answer = await this.#fetch("GET", path, null, signal);
    if (!answer.ok || answer.body === null) throw problemOf(answer, await answer.text());
    const length = answer.headers.get("content-length");
    return { bytes: length === null ? null : Number(length), body: answer.body };
  }

  /** Runs a cron job at once, however long it takes; what it answers is for the caller to check. */
  async runJob(app: string, name: string): Promise<unknown> {
    const path = `/apps/${encodeURIComponent(app)}/cron/${encodeURIComponent(name)}/run`;
    return await this.#follow("POST", path, {}, {}, null);
  }

  /** All sites as one of them sees them. */
  async cluster(): Promise<unknown> {
    return await this.#ask("GET", "/cluster");
  }

  /** What a stream of JSON lines says, until it ends or the signal aborts; undefined: a sign of life. */
  async *lines(path: string, signal?: AbortSignal): AsyncGenerator<unknown> {
    const { url } = this.#target;
    const gone = (error: unknown) =>
      new AdminError("site_unreachable", `the stream of ${url} has broken off: ${messageOf(error)}`);
    using silence = new Silence(signal);
    let answer: Response;
    try {
      answer = await this.#fetch("GET", path, null, silence.signal);
      if (!answer.ok) throw problemOf(answer, await answer.text());
    } catch (error) {
      if (signal?.aborted) return;
      throw error;
    }
    const values = answer.body === null ? null : readNdjson(answer.body, silence.signal);
    for (;;) {
      let next: IteratorResult<unknown> | undefined;
      try {
        silence.begins();
        next = await values?.next();
        silence.throwIfLong();
      } catch (error) {
        if (signal?.aborted) return;
        throw gone(error);
      }
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  }

  /** Sets a secret of an app. */
  async setSecret(
    app: string,
    name: string,
    value: string,
    from: "command" | "dotenv",
  ): Promise<SecretSetSummary> {
    const path = `${secretsPath(app)}/${encodeURIComponent(name)}?from=${from}`;
    return secretSetSchema.parse(await this.#ask("PUT", path, new TextEncoder().encode(value)));
  }

  /** Waits until every site has a secret as it was set; those that have not by then are missing. */
  async awaitSecret(
    app: string,
    name: string,
    wait: { readonly stamp: string; readonly waitMs: number },
    progress: Progress = {},
  ): Promise<Pick<Deployed, "sites" | "missing">> {
    const path = `${secretsPath(app)}/${encodeURIComponent(name)}/placed`;
    return arrivedSchema.parse(await this.#follow("POST", path, wait, progress, null));
  }

  /** An app's secrets, declared or set. */
  async secrets(app: string): Promise<SecretListing[]> {
    return secretsSchema.parse(await this.#ask("GET", secretsPath(app)));
  }

  /** Deletes the value of a secret. */
  async deleteSecret(app: string, name: string): Promise<void> {
    await this.#ask("DELETE", `${secretsPath(app)}/${encodeURIComponent(name)}`);
  }

  async #change(
    path: string,
    query: Query,
    progress?: Progress,
    body?: Uint8Array<ArrayBuffer>,
  ): Promise<Deployed> {
    return placementSchema.parse(await this.#follow("POST", path, query, progress ?? {}, body ?? null));
  }

  /** The answer of a call that tells line by line how far it is. */
  async #follow(
    method: string,
    path: string,
    query: Query,
    progress: Progress,
    body: Uint8Array<ArrayBuffer> | null,
  ): Promise<unknown> {
    const asked = new URLSearchParams(
      Object.entries(query).flatMap(([name, value]) => value === undefined ? [] : [[name, `${value}`]]),
    );
    const { url, silenceMs, changeMs = CHANGE_MS } = this.#target;
    const broken = (why: string) => new AnswerBrokenOff(`the answer of ${url} has broken off${why}`);
    using silence = new Silence(progress.signal, silenceMs);
    silence.begins(changeMs);
    try {
      const answer = await this.#fetch(method, `${path}?${asked}`, body, silence.signal, NDJSON_ACCEPTED);
      if (!answer.ok || answer.body === null) throw problemOf(answer, await answer.text());
      silence.begins();
      for await (const line of readNdjson(answer.body, silence.signal)) {
        silence.begins();
        const event = progressSchema.safeParse(line).data; // another release may tell of more
        if (event?.event === "answer") return answered(event.status, event.body);
        if (event !== undefined) progress.tell?.(event);
      }
      silence.throwIfLong();
    } catch (error) {
      if (error instanceof AdminError && !silence.isLong) throw error;
      throw broken(`: ${messageOf(error)}`);
    }
    throw broken("");
  }

  async #fetch(
    method: string,
    path: string,
    body: Uint8Array<ArrayBuffer> | null,
    signal?: AbortSignal,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const { url, token } = this.#target;
    const headers = new Headers(more);
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    try {
      return await fetch(new URL(ADMIN_PATH + path, url), {
        method,
        headers,
        body,
        ...signal === undefined ? {} : { signal },
      });
    } catch (error) {
      throw new AdminError("site_unreachable", `no site answers at ${url}: ${whyOf(error)}`);
    }
  }

  async #ask(method: string, path: string, body?: Uint8Array<ArrayBuffer>): Promise<unknown> {
    const { url } = this.#target;
    const { readMs = READ_MS, changeMs = CHANGE_MS } = this.#target;
    const over = new AbortController();
    const [limitMs, and] = method === "GET" ? [readMs, ""] : [changeMs, "; whether it was done is not known"];
    const timer = setTimeout(() => over.abort(new Error(`nothing came in ${limitMs} ms${and}`)), limitMs);
    let answer: Response;
    let text: string;
    try {
      answer = await this.#fetch(method, path, body ?? null, over.signal);
      text = await answer.text();
    } catch (error) {
      if (error instanceof AdminError) throw error;
      throw new AdminError("site_unreachable", `no site answers at ${url}: ${messageOf(error)}`);
    } finally {
      clearTimeout(timer);
    }
    if (answer.ok) return parseJson(text);
    throw problemOf(answer, text);
  }
}

type Query = Readonly<Record<string, string | number | undefined>>;

const NDJSON_ACCEPTED = { accept: "application/x-ndjson, application/problem+json" };

/** The body of an answer that came as a line. */
function answered(status: number, body: unknown): unknown {
  if (status < 400) return body;
  throw problemOf({ status, statusText: "" }, JSON.stringify(body));
}

/** The error that an answer tells of. */
function problemOf(answer: Pick<Response, "status" | "statusText">, text: string): AdminError {
  const problem = problemSchema.safeParse(parseJson(text));
  if (!problem.success) {
    const [line = ""] = text.trim().split("\n");
    const said = [answer.status, answer.statusText, line.slice(0, 200)].filter((part) => part !== "").join(
      " ",
    );
    return new AdminError(
      "http_" + answer.status,
      `what answers is no site of a cluster, or one in trouble: ${said}`,
    );
  }
  return new AdminError(problem.data.code, problem.data.detail, problem.data.place);
}

const secretsPath = (app: string): string => `/apps/${encodeURIComponent(app)}/secrets`;

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error);
/** What a fetch that failed says is "fetch failed"; why is in its cause. */
const whyOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const message = messageOf(cause);
  return /certificate/i.test(message)
    ? `${message}; DENO_CERT=FILE names the authority of a cluster that has one of its own`
    : message;
};

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
