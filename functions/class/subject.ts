/** What a handler is begun for: a name of its event that is short, and the same wherever it is spoken of. */
/** What a handler is begun for. */
export type Subject =
  | { readonly kind: "request"; readonly id: string }
  /** A peer's: its id. */
  | { readonly kind: "message" | "attach" | "detach"; readonly id: string }
  /** A named timer: its name. */
  | { readonly kind: "timer"; readonly id: string };

/** Events and inputs of turns that begin handlers, as far as they name it. */
type Beginning =
  | { readonly kind: "request"; readonly request: string }
  | { readonly kind: "attach"; readonly peer: { readonly id: string } }
  | { readonly kind: "message" | "detach"; readonly peer: string }
  | { readonly kind: "timer"; readonly name: string };

/** What the handler is for that an event, or its turn, begins. */
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
