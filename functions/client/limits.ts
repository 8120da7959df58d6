/** The bounds and intervals of the client library, and the reason for each. */

/**
 * Window in which a site's round trips are looked at together: a phone's network changes within seconds, not faster.
 */
export const WINDOW_MS = 5_000;
/** Sites that are measured all the time; the others only when something changed among these (DESIGN 8). */
export const NEAREST = 3;
/** Part by which a round trip has to change to count as changed. */
export const CHANGE_RATIO = 0.2;
/**
 * Part of the current site's cost below which another one's has to be, and the milliseconds by which, to be worth a
 * handoff.
 */
export const NEARER_RATIO = 0.7;
export const NEARER_MS = 5;
/**
 * Milliseconds that a site's tier adds to its cost: of two sites that are alike one at the edge is taken, where a
 * client's load burdens no other site.
 */
export const TIER_MS = { edge: 0, core: 2, root: 4 } as const;
/** Time that a client stays after a move to a better round trip: what was measured meanwhile includes the move. */
export const STAY_MS = 30_000;
/** Cost of a site of which nothing is known: it is tried after all that are known. */
export const UNKNOWN_MS = 10_000;

/** Time for which a site that failed is left alone, twice as long each time again. */
export const FAILED_SITE_MS = 500;
export const DEAD_MS_MAX = 15_000;
/**
 * Time for which a site is left alone that said that it goes away, or is not ready: it says so itself, so it is alive.
 */
export const AWAY_MS = 3_000;

/** Milliseconds that are added to the cost of a site that reaches no other: it is better than a dead one. */
export const CUT_OFF_MS = 20_000;

/** Time without an answer to a request after which its site is asked whether it lives; again after each such time. */
export const UNANSWERED_MS = 2_000;
/** Time within which a site answers a probe, or counts as dead: a hundred times a near round trip. */
export const PROBE_ANSWER_MS = 2_000;
/**
 * Time within which a site gives a token: one that lives gives it in no time. A question that takes so long was lost,
 * and is not waited for by all that need a token.
 */
export const TOKEN_MS = 5_000;
/**
 * Time for which a request is repeated: a session is taken over within `owners.suspectMs` (2 s), on a slow day in 10.
 */
export const GIVE_UP_MS = 30_000;
/** Pause between two attempts where no other site is left to try. */
export const PAUSE_MS = 200;
export const PAUSE_MS_MAX = 2_000;

/** Tokens that a gateway takes in one header. */
export const TOKENS_MAX = 8;
/** Sites in a list: a cluster of more has a list that is not for clients. */
export const SITES_MAX = 1_000;
/** Time before which the list of sites is not asked for again. */
export const SITES_EVERY_MS = 10_000;
/** Time for which a connection is tried before it is another site's turn. */
export const OPEN_MS = 5_000;

/**
 * Refusals of a socket that was never open, by sites that live, and the time over which they have to go on, before it
 * is given up: it is not wanted, or the app is broken. A session whose home died is at another site within this time.
 */
export const REFUSALS_MAX = 4;
export const REFUSED_MS = 5_000;
/** Connections that failed before the sites where they did are tried again. */
export const TRIES_BEFORE_ALL = 4;
/** Silence of a home, though asked, after which its site is left: a frozen site is left within twice this time. */
export const SILENT_MS = 4_000;
/**
 * Time without an acknowledgement of a message, with handlers of up to a second before it, after which a site is left.
 */
export const STALLED_MS = 10_000;
/** Time for which a WebSocket that was open is tried again: longer than a session keeps a peer that is away. */
export const RESUME_MS = 300_000;
/** Time for which a socket that is closed while it has no connection is waited for. */
export const CLOSE_MS = 5_000;
