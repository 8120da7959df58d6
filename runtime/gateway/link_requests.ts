/**
 * The serving end of forwarded requests: a request that comes over a link is run here or passed on, and both bodies
 * stream.
 */
import { z } from "zod";
import { addressOf } from "./address.ts";
import type { AppGateway } from "./app_gateway.ts";
import { type Arrival, NO_CONTENT, type Outcome, streamContent } from "./arrival.ts";
import { decodeRequestHead, encodeAnswerHead, FORWARD_KIND, type ForwardedRequest } from "./forward.ts";
import type { LinkReply, LinkRequest } from "../../functions/vocabulary/site_links.ts";
import { LinkSocket } from "./link_socket.ts";
import { bridge } from "./message_socket.ts";
import { problemResponse } from "./problem.ts";
import { Problem, problemOf } from "../../functions/vocabulary/problem.ts";
import { endRequest } from "./request_spans.ts";
import { problemCode, type RequestTelemetry } from "./request_telemetry.ts";

/** Services of the site that serving a forwarded request uses. */
export interface LinkRequestServices {
  readonly apps: AppGateway;
  readonly telemetry: RequestTelemetry;
  /** Runs an admin call here or passes it on. */
  readonly admin: (
    head: ForwardedRequest,
    body: ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
  ) => Promise<Response>;
}

/** Serves one request of another site. */
export async function serveLinkRequest(
  services: LinkRequestServices,
  request: LinkRequest,
): Promise<LinkReply> {
  try {
    const head = decodeRequestHead(request.head);
    switch (request.kind) {
      case FORWARD_KIND.app:
        return await serveApp(services, head, request);
      case FORWARD_KIND.admin:
        return reply(await services.admin(head, request.body, request.signal));
      default:
        throw new Problem(
          "not_available",
          `requests of kind ${JSON.stringify(request.kind)} are not available over a link`,
        );
    }
  } catch (error) {
    return reply(refusalResponse(error));
  }
}

async function serveApp(
  services: LinkRequestServices,
  forwarded: ForwardedRequest,
  request: LinkRequest,
): Promise<LinkReply> {
  const address = addressOf(forwarded.url, services.apps.hosts);
  if (address.kind !== "app") throw new Problem("not_found", `${forwarded.url} names no app`);
  const span = services.telemetry.forwarded(forwarded);
  const arrival: Arrival = {
    method: forwarded.method,
    url: forwarded.url,
    headers: forwarded.headers,
    // The body of an upgraded request is the socket's incoming frames, not the app's.
    content: forwarded.upgrade
      ? NO_CONTENT
      : streamContent(request.body as ReadableStream<Uint8Array<ArrayBuffer>> | null),
    signal: request.signal,
    remote: forwarded.remote,
    span,
    ...(forwarded.isNew === undefined ? {} : { isNew: forwarded.isNew }),
  };
  try {
    const head = services.apps.head(arrival, address);
    const outcome = await services.apps.handle(arrival, head, address.app, forwarded);
    endRequest(span, outcome.kind === "response" ? outcome.response.status : 101, null);
    return outcome.kind === "response" ? reply(outcome.response) : replySocket(outcome, request.body);
  } catch (error) {
    endRequest(span, refusalResponse(error).status, problemCode(error));
    throw error;
  }
}

function reply(response: Response): LinkReply {
  return {
    head: encodeAnswerHead({ status: response.status, headers: [...response.headers] }),
    body: response.body,
  };
}

function replySocket(
  outcome: Extract<Outcome, { kind: "socket" }>,
  incoming: ReadableStream<Uint8Array> | null,
): LinkReply {
  if (incoming === null) {
    throw new Problem("not_found", "a forwarded WebSocket came without its incoming way");
  }
  const socket = new LinkSocket(
    incoming,
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>(),
  );
  bridge(socket, outcome.socket);
  const headers: [string, string][] = [...outcome.headers, ["sec-websocket-protocol", outcome.protocol]];
  return { head: encodeAnswerHead({ status: 101, headers }), body: socket.outgoing };
}

/** Returns the response that tells a client, or another site, of a failure. */
export function refusalResponse(error: unknown): Response {
  const known = problemOf(error);
  if (known !== null) return problemResponse(known.code, known.message, known.more);
  if (error instanceof z.ZodError || error instanceof SyntaxError) {
    return problemResponse("not_found", `a forwarded request that cannot be read: ${error.message}`);
  }
  return problemResponse("internal", error instanceof Error ? error.message : String(error));
}
