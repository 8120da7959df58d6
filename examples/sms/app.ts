/**
 * A gateway for text messages, after section 1.2 of GeoRep (Brahneborg et al., ICSOFT 2020): companies post messages at
 * any site, a broker hands each to the operator of its number, and what operators report is there for the companies.
 * No site leads: each message is at two before its company hears that it is posted.
 */
import { contextOf, defineApp, type MessageToSend } from "sojourn";
import { type Context, Hono } from "hono";
import { streamSSE } from "hono/streaming";
import * as z from "zod";
import { handOver, writeDown } from "./broker.ts";
import { type Env, Operator } from "./operator.ts";
import { contractFor, contractOf, CONTRACTS, NOBODY } from "./operators.ts";
import { resources, textMessage } from "./resources.ts";

type Ctx = Context<{ Bindings: Env }>;

const http = new Hono<{ Bindings: Env }>();

/** Reads what a request says, or answers why it can't be read. */
async function said<T>(c: Ctx, schema: z.ZodType<T>): Promise<T | Response> {
  const read = schema.safeParse(await c.req.json().catch(() => null));
  if (read.success) return read.data;
  return c.json({ problem: read.error.issues.map(({ message }) => message).join(", ") }, 422);
}

// Companies

const posted = textMessage.omit({ company: true }).extend({
  to: textMessage.shape.to.refine((to) => contractFor(to) !== NOBODY, "no operator has this number"),
  /** The company's own: a message that is posted again under it is the same message. */
  id: z.string().min(1).max(100).optional(),
});
/** One message, or up to 500 of them. */
const postedSchema = z.union([posted, z.array(posted).min(1).max(500)]);

http.use("/companies/:company/*", async (c, next) => {
  if (textMessage.shape.company.safeParse(c.req.param("company")).success) return await next();
  return c.json({ problem: "a company is a-z, 0-9 and -, at most 40 of them" }, 404);
});

/** 202: two sites have them on disk. Whoever hears nothing posts them again, with their ids, at the same site. */
http.post("/companies/:company/messages", async (c) => {
  const company = c.req.param("company");
  const read = await said(c, postedSchema);
  if (read instanceof Response) return read;
  const messages = [read].flat().map(({ id = crypto.randomUUID(), ...text }) => ({
    id: `${company}:${id}`, // two companies may have the same ids
    body: { company, ...text },
  })) satisfies MessageToSend[];
  await c.env.queues.outgoing.sendBatch(messages);
  const ids = messages.map(({ id }) => id);
  return c.json(Array.isArray(read) ? { ids } : { id: ids[0] }, 202);
});

/** What became of the newest hundred that are done, the newest first. */
http.get("/companies/:company/messages", async (c) => {
  const { reports, failures } = c.env.tables, company = c.req.param("company");
  const [delivered, failed] = await Promise.all([
    reports.list({ index: "ofCompany", prefix: [company], reverse: true }),
    failures.list({ prefix: [company] }),
  ]);
  const messages = [
    ...delivered.rows.map(({ value: { deliveredMs: atMs, ...report } }) => ({
      ...{ id: report.id, state: "delivered", to: report.to, atMs, operator: report.operator },
      serial: report.serial,
    })),
    ...failed.rows.map(({ value: { failedMs: atMs, ...failure } }) => ({
      ...{ id: failure.id, state: "failed", to: failure.to, atMs, operator: failure.operator },
      why: failure.why,
    })),
  ];
  return c.json({ messages: messages.sort((a, b) => b.atMs - a.atMs) });
});

// Operators

/** All of them, also those that have nothing to do yet. */
function operatorRows(
  rows: readonly { readonly value: z.infer<typeof resources.tables.operators.schema> }[],
) {
  const none = { isOut: false, slowMs: 0, posted: 0, waiting: 0, taken: 0, delivered: 0, failed: 0 };
  return [...CONTRACTS, NOBODY].map((contract) => ({
    ...{ ...none, ...contract },
    ...rows.find(({ value }) => value.name === contract.name)?.value,
  }));
}

http.get("/operators", async (c) => c.json(operatorRows((await c.env.tables.operators.list()).rows)));

const mood = z.strictObject({
  isOut: z.boolean().optional(),
  slowMs: z.int().min(0).max(10_000).optional(),
  perSecond: z.int().min(1).max(1_000).optional(),
}, "an operator takes {isOut, slowMs, perSecond}");

/** What happens at an operator is up to whoever looks at the page. */
http.post("/operators/:name", async (c) => {
  const name = c.req.param("name");
  if (contractOf(name) === undefined) return c.json({ problem: "there is no such operator" }, 404);
  const read = await said(c, mood);
  if (read instanceof Response) return read;
  await c.env.sessions.operator.get(name).behave(read);
  return c.json({ name, ...read });
});

// The page

const REPORTS_SHOWN = 12, FAILURES_SHOWN = 20;
/** A burst of changes is one event. */
const EVENT_MS = 150;

/** What changes at operators, in reports and in failures, as events. */
http.get("/live", (c) =>
  streamSSE(c, async (stream) => {
    const gone = new AbortController(), { signal } = gone, { tables } = c.env;
    stream.onAbort(() => gone.abort());
    const tell = async <Page>(event: string, pages: AsyncIterable<Page>, shown: (page: Page) => unknown) => {
      for await (const page of pages) {
        await stream.writeSSE({ event, data: JSON.stringify(shown(page)) });
        await stream.sleep(EVENT_MS);
      }
    };
    const values = ({ rows }: { readonly rows: readonly { readonly value: unknown }[] }) =>
      rows.map(({ value }) => value);
    await stream.writeSSE({ event: "site", data: JSON.stringify(contextOf(c).site) });
    const newest = { index: "newest", reverse: true, signal } as const;
    await Promise.all([
      tell("operators", tables.operators.watchList({ signal }), ({ rows }) => operatorRows(rows)),
      tell("reports", tables.reports.watchList({ ...newest, limit: REPORTS_SHOWN }), values),
      tell("failures", tables.failures.watchList({ ...newest, limit: FAILURES_SHOWN }), values),
    ]).catch((error) => {
      // A page that goes ends what is being read for it.
      if (!signal.aborted) throw error;
    });
  }));

export default defineApp({
  name: "sms",
  ...resources,
  sessions: { operator: Operator },
  assets: "./public",
  fetch: http.fetch,
  queue: async ({ queue, messages }, env: Env) => {
    await (queue === "reports" ? writeDown : handOver)(env, messages);
  },
});
