/** What the certificates protect: a mailbox. Every request of it is authorised where it arrives, at an edge. */
import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import * as z from "zod";
import { type App, authorize } from "./certificates.ts";
import type { Permission } from "./resources.ts";

const needs = (permission: Permission) =>
  createMiddleware<App>(async (c, next) => {
    const decision = await authorize(c, permission);
    if (!decision.ok) return c.json({ problem: decision.problem }, decision.status);
    c.set("user", decision.user);
    await next();
  });

const NEWEST = 50;
const draft = z.object({
  to: z.string().trim().toLowerCase().min(1).max(40),
  text: z.string().trim().min(1, "write something").max(2000, "a message has at most 2,000 characters"),
}, "send JSON: {to, text}");

export const mail = new Hono<App>();

mail.get("/", needs("read"), async (c) => {
  const { rows } = await c.env.tables.messages.list({ prefix: [c.var.user], reverse: true, limit: NEWEST });
  return c.json(rows.map((row) => row.value));
});

mail.post("/", needs("send"), async (c) => {
  const parsed = draft.safeParse(await c.req.json().catch(() => null));
  if (!parsed.success) {
    return c.json({ problem: parsed.error.issues.map((issue) => issue.message).join(", ") }, 400);
  }
  const message = { ...parsed.data, from: c.var.user, at: Date.now(), id: crypto.randomUUID() };
  await c.env.tables.messages.put(message);
  return c.json(message, 201);
});

/** Nobody who registers by himself gets `delete`: what 403 looks like. */
mail.delete("/:at/:id", needs("delete"), async (c) => {
  await c.env.tables.messages.delete([c.var.user, Number(c.req.param("at")), c.req.param("id")]);
  return c.body(null, 204);
});
