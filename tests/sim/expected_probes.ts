/**
 * The rare paths that simulated runs must reach: a probe that never fires over {@link PROBE_SEEDS} seeds fails the
 * run, so that a change of plans, faults or timing can't turn a test into one that tests nothing.
 */
import { POINTS } from "./crash_points.ts";
import { NO_FAULTS } from "./topology.ts";

/** So many seeds are enough for every probe below, whichever they are; the gate runs them. */
export const PROBE_SEEDS = 150;

/** Arrivals, what sites do rarely, where crashes hit, what befalls links. */
const EXPECTED: readonly string[] = [
  ...["same", "nothing", "carry", "wait", "new", "lost", "merged tokens", "tokens seen one after the other"],
  ...["nothing_by_clock", "nothing_by_position", "ask", "carried_rows"],
  ...["collected", "past", "evicted", "fetch_shared", "warmed", "clock_ahead", "early", "drained"],
  // Of rows that are compared with another parent's.
  ...["same_ranges", "same_rows", "compared_same"],
  ...["a row rotted", "rows_damaged"],
  ...["removed", "removed: returns", "note child_removed", "fatal", "write: check failed"],
  ...["crash: attaching", "crash: before ready", "crash: committing", "crash: no request", "crash: reading"],
  ...["crash: syncing", "crash: thinking", "crash: waiting for the site", "crash: writing"],
  // Of sites with owners.
  ...["ward_rows", "ward_configurations", "ward_refused_gap", "stood_in", "stand_in_carry"],
  ...["recovered_wards", "recovered_rows"],
  ...["link late", "link lost", "link resent", "link queued", "link cuts", "link peers"],
  ...["request: crashed", "request: ok", "request: site down", "request: source_lost"],
];

/** Too seldom to be sure of in so many seeds: they are listed where they did not fire, and fail nothing. */
const SELDOM: readonly string[] = [
  ...[
    "refused_collected",
    "request: source_unreachable",
    "request: store_unreachable",
    "crash: down already",
    "stand_in_open",
    "fed_early",
    "stale_evicted",
    "compared_parts",
    "request: owners_unreachable",
    "older disk set aside",
  ],
];

/** A fault that no seed draws by this name: it is drawn as the point at which a site crashes. */
const ASKED_FOR: readonly string[] = ["point"];

/** Messages by which a crash is drawn; crash_points_test.ts hits each of them. */
const OF_MESSAGES = / (leaves|arrives)$/;

/** What did not fire in the runs: what must have, and what may be missing. */
export function silentProbes(
  probes: Readonly<Record<string, number>>,
): { readonly missed: string[]; readonly seldom: string[] } {
  const faults = Object.keys(NO_FAULTS).filter((name) => !ASKED_FOR.includes(name));
  const names = POINTS.map((point) => `crash point: ${point}`);
  const isSilent = (name: string) => (probes[name] ?? 0) === 0;
  const isSure = (name: string) => !OF_MESSAGES.test(name) || name.includes("token");
  return {
    missed: [...EXPECTED, ...faults.map((name) => `fault: ${name}`), ...names.filter(isSure)].filter(
      isSilent,
    ),
    seldom: [...SELDOM, ...names.filter((name) => !isSure(name))].filter(isSilent),
  };
}
