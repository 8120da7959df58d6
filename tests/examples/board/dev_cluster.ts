/** A dev cluster that serves the board. */
import { readCluster } from "../../../runtime/cli/cluster.ts";
import { startCluster } from "../../e2e/cluster.ts";
import type { BoardCluster } from "./trial.ts";

const APP = new URL("./operated_app.ts", import.meta.url).pathname;

/** A cluster of processes, with what they said. */
export interface DevBoard extends BoardCluster {
  log(): string;
  stop(): Promise<void>;
}

/** Starts a cluster of the default topology (or another), and waits until the board answers at every site. */
export async function startBoard(topology?: string): Promise<DevBoard> {
  const cluster = await startCluster({ apps: [APP], ...topology === undefined ? {} : { topology } });
  return {
    adminToken: cluster.adminToken,
    sites: async () => (await readCluster(cluster.data))?.sites ?? [],
    kill: (site) => cluster.control("kill", site),
    start: (site) => cluster.control("start", site),
    log: cluster.log,
    stop: cluster.stop,
  };
}
