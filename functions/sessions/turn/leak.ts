/**
 * Detection of sessions of one isolate that share something in a module: a promise, a callback, an object. What one
 * session does through it runs in a turn of another, where the log of the first does not have it.
 */
import { AppError } from "../../vocabulary/errors.ts";
import type { Parked } from "./commit.ts";
import { chainName } from "./event.ts";
import { type Act, appFrames } from "./trace.ts";

/** The names of a program. */
interface Named {
  readonly className: string;
  readonly id: string;
}

/** Error for code of a session that acted in a turn of another session, or in no turn. */
export class Leak extends AppError {
  readonly act: Act;

  constructor(owner: Named, current: Named | undefined, what: string) {
    const name = (of: Named) => chainName(of.className, of.id);
    const where = current === undefined || current === owner
      ? "outside of its turns"
      : `in a turn of ${name(current)}`;
    super(
      "session_shared",
      `${what}: code of the stateful session ${
        name(owner)
      } ran ${where}. Sessions of an isolate share a promise, ` +
        `a callback or an object in a module; what one does to another so is in no log`,
    );
    this.act = { what, at: appFrames() };
  }
}

/** Returns the reason to park the session whose code leaked: it goes no further. */
export const sharedState = ({ message, act }: Leak): Parked => ({
  code: "shared",
  message,
  detail: { did: [act] },
});
