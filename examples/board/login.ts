/**
 * Who the session is logged in as: one row a session, written at the root when the password was right, read
 * wherever the session goes. Session consistency is what makes this safe: the site that reads it has seen it.
 */
import type { AppContext } from "sojourn";
import { createMiddleware } from "hono/factory";
import type { App, Ctx, Login } from "./page.ts";
import type { User } from "./resources.ts";

/** As long as the session's cookie lasts. */
const LOGIN_MS = 30 * 86_400_000;

const keyOf = (c: Ctx) => ["login", (c.executionCtx as unknown as AppContext).session.id];

/** Puts the login, or null, into every handler's context. */
export const withLogin = createMiddleware<App>(async (c, next) => {
  c.set("login", (await c.env.kv.get<Login>(keyOf(c))).value);
  await next();
});

/** Logs the session in. */
export async function logIn(c: Ctx, user: User): Promise<Login> {
  const login = { user: user.id, nickname: user.nickname, author: user.access === "author" };
  await c.env.kv.set(keyOf(c), login, { expireIn: LOGIN_MS });
  return login;
}

/** Logs the session out. */
export const logOut = (c: Ctx): Promise<void> => c.env.kv.delete(keyOf(c));
