/**
 * Logs of stateful sessions that their clients and origins hold, sealed: `SealedSeries` seals them at a home, `HostLog`
 * holds them at a host, `openHostLog` opens what a host gives back. Rules: docs/protocol/hosts.md.
 */
export { type FeedHome, HostFeeds, type HostLogEnd } from "./feeds.ts";
export { decodeSummary, encodeSummary, HostLog, type HostLogSummary, type Taken } from "./host_log.ts";
export { type SealedFor } from "./keys.ts";
export {
  HOST_BASE_BYTES_MAX,
  HOST_LOG_BYTES_MAX,
  HOST_RECORDS_MAX,
  SALT_BYTES,
  TAG_BYTES,
} from "./limits.ts";
export { type HostCopy, type OpenedHostLog, openHostLog } from "./open_log.ts";
export { headOf, tagOf } from "./record.ts";
export { SealedSeries, type SeriesStart } from "./series.ts";
