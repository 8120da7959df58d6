/**
 * An agent for programs that can't be changed: a TCP listener on their machine. Each connection becomes a client of a
 * stateful session, with the agent as its host side, so the program keeps its connection while sites come and go.
 *
 * CA1  A connection's bytes reach the session once and in order, and its answers the program, as long as the agent lives.
 * CA2  The agent holds the log of a session whose log is kept at hosts (docs/protocol/hosts.md): the agent lives as
 *      long as the answers that its program got are of use.
 */
import { bridge, type MessageSocket } from "../gateway/message_socket.ts";
import { TcpSocket } from "./message_ways.ts";

/** Services of the surrounding program that the agent uses. */
export interface ClientAgentServices {
  readonly listener: Deno.TcpListener;
  /** Attaches a client to a session of that id, at whichever site is reached. @throws Error */
  readonly attach: (id: string) => Promise<MessageSocket>;
  /** Returns the id of a connection's session. */
  readonly idOf: () => string;
  readonly note: (text: string) => void;
}

/** Connections at a time: as a program has files; further ones are closed at once. */
const CONNECTIONS_MAX = 1_000;

/** Takes the TCP connections of programs. */
export class ClientAgent {
  readonly #services: ClientAgentServices;
  readonly #open = new Set<TcpSocket>();
  /** Attached connections: they end with their sockets. A connection that still looks for a site is not waited for. */
  readonly #attached = new Set<Promise<void>>();

  constructor(services: ClientAgentServices) {
    this.#services = services;
  }

  /** Serves until it is stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { listener, note } = this.#services;
    const close = () => listener.close();
    stop.addEventListener("abort", close, { once: true });
    try {
      for await (const connection of listener) {
        if (this.#open.size >= CONNECTIONS_MAX) {
          note(`${CONNECTIONS_MAX} connections are open: one more was closed`);
          connection.close();
          continue;
        }
        void this.#serve(connection);
      }
    } finally {
      stop.removeEventListener("abort", close);
      for (const socket of this.#open) socket.close();
      await Promise.allSettled(this.#attached);
    }
  }

  async #serve(connection: Deno.TcpConn): Promise<void> {
    const { attach, idOf, note } = this.#services;
    const socket = new TcpSocket(connection), id = idOf();
    this.#open.add(socket);
    try {
      const attached = bridge(socket, await attach(id));
      this.#attached.add(attached);
      await attached.finally(() => this.#attached.delete(attached));
    } catch (error) {
      note(`a connection could not be attached to ${id}: ${error instanceof Error ? error.message : error}`);
      socket.close();
    } finally {
      this.#open.delete(socket);
    }
  }
}
