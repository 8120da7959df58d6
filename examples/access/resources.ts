/** What the app declares. */
import { type EnvOf, table } from "sojourn";
import * as z from "zod";

/** What a certificate may allow. */
export const PERMISSIONS = ["read", "send", "delete"] as const;
/** One of {@link PERMISSIONS}. */
export type Permission = (typeof PERMISSIONS)[number];

const permissions = z.array(z.enum(PERMISSIONS));

export const resources = {
  tables: {
    /** Has no replica below the root: a stolen edge holds no password, not even a hashed one. */
    users: table({
      schema: z.object({ name: z.string(), hash: z.string(), permissions }),
      key: ["name"],
      at: "root",
    }),
    /** What a login decided. Named by a digest of the cookie, so that whoever reads the rows cannot use them. */
    certificates: table({
      schema: z.object({
        digest: z.string(),
        user: z.string(),
        permissions,
        /** Milliseconds since 1970. */
        until: z.number(),
        valid: z.boolean(),
      }),
      key: ["digest"],
    }),
    messages: table({
      schema: z.object({
        to: z.string(),
        at: z.number(),
        id: z.string(),
        from: z.string(),
        text: z.string().trim().min(1).max(2000),
      }),
      key: ["to", "at", "id"],
    }),
  },
  vars: {
    /** OWASP's advice of 2023 for PBKDF2 with SHA-256. */
    PASSWORD_ROUNDS: "600000",
  },
} as const;

/** The app's env. */
export type Env = EnvOf<typeof resources>;
