/**
 * Admin paths of queues. What a site owns is asked of each of them, from wherever a call arrives; what is ordered for a
 * whole queue is in the app's row, written at the root.
 *
 * QA1 What could not be asked of a site is told by the site's name: an answer never passes for all of it.
 */
import { z } from "zod";
import type { Role } from "../deploy/roles.ts";
import { problemResponse } from "../gateway/problem.ts";
import { readLimited } from "./body.ts";
import { changing } from "./deploy.ts";
import { whyNot } from "./ended_sessions.ts";
import type { QueueAdmin } from "./queue_admin.ts";
import { type AdminContext, type AdminHono, type AdminServices, unknownApp } from "./services.ts";
import { readSites } from "./sites.ts";

/** Dead messages in one answer: each may have a body of 1 MiB. */
const PAGE_MAX = 100;
/** Ids in one call. */
const IDS_MAX = 500;
const IDS_BYTES_MAX = 256 * 1024;
/** Time in which a site answers what only reads, and what changes many messages. */
const READ_MS = 5_000, CHANGE_MS = 60_000;

const idsSchema = z.strictObject({ ids: z.array(z.string().min(1).max(200)).min(1).max(IDS_MAX).optional() });
const statusSchema = z.array(z.looseObject({
  queue: z.string(),
  ...{ ready: z.number(), delayed: z.number(), lent: z.number(), dead: z.number(), bytes: z.number() },
  oldestMs: z.number().nullable(),
}));
const deadSchema = z.object({ messages: z.array(z.looseObject({ tuple: z.string() })) });
const countSchema = z.object({ count: z.number() });

/** What a site owns of a queue. */
type Owned = Pick<
  z.infer<typeof statusSchema>[number],
  "ready" | "delayed" | "lent" | "dead" | "bytes" | "oldestMs"
>;

/** Site that did not answer. */
interface Missing {
  readonly site: string;
  readonly why: string;
}

/** Adds the routes. */
export function queueRoutes(app: AdminHono, services: AdminServices, queues: QueueAdmin): void {
  const isHere = (c: AdminContext) => c.req.query("here") === "1";

  app.get("/queues", async (c) => {
    if (isHere(c)) return c.json(queues.status());
    const name = c.req.query("app");
    if (name !== undefined && services.apps.get(name) === undefined) return unknownApp(name);
    const { answers, missing } = await askedAll(services, c, {
      here: () => Promise.resolve(queues.status()),
      schema: statusSchema,
      waitMs: READ_MS,
    });
    return c.json({ queues: summed(queues, answers, name), missing });
  });

  app.get("/queues/:app/:queue/dead", async (c) => {
    const { app: name, queue } = c.req.param();
    const limit = Number(c.req.query("limit") ?? PAGE_MAX);
    const after = c.req.query("after");
    if (!Number.isInteger(limit) || limit < 1 || limit > PAGE_MAX) {
      return problemResponse("query_invalid", `limit takes 1 to ${PAGE_MAX}`);
    }
    if (isHere(c)) {
      const page = { limit, ...after === undefined ? {} : { after } };
      return c.json({ messages: await queues.dead(name, queue, page) });
    }
    return unknownIn(services, queues, name, queue) ?? await deadOf(services, queues, c, { limit, after });
  });

  for (const verb of ["redrive", "remove"] as const) {
    app.post(`/queues/:app/:queue/${verb}`, async (c) => {
      const { app: name, queue } = c.req.param();
      const body = await readLimited(c.req.raw.body, IDS_BYTES_MAX);
      const said = body === null ? null : idsSchema.safeParse(jsonOf(body));
      if (said === null || !said.success) {
        return problemResponse(
          "query_invalid",
          `${verb} takes {"ids": […]} of up to ${IDS_MAX} messages, or {}`,
        );
      }
      const { ids } = said.data;
      if (isHere(c)) return c.json({ count: await queues[verb](name, queue, ids) });
      const unknown = unknownIn(services, queues, name, queue);
      if (unknown !== null) return unknown;
      const { answers, missing } = await askedAll(services, c, {
        here: async () => ({ count: await queues[verb](name, queue, ids) }),
        schema: countSchema,
        body: JSON.stringify(said.data),
        waitMs: CHANGE_MS,
      });
      const count = [...answers.values()].reduce((sum, one) => sum + one.count, 0);
      return c.json({ app: name, queue, count, missing });
    });
  }

  for (const verb of ["pause", "resume", "purge"] as const) {
    app.post(`/queues/:app/:queue/${verb}`, async (c) => {
      const { app: name, queue } = c.req.param();
      return await changing(
        services,
        c,
        ({ queues: orders }) =>
          verb === "purge" ? orders.purge(name, queue) : orders.pause(name, queue, verb === "pause"),
      );
    });
  }
}

/** Returns the refusal of a call for a queue that there is not; null: there is, or it has messages here. */
function unknownIn(services: AdminServices, queues: QueueAdmin, app: string, queue: string): Response | null {
  const isDeclared = queues.declared().some((one) => one.app === app && one.queue === queue);
  if (isDeclared || queues.status().some((one) => one.queue === `${app}/${queue}`)) return null;
  if (services.apps.get(app) === undefined) return unknownApp(app);
  return problemResponse(
    "queue_unknown",
    `${app} has no queue called ${JSON.stringify(queue.slice(0, 100))}`,
  );
}

