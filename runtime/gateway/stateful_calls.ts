/**
 * Calls of one request to stateful sessions: what the request's session has seen goes along, and what the stateful
 * session has seen comes back, so that the request reads here what was written there.
 *
 * SFC1  A call is carried only for a class that the app's version declares.
 * SFC2  An answer is handed to the function only when this site has what the stateful session had touched; and from
 *       then on the request's session has seen that, together with whatever else it touches meanwhile.
 * SFC3  What a call names as seen by its request is on disk here before the call leaves.
 */
import { encodeAnswer } from "../../functions/calls/call.ts";
import { sessionIdProblem, type SessionTarget } from "../../functions/calls/stub.ts";
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import type { Answered, StatefulRequest } from "../../functions/sessions/serve/request.ts";
import type { AttachedSession, TokenState } from "../../store/api/api.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { SessionCallPort } from "../isolate/session_calls.ts";
import type { MessageSocket } from "./message_socket.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import type { OnceCalls } from "./once.ts";

/** A client that is to be attached to a stateful session. */
export interface StatefulAttachment {
  readonly address: StatefulName;
  /** State of its request's session. */
  readonly token: TokenState | null;
  /** Subprotocols that the client offers. */
  readonly protocols: readonly string[];
}

/** A client that is attached: its messages to and from the stateful session. */
export interface AttachedSocket {
  readonly socket: MessageSocket;
  /** Subprotocol; empty for none. */
  readonly protocol: string;
}

/** Finds the home of a stateful session and has the call run there (runtime/stateful). */
export interface StatefulCaller {
  /** Attaches a client to a stateful session. @throws Problem where it can't be attached. */
  attach(attachment: StatefulAttachment): Promise<AttachedSocket>;
  /** Has a call run at its session's home. @throws Problem where the call could not be carried. */
  call(request: StatefulRequest): Promise<Answered>;
}

/** Parts of the request that its calls use. */
export interface StatefulCallsUse {
  readonly caller: StatefulCaller;
  readonly version: LiveVersion;
  readonly session: Pick<AttachedSession, "see" | "token" | "durable" | "isDurable">;
  /** Ids of the calls of a request that may be sent again; null for any other request. */
  readonly once: OnceCalls | null;
  /** Called when the request's session has seen more. */
  seen(): void;
}

/** Calls of one request; see the file's header. */
export class StatefulCalls implements SessionCallPort {
  readonly #use: StatefulCallsUse;

  constructor(use: StatefulCallsUse) {
    this.#use = use;
  }

  async call(target: SessionTarget, call: Uint8Array): Promise<Uint8Array> {
    const { caller, version: { app, manifest }, session, once, seen } = this.#use;
    const refusal = refusalOf(target, Object.keys(manifest.sessions));
    if (refusal !== null) return encodeAnswer({ kind: "error", ...refusal });
    const address = { app, class: target.class, id: target.id };
    const asked = once?.next(target, call);
    const { answer, token } = await caller.call({ address, call, token: await this.#told(), once: asked });
    if (token !== null) await session.see(token);
    seen();
    return answer;
  }

  /** Hands a client's WebSocket to a stateful session. @throws Problem (SFC1) */
  async attach(target: SessionTarget, protocols: readonly string[]): Promise<AttachedSocket> {
    const { caller, version: { app, manifest } } = this.#use;
    const refusal = refusalOf(target, Object.keys(manifest.sessions));
    if (refusal !== null) throw new Problem(refusal.code, refusal.message);
    const address = { app, class: target.class, id: target.id };
    return await caller.attach({ address, token: await this.#told(), protocols });
  }

  /** Returns what the request has seen, once it is on disk here (SFC3). */
  async #told(): Promise<TokenState> {
    const { session } = this.#use;
    const token = session.token(false);
    if (!session.isDurable) await session.durable();
    return token;
  }
}

/** Returns why a target is refused (SFC1). */
function refusalOf(
  target: SessionTarget,
  classes: readonly string[],
): { code: "not_available" | "session_id_invalid"; message: string } | null {
  if (!classes.includes(target.class)) {
    const found = classes.length === 0 ? "none" : classes.join(", ");
    return {
      code: "not_available",
      message: `the app declares no stateful session called ${
        JSON.stringify(target.class)
      }; it has: ${found}`,
    };
  }
  const problem = sessionIdProblem(target.id);
  return problem === null ? null : { code: "session_id_invalid", message: `${target.class}: ${problem}` };
}
