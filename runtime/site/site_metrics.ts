/**
 * Metrics of a site beside those of its requests: the store, the links, the process. All of them are read from their
 * sources when somebody asks; nothing is counted twice.
 */
import process from "node:process";
import type { ReplicaStatus } from "../../store/api/api.ts";
import type { Standing } from "../../store/presence/detector.ts";
import type { HubStatus, LinkStatus } from "../link/mod.ts";
import { type Family, observed } from "../telemetry/mod.ts";

/** Sources of a site's metrics. */
export interface MetricSources {
  readonly info: Readonly<Record<string, string>>;
  readonly replica: () => ReplicaStatus;
  readonly hub: () => HubStatus | undefined;
  readonly requests: () => { readonly total: number; readonly active: number };
  /** Returns the number of folders that lie aside (lost_folder.ts). */
  readonly lostFolders: () => number;
}

type Kind = "counter" | "gauge";
type Value = number | null | undefined;

const one = (kind: Kind, name: string, unit: string, description: string, read: () => Value): Family =>
  observed(kind, { name, unit, description }, () => {
    const value = read();
    return value === null || value === undefined ? [] : value;
  });

const seconds = (ms: Value): Value => typeof ms === "number" ? ms / 1000 : ms;

/** Milliseconds for which one reading of a source is used: it serves all families of a scrape. */
const READING_MS = 50;

function briefly<T>(read: () => T): () => T {
  let last: { readonly value: T; readonly untilMs: number } | undefined;
  return () => {
    const nowMs = performance.now();
    if (last === undefined || last.untilMs < nowMs) last = { value: read(), untilMs: nowMs + READING_MS };
    return last.value;
  };
}

/** The families of a site. */
export function siteFamilies(sources: MetricSources): Family[] {
  const { info, requests } = sources;
  const replica = briefly(sources.replica);
  const hub = briefly(sources.hub);
  return [
    observed("gauge", { name: "site.info", unit: "", description: "The site; always 1." }, () => [
      { labels: Object.entries(info), value: 1 },
    ]),
    one(
      "gauge",
      "disk.folders.lost",
      "{folder}",
      "Folders that were set aside since their files were not what was written, or older: they lie there still.",
      sources.lostFolders,
    ),
    one(
      "counter",
      "requests",
      "{request}",
      "Requests of clients, those for the platform included.",
      () => requests().total,
    ),
    one(
      "gauge",
      "http.server.active_requests",
      "{request}",
      "Requests for apps that wait for their answer.",
      () => requests().active,
    ),
    ...storeFamilies(replica),
    ...ownerFamilies(replica),
    ...linkFamilies(() => hub()?.links ?? []),
    one(
      "counter",
      "link.refused",
      "{connection}",
      "Connections refused at the door: strangers, wrong versions.",
      () => hub()?.refused,
    ),
    ...processFamilies(),
  ];
}

function storeFamilies(status: () => ReplicaStatus): Family[] {
  return [
    one("gauge", "store.position", "{row}", "Head of this site's journal.", () => status().position),
    one(
      "gauge",
      "store.pending",
      "{row}",
      "Rows that the parent has not acknowledged.",
      () => status().pending,
    ),
    one("gauge", "store.pending.size", "By", "Their keys and values.", () => status().pendingBytes),
    one(
      "gauge",
      "store.coverage.ranges",
      "{range}",
      "Ranges that this site covers.",
      () => status().coverage.ranges,
    ),
    one(
      "gauge",
      "store.coverage.size",
      "By",
      "Keys and values on this site's disk.",
      () => status().coverage.bytes,
    ),
    one(
      "gauge",
      "store.coverage.limit",
      "By",
      "What they may come to.",
      () => status().coverage.capacityBytes,
    ),
    one(
      "counter",
      "store.rows.damaged",
      "{row}",
      "Rows that the disk had changed by itself, found since the start.",
      () => status().counters["rows_damaged"] ?? 0,
    ),
    one(
      "gauge",
      "store.rows.refused",
      "{row}",
      "Of these, rows that no other site is known to have: reads of them fail.",
      () => status().damaged.length,
    ),
    one(
      "gauge",
      "store.feed.lag",
      "s",
      "Age of the parent's last mark that was applied.",
      () => seconds(status().parent?.feedLagMs),
    ),
    one(
      "gauge",
      "store.stable.lag",
      "s",
      "Age of the root's stable clock: what was written anywhere in the tree before it is here.",
      () => seconds(status().stableLagMs),
    ),
    one("gauge", "store.parent.connected", "{link}", "1 while the parent is connected.", () => {
      const { parent } = status();
      return parent === null ? null : Number(parent.connected);
    }),
    one(
      "gauge",
      "store.children.connected",
      "{site}",
      "Children that are connected.",
      () => status().children.filter((child) => child.connected).length,
    ),
    one(
      "counter",
      "session.carried.rows",
      "{row}",
      "Rows that handoffs carried here.",
      () => status().counters.carried_rows ?? 0,
    ),
    one(
      "counter",
      "session.carried.size",
      "By",
      "What they took on the links.",
      () => status().counters.carried_bytes ?? 0,
    ),
    observed("counter", {
      name: "session.handoffs",
      unit: "{session}",
      description: "Sessions that came here with a token, by what it took: same, nothing, carry, wait.",
    }, () => labelled(status().counters, "sojourn.handoff", (name) => /^attach_(\w+)$/.exec(name)?.[1])),
    observed("counter", {
      name: "store.events",
      unit: "{event}",
      description: "What the replica counts: commits, reads_local, reads_missed, fetch, evicted, …",
    }, () => labelled(status().counters, "event", eventOf)),
  ];
}

