/**
 * Requests that run at another site: HTTP and WebSocket requests of routes pinned to a higher tier, and admin calls.
 * They travel over the links, one hop at a time along the tree: each site on the way reads the head, runs the
 * request or passes it on, and streams both bodies. Nothing crosses between sites but through RequestLinks
 * (functions/vocabulary/site_links.ts).
 *
 * FD2  A head names how many hops it may still take: a topology that changes under it cannot make it circle.
 */
import { z } from "zod";
import { Problem } from "../../functions/vocabulary/problem.ts";

/** Kinds of requests on the links. */
export const FORWARD_KIND = { app: "app", admin: "admin" } as const;

/** Links that a request may go over: deeper than any tree that makes sense; twice that, up and down. */
const HOPS_MAX = 16;

const headers = z.array(z.tuple([z.string(), z.string()]));

const requestHead = z.object({
  method: z.string(),
  url: z.string(),
  headers,
  /** Address of the client, as the site where it arrived saw it. */
  remote: z.string().optional(),
  upgrade: z.boolean().default(false),
  /** True where the presented session was made for this request at the site where it arrived. */
  isNew: z.boolean().optional(),
  /** Id of the site that an admin call is for; "root" for the root. */
  to: z.string().optional(),
  /** Role of an admin call's caller. */
  role: z.enum(["read", "deploy", "admin"]).optional(),
  hops: z.number().int().min(0).default(HOPS_MAX),
});

const answerHead = z.object({ status: z.number().int().min(101).max(599), headers });

/** A request on its way between sites. */
export type ForwardedRequest = z.infer<typeof requestHead>;
/** Head of the answer to a forwarded request. */
export type ForwardedAnswer = z.infer<typeof answerHead>;

const utf8 = new TextEncoder();
const utf8Decoder = new TextDecoder();

export const encodeRequestHead = (head: z.input<typeof requestHead>): Uint8Array =>
  utf8.encode(JSON.stringify(head));
export const decodeRequestHead = (bytes: Uint8Array): ForwardedRequest =>
  requestHead.parse(JSON.parse(utf8Decoder.decode(bytes)));
export const encodeAnswerHead = (head: ForwardedAnswer): Uint8Array => utf8.encode(JSON.stringify(head));
export const decodeAnswerHead = (bytes: Uint8Array): ForwardedAnswer =>
  answerHead.parse(JSON.parse(utf8Decoder.decode(bytes)));

/** Returns the head for the next hop; refuses where the request has no hops left (FD2). */
export function nextHop(head: ForwardedRequest): ForwardedRequest {
  if (head.hops <= 0) {
    throw new Problem("not_available", `a forwarded request went over ${HOPS_MAX} links without arriving`);
  }
  return { ...head, hops: head.hops - 1 };
}

/** Returns the answer of another site as a response; its body streams. */
export function answerResponse(
  answer: { head: Uint8Array; body: ReadableStream<Uint8Array> | null },
): Response {
  const { status, headers } = decodeAnswerHead(answer.head);
  const bodiless = status === 101 || status === 204 || status === 205 || status === 304;
  if (bodiless) answer.body?.cancel().catch(() => {});
  return new Response(bodiless ? null : answer.body as ReadableStream<Uint8Array<ArrayBuffer>> | null, {
    status: status === 101 ? 200 : status,
    headers,
  });
}
