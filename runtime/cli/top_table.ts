/** Lines of text that `sojourn top` shows of one overview: the tree of sites first, then the apps. */
import { z } from "zod";
import { columns } from "./command.ts";

const count = z.number().default(0);
const latency = z.number().nullable().default(null);
const rates = { requestsPerS: count, errorsPerS: count, p50Ms: latency, p99Ms: latency };

/** Schema of an overview, as far as it is shown. */
export const topViewSchema = z.object({
  atMs: z.number(),
  by: z.string(),
  sites: z.array(z.object({
    id: z.string(),
    parent: z.string().nullable(),
    tier: z.string(),
    reachable: z.boolean(),
    ageMs: z.number().nullable(),
    silentMs: latency,
    alerts: z.array(z.object({ code: z.string(), detail: z.string(), by: z.string() })).default([]),
    lagMs: latency,
    status: z.object({
      parent: z.object({ connected: z.boolean(), rttMs: z.number().nullable() }).nullable(),
      pending: count,
      pendingBytes: count,
      apps: z.array(z.object({
        name: z.string(),
        version: z.string(),
        isolates: z.number(),
        next: z.object({ version: z.string(), weight: z.number(), isolates: z.number() }).optional(),
      })).default([]),
      f: count,
      wards: z.object({ owners: z.array(z.string()), next: z.array(z.string()).nullable() }).optional(),
    }).nullable(),
    rates: z.object({
      all: z.object(rates),
      apps: z.array(z.object({
        app: z.string(),
        ...rates,
        versions: z.array(z.object({ version: z.string(), ...rates })).default([]),
      })),
      arrivals: z.object({ new: count, nothing: count, carry: count, wait: count }),
      process: z.object({ rssBytes: count, cpu: count }),
    }).nullable(),
  })),
});
export type TopView = z.infer<typeof topViewSchema>;
type TopSite = TopView["sites"][number];

/** Returns all lines. */
export function topLines(view: TopView): string[] {
  const away = view.sites.filter((site) => !site.reachable).length;
  const says = away === 0 ? "" : `, ${away} ${away === 1 ? "does" : "do"} not answer`;
  const time = new Date(view.atMs).toISOString().slice(11, 19);
  return [
    `${view.sites.length} ${
      view.sites.length === 1 ? "site" : "sites"
    }${says}  ·  ${time} UTC  ·  seen from ${view.by}`,
    "",
    ...aligned(siteRows(view.sites), 3),
    "",
    ...aligned([APP_HEAD, ...appRows(view)], 2),
    ...alertLines(view),
  ];
}

/** Returns the lines of the alerts, with the site that noticed where that is another one. */
function alertLines(view: TopView): string[] {
  const rows = view.sites.flatMap(({ id, alerts }) =>
    alerts.map(({ code, detail, by }) => [id, code, by === id ? detail : `${detail} (seen from ${by})`])
  );
  return rows.length === 0 ? [] : ["", ...columns([["ALERT AT", "CODE", "WHAT"], ...rows])];
}

const SITE_HEAD = [
  ...["SITE", "TIER", "UPLINK", "LAG", "PENDING", "REQ/S", "ERR/S", "P50", "P99"],
  ...["NEW", "NOTHING", "CARRY", "WAIT", "CPU", "MEMORY"],
];
const APP_HEAD = ["APP", "VERSION", "SITES", "ISOLATES", "REQ/S", "ERR/S", "P50", "P99"];

/** Returns the rows of the sites. The owners of what is pending at a site are a column only where sites have owners. */
function siteRows(sites: readonly TopSite[]): string[][] {
  const rows = inTree(sites).map(siteRow);
  if (!sites.some(({ status }) => (status?.f ?? 0) > 0)) {
    return [
      SITE_HEAD,
      ...rows.map(({ cells }) => cells),
    ];
  }
  return [
    [...SITE_HEAD, "OWNERS"],
    ...rows.map(({ cells, owners }) => cells.length < SITE_HEAD.length ? cells : [...cells, owners]),
  ];
}

/** Returns rows as lines, with numbers to the right: all columns from one on. */
function aligned(rows: readonly (readonly string[])[], from: number): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return columns(
    rows.map((row) => row.map((cell, i) => i < from ? cell : cell.padStart(widths[i] ?? 0))),
  );
}

/** Returns the sites below their parents, with the lines of the tree before their names. */
function inTree(sites: readonly TopSite[]): { site: TopSite; label: string }[] {
  const found: { site: TopSite; label: string }[] = [];
  const known = new Set(sites.map(({ id }) => id));
  const under = (parent: string | null, lead: string) => {
    const children = sites.filter((site) =>
      parent === null ? site.parent === null || !known.has(site.parent) : site.parent === parent
    );
    children.forEach((site, i) => {
      const isLast = i === children.length - 1;
      const branch = parent === null ? "" : isLast ? "└ " : "├ ";
      found.push({ site, label: lead + branch + site.id });
      under(site.id, parent === null ? "" : lead + (isLast ? "  " : "│ "));
    });
  };
  under(null, "");
  return found;
}

