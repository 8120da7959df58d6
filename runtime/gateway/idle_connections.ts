/**
 * Cutting off of client connections on which nothing happens. Deno's server waits without end for the rest of a
 * request's head, for the rest of a body whose request was answered, and for the next request; each is an open file and
 * some 25 KB, and when no file can be opened any more nobody else is served.
 *
 * Life of a round: every ROUND_MS all connections at the site's port are looked at (link/descriptors.ts) → idle ones
 * are cut off.
 *
 * IC1  A connection is idle when nothing was sent to its client for `idleMs`, since it came or was answered: what the
 *      client sends meanwhile, a byte now and then, makes no difference.
 * IC2  A connection is not idle while a request of it is being answered, or while it is a WebSocket: pings look after
 *      those. A request that has just come may not be known yet, so a client that has sent something in the last
 *      JUST_MS is left, for a twelfth of the time more.
 * IC3  Where connections hold half of the files that the process may open, a twelfth of the time is enough.
 * IC4  A WebSocket whose connection is not met in a round has ended: the next connection of that address may be another
 *      client's.
 * IC5  Where the system can't tell (DS2) nobody is cut off.
 */
import { descriptors } from "../link/descriptors.ts";
import type { RequestClient } from "./surplus.ts";

export const ROUND_MS = 5_000;
const JUST_MS = 1_000;
const LATE_PART = 12;
const SCARCE_PART = 2;
const SCARCE_FACTOR = 12;
/** Milliseconds between two notes. */
const NOTE_MS = 60_000;

/** Open connections and the files that the process may open: told when files are scarce. */
export interface Scarcity {
  readonly connections: number;
  /** Files that the process may open. */
  readonly files: number;
}

export interface IdleOptions {
  /** Returns the port at which clients connect; null: none, so far. */
  readonly port: () => number | null;
  /** Reports whether a request of that peer is being answered. */
  readonly isAnswered: (peer: Deno.NetAddr) => boolean;
  readonly idleMs: number;
  /** Called when files are scarce (IC3), once a minute at most. */
  readonly note?: (scarcity: Scarcity) => void;
  readonly roundMs?: number;
}

/** Cuts off idle connections, until it is closed. */
export class IdleConnections {
  readonly #options: IdleOptions;
  /** Peers that have a WebSocket, and the round in which they were met last. */
  readonly #sockets = new Map<string, number>();
  readonly #leave = descriptors.keep();
  readonly #files = filesMax();
  #round = 0;
  #connections = 0;
  #notedMs = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(options: IdleOptions) {
    this.#options = options;
    this.#next();
  }

  /** Number of connections in the last round. */
  get size(): number {
    return this.#connections;
  }

  /** Notes that the connection of a request becomes a WebSocket. */
  upgraded({ remoteAddr }: Pick<RequestClient, "remoteAddr">): void {
    if (remoteAddr.transport === "tcp") this.#sockets.set(keyOf(remoteAddr), this.#round);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#leave();
  }

  #next(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => this.#look().then(() => this.#next()), this.#options.roundMs ?? ROUND_MS);
  }

  async #look(): Promise<void> {
    const { port, isAnswered } = this.#options, at = port(), round = ++this.#round;
    let connections = 0;
    const idleMs = this.#idleMs();
    for await (const met of at === null ? [] : descriptors.connectionsAt(at)) {
      if (this.#isClosed) return;
      connections++;
      const { peer, sentAgoMs, receivedAgoMs } = met, key = keyOf(peer);
      if (this.#sockets.has(key)) this.#sockets.set(key, round);
      else if (
        sentAgoMs > idleMs && (receivedAgoMs > JUST_MS || sentAgoMs > idleMs + idleMs / LATE_PART) &&
        !isAnswered({ transport: "tcp", ...peer })
      ) met.cut();
    }
    this.#connections = connections;
    for (const [key, met] of this.#sockets) if (met < round) this.#sockets.delete(key); // IC4
  }

  /** Milliseconds after which a connection is idle, by how scarce files are (IC3). */
  #idleMs(): number {
    const { idleMs, note } = this.#options, nowMs = performance.now();
    if (this.#connections * SCARCE_PART <= this.#files) return idleMs;
    if (nowMs - this.#notedMs >= NOTE_MS) {
      this.#notedMs = nowMs;
      note?.({ connections: this.#connections, files: this.#files });
    }
    return idleMs / SCARCE_FACTOR;
  }
}

const keyOf = ({ hostname, port }: { hostname: string; port: number }): string => `${hostname} ${port}`;

function filesMax(): number {
  try {
    const told = /^Max open files\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/limits"))?.[1];
    return told === undefined ? Infinity : Number(told);
  } catch {
    return Infinity; // no Linux
  }
}
