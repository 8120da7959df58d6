/** States of the sites, as the site that a command talks to sees them: which of them answer now. */
import { z } from "zod";
import type { AdminClient } from "../deploy/client.ts";

const viewSchema = z.object({
  sites: z.array(z.object({
    id: z.string(),
    reachable: z.boolean(),
    silentMs: z.number().nullable().default(null),
  })),
});

/** State of a site: whether it answers. */
export interface SiteState {
  readonly up: boolean;
  /** Milliseconds for which nothing of the site came; null where no site knows. */
  readonly silentMs: number | null;
}

/**
 * Returns the states of all sites of the tree by id; one that does not answer takes most of a second. @throws
 * AdminError
 */
export async function siteStates(client: AdminClient): Promise<ReadonlyMap<string, SiteState>> {
  const { sites } = viewSchema.parse(await client.cluster());
  return new Map(sites.map(({ id, reachable, silentMs }) => [id, { up: reachable, silentMs }]));
}

/** Returns `up`, or for how long a site has been away. */
export function stateText({ up, silentMs }: SiteState): string {
  if (up) return "up";
  return silentMs === null ? "down" : `down for ${briefly(silentMs)}`;
}

function briefly(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
}
