/**
 * Table of the cluster's sites as one site knows them, from when it is ready: its replica derives them from the system
 * rows ["s", "site", id]. A change costs nothing here: the list is sorted when somebody asks for it.
 */
import type { Replica, SiteRecord } from "../../store/api/api.ts";

const NONE = { sites: new Map<string, SiteRecord>(), changes: 0 };

/** Table of the sites in the tree. */
export class SiteTable {
  #members: Pick<Replica["members"], "sites" | "changes"> = NONE;
  #listed: { readonly list: readonly SiteRecord[]; readonly changes: number } = { list: [], changes: 0 };

  /** Shows what the replica knows from now on; rows that have not arrived yet are simply not there. */
  watch(members: Replica["members"]): void {
    this.#members = members;
  }

  /** Sites by id. */
  get sites(): ReadonlyMap<string, SiteRecord> {
    return this.#members.sites;
  }

  /** Returns the sites: root first, then by depth and id. */
  list(): readonly SiteRecord[] {
    const { sites, changes } = this.#members;
    if (this.#listed.changes !== changes) {
      const list = [...sites.values()].sort((a, b) => a.depth - b.depth || (a.id < b.id ? -1 : 1));
      this.#listed = { list, changes };
    }
    return this.#listed.list;
  }

  close(): void {
    this.#members = NONE;
  }
}
