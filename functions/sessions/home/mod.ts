/**
 * Homes of stateful sessions: which site runs a session, which disks keep its log, and how another site takes it over.
 *
 * After CESSNA (Harchol et al., "Making Edge-Computing Resilient", message replay and checkpoints) and GeoRep (f + 1
 * owners); rules and messages: docs/protocol/homes.md.
 */
export {
  type Asked,
  type Home,
  type HomeCode,
  HomeError,
  type HomeRow,
  type IsolateCommit,
  type LoggedAnswer,
  type LoggedCheckpoint,
  type OpenedSession,
  type Owner,
  type Piece,
  type StatefulName,
} from "../log/api.ts";
export { Homes } from "./homes.ts";
export { BOOT_MIN } from "../log/packet.ts";
export type { KeptLog } from "../log/kept_log.ts";
export type { Followable, FollowedLog } from "./own_logs.ts";
export type { HomesPorts, HomesStatus, LogNews } from "../log/ports.ts";
