/**
 * Admin calls between sites: from where they arrive to the root, and from the root to the sites that it asks. Each
 * site on the way passes them on along the tree; the caller's role travels with them.
 *
 * AF1  Where the next site on the way is not connected, a call goes straight to its target over a peer link, as
 *      handoffs do: nothing of the call was sent along the tree.
 * AF2  A call that only reads is also sent straight where the way is broken further on, or silent. A call that changes
 *      something is never sent twice: it fails, and the caller looks what became of it.
 * AF3  A call that may be done twice (giving a site another parent, mostly since its parent does not reach it) goes
 *      along the tree first, and then straight.
 */
import type { Role } from "../deploy/mod.ts";
import {
  answerResponse,
  encodeRequestHead,
  FORWARD_KIND,
  type ForwardedRequest,
  nextHop,
} from "./forward.ts";
import { hopTowards, type RequestLinks } from "../../functions/vocabulary/site_links.ts";
import type { OperatorTelemetry } from "./operator_telemetry.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

/** Services of the site that forwarding uses. */
export interface AdminForwardServices {
  readonly site: string;
  readonly parent: string | null;
  readonly sites: () => ReadonlyMap<string, { readonly parent: string | null }>;
  readonly links: RequestLinks & { isConnected(site: string): boolean };
  readonly telemetry: OperatorTelemetry;
}

type AdminHandler = (request: Request, role: Role | null) => Response | Promise<Response>;

/** Passes admin calls on, and runs those that have arrived. */
export class AdminForwarder {
  readonly #services: AdminForwardServices;

  constructor(services: AdminForwardServices) {
    this.#services = services;
  }

  /** Sends an admin call to a site, "root" for the root. */
  send(to: string, request: Request, role: Role): Promise<Response> {
    const head = { method: request.method, url: request.url, headers: [...request.headers], to, role };
    return this.#pass({ upgrade: false, hops: HOPS_FIRST, ...head }, request.body, request.signal);
  }

  /** Sends a call without a body along the tree and, where that fails, straight to its site (AF3). */
  async sendTwice(to: string, request: Request, role: Role): Promise<Response> {
    const along = await this.send(to, request, role).catch((error: unknown) => error);
    if (along instanceof Response && along.status !== 503) return along;
    const head = { method: request.method, url: request.url, headers: [...request.headers], to, role };
    try {
      const straight = await this.#send(
        { upgrade: false, hops: HOPS_FIRST, ...head },
        to,
        null,
        request.signal,
      );
      if (along instanceof Response) await along.body?.cancel();
      return straight;
    } catch {
      // The error of the call along the tree says more.
      if (along instanceof Response) return along;
      throw along;
    }
  }

  /** Takes an admin call from a link: runs it here, or passes it on. */
  serve(
    head: ForwardedRequest,
    body: ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
    handle: AdminHandler,
  ): Promise<Response> {
    return this.#services.telemetry.served(head, (traced) => this.#serve(traced, body, signal, handle));
  }

  async #serve(
    head: ForwardedRequest,
    body: ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
    handle: AdminHandler,
  ): Promise<Response> {
    const { site, parent } = this.#services;
    const here = head.to === site || (head.to === "root" && parent === null);
    if (!here) return await this.#pass(nextHop(head), body, signal);
    const request = new Request(head.url, {
      method: head.method,
      headers: head.headers,
      body: body as ReadableStream<Uint8Array<ArrayBuffer>> | null,
      signal,
    });
    return await handle(request, head.role ?? null);
  }

  async #pass(
    head: ForwardedRequest,
    body: ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
  ): Promise<Response> {
    const { site, parent, sites, links } = this.#services;
    const to = head.to ?? "root";
    const next = to === "root" ? parent : hopTowards(sites(), site, to);
    if (next === null) {
      throw new Problem("store_unreachable", `site ${to} is not in the tree that ${site} knows`);
    }
    // The path straight to the site may work where the way along the tree does not.
    const target = to === "root" ? rootOf(sites()) ?? next : to;
    const isCut = next !== target && !links.isConnected(next);
    try {
      if (isCut) return await this.#send(head, target, body, signal); // AF1
      return await (next !== target && head.method === "GET" && body === null
        ? this.#eitherWay(head, { next, to: target }, signal)
        : this.#send(head, next, body, signal));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const name = to === "root" ? "the root" : to;
      const way = next === target ? "" : isCut ? ` over ${next}, nor straight` : ` over ${next}`;
      throw new Problem("store_unreachable", `${name} cannot be reached${way}: ${why}`);
    }
  }

  /**
   * Sends a read along the tree and, when that fails or takes too long, straight to the site; returns whichever answers
   * first (AF2).
   */
  async #eitherWay(
    head: ForwardedRequest,
    { next, to }: { readonly next: string; readonly to: string },
    signal: AbortSignal,
  ): Promise<Response> {
    const [alongOver, straightOver] = [new AbortController(), new AbortController()];
    const along = this.#send(head, next, null, AbortSignal.any([signal, alongOver.signal]));
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => late.resolve(false), STRAIGHT_AFTER_MS);
    const straight = Promise.race([along.then(() => true, () => false), late.promise]).then(
      async (isThere) => {
        if (isThere || signal.aborted) throw new Error("not needed");
        return await this.#send(head, to, null, AbortSignal.any([signal, straightOver.signal]));
      },
    );
    let isWon = false;
    const wins = (answer: Response, loser: AbortController): Response => {
      if (!isWon) loser.abort(); // else this one is the loser, and over
      isWon = true;
      return answer;
    };
    try {
      return await Promise.any([
        along.then((answer) => wins(answer, straightOver)),
        straight.then((answer) => wins(answer, alongOver)),
      ]);
    } catch {
      return await along; // why it failed
    } finally {
      clearTimeout(timer);
    }
  }

  async #send(
    head: ForwardedRequest,
    by: string,
    body: ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
  ): Promise<Response> {
    const { links, telemetry } = this.#services;
    return answerResponse(
      await telemetry.passed(
        head,
        by,
        (traced) => links.request(by, FORWARD_KIND.admin, encodeRequestHead(traced), { body, signal }),
      ),
    );
  }
}

function rootOf(sites: ReadonlyMap<string, { readonly parent: string | null }>): string | null {
  for (const [id, { parent }] of sites) if (parent === null) return id;
  return null;
}

/**
 * Milliseconds after which a read is also sent straight: longer than a call takes through a tree; shorter than an
 * overview waits for a site.
 */
const STRAIGHT_AFTER_MS = 400;
/** Hops that a call starts with: twice the deepest sensible tree. */
const HOPS_FIRST = 16;
