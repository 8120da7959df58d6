/**
 * The leases that clients of queues hold: what names a message that was lent to them, as a text that they bring back to
 * any site. Bytes: docs/protocol/queues.md.
 *
 * LS1 A lease opens only for the queue that it was sealed for, and only if a site of this cluster has sealed it.
 * LS2 The first secret of the cluster seals, all of them open.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { LeaseTicket } from "../../functions/queues/verdict_post.ts";
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import { isTupleId } from "../../store/owners/packet.ts";

/** Version byte of the format, the only one so far. */
const FORM = 1;
const KEY_BYTES = 32;
/** Bytes of the HMAC-SHA256 that are kept: nobody guesses 128 bits. */
const MAC_BYTES = 16;
/** Characters of the longest lease: ids of nine owners are in it, and that of a tuple. */
export const LEASE_CHARS_MAX = 1_024;

/** Base64url without padding; of no length that leaves six bits over. */
const FORMED = /^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3})?$/;

/** Seals and opens the leases of one cluster. */
export class LeaseSeal {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]];

  /** @param secrets secrets of the cluster, newest first. */
  constructor([first, ...others]: readonly [Uint8Array, ...Uint8Array[]]) {
    const keyOf = (secret: Uint8Array) =>
      new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(), "sojourn queue lease", KEY_BYTES));
    this.#keys = [keyOf(first), ...others.map(keyOf)];
  }

  seal(topic: string, { id, lease, sentMs, owners }: LeaseTicket): string {
    const w = new Writer(128).byte(FORM).text(id).uint(lease).uint(sentMs);
    const body = w.list(owners, (site) => w.text(site)).done();
    const all = new Uint8Array(body.length + MAC_BYTES);
    all.set(body);
    all.set(mac(this.#keys[0], topic, body), body.length);
    return all.toBase64({ alphabet: "base64url", omitPadding: true });
  }

  /** Opens a lease; null where it is none of this queue (LS1). */
  open(topic: string, text: string): LeaseTicket | null {
    if (text.length > LEASE_CHARS_MAX || !FORMED.test(text)) return null;
    const all = Uint8Array.fromBase64(text, { alphabet: "base64url" });
    if (all.length <= MAC_BYTES) return null;
    const body = all.subarray(0, -MAC_BYTES), said = all.subarray(-MAC_BYTES);
    if (!this.#keys.some((key) => timingSafeEqual(mac(key, topic, body), said))) return null;
    return read(body);
  }
}

const mac = (key: Uint8Array, topic: string, body: Uint8Array): Uint8Array =>
  createHmac("sha256", key).update(`${topic}\0`).update(body).digest().subarray(0, MAC_BYTES);

/** Reads what a site has sealed, perhaps one of another release. */
function read(body: Uint8Array): LeaseTicket | null {
  try {
    const r = new Reader(body);
    if (r.byte() !== FORM) return null;
    const id = r.text(), lease = r.uint(), sentMs = r.uint(), owners = r.list(() => r.text());
    r.end();
    return isTupleId(id) ? { id, lease, sentMs, owners } : null;
  } catch (error) {
    if (error instanceof CodecError) return null;
    throw error;
  }
}
