/** What a form or a JSON client sends, checked once by a schema. */
import * as z from "zod";
import type { Ctx } from "./page.ts";

/** The parsed fields, or what is wrong with them, for people. */
export type Form<T> = { readonly ok: true; readonly fields: T } | {
  readonly ok: false;
  readonly message: string;
};

/** Reads and checks a request's body: JSON, or a form in either encoding; files become data URLs. */
export async function readForm<T>(c: Ctx, schema: z.ZodType<T>): Promise<Form<T>> {
  const parsed = schema.safeParse(await fieldsOf(c));
  if (parsed.success) return { ok: true, fields: parsed.data };
  const wrong = parsed.error.issues.map((issue) => `${issue.path.join(".") || "the form"}: ${issue.message}`);
  return { ok: false, message: `That could not be stored. ${wrong.join("; ")}.` };
}

async function fieldsOf(c: Ctx): Promise<unknown> {
  if ((c.req.header("content-type") ?? "").startsWith("application/json")) {
    return await c.req.json().catch(() => null);
  }
  const fields: Record<string, string> = {};
  for (const [name, value] of await c.req.formData().catch(() => new FormData())) {
    if (typeof value === "string") fields[name] = value;
    else if (value.size > 0) fields[name] = `data:${value.type};base64,${(await value.bytes()).toBase64()}`;
  }
  return fields;
}
