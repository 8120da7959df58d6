/**
 * A player's connection to a table by the client library: one socket, however many connections it takes. What is said on it
 * arrives once; so what is lost on it is a finding.
 */
import { type Client, connect } from "../../../functions/client/mod.ts";
import type { SocketUse } from "./player_socket.ts";

/** See the file's header. */
export class LibrarySocket {
  readonly #use: SocketUse;
  readonly #client: Promise<Client>;
  #socket: WebSocket | null = null;
  #isAway = true;
  #number = 0;
  #isOver = false;
  /** Sockets that were given up by either side: messages on their way may be lost with one. */
  breaks = 0;

  constructor(use: SocketUse) {
    this.#use = use;
    const apps = use.urls.map((url) => url.replace("ws", "http").replace(/\/[^/]+\/socket$/, ""));
    this.#client = connect({ sites: apps });
    void this.#client.then((client) => this.#open(client));
  }

  say(words: unknown): boolean {
    // A paddle's place of a second ago is of no use to anybody: nothing is said into the void.
    if (this.#socket?.readyState !== WebSocket.OPEN || this.#isAway) return false;
    this.#socket.send(JSON.stringify(words));
    return true;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#socket?.close();
    await (await this.#client).close();
  }

  #open(client: Client): void {
    if (this.#isOver) return;
    const connection = `connection ${++this.#number}`;
    const { pathname } = new URL(this.#use.urls[0] ?? "");
    const socket = this.#socket = new client.WebSocket(pathname.slice(pathname.indexOf("/", 1)));
    socket.addEventListener("open", () => {
      this.#isAway = false;
      this.#use.opened();
    });
    socket.addEventListener("away", () => this.#isAway = true);
    socket.addEventListener("back", () => this.#isAway = false);
    socket.addEventListener("message", (event) => {
      this.#use.heard(connection, String((event as MessageEvent).data));
    });
    socket.addEventListener("close", () => {
      this.#isAway = true;
      if (this.#isOver) return;
      this.breaks++;
      setTimeout(() => this.#open(client), 250);
    });
  }
}
