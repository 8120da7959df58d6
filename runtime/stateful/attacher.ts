/**
 * Attacher of WebSockets that came to this site's gateway to stateful sessions: plain ones, for which this site is the
 * host side, and those of the client library, which are relayed.
 *
 * A1  A plain socket's handshake is answered when its attachment is in the session's log; refused, it gets a problem.
 */
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import { type PeerClock, SUBPROTOCOL } from "../../functions/sessions/attach/mod.ts";
import type { MessageSocket } from "../gateway/message_socket.ts";
import type { AppQueues } from "../isolate/app_queues.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import type { AttachedSocket, StatefulAttachment, StatefulCaller } from "../gateway/stateful_calls.ts";
import type { PeerWays } from "../../functions/sessions/serve/peer_ways.ts";
import { PlainPeer } from "./plain_peer.ts";
import { RefusedPeer, RelayedPeer } from "./relayed_peer.ts";

/** Site of the gateway, as attaching needs it. */
export interface AttacherServices {
  readonly ways: Pick<PeerWays, "open">;
  /** Draws the number of a host side: 1 to 2^53 − 1. */
  readonly instance: () => number;
  readonly socketsMax: number;
  /** Queues of an app at this site. */
  readonly queues?: (app: string) => AppQueues;
  readonly count: (what: PeersCount) => void;
  /** Clock; left out: the system's. */
  readonly clock?: PeerClock;
  /** Reports a fault of the gateway's end of one WebSocket. */
  readonly failed: (name: StatefulName, error: unknown) => void;
}

/** Event of a socket, as it is counted. */
export type PeersCount = "attached" | "relayed" | "refused" | "resumed" | "lost" | "slow";

/** Attacher (see the file's header). */
export class Attacher implements Pick<StatefulCaller, "attach"> {
  readonly #services: AttacherServices;
  #sockets = 0;

  constructor(services: AttacherServices) {
    this.#services = services;
  }

  /** Number of sockets of this gateway that are attached. */
  get sockets(): number {
    return this.#sockets;
  }

  /** Attaches a WebSocket. @throws Problem */
  async attach(attachment: StatefulAttachment): Promise<AttachedSocket> {
    const { socketsMax, count } = this.#services;
    if (this.#sockets >= socketsMax) {
      throw new Problem(
        "overloaded",
        `${socketsMax} WebSockets of this site lead to stateful sessions already`,
      );
    }
    this.#sockets++;
    try {
      const isRelayed = attachment.protocols.includes(SUBPROTOCOL);
      const attached = await (isRelayed ? this.#relayed(attachment) : this.#plain(attachment));
      return { ...attached, socket: this.#counted(attached.socket) };
    } catch (error) {
      this.#sockets--;
      count("refused");
      throw error;
    }
  }

  async #relayed({ address, token }: StatefulAttachment): Promise<AttachedSocket> {
    const { ways, count } = this.#services;
    try {
      const socket = new RelayedPeer(await ways.open(address, token));
      count("relayed");
      return { socket, protocol: SUBPROTOCOL };
    } catch (error) {
      count("refused");
      return { socket: new RefusedPeer(error), protocol: SUBPROTOCOL };
    }
  }

  async #plain({ address, token, protocols }: StatefulAttachment): Promise<AttachedSocket> {
    const { ways, instance, count, clock, failed, queues } = this.#services;
    let unseen = token;
    const open = async () => {
      const way = await ways.open(address, unseen);
      unseen = null; // the session has it from now on
      return way;
    };
    const socket = await PlainPeer.attach({
      ...{ open, instance: instance(), count, clock, queues: queues?.(address.app) },
      failed: (error) => failed(address, error),
    });
    count("attached");
    return { socket, protocol: protocols[0] ?? "" };
  }

  /** Counts a socket until it has ended. */
  #counted(socket: MessageSocket): MessageSocket {
    let isOver = false;
    const over = () => {
      if (!isOver) this.#sockets--;
      isOver = true;
    };
    return {
      send: (data) => socket.send(data),
      close: (code, reason) => {
        over();
        socket.close(code, reason);
      },
      next: async () => {
        const event = await socket.next();
        if (event.kind === "close") over();
        return event;
      },
    };
  }
}
