/**
 * Admin paths of stateful sessions: the list is the arbiter's, at the root; the state of a session is asked of its
 * home.
 */
import { HomeError, type HomeRow, type StatefulName } from "../../functions/sessions/home/mod.ts";
import { isLeftBehind } from "../../functions/sessions/log/host_owners.ts";
import { problemResponse } from "../gateway/problem.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { forgetEnded, sessionPath } from "./ended_sessions.ts";
import { HOMES_ASKED_MAX, mendingRoutes, nameIn } from "./session_mending.ts";
import { type AdminHono, type AdminServices, unknownApp } from "./services.ts";
import { readSites } from "./sites.ts";
import type { SessionLook, StatefulAdmin } from "./stateful_admin.ts";

/** Milliseconds that running requests get when a session is to move; its other requests wait meanwhile. */
const DRAIN_MS_MAX = 10_000;
/** Rows of one answer. */
const PAGE_MAX = 1_000;
/** Rows that are looked through for one class, before an answer leaves with what was found. */
const LOOKED_MAX = 10_000;

/** Returns a row as operators see it. */
const summaryOf = ({ name, site, epoch, owners, version, ended }: HomeRow) => ({
  ...name,
  home: site,
  epoch,
  owners: owners.filter((owner) => !isLeftBehind(owner)).map((owner) => owner.site),
  version,
  ended,
});

