/**
 * Requests of stateful sessions to the HTTP server that their class names (`static origin = "http://…"`). They are made
 * at the root, which stays where it is while homes come and go: so a request that a lost home made, and whose answer is
 * in no log, is not made again when the next home asks for it.
 *
 *   head   text app · text class · text version · text key ("": the request has no effect) · bytes of the call
 *   answer flag: ok; then bytes, or text code and text message
 *
 * HO1  A request with a key is made once, by the root or an agent, as long as the root has kept its outcome
 *      (kept_outcomes.ts): also when it was restarted, or another agent stands for the origin by then.
 * HO2  The root makes requests only to the origin that the manifest of that version names, whoever asks.
 */
import type { Call, CallOutcome } from "../../functions/sessions/turn/mod.ts";
import type { OriginAddress } from "../../functions/origin_address.ts";
import { Reader, Writer } from "../../store/model/codec.ts";
import type { LinkReply, LinkRequest } from "../../functions/vocabulary/site_links.ts";
import { bodyOf, framed, readBody, readRest } from "../../functions/sessions/serve/forwarded.ts";
import { failedCall } from "../../functions/sessions/serve/made_calls.ts";
import type { KeptOutcomes } from "./kept_outcomes.ts";

/** Class and version that make a request. */
export interface OriginAsker {
  readonly app: string;
  readonly class: string;
  readonly version: string;
}

/** A request to an origin. */
export interface OriginRequest extends OriginAsker {
  /** Key that names the request for ever; null: it has no effect (GET, HEAD). */
  readonly key: string | null;
  /** Bytes of the request, as `fetch` calls have them (functions/sessions/turn). */
  readonly bytes: Uint8Array;
}

/** Services of the site that the requests use. */
export interface HttpOriginServices {
  readonly site: string;
  readonly root: () => string | undefined;
  /** Sends a request to another site; its body is made anew for each attempt. @throws LinkError */
  readonly send: (
    to: string,
    head: Uint8Array,
    body: () => ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
  ) => Promise<{ readonly head: Uint8Array; readonly body: ReadableStream<Uint8Array> | null }>;
  /** Returns the origin of a class of a version; null: there is none, or no such version here. */
  readonly originOf: (asker: OriginAsker) => Promise<OriginAddress | null>;
  /** Has the agent that stands for the origin of that class make the request; null: there is none. */
  readonly byAgent: (request: OriginRequest) => Promise<CallOutcome> | null;
  /** Makes a request (stateful/outside_requests.ts), to that origin and no other. */
  readonly make: (origin: OriginAddress, call: Call, key: string) => Promise<CallOutcome>;
  /** Outcomes of requests, at the root. */
  readonly kept: KeptOutcomes;
}

/** Kind of these link requests. */
export const ORIGIN_KIND = "stateful-origin";

/** Makes the requests of stateful sessions to HTTP origins. */
export class HttpOrigins {
  readonly #services: HttpOriginServices;

  constructor(services: HttpOriginServices) {
    this.#services = services;
  }

  /** Makes a request, wherever this site is. */
  async fetch(request: OriginRequest, signal: AbortSignal): Promise<CallOutcome> {
    const { site, root, send } = this.#services;
    const at = root();
    if (at === undefined || at === site) return await this.#make(request);
    try {
      const { head, body } = encodeRequest(request);
      const answer = await send(at, head, () => bodyOf(body), signal);
      return decodeOutcome(answer.head, await readBody(answer.body));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return {
        ok: false,
        code: "origin_unreachable",
        message: `the origin is reached by way of ${at}: ${message}`,
      };
    }
  }

  /** Serves the request of another site. */
  async serve(request: LinkRequest): Promise<LinkReply> {
    const outcome = await this.#served(request);
    const { head, body } = encodeOutcome(outcome);
    return { head, body: bodyOf(body) };
  }

  async #served({ head, body }: LinkRequest): Promise<CallOutcome> {
    try {
      return await this.#make(decodeRequest(head, await readBody(body)));
    } catch (error) {
      return failedCall(error);
    }
  }

  async #make(request: OriginRequest): Promise<CallOutcome> {
    const { app, key } = request;
    if (key === null) return await this.#makeOnce(request);
    return await this.#services.kept.once(JSON.stringify([app, key]), () => this.#makeOnce(request));
  }

  async #makeOnce(request: OriginRequest): Promise<CallOutcome> {
    const { app, class: className, version, key, bytes } = request;
    const byAgent = this.#services.byAgent(request);
    if (byAgent !== null) return await byAgent;
    const origin = await this.#services.originOf(request);
    if (origin === null) { // HO2
      const message = `version ${
        version.slice(0, 8)
      } of ${app} has no HTTP origin for ${className} at the root`;
      return { ok: false, code: "origin_unknown", message };
    }
    const call: Call = { call: 0, kind: "fetch", bytes, effect: key === null ? null : 0 };
    return await this.#services.make(origin, call, key ?? "").catch(failedCall);
  }
}

/** Encodes a request. @see OriginRequest */
export function encodeRequest({ app, class: className, version, key, bytes }: OriginRequest) {
  return framed(new Writer(256).text(app).text(className).text(version).text(key ?? ""), bytes);
}

/** Decodes a request. @throws CodecError */
export function decodeRequest(head: Uint8Array, body: Uint8Array | null): OriginRequest {
  const reader = new Reader(head);
  const [app, className, version, key] = [reader.text(), reader.text(), reader.text(), reader.text()];
  return { app, class: className, version, key: key === "" ? null : key, bytes: readRest(reader, body) };
}

/** Encodes an outcome. @see CallOutcome */
export function encodeOutcome(outcome: CallOutcome) {
  const writer = new Writer(64).flag(outcome.ok);
  if (outcome.ok) return framed(writer, outcome.bytes);
  return { head: writer.text(outcome.code).text(outcome.message.toWellFormed()).done(), body: null };
}

/** Decodes an outcome. @throws CodecError */
export function decodeOutcome(head: Uint8Array, body: Uint8Array | null): CallOutcome {
  const reader = new Reader(head);
  if (reader.flag()) return { ok: true, bytes: readRest(reader, body) };
  const failed = { ok: false as const, code: reader.text(), message: reader.text() };
  reader.end();
  return failed;
}
