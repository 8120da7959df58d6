/**
 * Who the session is logged in as: one row a session, written at the root when the password was right, read
 * wherever the session goes. Session consistency is what makes this safe: the site that reads it has seen it.
 *
 * A cookie says that there is something to read, and nothing more: without it, the first page of every visitor
 * would ask the root for a row that is not there.
 */
import { contextOf } from "sojourn";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { createMiddleware } from "hono/factory";
import { type App, base, type Ctx, type Login } from "./page.ts";
import type { User } from "./resources.ts";

/** As long as the session's cookie lasts. */
const LOGIN_MS = 30 * 86_400_000;

const COOKIE = "board_login";

const keyOf = (c: Ctx) => ["login", contextOf(c).session.id];

/** Puts the login, or null, into every handler's context. */
export const withLogin = createMiddleware<App>(async (c, next) => {
  const isIn = getCookie(c, COOKIE) !== undefined;
  c.set("login", isIn ? (await c.env.kv.get<Login>(keyOf(c))).value : null);
  await next();
});

/** Logs the session in. */
export async function logIn(c: Ctx, user: User): Promise<Login> {
  const login = { user: user.id, nickname: user.nickname, author: user.access === "author" };
  await c.env.kv.set(keyOf(c), login, { expireIn: LOGIN_MS });
  setCookie(c, COOKIE, "1", { path: base(c), httpOnly: true, sameSite: "Lax", maxAge: LOGIN_MS / 1000 });
  return login;
}

/** Logs the session out. */
export async function logOut(c: Ctx): Promise<void> {
  await c.env.kv.delete(keyOf(c));
  deleteCookie(c, COOKIE, { path: base(c) });
}
