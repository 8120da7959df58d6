/**
 * Ids for the calls of a request with an `Idempotency-Key`. Such a request may be sent again, to any site: the calls
 * that it makes to stateful sessions have the same ids then, so that a call that was run is not run again, and its
 * answer is the one that was kept (functions/sessions/home/answers.ts).
 *
 * The handler itself runs again, and with it what it does by itself.
 *
 * ON1  An id is made of the app, the client's session, key, method, path, query and `Authorization` of the request, the
 *      stateful session, the method called there, and which such call of the request it is. Arguments are no part of
 *      it: a handler that draws another time or number is asking for the same.
 * ON2  Calls of two clients never share an id, whatever keys they send: unless both have no session yet and present the
 *      same `Authorization` or none, and one knows or guesses the other's key.
 * ON3  A session that the platform made for this very request is no part of the id: sent again, the request would have
 *      another.
 * ON4  A request keeps no more than {@link KEPT_NAMES_MAX} names: one that stays for days, as a socket does, could make
 *      its site remember without end. Its next call of another name fails; those that it made before go on.
 */
import { createHash } from "node:crypto";
import { decodeCall } from "../../functions/calls/call.ts";
import type { SessionTarget } from "../../functions/calls/stub.ts";
import { AppError } from "../../functions/vocabulary/errors.ts";
import { Writer } from "../../store/model/codec.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

/** Name of the header (draft-ietf-httpapi-idempotency-key-header). */
const ONCE_HEADER = "idempotency-key";
/** Longest key in characters, as others accept it: a UUID has 36. */
const KEY_CHARS_MAX = 255;
/** Form of a key: visible ASCII. Two headers of the name are joined by a comma and a space, and are refused by that. */
const KEY = /^[\x21-\x7e]+$/;
/** Start of an id that is made here: the rest is 32 bytes of SHA-256. No drawn id begins so: those are hexadecimal. */
const PREFIX = "once.";

/**
 * Returns the key of a request; null where it has none, or where the app has no stateful session: it may use the header
 * as it likes.
 *
 * @throws Problem `idempotency_key_invalid`.
 */
export function onceKeyOf(
  headers: readonly (readonly [string, string])[],
  version: { readonly manifest: { readonly sessions: object } },
): string | null {
  const key = headers.find(([name]) => name === ONCE_HEADER)?.[1];
  if (key === undefined || Object.keys(version.manifest.sessions).length === 0) return null;
  if (key.length <= KEY_CHARS_MAX && KEY.test(key)) return key;
  throw new Problem(
    "idempotency_key_invalid",
    `can't take the Idempotency-Key ${
      JSON.stringify(key.slice(0, 60))
    } of ${key.length} characters: it has 1 to ` +
      `${KEY_CHARS_MAX}, each visible ASCII, and is given once`,
  );
}

/** Names (of a session and a method) that one request may call, at 200 bytes each: 3 MB. */
export const KEPT_NAMES_MAX = 16_384;

/** Parts of the name under which a request is known for ever (ON1). */
export interface OnceScope {
  readonly app: string;
  /** Id of the client's session; null: the client presented none (ON3). */
  readonly session: Uint8Array | null;
  readonly key: string;
  readonly method: string;
  /** Path and query as the app sees them. */
  readonly target: string;
  /** Value of the `Authorization` header; null: there is none. */
  readonly authorization: string | null;
}

/** Gives ids to the calls of one request. */
export class OnceCalls {
  readonly #scope: OnceScope;
  readonly #made = new Map<string, number>();

  constructor(scope: OnceScope) {
    this.#scope = scope;
  }

  /** Returns the id of the next call. @throws CodecError for bytes that are no call; AppError `limit_calls` (ON4). */
  next(target: SessionTarget, bytes: Uint8Array): string {
    const call = decodeCall(bytes);
    const { app, session, key, method, target: path, authorization } = this.#scope;
    const writer = new Writer().text(app).bytes(session ?? new Uint8Array()).text(key).text(method).text(
      path,
    );
    writer.text(authorization ?? "");
    writer.text(target.class).text(target.id).text(call.kind).text(call.method);
    if (call.kind === "fetch") writer.text(call.url);
    const name = createHash("sha256").update(writer.done()).digest("hex");
    const made = this.#made.get(name) ?? 0;
    if (made === 0 && this.#made.size >= KEPT_NAMES_MAX) {
      throw new AppError(
        "limit_calls",
        `a request with an Idempotency-Key can't call more than ${KEPT_NAMES_MAX} methods of stateful sessions`,
      );
    }
    this.#made.set(name, made + 1);
    return `${PREFIX}${name}.${made}`;
  }
}
