/** Session tokens: no text but the one that was sealed opens, in whatever other form its bytes are written. */
import { Buffer } from "node:buffer";
import { deriveKeyRing, openToken, sealToken, TOKEN_PATH_MAX } from "../../store/session/token.ts";
import { Dice, mutateBytes } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const NOW_MS = Date.UTC(2026, 5, 1, 12, 30, 15, 250);
const CORPUS = 200;
const BORDERS = [0, 1, 127, 128, 2 ** 31, 2 ** 32, 2 ** 53 - 2];

/** The same bytes in another writing, or the text with something around it. */
const REWRITINGS: readonly ((text: string, dice: Dice) => string)[] = [
  (text) => Buffer.from(text, "base64url").toString("base64"),
  (text) => Buffer.from(text, "base64url").toString("hex"),
  (text) => text + "=",
  (text) => text + "==",
  (text) => text + "\n",
  (text) => ` ${text}`,
  (text) => `"${text}"`,
  (text) => text.replaceAll("-", "+").replaceAll("_", "/"),
  (text) => `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`,
  (text) => text.toUpperCase(),
  (text, dice) => {
    // The bits of the last character that stand for nothing.
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return text.slice(0, -1) + alphabet[dice.below(64)];
  },
  (text, dice) => {
    const at = dice.below(text.length);
    return text.slice(0, at) + String.fromCharCode(dice.below(65_536)) + text.slice(at + dice.below(2));
  },
  (text, dice) => text.slice(0, dice.below(text.length)) + text.slice(dice.below(text.length)),
];

/** The target. */
export const tokens: Target = {
  name: "tokens",
  says: "none opens",
  reaches: ["token_malformed", "token_forged", "token_foreign", "token_expired", "token_oversized"],
  quick: 5_000,
  open(seed) {
    const ring = deriveKeyRing([new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]);
    const dice = new Dice(seed);
    const random = { bytes: (length: number) => Uint8Array.from({ length }, () => dice.below(256)) };
    const corpus = Array.from({ length: CORPUS }, () =>
      sealToken(
        {
          session: random.bytes(16),
          sequence: dice.pick(BORDERS),
          replica: dice.below(2 ** 24),
          clock: dice.pick(BORDERS),
          path: Array.from({ length: dice.below(TOKEN_PATH_MAX + 1) }, () => dice.pick([null, ...BORDERS])),
          open: dice.below(2) === 0,
        },
        ring,
        { nowMs: NOW_MS, random },
      ));
    const genuine = new Set(corpus);
    for (const text of corpus) {
      if (!openToken(text, ring, NOW_MS).ok) throw new Finding(`a genuine token does not open: ${text}`);
    }
    return {
      attempt(dice) {
        const text = dice.pick(corpus);
        const mutant = dice.below(3) === 0
          ? dice.pick(REWRITINGS)(text, dice)
          : Buffer.from(mutateBytes(dice, bytesOf(text), bytesOf(dice.pick(corpus)))).toString("base64url");
        if (genuine.has(mutant)) return "unchanged";
        const opened = openToken(mutant, ring, NOW_MS);
        if (opened.ok) throw new Finding(`opened: ${JSON.stringify(mutant)}, made of ${text}`);
        return opened.code;
      },
    };
  },
};

const bytesOf = (text: string): Uint8Array => Buffer.from(text, "base64url");