/** Adds the routes. */
export function sessionRoutes(app: AdminHono, services: AdminServices, stateful: StatefulAdmin): void {
  const { rows } = stateful;
  const unknown = (name: StatefulName) => unknownIn(services, name);

  app.get("/sessions", async (c) => {
    if (rows === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const limit = Number(c.req.query("limit") ?? PAGE_MAX);
    const after = afterOf(c.req.query("after"));
    if (!Number.isInteger(limit) || limit < 1 || after === null) {
      return problemResponse("query_invalid", "sessions take a limit from 1, and after as an answer gave it");
    }
    const of = { app: c.req.query("app"), class: c.req.query("class") };
    const found = await listed(stateful, rows, { ...of, after, limit: Math.min(limit, PAGE_MAX) });
    const isNone = found.sessions.length === 0 && found.next === null && after === undefined;
    const slip = isNone && of.app !== undefined ? slipIn(services.apps, of.app, of.class) : null;
    return slip ?? c.json(found);
  });

  app.get("/sessions/:app/:class/:id", async (c) => {
    const name = nameIn(c);
    if (c.req.query("here") === "1") return c.json({ at: stateful.look(name) });
    if (rows === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const row = await rowOf(rows, name);
    if (row === null) return unknown(name);
    const parked = stateful.parked(name);
    return c.json({ ...summaryOf(row), ...await asked(services, stateful, row), parked });
  });

  app.post("/sessions/:app/:class/:id/move", async (c) => {
    const name = nameIn(c);
    const to = c.req.query("to") ?? "";
    const drainMs = Number(c.req.query("drainMs") ?? DRAIN_MS_MAX);
    if (!Number.isInteger(drainMs) || drainMs < 0 || drainMs > DRAIN_MS_MAX) {
      return problemResponse("query_invalid", `drainMs takes milliseconds from 0 to ${DRAIN_MS_MAX}`);
    }
    if (c.req.query("here") === "1") return await moved(stateful, name, to, drainMs);
    if (rows === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "admin");
    if (!(await readSites(services.system)).some((site) => site.id === to)) {
      return problemResponse("site_unknown", `no site is called ${JSON.stringify(to)}`);
    }
    const row = await rowOf(rows, name);
    if (row === null || row.ended) return unknown(name);
    if (row.site === services.site) return await moved(stateful, name, to, drainMs);
    try {
      const url = hereUrl(row, `/move?here=1&to=${encodeURIComponent(to)}&drainMs=${drainMs}`);
      return await services.forward(row.site, new Request(url, { method: "POST" }), "admin");
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return problemResponse(
        "stateful_unreachable",
        `its home ${row.site} does not answer: ${error.message}`,
      );
    }
  });

  mendingRoutes(app, services, stateful, {
    find: async (name) => rows && await rowOf(rows, name),
    unknown,
  });

  app.delete("/sessions/:app/:class/:id", async (c) => {
    const name = nameIn(c);
    const isHere = c.req.query("here") === "1";
    if (isHere && c.req.query("ended") === "1") return await forgotten(stateful, name);
    if (!isHere) {
      if (rows === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
      return await deleted(services, stateful, name, await rowOf(rows, name));
    }
    const failed = await removedHere(stateful, name);
    return failed === null
      ? c.json({ app: name.app, class: name.class, id: name.id })
      : problemResponse("stateful_unreachable", failed.message);
  });
}

/** Ends a session, and drops all that is kept of earlier ones of its name, at every site. */
async function deleted(
  services: AdminServices,
  stateful: StatefulAdmin,
  name: StatefulName,
  row: HomeRow | null,
): Promise<Response> {
  const isLive = row !== null && !row.ended;
  const answer = isLive ? await removed(services, stateful, row) : null;
  if (answer !== null && !answer.ok) return answer;
  await answer?.body?.cancel();
  const { dropped, missing } = await forgetEnded(services, name, () => forgotten(stateful, name));
  const { app, class: className, id } = name;
  if (isLive || dropped) return Response.json({ app, class: className, id, missing });
  const slip = row === null ? slipIn(services.apps, app, className) : null;
  if (missing.length === 0 || slip !== null) return unknownIn(services, name);
  return problemResponse(
    "stateful_unreachable",
    `${className} ${
      JSON.stringify(id)
    } of ${app} has ended; what is kept of it may lie where nobody answers: ${missing.join(", ")}`,
  );
}

/**
 * Ends a session at its home. While it can't be opened, because clients that hold its log are missing, its home is the
 * site that tried last.
 */
async function removed(services: AdminServices, stateful: StatefulAdmin, row: HomeRow): Promise<Response> {
  const { name } = row;
  for (let { site } = row, attempt = 1;; attempt++) {
    const answer = site === services.site ? null : await removeAt(services, { ...row, site });
    if (answer !== null) return answer;
    const failed = await removedHere(stateful, name);
    if (failed === null) return Response.json({ app: name.app, class: name.class, id: name.id });
    if (failed.code !== "elsewhere" || failed.site === null || attempt >= HOMES_ASKED_MAX) {
      return problemResponse("stateful_unreachable", failed.message);
    }
    site = failed.site;
  }
}

/** Ends a session at this site. Returns the error; null: the session has ended. */
async function removedHere(stateful: StatefulAdmin, name: StatefulName): Promise<HomeError | null> {
  try {
    await stateful.remove(name);
    return null;
  } catch (error) {
    if (!(error instanceof HomeError)) throw error;
    return error;
  }
}

/** Drops the log that this site keeps of an ended session: nothing else is left of one. */
async function forgotten({ mending }: StatefulAdmin, name: StatefulName): Promise<Response> {
  try {
    await mending.forget(name);
    return Response.json({ app: name.app, class: name.class, id: name.id });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return problemResponse(error.code, error.message);
  }
}

/**
 * Returns the answer for a session that does not exist; a slip in the name of the app or of the class is told as such.
 */
function unknownIn({ apps }: AdminServices, { app, class: name, id }: StatefulName): Response {
  return slipIn(apps, app, name) ??
    problemResponse("not_found", `${app} has no stateful session ${name} ${JSON.stringify(id)}`);
}

/** Returns the answer for an unknown app, or an unknown class where one is named; null where there are such. */
function slipIn(apps: AdminServices["apps"], app: string, name: string | undefined): Response | null {
  const live = apps.get(app);
  if (live === undefined) return unknownApp(app);
  const classes = Object.keys(live.current.manifest.sessions);
  if (name === undefined || classes.includes(name)) return null;
  const has = classes.length === 0 ? "no stateful sessions" : classes.join(", ");
  return problemResponse("not_found", `${app} has no class ${JSON.stringify(name)}; it has ${has}`);
}

async function listed(
  stateful: StatefulAdmin,
  rows: NonNullable<StatefulAdmin["rows"]>,
  of: {
    readonly app: string | undefined;
    readonly class: string | undefined;
    readonly after: StatefulName | undefined;
    readonly limit: number;
  },
) {
  const sessions: (ReturnType<typeof summaryOf> & { parked: string | null })[] = [];
  let { after } = of;
  for (let looked = 0; sessions.length < of.limit && looked < LOOKED_MAX;) {
    const page = await rows({
      ...of.app === undefined ? {} : { app: of.app },
      ...after === undefined ? {} : { after },
      limit: of.limit - sessions.length,
    });
    const last = page.at(-1);
    if (last === undefined) return { sessions, next: null };
    looked += page.length;
    after = last.name;
    sessions.push(
      ...page.filter(({ name }) => of.class === undefined || name.class === of.class)
        .map((row) => ({ ...summaryOf(row), parked: stateful.parked(row.name)?.code ?? null })),
    );
  }
  return { sessions, next: after === undefined ? null : JSON.stringify([after.app, after.class, after.id]) };
}

/** Returns the session after which a list goes on; undefined: from the start; null: the text names none. */
function afterOf(text: string | undefined): StatefulName | null | undefined {
  if (text === undefined) return undefined;
  try {
    const [app, name, id] = JSON.parse(text) as unknown[];
    return { app: String(app), class: String(name), id: String(id) };
  } catch {
    return null;
  }
}

async function rowOf(rows: NonNullable<StatefulAdmin["rows"]>, name: StatefulName): Promise<HomeRow | null> {
  // Ids sort by their bytes: the wanted one follows the one before it directly, or is not there.
  const before = { ...name, id: [...name.id].slice(0, -1).join("") };
  for (let after: StatefulName | undefined = before.id === "" ? undefined : before;;) {
    const page = await rows({ app: name.app, ...after === undefined ? {} : { after }, limit: PAGE_MAX });
    const found = page.find((row) => row.name.class === name.class && row.name.id === name.id);
    if (found !== undefined) return found;
    after = page.at(-1)?.name;
    if (after === undefined || page.length < PAGE_MAX) return null;
  }
}

const hereUrl = ({ name, site }: HomeRow, rest = "?here=1"): string =>
  `http://${site}${sessionPath(name)}${rest}`;

async function moved(
  stateful: StatefulAdmin,
  name: StatefulName,
  to: string,
  drainMs: number,
): Promise<Response> {
  try {
    await stateful.move(name, to, drainMs);
    return Response.json({ ...name, home: to });
  } catch (error) {
    if (!(error instanceof HomeError)) throw error;
    const code = error.code === "move_refused" ? "move_refused" : "stateful_unreachable";
    return problemResponse(code, error.message);
  }
}

/** Returns the state that the home tells of a session, or the reason why it tells none. */
async function asked(services: AdminServices, stateful: StatefulAdmin, row: HomeRow) {
  if (row.ended) return { at: null, unreachable: null };
  if (row.site === services.site) return { at: stateful.look(row.name), unreachable: null };
  try {
    const answer = await services.forward(row.site, new Request(hereUrl(row)), "read");
    const { at } = await answer.json() as { at?: SessionLook | null };
    return { at: at ?? null, unreachable: null };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { at: null, unreachable: error.message };
  }
}

/** Sessions that are ended at the same time. */
const ENDED_AT_ONCE = 16;

/** Ends all stateful sessions of an app that is deleted, at the root; false where some could not be ended. */
export async function endSessions(services: AdminServices, app: string): Promise<boolean> {
  const { stateful } = services;
  if (stateful === undefined || stateful.rows === null) return true;
  let all = true;
  let after: StatefulName | undefined;
  for (;;) {
    const page = await stateful.rows({ app, ...after === undefined ? {} : { after }, limit: ENDED_AT_ONCE });
    const last = page.at(-1);
    if (last === undefined) return all;
    after = last.name;
    const ended = await Promise.all(
      page.filter((row) => !row.ended).map(async (row) => {
        const there = row.site === services.site ? null : await removeAt(services, row);
        if (there !== null) return true;
        return await stateful.remove(row.name).then(() => true, (error) => {
          services.note("stateful_not_ended", {
            app,
            class: row.name.class,
            id: row.name.id,
            error: String(error),
          });
          return false;
        });
      }),
    );
    all &&= ended.every((one) => one);
  }
}

/** Ends a session at its home; null: the home is not there, or is another by now, and the root does it in its place. */
async function removeAt(services: AdminServices, row: HomeRow): Promise<Response | null> {
  try {
    const answer = await services.forward(row.site, new Request(hereUrl(row), { method: "DELETE" }), "admin");
    if (answer.ok) return answer;
    await answer.body?.cancel();
    return null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return null;
  }
}
