/**
 * Admin paths for a stateful session that stands still: its log, and the operator's remedies. They are applied at the
 * session's home; where that can't be asked, at the root, which becomes the home in its place. The log is read wherever
 * it lies.
 */
import type { HomeRow, StatefulName } from "../../functions/sessions/home/mod.ts";
import { idOfSegment } from "../deploy/session_path.ts";
import { problemResponse } from "../gateway/problem.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { mendingProblem } from "../../functions/sessions/serve/mending.ts";
import { asked, lastEndedLog, sessionPath, whyNot } from "./ended_sessions.ts";
import type { AdminContext, AdminHono, AdminServices } from "./services.ts";
import type { StatefulAdmin } from "./stateful_admin.ts";

/** Access to the rows of sessions, at the root. */
interface Rows {
  readonly find: (name: StatefulName) => Promise<HomeRow | null>;
  readonly unknown: (name: StatefulName) => Response;
}

/** Homes of one session that are asked, where it has another one each time. */
export const HOMES_ASKED_MAX = 4;

/** A remedy, applied at this site. */
type Work = (name: StatefulName, c: AdminContext) => Promise<unknown>;

const isSet = (c: AdminContext, name: string): boolean => c.req.query(name) === "1";

/** Adds the routes. */
export function mendingRoutes(
  app: AdminHono,
  services: AdminServices,
  { rows, mending }: StatefulAdmin,
  { find, unknown }: Rows,
): void {
  const at = (work: Work) => async (c: AdminContext) => {
    const name = nameIn(c);
    if (!isSet(c, "here")) {
      if (rows === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
      for (let attempt = 1;; attempt++) {
        const row = await find(name);
        if (row === null || row.ended) return unknown(name);
        const there = row.site === services.site
          ? null
          : await askedThere(services, row, row.site, c.req.raw);
        const answer = there instanceof Response ? there : await told(c, () => work(name, c));
        // While the session can't be opened, its home is the site that tried last.
        if (answer.status !== 503 || attempt >= HOMES_ASKED_MAX) return answer;
        if ((await find(name))?.site === row.site) return answer;
      }
    }
    return await told(c, () => work(name, c));
  };

  app.get("/sessions/:app/:class/:id/log", async (c) => {
    const name = nameIn(c);
    const from = Number(c.req.query("from") ?? 1);
    if (!Number.isSafeInteger(from) || from < 1) {
      return problemResponse("query_invalid", "from takes the number of an entry, from 1");
    }
    const here = () => told(c, () => mending.log(name, { from, isEnded: isSet(c, "ended") }));
    if (isSet(c, "here")) return await here();
    if (rows === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    if (isSet(c, "ended")) {
      return await lastEndedLog(services, name, new URL(c.req.url).searchParams, here);
    }
    const row = await find(name);
    return row === null ? unknown(name) : await logWhereItLies(services, row, c, here);
  });
  app.post(
    "/sessions/:app/:class/:id/resume",
    at(async (name, c) => {
      const how = {
        fromCheckpoint: isSet(c, "fromCheckpoint"),
        fromLog: isSet(c, "fromLog"),
        isTrial: isSet(c, "trial"),
        withoutClients: isSet(c, "withoutClients"),
      };
      if ([how.fromCheckpoint, how.fromLog, how.withoutClients].filter((is) => is).length > 1) {
        throw new Problem(
          "query_invalid",
          "of fromCheckpoint, fromLog and withoutClients there is one at most",
        );
      }
      const resumed = await mending.resume(name, how);
      if (!how.isTrial) services.note("stateful_resumed", { ...name, ...how, state: resumed.state });
      return { ...name, ...resumed };
    }),
  );
  app.post(
    "/sessions/:app/:class/:id/reset",
    at(async (name) => {
      const isOpen = await mending.reset(name);
      services.note("stateful_reset", { ...name, isOpen });
      return { ...name, home: isOpen ? services.site : null };
    }),
  );
}

/** Returns the stateful session that a path names. */
export function nameIn(c: Pick<AdminContext, "req">): StatefulName {
  const { app = "", class: className = "", id = "" } = c.req.param() as Record<string, string>;
  return { app, class: className, id: idOfSegment(id) };
}

/** Returns the answer of a remedy, or the problem that it has. */
async function told(c: AdminContext, work: () => Promise<unknown>): Promise<Response> {
  try {
    return c.json(await work());
  } catch (error) {
    const problem = mendingProblem(error);
    if (problem === null) throw error;
    return problemResponse(problem.code, problem.message);
  }
}

/**
 * Answers with the log as the session's home has it; where that can't be asked, as the first of the sites that keep the
 * log has it.
 */
async function logWhereItLies(
  services: AdminServices,
  row: HomeRow,
  c: AdminContext,
  here: () => Promise<Response>,
): Promise<Response> {
  const at = c.req.query("at");
  const keepers = new Set([row.site, ...row.owners.map(({ site }) => site)]);
  const failed: string[] = [];
  let isAnswered = true;
  for (const site of keepers) {
    if (isHost(site) || (at !== undefined && at !== site)) continue;
    const answer = site === services.site ? await here() : await askedThere(services, row, site, c.req.raw);
    if (answer instanceof Response && answer.ok) {
      return c.json({ ...await answer.json(), home: row.site, by: site, failed });
    }
    failed.push(`${site}: ${await whyNot(answer)}`);
    isAnswered &&= answer instanceof Response && answer.status === 404;
  }
  return isAnswered
    ? problemResponse("not_found", `there is no log to show: ${failed.join("; ")}`)
    : problemResponse("stateful_unreachable", `no log can be shown: ${failed.join("; ")}`);
}

/** Reports whether a log's owner is a client or an agent (docs/protocol/hosts.md), and no site. */
const isHost = (owner: string): boolean => owner.startsWith("@");

/** Asks a site; returns the problem where the site is not there. */
async function askedThere(
  services: AdminServices,
  { name }: HomeRow,
  site: string,
  asking: Request,
): Promise<Response | Problem> {
  const { pathname, searchParams } = new URL(asking.url);
  searchParams.set("here", "1");
  const verb = pathname.slice(pathname.lastIndexOf("/"));
  const url = `http://${site}${sessionPath(name)}${verb}?${searchParams}`;
  return (await asked(services, site, new Request(url, { method: asking.method }))).answer;
}
