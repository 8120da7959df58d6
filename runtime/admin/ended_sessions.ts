/**
 * Logs of stateful sessions that have ended, sought at every site, from the root: a log lies at the site where its
 * session ended, and that site is not on record once the id is used anew.
 */
import { z } from "zod";
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import { ADMIN_PATH } from "../deploy/admin_api.ts";
import { sessionSegments } from "../deploy/session_path.ts";
import { problemResponse } from "../gateway/problem.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import type { AdminServices } from "./services.ts";
import { readSites } from "./sites.ts";

/** Services of the root that this uses. */
export type EndedServices = Pick<AdminServices, "site" | "system" | "forward">;

/** A site's answer to a call. */
interface Asked {
  readonly site: string;
  readonly answer: Response | Problem;
}

/** Returns the path of a session, at whatever site is asked. */
export const sessionPath = (name: StatefulName): string => `${ADMIN_PATH}${sessionSegments(name)}`;

/** Asks a site; the answer is a problem where the site is not there. */
export async function asked(services: EndedServices, site: string, request: Request): Promise<Asked> {
  try {
    return { site, answer: await services.forward(site, request, "admin") };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { site, answer: error };
  }
}

/** Asks every site; this one by `here`. */
async function askedAll(
  services: EndedServices,
  { here, request, at }: {
    readonly here: () => Promise<Response>;
    readonly request: (site: string) => Request;
    readonly at?: string | undefined;
  },
): Promise<readonly Asked[]> {
  const known = (await readSites(services.system)).map(({ id }) => id);
  const sites = at === undefined ? known : known.filter((site) => site === at);
  return await Promise.all(
    sites.map(async (site) =>
      site === services.site ? { site, answer: await here() } : await asked(services, site, request(site))
    ),
  );
}

const detailSchema = z.looseObject({ detail: z.string() });

/** Returns the reason why an answer has failed. */
export async function whyNot(answer: Response | Problem): Promise<string> {
  if (answer instanceof Problem) return answer.message;
  const problem = detailSchema.safeParse(await answer.json().catch(() => null));
  return problem.data?.detail ?? `HTTP ${answer.status}`;
}

const logSchema = z.looseObject({ endedMs: z.number() });

/**
 * Answers with the log of the session of a name that ended last, of those that are kept.
 *
 * @param query query of the request, as it came; `at` names the only site to be asked.
 */
export async function lastEndedLog(
  services: EndedServices,
  name: StatefulName,
  query: URLSearchParams,
  here: () => Promise<Response>,
): Promise<Response> {
  const there = new URLSearchParams(query);
  there.set("here", "1");
  const answers = await askedAll(services, {
    ...{ here, at: query.get("at") ?? undefined },
    request: (site) => new Request(`http://${site}${sessionPath(name)}/log?${there}`),
  });
  const found: (z.infer<typeof logSchema> & { readonly by: string })[] = [];
  const failed: string[] = [];
  for (const { site, answer } of answers) {
    if (answer instanceof Response && answer.ok) {
      found.push({ ...logSchema.parse(await answer.json()), by: site });
    } else if (answer instanceof Problem || answer.status !== 404) {
      failed.push(`${site}: ${await whyNot(answer)}`);
    }
  }
  const [last] = found.sort((a, b) => b.endedMs - a.endedMs);
  if (last !== undefined) return Response.json({ ...last, home: last.by, failed });
  const session = `${name.class} ${JSON.stringify(name.id)} of ${name.app}`;
  if (failed.length === 0) {
    return problemResponse("not_found", `no site keeps a log of ${session} that has ended`);
  }
  return problemResponse("stateful_unreachable", `no log can be shown: ${failed.join("; ")}`);
}

/**
 * Drops all that is kept of ended sessions of a name, at every site. Returns whether there was something, and the sites
 * that did not answer.
 */
export async function forgetEnded(
  services: EndedServices,
  name: StatefulName,
  here: () => Promise<Response>,
): Promise<{ readonly dropped: boolean; readonly missing: readonly string[] }> {
  const answers = await askedAll(services, {
    here,
    request: (site) => new Request(`http://${site}${sessionPath(name)}?here=1&ended=1`, { method: "DELETE" }),
  });
  const missing: string[] = [];
  let dropped = false;
  for (const { site, answer } of answers) {
    if (answer instanceof Problem) missing.push(site);
    else {
      dropped ||= answer.ok;
      if (!answer.ok && answer.status !== 404) missing.push(site);
      await answer.body?.cancel();
    }
  }
  return { dropped, missing };
}
