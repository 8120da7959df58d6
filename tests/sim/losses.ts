/**
 * What was lost with disks: writes that no surviving disk showed at the moment when another was lost. Their effects
 * may outlive them: a site below may have got a row from the lost disk, and not the row that it depends on.
 *
 * S1  A write counts as lost only if its stamp is known, no disk holds it or something newer, and it is not in the
 *     memory of a site that lives, which has yet to write it down.
 * S2  What a site with owners has acknowledged is not lost where no more disks were lost in all than it has owners.
 */
import type { Held, History, HistoryEvent } from "./history.ts";
import type { Ledger, WriteRecord } from "./ledger.ts";

/** Who else, beside the lost one, has a write that is on no disk. */
interface Origin {
  readonly site: string;
  /** The process that took it in has ended. */
  isOver: boolean;
}

/** Follows the disks of a history. */
export class Losses {
  readonly lost = new Set<WriteRecord>();
  /** Those of them that no disk has shown since: an owner, or a message on its way, may bring one back. */
  readonly gone = new Set<WriteRecord>();
  /** By site: the rows on its disk. */
  readonly disks = new Map<string, Map<number, Held>>();
  readonly #ledger: Ledger;
  readonly #history: History;
  readonly #count: number;
  /** Requests under way: where, and what they wrote and did not acknowledge yet. */
  readonly #requests = new Map<number, { readonly site: string; writes: number[] }>();
  readonly #kept = new Set<WriteRecord>();
  readonly #origins = new Map<number, Origin>();

  constructor(ledger: Ledger, history: History) {
    this.#ledger = ledger;
    this.#history = history;
    this.#count = countLosses(history);
  }

  /** Whether nothing that a site tells may be lost (S2). */
  keeps(site: string): boolean {
    return site !== this.#history.root && this.#count <= (this.#history.owners?.get(site) ?? 0);
  }

  /** Takes in commits and lost disks; call it after the ledger has taken the event in. */
  step(event: HistoryEvent): void {
    if (event.kind === "start" || event.kind === "gone") this.#ended(event.site);
    if (event.kind === "commit") this.#commit(event);
    else if (event.kind === "gone" || (event.kind === "start" && event.blank)) this.#lose(event.site);
    else if (event.kind === "request") this.#requests.set(event.request, { site: event.site, writes: [] });
    else if (event.kind === "wrote") {
      const site = this.#requests.get(event.request)?.site ?? "";
      for (const { write } of event.writes) this.#origins.set(write, { site, isOver: false });
      this.#requests.get(event.request)?.writes.push(...event.writes.map(({ write }) => write));
    } else if (event.kind === "issue" || event.kind === "chunk") this.#acknowledge(event.request);
    else if (event.kind === "end") this.#requests.delete(event.request);
  }

  #acknowledge(number: number): void {
    const request = this.#requests.get(number);
    if (request === undefined || !this.keeps(request.site)) return;
    for (const write of request.writes.splice(0)) {
      const record = this.#ledger.writes.get(write);
      if (record !== undefined) this.#kept.add(record);
    }
  }

  /** Whether the version of a key that something depends on went with a disk. */
  isLost(key: number, stamp: string): boolean {
    return this.#ledger.of(key).some((record) => record.stamp === stamp && this.lost.has(record));
  }

  #commit(event: HistoryEvent & { kind: "commit" }): void {
    const rows = this.disks.get(event.site) ?? new Map<number, Held>();
    this.disks.set(event.site, rows);
    for (const key of event.gone) rows.delete(key);
    for (const row of event.rows) {
      rows.set(row.key, row);
      for (const record of this.gone) {
        if (record.key === row.key && shows(row, record)) this.gone.delete(record);
      }
    }
  }

  /** What the process of a site had in memory only is gone with it. */
  #ended(site: string): void {
    for (const origin of this.#origins.values()) if (origin.site === site) origin.isOver = true;
  }

  #lose(site: string): void {
    this.disks.delete(site);
    for (const record of this.#ledger.writes.values()) {
      if (record.stamp === null) continue;
      const held = [...this.disks.values()].some((rows) => shows(rows.get(record.key), record));
      if (held || this.#kept.has(record) || this.#origins.get(record.write)?.isOver === false) continue;
      this.lost.add(record);
      this.gone.add(record);
    }
  }
}

/** How many disks were lost with something on them. */
function countLosses({ events }: History): number {
  const running = new Set<string>();
  let losses = 0;
  for (const event of events) {
    const isLost = event.kind === "gone" || (event.kind === "start" && event.blank);
    if (isLost && running.delete(event.site)) losses++;
    if (event.kind === "start") running.add(event.site);
  }
  return losses;
}

/** Whether a row includes a write or supersedes it. */
export function shows(row: Held | undefined, record: WriteRecord): boolean {
  if (record.what === "sum") return row?.sums?.includes(record.write) ?? false;
  return row !== undefined && record.stamp !== null && row.stamp >= record.stamp;
}
