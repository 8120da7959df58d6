/** What the client library can't do, by code. */

/** Its codes: what is wrong with a call, and what nobody answers. */
export type ClientErrorCode = "site_invalid" | "sites_unreachable" | "storage_unavailable" | "closed";

/** An error of the client library's own. What a site refuses is an answer, as for every `fetch`. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  constructor(readonly code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}
