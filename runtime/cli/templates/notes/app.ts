/**
 * Notes: a table with an index, a Hono app over it, and a page in public/ that uses both.
 */
import { defineApp, type EnvOf, table } from "sojourn";
import { Hono } from "hono";
import * as z from "zod";

const resources = {
  tables: {
    notes: table({
      schema: z.object({ id: z.string(), text: z.string().min(1).max(500), at: z.number() }),
      key: ["id"],
      indexes: { newest: ["at"] },
    }),
  },
} as const;

const http = new Hono<{ Bindings: EnvOf<typeof resources> }>();

http.get("/notes", async (c) => {
  const { rows } = await c.env.tables.notes.list({ index: "newest", reverse: true, limit: 50 });
  return c.json(rows.map((row) => row.value));
});

http.post("/notes", async (c) => {
  const { text } = await c.req.json<{ text: string }>();
  const note = { id: crypto.randomUUID(), text, at: Date.now() };
  await c.env.tables.notes.put(note); // a bad row is answered with 422 and what is wrong with it
  return c.json(note, 201);
});

http.delete("/notes/:id", async (c) => {
  await c.env.tables.notes.delete([c.req.param("id")]);
  return c.body(null, 204);
});

// Files of public/ come first; what is none of them comes here.
export default defineApp({ ...resources, name: "app-name", assets: "./public", fetch: http.fetch });
