/** What is said where something is lost: to a client whose session saw it, and of a disk that has gone back. */
import { StoreUnavailable, type TokenState } from "../api/api.ts";
import type { Core } from "./core.ts";
import { type Position, unixMs } from "../model/row.ts";

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

/** The same, of a token that has seen what this site's own disk has had and has no more. */
export function wentBack(
  core: Core,
  { replica, clock }: Pick<TokenState, "replica" | "clock">,
): StoreUnavailable {
  const { config: { site } } = core;
  const why = `the disk of site ${site} went back: some of what this session saw is not there any more`;
  return new StoreUnavailable("source_lost", why, {
    mayBeLost: { site, incarnation: replica, from: unixMs(core.found.clock), to: unixMs(clock) },
  });
}

/** A backup was put back: positions would be given out again, and what is written at them taken for known elsewhere. */
export class OlderDisk extends Error {
  override readonly name = "OlderDisk";

  /** @param witness who has had more: a neighbour, or a session. */
  constructor({ config: { site }, found }: Core, witness: string, position: Position) {
    super(
      `the disk of site ${site} was found ending at position ${found.head}, and ${witness} has had its journal up to ` +
        `${position}: it is an older copy; start the site with an empty data folder`,
    );
  }
}
