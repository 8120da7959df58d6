/** Crowds of clients that browse and comment at edges, the same ones on the baselines' tree and on ours. */
import type { SiteId } from "../../../store/model/ports.ts";
import type { World } from "../../sim/world.ts";
import { Random } from "../../examples/board/random.ts";
import type { Transitions } from "../../examples/board/transitions.ts";
import type { Board } from "./board_rows.ts";
import { type Access, Visitor } from "./visitor.ts";

/** Some clients at one edge. */
export interface Crowd {
  readonly site: SiteId;
  readonly visitors: readonly Visitor[];
}

export interface CrowdOptions {
  readonly board: Board;
  readonly transitions: Transitions;
  /** Clients at each edge. */
  readonly clients: number;
  /** A client leaves after so many queries: 22 in the paper (2,203 of 100 clients). */
  readonly queries: number;
}

/** Mean of an exponential distribution. */
const THINK_MS = 1_000;

/** One crowd at each of the edges, no two clients alike. */
export const crowds = ({ board, transitions, clients }: CrowdOptions, sites: readonly SiteId[]): Crowd[] =>
  sites.map((site, i) => ({
    site,
    visitors: Array.from({ length: clients }, (_, n) => {
      const client = i * clients + n + 1;
      return new Visitor(board, client, transitions, new Random(client));
    }),
  }));

/**
 * All of them at once, each with a time to think after a page, until each has run its queries.
 *
 * @param request runs one page of a client at its site.
 */
export async function browse(
  world: World,
  crowds: readonly Crowd[],
  queries: number,
  request: (site: SiteId, visitor: Visitor, page: (access: Access) => Promise<void>) => Promise<unknown>,
): Promise<void> {
  const think = new Random(7);
  await Promise.all(crowds.flatMap(({ site, visitors }) =>
    visitors.map(async (visitor) => {
      while (visitor.count < queries) {
        await world.sleep(think.exponential(THINK_MS));
        await request(site, visitor, (access) => visitor.page(access));
      }
    })
  ));
}
