/**
 * Data plane of stateful sessions: frames between a session's home and the peers attached to it, and both sides of
 * them, over channels that may break at any time (docs/protocol/session-frames.md). What one side sends, the other gets
 * once and in order, across whatever homes and channels come and go.
 *
 * `HostSide` is with the peer (a program with the client library, a gateway for a plain WebSocket, an agent), `HomeSide`
 * with the session. Neither knows sockets or clocks: channels and time come in through ports.ts. `HostSide` bundles for
 * browsers.
 */
export { type HostOptions, HostSide, type HostState } from "./host_side.ts";
export { HomeSide, type HomeSideStatus } from "./home_side.ts";
export {
  type Appended,
  type Channel,
  type ChannelReader,
  CLOSE,
  type HeldLog,
  type HomePorts,
  type HostEnd,
  type HostListener,
  type LogAnswers,
  type LogAsk,
  type LoggedPeers,
  type Lost,
  type OutputToPeer,
  type PeerClock,
  type PeerFeeds,
  type PeerInput,
  type Released,
} from "./ports.ts";
export { Remembered } from "./remembered.ts";
export type { PeerHello, PeerIdentity, PeerRetry, ToHome, ToHost } from "./frame.ts";
export { decodeToHome, decodeToHost, encodeToHome, encodeToHost } from "./frame_bytes.ts";
export { GRACE_MS, HOLDING_MS, MESSAGE_BYTES_MAX, OUTBOX_BYTES_MAX, SUBPROTOCOL } from "./limits.ts";