/**
 * Returns the label of a counter that has no family of its own; undefined for one that has, and for what is no counter.
 */
const eventOf = (name: string): string | undefined =>
  /^(?:attach_|carried_|storage_bytes$)/.test(name) ? undefined : name;

const labelled = (
  counters: Readonly<Record<string, number>>,
  label: string,
  valueOf: (name: string) => string | undefined,
) =>
  Object.entries(counters).flatMap(([name, value]) => {
    const told = valueOf(name);
    return told === undefined ? [] : [{ labels: [[label, told]] as const, value }];
  });

function ownerFamilies(status: () => ReplicaStatus): Family[] {
  return [
    observed("gauge", {
      name: "owners.watched",
      unit: "{site}",
      description: "Sites that this one measures as owners, by their standing.",
    }, () => {
      const counts = new Map<Standing, number>(STANDINGS.map((standing) => [standing, 0]));
      for (const { standing } of status().watched) counts.set(standing, (counts.get(standing) ?? 0) + 1);
      return [...counts].map(([standing, value]) => ({ labels: [["standing", standing]] as const, value }));
    }),
    one(
      "gauge",
      "wards.owners",
      "{site}",
      "Owners in effect of what is pending here.",
      () => status().wards.owners.length,
    ),
    one(
      "gauge",
      "wards.silent",
      "{site}",
      "Of them, those that do not take it: answers wait, and fail.",
      () => status().wards.silent.length,
    ),
    one(
      "gauge",
      "wards.held.size",
      "By",
      "Keys and values that are held here for other sites.",
      () => status().wards.heldBytes,
    ),
  ];
}

/** All standings: each has a figure at any time, so that the first site that is suspected does not begin a series. */
const STANDINGS: readonly Standing[] = ["unknown", "alive", "suspected", "dead"];

function linkFamilies(links: () => readonly LinkStatus[]): Family[] {
  const family = (
    kind: Kind,
    name: string,
    unit: string,
    description: string,
    read: (link: LinkStatus) => Value,
  ) =>
    observed(kind, { name, unit, description }, () =>
      links().flatMap((link) => {
        const value = read(link);
        const labels = [["site", link.site], ["role", link.role]] as const;
        return value === null || value === undefined ? [] : [{ labels, value }];
      }));
  return [
    family("counter", "link.received", "By", "Bytes from a site.", (link) => link.counters.bytesIn),
    family("counter", "link.sent", "By", "Bytes to a site.", (link) => link.counters.bytesOut),
    family(
      "counter",
      "link.store.received",
      "By",
      "Of them, the store's.",
      (link) => link.counters.storeBytesIn,
    ),
    family(
      "counter",
      "link.store.sent",
      "By",
      "Of them, the store's.",
      (link) => link.counters.storeBytesOut,
    ),
    family(
      "counter",
      "link.connections",
      "{connection}",
      "Connections made so far.",
      (link) => link.counters.connections,
    ),
    family(
      "gauge",
      "link.connected",
      "{link}",
      "1 while a site is connected.",
      (link) => Number(link.connected),
    ),
    family("gauge", "link.rtt", "s", "Round trip of the last ping.", (link) => seconds(link.rttMs)),
    family("gauge", "link.queue", "By", "Bytes that wait to be sent.", (link) => link.queuedBytes),
    family(
      "gauge",
      "link.requests",
      "{request}",
      "Requests that run over the link.",
      (link) => link.requests,
    ),
  ];
}

function processFamilies(): Family[] {
  const began = Date.now() / 1000 - performance.now() / 1000;
  return [
    observed("counter", {
      name: "process.cpu.time",
      unit: "s",
      description: "CPU time of the site's process; isolates are processes of their own.",
    }, () => {
      const { user, system } = process.cpuUsage();
      return [
        { labels: [["cpu.mode", "user"]], value: user / 1e6 },
        { labels: [["cpu.mode", "system"]], value: system / 1e6 },
      ];
    }),
    one(
      "gauge",
      "process.memory.usage",
      "By",
      "Memory that the site's process holds.",
      () => Deno.memoryUsage().rss,
    ),
    one(
      "gauge",
      "process.heap.usage",
      "By",
      "Of it, JavaScript's objects.",
      () => Deno.memoryUsage().heapUsed,
    ),
    one("gauge", "process.start_time", "s", "When it began, in seconds since 1970.", () => began),
  ];
}
