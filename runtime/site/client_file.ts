/**
 * `/_sojourn/client.js`: the client library (functions/client) as one module for browsers.
 *
 * The module is made when it is first asked for, out of the sources that this site runs: it speaks this site's
 * protocols.
 *
 * J1  There is one bundling at a time, for all requests that come meanwhile; a failed one is tried again by the next
 *     request.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { runDenoBundle } from "../bundle/deno_bundle.ts";
import { fromFileUrl } from "../bundle/file_url.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

const ENTRY = fromFileUrl(new URL("../../functions/client/mod.ts", import.meta.url));
const CONFIG = fromFileUrl(new URL("../../deno.json", import.meta.url));

interface Loaded {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly gzipped: Uint8Array<ArrayBuffer>;
  readonly hash: string;
}

/** Serves the module. */
export class ClientFile {
  #loaded: Promise<Loaded> | null = null;

  /** Answers a GET or HEAD. @throws Problem */
  async answer(request: Request): Promise<Response> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      throw new Problem("method_not_allowed", `the client library takes GET, not ${request.method}`);
    }
    const { bytes, gzipped, hash } = await this.#load();
    const isGzipped = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(
      request.headers.get("accept-encoding") ?? "",
    );
    const etag = isGzipped ? `"${hash}-gzip"` : `"${hash}"`;
    const headers = {
      ...isGzipped ? { "content-encoding": "gzip" } : {},
      "vary": "accept-encoding",
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      etag,
    };
    if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers });
    return new Response(request.method === "HEAD" ? null : isGzipped ? gzipped : bytes, { headers });
  }

  /** Returns the module, bundled at most once (J1). */
  #load(): Promise<Loaded> {
    if (this.#loaded !== null) return this.#loaded;
    const loading = this.#loaded = load();
    loading.catch(() => this.#loaded = null);
    return loading;
  }
}

async function load(): Promise<Loaded> {
  const outcome = await runDenoBundle({ entry: ENTRY, config: CONFIG, minify: true, platform: "browser" });
  if (outcome.kind === "failed") {
    throw new Problem("internal", `the client library could not be bundled: ${outcome.message}`);
  }
  const hash = createHash("sha256").update(outcome.code).digest("hex").slice(0, 24);
  const gzipped = new Uint8Array(gzipSync(outcome.code, { level: 9 }));
  return { bytes: outcome.code, gzipped, hash };
}
