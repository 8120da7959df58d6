/**
 * Static files at the gateway: asked before an app's fetch, answered where the request arrived, whatever tier its
 * route names, since every site can have every file.
 */
import { type AssetReader, serveAsset } from "../assets/mod.ts";
import type { IsolateApp } from "../isolate/call.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Traffic } from "../observe/traffic.ts";
import type { Arrival } from "./arrival.ts";
import { Problem, problemOf } from "../../functions/vocabulary/problem.ts";
import type { AnswerHeaders, RequestHead } from "./request_head.ts";

/** Services of the site that answering with static files uses. */
export interface AssetServices {
  readonly site: string;
  readonly answerHeaders: AnswerHeaders;
  readonly reader: AssetReader;
  /** Counters of the site's overview: a file is a request of its app. */
  readonly traffic?: Pick<Traffic, "answered">;
}

/**
 * Returns a static file's answer to a request, or null where the app is to answer.
 *
 * @throws Problem where the file is known and cannot be read here.
 */
export async function answerAsset(
  services: AssetServices,
  version: LiveVersion,
  head: RequestHead,
  arrival: Arrival,
): Promise<Response | null> {
  if (version.files === undefined || head.upgrade || (head.method !== "GET" && head.method !== "HEAD")) {
    return null;
  }
  const begunMs = performance.now();
  const prefix = headerOf(head, "x-forwarded-prefix") ?? "";
  try {
    const answer = await serveAsset(await version.files(), {
      method: head.method,
      target: head.target,
      prefix,
      bare: prefix !== "" && isBare(arrival.url, prefix),
      header: (name) => headerOf(head, name),
    }, {
      async body(content, part) {
        const body = await services.reader.body(content, part);
        arrival.isStreamed = body instanceof ReadableStream;
        return body;
      },
    });
    if (answer !== null) services.traffic?.answered(version, begunMs, false);
    if (services.answerHeaders === "always" || head.asksWhere) {
      answer?.headers.set("sojourn-site", services.site);
      answer?.headers.set("sojourn-version", version.version);
    }
    return answer;
  } catch (error) {
    services.traffic?.answered(version, begunMs, true);
    throw problemOf(error) ??
      new Problem("store_unreachable", error instanceof Error ? error.message : String(error));
  }
}

/**
 * Makes `env.ASSETS.fetch` of a version's isolates: it gives the same answer as a client gets, uncompressed, or 404.
 */
export function assetFetcher(services: AssetServices, version: LiveVersion): IsolateApp["assets"] {
  const { files } = version;
  if (files === undefined) return undefined;
  return async ({ method, url, headers }) => {
    const { pathname, search } = new URL(url);
    const given = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]));
    const prefix = given.get("x-forwarded-prefix") ?? "";
    const answer = await serveAsset(await files(), {
      method,
      target: pathname + search,
      prefix: PREFIX.test(prefix) ? prefix : "",
      bare: false,
      // The app may pass the answer on to a client that does not understand another encoding.
      header: (name) => name === "accept-encoding" ? null : given.get(name) ?? null,
    }, services.reader) ?? new Response("there is no such file", { status: 404 });
    const { status, statusText, body } = answer;
    return { status, statusText, headers: [...answer.headers], body };
  };
}

/** Prefixes that the gateway sets; any other text in that header was set by an app. */
const PREFIX = /^\/[a-z][a-z0-9-]*$/;

function headerOf(head: RequestHead, name: string): string | null {
  return head.headers.find((pair) => pair[0] === name)?.[1] ?? null;
}

/** Reports whether a URL's path is the prefix alone, without a slash after it. */
function isBare(url: string, prefix: string): boolean {
  const pathAt = url.indexOf("/", url.indexOf("//") + 2);
  const end = url.charAt(pathAt + prefix.length);
  return end === "" || end === "?";
}
