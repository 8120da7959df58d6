/**
 * What an admin call answers when its handler throws: the problem that was thrown, where it is one; else
 * `admin_failed`, with the stack in the log.
 */
import { StoreUnavailable } from "../../store/api.ts";
import { Problem, problemResponse } from "../gateway/problem.ts";
import type { AdminServices } from "./services.ts";

/** The answer for an error. */
export function failure(error: unknown, { note }: Pick<AdminServices, "note">): Response {
  if (error instanceof Problem) return problemResponse(error.code, error.message, error.more);
  if (error instanceof StoreUnavailable) return problemResponse("store_unreachable", error.message);
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  note("admin_failed", { error: stack ?? message });
  return problemResponse("admin_failed", message);
}
