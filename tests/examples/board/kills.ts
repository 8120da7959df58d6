/**
 * Sites that die while clients live: `kill -9`, some time away, started again.
 *
 * `edge` kills one edge when half of the time is over. `storm` kills any site, the root too, one after another
 * for as long as the clients live; it is for finding faults, not for figures.
 */
import { Random } from "./random.ts";
import { isReady, type SiteAddress } from "./site_status.ts";

/** What is killed. */
export type Kills =
  | { readonly kind: "none" }
  | { readonly kind: "edge"; readonly awayMs: number }
  | { readonly kind: "storm"; readonly seed: number };

/** One death. */
export interface Killed {
  readonly site: string;
  /** From its start to its readiness. */
  readonly readyMs: number;
}

/** Who can kill and start sites. */
export interface Killer {
  /** SIGKILL; it stays down. */
  kill(site: string): Promise<void>;
  start(site: string): Promise<void>;
}

/** A site that has not come back by then will not. */
const RESTART_MS = 30_000;
const STORM_AWAY_MS_MAX = 3_500;
const STORM_PAUSE_MS_MAX = 4_000;

/** Kills, while clients live for `durationMs`; resolves when every site is back. */
export async function killSites(
  killer: Killer,
  sites: readonly SiteAddress[],
  kills: Kills,
  options: { readonly durationMs: number; readonly say: (line: string) => void },
): Promise<Killed[]> {
  const untilMs = performance.now() + options.durationMs;
  if (kills.kind === "none") return [];
  if (kills.kind === "edge") {
    const edges = sites.filter((site) => !sites.some((other) => other.parent === site.id));
    const victim = edges.at(1) ?? edges[0];
    await pause(options.durationMs / 2);
    return victim === undefined ? [] : [await killOne(killer, victim, kills.awayMs, options.say)];
  }
  const random = new Random(kills.seed);
  const killed: Killed[] = [];
  for (;;) {
    await pause(500 + random.below(STORM_PAUSE_MS_MAX));
    if (performance.now() > untilMs) return killed;
    killed.push(await killOne(killer, random.pick(sites), random.below(STORM_AWAY_MS_MAX), options.say));
  }
}

async function killOne(
  killer: Killer,
  site: SiteAddress,
  awayMs: number,
  say: (line: string) => void,
): Promise<Killed> {
  await killer.kill(site.id);
  await pause(awayMs);
  const startMs = performance.now();
  await killer.start(site.id);
  while (!await isReady(site)) {
    if (performance.now() - startMs > RESTART_MS) throw new Error(`${site.id} did not come back`);
    await pause(20);
  }
  const readyMs = performance.now() - startMs;
  say(
    `${site.id} was killed, away for ${awayMs.toFixed(0)} ms, ready ${readyMs.toFixed(0)} ms after its start`,
  );
  return { site: site.id, readyMs };
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
