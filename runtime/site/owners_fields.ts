/**
 * Fields of a site file about owners groups: `f`, `area` and `owners` (docs/protocol/owners.md).
 *
 * F1  These fields are read again on SIGHUP; a file that is bad or that the cluster cannot meet changes nothing.
 */
import { isDeepStrictEqual as equals } from "node:util";
import { z } from "zod";
import { BEAT_MS, F_MAX, NEAR_MS, SILENT_SITE_MS, SUSPECT_MS } from "../../store/model/limits.ts";
import type { OwnersSettings } from "../../store/presence/choose.ts";

/** Schema of `f`: the number of other sites that hold what must survive this one. */
export const ownersCount = z.number().int().min(0).max(F_MAX);

/** Least milliseconds between beats: a beat is a message, and more of them say nothing sooner over a link of 10 ms. */
const BEAT_MS_MIN = 20;

/** Schema of `owners`: which sites they may be, and when one counts as lost. */
export const ownersFields = (siteId: z.ZodString) =>
  z.strictObject({
    /** The only sites that may own; by default any of the tree. */
    sites: z.array(siteId).optional(),
    /** Milliseconds of distance below which a site is a second choice. */
    nearMs: z.number().min(0).default(NEAR_MS),
    /** Milliseconds of silence after which a site is asked. */
    beatMs: z.number().min(BEAT_MS_MIN).default(BEAT_MS),
    /** Milliseconds without an answer after which a site gets nothing new. */
    suspectMs: z.number().default(SUSPECT_MS),
    /** Milliseconds without an answer after which another site takes its place. */
    deadMs: z.number().default(SILENT_SITE_MS),
    /** Outcome of a write when the owners cannot be reached: it fails, or is acknowledged all the same. */
    unreachable: z.enum(["fail", "acknowledge"]).default("fail"),
  }).refine(({ beatMs, suspectMs }) => suspectMs >= 2 * beatMs, {
    path: ["suspectMs"],
    message: "expected at least twice beatMs: one beat may be lost with its connection",
  }).refine(({ suspectMs, deadMs }) => deadMs >= suspectMs, {
    path: ["deadMs"],
    message: "expected at least suspectMs: a site is suspected before it is dead",
  });

/** Returns these fields as the store takes them. */
export function ownersSettings(config: {
  readonly f: number;
  readonly area?: string | undefined;
  readonly owners: z.infer<ReturnType<typeof ownersFields>>;
}): OwnersSettings {
  const { sites = null, ...times } = config.owners;
  return { f: config.f, area: config.area ?? null, sites, ...times };
}

/** Fields that are read again while a site runs (F1). */
const RELOADED: ReadonlySet<string> = new Set(["f", "area", "owners"]);

/** Returns the names of the other fields in which two readings of a site file differ: they take effect at a restart. */
export function fixedChanges(before: Readonly<Record<string, unknown>>, now: typeof before): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  return [...names].filter((name) => !RELOADED.has(name) && !equals(before[name], now[name])).sort();
}
