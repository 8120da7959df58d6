/**
 * The messages of a handshake, as bytes (docs/protocol/frames.md): hello of the dialer, hello of the acceptor with
 * its proof, proof of the dialer, verdict of the acceptor. Decoders are strict: a wrong length, an id
 * outside its limits, bytes left over → undefined, and the connection is closed.
 */
import { SITE_ID_BYTES_MAX } from "./limits.ts";
import { PROOF_BYTES } from "./proof.ts";

export const VERSION_LOWEST = 1;
export const VERSION_HIGHEST = 1;
export const NONCE_BYTES = 32;
/**
 * Bytes of the number drawn when a process starts, so that its connections can be told from those of the process before
 * it.
 */
export const BOOT_BYTES = 8;
const MAGIC = new Uint8Array([0x53, 0x4a, 0x52, 0x4e]); // "SJRN"

/** Role that the dialer claims for itself. */
export type DialerRole = "child" | "peer";

export interface DialerHello {
  readonly versionLowest: number;
  readonly versionHighest: number;
  readonly nonce: Uint8Array;
  readonly role: DialerRole;
  readonly site: string;
  readonly incarnation: string;
  readonly boot: Uint8Array;
  /** Id of the site that the dialer wants to reach: an address may have changed hands. */
  readonly target: string;
}

export interface AcceptorHello {
  readonly version: number;
  readonly nonce: Uint8Array;
  readonly site: string;
  readonly incarnation: string;
  readonly boot: Uint8Array;
}

export interface HelloVerdict {
  readonly admitted: boolean;
  /** Reason of a refusal; empty when admitted. */
  readonly reason: string;
}

const TYPE = { dialerHello: 1, acceptorHello: 2, dialerProof: 3, verdict: 4 } as const;
const ROLE: Record<DialerRole, number> = { child: 1, peer: 2 };
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

function id(text: string): Uint8Array {
  const bytes = encoder.encode(text);
  if (bytes.length < 1 || bytes.length > SITE_ID_BYTES_MAX) {
    throw new RangeError(
      `Cannot name a site or incarnation ${JSON.stringify(text)}: 1 to ${SITE_ID_BYTES_MAX} bytes`,
    );
  }
  return new Uint8Array([bytes.length, ...bytes]);
}

function join(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Reads forward; every method returns undefined past the end, and then so does all that follows. */
class Reader {
  #at = 0;
  #failed = false;
  constructor(readonly bytes: Uint8Array) {}
  take(length: number): Uint8Array | undefined {
    if (this.#failed || this.#at + length > this.bytes.length) {
      this.#failed = true;
      return undefined;
    }
    this.#at += length;
    return this.bytes.slice(this.#at - length, this.#at);
  }
  byte(): number | undefined {
    return this.take(1)?.[0];
  }
  text(lengthMin: number, lengthMax: number): string | undefined {
    const length = this.byte();
    if (length === undefined || length < lengthMin || length > lengthMax) {
      this.#failed = true;
      return undefined;
    }
    const bytes = this.take(length);
    try {
      return bytes && decoder.decode(bytes);
    } catch {
      this.#failed = true;
      return undefined;
    }
  }
  /** True where everything was there and no byte is left. */
  get whole(): boolean {
    return !this.#failed && this.#at === this.bytes.length;
  }
}

export function encodeDialerHello(hello: DialerHello): Uint8Array {
  return join(
    [TYPE.dialerHello],
    MAGIC,
    [hello.versionLowest, hello.versionHighest],
    hello.nonce,
    [ROLE[hello.role]],
    id(hello.site),
    id(hello.incarnation),
    hello.boot,
    id(hello.target),
  );
}

export function decodeDialerHello(bytes: Uint8Array): DialerHello | undefined {
  const reader = new Reader(bytes);
  const type = reader.byte();
  const magic = reader.take(MAGIC.length);
  const versionLowest = reader.byte();
  const versionHighest = reader.byte();
  const nonce = reader.take(NONCE_BYTES);
  const roleByte = reader.byte();
  const site = reader.text(1, SITE_ID_BYTES_MAX);
  const incarnation = reader.text(1, SITE_ID_BYTES_MAX);
  const boot = reader.take(BOOT_BYTES);
  const target = reader.text(1, SITE_ID_BYTES_MAX);
  if (!reader.whole || type !== TYPE.dialerHello || magic?.some((byte, i) => byte !== MAGIC[i])) {
    return undefined;
  }
  const role = roleByte === ROLE.child ? "child" : roleByte === ROLE.peer ? "peer" : undefined;
  if (versionLowest === undefined || versionHighest === undefined || versionLowest > versionHighest) {
    return undefined;
  }
  if (!nonce || !role || site === undefined || incarnation === undefined || !boot || target === undefined) {
    return undefined;
  }
  return { versionLowest, versionHighest, nonce, role, site, incarnation, boot, target };
}

/** Encodes the part that the transcript covers; the proof follows it in the message. */
export function encodeAcceptorHello(hello: AcceptorHello): Uint8Array {
  return join(
    [TYPE.acceptorHello, hello.version],
    hello.nonce,
    id(hello.site),
    id(hello.incarnation),
    hello.boot,
  );
}

export function decodeAcceptorHello(
  bytes: Uint8Array,
): { hello: AcceptorHello; covered: Uint8Array; proof: Uint8Array } | undefined {
  const reader = new Reader(bytes);
  const type = reader.byte();
  const version = reader.byte();
  const nonce = reader.take(NONCE_BYTES);
  const site = reader.text(1, SITE_ID_BYTES_MAX);
  const incarnation = reader.text(1, SITE_ID_BYTES_MAX);
  const boot = reader.take(BOOT_BYTES);
  const proof = reader.take(PROOF_BYTES);
  if (!reader.whole || type !== TYPE.acceptorHello || version === undefined || !nonce) return undefined;
  if (site === undefined || incarnation === undefined || !boot || !proof) return undefined;
  const covered = bytes.slice(0, bytes.length - PROOF_BYTES);
  return { hello: { version, nonce, site, incarnation, boot }, covered, proof };
}

export function encodeDialerProof(proof: Uint8Array): Uint8Array {
  return join([TYPE.dialerProof], proof);
}

export function decodeDialerProof(bytes: Uint8Array): Uint8Array | undefined {
  return bytes.length === 1 + PROOF_BYTES && bytes[0] === TYPE.dialerProof ? bytes.slice(1) : undefined;
}

/** Encodes the part that the verdict's proof covers; the proof follows it in the message. */
export function encodeVerdict(verdict: HelloVerdict): Uint8Array {
  // Cut at 200 bytes; a character cut in two would make the decoder refuse it, so cut to ASCII first.
  const reason = encoder.encode(verdict.reason.replace(/[^\x20-\x7e]/g, "?").slice(0, 200));
  return join([TYPE.verdict, verdict.admitted ? 1 : 0, reason.length], reason);
}

export function decodeVerdict(
  bytes: Uint8Array,
): { verdict: HelloVerdict; covered: Uint8Array; proof: Uint8Array } | undefined {
  const reader = new Reader(bytes);
  const type = reader.byte();
  const admitted = reader.byte();
  const reason = reader.text(0, 200);
  const proof = reader.take(PROOF_BYTES);
  if (!reader.whole || type !== TYPE.verdict || reason === undefined || !proof) return undefined;
  if (admitted !== 0 && admitted !== 1) return undefined;
  return {
    verdict: { admitted: admitted === 1, reason },
    covered: bytes.slice(0, bytes.length - PROOF_BYTES),
    proof,
  };
}
