/**
 * Admin paths for a stateful session that stands still: its log, and what is done about it. All of it happens at its
 * home; where that can't be asked, at the root, which becomes its home in its place.
 */
import type { HomeRow, StatefulName } from "../../functions/homes/mod.ts";
import { ADMIN_PATH } from "../deploy/client.ts";
import { Problem, problemResponse } from "../gateway/problem.ts";
import { mendingProblem } from "../stateful/mending.ts";
import type { AdminContext, AdminHono, AdminServices } from "./services.ts";
import type { StatefulAdmin } from "./stateful_admin.ts";

/** How the row of a session is found, at the root. */
interface Rows {
  readonly find: (name: StatefulName) => Promise<HomeRow | null>;
  readonly unknown: (name: StatefulName) => Response;
}

/** Does it here. */
type Work = (name: StatefulName, c: AdminContext) => Promise<unknown>;

const isSet = (c: AdminContext, name: string): boolean => c.req.query(name) === "1";

/** Adds the routes. */
export function mendingRoutes(
  app: AdminHono,
  services: AdminServices,
  { rows, mending }: StatefulAdmin,
  { find, unknown }: Rows,
): void {
  const at = (work: Work, mayDoHere: boolean) => async (c: AdminContext) => {
    const { app: of = "", class: className = "", id = "" } = c.req.param() as Record<string, string>;
    const name = { app: of, class: className, id };
    if (!isSet(c, "here")) {
      if (rows === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
      const row = await find(name);
      if (row === null || row.ended) return unknown(name);
      if (row.site !== services.site) {
        const answer = await there(services, row, c.req.raw);
        if (answer instanceof Response) return answer;
        if (!mayDoHere) {
          return problemResponse(
            "stateful_unreachable",
            `its home ${row.site} can't be asked: ${answer.message}`,
          );
        }
      }
    }
    try {
      return c.json(await work(name, c));
    } catch (error) {
      const problem = mendingProblem(error);
      if (problem === null) throw error;
      return problemResponse(problem.code, problem.message);
    }
  };

  app.get(
    "/sessions/:app/:class/:id/log",
    at(async (name, c) => {
      const from = Number(c.req.query("from") ?? 1);
      if (!Number.isSafeInteger(from) || from < 1) {
        throw new Problem("query_invalid", "from takes the number of an entry, from 1");
      }
      return await mending.log(name, from);
    }, false),
  );
  app.post(
    "/sessions/:app/:class/:id/resume",
    at(async (name, c) => {
      const how = { fromCheckpoint: isSet(c, "fromCheckpoint"), isTrial: isSet(c, "trial") };
      const resumed = await mending.resume(name, how);
      if (!how.isTrial) services.note("stateful_resumed", { ...name, ...how, state: resumed.state });
      return { ...name, ...resumed };
    }, true),
  );
  app.post(
    "/sessions/:app/:class/:id/reset",
    at(async (name) => {
      await mending.reset(name);
      services.note("stateful_reset", { ...name });
      return name;
    }, true),
  );
}

/** What the home answers; the problem where it is not there. */
async function there(
  services: AdminServices,
  { name, site }: HomeRow,
  asked: Request,
): Promise<Response | Problem> {
  const path = [name.app, name.class, name.id].map(encodeURIComponent).join("/");
  const { pathname, searchParams } = new URL(asked.url);
  searchParams.set("here", "1");
  const verb = pathname.slice(pathname.lastIndexOf("/"));
  const url = `http://${site}${ADMIN_PATH}/sessions/${path}${verb}?${searchParams}`;
  try {
    return await services.forward(site, new Request(url, { method: asked.method }), "admin");
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return error;
  }
}
