/** Pairs of rows that are always written together, listed by what they have in common. */
import { defineApp, type EnvOf, table } from "sojourn";
import { Hono } from "hono";
import * as z from "zod";

const resources = {
  tables: {
    halves: table({
      schema: z.object({
        id: z.string(),
        side: z.string(),
        group: z.number(),
        n: z.number(),
        text: z.string(),
      }),
      key: ["id", "side"],
      indexes: { group: ["group"] },
    }),
  },
} as const;

const http = new Hono<{ Bindings: EnvOf<typeof resources> }>();
http.get("/", (c) => c.text("pairs"));
/** Both halves, in another group each time. */
http.put("/pairs/:id/:n", async (c) => {
  const { id } = c.req.param(), n = Number(c.req.param("n")), text = await c.req.text();
  const atomic = c.env.tables.halves.atomic();
  for (const side of ["left", "right"]) atomic.put({ id, side, group: n % 3, n, text });
  await atomic.commit();
  return c.text("stored", 201);
});
/** One page of all of them, by index or by key: `id side n` each. */
http.get("/pairs", async (c) => {
  const index = c.req.query("by") === "key" ? undefined : "group" as const;
  const { rows, cursor } = await c.env.tables.halves.list({ index, limit: 1000 });
  return c.json({ rows: rows.map(({ value: { id, side, n } }) => [id, side, n]), isWhole: cursor === null });
});

export default defineApp({ name: "pairs", ...resources, fetch: http.fetch });
