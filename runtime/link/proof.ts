/**
 * The cryptography of a link: proofs that both sides hold the cluster's secret, and the keys of the records
 * that follow (docs/protocol/frames.md). Pure functions; the test vectors in tests/golden/frames.json are computed
 * by an independent program.
 *
 * PV1  Every proof and key covers the transcript: both hellos whole, hence both nonces, ids, roles, incarnations and
 *      version offers. Nothing that was said before the proof can have been changed on the way.
 * PV2  Each use of a key has a label of its own: what one side proves can never be reflected as the other's.
 */
import { strict as assert } from "node:assert";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

export const PROOF_BYTES = 32;
/** Bytes of a record's MAC: forging one takes 2^128 attempts, each of which closes the connection. */
export const MAC_BYTES = 16;

const text = new TextEncoder();

/** Returns the digest of all that was said before the proofs: both hellos, each with its length before it. */
export function transcript(dialerHello: Uint8Array, acceptorHello: Uint8Array): Uint8Array {
  const hash = createHash("sha256").update("sojourn link transcript\0");
  for (const hello of [dialerHello, acceptorHello]) {
    hash.update(new Uint8Array([hello.length >>> 8, hello.length & 255])).update(hello);
  }
  return hash.digest();
}

function mac(key: Uint8Array, label: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const hmac = createHmac("sha256", key).update(text.encode(`sojourn link ${label}\0`));
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

export interface LinkKeys {
  /** Proofs: the acceptor's is shown first, then the dialer's. */
  readonly acceptorProof: Uint8Array;
  readonly dialerProof: Uint8Array;
  /** Keys of the MACs of the records that each side sends. */
  readonly dialerKey: Uint8Array;
  readonly acceptorKey: Uint8Array;
  /** Key that authenticates the acceptor's verdict. */
  readonly verdictKey: Uint8Array;
}

export function deriveKeys(secret: Uint8Array, digest: Uint8Array): LinkKeys {
  const session = mac(secret, "session", digest);
  return {
    acceptorProof: mac(secret, "acceptor proof", digest),
    dialerProof: mac(secret, "dialer proof", digest),
    dialerKey: mac(session, "dialer records"),
    acceptorKey: mac(session, "acceptor records"),
    verdictKey: mac(session, "verdict"),
  };
}

export function verdictProof(key: Uint8Array, verdict: Uint8Array): Uint8Array {
  return createHmac("sha256", key).update(verdict).digest();
}

/** Bytes that SHA-256 hashes at a time: keys are no longer than that here. */
const BLOCK_BYTES = 64;

/**
 * MACs of the records under one key: HMAC-SHA256 by its definition (RFC 2104), two hashes. `createHmac` makes objects
 * of the key each time: 12 µs for a record of 60 bytes to 8 KB, where this takes 6 to 8.
 */
export class RecordMac {
  readonly #inner: Uint8Array = new Uint8Array(BLOCK_BYTES).fill(0x36);
  readonly #outer: Uint8Array = new Uint8Array(BLOCK_BYTES).fill(0x5c);

  constructor(key: Uint8Array) {
    assert(key.length <= BLOCK_BYTES, `A record key has up to ${BLOCK_BYTES} bytes, not ${key.length}`);
    key.forEach((byte, i) => {
      this.#inner[i] = 0x36 ^ byte;
      this.#outer[i] = 0x5c ^ byte;
    });
  }

  /** Returns the MAC over sequence number, length and payload as they lie in one buffer. */
  of(sequenceLengthPayload: Uint8Array): Uint8Array {
    const inner = createHash("sha256").update(this.#inner).update(sequenceLengthPayload).digest();
    return createHash("sha256").update(this.#outer).update(inner).digest().subarray(0, MAC_BYTES);
  }
}

/** Compares two proofs in time that does not depend on where they differ. */
export function equalProof(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
