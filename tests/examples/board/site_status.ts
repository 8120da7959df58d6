/** What a trial reads of a site's status. */
import { z } from "zod";

const counters = z.record(z.string(), z.number());

const statusSchema = z.looseObject({
  site: z.string(),
  position: z.number(),
  pending: z.number(),
  parent: z.looseObject({ id: z.string(), connected: z.boolean(), acked: z.number() }).nullable(),
  coverage: z.looseObject({ ranges: z.number(), bytes: z.number() }),
  counters,
  links: z.array(z.looseObject({ site: z.string(), counters })),
});

export type SiteStatus = z.infer<typeof statusSchema>;

/** A site as the cluster's file has it. */
export interface SiteAddress {
  readonly id: string;
  readonly parent: string | null;
  readonly tier: string;
  readonly url: string;
  readonly pid: number;
}

/** Asks a site. @throws Error when it does not answer, ZodError when it answers something else. */
export async function siteStatus(site: SiteAddress, adminToken: string): Promise<SiteStatus> {
  const response = await fetch(new URL("/_sojourn/status", site.url), {
    headers: { authorization: `Bearer ${adminToken}` },
    signal: AbortSignal.timeout(5000),
  });
  return statusSchema.parse(await response.json());
}

/** Whether a site is up and has what it needs. */
export async function isReady(site: SiteAddress): Promise<boolean> {
  try {
    const response = await fetch(new URL("/_sojourn/readyz", site.url), {
      signal: AbortSignal.timeout(2000),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/**
 * Waits until nothing is on its way up: every site's pending rows are acknowledged.
 *
 * @throws Error after `withinMs`, naming the sites that have not come to rest.
 */
export async function settle(
  sites: readonly SiteAddress[],
  adminToken: string,
  withinMs: number,
): Promise<SiteStatus[]> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const all = await Promise.all(sites.map((site) => siteStatus(site, adminToken).catch(() => null)));
    const busy = all.flatMap((status, i) => {
      const id = sites[i]?.id ?? "";
      if (status === null) return [`${id} does not answer`];
      return status.pending === 0 ? [] : [`${id} has ${status.pending} rows pending`];
    });
    if (busy.length === 0) return all.filter((status) => status !== null);
    if (performance.now() > untilMs) throw new Error(`the tree does not come to rest: ${busy.join(", ")}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Bytes of the store's messages that came in over a site's link to its parent since it started. */
export function bytesFromParent(status: SiteStatus): number {
  const link = status.links.find((candidate) => candidate.site === status.parent?.id);
  return link?.counters["storeBytesIn"] ?? NaN;
}
