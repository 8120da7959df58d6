/**
 * What the baselines' messages take: rows as in our own messages, keys and numbers as our codec writes them, so that
 * what is compared is encoded alike, byte for byte.
 *
 * Only lengths are needed: what a message says passes by reference, and values are never copied.
 */
import { Writer } from "../../../store/model/codec.ts";
import { encodeMessage, type WireRow } from "../../../store/wire/message.ts";
import type { Range } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";

/** SessionStore's stoken: id (16), time (8), current replica (4), status (1), nonce and tag of its encryption. */
const STOKEN_BYTES = 16 + 8 + 4 + 1 + 12 + 16;
/** MD5, as Cassandra's digest of a row. */
const DIGEST_BYTES = 16;
/** A ballot of Paxos is a UUID of time. */
const BALLOT_BYTES = 16;
/** Stands for a clock in the sizes of messages: what a clock takes in this decade. */
const CLOCK = 2 ** 47;
const EMPTY = new Uint8Array();

const varintBytes = (value: number): number => new Writer(8).uint(value).length;

/** A kind, the number of the request, and whether it went well. */
const head = (): Writer => new Writer(64).byte(1).uint(1).flag(true);
export const ACK_BYTES = head().length;

/** A query that goes to another site. */
export const queryBytes = (range: Range, limit: number): number =>
  head().uint(limit).key(range.start).key(range.end).length;

/** Rows: in answer to a query, on their way up, or to a destination. Their values are not copied to be counted. */
export function rowsBytes(rows: readonly WireRow[]): number {
  let values = 0;
  const bare = rows.map((row) => {
    if (row.value === null) return row;
    values += row.value.length + varintBytes(row.value.length) - 1;
    return { ...row, value: EMPTY };
  });
  return encodeMessage({ kind: "carry", id: 1, outcome: "rows", need: 0, clock: CLOCK, rows: bare }).length +
    values;
}

/** "This session is here now": its id and its token. */
export const SWITCH_BYTES = ACK_BYTES + 16 + STOKEN_BYTES;

/** The queries of a session, or of a replica. */
export const queriesBytes = (ranges: readonly Range[]): number =>
  head().list(ranges, () => {}).length +
  ranges.reduce((sum, { start, end }) => sum + new Writer(64).key(start).key(end).length, 0);

/** Keys and versions: a Δ-list. */
export function versionsBytes(rows: readonly Row[]): number {
  return new Writer().list(rows, () => {}).length +
    rows.reduce((sum, row) => sum + new Writer(64).key(row.key).uint(row.clock).uint(row.replica).length, 0);
}

export const DIGEST_ANSWER_BYTES = ACK_BYTES + DIGEST_BYTES;
export const BALLOT_MESSAGE_BYTES = ACK_BYTES + BALLOT_BYTES;
