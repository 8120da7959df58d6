/** Apps and services for the isolate tests: small modules as text, a store in memory. */
import { createHash } from "node:crypto";
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  RowPage,
  StoreClient,
  StoredRow,
} from "../../../functions/vocabulary/store_client.ts";
import type { Key } from "../../../store/model/key.ts";
import {
  DEFAULT_ISOLATE_LIMITS,
  type IsolateApp,
  type IsolateCall,
  type IsolateLimits,
} from "../../../runtime/isolate/mod.ts";

/** An app made of one module's text. */
export function appOf(code: string, options: {
  name?: string;
  limits?: Partial<IsolateLimits>;
  vars?: Record<string, string>;
  fetchHosts?: string[];
} = {}): IsolateApp {
  const version = createHash("sha256").update(code).digest("hex");
  return {
    app: options.name ?? "app",
    version,
    bundle: () => Promise.resolve(new TextEncoder().encode(code)),
    limits: { ...DEFAULT_ISOLATE_LIMITS, ...options.limits },
    vars: options.vars ?? {},
    fetchHosts: options.fetchHosts ?? [],
  };
}

/** A store in memory, without sessions. */
export class MemoryStore implements StoreClient {
  readonly rows = new Map<Key, StoredRow>();
  #version = 0;
  #watchers = new Set<() => void>();

  get(keys: readonly Key[]): Promise<(StoredRow | null)[]> {
    return Promise.resolve(keys.map((key) => this.rows.get(key) ?? null));
  }

  list(request: ListRequest): Promise<RowPage> {
    const rows = [...this.rows.values()].filter((row) => row.key >= request.start && row.key < request.end)
      .sort((a, b) => a.key < b.key ? -1 : 1);
    if (request.reverse) rows.reverse();
    return Promise.resolve({ rows: rows.slice(0, request.limit), more: rows.length > request.limit });
  }

  commit(checks: readonly Check[], mutations: readonly Mutation[]): Promise<CommitResult> {
    if (checks.some((check) => (this.rows.get(check.key)?.versionstamp ?? null) !== check.versionstamp)) {
      return Promise.resolve({ ok: false });
    }
    const versionstamp = (++this.#version).toString(16).padStart(20, "0");
    for (const mutation of mutations) {
      if (mutation.kind === "delete") this.rows.delete(mutation.key);
      else this.rows.set(mutation.key, { key: mutation.key, value: mutation.value, versionstamp });
    }
    for (const changed of this.#watchers) changed();
    return Promise.resolve({ ok: true, versionstamp });
  }

  async *watch(_ranges: readonly { start: Key; end: Key }[], signal: AbortSignal): AsyncGenerator<void> {
    let wake = () => {};
    let changed = true;
    const onChange = () => (changed = true, wake());
    this.#watchers.add(onChange);
    signal.addEventListener("abort", () => wake());
    try {
      while (!signal.aborted) {
        if (changed) {
          changed = false;
          yield;
        } else await new Promise<void>((resolve) => wake = resolve);
      }
    } finally {
      this.#watchers.delete(onChange);
    }
  }
}

/** A call with nothing special about it. */
export function callOf(
  request: Request | string,
  services: Partial<Omit<IsolateCall, "request">> = {},
): IsolateCall {
  return {
    request: typeof request === "string" ? new Request(`http://localhost${request}`) : request,
    store: services.store ?? new MemoryStore(),
    context: services.context ?? { sessionId: "s1", site: "edge-1", version: "v", remoteAddr: "127.0.0.1:9" },
    gate: services.gate ?? (() => Promise.resolve()),
    log: services.log ?? (() => {}),
    strayLog: services.strayLog ?? services.log ?? (() => {}),
    ...(services.signal ? { signal: services.signal } : {}),
    ...(services.queues ? { queues: services.queues } : {}),
  };
}
