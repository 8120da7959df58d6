/**
 * Session tokens: what a session has seen, sealed for the client to carry.
 *
 * A token is encrypted and authenticated (AES-256-GCM) under a key that is derived for one secret, one issuing
 * incarnation and one day. Its size follows the depth of the tree, never the number of sites or operations. A key seals
 * fewer than 2^32 tokens (random 96-bit IVs repeat with a chance below 2^-32 until then): one incarnation would have to
 * issue 49,000 tokens a second for a whole day.
 *
 * T1  openToken accepts exactly what sealToken made, byte for byte: one text for each sealed token.
 * T2  openToken never throws, whatever the input, and its work is bounded by TOKEN_CHARS_MAX.
 * T4  Nothing that a client can read or compare names a session: the session's id is inside, and two seals of one state
 *     differ.
 *
 * Format and vectors: docs/protocol/tokens.md.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync } from "node:crypto";
import type { TokenState } from "../api/api.ts";
import { namedBy, pathNaming } from "../api/token_path.ts";
import { Reader, Writer } from "../model/codec.ts";
import type { Random } from "../model/ports.ts";
import { CLOCK_EPOCH_MS } from "../model/row.ts";

/**
 * Number of positions that a token may hold: a tree of 12 levels is far beyond any; at 12 positions of 8 bytes a token
 * still has at most 256 characters.
 */
export const TOKEN_PATH_MAX = 12;
/** Length beyond which a text is refused unread. */
export const TOKEN_CHARS_MAX = 256;
/** Lifetime of a token, the same as that of the cookie that carries it; every answer renews it. */
export const TOKEN_LIFETIME_MS = 30 * 24 * 3_600_000;
/** Length below which a secret can be guessed. */
export const TOKEN_SECRET_BYTES_MIN = 16;

/**
 * Bytes that begin a token of either form. The second form names positions also where something is pending; a token
 * without such positions has the first.
 */
const FORMAT = 0x01, FOLLOWING = 0x02;
const SESSION_BYTES = 16;
const FINGERPRINT_AT = 1;
const KEY_ID_AT = 9;
const REPLICA_AT = 13;
const DAY_AT = 16;
const IV_AT = 18;
const BODY_AT = 30;
const TAG_BYTES = 16;
const DAY_MS = 86_400_000;
/** Length of the shortest body: session, flag, sequence, clock, second, lifetime, an empty path. */
const BODY_BYTES_MIN = SESSION_BYTES + 6;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** Code that says why a token was refused (docs/http.md). */
export type TokenRefusal =
  | "token_malformed"
  | "token_forged"
  | "token_foreign"
  | "token_expired"
  | "token_oversized";

/** An opened token, or the reason why it could not be opened. */
export type OpenedToken =
  | { readonly ok: true; readonly token: TokenState; readonly issuedMs: number; readonly expiresMs: number }
  | { readonly ok: false; readonly code: TokenRefusal; readonly message: string };

const utf8 = new TextEncoder();

interface SealingKey {
  readonly id: Buffer;
  readonly secret: Buffer;
  /** Derived keys, by the header's bytes from REPLICA_AT to IV_AT, which name the incarnation and the day. */
  readonly derived: Map<string, Buffer>;
}

/** The keys of one cluster: the first seals, all open. */
export interface KeyRing {
  readonly fingerprint: Uint8Array;
  readonly keys: readonly [SealingKey, ...SealingKey[]];
}

/** Number of derived keys that are kept for one secret: a month of days at a few sites, or a day at a thousand. */
const DERIVED_MAX = 1024;

const derive = (secret: Uint8Array, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, new Uint8Array(), `sojourn ${purpose}`, bytes));

/**
 * Makes the key ring of a cluster from its secrets, newest first. To rotate, put a new secret before the old ones at
 * every site, then remove the oldest when its tokens have expired.
 *
 * @param fingerprint Bytes that tell this cluster's tokens from others': by default they follow from the oldest secret,
 *     so a cluster that retires that secret passes the ring's fingerprint on.
 * @throws RangeError for no secret, for one that is too short, or for two that are equal.
 */
export function deriveKeyRing(secrets: readonly Uint8Array[], fingerprint?: Uint8Array): KeyRing {
  const keys = secrets.map((secret): SealingKey => {
    if (secret.length < TOKEN_SECRET_BYTES_MIN) {
      throw new RangeError(
        `a cluster secret has at least ${TOKEN_SECRET_BYTES_MIN} bytes, not ${secret.length}`,
      );
    }
    return {
      id: derive(secret, "token key id", 4),
      secret: derive(secret, "token key", 32),
      derived: new Map(),
    };
  });
  const [first, ...others] = keys;
  const oldest = secrets.at(-1);
  if (first === undefined || oldest === undefined) throw new RangeError("a cluster has at least one secret");
  if (new Set(keys.map((key) => key.id.toString("hex"))).size < keys.length) {
    throw new RangeError("two of the cluster's secrets are equal");
  }
  return { fingerprint: fingerprint ?? derive(oldest, "cluster", 8), keys: [first, ...others] };
}

