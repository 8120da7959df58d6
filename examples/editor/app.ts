/**
 * Editor: SessionStore's first scenario (a mobile client). Somebody on a bus edits a picture, one step after the
 * other; the bus passes edge after edge, and each request goes to the one that is near. Every step builds on the one
 * before, wherever that was made.
 */
import { contextOf, defineApp } from "sojourn";
import { type Context, Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { page } from "./page.ts";
import { lookOf } from "./picture.ts";
import {
  addStep,
  DOCUMENT,
  type Env,
  followSteps,
  type Made,
  resources,
  type Step,
  stepsOf,
  undoStep,
} from "./steps.ts";

type Ctx = Context<{ Bindings: Env }>;

const http = new Hono<{ Bindings: Env }>();

/** An app sees the same paths under `/editor/…` and `editor.localhost`; links need what was cut off. */
const prefixOf = (c: Ctx): string => c.req.header("x-forwarded-prefix") ?? "";
const siteOf = (c: Ctx): string => contextOf(c).site;

/** What a page shows of a document. */
const view = (steps: readonly Step[]) => ({
  steps: steps.map(({ number, tool, site }) => ({ number, tool, site })),
  look: lookOf(steps.map((step) => step.tool)),
});

const answer = (c: Ctx, made: Made): Response =>
  made.ok ? c.json({ site: siteOf(c), ...view(made.steps) }, 201) : c.json({ problem: made.problem }, 400);

http.get("/", (c) => c.redirect(`${prefixOf(c)}/harbour`));

http.use("/:document/*", async (c, next) => {
  if (DOCUMENT.test(c.req.param("document"))) return await next();
  return c.json({ problem: "a document's name is made of a-z, 0-9 and -, at most 40 of them" }, 404);
});

http.get("/:document", async (c) => {
  const document = c.req.param("document");
  const steps = await stepsOf(c.env.tables.steps, document);
  return c.html(page({ document, site: siteOf(c), prefix: prefixOf(c), ...view(steps) }));
});

http.get("/:document/steps", async (c) => {
  const steps = await stepsOf(c.env.tables.steps, c.req.param("document"));
  return c.json({ site: siteOf(c), ...view(steps) });
});

http.post("/:document/steps", async (c) => {
  const body = await c.req.json<{ tool?: unknown } | null>().catch(() => null);
  const step = { document: c.req.param("document"), tool: body?.tool, site: siteOf(c) };
  return answer(c, await addStep(c.env.tables.steps, step));
});

http.post(
  "/:document/undo",
  async (c) => answer(c, await undoStep(c.env.tables.steps, c.req.param("document"))),
);

/** The document now and after each change, wherever it was made: for everybody who watches. */
http.get("/:document/events", (c) =>
  streamSSE(c, async (stream) => {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    for await (const steps of followSteps(c.env.tables.steps, c.req.param("document"), gone.signal)) {
      await stream.writeSSE({ data: JSON.stringify(view(steps)) });
    }
  }));

export default defineApp({ name: "editor", ...resources, fetch: http.fetch });
