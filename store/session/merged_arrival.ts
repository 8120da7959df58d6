/** The merger of several tokens of one session: the session has seen what any of them names. */
import type { TokenState } from "../api/api.ts";
import { followedOf } from "../api/token_path.ts";
import type { ArrivingSession } from "./handoff.ts";
import type { Position } from "../model/row.ts";
import type { SessionIdentity } from "./session.ts";

/** Ways to arrive, from the one that needed least to the one that needed most. */
const ORDER: readonly ArrivingSession["how"][] = ["same", "nothing", "wait", "carry"];

/** Merges the identity and the arrival of a session that came with these tokens; `depth` is that of this site. */
export function mergedArrival(
  first: TokenState,
  tokens: readonly TokenState[],
  arrivals: readonly ArrivingSession[],
  depth: number,
): { readonly identity: SessionIdentity; readonly arrival: ArrivingSession } {
  const identity = {
    id: first.session,
    sequence: Math.max(...tokens.map((token) => token.sequence)),
    clock: Math.max(...tokens.map((token) => token.clock)),
  };
  const how = ORDER[Math.max(...arrivals.map((arrival) => ORDER.indexOf(arrival.how)))] ?? "same";
  const path = Array.from({ length: depth + 1 }, (_, at) => {
    const positions = arrivals.map((arrival) => arrival.path[at] ?? null);
    return positions.reduce<Position | null>(
      (all, p) => all === null || p === null ? null : Math.max(all, p),
      0,
    );
  });
  const followed = path.map((_, at) => Math.max(...arrivals.map((arrival) => followedOf(arrival, at))));
  const sum = (of: (arrival: ArrivingSession) => number) =>
    arrivals.reduce((total, arrival) => total + of(arrival), 0);
  return { identity, arrival: { how, path, followed, rows: sum((a) => a.rows), bytes: sum((a) => a.bytes) } };
}
