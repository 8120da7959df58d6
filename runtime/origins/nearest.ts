/**
 * Order of the sites for an agent of clients: the nearest first, as measured when it begins.
 *
 * NR1  Of equally near sites one at the edge is first, as in the client library: its work costs the others nothing.
 * NR2  A site that does not serve now comes after all that do, and is not left out: it may be the one that is there
 *      later.
 */
import { TIER_MS } from "../../functions/client/limits.ts";

/** A site, as the cluster lists it. */
export interface NearSite {
  readonly url: string;
  readonly tier: string;
}

/**
 * Number of probes: the first makes its connection, and something else may run at any moment, so the best of them is
 * taken as the round trip.
 */
const PROBES = 3;
/** Milliseconds of a probe, as the client library's: a hundred times a near round trip. */
const PROBE_MS = 2_000;

/** Returns the sites' URLs in order. @param measure milliseconds of a round trip; null: the site does not serve. */
export async function sitesByRoundTrip(
  sites: readonly NearSite[],
  measure: (url: string) => Promise<number | null> = roundTrip,
): Promise<string[]> {
  const measured = await Promise.all(sites.map(async ({ url, tier }) => {
    const ms = await measure(url);
    return { url, ms: ms === null ? Infinity : ms + tierMs(tier) };
  }));
  // Sorting keeps the order of equal ones, also where both are Infinity.
  return measured.sort((a, b) => a.ms === b.ms ? 0 : a.ms - b.ms).map(({ url }) => url);
}

const tierMs = (tier: string): number => (TIER_MS as Readonly<Record<string, number>>)[tier] ?? TIER_MS.core;

async function roundTrip(url: string): Promise<number | null> {
  let best: number | null = null;
  for (let probe = 0; probe < PROBES; probe++) {
    const begunMs = performance.now();
    try {
      const answer = await fetch(new URL("/_sojourn/readyz", url), { signal: AbortSignal.timeout(PROBE_MS) });
      await answer.body?.cancel();
      if (!answer.ok) return null;
    } catch {
      return null;
    }
    best = Math.min(best ?? Infinity, performance.now() - begunMs);
  }
  return best;
}