/** Derives the key of one secret for the incarnation and day that a header names. */
function derivedKey(key: SealingKey, header: Buffer): Buffer {
  const name = header.toString("latin1", REPLICA_AT, IV_AT);
  const known = key.derived.get(name);
  if (known !== undefined) return known;
  const info = Buffer.concat([
    Buffer.from("sojourn token"),
    header.subarray(REPLICA_AT, IV_AT),
    Buffer.of(1),
  ]);
  return createHmac("sha256", key.secret).update(info).digest();
}

/** Keeps a derived key. Only keys that have proved right are kept, so that forged headers push nothing out. */
function keep(key: SealingKey, header: Buffer, derived: Buffer): void {
  const name = header.toString("latin1", REPLICA_AT, IV_AT);
  if (key.derived.has(name)) return;
  if (key.derived.size >= DERIVED_MAX) key.derived.clear();
  key.derived.set(name, derived);
}

/** Inputs of a seal beside the state. */
export interface SealOptions {
  readonly nowMs: number;
  readonly random: Random;
  readonly lifetimeMs?: number;
}

/**
 * Seals a state into a token: base64url, fit for a cookie and a header.
 *
 * @throws RangeError for a state that no token can hold: a path beyond TOKEN_PATH_MAX, a session of other than 16
 * bytes.
 */
export function sealToken(token: TokenState, ring: KeyRing, options: SealOptions): string {
  const { nowMs, random, lifetimeMs = TOKEN_LIFETIME_MS } = options;
  if (token.path.length > TOKEN_PATH_MAX) {
    throw new RangeError(`a token holds at most ${TOKEN_PATH_MAX} positions, not ${token.path.length}`);
  }
  if (token.session.length !== SESSION_BYTES) {
    throw new RangeError(`a session's id has ${SESSION_BYTES} bytes, not ${token.session.length}`);
  }
  const [key] = ring.keys;
  const sinceEpochMs = Math.max(0, nowMs - CLOCK_EPOCH_MS);
  const day = Math.floor(sinceEpochMs / DAY_MS);
  const second = Math.floor((sinceEpochMs - day * DAY_MS) / 1000);
  const body = packBody(token, second, Math.ceil(lifetimeMs / 1000));
  const out = Buffer.allocUnsafe(BODY_AT + body.length + TAG_BYTES);
  out[0] = token.followed === undefined ? FORMAT : FOLLOWING;
  out.set(ring.fingerprint, FINGERPRINT_AT);
  out.set(key.id, KEY_ID_AT);
  out.writeUIntBE(token.replica, REPLICA_AT, 3);
  out.writeUInt16BE(day, DAY_AT);
  out.set(random.bytes(BODY_AT - IV_AT), IV_AT); // T4
  const derived = derivedKey(key, out);
  keep(key, out, derived);
  const cipher = createCipheriv("aes-256-gcm", derived, out.subarray(IV_AT, BODY_AT));
  cipher.setAAD(out.subarray(0, IV_AT));
  out.set(cipher.update(body), BODY_AT);
  cipher.final();
  out.set(cipher.getAuthTag(), BODY_AT + body.length);
  return out.toString("base64url");
}

/** Opens a token (T1, T2). */
export function openToken(text: string, ring: KeyRing, nowMs: number): OpenedToken {
  if (text.length > TOKEN_CHARS_MAX) {
    return refuse(
      "token_oversized",
      `a session token has at most ${TOKEN_CHARS_MAX} characters, not ${text.length}`,
    );
  }
  const bytes = decodeText(text);
  if (bytes === null) {
    return refuse(
      "token_malformed",
      "a session token is base64url of a known format; this is cut or altered",
    );
  }
  if (!bytes.subarray(FINGERPRINT_AT, KEY_ID_AT).equals(ring.fingerprint)) {
    return refuse("token_foreign", "the session token was issued by another cluster");
  }
  const id = bytes.subarray(KEY_ID_AT, REPLICA_AT);
  const key = ring.keys.find((candidate) => candidate.id.equals(id));
  if (key === undefined) {
    return refuse(
      "token_expired",
      "the session token was sealed under a key that this cluster no longer holds",
    );
  }
  const body = decrypt(key, bytes);
  if (body === null) {
    return refuse("token_forged", "the session token does not verify: it was altered or made up");
  }
  return unpackBody(body, bytes, nowMs);
}

