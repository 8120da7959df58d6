/**
 * Attaching of a request's WebSocket to the stateful session that its handler hands it to; where that fails, the answer
 * is a problem.
 *
 * ATS1  The answer carries the headers of any other of that request: what its function wrote before stays written.
 */
import type { SessionTarget } from "../../functions/calls/stub.ts";
import { type Outcome, respond } from "./arrival.ts";
import { problemResponse } from "./problem.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import type { RequestHead } from "./request_head.ts";
import type { StatefulCalls } from "./stateful_calls.ts";

/** @param sessions calls of the request to stateful sessions; undefined where this site reaches none. */
export async function attachSocket(
  target: SessionTarget,
  sessions: StatefulCalls | undefined,
  head: RequestHead,
  headers: [string, string][],
): Promise<Outcome> {
  try {
    if (!head.upgrade || sessions === undefined) {
      throw new Problem("not_found", "the request is no WebSocket handshake: nothing can be attached");
    }
    const offered = head.headers.filter(([name]) => name === "sec-websocket-protocol");
    const own = offered.flatMap(([, value]) => value.split(",").map((each) => each.trim()));
    const protocols = [...head.offers, ...own];
    return { kind: "socket", ...await sessions.attach(target, protocols), headers };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const response = problemResponse(error.code, error.message, error.more);
    for (const [name, value] of headers) response.headers.append(name, value); // ATS1
    return respond(response);
  }
}
