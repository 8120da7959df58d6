/**
 * The interleave log of a stateful session and its checkpoints, as bytes (CESSNA, section 4). The executor writes and reads
 * them (functions/turns); whoever only holds them treats them as opaque.
 */
export {
  type CheckpointContents,
  decodeCheckpoint,
  encodeCheckpoint,
  type KeptEffect,
  type KeptMutation,
  type KeptOutput,
  type KeptPeer,
  mergeCheckpoint,
} from "./checkpoint.ts";
export type { Entry, EntryInput, LogClocks } from "./entry.ts";
export {
  CHAIN_MAX,
  CHECKPOINT_BYTES_MAX,
  MESSAGE_BYTES_MAX,
  NAME_BYTES_MAX,
  PAYLOAD_BYTES_MAX,
  READINGS_MAX,
} from "./limits.ts";
export { LogReader, LogWriter, readLog } from "./log.ts";
