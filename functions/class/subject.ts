/** The subject of a handler: a name, short and the same everywhere, of the event that the handler is begun for. */
/** Subject of a handler. */
export type Subject =
  | { readonly kind: "request"; readonly id: string }
  /** A peer's event: the peer's id. */
  | { readonly kind: "message" | "attach" | "detach"; readonly id: string }
  /** A named timer's event: the timer's name. */
  | { readonly kind: "timer"; readonly id: string };

/** Events and inputs of turns that begin handlers, as far as they name the subject. */
type Beginning =
  | { readonly kind: "request"; readonly request: string }
  | { readonly kind: "attach"; readonly peer: { readonly id: string } }
  | { readonly kind: "message" | "detach"; readonly peer: string }
  | { readonly kind: "timer"; readonly name: string };

/** Returns the subject of the handler that an event, or its turn, begins. */
export function subjectOf(event: Beginning): Subject {
  switch (event.kind) {
    case "request":
      return { kind: event.kind, id: event.request };
    case "attach":
      return { kind: event.kind, id: event.peer.id };
    case "message":
    case "detach":
      return { kind: event.kind, id: event.peer };
    case "timer":
      return { kind: event.kind, id: event.name };
  }
}
