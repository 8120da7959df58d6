/**
 * The problems, that is the platform's errors: each has a code from a closed list, an HTTP status, and the next step
 * for the caller. The list is that of docs/http.md, and the only place where codes become statuses.
 */
import { StoreUnavailable } from "../../store/api/api.ts";

/** Next step for the caller: change the request, send it again, start a new session, or ask the operator. */
export type Retry = "fix" | "retry" | "reset" | "operator";

const CODES = {
  query_invalid: [400, "fix"],
  token_malformed: [401, "reset"],
  token_forged: [401, "reset"],
  token_foreign: [401, "reset"],
  token_expired: [401, "reset"],
  token_oversized: [401, "reset"],
  admin_token_invalid: [401, "fix"],
  admin_role: [403, "fix"],
  chaos_refused: [403, "fix"],
  cross_site: [403, "fix"],
  app_unknown: [404, "fix"],
  version_unknown: [404, "fix"],
  host_unknown: [404, "fix"],
  site_unknown: [404, "fix"],
  not_found: [404, "fix"],
  queue_unknown: [404, "fix"],
  method_not_allowed: [405, "fix"],
  body_late: [408, "retry"],
  check_failed: [409, "retry"],
  superseded: [409, "retry"],
  move_refused: [409, "fix"],
  cron_running: [409, "retry"],
  assets_needed: [409, "fix"],
  blobs_missing: [409, "retry"],
  rollout_running: [409, "fix"],
  rollout_none: [409, "fix"],
  app_deleting: [409, "retry"],
  host_taken: [409, "fix"],
  site_connected: [409, "fix"],
  stateful_running: [409, "fix"],
  queue_handled: [409, "fix"],
  site_needed: [409, "fix"],
  site_held: [409, "fix"],
  interrupted: [409, "retry"],
  source_lost: [410, "reset"],
  limit_body: [413, "fix"],
  limit_headers: [413, "fix"],
  limit_key: [413, "fix"],
  limit_value: [413, "fix"],
  limit_stateful: [413, "fix"],
  limit_atomic: [413, "fix"],
  limit_message: [413, "fix"],
  limit_bundle: [413, "fix"],
  row_invalid: [422, "fix"],
  message_invalid: [422, "fix"],
  lease_invalid: [422, "fix"],
  session_id_invalid: [422, "fix"],
  idempotency_key_invalid: [422, "fix"],
  deploy_invalid: [422, "fix"],
  chaos_invalid: [422, "fix"],
  secret_invalid: [422, "fix"],
  admin_failed: [500, "operator"],
  not_available: [501, "operator"],
  isolate_killed: [502, "retry"],
  app_error: [502, "operator"],
  source_unreachable: [503, "retry"],
  store_unreachable: [503, "retry"],
  owners_unreachable: [503, "retry"],
  owners_too_few: [503, "operator"],
  queue_full: [503, "retry"],
  stateful_unreachable: [503, "retry"],
  stateful_parked: [503, "operator"],
  pending_full: [503, "retry"],
  disk_failed: [503, "operator"],
  row_damaged: [503, "operator"],
  overloaded: [503, "retry"],
  not_ready: [503, "retry"],
  draining: [503, "retry"],
  wall_time: [504, "retry"],
  cycle: [508, "fix"],
  internal: [500, "operator"],
} as const satisfies Record<string, readonly [number, Retry]>;

/** Error code of the platform. */
export type ProblemCode = keyof typeof CODES;

/** Reports whether a text is one of the codes. */
export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(CODES, code);

/** Returns the HTTP status of a code. */
export const problemStatus = (code: ProblemCode): number => CODES[code][0];

/** Returns the caller's next step for a code. */
export const problemRetry = (code: ProblemCode): Retry => CODES[code][1];

/** Error of the platform on its way to the client. */
export class Problem extends Error {
  override readonly name = "Problem";
  constructor(
    readonly code: ProblemCode,
    message: string,
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/**
 * Returns an error as the problem that a client is told: a refusal of the store, wherever it was asked or waited for,
 * has a code of its own. null: the error is a fault of the platform's.
 */
export function problemOf(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (!(error instanceof StoreUnavailable)) return null;
  return new Problem(isProblemCode(error.code) ? error.code : "overloaded", error.message, error.detail);
}
