/**
 * Client of the admin interface, for commands and the dev cluster: plain HTTP to one site, which forwards to the root
 * what only the root can do.
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

/** Error for an answer that had begun and broke off: the change that it was to tell of may have happened. */
export class AnswerBrokenOff extends AdminError {
  constructor(message: string) {
    super("site_unreachable", message);
  }
}

/** Address and timeouts of a cluster's admin interface. */
export interface AdminTarget {
  /** URL of any of the cluster's sites. */
  readonly url: string;
  /** Operator's token; not needed in dev. */
  readonly token?: string | undefined;
  /** Milliseconds that a read may take; {@link READ_MS} where not given. */
  readonly readMs?: number;
  /** Milliseconds that a change may take before its answer begins; {@link CHANGE_MS} where not given. */
  readonly changeMs?: number;
  /** Milliseconds for which an answer that has begun may be silent; SILENCE_MS_MAX of silence.ts where not given. */
  readonly silenceMs?: number;
}

/**
 * Milliseconds that a read may take: they tell a site that stands still (stopped, swapping, behind a dead route) from
 * one that is slow.
 */
const READ_MS = 30_000;
/**
 * Milliseconds that a change may take before its answer begins: 25 MiB, the largest file, on a line of 1 Mbit/s. A
 * change that takes longer gives signs of life.
 */
const CHANGE_MS = 300_000;

/** A bundle on its way to a cluster. */
export interface BundleUpload {
  readonly bundle: Uint8Array<ArrayBuffer>;
  /** App's name from `--app`; wins over the manifest's name. */
  readonly app?: string | undefined;
  /** Name of the module's folder, for an app that has no other name. */
  readonly fallback?: string | undefined;
  /** Per cent of the sessions that get it; all where not given. */
  readonly weight?: number | undefined;
  /** Milliseconds to wait for the sites. */
  readonly waitMs: number;
  /** Blobs of the static files' index and of the source map, both sent before by {@link AdminClient.putBlob}. */
  readonly files?: BlobRef | undefined;
  readonly sourceMap?: BlobRef | undefined;
}

/** Callbacks for a change under way, and the signal that gives it up. */
export interface Progress {
  /** Called for each event on the way. */
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

  /** Returns which of these blobs the cluster lacks. */
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

  /** Returns the state of an app's rollout. */
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

  /** Ends a rollout: its version serves all sessions, or none. */
  async endRollout(
    app: string,
    how: "finish" | "abort",
    waitMs: number,
    progress?: Progress,
  ): Promise<Deployed> {
    return await this.#change(`/apps/${encodeURIComponent(app)}/rollout/${how}`, { waitMs }, progress);
  }

  /** Returns the paths and hosts of an app. */
  async routes(app: string): Promise<RouteSummary> {
    return routesSchema.parse(await this.#ask("GET", `/apps/${encodeURIComponent(app)}/routes`));
  }

  /** Gives a host to an app, or takes it away. */
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

  /** Has a queue of an app give out nothing, or again, or lose all that was sent to it so far. */
  async orderQueue(
    app: string,
    queue: string,
    order: "pause" | "resume" | "purge",
    waitMs: number,
    progress?: Progress,
  ): Promise<Deployed> {
    const path = `/queues/${encodeURIComponent(app)}/${encodeURIComponent(queue)}/${order}`;
    return await this.#change(path, { waitMs }, progress);
  }

  /** Deletes an app and its rows. */
  async deleteApp(app: string, waitMs: number, progress?: Progress): Promise<Deployed> {
    const path = `/apps/${encodeURIComponent(app)}`;
    return placementSchema.parse(await this.#follow("DELETE", path, { waitMs }, progress ?? {}, null));
  }

  /** Returns the apps that serve. */
  async apps(): Promise<AppSummary[]> {
    return appsSchema.parse(await this.#ask("GET", "/apps"));
  }

  /** Returns an app's versions, newest first. */
  async versions(app: string): Promise<VersionSummary[]> {
    return versionsSchema.parse(await this.#ask("GET", `/apps/${encodeURIComponent(app)}/versions`));
  }

  /** Returns the sites that the cluster knows, root first. */
  async sites(): Promise<SiteSummary[]> {
    return sitesSchema.parse(await this.#ask("GET", "/sites"));
  }

  /** Returns one row of an app, or the rows below a prefix, as the root has them; keys are relative to the app. */
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

  /** Makes any call below the admin path, with a JSON body; the answer is for the caller to check. */
  async call(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: object): Promise<unknown> {
    const bytes = body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body));
    return await this.#ask(method, path, bytes);
  }

  /** Returns a file's content as a stream. @param signal gives it up. */
  async content(
    path: string,
    signal: AbortSignal,
  ): Promise<{ readonly bytes: number | null; readonly body: ReadableStream<Uint8Array> }> {
    const answer = await this.#fetch("GET", path, null, signal);
    if (!answer.ok || answer.body === null) throw problemOf(answer, await answer.text());
    const length = answer.headers.get("content-length");
    return { bytes: length === null ? null : Number(length), body: answer.body };
  }

  /** Runs a cron job at once, however long it takes; the answer is for the caller to check. */
  async runJob(app: string, name: string): Promise<unknown> {
    const path = `/apps/${encodeURIComponent(app)}/cron/${encodeURIComponent(name)}/run`;
    return await this.#follow("POST", path, {}, {}, null);
  }

  /** Returns the state of all sites as one of them sees them. */
  async cluster(): Promise<unknown> {
    return await this.#ask("GET", "/cluster");
  }

  /** Yields the values of a stream of JSON lines, until it ends or the signal aborts; undefined: a sign of life. */
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

  /** Waits until every site has a secret as it was set; sites that have not in time are named as missing. */
  async awaitSecret(
    app: string,
    name: string,
    wait: { readonly stamp: string; readonly waitMs: number },
    progress: Progress = {},
  ): Promise<Pick<Deployed, "sites" | "missing">> {
    const path = `${secretsPath(app)}/${encodeURIComponent(name)}/placed`;
    return arrivedSchema.parse(await this.#follow("POST", path, wait, progress, null));
  }

  /** Returns an app's secrets, declared or set. */
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

  /** Follows the answer to a call that tells its progress line by line; returns its result. */
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
        const event = progressSchema.safeParse(line).data; // another release may send other events
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

/** Returns the body of an answer that came as a line. */
function answered(status: number, body: unknown): unknown {
  if (status < 400) return body;
  throw problemOf({ status, statusText: "" }, JSON.stringify(body));
}

/** Returns the error that an answer tells of. */
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
/** Returns the reason of a failed fetch: its message is "fetch failed", and the reason is in its cause. */
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
