/**
 * Lines of a log, as sites keep them and as `GET /_sojourn/admin/logs` gives them (docs/observing.md), and the query by
 * which a reader selects them.
 */
import { z } from "zod";

/** Levels of a line, from least to most grave. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
/** Level of a line. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Kinds of notices: entries beside log lines, about the lines. */
const NOTICES = ["unreachable", "back", "dropped"] as const;

/** Schema of a line that came from another site, or to a command. */
export const logLineSchema = z.object({
  atMs: z.number(),
  site: z.string(),
  /** App that printed the line or, without a `version`, that the site's line is about. */
  app: z.string().optional(),
  version: z.string().optional(),
  level: z.enum(LOG_LEVELS),
  text: z.string(),
  traceId: z.string().optional(),
  /** Kind of the notice, where this is no log line but about them: a site that does not answer, lines that are lost. */
  notice: z.enum(NOTICES).optional(),
});

/** A line of a log. */
export type LogLine = Readonly<z.infer<typeof logLineSchema>>;

/** Most lines of one answer: with 16 KiB each, what a site holds for it stays below its ring. */
export const LINES_MAX = 5_000;
const LINES_DEFAULT = 200;

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const querySchema = z.object({
  app: z.string().max(40, "app has at most 40 characters").optional(),
  site: z.string().max(40, "site has at most 40 characters").optional(),
  level: z.enum(LOG_LEVELS, `level takes one of ${LOG_LEVELS.join(", ")}`).default("debug"),
  since: z.string().max(40, "since has at most 40 characters").optional(),
  limit: z.coerce.number(`limit takes a whole number from 0 to ${LINES_MAX}`).int().min(0).max(LINES_MAX)
    .default(LINES_DEFAULT),
  follow: z.enum(["0", "1"], "follow takes 0 or 1").default("0"),
  /** Set between sites: this site's lines alone. */
  here: z.literal("1").optional(),
  /** Place to go on after, between sites: a site's {@link LogRing} `boot` and the number of a line. */
  after: z.string().regex(/^[0-9a-f]{16}:\d{1,15}$/).optional(),
});

/** Query of a reader. */
export interface LogQuery {
  readonly app: string | null;
  readonly site: string | null;
  /** Least grave level that is wanted. */
  readonly level: LogLevel;
  readonly sinceMs: number | null;
  /** Number of the newest lines that are wanted. */
  readonly limit: number;
  readonly follow: boolean;
}

/** Query of a reader, with the fields that only sites ask each other. */
export interface SiteLogQuery extends LogQuery {
  readonly here: boolean;
  readonly after: string | null;
}

/** Parses a query; returns a text that says what is wrong with it. */
export function parseLogQuery(params: URLSearchParams, nowMs: number): SiteLogQuery | string {
  const parsed = querySchema.safeParse(Object.fromEntries(params));
  if (!parsed.success) return parsed.error.issues.map((issue) => issue.message).join("; ");
  const { app, site, level, since, limit, follow, here, after } = parsed.data;
  const sinceMs = since === undefined ? null : timeOf(since, nowMs);
  if (sinceMs !== null && Number.isNaN(sinceMs)) {
    return `since takes 90s, 10m, 2h or 1d, a date like 2026-01-31T12:00:00Z or milliseconds, not ${
      JSON.stringify(since)
    }`;
  }
  return {
    app: app ?? null,
    site: site ?? null,
    level,
    sinceMs,
    limit,
    follow: follow === "1",
    here: here !== undefined,
    after: after ?? null,
  };
}

/** Returns the time that a text names; NaN where it names none. */
export function timeOf(text: string, nowMs: number): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return nowMs - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (/^\d{10,15}$/.test(text)) return Number(text);
  return /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
}

/** Returns the parameters by which one site asks another for the same lines. */
export function siteQuery(query: LogQuery, more: { follow: boolean; after: string | null }): URLSearchParams {
  const params = new URLSearchParams({ here: "1", level: query.level, limit: String(query.limit) });
  if (query.app !== null) params.set("app", query.app);
  // Lines after a place are new, whatever the site's clock says.
  if (query.sinceMs !== null && more.after === null) {
    params.set("since", String(Math.max(query.sinceMs, 1e9)));
  }
  if (more.follow) params.set("follow", "1");
  if (more.after !== null) params.set("after", more.after);
  return params;
}

/** Reports whether a reader wants a line; notices are told anyway. */
export function wants(query: LogQuery, line: LogLine): boolean {
  if (query.app !== null && line.app !== query.app) return false;
  if (query.sinceMs !== null && line.atMs < query.sinceMs) return false;
  return LOG_LEVELS.indexOf(line.level) >= LOG_LEVELS.indexOf(query.level);
}
