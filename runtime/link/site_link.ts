/**
 * The link to one site, over all its connections: the connection that carries it now, the messages that wait while it
 * is being dialled, and the counters of its traffic.
 *
 * LL1  The owner is told of connected and disconnected in turn, and of messages only between the two.
 * LL2  A new connection of the same site ends the old one first.
 */
import type { Connection, ConnectionEnd } from "./connection.ts";
import type { CancelDial } from "./dial.ts";
import { type LinkCounters, zeroCounters } from "./counters.ts";

/** Role of the other site, from this site's point of view. */
export type LinkRole = "parent" | "child" | "peer";

export interface LinkStatus {
  readonly site: string;
  readonly role: LinkRole;
  readonly connected: boolean;
  /** Round trip of the last ping on this connection. */
  readonly rttMs: number | null;
  readonly queuedBytes: number;
  readonly requests: number;
  readonly counters: Readonly<LinkCounters>;
}

export interface SiteLinkPorts {
  readonly connected: (link: SiteLink) => void;
  readonly disconnected: (link: SiteLink, ending: ConnectionEnd) => void;
}

export class SiteLink {
  readonly site: string;
  readonly counters: LinkCounters = zeroCounters();
  readonly #ports: SiteLinkPorts;
  role: LinkRole;
  connection: Connection | null = null;
  /** Promise of a dial under way: resolves when it has succeeded or failed. */
  dialling: Promise<void> | null = null;
  /** Tells those that wait for a dial that the other side's connection was first. */
  arrived: (() => void) | null = null;
  /** Gives up the dial under way. */
  cancelDial: CancelDial | null = null;
  #queue: Uint8Array[] = [];
  #queueBytes = 0;

  constructor(site: string, role: LinkRole, ports: SiteLinkPorts) {
    this.site = site;
    this.role = role;
    this.#ports = ports;
  }

  get status(): LinkStatus {
    const { site, role, connection, counters } = this;
    return {
      site,
      role,
      connected: connection !== null,
      rttMs: connection?.rttMs ?? null,
      queuedBytes: connection?.queuedBytes ?? 0,
      requests: connection?.requests ?? 0,
      counters: { ...counters },
    };
  }

  /** The connection, unless it is being closed. */
  get live(): Connection | null {
    return this.connection?.open ? this.connection : null;
  }

  /** Keeps a message until the dial under way has ended. @returns false when there is no more room for it. */
  queue(message: Uint8Array, bytesMax: number): boolean {
    if (this.#queueBytes + message.length > bytesMax) return false;
    this.#queue.push(message);
    this.#queueBytes += message.length;
    return true;
  }

  /** Drops the messages that waited for a dial: it has failed. */
  drop(): void {
    this.#queue = [];
    this.#queueBytes = 0;
  }

  /** Takes a connection that was admitted, in place of the one before. */
  adopt(connection: Connection, role: LinkRole): void {
    this.release({
      planned: false,
      violation: false,
      reason: "replaced by a new connection of the same site",
    });
    this.connection = connection;
    this.role = role;
    this.counters.connections++;
    for (const message of this.#queue) void connection.send(message);
    this.drop();
    this.#ports.connected(this);
  }

  /** Ends the connection, if there is one, and tells the owner at once. */
  release(ending: ConnectionEnd, only?: Connection): void {
    const connection = this.connection;
    if (!connection || (only && only !== connection)) return;
    this.connection = null;
    connection.abort(ending.reason);
    this.#ports.disconnected(this, ending);
  }
}
