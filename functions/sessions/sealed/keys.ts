/**
 * The keys of sealed logs: one for each series of records.
 *
 * A key is HKDF-SHA-256 over the cluster's secret, with the series' salt, and as its purpose the format, the stateful
 * session, the epoch and the receiver: so a record of another session, receiver, epoch or series opens under no other
 * key.
 */
import { hkdfSync } from "node:crypto";
import { Buffer } from "node:buffer";
import { Writer } from "../../../store/model/codec.ts";
import type { StatefulName } from "../log/api.ts";

/** Session and host whose records a key seals. */
export interface SealedFor {
  readonly name: StatefulName;
  /** Id of the host, as a peer. */
  readonly receiver: string;
}

const KEY_BYTES = 16;

/** Returns the key of a series. @param salt drawn for the series. */
export function seriesKey(
  secret: Uint8Array,
  { name, receiver }: SealedFor,
  epoch: number,
  salt: Uint8Array,
): Buffer {
  const info = new Writer(128).text("sojourn sealed log 1").text(name.app).text(name.class).text(name.id);
  info.uint(epoch).text(receiver);
  return Buffer.from(hkdfSync("sha256", secret, salt, info.view(), KEY_BYTES));
}
