/**
 * A stateful session behind the sites of a {@link VirtualHost}: its log, which outlives its homes, and the home side of
 * functions/sessions/attach at whichever site is its home. It answers each message with its number and text.
 */
import {
  type Channel,
  type ChannelReader,
  HomeSide,
  SUBPROTOCOL,
} from "../../../functions/sessions/attach/mod.ts";
import type { LoggedPeers, OutputToPeer, PeerInput } from "../../../functions/sessions/attach/mod.ts";
import { tag } from "../../../functions/sessions/attach/frame_bytes.ts";
import type { Socket, SocketListener, SocketOptions } from "../../../functions/client/ports.ts";
import type { FakeSite, VirtualHost } from "./virtual_host.ts";

interface LoggedPeer {
  readonly id: string;
  sent: number;
  received: number;
  outputs: OutputToPeer[];
}

/** From the message's way into the log. */
const COMMIT_MS = 3;
const ABNORMAL = 1006;

interface Open {
  readonly site: FakeSite;
  readonly listener: SocketListener;
  reader: ChannelReader | null;
  isOpen: boolean;
}

/** A site that drains takes nothing new, and keeps what it has. */
const passes = ({ state }: FakeSite): boolean => state === "up" || state === "draining";

/** See the file's header. */
export class FakeSession {
  readonly #world: VirtualHost;
  readonly #peers = new Map<string, LoggedPeer>();
  readonly #open = new Set<Open>();
  #home: HomeSide | null = null;
  #epoch = 0;
  #ids = 0;
  /** Every message that is in the log, in order. */
  readonly heard: string[] = [];
  /** Ids of peers, as they attached and detached. */
  readonly seen: string[] = [];
  /** What the server takes: the session's, the app's own, or nobody. */
  takes: "session" | "plain" | "refuses" = "session";
  offered: SocketOptions[] = [];

  constructor(world: VirtualHost) {
    this.#world = world;
    world.sockets = (site, { options }, listener) => this.#socket(site, options, listener);
    this.#begin();
  }

  /** Its home dies, and another one goes on with the log. */
  kill(awayMs = 2_000): void {
    this.#home = null;
    for (const each of [...this.#open]) this.#broken(each);
    this.#world.later(awayMs, () => this.#home === null ? this.#begin() : undefined);
  }

  /** A site dies with all that goes over it. */
  lose(site: FakeSite): void {
    site.state = "dead";
    for (const each of [...this.#open]) if (each.site === site) this.#broken(each);
  }

  /** All of them break, and nobody is dead. */
  cut(): void {
    for (const each of [...this.#open]) this.#broken(each);
  }

  /** The session forgets who was attached, as after a long time. */
  forget(): void {
    this.#peers.clear();
    this.kill(0);
  }

  #begin(): void {
    const epoch = ++this.#epoch;
    const home: HomeSide = new HomeSide({
      clock: { nowMs: () => this.#world.nowMs(), after: (ms, run) => this.#world.later(ms, run) },
      deliver: (event) =>
        void this.#world.later(COMMIT_MS, () => this.#home === home ? this.#commit(home, event) : undefined),
      acknowledge: (counts) => {
        for (const [id, count] of Object.entries(counts)) {
          const peer = this.#peers.get(id);
          if (peer !== undefined) peer.outputs = peer.outputs.filter(({ sequence }) => sequence > count);
        }
      },
      newId: () => `peer-${++this.#ids}`,
      keysOf: (id) => [new Uint8Array(16).fill(id.length)],
      outrun: () => {},
    });
    this.#home = home;
    const peers = [...this.#peers.values()];
    const logged: LoggedPeers = {
      epoch,
      peers: peers.map(({ id, sent, received }) => ({ kind: "client", id, sent, received, isClosed: false })),
      outputs: peers.flatMap(({ outputs }) => outputs),
    };
    home.opened(logged);
  }

  #commit(home: HomeSide, event: PeerInput): void {
    const outputs: OutputToPeer[] = [];
    if (event.kind === "attach") {
      const { id } = event.peer;
      this.#peers.set(id, { id, sent: 0, received: 0, outputs: [] });
      this.seen.push(`+${id}`);
    } else if (event.kind === "detach") {
      this.#peers.delete(event.peer);
      this.seen.push(`-${event.peer}`);
    } else {
      const peer = this.#peers.get(event.peer);
      if (peer !== undefined) {
        peer.received++;
        this.heard.push(String(event.message));
        const bytes = tag(`${peer.received} ${event.message}`);
        const output = { to: peer.id, sequence: ++peer.sent, bytes };
        peer.outputs.push(output);
        outputs.push(output);
      }
    }
    home.released({ done: [{ event, rejected: null }], outputs });
  }

  #socket(site: FakeSite, options: SocketOptions, listener: SocketListener): Socket {
    this.offered.push(options);
    const open: Open = { site, listener, reader: null, isOpen: false };
    const world = this.#world;
    this.#open.add(open);
    const waits = site.state === "frozen" ? Infinity : site.rttMs;
    if (waits !== Infinity) {
      world.later(waits, () => this.#open.has(open) ? this.#accept(open) : undefined);
    }
    return {
      bufferedAmount: 0,
      send: (data) => {
        // As the page's socket: what is on its way when it closes arrives before the close does.
        world.later(site.rttMs / 2, () => {
          if (!passes(site)) return;
          if (typeof data === "string") listener.message(`heard ${data}`);
          else open.reader?.frame(data);
        });
      },
      close: (code = 1005, reason = "") => {
        if (!this.#open.delete(open)) return;
        world.later(site.rttMs / 2, () => open.reader?.broken());
        world.later(site.rttMs, () => listener.closed(code, reason));
      },
    };
  }

  #accept(open: Open): void {
    const { site, listener } = open;
    if (site.state !== "up" || this.takes === "refuses") return this.#broken(open);
    open.isOpen = true;
    if (this.takes === "plain") return listener.opened("sojourn.plain.1");
    if (this.#home === null) return this.#broken(open);
    const channel: Channel = {
      send: (frame) =>
        void this.#world.later(site.rttMs / 2, () => {
          if (this.#open.has(open) && passes(site)) listener.message(frame);
        }),
      close: (code, reason) =>
        void this.#world.later(site.rttMs / 2, () => {
          if (this.#open.delete(open)) listener.closed(code, reason);
        }),
    };
    open.reader = this.#home.accept(channel, "client");
    listener.opened(SUBPROTOCOL);
  }

  #broken(open: Open): void {
    if (!this.#open.delete(open)) return;
    open.reader?.broken();
    this.#world.later(1, () => open.listener.closed(ABNORMAL, ""));
  }
}
