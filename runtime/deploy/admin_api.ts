/**
 * Definitions that both ends of admin calls share: the handlers of every site (runtime/admin), and the client that
 * commands use (client.ts), which sites do not load.
 */

/** Rows in one answer: at 1 MiB a value this bounds what the root holds for it. */
export const ROWS_A_CALL_MAX = 100;

/** Path of every site's admin handlers. */
export const ADMIN_PATH = "/_sojourn/admin";

/** A refusal or failure of the cluster, known by its code. */
export class AdminError extends Error {
  override readonly name = "AdminError";
  constructor(
    readonly code: string,
    message: string,
    /** Place in the bundle, for `deploy_invalid`. */
    readonly place?: string,
  ) {
    super(message);
  }

  /** Lines for people: the message, and the place, unless that says no more than the message. */
  get lines(): string[] {
    const { code, message, place } = this;
    const says = `${code}: ${message}`;
    return place === undefined || place.endsWith(message) ? [says] : [says, place];
  }
}
