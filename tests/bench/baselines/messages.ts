/**
 * What the baselines' messages take: in the forms of our own where there is one that says the same, so that rows
 * and ranges are encoded alike, byte for byte.
 *
 * Only lengths are needed: what a message says passes by reference, and values are never copied.
 */
import { Writer } from "../../../store/codec.ts";
import { encodeMessage, type Message, type WireRow } from "../../../store/message.ts";
import type { Range } from "../../../store/range.ts";
import type { Row } from "../../../store/row.ts";

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

/** The length of a message as our links carry it. */
export function messageBytes(message: Message): number {
  if (!("rows" in message)) return encodeMessage(message).length;
  let values = 0;
  const rows = message.rows.map((row) => {
    if (row.value === null) return row;
    values += row.value.length + varintBytes(row.value.length) - 1;
    return { ...row, value: EMPTY };
  });
  return encodeMessage({ ...message, rows } as Message).length + values;
}

/** A query that goes to the parent. */
export const queryBytes = (range: Range, limit: number): number =>
  messageBytes({ kind: "fetch", id: 1, range, limit, reverse: false, trace: "" });

/** Rows in answer to a query, or to a destination. */
export const rowsBytes = (rows: readonly WireRow[]): number =>
  messageBytes({ kind: "carry", id: 1, outcome: "rows", need: 0, clock: CLOCK, rows });

/** Rows on their way up; the acknowledgement of it. */
export const pushBytes = (rows: readonly WireRow[]): number =>
  messageBytes({ kind: "push", upTo: 1, stable: CLOCK, clock: CLOCK, rows, more: false });
export const ACK_BYTES = messageBytes({ kind: "number", id: 1, replica: 1 });

/** "This session is here now": its id and its token. */
export const SWITCH_BYTES = messageBytes({ kind: "warm", session: new Uint8Array(16 + STOKEN_BYTES) });

/** The queries of a session, or of a replica. */
export const queriesBytes = (ranges: readonly Range[]): number => messageBytes({ kind: "footprint", ranges });

/** Keys and versions: a Δ-list. */
export function versionsBytes(rows: readonly Row[]): number {
  return new Writer().list(rows, () => {}).length +
    rows.reduce((sum, row) => sum + new Writer(64).key(row.key).uint(row.clock).uint(row.replica).length, 0);
}

export const DIGEST_ANSWER_BYTES = ACK_BYTES + DIGEST_BYTES;
export const BALLOT_MESSAGE_BYTES = ACK_BYTES + BALLOT_BYTES;
