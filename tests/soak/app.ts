/** What the soak's clients use: rows with an index, KV values, sums, and both in one atomic write. */
import { defineApp, type EnvOf, table } from "sojourn";
import { Hono } from "hono";
import { z } from "zod";

const item = z.object({ id: z.string(), group: z.string(), by: z.string(), n: z.number() });
const resources = {
  tables: { items: table({ schema: item, key: ["id"], indexes: { byGroup: ["group", "id"] } }) },
} as const;
type Env = EnvOf<typeof resources>;

const http = new Hono<{ Bindings: Env }>();

http.post("/items", async (c) => {
  const { key, value, versionstamp } = await c.env.tables.items.put(item.parse(await c.req.json()));
  // The id in the head of the answer is what a trace of system calls can find it by (tests/e2e/sync_test.ts).
  return c.json({ rows: [{ table: "items", key, value, versionstamp }] }, 201, { "x-item": value.id });
});
http.get("/items/:id", async (c) => {
  const row = await c.env.tables.items.get([c.req.param("id")]);
  return c.json({ rows: row === null ? [] : [{ ...row, table: "items" }] });
});
http.delete("/items/:id", async (c) => {
  const done = await c.env.tables.items.atomic().delete([c.req.param("id")]).commit();
  return c.json({ deleted: done.ok ? done.versionstamp : null });
});
http.get("/groups/:group", async (c) => {
  const listed = await c.env.tables.items.list({
    index: "byGroup",
    prefix: [c.req.param("group")],
    limit: 1000,
  });
  return c.json({ rows: listed.rows.map((row) => ({ ...row, table: "items" })) });
});

const change = z.object({ value: z.object({ by: z.string(), n: z.number() }), add: z.number() });

/** A value, and an addition to the sum of the same name, in one atomic write. */
http.put("/kv/:key", async (c) => {
  const key = c.req.param("key");
  const { value, add } = change.parse(await c.req.json());
  const done = await c.env.kv.atomic().set(["value", key], value).sum(["sum", key], add).commit();
  if (!done.ok) throw new Error("an atomic write without checks was refused");
  return c.json({ rows: [{ table: "kv", key: [key], value, versionstamp: done.versionstamp }] }, 201);
});
http.get("/kv/:key", async (c) => {
  const key = c.req.param("key");
  const { value, versionstamp } = await c.env.kv.get(["value", key]);
  return c.json({ rows: versionstamp === null ? [] : [{ table: "kv", key: [key], value, versionstamp }] });
});
http.post("/sums/:key/:by", async (c) => {
  await c.env.kv.atomic().sum(["sum", c.req.param("key")], Number(c.req.param("by"))).commit();
  return c.json({ rows: [] }, 201);
});
http.get("/sums/:key", async (c) => {
  const { value } = await c.env.kv.get<number>(["sum", c.req.param("key")]);
  return c.json({ rows: [], sum: value ?? 0 });
});

const key = z.array(z.string());
const wanted = z.object({
  rows: z.array(z.object({ table: z.enum(["items", "kv"]), key })).default([]),
  sums: z.array(key).default([]),
});

/** What the audit asks at the root. */
http.post("/admin/read", async (c) => {
  const { rows, sums } = wanted.parse(await c.req.json());
  const found = await Promise.all(rows.map(async ({ table, key: [name = ""] }) => {
    if (table === "items") return await c.env.tables.items.get([name]);
    const { value, versionstamp } = await c.env.kv.get(["value", name]);
    return versionstamp === null ? null : { value, versionstamp };
  }));
  const counted = await Promise.all(sums.map((sum) => c.env.kv.get<number>(sum)));
  return c.json({ rows: found, sums: counted.map((entry) => entry.value) });
});

export default defineApp({
  ...resources,
  name: "soak",
  fetch: http.fetch,
  routes: { "/admin/*": { at: "root" } },
});
