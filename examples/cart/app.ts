/**
 * Cart: a shop whose carts and shelves are stateful sessions. A customer may come to any site with each request; the cart
 * is at one, and when that is lost, at another.
 */
import { contextOf, defineApp } from "sojourn";
import { type Context, Hono } from "hono";
import * as z from "zod";
import { articleOf, articles } from "./articles.ts";
import { type Answer, Cart, type Env, resources, Shelf } from "./sessions.ts";

type Ctx = Context<{ Bindings: Env }>;

const http = new Hono<{ Bindings: Env }>();

/** What is for sale. */
http.get("/", (c) => c.json({ site: contextOf(c).site, articles: articles() }));

/** How many are left. */
http.get("/shelves/:article", async (c) => {
  const article = articleOf(c.req.param("article"));
  if (article === undefined) return c.json({ problem: "there is no such article" }, 404);
  const left = await c.env.sessions.shelf.get(article.name).left();
  return c.json({ article: article.name, left });
});

http.get("/orders", async (c) => {
  const { rows } = await c.env.tables.orders.list({ limit: 100 });
  return c.json(rows.map(({ value }) => value));
});

/** A new cart, under a name that nobody has. */
http.post("/carts", async (c) => c.json(await c.env.sessions.cart.create().show(), 201));

const CART = /^[a-z0-9][a-z0-9.-]{0,99}$/i;

http.use("/carts/:cart/*", async (c, next) => {
  if (CART.test(c.req.param("cart"))) return await next();
  return c.json({ problem: "a cart's name is made of letters, digits, dots and dashes, at most 100" }, 404);
});

const cartOf = (c: Ctx) => c.env.sessions.cart.get(c.req.param("cart") ?? "");

const answered = (c: Ctx, answer: Answer) =>
  answer.ok ? c.json(answer.contents) : c.json({ problem: answer.problem }, 409);

http.get("/carts/:cart", async (c) => c.json(await cartOf(c).show()));

const wanted = z.object({
  article: z.string().refine((name) => articleOf(name) !== undefined, "there is no such article"),
  count: z.number().int().min(-100).max(100).default(1),
}, "send JSON: {article, count}");

/** `{article, count}` more, or less. With an `Idempotency-Key`, sending it again does nothing more. */
http.post("/carts/:cart/lines", async (c) => {
  const line = wanted.safeParse(await c.req.json().catch(() => null));
  if (!line.success) {
    return c.json({ problem: line.error.issues.map(({ message }) => message).join(", ") }, 400);
  }
  const key = c.req.header("idempotency-key")?.slice(0, 200) ?? null;
  return answered(c, await cartOf(c).add(line.data.article, line.data.count, key));
});

http.post("/carts/:cart/order", async (c) => answered(c, await cartOf(c).checkout()));

export default defineApp({
  name: "cart",
  ...resources,
  sessions: { cart: Cart, shelf: Shelf },
  fetch: http.fetch,
});
