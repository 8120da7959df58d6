/**
 * The dashboard's page and its parts: static files beside this module, served from a fixed list.
 *
 * D1  Only names of the list are files; nothing that a client sends becomes a path.
 * D2  The page runs in a sandbox: an origin of its own, so that apps on the same host and port can neither script it,
 *     frame it nor read what it holds. It loads nothing from elsewhere, and has no inline script.
 * D3  It is not served on a host that belongs to an app: a service worker of that app could stand in for it.
 */
import { bareHost } from "../deploy/hosts.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

const TYPES = {
  "index.html": "text/html; charset=utf-8",
  "style.css": "text/css; charset=utf-8",
  "icon.svg": "image/svg+xml",
  "main.js": "text/javascript; charset=utf-8",
  "live.js": "text/javascript; charset=utf-8",
  "tree.js": "text/javascript; charset=utf-8",
  "moves.js": "text/javascript; charset=utf-8",
  "panels.js": "text/javascript; charset=utf-8",
  "faults.js": "text/javascript; charset=utf-8",
  "logs.js": "text/javascript; charset=utf-8",
  "show.js": "text/javascript; charset=utf-8",
} as const;
type FileName = keyof typeof TYPES;

/** Where the page is. */
export const DASHBOARD_PATH = "/_sojourn/dashboard";

interface LoadedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

/** Serves the dashboard. */
export class Dashboard {
  readonly #sites: () => readonly { readonly url: string }[];
  readonly #appHosts: () => { has(host: string): boolean } | undefined;
  readonly #files = new Map<FileName, Promise<LoadedFile>>();

  /**
   * @param sites where the page may go on when the site that it came from is gone.
   * @param appHosts hosts that belong to apps.
   */
  constructor(
    sites: () => readonly { readonly url: string }[],
    appHosts: () => { has(host: string): boolean } | undefined,
  ) {
    this.#sites = sites;
    this.#appHosts = appHosts;
  }

  /** Answers a path at or below {@link DASHBOARD_PATH}. @throws Problem */
  async answer(request: Request, path: string): Promise<Response> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      throw new Problem("method_not_allowed", `the dashboard takes GET, not ${request.method}`);
    }
    const hostname = bareHost(new URL(request.url).hostname);
    if (hostname.endsWith(".localhost") || this.#appHosts()?.has(hostname) === true) {
      throw new Problem("not_found", `${hostname} is an app's; the dashboard is at the site's own address`); // D3
    }
    const name = path === DASHBOARD_PATH || path === DASHBOARD_PATH + "/"
      ? "index.html"
      : path.slice(DASHBOARD_PATH.length + 1);
    if (!isFile(name)) throw new Problem("not_found", `${path} is no part of the dashboard`); // D1
    const { bytes, etag } = await this.#load(name);
    const headers = {
      "content-type": TYPES[name],
      "cache-control": "no-cache",
      etag,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      // Modules are asked for across origins, since the page has one of its own. They are no secret.
      ...name === "index.html" ? this.#pageHeaders() : { "access-control-allow-origin": "*" },
    };
    if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers });
    return new Response(request.method === "HEAD" ? null : bytes, { headers });
  }

  /** D2 */
  #pageHeaders(): Record<string, string> {
    const others = this.#sites().flatMap(({ url }) => URL.canParse(url) ? [new URL(url).origin] : []);
    return {
      "content-security-policy": [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        `connect-src 'self' ${[...new Set(others)].join(" ")}`.trimEnd(),
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
        "sandbox allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox",
      ].join("; "),
      "x-frame-options": "DENY",
      "cross-origin-opener-policy": "same-origin",
    };
  }

  #load(name: FileName): Promise<LoadedFile> {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const loading = load(name);
    this.#files.set(name, loading);
    loading.catch(() => this.#files.delete(name)); // the next one who asks tries again
    return loading;
  }
}

async function load(name: FileName): Promise<LoadedFile> {
  const bytes = await Deno.readFile(new URL(`page/${name}`, import.meta.url));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return { bytes, etag: `"${digest.subarray(0, 12).toHex()}"` };
}

const isFile = (name: string): name is FileName => Object.hasOwn(TYPES, name);
