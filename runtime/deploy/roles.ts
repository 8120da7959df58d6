/**
 * Admin tokens and what they allow. A site's admin token file has one token a line, each with the role before
 * it: `deploy 3f1c…`; a line with a token alone is an admin token. Empty lines and `#` comments are skipped.
 *
 * Tokens are compared by digest, so that neither length nor common prefix shows in the time it takes.
 */
import { createHash, timingSafeEqual } from "node:crypto";

/** What a token allows; each role includes those before it. */
export const ROLES = ["read", "deploy", "admin"] as const;
/** One of {@link ROLES}. */
export type Role = (typeof ROLES)[number];

/** Whether a role includes another. */
export const allows = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** Shorter ones can be guessed: 16 characters of hexadecimal are 64 bits. */
const TOKEN_CHARS_MIN = 16;

/** The admin tokens of a site. */
export class AdminTokens {
  readonly #tokens: { role: Role; digest: Uint8Array }[] = [];

  /**
   * @throws TypeError naming the line that is no `[role] token`.
   */
  constructor(text: string) {
    text.split("\n").forEach((line, index) => {
      const words = line.replace(/#.*/, "").trim().split(/\s+/).filter((word) => word !== "");
      if (words.length === 0) return;
      const [role, token] = words.length === 1 ? ["admin", words[0]] : words;
      if (!isRole(role) || token === undefined || words.length > 2 || token.length < TOKEN_CHARS_MIN) {
        throw new TypeError(
          `line ${index + 1} of the admin tokens is not "[${ROLES.join("|")}] TOKEN" ` +
            `with a token of at least ${TOKEN_CHARS_MIN} characters`,
        );
      }
      this.#tokens.push({ role, digest: digest(token) });
    });
  }

  /** The role of a request's `Authorization: Bearer …`, or null. */
  roleOf(headers: Headers): Role | null {
    const [, token] = /^Bearer (\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
    if (token === undefined) return null;
    const asked = digest(token);
    let found: Role | null = null;
    for (const known of this.#tokens) if (timingSafeEqual(known.digest, asked)) found = known.role;
    return found;
  }
}

const digest = (token: string): Uint8Array => createHash("sha256").update(token).digest();
const isRole = (word: string | undefined): word is Role => ROLES.some((role) => role === word);
