/**
 * Forwarder: hands on what comes, unread, from a client to the server behind and back. It does nothing, so that what it
 * costs to do nothing in a stateful session can be measured; and it makes any TCP or WebSocket server one whose clients
 * keep their connection while sites are lost.
 */
import { defineApp, type EnvOf, type From, Session } from "sojourn";

/** The server behind: it is to run there. */
const ORIGIN = "tcp://127.0.0.1:9100";

type Env = EnvOf<Record<never, never>, { line: Line; shared: SharedLine }>;

/** What waits for a server that is not there yet: a client that has more to say is sent away. */
const WAITING_BYTES_MAX = 1024 * 1024;

/** One client's line to the server. */
export class Line extends Session<Env> {
  static origin = ORIGIN;
  waiting: (string | Uint8Array)[] = [];
  waitingBytes = 0;

  override onOpen(from: From): void {
    if (from.kind === "client") {
      // One client a line: a second one would get the answers to the first.
      if (this.clients.length > 1) from.close(1008, "this line has a client already");
      return;
    }
    for (const message of this.waiting) from.send(message);
    this.waiting = [];
    this.waitingBytes = 0;
  }

  override onMessage(message: string | Uint8Array, from: From): void {
    if (from.kind === "origin") this.client?.send(message);
    else if (this.origin !== undefined) this.origin.send(message);
    else {
      this.waitingBytes += message.length;
      if (this.waitingBytes > WAITING_BYTES_MAX) return from.close(1013, "the server behind is not there");
      this.waiting.push(message);
    }
  }

  /** Whichever end goes, the other one goes too. */
  override onClose(from: From): void {
    if (from.kind === "origin") this.client?.close(1000, "");
    else if (this.clients.length === 0) this.end();
  }
}

/** A line whose ends hold its log, where these are agents: what one sends the other waits for no disk. */
export class SharedLine extends Line {
  static durability = "hosts" as const;
}

export default defineApp({
  name: "forwarder",
  sessions: { line: Line, shared: SharedLine },
  fetch: (request: Request, env: Env) => {
    const id = /^\/lines\/([\w.-]{1,100})$/.exec(new URL(request.url).pathname)?.[1];
    if (id === undefined) return new Response("GET /lines/ID, as a WebSocket\n", { status: 404 });
    return env.sessions.line.get(id).fetch(request);
  },
});
