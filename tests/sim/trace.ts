/** A run's history as lines to read. */
import type { HistoryEvent, Seen, Written } from "./history.ts";
import type { RunResult } from "./simulation.ts";

/** Prints plan, history and violations of a run. */
export function printTrace(result: RunResult, say: (line: string) => void): void {
  const { plan, history, violations } = result;
  for (const site of plan.sites) {
    const link = site.linkMs.map((ms) => ms.toFixed(1)).join("–");
    say(
      `${site.id} (${site.tier}) under ${site.parent}, skew ${site.skewMs} ms, link ${link} ms, ` +
        `capacity ${site.capacityBytes}`,
    );
  }
  say(JSON.stringify({ ...plan, sites: undefined }));
  for (const event of history.events) say(`${event.atMs.toFixed(2).padStart(9)}  ${lineOf(event)}`);
  for (const { checker, message, atMs } of violations) say(`${atMs.toFixed(2)}  ${checker}: ${message}`);
}

function lineOf(event: HistoryEvent): string {
  switch (event.kind) {
    case "request":
      return `r${event.request} session ${event.session} at ${event.site} presents [${event.presents}]`;
    case "reading":
      return `r${event.request}   begins read ${event.reading}`;
    case "read":
      return `r${event.request}   reads ${event.rows.map(seen).join(", ")}`;
    case "write":
      return `r${event.request}   writes ${event.writes.map(written).join(", ")}` +
        (event.checks.length > 0 ? ` if ${event.checks.map(seen).join(", ")}` : "");
    case "wrote":
      return `r${event.request}   wrote ${event.writes.map(written).join(", ")} as ${event.stamp}`;
    case "issue":
      return `r${event.request}   issues ${event.issue}${event.open ? " (open)" : ""}`;
    case "lent":
      return `r${event.request}   asks ${event.once}, as ${event.issue}`;
    case "answered":
      return `r${event.request}   is answered ${event.once}`;
    case "follows":
      return `r${event.request}   follows ${event.issue}`;
    case "chunk":
      return `r${event.request}   sends chunk ${event.chunk}`;
    case "told":
      return `r${event.request}   has told chunk ${event.chunk}`;
    case "end":
      return `r${event.request} ends: ${event.outcome}${event.final ? " (last look)" : ""}`;
    case "commit":
      return `  ${event.site} commits ${event.rows.map(seen).join(", ")}` +
        (event.gone.length > 0 ? ` without ${event.gone}` : "") +
        (event.wards ?? []).map(({ of, key, row }) => ` for ${of} ${row === null ? `no k${key}` : seen(row)}`)
          .join(",") +
        (event.covers.length > 0 ? ` covers ${event.covers.map(([k, on]) => `${on ? "+" : "-"}${k}`)}` : "");
    case "start":
      return `  ${event.site} starts${event.blank ? " on a blank disk" : ""}`;
    case "reborn":
      return `  ${event.site} goes on under another number of ${event.parent}`;
    case "numbered":
      return `  ${event.site} is ${event.number}`;
    case "lost":
      return event.isAside === true
        ? `  ${event.site} sets an older disk aside`
        : `  ${event.site} loses its disk${event.isForGood ? ", for good" : ""}`;
    case "leaves":
      return `  ${event.site} says that it leaves` +
        (event.behind.length > 0 ? `, with ${event.behind} behind that` : "");
    case "emptied":
      return `  ${event.site} is drained, and its disk emptied`;
    case "removed":
      return `! ${event.site} is removed`;
    case "watched":
      return `  ${event.site} watches ${event.keys}: ${event.rows.map(seen).join(", ")}`;
    case "system":
      return `  ${event.site} shows ${event.rows.length} system rows`;
    case "fault":
      return `! ${event.text}`;
    case "final":
      return `  ${event.site} ends with ${event.rows.map(seen).join(", ")}; covers ${event.covers}; ` +
        `pending ${event.pending}`;
  }
}

const written = ({ write, key, what }: Written): string => `k${key} ${what} w${write}`;

function seen({ key, write, stamp, sums }: Seen): string {
  const value = sums !== undefined ? `sums ${sums}` : write === null ? "gone" : `w${write}`;
  return `k${key}=${value}${stamp === "" ? "" : ` @${stamp}`}`;
}
