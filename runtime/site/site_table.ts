/**
 * The sites of the cluster as one site knows them: a live view of the system rows ["s", "site", id].
 *
 * Life: `watch` once the replica is open → kept current by its changes → `close`.
 */
import type { SiteRecord } from "../../store/api.ts";
import type { SystemStore } from "../deploy/app_table.ts";
import { decodeSystem, SITES } from "../deploy/records.ts";

/** Who is in the tree, and where. */
export class SiteTable {
  #sites: ReadonlyMap<string, SiteRecord> = new Map();
  #reading = false;
  #stale = false;
  #unwatch = () => {};

  /** Reads the rows now and whenever they change; rows that have not arrived yet are simply not there. */
  watch(system: SystemStore, note: (event: string, detail: Record<string, unknown>) => void): void {
    const read = async () => {
      this.#stale = true;
      if (this.#reading) return;
      this.#reading = true;
      try {
        while (this.#stale) {
          this.#stale = false;
          await this.#read(system);
        }
      } catch (error) {
        note("sites_unread", { error: String(error) });
      } finally {
        this.#reading = false;
      }
    };
    this.#unwatch = system.watch([SITES], () => void read());
    void read();
  }

  async #read(system: SystemStore): Promise<void> {
    const sites = new Map<string, SiteRecord>();
    for (const row of await system.list(SITES)) {
      const record = row.value === null ? null : decodeSystem(row.value) as SiteRecord;
      if (record !== null) sites.set(record.id, record);
    }
    this.#sites = sites;
  }

  /** By id. */
  get sites(): ReadonlyMap<string, SiteRecord> {
    return this.#sites;
  }

  /** Root first, then by depth and id. */
  list(): SiteRecord[] {
    return [...this.#sites.values()].sort((a, b) => a.depth - b.depth || (a.id < b.id ? -1 : 1));
  }

  close(): void {
    this.#unwatch();
  }
}
