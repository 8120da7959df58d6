/**
 * Answer of an admin call whose handler throws: the problem that was thrown, where it is one; else `admin_failed`, with
 * the stack in the log.
 */
import { problemResponse } from "../gateway/problem.ts";
import { problemOf } from "../../functions/vocabulary/problem.ts";
import type { AdminServices } from "./services.ts";

/** Returns the answer for an error. */
export function failure(error: unknown, { note }: Pick<AdminServices, "note">): Response {
  const known = problemOf(error);
  if (known !== null) return problemResponse(known.code, known.message, known.more);
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  note("admin_failed", { error: stack ?? message });
  return problemResponse("admin_failed", message);
}
