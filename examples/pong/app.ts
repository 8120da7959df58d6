/**
 * Pong: tables that two people play at, from any two sites. A table is a stateful session; a WebSocket of a page is
 * attached to it wherever it lives, and a page whose site is gone comes back through another.
 */
import { contextOf, defineApp, type EnvOf } from "sojourn";
import { type Context, Hono } from "hono";
import { page } from "./page.ts";
import { SharedTable, Table } from "./table.ts";

type Env = EnvOf<Record<never, never>, { table: Table; shared: SharedTable }>;
type Ctx = Context<{ Bindings: Env }>;

const http = new Hono<{ Bindings: Env }>();

/** An app sees the same paths under `/pong/…` and `pong.localhost`; links need what was cut off. */
const prefixOf = (c: Ctx): string => c.req.header("x-forwarded-prefix") ?? "";

const TABLE = /^[a-z0-9-]{1,40}$/;

http.get("/", (c) => c.redirect(`${prefixOf(c)}/court-1`));

http.use("/:table/*", async (c, next) => {
  if (TABLE.test(c.req.param("table"))) return await next();
  return c.json({ problem: "a table's name is made of a-z, 0-9 and -, at most 40 of them" }, 404);
});

http.get("/:table", (c) => {
  const table = c.req.param("table");
  return c.html(page({ table, site: contextOf(c).site, prefix: prefixOf(c) }));
});

/** The table itself: its WebSocket is answered by the stateful session of that name. */
http.get("/:table/socket", (c) => {
  const name = c.req.param("table");
  const { table, shared } = c.env.sessions;
  return (name.startsWith("shared-") ? shared : table).get(name).fetch(c.req.raw);
});

export default defineApp({
  name: "pong",
  sessions: { table: Table, shared: SharedTable },
  assets: "./public",
  fetch: http.fetch,
});
