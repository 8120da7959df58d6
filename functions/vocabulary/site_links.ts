/**
 * Requests between sites: what is asked over a link, what is answered, and which link leads towards a site.
 */

/** The request channel of the links (runtime/link). */
export interface RequestLinks {
  request(to: string, kind: string, head: Uint8Array, options?: {
    readonly body?: ReadableStream<Uint8Array> | null;
    readonly signal?: AbortSignal | undefined;
  }): Promise<{ readonly head: Uint8Array; readonly body: ReadableStream<Uint8Array> | null }>;
}

/** A request as the links hand it over (runtime/link: IncomingRequest). */
export interface LinkRequest {
  readonly kind: string;
  readonly head: Uint8Array;
  readonly body: ReadableStream<Uint8Array> | null;
  readonly signal: AbortSignal;
}

/** Answer to a request of another site. */
export interface LinkReply {
  readonly head: Uint8Array;
  readonly body?: ReadableStream<Uint8Array> | null;
}

/** Sites of the tree, by their ids. */
export type SiteTree = ReadonlyMap<string, { readonly parent: string | null }>;

/** Returns the site that a request for `to` goes to next from `here`: a child on the way down, else the parent. */
export function hopTowards(sites: SiteTree, here: string, to: string): string | null {
  const seen = new Set<string>();
  for (let at = to; !seen.has(at);) {
    seen.add(at);
    const parent = sites.get(at)?.parent;
    if (parent === undefined || parent === null) break;
    if (parent === here) return at;
    at = parent;
  }
  return sites.get(here)?.parent ?? null;
}
