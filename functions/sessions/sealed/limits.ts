/** Bounds of sealed logs, with their units and why they are what they are. */

/** The largest state that a client is made to hold: a tenth of a second on a slow line, and nothing to a browser. */
export const HOST_BASE_BYTES_MAX = 256 << 10;
/** All that one host holds of one log: a base, what came after it, and the next base with its own. */
export const HOST_LOG_BYTES_MAX = 1 << 20;
/** Records are opened one by one when a host gives its log back: 5 µs each. */
export const HOST_RECORDS_MAX = 16_384;
/** Hosts hold fewer where bases are small: all of up to 64 give theirs back at once, while callers wait. */
export const HOST_RECORDS_MANY = 1_024;
/** Of AES-128-GCM, cut from 16: 2^-96 for a forgery, and a record needs no more. */
export const TAG_BYTES = 12;
/** Drawn for each series of records, so that no two have one key. */
export const SALT_BYTES = 16;
