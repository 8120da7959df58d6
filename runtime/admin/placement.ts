/**
 * Arrival of a version at the sites: each site answers for itself, and the root asks them all.
 *
 * A2  A site is reported only when it has followed a change: its table shows the app's row as the change left it,
 *     and it holds the bundle of the version that the change is about.
 * A3  A site that is asked to leave a mark is reported only when the mark has arrived at the root, and with it
 *     every row that the site wrote before it had followed: journals are first in, first out.
 */
import { pointRange } from "../../store/model/range.ts";
import { ADMIN_PATH } from "../deploy/admin_api.ts";
import type { Change } from "../deploy/app_rows.ts";
import { markKey, VERSION } from "../deploy/records.ts";
import { encodeSystem } from "../../store/model/system_value.ts";
import { problemResponse } from "../gateway/problem.ts";
import type { Tell } from "./progress.ts";
import type { AdminContext, AdminHono, AdminServices } from "./services.ts";
import { readSites } from "./sites.ts";

/**
 * Milliseconds until a site is asked again: one that restarts is back within a second or two, and asking this often
 * costs it nothing.
 */
const ASK_AGAIN_MS = 200;

const MARK = /^[0-9a-f-]{36}$/;

/** A change that a site is to follow. */
export type Awaited = Pick<Change, "app" | "version" | "stamp"> & {
  /** Name of the mark that the site is also to have left (A3). */
  readonly mark?: string | undefined;
};

/** Sites at which a version has arrived, and those at which it has not in time. */
export interface Placement {
  readonly sites: { id: string; ms: number }[];
  readonly missing: string[];
}

/** Milliseconds that a request may wait for sites, at most: a cluster slower than that is broken. */
const WAIT_MS_MAX = 600_000;

/** Adds `GET /ready/:app/:version`. */
export function readyRoutes(app: AdminHono, services: AdminServices): void {
  app.get("/ready/:app/:version", async (c) => {
    const { app: name, version } = c.req.param();
    if (!VERSION.test(version)) return problemResponse("version_unknown", `${version} is no version`);
    const mark = c.req.query("mark");
    if (mark !== undefined && !MARK.test(mark)) return problemResponse("query_invalid", "a mark is a UUID");
    const change = { app: name, version, stamp: c.req.query("stamp") ?? "", mark };
    const ready = await readyHere(services, change, waitMsOfRequest(c));
    return ready
      ? c.json({ site: services.site })
      : problemResponse("not_ready", `${name} ${version} has not arrived here`);
  });
}

/** Returns the milliseconds for which the caller waits for sites; a bad number counts as none. */
export function waitMsOfRequest(c: AdminContext): number {
  const asked = Number(c.req.query("waitMs") ?? 0);
  return Number.isFinite(asked) ? Math.min(Math.max(asked, 0), WAIT_MS_MAX) : 0;
}

/** Asks every site to report when it serves a version, until all have or the time is over. */
export function placed(
  services: AdminServices,
  change: Awaited,
  timeoutMs: number,
  tell: Tell = () => {},
): Promise<Placement> {
  const untilMs = services.nowMs() + timeoutMs;
  const query = new URLSearchParams({ stamp: change.stamp, waitMs: `${timeoutMs}` });
  if (change.mark !== undefined) query.set("mark", change.mark);
  const path = `/ready/${change.app}/${change.version}?${query}`;
  return everySite(services, async (id) => {
    const ready = id === services.site
      ? await readyHere(services, change, timeoutMs)
      : await readyThere(services, id, { path, timeoutMs });
    return ready && await marked(services, id, change, untilMs - services.nowMs());
  }, tell);
}

/** Asks every site, all at once, whether it has followed. */
export async function everySite(
  services: Pick<AdminServices, "system" | "nowMs">,
  isReady: (site: string) => Promise<boolean>,
  tell: Tell = () => {},
): Promise<Placement> {
  const begunMs = services.nowMs();
  const sites: Placement["sites"] = [];
  const missing: string[] = [];
  const ask = async (id: string) => {
    const ready = await isReady(id);
    if (!ready) return void missing.push(id);
    const site = { id, ms: Math.round(services.nowMs() - begunMs) };
    sites.push(site);
    tell({ event: "site", ...site });
  };
  await Promise.all((await readSites(services.system)).map((site) => ask(site.id)));
  return { sites, missing };
}

/** Question to a site, by its path below the admin paths; it is answered with 200 once it is so. */
interface AskedThere {
  readonly path: string;
  readonly timeoutMs: number;
}

/** Asks a site over the links, again while it does not answer: it may be starting. */
export async function readyThere(
  services: Pick<AdminServices, "forward" | "note">,
  site: string,
  { path, timeoutMs }: AskedThere,
): Promise<boolean> {
  if (timeoutMs <= 0) return false; // no answer comes over a link within no time
  const url = `http://${site}${ADMIN_PATH}${path}`;
  const over = new AbortController();
  const asking = async () => {
    while (!over.signal.aborted) {
      try {
        const answer = await services.forward(site, new Request(url, { signal: over.signal }), "read");
        await answer.body?.cancel();
        if (answer.ok) return true;
      } catch (error) {
        if (!over.signal.aborted) services.note("site_silent", { site, error: String(error) });
      }
      await pause(ASK_AGAIN_MS, over.signal);
    }
    return false;
  };
  const asked = asking();
  const ready = await within(asked, timeoutMs);
  over.abort();
  return ready;
}

/** Waits, at the root, until a site's mark has arrived, and takes it away (A3). */
async function marked(
  { system }: AdminServices,
  site: string,
  { mark }: Awaited,
  timeoutMs: number,
): Promise<boolean> {
  if (mark === undefined) return true;
  const key = markKey(site, mark);
  const there = Promise.withResolvers<boolean>();
  const look = async () => {
    const [row] = await system.get([key]);
    if (row?.value) there.resolve(true);
  };
  const unwatch = system.watch([pointRange(key)], () => void look().catch(there.reject));
  try {
    await look();
    if (!await within(there.promise, timeoutMs)) return false;
    await system.write([{ kind: "delete", key }]);
    return true;
  } finally {
    unwatch();
  }
}

/** Resolves after a time, or at once when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** Waits until this site serves a version of an app (A2). */
async function readyHere(
  services: AdminServices,
  { app, version, stamp, mark }: Awaited,
  timeoutMs: number,
): Promise<boolean> {
  const { apps } = services;
  const shown = Promise.withResolvers<boolean>();
  const look = () => apps.shows(app, stamp) && shown.resolve(true);
  const unlisten = apps.onChange(look);
  look();
  try {
    await apps.refresh();
    if (!await within(shown.promise, timeoutMs)) return false;
    const live = await apps.version(app, version);
    const fetched = Promise.all([live?.bundle(), live?.files?.()])
      .then(() => services.warm?.(app, version))
      .then(() => mark === undefined ? undefined : leaveMark(services, app, mark))
      .then(() => true);
    return await within(fetched, timeoutMs);
  } finally {
    unlisten();
  }
}

/** Leaves a mark for the root (A3), after the writes that are under way as of the state before have been written. */
async function leaveMark({ site, system, written }: AdminServices, app: string, mark: string): Promise<void> {
  await written?.(app);
  await system.write([{ kind: "set", key: markKey(site, mark), value: encodeSystem(true) }]);
  await system.durable();
}

/** Returns a promise's result, or false when it has none in time or fails. A limit of 0 still takes one turn. */
function within(promise: Promise<boolean>, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limitMs);
    promise.then(resolve, () => resolve(false)).finally(() => clearTimeout(timer));
  });
}
