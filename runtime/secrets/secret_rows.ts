/**
 * Rows of secrets: system rows, their values sealed (sealing.ts).
 *
 *   ["s", "secret", app, name]       at every site
 *   ["r", "", "secret", app, name]   at the root only: below "r" nothing is replicated, and no app is called ""
 *
 * S1  A name has one row: the second kind unless a version that serves declares it without `at: "root"`.
 */
import { z } from "zod";
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import { prefixRange, type Range } from "../../store/model/range.ts";
import { decodeSystem, encodeSystem } from "../../store/model/system_value.ts";

/** Pattern of a secret's name, as in a manifest. */
export const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
/**
 * Bytes of the largest value: a private key with its chain, or a service account's file, fits; each isolate of the app
 * holds it.
 */
export const SECRET_BYTES_MAX = 16 * 1024;
/**
 * Secrets of one app: this bounds the frame that tells an isolate of them, and the words a log line is searched for.
 */
export const SECRETS_MAX = 100;

/** Tier at which a secret's row is. */
export type SecretTier = "root" | "everywhere";
/** Source of a value: a command, or the `.env` file of a dev cluster. */
export type SecretSource = "command" | "dotenv";

const recordSchema = z.object({
  sealed: z.base64url().transform((text) => Uint8Array.fromBase64(text, { alphabet: "base64url" })),
  setMs: z.number(),
  from: z.enum(["command", "dotenv"]).default("command"),
});
/** Record in a secret's row. */
export type SecretRecord = z.infer<typeof recordSchema>;

const LEAD: Readonly<Record<SecretTier, readonly string[]>> = {
  everywhere: ["s", "secret"],
  root: ["r", "", "secret"],
};
const TIERS = ["everywhere", "root"] as const;

/** Returns the key of a secret's row. */
export const secretKey = (tier: SecretTier, app: string, name: string): Key =>
  packKey([...LEAD[tier], app, name]);

/** Returns the range of all secrets of a tier; of one app where it is named. */
export const secretRange = (tier: SecretTier, app?: string): Range =>
  prefixRange(packKey([...LEAD[tier], ...app === undefined ? [] : [app]]));

/** Returns the ranges of all secrets of an app. */
export const secretRanges = (app: string): Range[] => TIERS.map((tier) => secretRange(tier, app));

/** Returns the tiers whose rows a site has. */
export const tiersAt = (isRoot: boolean): readonly SecretTier[] => isRoot ? TIERS : ["everywhere"];

/** Returns the app and the name in a secret's key. */
export function secretOf(key: Key): { app: string; name: string } {
  const parts = unpackKey(key);
  return { app: String(parts.at(-2)), name: String(parts.at(-1)) };
}

export const encodeSecret = ({ sealed, setMs, from }: SecretRecord): Uint8Array<ArrayBuffer> =>
  encodeSystem({
    sealed: sealed.toBase64({ alphabet: "base64url", omitPadding: true }),
    setMs,
    from,
  });

/** Decodes a secret's record. @throws where the bytes are none. */
export const decodeSecret = (bytes: Uint8Array): SecretRecord => recordSchema.parse(decodeSystem(bytes));
