/**
 * Connections to origins that know nothing of Sojourn: a WebSocket, or a TCP connection whose bytes are messages as they
 * come.
 *
 * PO1  The connection is made to the very address that was checked, as for any request that an app makes
 *      (isolate/egress.ts).
 * PO2  For a connection that was open `closed` is called once, last, also where it broke; for one that could not be
 *      made it is not called.
 */
import { Buffer } from "node:buffer";
import { connect, isIP, type Socket } from "node:net";
// @ts-types="./ws.d.ts"
import { WebSocket } from "ws";
import type { OriginAddress } from "../../functions/origin_address.ts";
import { messageOf } from "../isolate/bodies.ts";
import { sendable } from "../gateway/message_socket.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import { checkedAddress, FetchRefused } from "../isolate/outgoing_http.ts";

/** Callbacks for a connection. */
export interface OriginListener {
  message(message: string | Uint8Array): void;
  /** Called at the end, with a code and a reason as of a WebSocket's close. */
  closed(code: number, reason: string): void;
}

/** An open connection. */
export interface OriginConnection {
  /** Bytes written and not yet taken by the system. */
  readonly waitingBytes: number;
  send(message: string | Uint8Array): void;
  /** Stops reading until `resume`: the origin is held up. */
  pause(): void;
  resume(): void;
  close(code: number, reason: string): void;
}

/** Milliseconds after which an origin that does not answer counts as not there. */
const CONNECT_MS_MAX = 10_000;
/**
 * Bytes of the longest message: longer ones than a stateful session takes (functions/sessions/attach) are refused by
 * closing.
 */
const MESSAGE_BYTES_MAX = 4 << 20;
const CLOSE = { done: 1000, broken: 1006 } as const;

/** Connects to an origin. @throws FetchRefused where it may not, or can't. */
export async function connectOrigin(
  origin: OriginAddress,
  rules: EgressRules,
  listener: OriginListener,
): Promise<OriginConnection> {
  const { host, port, isSecure } = origin;
  const address = await checkedAddress(new URL(`${isSecure ? "https" : "http"}://${host}:${port}`), rules);
  try {
    return await (origin.kind === "ws" ? webSocket : tcp)(origin, address, listener);
  } catch (error) {
    throw new FetchRefused("origin_unreachable", `${origin.url} can't be reached: ${messageOf(error)}`);
  }
}

function tcp({ port }: OriginAddress, address: string, listener: OriginListener): Promise<OriginConnection> {
  const { promise, resolve, reject } = Promise.withResolvers<OriginConnection>();
  const socket = connect({ host: address, port, noDelay: true });
  socket.setTimeout(CONNECT_MS_MAX, () => socket.destroy(new Error(`no answer in ${CONNECT_MS_MAX} ms`)));
  let failure: Error | null = null, isOpen = false;
  socket.on("error", (error) => failure = error);
  socket.once("connect", () => {
    isOpen = true;
    socket.setTimeout(0);
    resolve(tcpConnection(socket));
  });
  socket.on("data", (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; at += MESSAGE_BYTES_MAX) {
      listener.message(new Uint8Array(bytes.subarray(at, at + MESSAGE_BYTES_MAX)));
    }
  });
  socket.once("close", () => {
    if (!isOpen) return reject(failure ?? new Error("it closed at once"));
    listener.closed(failure === null ? CLOSE.done : CLOSE.broken, failure?.message ?? "");
  });
  return promise;
}

const tcpConnection = (socket: Socket): OriginConnection => ({
  get waitingBytes() {
    return socket.writableLength;
  },
  send: (message) => void socket.write(message),
  pause: () => void socket.pause(),
  resume: () => void socket.resume(),
  close: () => void socket.end(),
});

function webSocket(
  { url }: OriginAddress,
  address: string,
  listener: OriginListener,
): Promise<OriginConnection> {
  const { promise, resolve, reject } = Promise.withResolvers<OriginConnection>();
  const family = isIP(address);
  const socket = new WebSocket(url, [], {
    perMessageDeflate: false,
    handshakeTimeout: CONNECT_MS_MAX,
    maxPayload: MESSAGE_BYTES_MAX,
    // PO1
    lookup: (_host, { all }, callback) =>
      all === true ? callback(null, [{ address, family }]) : callback(null, address, family),
  });
  let failure: Error | null = null, isOpen = false;
  socket.on("error", (error) => failure = error);
  socket.once("open", () => {
    isOpen = true;
    resolve(webSocketConnection(socket));
  });
  socket.on("message", (data, isBinary) => {
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);
    listener.message(isBinary ? new Uint8Array(bytes) : bytes.toString("utf8"));
  });
  socket.once("close", (code, reason) => {
    if (!isOpen) return reject(failure ?? new Error(`it closed at once, with ${code}`));
    listener.closed(code, failure?.message ?? reason.toString("utf8"));
  });
  return promise;
}

const webSocketConnection = (socket: WebSocket): OriginConnection => ({
  get waitingBytes() {
    return socket.bufferedAmount;
  },
  send: (message) => socket.readyState === WebSocket.OPEN && socket.send(message),
  pause: () => socket.pause(),
  resume: () => socket.resume(),
  close: (code, reason) => socket.close(sendable(code), reason),
});
