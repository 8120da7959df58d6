/** Conversion of the events that a site delivers into the inputs of turns. */
import type { BegunEvent, SessionEvent } from "./event.ts";
import type { Program } from "./program.ts";
import type { TurnInput } from "./turn.ts";
import type { WaitOutcome } from "./waits.ts";

/**
 * Returns the input of the turn that an event begins; null where the event means nothing (any more) to this program.
 */
export function inputOf(
  { timers, peers }: Pick<Program, "timers" | "peers">,
  event: BegunEvent,
): TurnInput | null {
  switch (event.kind) {
    case "request":
      return { kind: event.kind, request: event.request, chain: event.chain, bytes: event.bytes };
    case "attach":
      return peers.has(event.peer.id) ? null : { kind: event.kind, peer: event.peer };
    case "message":
      return peers.has(event.peer) ? { kind: event.kind, peer: event.peer, message: event.message } : null;
    case "detach":
      return peers.has(event.peer) ? { kind: event.kind, peer: event.peer } : null;
    case "timer":
      return timers.get(event.name) === event.dueMs ? { kind: event.kind, name: event.name } : null;
  }
}

/** Returns the input of the turn that a call's outcome begins. */
export const arrivalOf = (
  { call, outcome }: Extract<SessionEvent, { readonly kind: "result" }>,
): WaitOutcome =>
  outcome.ok
    ? { kind: "result", call, bytes: outcome.bytes }
    : { kind: "error", call, code: outcome.code, message: outcome.message };
