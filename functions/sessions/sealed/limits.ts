/** Bounds of sealed logs, with units and reasons. */

/**
 * Bytes of the largest state that a client is made to hold: a tenth of a second on a slow line, and nothing to a
 * browser.
 */
export const HOST_BASE_BYTES_MAX = 256 << 10;
/**
 * Bytes of all that one host holds of one log: a base, what came after it, and the next base with what came after that.
 */
export const HOST_LOG_BYTES_MAX = 1 << 20;
/**
 * Number of records that a host may hold: they are opened one by one, at 5 µs each, when the host gives its log back.
 */
export const HOST_RECORDS_MAX = 16_384;
/**
 * Number of records above which a host is sent the log anew where its base is small: up to 64 hosts give all of theirs
 * back at once, while callers wait.
 */
export const HOST_RECORDS_MANY = 1_024;
/** Bytes of a tag of AES-128-GCM, cut from 16: 2^-96 for a forgery, and a record needs no more. */
export const TAG_BYTES = 12;
/** Bytes that are drawn for each series of records, so that no two have one key. */
export const SALT_BYTES = 16;
