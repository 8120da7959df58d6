/**
 * Membership of the tree: `DELETE /sites/:site` and `POST /sites/:site/admit`, made by the root; and calls that a site
 * answers for itself: `POST /sites/:site/drain` and `POST /sites/:site/clock`.
 *
 * M1  A site that answers, or that its parent is connected to, is removed only with `force=1`; the refusal names
 *     what it would lose.
 * M2  So is one that was drained while its disk is one that others count on: nobody reads it again when the site is off
 *     the tree (store/change/removal.ts R3). One that was not drained is taken for lost, with its disk.
 * M3  So is one that was drained with messages of queues or logs of sessions of which no other disk was known to have a
 *     copy: it said so itself as it stopped (runtime/site/drain.ts D2). It is asked for nothing more, since its process
 *     has ended: what others have lost since then they do not say.
 */
import { z } from "zod";
import type { Replica, SiteRemoval, SoleCopies } from "../../store/api/api.ts";
import { unixMs } from "../../store/model/row.ts";
import { ADMIN_PATH } from "../deploy/admin_api.ts";
import { problemResponse } from "../gateway/problem.ts";
import type { AdminHono, AdminServices } from "./services.ts";
import { readSites } from "./sites.ts";

/**
 * Milliseconds in which a site answers: far above a round trip over the tree, and short enough for a person who waits.
 */
const ANSWER_MS = 2_000;

const statusSchema = z.object({
  status: z.object({
    pending: z.number(),
    pendingBytes: z.number(),
    children: z.array(z.object({ id: z.string(), connected: z.boolean() })),
    wards: z.object({ owners: z.array(z.string()) }),
  }),
});
type Status = z.infer<typeof statusSchema>["status"];

/** Rows that a site which is to be removed has not pushed; null where it does not say. */
interface Connected {
  readonly pending: number | null;
  readonly pendingBytes: number | null;
}

/** Milliseconds of the longest planned stop: a site that is to be away for longer is taken off the tree. */
const AWAY_MS_MAX = 7 * 86_400_000;
const AWAY_MS_DEFAULT = 600_000;

