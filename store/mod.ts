/**
 * The replicated store: a tree of partial replicas with session consistency.
 *
 * After SessionStore (Mortazavi et al., "SessionStore: A Session-Aware Datastore for the Edge", with PathStore
 * inside it) and Gesto (Afonso et al., causal consistency with timestamps of constant size); the rules that hold
 * it together are numbered in the headers of the files here.
 */
export * from "./api/api.ts";
export { openReplica } from "./replica.ts";
export { resolve } from "./model/merge.ts";
export { type Key, keyBytes, KeyError, keyFromBytes, type KeyPart, packKey, unpackKey } from "./model/key.ts";
export type { Clock, DiskCommit, Network, Random, ScanOptions, SiteId, Storage } from "./model/ports.ts";
export { holds, isPoint, keyAfter, pointRange, prefixRange, type Range, WHOLE } from "./model/range.ts";
export {
  compareVersions,
  isLive,
  parseVersionstamp,
  type Row,
  type Version,
  versionstamp,
} from "./model/row.ts";
export { decodeJson, encodeJson, SYSTEM_RANGE } from "./members/topology.ts";
