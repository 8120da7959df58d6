/**
 * What both ends of admin calls share: the handlers of every site (runtime/admin), and the client that commands use
 * (client.ts), which sites do not load.
 */

/** Rows in one answer: at 1 MiB a value this bounds what the root holds for it. */
export const ROWS_A_CALL_MAX = 100;

/** Where every site has its admin handlers. */
export const ADMIN_PATH = "/_sojourn/admin";

/** A refusal or failure of the cluster, known by its code. */
export class AdminError extends Error {
  override readonly name = "AdminError";
  constructor(
    readonly code: string,
    message: string,
    /** Where in the bundle, for `deploy_invalid`. */
    readonly place?: string,
  ) {
    super(message);
  }

  /** For people: what is wrong, and where, unless the place says no more than that. */
  get lines(): string[] {
    const { code, message, place } = this;
    const says = `${code}: ${message}`;
    return place === undefined || place.endsWith(message) ? [says] : [says, place];
  }
}
