/** Limits of the log and of checkpoints, with units: beyond them, nothing is written and nothing read. */

/** Names: a request's, peer's or timer's id, and each stateful session in a chain of calls. */
export const NAME_BYTES_MAX = 1024;
/** Stateful sessions that wait for each other; deeper chains are almost surely cycles that change their ids. */
export const CHAIN_MAX = 64;
/** The message of an error, for people. */
export const MESSAGE_BYTES_MAX = 8 * 1024;
/** A request, message or result of a call: a link's message has to take it, with a page of the store in it. */
export const PAYLOAD_BYTES_MAX = 32 * 1024 * 1024;
/** Readings of the clock beyond the first in one turn: a turn of 1 s of CPU makes some 5,000. */
export const READINGS_MAX = 100_000;
/** A checkpoint: what a site's memory and a transfer between sites can take for one stateful session. */
export const CHECKPOINT_BYTES_MAX = 512 * 1024 * 1024;
