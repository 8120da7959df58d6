/**
 * Log lines of the changes that operators ask for: one a call, with the caller's name. Calls without a valid token are
 * logged together, once a minute: anybody may send them, and lines that matter would be pushed out of what `logs`
 * remembers.
 */
import type { AdminCall } from "../gateway/platform.ts";
import { Refusals } from "../link/refusals.ts";
import type { LogFields, LogLevel } from "./log.ts";

/** Returns the function that logs a call. `nowMs` never goes back. */
export function adminCallLog(
  line: (level: LogLevel, event: string, fields: LogFields) => void,
  nowMs: () => number,
): (level: "info" | "debug", call: AdminCall) => void {
  const strangers = new Refusals(
    nowMs,
    (_, call, before) => line("warn", "admin_call", { role: "none", call, before }),
  );
  return (level, fields) => {
    if (fields.role === "none") strangers.add("", fields.call);
    else line(level, "admin_call", { ...fields });
  };
}
