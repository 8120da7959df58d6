/**
 * What the board stores, and under which names. Every row has one writer or is written once; what many people
 * change at the same time (counts, ratings) is a sum in kv, which merges (counters.ts).
 */
import { type EnvOf, table } from "sojourn";
import * as z from "zod";
import { ID_PATTERN } from "./ids.ts";

const id = z.string().regex(ID_PATTERN);
const text = (max: number) => z.string().trim().min(1).max(max);

/** RUBBoS's limit, and ours. */
export const TITLE_MAX = 100;
/** Attachments are data URLs kept in the row: 100 KB of picture is 137 KB of base64. */
const ATTACHMENT_MAX = 200_000;
/** As much of a title or subject as can be searched for. */
export const SEARCHED_MAX = 40;

/** A nickname: what one logs in with, unique whatever its case. */
export const nicknameSchema = z.string().regex(/^[A-Za-z0-9_.-]{2,30}$/, {
  error: "a nickname has 2 to 30 letters, digits, _ . or -",
});

/** Who may see and do what: everybody reads and writes; authors review submissions and moderate. */
export const accessSchema = z.enum(["user", "author"]);

const accountSchema = z.object({
  /** The nickname in lower case. */
  nick: z.string(),
  user: id,
  email: z.email(),
  /** See passwords.ts. */
  password: z.string(),
});

const userSchema = z.object({
  id,
  nickname: nicknameSchema,
  /** The nickname in lower case, for search. */
  nick: z.string(),
  firstName: text(60),
  lastName: text(60),
  access: accessSchema,
});

const storySchema = z.object({
  id,
  title: text(TITLE_MAX),
  /** The title's beginning in lower case, for search. */
  sought: z.string().max(SEARCHED_MAX),
  body: text(20_000),
  writer: id,
  category: z.string(),
});

const commentSchema = z.object({
  story: id,
  /** The comment that this one answers; empty for one on the story itself. */
  parent: z.union([id, z.literal("")]),
  id,
  /** A user, or empty for somebody who did not log in. */
  writer: z.union([id, z.literal("")]),
  subject: text(TITLE_MAX),
  sought: z.string().max(SEARCHED_MAX),
  text: text(20_000),
  attachment: z.string().startsWith("data:").max(ATTACHMENT_MAX).optional(),
});

const moderationSchema = z.object({
  id,
  moderator: id,
  story: id,
  comment: z.string(),
  rating: z.number().int().min(-1).max(1),
});

/** Lists by category and by title go on in the order of ids, hence by age: the key follows the indexed fields. */
const stories = () =>
  table({ schema: storySchema, key: ["id"], indexes: { category: ["category"], title: ["sought"] } });
const comments = () =>
  table({ schema: commentSchema, key: ["story", "parent", "id"], indexes: { subject: ["sought"] } });

/** Everything the board declares. */
export const resources = {
  tables: {
    /** Passwords stay at the root, and with them the one place that says which nicknames are taken. */
    accounts: table({ schema: accountSchema, key: ["nick"], at: "root" }),
    users: table({ schema: userSchema, key: ["id"], indexes: { nickname: ["nick"] } }),
    categories: table({ schema: z.object({ id: z.string(), name: text(60) }), key: ["id"] }),
    /** By id, hence by age: the newest stories, and those between two dates, are ranges. */
    stories: stories(),
    /** Stories of more than a few days ago, and their comments: moved here (archive.ts), read by the same pages. */
    oldStories: stories(),
    submissions: table({ schema: storySchema, key: ["id"] }),
    /** One level of a discussion is one range. */
    comments: comments(),
    oldComments: comments(),
    moderations: table({ schema: moderationSchema, key: ["id"] }),
  },
  vars: {
    /** Opens the routes below /admin to whoever sends it as a bearer token; empty: they are closed. */
    ADMIN_TOKEN: "",
    /** Rounds of PBKDF2; OWASP's advice of 2023 for HMAC-SHA-256. */
    PASSWORD_ROUNDS: "600000",
  },
};

export type Env = EnvOf<typeof resources>;
export type Account = z.infer<typeof accountSchema>;
export type User = z.infer<typeof userSchema>;
export type Story = z.infer<typeof storySchema>;
export type Comment = z.infer<typeof commentSchema>;
export type Moderation = z.infer<typeof moderationSchema>;

/** What is searched for of a title or a subject. */
export const sought = (title: string): string => title.toLowerCase().slice(0, SEARCHED_MAX);
