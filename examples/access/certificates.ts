/**
 * Certificates: what a login has found out, as one row that every site can have.
 *
 * A1  A certificate is known by a secret of 128 bits that only its browser has, in a cookie that no script reads.
 *     The session's token says what a client has seen, never who it is.
 * A2  Revoking one changes the row instead of deleting it: it says for ever that it is void.
 * A3  `authorize` trusts the row that this site has. That it is not older than the session's own last login or
 *     logout is what session consistency promises; there is nothing here that asks the root.
 */
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Env, Permission } from "./resources.ts";

/** What Hono is told about this app. */
export interface App {
  Bindings: Env;
  /** Whom `authorize` found, on paths that need it. */
  Variables: { user: string };
}
export type Ctx = Context<App>;

const COOKIE = "access_certificate";
const SECRET_BYTES = 16;
/** A working day: after it one logs in again. */
const VALID_MS = 8 * 3_600_000;

const baseOf = (c: Ctx): string => `${c.req.header("x-forwarded-prefix") ?? ""}/`;

async function digestOf(secret: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret))).toHex();
}

/** Issues a certificate to the browser that asked. */
export async function issue(
  c: Ctx,
  holder: { readonly user: string; readonly permissions: readonly Permission[] },
): Promise<void> {
  await makeVoid(c); // a browser has one certificate
  const secret = crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toHex();
  await c.env.tables.certificates.put({
    digest: await digestOf(secret),
    user: holder.user,
    permissions: [...holder.permissions],
    until: Date.now() + VALID_MS,
    valid: true,
  });
  setCookie(c, COOKIE, secret, {
    path: baseOf(c),
    httpOnly: true,
    sameSite: "Lax",
    secure: new URL(c.req.url).protocol === "https:",
    maxAge: VALID_MS / 1000,
  });
}

/** Takes the browser's certificate away: void everywhere, and forgotten by the browser. */
export async function revoke(c: Ctx): Promise<void> {
  await makeVoid(c);
  deleteCookie(c, COOKIE, { path: baseOf(c) });
}

/** A2 */
async function makeVoid(c: Ctx): Promise<void> {
  const secret = getCookie(c, COOKIE);
  if (secret === undefined) return;
  const { certificates } = c.env.tables;
  const found = await certificates.get([await digestOf(secret)]);
  if (found !== null) await certificates.put({ ...found.value, valid: false });
}

/** Whether the request may do something. */
export type Decision =
  | { readonly ok: true; readonly user: string; readonly permissions: readonly Permission[] }
  | { readonly ok: false; readonly status: 401 | 403; readonly problem: string };

/** Decides by the certificate, as this site has it (A3). */
export async function authorize(c: Ctx, permission: Permission): Promise<Decision> {
  const refuse = (status: 401 | 403, problem: string): Decision => ({ ok: false, status, problem });
  const secret = getCookie(c, COOKIE);
  if (secret === undefined) return refuse(401, "log in first");
  const found = await c.env.tables.certificates.get([await digestOf(secret)]);
  if (found === null) return refuse(401, "this certificate is unknown: log in");
  const { user, permissions, until, valid } = found.value;
  if (!valid) return refuse(401, "this certificate was made void by a logout: log in again");
  if (until <= Date.now()) return refuse(401, "this certificate has expired: log in again");
  if (!permissions.includes(permission)) {
    return refuse(403, `${user} may ${permissions.join(" and ")}, not ${permission}`);
  }
  return { ok: true, user, permissions };
}
