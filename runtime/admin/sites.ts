/**
 * The sites that the cluster knows.
 */
import type { SiteRecord } from "../../store/api/api.ts";
import type { SystemStore } from "../deploy/app_table.ts";
import { SITES } from "../deploy/records.ts";
import { decodeSystem } from "../../store/model/system_value.ts";
import type { AdminHono, AdminServices } from "./services.ts";

/** Adds `GET /sites`. */
export function siteRoutes(app: AdminHono, services: AdminServices): void {
  app.get("/sites", async (c) => c.json(await readSites(services.system)));
}

/** Returns the sites that the cluster knows, root first. */
export async function readSites(system: SystemStore): Promise<SiteRecord[]> {
  const rows = await system.list(SITES);
  return rows.flatMap((row) => row.value ? [decodeSystem(row.value) as SiteRecord] : [])
    .sort((a, b) => a.depth - b.depth || (a.id < b.id ? -1 : 1));
}
