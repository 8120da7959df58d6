/**
 * Links between sites: every byte that one site sends to another passes here (docs/protocol/frames.md).
 *
 * A {@link LinkHub} holds all links of one site. Over each go the store's messages (opaque, first in first out,
 * with backpressure) and requests with streamed bodies both ways (forwarded HTTP requests, admin calls, logs).
 * Membership is proved by the cluster's secret; every record carries a MAC.
 */
export { type HubStatus, LinkHub } from "./hub.ts";
export { type LinkHandlers, type LinkHubOptions, type LinkInfo, type LinkLogEntry } from "./hub_options.ts";
export { type LinkCounters } from "./counters.ts";
export {
  type IncomingRequest,
  type LinkAnswer,
  type ReceivedAnswer,
  type RequestOptions,
} from "./exchanges.ts";
export { Hold } from "./hold.ts";
export { type LinkControl, type LinkShape } from "./emulation.ts";
export { LinkError, type LinkErrorCode } from "./link_error.ts";
export { DEFAULT_LINK_LIMITS, type LinkLimits } from "./limits.ts";
export { type LinkRole, type LinkStatus } from "./site_link.ts";
export { MemoryTransport } from "./memory_transport.ts";
export { type TlsOptions, tlsTransport } from "./tls_transport.ts";
export { TCP, type Transport } from "./transport.ts";
export { overWebSocket } from "./web_socket.ts";