/**
 * Asks all sites the same call for what they own; this one by `here`. Those that can't be asked, or answer something
 * else, are told with the reason (QA1).
 */
async function askedAll<T>(
  { site, system, forward }: Pick<AdminServices, "site" | "system" | "forward">,
  c: AdminContext,
  { here, schema, waitMs, body, sites, query }: {
    readonly here: () => Promise<unknown>;
    readonly schema: z.ZodType<T>;
    readonly waitMs: number;
    readonly body?: string;
    readonly sites?: readonly string[];
    readonly query?: Readonly<Record<string, string>>;
  },
): Promise<{ readonly answers: ReadonlyMap<string, T>; readonly missing: readonly Missing[] }> {
  const { pathname } = new URL(c.req.url), role: Role = c.env.role ?? "read";
  const search = new URLSearchParams({ ...query, here: "1" });
  const answers = new Map<string, T>(), missing: Missing[] = [];
  const ask = async (to: string): Promise<T | string> => {
    if (to === site) return schema.parse(await here());
    const request = new Request(`http://${to}${pathname}?${search}`, {
      method: c.req.method,
      signal: AbortSignal.timeout(waitMs),
      ...body === undefined ? {} : { body },
    });
    const answer = await forward(to, request, role);
    if (!answer.ok) return await whyNot(answer);
    const read = schema.safeParse(await answer.json());
    return read.success ? read.data : "its answer can't be read";
  };
  const asked = sites ?? (await readSites(system)).map(({ id }) => id);
  await Promise.all(asked.map(async (to) => {
    const told = await ask(to).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error)
    );
    if (typeof told === "string") missing.push({ site: to, why: told });
    else answers.set(to, told);
  }));
  missing.sort((a, b) => a.site < b.site ? -1 : 1);
  return { answers, missing };
}

/** Returns all queues with what each site owns of them, and the sum. */
function summed(
  queues: QueueAdmin,
  answers: ReadonlyMap<string, z.infer<typeof statusSchema>>,
  only: string | undefined,
) {
  const declared = new Map(queues.declared().map((one) => [`${one.app}/${one.queue}`, one]));
  const owned = new Map<string, (Owned & { readonly site: string })[]>();
  for (const topic of declared.keys()) owned.set(topic, []);
  for (const [site, all] of answers) {
    for (const { queue, ready, delayed, lent, dead, bytes, oldestMs } of all) {
      const isEmpty = ready + delayed + lent + dead === 0;
      const parts = owned.get(queue) ?? [];
      if (!isEmpty) owned.set(queue, [...parts, { site, ready, delayed, lent, dead, bytes, oldestMs }]);
    }
  }
  return [...owned].filter(([topic]) => only === undefined || topic.startsWith(`${only}/`)).map(
    ([topic, sites]) => {
      const found = declared.get(topic), [app = "", queue = ""] = topic.split("/");
      const sum = (field: "ready" | "delayed" | "lent" | "dead" | "bytes") =>
        sites.reduce((sum, one) => sum + one[field], 0);
      const ages = sites.flatMap(({ oldestMs }) => oldestMs ?? []);
      return {
        ...{ app, queue, consumer: found?.consumer ?? null, lacks: found?.lacks ?? null },
        paused: found?.isPaused === true,
        ...{ ready: sum("ready"), delayed: sum("delayed"), lent: sum("lent"), dead: sum("dead") },
        ...{ bytes: sum("bytes"), oldestMs: ages.length === 0 ? null : Math.max(...ages) },
        sites: sites.sort((a, b) => a.site < b.site ? -1 : 1),
      };
    },
  ).sort((a, b) => `${a.app}/${a.queue}` < `${b.app}/${b.queue}` ? -1 : 1);
}

/** Answers with a page of dead messages: of one site after the other, each in its own order. */
async function deadOf(
  services: AdminServices,
  queues: QueueAdmin,
  c: AdminContext,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<Response> {
  const { app: name = "", queue = "" } = c.req.param() as Record<string, string>;
  const [, from = "", tuple] = /^([^ ]+)(?: (.+))?$/s.exec(after ?? "") ?? [];
  const sites = (await readSites(services.system)).map(({ id }) => id).sort().filter((id) => id >= from);
  const messages: unknown[] = [], missing: Missing[] = [];
  let next: string | null = null;
  for (const site of sites) {
    if (messages.length >= limit) {
      next = site;
      break;
    }
    const left = limit - messages.length;
    const page = { limit: left, ...site === from && tuple !== undefined ? { after: tuple } : {} };
    const asked = await askedAll(services, c, {
      here: async () => ({ messages: await queues.dead(name, queue, page) }),
      schema: deadSchema,
      waitMs: READ_MS,
      sites: [site],
      query: { limit: `${left}`, ...page.after === undefined ? {} : { after: page.after } },
    });
    missing.push(...asked.missing);
    const found = asked.answers.get(site)?.messages ?? [], last = found.at(-1);
    messages.push(...found.map((one) => ({ site, ...one })));
    if (found.length === left && last !== undefined) {
      next = `${site} ${last.tuple}`;
      break;
    }
  }
  return c.json({ messages, next, missing });
}

function jsonOf(body: Uint8Array): unknown {
  if (body.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return null;
  }
}
