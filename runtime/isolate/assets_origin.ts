/**
 * The address by which `env.ASSETS.fetch` leaves an isolate: an outgoing fetch to a host that no name server has (RFC
 * 6761), which the site answers from the version's own files.
 */

/** Origin that stands in place of the request's own. */
export const ASSETS_ORIGIN = "http://assets.sojourn.invalid";
