/** What a client is told whose session saw what may be lost. */
import { StoreUnavailable, type TokenState } from "./api.ts";
import type { Core } from "./core.ts";
import { unixMs } from "./row.ts";

/** The problem `source_lost` of a token. */
export function sourceLost(
  core: Core,
  { replica, clock }: Pick<TokenState, "replica" | "clock">,
): StoreUnavailable {
  const { topology } = core;
  const site = topology.incarnation(replica)?.site ?? "";
  const why = topology.succession.heir(replica) === null
    ? `the disk of site ${site} was lost before all that this session saw there had left it`
    : `the parent of site ${site} was lost before all that this session saw there had left it`;
  return new StoreUnavailable("source_lost", why, {
    mayBeLost: { site, incarnation: replica, from: unixMs(topology.ended(replica) ?? 0), to: unixMs(clock) },
  });
}