function siteRow(
  { site, label }: { site: TopSite; label: string },
): { readonly cells: string[]; readonly owners: string } {
  const { status, rates, tier } = site;
  if (!site.reachable || status === null || rates === null) {
    return {
      cells: [label, tier, awayText(site)],
      owners: "",
    };
  }
  const { all, arrivals, process } = rates;
  const cells = [
    label,
    tier,
    uplink(status.parent) + site.alerts.map(({ code }) => ` ${code}!`).join(""),
    site.lagMs === null ? "-" : seconds(site.lagMs),
    status.pending === 0 ? "0" : `${status.pending} (${bytes(status.pendingBytes)})`,
    ...rateCells(all),
    ...[arrivals.new, arrivals.nothing, arrivals.carry, arrivals.wait].map(String),
    `${Math.round(process.cpu * 100)}%`,
    bytes(process.rssBytes),
  ];
  return { cells, owners: ownersOf(status) };
}

/**
 * Returns the text about a site that does not answer. Its last answer may be older than what its neighbours heard of
 * it.
 */
function awayText({ silentMs, ageMs }: TopSite): string {
  const ms = silentMs ?? ageMs;
  return ms === null ? "no word" : `away ${seconds(ms)}`;
}

/** Returns the owners in effect, and those that are to take their place. */
function ownersOf({ wards }: NonNullable<TopSite["status"]>): string {
  const next = wards?.next ?? null;
  return (wards?.owners.join(" ") || "-") + (next === null ? "" : ` → ${next.join(" ") || "-"}`);
}

const uplink = (parent: NonNullable<TopSite["status"]>["parent"]): string =>
  parent === null ? "-" : !parent.connected ? "cut" : parent.rttMs === null ? "up" : millis(parent.rttMs);

/** Returns the rows of the apps over all sites, and of their versions where more than one serves. */
function appRows(view: TopView): string[][] {
  const names = [...new Set(view.sites.flatMap((site) => site.status?.apps.map(({ name }) => name) ?? []))];
  return names.sort().flatMap((name) => {
    const live = view.sites.filter((site) => site.reachable);
    const deployed = live.flatMap((site) => site.status?.apps.filter((app) => app.name === name) ?? []);
    const asked = live.flatMap((site) => site.rates?.apps.filter(({ app }) => app === name) ?? []);
    const isolates = sum(deployed.map((app) => app.isolates + (app.next?.isolates ?? 0)));
    const versions = [...new Set(deployed.map(({ version }) => version.slice(0, 8)))];
    const row = [name, versions.join(" "), String(deployed.length), String(isolates), ...over(asked)];
    const shares = new Map(
      deployed.flatMap(({ next }) => next === undefined ? [] : [[next.version, next.weight]]),
    );
    if (shares.size === 0) return [row];
    const byVersion = [...new Set([...deployed.map(({ version }) => version), ...shares.keys()])];
    return [
      row,
      ...byVersion.map((version) => {
        const weight = shares.get(version);
        const running = deployed.map((app) =>
          app.version === version ? app.isolates : app.next?.version === version ? app.next.isolates : 0
        );
        const own = asked.flatMap((app) => app.versions.filter((each) => each.version === version));
        const share = weight === undefined ? "  current" : `  ${weight}%`;
        return [share, version.slice(0, 8), "", String(sum(running)), ...over(own)];
      }),
    ];
  });
}

type Rated = { requestsPerS: number; errorsPerS: number; p50Ms: number | null; p99Ms: number | null };

/** Returns the rates of several sites: added; latencies are those of the slowest. */
function over(asked: readonly Rated[]): string[] {
  const worst = (values: readonly (number | null)[]) =>
    values.reduce((most, value) => value === null ? most : Math.max(most ?? 0, value), null);
  return rateCells({
    requestsPerS: sum(asked.map(({ requestsPerS }) => requestsPerS)),
    errorsPerS: sum(asked.map(({ errorsPerS }) => errorsPerS)),
    p50Ms: worst(asked.map(({ p50Ms }) => p50Ms)),
    p99Ms: worst(asked.map(({ p99Ms }) => p99Ms)),
  });
}

const rateCells = ({ requestsPerS, errorsPerS, p50Ms, p99Ms }: Rated): string[] => [
  requestsPerS.toFixed(1),
  errorsPerS.toFixed(1),
  p50Ms === null ? "-" : millis(p50Ms),
  p99Ms === null ? "-" : millis(p99Ms),
];

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const millis = (ms: number): string => ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
const seconds = (ms: number): string => ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;

function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024;
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}
