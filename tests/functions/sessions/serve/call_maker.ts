/** Maker of the calls of a session that is none: parts of one, as a test plays them. */
import { type CallingSession, makeCall } from "../../../../functions/sessions/serve/made_calls.ts";
import type { CallMaker } from "../../../../functions/sessions/serve/ports.ts";

export const callMaker = (session: CallingSession): CallMaker => ({
  keyOf: (effect) => session.keyOf(effect),
  make: (call, making) => makeCall(session, call, making),
});
