/**
 * Who is attached to a program: clients and the origin, as its handlers see them, and what is counted of each.
 *
 * PE1  Messages to one peer are numbered 1, 2, 3 … from its attaching on (CM3): a replay gives the same number to the
 *      same message.
 * PE2  Who has gone gets nothing, whoever still holds its `from`, as with a socket that is closed.
 */
import { AppError } from "../errors.ts";
import type { SessionPeer } from "../session_slot.ts";
import type { Peer } from "./event.ts";

/** What it has of a peer: itself, and how many messages it was sent. */
export interface PeerState {
  readonly peer: Peer;
  sent: number;
}

/** What peers need of their program. */
interface PeersPorts {
  /** @throws AppError where nothing may be given out now. */
  mayAct(what: string): void;
  give(to: string, sequence: number, bytes: Uint8Array): void;
}

/** See the file's header. */
export class Peers {
  readonly #ports: PeersPorts;
  readonly #states = new Map<string, PeerState>();

  constructor(ports: PeersPorts) {
    this.#ports = ports;
  }

  has(id: string): boolean {
    return this.#states.has(id);
  }

  /** In the order in which they were attached. */
  values(): IterableIterator<PeerState> {
    return this.#states.values();
  }

  attach(peer: Peer): void {
    this.restore({ peer, sent: 0 });
  }

  /** One of a checkpoint. */
  restore(state: PeerState): void {
    this.#states.set(state.peer.id, state);
  }

  detach(id: string): void {
    this.#states.delete(id);
  }

  /** The clients, as handlers see them. */
  clients(): SessionPeer[] {
    return [...this.#states.values()].filter(({ peer }) => peer.kind === "client")
      .map(({ peer }) => this.asSeen(peer.id));
  }

  /** One of them, as handlers see it. */
  asSeen(id: string): SessionPeer {
    const state = this.#states.get(id);
    const kind = state?.peer.kind ?? "client";
    return Object.freeze({
      kind,
      id,
      send: (message: string | Uint8Array) => {
        this.#ports.mayAct("send");
        // PE2
        if (state !== undefined && this.#states.get(id) === state) {
          this.#ports.give(id, ++state.sent, messageBytes(message));
        }
      },
    });
  }
}

const utf8 = new TextEncoder();

/** A message to a peer: 0 and text, or 1 and bytes. */
function messageBytes(message: string | Uint8Array): Uint8Array {
  const isText = typeof message === "string";
  if (!isText && !(message instanceof Uint8Array)) {
    throw new AppError("value_invalid", `a message is a text or a Uint8Array, not ${typeof message}`);
  }
  const body = isText ? utf8.encode(message) : message;
  const bytes = new Uint8Array(body.length + 1);
  bytes[0] = isText ? 0 : 1;
  bytes.set(body, 1);
  return bytes;
}
