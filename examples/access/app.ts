/**
 * Access: SessionStore's second scenario (functional partitioning). Passwords stay at the root, where `login` and
 * `logout` run; what they decide is a certificate, one row, which `authorize` reads at whichever edge its user is.
 * One session ties them together: the edge sees the certificate as the last login or logout left it.
 */
import { contextOf, defineApp } from "sojourn";
import { Hono } from "hono";
import * as z from "zod";
import { type App, authorize, type Ctx, issue, revoke } from "./certificates.ts";
import { mail } from "./mail.ts";
import { page } from "./page.ts";
import { hashPassword, passwordMatches } from "./passwords.ts";
import { PERMISSIONS, resources } from "./resources.ts";

const http = new Hono<App>();

const siteOf = (c: Ctx): string => contextOf(c).site;

http.get("/", (c) => c.html(page({ site: siteOf(c), prefix: c.req.header("x-forwarded-prefix") ?? "" })));

const credentials = z.object({
  name: z.string().trim().toLowerCase().regex(
    /^[a-z0-9][a-z0-9.-]{0,39}$/,
    "a name has up to 40 letters, digits, dots and dashes",
  ),
  password: z.string().min(8, "a password has at least 8 characters").max(200),
}, "send JSON: {name, password}");

async function readCredentials(c: Ctx) {
  const body: unknown = await c.req.json().catch(() => null);
  return credentials.safeParse(body);
}

const problemsOf = (error: z.ZodError): string => error.issues.map((issue) => issue.message).join(", ");
const roundsOf = (c: Ctx): number => Number(c.env.vars.PASSWORD_ROUNDS);

// ── At the root (`routes` below): whatever sees a password ──

http.post("/register", async (c) => {
  const parsed = await readCredentials(c);
  if (!parsed.success) return c.json({ problem: problemsOf(parsed.error) }, 400);
  const { name, password } = parsed.data;
  const hash = await hashPassword(password, roundsOf(c));
  // Only the root writes users, so a check here is a check everywhere.
  const claim = c.env.tables.users.atomic().check([name], null).put({
    name,
    hash,
    permissions: ["read", "send"],
  });
  if (!(await claim.commit()).ok) return c.json({ problem: `the name ${name} is taken` }, 409);
  return c.json({ name }, 201);
});

http.post("/login", async (c) => {
  const parsed = await readCredentials(c);
  if (!parsed.success) return c.json({ problem: problemsOf(parsed.error) }, 400);
  const { name, password } = parsed.data;
  const user = await c.env.tables.users.get([name]);
  // An unknown name takes as long as a wrong password.
  const hash = user?.value.hash ?? await hashPassword("nobody's password", roundsOf(c));
  const matches = await passwordMatches(password, hash);
  if (user === null || !matches) return c.json({ problem: "the name or the password is wrong" }, 401);
  const { permissions } = user.value;
  await issue(c, { user: name, permissions });
  return c.json({ user: name, permissions, site: siteOf(c) });
});

http.post("/logout", async (c) => {
  await revoke(c);
  return c.json({ user: null, site: siteOf(c) });
});

// ── At the edge ──

/** Who this is, and whether they may: 200, 401 (no valid certificate) or 403 (not this). */
http.get("/authorize", async (c) => {
  const asked = z.enum(PERMISSIONS).safeParse(c.req.query("permission") ?? "read");
  if (!asked.success) return c.json({ problem: `permission is one of ${PERMISSIONS.join(", ")}` }, 400);
  const decision = await authorize(c, asked.data);
  if (!decision.ok) return c.json({ problem: decision.problem, site: siteOf(c) }, decision.status);
  return c.json({ user: decision.user, permissions: decision.permissions, site: siteOf(c) });
});

http.route("/mail", mail);

export default defineApp({
  name: "access",
  ...resources,
  fetch: http.fetch,
  routes: { "/register": { at: "root" }, "/login": { at: "root" }, "/logout": { at: "root" } },
});
