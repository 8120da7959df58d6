/**
 * Accounts: registering and logging in run at the root (`routes` in app.ts), where the passwords are and where a
 * nickname is taken once; everything else about a user is an ordinary row.
 */
import { Hono } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { karmaKey } from "./counters.ts";
import { readForm } from "./form.ts";
import { newId } from "./ids.ts";
import { logIn, logOut } from "./login.ts";
import { type App, done, refuse, show } from "./page.ts";
import { hashPassword, passwordMatches } from "./passwords.ts";
import { nicknameSchema } from "./resources.ts";
import { named } from "./rows.ts";

export const accounts = new Hono<App>();

accounts.get("/register", (c) =>
  show(c, {
    title: "Register",
    data: { fields: Object.keys(registration.shape) },
    body: html`
      <form action="accounts" method="post">
        <label>Nickname <input name="nickname" required autocomplete="username"></label>
        <label>First name <input name="firstName" required autocomplete="given-name"></label>
        <label>Last name <input name="lastName" required autocomplete="family-name"></label>
        <label>Email <input type="email" name="email" required autocomplete="email"></label>
        <label>Password
                <input type="password" name="password" required minlength="8" autocomplete="new-password"></label>
        <button>Register</button>
      </form>
    `,
  }));

const registration = z.object({
  nickname: nicknameSchema,
  firstName: z.string().trim().min(1).max(60),
  lastName: z.string().trim().min(1).max(60),
  email: z.email(),
  password: z.string().min(8).max(200),
});

accounts.post("/accounts", async (c) => {
  const form = await readForm(c, registration);
  if (!form.ok) return refuse(c, 400, form.message);
  const { nickname, firstName, lastName, email, password } = form.fields;
  const nick = nickname.toLowerCase();
  const taken = `The nickname ${nickname} is taken. Choose another one.`;
  if (await c.env.tables.accounts.get([nick]) !== null) return refuse(c, 409, taken);
  // Somebody has to be an author, to make the others.
  const isFirst = (await c.env.tables.accounts.list({ limit: 1 })).rows.length === 0;
  const id = newId(Date.now());
  const hashed = await hashPassword(password, Number(c.env.vars.PASSWORD_ROUNDS));
  // The root is the only place that writes accounts, so a check here is a check everywhere.
  const claim = c.env.tables.accounts.atomic().check([nick], null).put({
    nick,
    user: id,
    email,
    password: hashed,
  });
  if (!(await claim.commit()).ok) return refuse(c, 409, taken);
  const access = isFirst ? "author" : "user";
  const entry = await c.env.tables.users.put({ id, nickname, nick, firstName, lastName, access });
  await logIn(c, entry.value);
  return done(c, { user: named("users", entry) }, `users/${id}`);
});

accounts.get("/login", (c) =>
  show(c, {
    title: "Log in",
    data: { as: c.var.login?.user ?? null },
    body: html`
      <form action="logins" method="post">
        <label>Nickname <input name="nickname" required autocomplete="username"></label>
        <label>Password
                <input type="password" name="password" required autocomplete="current-password"></label>
        <button>Log in</button>
      </form>
    `,
  }));

const credentials = z.object({ nickname: z.string().max(100), password: z.string().max(200) });

accounts.post("/logins", async (c) => {
  const form = await readForm(c, credentials);
  if (!form.ok) return refuse(c, 400, form.message);
  const account = await c.env.tables.accounts.get([form.fields.nickname.toLowerCase()]);
  const right = account !== null && await passwordMatches(form.fields.password, account.value.password);
  const user = right ? await c.env.tables.users.get([account.value.user]) : null;
  if (user === null) return refuse(c, 401, "There is no such nickname with that password.");
  const login = await logIn(c, user.value);
  return done(c, { user: named("users", user), author: login.author }, login.author ? "submissions" : "");
});

accounts.post("/logout", async (c) => {
  await logOut(c);
  return done(c, {}, "");
});

accounts.get("/users/:user", async (c) => {
  const user = await c.env.tables.users.get([c.req.param("user")]);
  if (user === null) return refuse(c, 404, "There is no such user.");
  const karma = (await c.env.kv.get<number>(karmaKey(user.value.id))).value ?? 0;
  const { nickname, firstName, lastName, access } = user.value;
  return show(c, {
    title: nickname,
    data: { user: named("users", user), karma },
    body: html`<p>${firstName} ${lastName}, ${access === "author" ? "author" : "reader"}, rated ${karma}.</p>
      ${
      c.var.login?.author === true && access === "user"
        ? html`<form action="users/${user.value.id}/author" method="post"><button>Make an author</button></form>`
        : ""
    }`,
  });
});

accounts.post("/users/:user/author", async (c) => {
  if (c.var.login?.author !== true) return refuse(c, 403, "Only authors make authors. Log in as one.");
  const user = await c.env.tables.users.get([c.req.param("user")]);
  if (user === null) return refuse(c, 404, "There is no such user.");
  const entry = await c.env.tables.users.put({ ...user.value, access: "author" });
  return done(c, { user: named("users", entry) }, `users/${user.value.id}`);
});