const refuse = (code: TokenRefusal, message: string): OpenedToken => ({ ok: false, code, message });

/** Decodes a text that is the only one for its bytes (T1) and long enough; null otherwise. */
function decodeText(text: string): Buffer | null {
  if (!BASE64URL.test(text)) return null;
  const bytes = Buffer.from(text, "base64url");
  const isKnown = bytes[0] === FORMAT || bytes[0] === FOLLOWING;
  if (bytes.length < BODY_AT + BODY_BYTES_MIN + TAG_BYTES || !isKnown) return null;
  return bytes.toString("base64url") === text ? bytes : null;
}

function decrypt(key: SealingKey, bytes: Buffer): Buffer | null {
  const derived = derivedKey(key, bytes);
  const decipher = createDecipheriv("aes-256-gcm", derived, bytes.subarray(IV_AT, BODY_AT), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(bytes.subarray(0, IV_AT));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const body = decipher.update(bytes.subarray(BODY_AT, -TAG_BYTES));
  try {
    decipher.final();
  } catch {
    return null;
  }
  keep(key, bytes, derived);
  return body;
}

function packBody(token: TokenState, second: number, lifetimeSeconds: number): Uint8Array {
  const body = new Writer(BODY_BYTES_MIN + 8 * (TOKEN_PATH_MAX + 4));
  for (const byte of token.session) body.byte(byte);
  body.flag(token.open).uint(token.sequence).uint(token.clock).uint(second).uint(lifetimeSeconds);
  if (token.followed === undefined) {
    return body.list(token.path, (position) => body.uint(position === null ? 0 : position + 1)).done();
  }
  const named = namedBy(token);
  body.uint(named.reduce((bits, { isPending }, depth) => bits | (isPending ? 1 << depth : 0), 0));
  return body.list(named, ({ position }) => body.uint(position)).done();
}

/** Reads the body and header of a token that verified: only our own mistake could make it malformed here. */
function unpackBody(body: Buffer, header: Buffer, nowMs: number): OpenedToken {
  try {
    const reader = new Reader(body);
    const session = Uint8Array.from({ length: SESSION_BYTES }, () => reader.byte());
    const open = reader.flag();
    const sequence = reader.uint();
    const clock = reader.uint();
    const issuedMs = CLOCK_EPOCH_MS + header.readUInt16BE(DAY_AT) * DAY_MS + reader.uint() * 1000;
    const expiresMs = issuedMs + reader.uint() * 1000;
    const path = header[0] === FORMAT ? readPath(reader) : readFollowing(reader);
    reader.end();
    if (path.path.length > TOKEN_PATH_MAX) {
      return refuse("token_malformed", "the session token's path is too long");
    }
    if (nowMs >= expiresMs) {
      return refuse("token_expired", `the session token expired at ${new Date(expiresMs).toISOString()}`);
    }
    const replica = header.readUIntBE(REPLICA_AT, 3);
    const token = { session, sequence, replica, clock, ...path, open };
    return { ok: true, token, issuedMs, expiresMs };
  } catch {
    return refuse("token_malformed", "the session token's content is not of a known form");
  }
}

type Path = Pick<TokenState, "path" | "followed">;

const readPath = (reader: Reader): Path => ({
  path: reader.list(() => reader.uint()).map((position) => position === 0 ? null : position - 1),
});

function readFollowing(reader: Reader): Path {
  const pending = reader.uint();
  const positions = reader.list(() => reader.uint());
  return pathNaming(
    positions.map((position, depth) => ({ position, isPending: (pending >> depth) % 2 !== 0 })),
  );
}

/**
 * Derives the id by which an app knows a session: another one in each app, so that two apps can't compare their users,
 * and useless as a credential. 22 characters.
 */
export function sessionIdOf(session: Uint8Array, app: string): string {
  const text = utf8.encode(`sojourn session\0${app}`);
  const inner = new Uint8Array(HMAC_BLOCK_BYTES + text.length);
  const outer = new Uint8Array(HMAC_BLOCK_BYTES + SHA256_BYTES);
  for (let i = 0; i < HMAC_BLOCK_BYTES; i++) {
    const byte = session[i] ?? 0;
    inner[i] = byte ^ 0x36;
    outer[i] = byte ^ 0x5c;
  }
  inner.set(text, HMAC_BLOCK_BYTES);
  outer.set(hash("sha256", inner, "buffer"), HMAC_BLOCK_BYTES);
  return hash("sha256", outer, "buffer").toString("base64url", 0, 16);
}

/**
 * Block length of HMAC-SHA-256 (RFC 2104), made of one-shot hashes here: the object that node:crypto makes for an HMAC
 * costs twice as much.
 */
const HMAC_BLOCK_BYTES = 64;
const SHA256_BYTES = 32;
