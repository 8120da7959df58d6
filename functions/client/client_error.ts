/** What the client library can't do, by code. */

/** Its codes: what is wrong with a call, and what nobody answers. */
export type ClientErrorCode = "site_invalid" | "sites_unreachable" | "storage_unavailable" | "closed";

/** An error of the client library's own. What a site refuses is an answer, as for every `fetch`. */
export class ClientError extends Error {
  /** As every error has one. */
  override readonly name = "ClientError";
  /** Made by the library. */
  constructor(readonly code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}
