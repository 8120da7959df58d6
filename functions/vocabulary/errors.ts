/**
 * The errors that reach an app, and through it the platform's problem answers. They cross bundles (an app has its own
 * copy of this module), so all code recognises them by `code`, never by `instanceof`.
 *
 * Every error thrown to an app by this folder has a `code` of {@link AppErrorCode}; store/model/key.ts adds
 * `key_invalid`, the site adds the codes of its store.
 *
 * E2  An error that the app does not catch leaves its fetch handler, also where a framework would make a 500 of
 *     it: Hono's default error handler asks an error for `getResponse()`, and ours throws itself on.
 */

/** Code of an error, grouped by what the caller can do next. */
export type AppErrorCode =
  // Fix the program or the request.
  | "row_invalid" // a row does not match its table's schema
  | "key_invalid" // a key, prefix, selector or cursor is not one
  | "value_invalid" // a value can't be stored
  | "limit_key"
  | "limit_value"
  | "limit_atomic"
  | "limit_list"
  | "limit_body"
  | "limit_calls" // too many calls of stateful sessions: at one time, or of one request with an Idempotency-Key
  | "limit_timers"
  | "limit_message" // a message to a queue is too long, or too many are sent at once
  | "message_invalid" // a message does not match its queue's schema, or is sent with what no message has
  | "limit_messages" // too much waits to reach a stateful session
  | "deploy_invalid" // the default export is no app
  | "session_id_invalid" // no id of a stateful session
  | "not_available" // not built yet, or not at this site
  | "no_request" // used where no request runs
  | "state_invalid" // a field of a stateful session holds what no checkpoint can
  | "session_shared" // code of a stateful session ran in a turn of another
  | "module_state" // a stateful session changes what a module or class holds
  | "stack_full" // a stateful session goes on where its stack was full, which no replay would repeat
  | "memory_full" // a stateful session goes on where there was no memory, which no replay would repeat
  // Retry.
  | "check_failed" // the row changed meanwhile
  // Call the operator.
  | "value_corrupt"; // stored bytes are not in the value encoding

/** Error with a code. */
export class AppError extends Error {
  override readonly name: string = "AppError";
  constructor(
    readonly code: AppErrorCode,
    message: string,
    /** Details for programs: a path, issues, a key. */
    readonly detail: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }

  /** Throws this error again, where a framework asks for a response (E2). */
  getResponse(): never {
    throw this;
  }
}

/** Error for a limit or an argument of the KV API: a TypeError, as `Deno.Kv` throws. */
export class KvTypeError extends TypeError {
  override readonly name: string = "TypeError";
  constructor(readonly code: AppErrorCode, message: string) {
    super(message);
  }

  /** Throws this error again, where a framework asks for a response (E2). */
  getResponse(): never {
    throw this;
  }
}

/** Returns the code of an error, whichever copy of this module made it; undefined where it has none. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Makes the error for a declared part of the API that does nothing yet. */
export const notAvailable = (what: string): AppError =>
  new AppError("not_available", `${what} is not available in this version of Sojourn`, { what });
