/** Rows that the root writes of itself at each start: it is enrolled by nobody. */
import type { SiteRecord } from "./api/api.ts";
import type { Core } from "./core/core.ts";
import { encodeJson, GAPS_KEY, replicaKey, siteKey } from "./members/topology.ts";

/** Writes the root's system rows. */
export async function introduceRoot(core: Core): Promise<void> {
  const { id, tier, url, linkAddress } = { ...core.config, id: core.config.site };
  const record: SiteRecord = { id, number: core.replica, parent: null, depth: 0, tier, url, linkAddress };
  const incarnation = { site: id, path: [id], parent: 0, from: 0 };
  await core.rows.lock.run(() => {
    core.rows.put(core.own(replicaKey(core.replica), encodeJson(incarnation)));
    core.rows.put(core.own(siteKey(id), encodeJson(record)));
    core.rows.put(core.own(GAPS_KEY, encodeJson(core.gaps.all)));
    return Promise.resolve();
  });
}
