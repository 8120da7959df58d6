/** What is allowed to those who ask stateful sessions over links. */

/** Deeper than any tree that makes sense; twice that, up and down. */
export const HOPS_MAX = 16;
