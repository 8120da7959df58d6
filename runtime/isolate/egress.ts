/** Outgoing fetches of one isolate, made by the site. */
import type { FrameWriter, Payload } from "./frames.ts";
import type { HostExchange } from "./host_exchange.ts";

/** The outgoing fetches of one isolate. */
export interface Egress {
  start(writer: FrameWriter, id: number, payload: Payload, owner: HostExchange | undefined): void;
  receive(type: number, id: number, payload: Payload): void;
  close(): void;
}
