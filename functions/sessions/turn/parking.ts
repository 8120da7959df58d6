/** Reasons for which sessions are parked, in words for those who have to do something about it. */
import { codeOf } from "../../vocabulary/errors.ts";
import type { Parked } from "./commit.ts";
import { thrown } from "./handler.ts";
import type { Program } from "./program.ts";
import type { Subject } from "../../class/subject.ts";
import type { Act } from "./trace.ts";

/** Failure for which a handler is undone. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  /** Stack of the error, for a report. */
  readonly stack: string;
}

/** Names what is open, for people. */
function openWork({ calls, locals, handler }: Program): string {
  const names = [...calls.values()].map(({ name }) => name).slice(0, 3);
  const timers = [...locals.values()].slice(0, 3).map(({ ms }) => `${ms} ms`);
  if (timers.length > 0) {
    names.push(`${locals.size} closure timers, of ${timers.join(", ")}`);
  }
  return `${handler?.name ?? "no handler"} is open, with ${names.join(", ") || "nothing to wait for"}`;
}

/** Returns the reason of a session that never rests, and whose log has no room left. */
export const logFull = (program: Program, bytes: number): Parked => ({
  code: "log_full",
  message: `its log has ${bytes} bytes, and it never rests: ${openWork(program)}`,
  detail: { bytes },
});

/** Returns the reason of a session whose state is no value. */
export const stateInvalid = (error: unknown): Parked => ({
  code: "state_invalid",
  message: thrown(error).message,
  detail: { code: codeOf(error) ?? null },
});

/** Returns the reason of a session whose handler is not over, with nothing open. */
export function waitsUnrecorded({ handler }: Program, acts: readonly Act[]): Parked {
  const name = handler?.name ?? "";
  const last = acts.at(-1);
  const after = last === undefined ? "" : `; the last thing that it did was ${last.what}, ${last.at.trim()}`;
  return {
    code: "waits_unrecorded",
    message:
      `${name} waits for something that is no event: a promise that nothing here will ever settle${after}`,
    detail: { handler: name, did: acts },
  };
}

/** Returns the reason of a session whose handler threw, where its class wants it to be parked then. */
export function handlerThrew(
  { code, message, stack }: Failure,
  subject: Subject | null,
  attempt: number,
): Parked {
  const what = subject === null
    ? "a closure timer"
    : `the handler of ${subject.kind} ${JSON.stringify(subject.id)}`;
  const tries = attempt > 1 ? `, ${attempt} times` : "";
  return {
    code: "handler_threw",
    message: `${what} threw${tries}: ${message}`,
    detail: { subject, attempt, code, message, stack },
  };
}
