/** Limits of calls to stateful sessions that travel over links. */

/** Number of links that a call may take: deeper than any tree that makes sense, twice, up and down. */
export const HOPS_MAX = 16;
