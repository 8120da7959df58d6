/** Limits of calls to stateful sessions that travel over links. */

/** Deeper than any tree that makes sense; twice that, up and down. */
export const HOPS_MAX = 16;
