/**
 * Requests to a site that may not be directly reachable: then they go along the tree, each site on the way passing them
 * on with both bodies streamed.
 *
 *   head   text to · varint: how many links it may still take · bytes: the request's own head
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import {
  hopTowards,
  type LinkReply,
  type LinkRequest,
  type RequestLinks,
} from "../../functions/vocabulary/site_links.ts";
import { HOPS_MAX } from "../../functions/sessions/serve/limits.ts";

/** Services of the site that such requests use. */
export interface AlongTreeServices {
  readonly site: string;
  readonly links: RequestLinks;
  readonly sites: () => ReadonlyMap<string, { readonly parent: string | null }>;
}

/** A request to be sent; its body is made anew for each attempt. */
export interface Addressed {
  readonly to: string;
  readonly kind: string;
  readonly head: Uint8Array;
  readonly body: () => ReadableStream<Uint8Array> | null;
  readonly signal: AbortSignal;
}

/** Sends a request straight to its site, or along the tree. @throws LinkError */
export async function sendAlong(
  { site, links, sites }: AlongTreeServices,
  { to, kind, head, body, signal }: Addressed,
): Promise<{ readonly head: Uint8Array; readonly body: ReadableStream<Uint8Array> | null }> {
  const whole = enveloped(to, HOPS_MAX, head);
  const next = hopTowards(sites(), site, to);
  return await links.request(to, kind, whole, { body: body(), signal }).catch((error) => {
    if (next === null || next === to || (error as { code?: unknown }).code !== "unreachable") throw error;
    return links.request(next, kind, whole, { body: body(), signal });
  });
}

/** Serves a request that is for this site, or passes it on. @throws CodecError, LinkError */
export async function serveAlong(
  { site, links, sites }: AlongTreeServices,
  request: LinkRequest,
  serve: (request: LinkRequest) => Promise<LinkReply>,
): Promise<LinkReply> {
  const reader = new Reader(request.head);
  const to = reader.text(), hops = reader.uint(), head = reader.bytes();
  reader.end();
  if (to === site) return await serve({ ...request, head });
  const next = hopTowards(sites(), site, to);
  if (hops === 0 || hops > HOPS_MAX || next === null) {
    await request.body?.cancel();
    throw new Error(`${site} knows no way to ${to}`);
  }
  const { kind, body, signal } = request;
  return await links.request(next, kind, enveloped(to, hops - 1, head), { body, signal });
}

const enveloped = (to: string, hops: number, head: Uint8Array): Uint8Array =>
  new Writer(head.length + 64).text(to).uint(hops).bytes(head).done();
