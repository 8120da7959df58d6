/**
 * Admin tokens and the roles that they give. A site's admin token file has one token a line, `ROLE TOKEN [NAME]`:
 *
 *     deploy 3f1c… ci
 *
 * In place of a role `agent:APP` or `agent:APP/CLASS` has a token for `sojourn agent` of that app, or of one of its
 * classes, and for nothing else. `send:APP` or `send:APP/QUEUE` has one that sends messages to the queues of an app, or
 * to one of them, and `consume:APP` or `consume:APP/QUEUE` one that takes them from there, and for nothing else. A line
 * with a token alone is an admin token. Empty lines are skipped, and comments: a `#` that begins a word, and what
 * follows it. A `#` inside a word is part of the word. A presented token is compared with all tokens, by digest: neither
 * length nor common prefix shows in the time it takes.
 *
 * RLE2  An error names a line by its number, and never shows what stands in it.
 */
import { createHash, timingSafeEqual } from "node:crypto";

/** Roles of a token; each includes those before it. */
export const ROLES = ["read", "deploy", "admin"] as const;
/** A role: one of {@link ROLES}. */
export type Role = (typeof ROLES)[number];

/** Reports whether a role includes another. */
export const allows = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** Characters of the shortest token: shorter ones can be guessed, as 16 characters of hexadecimal are 64 bits. */
const TOKEN_CHARS_MIN = 16;
/** Pattern of an agent's role: an app's name, and one of a class in it. */
const AGENT = /^agent:([a-z][a-z0-9-]{0,39})(?:\/([A-Za-z_$][A-Za-z0-9_$-]{0,99}))?$/;
/** Pattern of the role of who sends to queues or consumes from them: an app's name, and one of a queue in it. */
const SCOPED = /^(send|consume):([a-z][a-z0-9-]{0,39})(?:\/([A-Za-z_][A-Za-z0-9_-]{0,63}))?$/;
/** Pattern of a holder's name: it appears in the site's log. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;

/** Agents for which a token is good. */
export interface AgentScope {
  readonly app: string;
  /** Name of the class; null: agents of all the app's classes. */
  readonly class: string | null;
}

/** Queues for which a token is good, and what it may do with them. */
export interface QueueScope {
  readonly may: "send" | "consume";
  readonly app: string;
  /** Name of the queue; null: all queues of the app. */
  readonly queue: string | null;
}

/** What a token is good for. */
type Given =
  | { readonly role: Role }
  | { readonly role: "agent"; readonly scope: AgentScope }
  | { readonly role: "queue"; readonly scope: QueueScope };

/** Holder of a token. */
export type TokenHolder = Given & {
  /** Name that the file gives the token; null where it gives none. */
  readonly name: string | null;
};

/** Finds the holder of a request's token. */
export interface TokenRoles {
  /** Returns the holder of a request's `Authorization: Bearer …`, or null. */
  holderOf(headers: Headers): TokenHolder | null;
}

interface KnownToken {
  readonly holder: TokenHolder;
  readonly digest: Uint8Array;
}

/** The admin tokens of a site. */
export class AdminTokens implements TokenRoles {
  readonly #tokens: readonly KnownToken[];

  /** Parses a token file. */
  constructor(text: string) {
    this.#tokens = linesOf(text).flatMap((words, index) =>
      words.length === 0 ? [] : [knownToken(words, index + 1)]
    );
  }

  holderOf(headers: Headers): TokenHolder | null {
    const [, token] = /^Bearer (\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
    if (token === undefined) return null;
    const asked = digest(token);
    let found: TokenHolder | null = null;
    for (const { digest, holder } of this.#tokens) if (timingSafeEqual(digest, asked)) found = holder;
    return found;
  }

  /** Returns the role of a request's `Authorization: Bearer …`, or null. */
  roleOf(headers: Headers): TokenHolder["role"] | null {
    return this.holderOf(headers)?.role ?? null;
  }
}

/** Returns the first token of a file that is an admin's; null: there is none. */
export function firstAdminToken(text: string): string | null {
  for (const words of linesOf(text)) {
    const [word, token] = words.length === 1 ? ["admin", words[0]] : words;
    if (word === "admin" && token !== undefined) return token;
  }
  return null;
}

/** Returns the words of each line, without comments; none for an empty line. */
const linesOf = (text: string): string[][] =>
  text.split("\n").map((line) =>
    line.replace(/(^|\s)#.*/, "").trim().split(/\s+/).filter((word) => word !== "")
  );

function knownToken(words: readonly string[], line: number): KnownToken {
  const [word, token, name = null] = words.length === 1 ? ["admin", words[0]] : words;
  const role = roleOf(word);
  const isWrong = token === undefined || words.length > 3 ||
    token.length < TOKEN_CHARS_MIN || (name !== null && !NAME.test(name));
  if (role === null || isWrong) {
    throw new TypeError(
      `line ${line} of the admin tokens is not "ROLE TOKEN [NAME]": a role (${
        ROLES.join(", ")
      }, agent:APP or agent:APP/CLASS, send: or consume: with APP or APP/QUEUE), a token of at ` +
        `least ${TOKEN_CHARS_MIN} characters, and a name of letters, digits, ".", "_", "@" and "-"`,
    );
  }
  return { holder: { ...role, name }, digest: digest(token) };
}

/** Returns the role that a line's first word gives; null: the word is none. */
function roleOf(word: string = ""): Given | null {
  if (isRole(word)) return { role: word };
  const [, app, className = null] = AGENT.exec(word) ?? [];
  if (app !== undefined) return { role: "agent", scope: { app, class: className } };
  const [, may, ofApp, queue = null] = SCOPED.exec(word) ?? [];
  if (ofApp === undefined || (may !== "send" && may !== "consume")) return null;
  return { role: "queue", scope: { may, app: ofApp, queue } };
}

const digest = (token: string): Uint8Array => createHash("sha256").update(token).digest();
const isRole = (word: string | undefined): word is Role => ROLES.some((role) => role === word);
