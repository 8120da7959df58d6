/**
 * The values of secrets, sealed under the cluster's key (AES-256-GCM). Format and vectors: docs/protocol/secrets.md.
 *
 * E1  A sealed value opens only as the secret of the app and name that it was sealed for.
 * E2  The first key seals, all keys open: a value that was sealed under a retired secret is not opened, and the outcome
 *     says so.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";

const FORMAT = 0x01;
const KEY_ID_AT = 1;
const IV_AT = 5;
const BODY_AT = 17;
const TAG_BYTES = 16;

/** App and name of a secret, to which its value is sealed (E1). */
export interface SecretPlace {
  readonly app: string;
  readonly name: string;
}

/** Outcome of opening a sealed value. */
export type OpenedSecret =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly why: string };

interface SecretKey {
  readonly id: Buffer;
  readonly key: Buffer;
}

const derive = (secret: Uint8Array, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, new Uint8Array(), `sojourn ${purpose}`, bytes));

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Seals and opens secrets of one cluster. */
export class SecretRing {
  readonly #keys: readonly [SecretKey, ...SecretKey[]];
  readonly #randomBytes: (length: number) => Uint8Array;

  /** @param secrets secrets of the cluster, newest first. */
  constructor(
    secrets: readonly [Uint8Array, ...Uint8Array[]],
    randomBytes: (length: number) => Uint8Array,
  ) {
    const keyOf = (secret: Uint8Array): SecretKey => ({
      id: derive(secret, "secret key id", IV_AT - KEY_ID_AT),
      key: derive(secret, "secret key", 32),
    });
    const [first, ...others] = secrets;
    this.#keys = [keyOf(first), ...others.map(keyOf)];
    this.#randomBytes = randomBytes;
  }

  /** Seals a value for one app and name, under the newest key. */
  seal(place: SecretPlace, value: string): Uint8Array<ArrayBuffer> {
    const [{ id, key }] = this.#keys;
    const head = Buffer.concat([Buffer.of(FORMAT), id]);
    const iv = this.#randomBytes(BODY_AT - IV_AT);
    const cipher = createCipheriv("aes-256-gcm", key, iv);
    cipher.setAAD(contextOf(head, place));
    const body = cipher.update(value, "utf8");
    cipher.final();
    return new Uint8Array(Buffer.concat([head, iv, body, cipher.getAuthTag()]));
  }

  /** Opens a sealed value (E1, E2). */
  open(place: SecretPlace, sealed: Uint8Array): OpenedSecret {
    if (sealed.length < BODY_AT + TAG_BYTES || sealed[0] !== FORMAT) {
      return { ok: false, why: "it is no sealed value of a known format" };
    }
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const found = this.#keys.find((candidate) => candidate.id.equals(bytes.subarray(KEY_ID_AT, IV_AT)));
    if (found === undefined) {
      return { ok: false, why: "it was sealed under a cluster secret that is no longer in the secret file" };
    }
    const decipher = createDecipheriv("aes-256-gcm", found.key, bytes.subarray(IV_AT, BODY_AT), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(contextOf(bytes.subarray(0, IV_AT), place));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const body = decipher.update(bytes.subarray(BODY_AT, -TAG_BYTES));
    try {
      decipher.final();
      return { ok: true, value: strictUtf8.decode(body) };
    } catch {
      return { ok: false, why: "it was altered, or sealed for another app or name" };
    }
  }

  /** Reports whether a sealed value is under the newest key. */
  isCurrent(sealed: Uint8Array): boolean {
    return this.#keys[0].id.equals(sealed.subarray(KEY_ID_AT, IV_AT));
  }
}

const contextOf = (head: Uint8Array, { app, name }: SecretPlace): Buffer =>
  Buffer.concat([head, Buffer.from(`${app}\0${name}`)]);
