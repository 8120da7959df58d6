/**
 * The operator's routes, at the root, for whoever has the token that the variable ADMIN_TOKEN names: filling the
 * board, archiving, and reading rows and counters as the root has them.
 */
import { contextOf } from "sojourn";
import { Hono } from "hono";
import * as z from "zod";
import { moveOld } from "./archive.ts";
import type { App, Ctx } from "./page.ts";
import { type Env, resources } from "./resources.ts";

export const admin = new Hono<App>();

/** Index rows count against the 1,000 mutations of an atomic, too: three a row at most. */
const ROWS_PER_ATOMIC = 250;
/** Under the 4 MiB of an atomic, with keys and index rows. */
const BYTES_PER_ATOMIC = 3 * 2 ** 20;

admin.use("/admin/*", async (c, next) => {
  const token = c.env.vars.ADMIN_TOKEN;
  if (token === "" || c.req.header("authorization") !== `Bearer ${token}`) {
    return c.json({
      error: "The operator's routes need `Authorization: Bearer` with the value of ADMIN_TOKEN.",
    }, 403);
  }
  await next();
});

type TableName = keyof Env["tables"];
const tableName = z.enum(Object.keys(resources.tables) as [TableName, ...TableName[]]);
const key = z.array(z.string()).min(1);
const batch = z.object({
  rows: z.array(z.object({ table: tableName, value: z.record(z.string(), z.unknown()) })).max(10_000).default(
    [],
  ),
  sums: z.array(z.object({ key, by: z.number() })).max(10_000).default([]),
});

/** What is needed of a table whose rows are known by name only; each table's schema checks them. */
interface AnyTable {
  atomic(): { put(row: unknown): unknown; commit(): Promise<{ readonly ok: boolean }> };
  getMany(
    keys: readonly (readonly string[])[],
  ): Promise<readonly ({ versionstamp: string; value: unknown } | null)[]>;
}

const tableOf = (c: Ctx, name: TableName): AnyTable => c.env.tables[name] as unknown as AnyTable;

admin.post("/admin/rows", async (c) => {
  const { rows, sums } = batch.parse(await c.req.json());
  for (const [table, values] of Map.groupBy(rows, (row) => row.table)) {
    for (const chunk of chunks(values.map((row) => row.value))) {
      const atomic = tableOf(c, table).atomic();
      for (const value of chunk) atomic.put(value);
      await atomic.commit();
    }
  }
  for (let i = 0; i < sums.length; i += 1000) {
    const atomic = c.env.kv.atomic();
    for (const sum of sums.slice(i, i + 1000)) atomic.sum(sum.key, sum.by);
    await atomic.commit();
  }
  return c.json({ rows: rows.length, sums: sums.length }, 201);
});

function* chunks<Row>(rows: readonly Row[]): Iterable<Row[]> {
  let chunk: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    const size = JSON.stringify(row).length;
    if (chunk.length >= ROWS_PER_ATOMIC || chunk.length > 0 && bytes + size > BYTES_PER_ATOMIC) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(row);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}

const wanted = z.object({
  rows: z.array(z.object({ table: tableName, key })).max(1000).default([]),
  sums: z.array(key).max(1000).default([]),
});

admin.post("/admin/read", async (c) => {
  const { rows, sums } = wanted.parse(await c.req.json());
  const found = await Promise.all(
    rows.map(async (row) => (await tableOf(c, row.table).getMany([row.key]))[0] ?? null),
  );
  const counted = await Promise.all(sums.map((sum) => c.env.kv.get<number>(sum)));
  return c.json({
    site: contextOf(c).site,
    rows: found,
    sums: counted.map((entry) => entry.value),
  });
});

admin.post("/admin/archive", async (c) => {
  const { olderThanDays } = z.object({ olderThanDays: z.number().min(0) }).parse(await c.req.json());
  return c.json({ moved: await moveOld(c, Date.now() - olderThanDays * 86_400_000, 20) });
});
