/** A request as it arrives at a site's gateway, from a client or over a link, and the outcome that answers it. */
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Tier } from "../../functions/define.ts";
import type { Span } from "../telemetry/mod.ts";
import type { GoneSignal } from "./departures.ts";
import type { MessageSocket } from "./message_socket.ts";

/** A request for an app. */
export interface Arrival {
  readonly method: string;
  /** Absolute URL, as the client named it. */
  readonly url: string;
  /** Header pairs; names are in lower case. */
  readonly headers: Iterable<[string, string]>;
  /** The body, as a stream or whole; neither is touched where it is not needed. */
  readonly content: ArrivalContent;
  /** Aborted when the client has gone; absent where nobody can tell. */
  readonly signal?: GoneSignal | undefined;
  /** The client's address. */
  readonly remote?: string | undefined;
  /** Span of the request where it is recorded; most are not. */
  readonly span?: Span | undefined;
  /** Version that the request is for, set as soon as it is known: metrics are counted by it. */
  version?: LiveVersion;
  /** True where the session was made for this request: the client presented none. */
  isNew?: boolean;
  tier?: Tier;
  /** True where the request is refused for overload: its client is told to come again. */
  isSentAway?: boolean;
  /** True where the answer's body streams. */
  isStreamed?: boolean;
}

/** A body that has not been read yet. A `Request` is one. */
export interface ArrivalContent {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  bytes(): Promise<Uint8Array>;
}

/** Content of a request without a body. */
export const NO_CONTENT: ArrivalContent = { body: null, bytes: () => Promise.resolve(new Uint8Array()) };

/** Returns the content of a body that is a stream. */
export const streamContent = (body: ReadableStream<Uint8Array<ArrayBuffer>> | null): ArrivalContent =>
  body === null ? NO_CONTENT : { body, bytes: () => new Response(body).bytes() };

/** Answer to an arrival: a response, or a socket that is opened. */
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
