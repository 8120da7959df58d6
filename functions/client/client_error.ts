/** The errors of the client library, by code. */

/** Code of a client's error: what is wrong with a call, or what could not be reached. */
export type ClientErrorCode = "site_invalid" | "sites_unreachable" | "storage_unavailable" | "closed";

/** Error of the client library's own. What a site refuses is an answer, as for every `fetch`. */
export class ClientError extends Error {
  /** Name of the error's class. */
  override readonly name = "ClientError";
  /** Makes an error; the library does. */
  constructor(readonly code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}
