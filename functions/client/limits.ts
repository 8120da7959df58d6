/** Every bound and interval of the client library, and why it is what it is. */

/** What a site's round trips are looked at together for: a phone's network changes within seconds, not faster. */
export const WINDOW_MS = 5_000;
/** Sites that are measured all the time; the others only when something changed among these (DESIGN 8). */
export const NEAREST = 3;
/** As much as a round trip has to change to be something that changed. */
export const CHANGE_RATIO = 0.2;
/** Another site has to be this much nearer, and by so many milliseconds, to be worth a handoff. */
export const NEARER_RATIO = 0.7;
export const NEARER_MS = 5;
/** Of two sites that are alike, one at the edge: what it does costs nobody else. */
export const TIER_MS = { edge: 0, core: 2, root: 4 } as const;
/** Who has moved for a better round trip stays so long: what was measured meanwhile includes the move. */
export const STAY_MS = 30_000;
/** A site of which nothing is known is tried after all that are. */
export const UNKNOWN_MS = 10_000;

/** A site that failed is left alone for so long, and twice as long each time again. */
export const FAILED_SITE_MS = 500;
export const DEAD_MS_MAX = 15_000;
/** One that said that it goes away, or is not ready: it says so itself, so it is alive. */
export const AWAY_MS = 3_000;

/** What a site that reaches no other counts as further away: it is better than a dead one. */
export const CUT_OFF_MS = 20_000;

/** A request without an answer for so long: its site is asked whether it lives; again after each so long. */
export const UNANSWERED_MS = 2_000;
/** A site that does not answer a probe within this is dead: a hundred times a near round trip. */
export const PROBE_ANSWER_MS = 2_000;
/** A site that lives gives a token in no time: what takes so long was lost, and is not waited for by all that need one. */
export const TOKEN_MS = 5_000;
/** A request is repeated for so long: a session is taken over within `owners.suspectMs` (2 s), on a slow day in 10. */
export const GIVE_UP_MS = 30_000;
/** Between two attempts where no other site is left to try. */
export const PAUSE_MS = 200;
export const PAUSE_MS_MAX = 2_000;

/** What a gateway takes in one header. */
export const TOKENS_MAX = 8;
/** Of a list of sites: a cluster of more is one whose list is not for clients. */
export const SITES_MAX = 1_000;
/** The list is asked for again not sooner than this. */
export const SITES_EVERY_MS = 10_000;
/** A connection is tried so long before it is another site's turn. */
export const OPEN_MS = 5_000;

/**
 * Refused so often before it was ever open, by sites that live, and for so long: it is not wanted, or the app is broken.
 * A session whose home died is at another within this.
 */
export const REFUSALS_MAX = 4;
export const REFUSED_MS = 5_000;
/** After so many connections that failed, the sites that did are tried again. */
export const TRIES_BEFORE_ALL = 4;
/** A home that says nothing for so long, though asked: a frozen site is left within twice this. */
export const SILENT_MS = 4_000;
/** A message that is not acknowledged for so long, with handlers of up to a second before it. */
export const STALLED_MS = 10_000;
/** A WebSocket that was open is tried to be continued for so long: longer than a session keeps a peer that is away. */
export const RESUME_MS = 300_000;
/** One that is closed while it has no connection is waited for so long. */
export const CLOSE_MS = 5_000;
