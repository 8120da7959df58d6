/**
 * Crashes at every place where a site yields: a scenario is run once without a crash, which numbers its
 * crossings; then once for each crossing, with whoever makes it crashing there.
 *
 * Crossings of one *place* differ only in when they come: a place is a point (crash_points.ts), the tier of the
 * site, the lines of store/ that led to it, awaits included, and for a commit the kind of message that came before
 * it. The gate crashes at a few crossings of each place, `deno task sim --crash-points` at all.
 */
import type { OpenReplica } from "../../store/api/api.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { openReplica } from "../../store/replica.ts";
import { ANY_POINT } from "./crash_points.ts";
import type { Violation } from "./history.ts";
import { type Scenario, SCENARIOS } from "./scenarios.ts";
import { simulate } from "./simulation.ts";

/** Where a site's code yields, and when it did in a scenario. */
export interface Place {
  readonly name: string;
  readonly crossings: number[];
}

/** Deep enough for the longest chain of awaits in store/. */
const FRAMES_MAX = 60;

/** The places that a scenario passes. */
export async function survey({ seed, plan }: Scenario, open: OpenReplica): Promise<Place[]> {
  const places = new Map<string, Place>();
  const tiers = new Map(plan.sites.map((site) => [site.id, site.tier]));
  const heard = new Map<SiteId, string>();
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES_MAX;
  try {
    const { violations } = await simulate({
      seed,
      open,
      change: () => plan,
      survey: ({ number, point, site }) => {
        if (point.endsWith(" arrives")) heard.set(site, point);
        const after = point.startsWith("commit") ? ` (${heard.get(site) ?? "nothing heard"})` : "";
        const name = `${tiers.get(site)}: ${point}${after} < ${linesOf(new Error().stack ?? "")}`;
        const place = places.get(name) ?? { name, crossings: [] };
        places.set(name, place);
        place.crossings.push(number);
      },
    });
    if (violations.length > 0) throw new Error(`without a crash: ${violations[0]?.message}`);
  } finally {
    Error.stackTraceLimit = limit;
  }
  return [...places.values()];
}

/** The frames of a stack that are in store/, innermost first. */
function linesOf(stack: string): string {
  const frames = [...stack.matchAll(/\/store\/([\w/]+\.ts:\d+):\d+/g)].map((match) => match[1]);
  return frames.join(" < ");
}

/** The first and the last crossing of a place. */
export const ends = ({ crossings }: Place): number[] =>
  [...new Set([crossings[0], crossings.at(-1)])].filter((one) => one !== undefined);

/** Runs a scenario with a crash at a crossing; what the checkers say. */
export async function crashAt(scenario: Scenario, crossing: number, open: OpenReplica): Promise<Violation[]> {
  const { violations, probes } = await simulate({
    seed: scenario.seed,
    open,
    // A root that crashes as a ward is released may keep it for good, and with it the watermark.
    watermark: false,
    change: () => ({ ...scenario.plan, crashes: [{ point: ANY_POINT, nth: crossing }] }),
  });
  const isReached = Object.keys(probes).some((name) => name.startsWith("crash point: "));
  return isReached
    ? [...violations]
    : [{ checker: "survey", message: `nobody crashed at crossing ${crossing}`, atMs: 0 }];
}

/**
 * Crashes at every crossing of every scenario, of the one named, or at one crossing of it; the exit code.
 *
 * @throws Error where there is no such scenario.
 */
export async function crashEverywhere(
  what: string,
  isVerbose: boolean,
  say: (text: string) => void,
): Promise<number> {
  const [name = "", number] = what.split("/");
  const scenarios = SCENARIOS.filter((scenario) => name === "" || scenario.name === name);
  if (scenarios.length === 0) {
    throw new Error(`there is no scenario '${name}', but ${SCENARIOS.map((each) => each.name).join("; ")}`);
  }
  let runs = 0;
  const places = new Set<string>();
  const violations: { scenario: string; crossing: number; checker: string; message: string }[] = [];
  for (const scenario of scenarios) {
    const surveyed = await survey(scenario, openReplica);
    for (const place of surveyed) {
      const chosen = place.crossings.filter((crossing) =>
        number === undefined || crossing === Number(number)
      );
      for (const crossing of chosen) {
        runs++;
        for (const { checker, message } of await crashAt(scenario, crossing, openReplica)) {
          violations.push({ scenario: scenario.name, crossing, checker, message });
          say(`${scenario.name}/${crossing}, ${place.name}: ${checker}: ${message}`);
        }
      }
      if (chosen.length > 0) places.add(place.name);
    }
    say(`${scenario.name}: ${surveyed.length} places`);
  }
  if (isVerbose) { for (const place of [...places].sort()) say(place); }
  console.log(JSON.stringify({ runs, places: places.size, violations }));
  return violations.length > 0 ? 1 : 0;
}
