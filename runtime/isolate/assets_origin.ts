/**
 * How `env.ASSETS.fetch` leaves an isolate: as an outgoing fetch to a host that no name server has (RFC 6761), which
 * the site answers from the version's own files.
 */

/** Stands where the request's own origin stood. */
export const ASSETS_ORIGIN = "http://assets.sojourn.invalid";