/** Adds the routes. @param members null below the root. */
export function membershipRoutes(
  app: AdminHono,
  services: AdminServices,
  members: Replica["members"] | null,
): void {
  app.delete("/sites/:site", async (c) => {
    if (members === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const id = c.req.param("site");
    const force = c.req.query("force") ?? "0";
    if (force !== "0" && force !== "1") return problemResponse("query_invalid", "force takes 0 or 1");
    const connected = await connection(services, id);
    if (connected !== null && force === "0") return stillThere(id, connected);
    const counting = force === "0" && members.awayUntilMs(id) !== undefined
      ? await countingOn(services, members, id)
      : null;
    if (counting !== null) return stillHeld(id, counting);
    const removed = await members.remove(id);
    if (removed.kind !== "removed") return refusal(id, removed);
    services.note("site_removed", { removed: id, connected: connected !== null });
    const keptUntilMs = removed.stable === 0 ? null : unixMs(removed.stable);
    return c.json({
      site: id,
      connected: connected !== null,
      pending: connected?.pending ?? null,
      pendingBytes: connected?.pendingBytes ?? null,
      keptUntilMs,
    });
  });

  app.post("/sites/:site/drain", async (c) => {
    const id = c.req.param("site");
    if (id !== services.site) {
      const known = (await readSites(services.system)).some((site) => site.id === id);
      if (!known) return problemResponse("site_unknown", `no site is called ${JSON.stringify(id)}`);
      return await services.forward(id, c.req.raw, c.env.role ?? "read");
    }
    const forMs = Number(c.req.query("forMs") ?? AWAY_MS_DEFAULT);
    if (!Number.isInteger(forMs) || forMs < 1_000 || forMs > AWAY_MS_MAX) {
      return problemResponse("query_invalid", `forMs takes milliseconds from 1000 to ${AWAY_MS_MAX}`);
    }
    if (services.drain === undefined) return problemResponse("not_available", "this site cannot be drained");
    return c.json({ site: id, ...await services.drain(services.nowMs() + forMs) });
  });

  app.post("/sites/:site/clock", async (c) => {
    const id = c.req.param("site");
    if (id !== services.site) {
      const known = (await readSites(services.system)).some((site) => site.id === id);
      if (!known) return problemResponse("site_unknown", `no site is called ${JSON.stringify(id)}`);
      return await services.forwardTwice(id, c.req.raw, c.env.role ?? "read");
    }
    if (services.believeClock === undefined) {
      return problemResponse("not_available", "this site has no clock to believe");
    }
    return c.json({ site: id, aheadMs: services.believeClock() });
  });

  app.post("/sites/:site/admit", async (c) => {
    if (members === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const id = c.req.param("site");
    if (await members.admit(id)) return c.json({ site: id });
    return problemResponse(
      "site_unknown",
      `no site called ${JSON.stringify(id)} was removed; a new one joins by its site file alone`,
    );
  });
}

function stillThere(id: string, { pending, pendingBytes }: Connected): Response {
  const lost = pending === null
    ? "what it has not pushed would be lost"
    : `${pending} rows (${pendingBytes} bytes) that it has not pushed would be lost`;
  return problemResponse(
    "site_connected",
    `site ${id} is connected: ${lost}. Stop it first, or remove it with --force`,
    { pending, pendingBytes },
  );
}

/** Sites that count on the disk of a drained one (M2), and what is nowhere else (M3). */
interface Counting {
  /** Lost sites. */
  readonly left: readonly string[];
  /** Sites that name it among their owners. */
  readonly owned: readonly string[];
  /** Sites that named it once, and do not answer. */
  readonly silent: readonly string[];
  /** Copies that it had alone (M3). */
  readonly sole: readonly SoleCopies[];
}

/** null: nobody does. */
async function countingOn(
  services: AdminServices,
  members: Replica["members"],
  id: string,
): Promise<Counting | null> {
  const { left, owned } = members.heldBy(id);
  const asked = await Promise.all(
    owned.map(async (site) => ({ site, status: await statusOf(services, site) })),
  );
  const naming = asked.filter(({ status }) => status?.wards.owners.includes(id));
  const silent = asked.filter(({ status }) => status === null);
  const sole = members.soleAt(id);
  if (left.length + naming.length + silent.length + sole.length === 0) return null;
  return { left, owned: naming.map(({ site }) => site), silent: silent.map(({ site }) => site), sole };
}

function stillHeld(id: string, counting: Counting): Response {
  const { left, owned, silent, sole } = counting;
  const why = [
    left.length === 0
      ? []
      : `what ${left.join(", ")} had told may be on its disk alone: start ${id}, and drain ` +
        "it again when that has come to the root",
    owned.length === 0
      ? []
      : `${owned.join(", ")} count it among their owners until others have everything: ` +
        "ask again then",
    silent.length === 0
      ? []
      : `${silent.join(", ")} may count it among their owners, and do not answer: start ` +
        "or remove them first",
    sole.length === 0
      ? []
      : `${
        sole.map(({ what, count }) => `${what} (${count})`).join(", ")
      } were on its disk alone: start ${id}, ` +
        "and drain it again when they are worked off, or at other sites too",
  ].flat();
  return problemResponse(
    "site_held",
    `site ${id} was drained, and its disk is still needed. ${
      why.join(". ")
    }. Or remove it with --force: then its ` +
      "disk is one of those that are lost",
    { ...counting },
  );
}

function refusal(id: string, removed: Exclude<SiteRemoval, { kind: "removed" }>): Response {
  switch (removed.kind) {
    case "unknown":
      return problemResponse("site_unknown", `no site is called ${JSON.stringify(id)}`);
    case "root":
      return problemResponse("site_needed", `site ${id} is the root: the tree ends with it`);
    case "has_children":
      return problemResponse(
        "site_needed",
        `site ${id} has children: ${removed.children.join(", ")}. Remove them first, or move them ` +
          "(sojourn sites move SITE --to PARENT)",
        { children: removed.children },
      );
  }
}

/** Returns what the site says of itself, or its parent says of it; null where it is away (M1). */
export async function connection(services: AdminServices, id: string): Promise<Connected | null> {
  const record = (await readSites(services.system)).find((site) => site.id === id);
  if (record === undefined || record.parent === null) return null;
  const [own, parents] = await Promise.all([statusOf(services, id), statusOf(services, record.parent)]);
  if (own !== null) return own;
  const isThere = parents?.children.some((child) => child.id === id && child.connected) ?? false;
  return isThere ? { pending: null, pendingBytes: null } : null;
}

/** Returns a site's own status, wherever it is; null where it does not answer. */
async function statusOf(services: AdminServices, id: string): Promise<Status | null> {
  const { site, forward, observed } = services;
  if (id === site) return statusSchema.shape.status.safeParse(observed?.status()).data ?? null;
  const signal = AbortSignal.timeout(ANSWER_MS);
  try {
    const answer = await forward(
      id,
      new Request(`http://${id}${ADMIN_PATH}/cluster?here=1`, { signal }),
      "read",
    );
    const text = await answer.text();
    return answer.ok ? statusSchema.parse(JSON.parse(text)).status : null;
  } catch {
    return null; // whatever the reason, it does not answer
  }
}
