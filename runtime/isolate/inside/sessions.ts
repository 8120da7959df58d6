/**
 * Calls of one request to stateful sessions, inside the isolate: the site finds their homes and brings the answers.
 *
 * S1  After `end` every call fails, those that are open and those that are made later.
 */
import {
  decodeAnswer,
  encodeCall,
  type SessionAnswer,
  type SessionCall,
} from "../../../functions/calls/call.ts";
import type { SessionCaller, SessionTarget } from "../../../functions/calls/stub.ts";
import type { Payload } from "../frame_reader.ts";
import type { FrameWriter } from "../frame_writer.ts";
import { ISOLATE_FRAME } from "../frames.ts";
import { attachingResponse } from "./response.ts";
import { SiteError } from "./store.ts";

const ID_BYTES = 12;

/** The calls of one request. */
export class RemoteSessions implements SessionCaller {
  readonly site: string;
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #open = new Map<number, PromiseWithResolvers<SessionAnswer>>();
  #next = 0;
  #ended = false;

  constructor(writer: FrameWriter, id: number, site: string) {
    this.#writer = writer;
    this.#id = id;
    this.site = site;
  }

  call(target: SessionTarget, call: SessionCall): Promise<SessionAnswer> {
    if (this.#ended) return Promise.reject(ended());
    const number = this.#next++;
    const open = Promise.withResolvers<SessionAnswer>();
    this.#open.set(number, open);
    this.#writer.begin(ISOLATE_FRAME.statefulCall, this.#id).u32(number).text(target.class).text(target.id)
      .rest(encodeCall(call)).end();
    return open.promise;
  }

  /** Returns a response that hands the request's WebSocket over, where the request's handler returns it. */
  attach(target: SessionTarget): Response {
    return attachingResponse(target);
  }

  draw(): string {
    return crypto.getRandomValues(new Uint8Array(ID_BYTES)).toHex();
  }

  /** Takes an answer from the site. */
  reply(payload: Payload): void {
    const number = payload.u32();
    const open = this.#open.get(number);
    this.#open.delete(number);
    try {
      open?.resolve(decodeAnswer(payload.rest()));
    } catch (error) {
      open?.reject(error);
    }
  }

  /** Fails all calls, open and later ones (S1). */
  end(): void {
    this.#ended = true;
    for (const open of this.#open.values()) open.reject(ended());
    this.#open.clear();
  }
}

const ended = (): SiteError =>
  new SiteError(
    "request_ended",
    "a stateful session was called after the request had ended; use ctx.waitUntil for such work",
  );
