/**
 * A request as it arrives at a site's gateway, from a client or over a link, and what becomes of it.
 */
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Tier } from "../../functions/define.ts";
import type { Span } from "../telemetry/mod.ts";
import type { GoneSignal } from "./departures.ts";
import type { MessageSocket } from "./message_socket.ts";

/** A request for an app. */
export interface Arrival {
  readonly method: string;
  /** Absolute, as the client named it. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Iterable<[string, string]>;
  /** The body, as a stream or whole; neither is touched where it is not needed. */
  readonly content: ArrivalContent;
  /** Aborted when the client has gone; absent where nobody can tell. */
  readonly signal?: GoneSignal | undefined;
  /** The client's address. */
  readonly remote?: string | undefined;
  /** Where the request is recorded; most are not. */
  readonly span?: Span | undefined;
  /** What it was for, as soon as that is known: for what is counted of it. */
  version?: LiveVersion;
  /** Its session was made for it: it presented none. */
  isNew?: boolean;
  tier?: Tier;
  /** There is no room for it: it is told to come again. */
  isSentAway?: boolean;
  /** Its answer's body streams. */
  isStreamed?: boolean;
}

/** A body that has not been read yet. A `Request` is one. */
export interface ArrivalContent {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  bytes(): Promise<Uint8Array>;
}

/** No body. */
export const NO_CONTENT: ArrivalContent = { body: null, bytes: () => Promise.resolve(new Uint8Array()) };

/** A body that is a stream. */
export const streamContent = (body: ReadableStream<Uint8Array<ArrayBuffer>> | null): ArrivalContent =>
  body === null ? NO_CONTENT : { body, bytes: () => new Response(body).bytes() };

/** What an arrival is answered with. */
export type Outcome =
  | { readonly kind: "response"; readonly response: Response }
  | {
    readonly kind: "socket";
    readonly socket: MessageSocket;
    /** Chosen subprotocol; empty for none. */
    readonly protocol: string;
    readonly headers: [string, string][];
  };

export const respond = (response: Response): Outcome => ({ kind: "response", response });
