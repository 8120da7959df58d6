/**
 * What was lost with disks: writes that no surviving disk showed at the moment when another was lost. Their effects
 * may outlive them: a site below may have got a row from the lost disk, and not the row that it depends on.
 *
 * S1  A write counts as lost only if its stamp is known and no disk holds it or something newer.
 */
import type { Held, HistoryEvent } from "./history.ts";
import type { Ledger, WriteRecord } from "./ledger.ts";

/** Follows the disks of a history. */
export class Losses {
  readonly lost = new Set<WriteRecord>();
  /** By site: the rows on its disk. */
  readonly disks = new Map<string, Map<number, Held>>();
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Takes in commits and lost disks; call it after the ledger has taken the event in. */
  step(event: HistoryEvent): void {
    if (event.kind === "commit") this.#commit(event);
    else if (event.kind === "gone" || (event.kind === "start" && event.blank)) this.#lose(event.site);
  }

  /** Whether the version of a key that something depends on went with a disk. */
  isLost(key: number, stamp: string): boolean {
    return this.#ledger.of(key).some((record) => record.stamp === stamp && this.lost.has(record));
  }

  #commit(event: HistoryEvent & { kind: "commit" }): void {
    const rows = this.disks.get(event.site) ?? new Map<number, Held>();
    this.disks.set(event.site, rows);
    for (const key of event.gone) rows.delete(key);
    for (const row of event.rows) rows.set(row.key, row);
  }

  #lose(site: string): void {
    this.disks.delete(site);
    for (const record of this.#ledger.writes.values()) {
      if (record.stamp === null) continue;
      const held = [...this.disks.values()].some((rows) => shows(rows.get(record.key), record));
      if (!held) this.lost.add(record);
    }
  }
}

/** Whether a row includes a write or supersedes it. */
export function shows(row: Held | undefined, record: WriteRecord): boolean {
  if (record.what === "sum") return row?.sums?.includes(record.write) ?? false;
  return row !== undefined && record.stamp !== null && row.stamp >= record.stamp;
}
