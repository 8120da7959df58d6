/**
 * A document is its steps, one row each, and what one sees is made of them in order.
 *
 * D1  A step's number follows the last one that its author's request could see. Two people who edit at two sites at
 *     once may draw the same number: both steps stay, in the order of their ids, and nobody's work is overwritten.
 * D2  Undoing removes the last step that the request could see. That it is the author's own last one, made a moment
 *     ago at another site, is what the session promises.
 */
import { type EnvOf, table } from "sojourn";
import * as z from "zod";
import { TOOLS } from "./picture.ts";

/** A document's name, as it stands in paths. */
export const DOCUMENT = /^[a-z0-9][a-z0-9-]{0,39}$/;
/** A picture that was changed so often is nothing any more; and a page still shows them all. */
export const STEPS_MAX = 60;

/** What the app declares. */
export const resources = {
  tables: {
    steps: table({
      schema: z.object({
        document: z.string().regex(DOCUMENT),
        /** D1 */
        number: z.number().int().min(1),
        id: z.string(),
        tool: z.enum(TOOLS),
        /** Where it was made. */
        site: z.string(),
        /** Milliseconds since 1970. */
        at: z.number(),
      }),
      key: ["document", "number", "id"],
    }),
  },
} as const;

/** The app's env. */
export type Env = EnvOf<typeof resources>;
type Steps = Env["tables"]["steps"];
/** One step. */
export type Step = z.infer<typeof resources.tables.steps.schema>;

/** What a step did, or why it was not made. */
export type Made = { readonly ok: true; readonly steps: Step[] } | {
  readonly ok: false;
  readonly problem: string;
};

/** All steps of a document, in order. */
export async function stepsOf(steps: Steps, document: string): Promise<Step[]> {
  return (await steps.list({ prefix: [document], limit: STEPS_MAX })).rows.map((row) => row.value);
}

/** Adds a step behind those that this request sees; answers with all of them. */
export async function addStep(
  steps: Steps,
  { document, tool, site }: { document: string; tool: unknown; site: string },
): Promise<Made> {
  const parsed = z.enum(TOOLS).safeParse(tool);
  if (!parsed.success) return { ok: false, problem: `a tool is one of ${TOOLS.join(", ")}` };
  const before = await stepsOf(steps, document);
  if (before.length >= STEPS_MAX) {
    return { ok: false, problem: `a picture takes ${STEPS_MAX} steps; undo some` };
  }
  const step: Step = {
    document,
    number: (before.at(-1)?.number ?? 0) + 1,
    id: crypto.randomUUID(),
    tool: parsed.data,
    site,
    at: Date.now(),
  };
  await steps.put(step);
  return { ok: true, steps: [...before, step] };
}

/** Removes the last step that this request sees (D2). */
export async function undoStep(steps: Steps, document: string): Promise<Made> {
  const before = await stepsOf(steps, document);
  const last = before.pop();
  if (last === undefined) return { ok: false, problem: "there is nothing to undo" };
  await steps.delete([last.document, last.number, last.id]);
  return { ok: true, steps: before };
}

/** The steps now, and again after each change, wherever it was made; until the signal aborts. */
export async function* followSteps(
  steps: Steps,
  document: string,
  signal: AbortSignal,
): AsyncGenerator<Step[]> {
  for await (const { rows } of steps.watchList({ prefix: [document], limit: STEPS_MAX, signal })) {
    yield rows.map((row) => row.value);
  }
}
