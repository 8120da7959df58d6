/** Rows of an app as its stateful sessions have them (functions/sessions/serve), over the store of requests. */
import { type AppSpace, RequestStore, type StoreLimits } from "../gateway/session_store.ts";
import type { VersionWrites } from "../gateway/app_writes.ts";
import type { OwnStoreServices } from "../../functions/sessions/serve/own_store.ts";

/** Returns the rows of an app, by its prefixes, for the stores of its sessions. */
export const sessionRows = (
  { space, limits, writes }: {
    readonly space: AppSpace;
    readonly limits: StoreLimits;
    readonly writes: VersionWrites | undefined;
  },
): Pick<OwnStoreServices, "rows" | "track"> => ({
  rows: (session, nowMs) =>
    new RequestStore(session, { space, limits, nowMs, writes, use: { storeMs: 0, step: () => {} } }),
  track: writes === undefined ? undefined : (write) => writes.track(write),
});
