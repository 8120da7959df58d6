/**
 * Sites that a new parent asks for the causes of what its child was fed (adoption.ts F2), in rounds: the old parent, or
 * where that one is given up the child and its siblings; then those above each site that has answered, as it said of
 * itself.
 *
 * S1  A site is asked after all that stand below it have answered: what they had by then, it had before.
 * S2  No site above the lowest common ancestor is asked: what the ancestor covers comes to this site through it.
 * S3  In place of a site that is given up, the one above it is asked. A site that lost its disk gets again what was
 *     pushed to it, and is asked for that; but where the old parent is given up, too, it might wait for the child; and
 *     so might the old parent itself, under a later number, by which those name it that stand below its next disk.
 * S4  An old parent that resyncs waits for the child, which says so by naming itself among its siblings: it is asked
 *     for what is there, and the siblings are, too, as those that it waits for. Where it stands below another one that
 *     resyncs, and that waits for it, that one is asked in the same way, and those below it.
 */
import type { Core } from "../core/core.ts";
import type { ChildHello } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import type { ReplicaNumber } from "../model/row.ts";

/** A site to ask, and the incarnation that must be whole; 0: whatever is there. */
export interface GatherSource {
  readonly site: SiteId;
  readonly replica: ReplicaNumber;
}

/** Reports whether rows that only a child's old parent had are given up. */
export function isGivenUp({ topology }: Core, { parentReplica, moved }: ChildHello): boolean {
  if (moved === undefined || moved.from === "") return false;
  return moved.lost.includes(moved.from) || topology.isRemoved(moved.from) ||
    topology.succession.heir(parentReplica) === null;
}

/** Lists the first sites to ask. */
export function firstSources(core: Core, child: SiteId, hello: ChildHello): GatherSource[] {
  const { moved } = hello;
  if (moved === undefined) return [];
  const isOver = isGivenUp(core, hello);
  if (!isOver && !moved.siblings.includes(child)) return [{ site: moved.from, replica: hello.parentReplica }];
  // A child that has heard nothing yet from the old parent's present disk does not know who else waits there.
  const others = isOver ? [] : [moved.from, ...below(core, moved.from)];
  const sites = new Set([...others, child, ...moved.siblings]);
  return [...sites].filter((site) => site === child || !isGone(core, hello, site)).map(anyOf);
}

/**
 * Lists the next sites to ask.
 *
 * @param named the site above each one that has answered, as it said.
 */
export function sourcesAbove(core: Core, named: readonly GatherSource[], hello: ChildHello): GatherSource[] {
  const found = named.flatMap((source) => {
    const above = standing(core, source, hello);
    if (above === null) return [];
    if (above.replica !== 0) return [above];
    return [above, ...below(core, above.site).filter((site) => !isGone(core, hello, site)).map(anyOf)];
  });
  return [...new Map(found.map((source) => [source.site, source])).values()];
}

/** Lists the sites that one waits for where it resyncs (S4). */
const below = ({ topology }: Core, parent: SiteId): SiteId[] => [
  ...topology.joinedBelow(parent),
  ...topology.movingFrom(parent),
];

const anyOf = (site: SiteId): GatherSource => ({ site, replica: 0 });

const isGone = ({ topology }: Core, { moved }: ChildHello, site: SiteId): boolean =>
  moved?.lost.includes(site) === true || topology.isRemoved(site);

/** Returns the site to ask in place of one (S3); null where there is none that may know more. */
function standing(core: Core, { site, replica }: GatherSource, hello: ChildHello): GatherSource | null {
  const { topology, path, config } = core, lost = hello.moved?.lost ?? [];
  const root = path[0] ?? config.site;
  for (let length = Infinity;;) {
    if (site === "" || site === root || site === config.site) return null; // S2
    const isLost = topology.succession.heir(replica) === null;
    const isOld = isGivenUp(core, hello) && (isLost || site === hello.moved?.from);
    const living = isOld ? undefined : isLost ? topology.living(site).at(-1) : replica;
    if (living !== undefined && !lost.includes(site) && !topology.isRemoved(site)) {
      return { site, replica: living };
    }
    const known = topology.incarnation(replica);
    // A parent's path is shorter; rows that say otherwise would lead round and round.
    if (known === undefined || known.path.length >= length) return null;
    length = known.path.length;
    site = known.path.at(-2) ?? "";
    replica = known.parent;
  }
}
