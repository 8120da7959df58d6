/**
 * To which sites an agent for clients goes: the nearest first, as measured when it begins.
 *
 * NR1  Of sites that are as near one at the edge, as the client library has it: what it does costs nobody else.
 * NR2  One that serves nothing now comes after all that do, and is not left out: it may be the one that is there later.
 */
import { TIER_MS } from "../../functions/client/limits.ts";

/** A site, as the cluster lists it. */
export interface NearSite {
  readonly url: string;
  readonly tier: string;
}

/** The first connection is made anew, and something else may run at any moment: the best of these is what the way takes. */
const PROBES = 3;
/** As the client library's: a hundred times a near round trip. */
const PROBE_MS = 2_000;

/** @param measure milliseconds there and back; null: it does not serve. */
export async function sitesByRoundTrip(
  sites: readonly NearSite[],
  measure: (url: string) => Promise<number | null> = roundTrip,
): Promise<string[]> {
  const measured = await Promise.all(sites.map(async ({ url, tier }) => {
    const ms = await measure(url);
    return { url, ms: ms === null ? Infinity : ms + tierMs(tier) };
  }));
  // Sorting keeps the order of those that are alike, also where both are Infinity.
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
