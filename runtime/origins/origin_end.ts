/**
 * The end of an origin: its plain connection, and the host side that speaks for it to a stateful session, wherever that
 * is at home. It stays where it is while homes come and go, so the origin sees one connection.
 *
 * Life: `join` (a home's channel came) → connecting → open, with one home's channel after the other → `over`, once: the
 * origin closed, the session sent it away or ended, or no home came for the grace of a peer (OE3: for HOLDING_MS).
 *
 * OE1  What the origin sent is kept until it is in the session's log, and what the session sent is given to it once.
 * OE2  An origin that sends faster than the session takes is not read; one that takes slower than the session sends is
 *      closed at WAITING_BYTES_MAX.
 * OE3  Who outlives homes and their sites holds the session's log where its hosts do: an agent, next to the origin. At the
 *      root nobody does: what dies with a site is held by that site's disk already. Who holds it may be the one that an
 *      opening waits for, however long the home's site is away.
 */
import {
  type Channel,
  type ChannelReader,
  CLOSE,
  GRACE_MS,
  type HeldLog,
  HOLDING_MS,
  HostSide,
  type PeerClock,
} from "../../functions/sessions/attach/mod.ts";
import { codeOf } from "../../functions/vocabulary/errors.ts";
import type { OriginConnection, OriginListener } from "./plain_origin.ts";

/** What an end is made of. */
export interface OriginEndParts {
  readonly connect: (listener: OriginListener) => Promise<OriginConnection>;
  readonly clock: PeerClock;
  /** Drawn for it. */
  readonly instance: number;
  /** OE3; left out: it holds none. */
  readonly log?: HeldLog | undefined;
  /** Nothing follows; `why` where the origin could not be reached. */
  readonly over: (why: string | null) => void;
}

/** What waits to be acknowledged beyond this: the origin is not read. */
const UNREAD_BYTES = 1 << 20;
/** What waits to be written to an origin beyond this: it is closed as too slow. */
const WAITING_BYTES_MAX = 16 << 20;

/** See the file's header. */
export class OriginEnd {
  readonly #parts: OriginEndParts;
  readonly #host: HostSide;
  #connection: OriginConnection | null = null;
  /** The channel that came before the origin was there. */
  #early: Channel | null = null;
  #reader: ChannelReader | null = null;
  #isPaused = false;
  #isOver = false;
  #cancelGrace: (() => void) | null = null;

  constructor(parts: OriginEndParts) {
    const { instance, clock, log } = this.#parts = parts;
    this.#host = new HostSide({
      ...{ kind: "origin", instance, clock },
      ...log === undefined ? {} : { log },
      listener: {
        message: (message) => this.#toOrigin(message),
        acknowledged: () => this.#read(),
        lost: () => this.#wait(),
        closed: (end) => {
          if (end.kind === "bye") this.#end(end.code, end.reason, null);
          else this.#end(CLOSE.refused, end.message, end.message);
        },
      },
    });
    this.#connect().catch((error) =>
      this.#end(CLOSE.broken, "", error instanceof Error ? error.message : `${error}`)
    );
  }

  async #connect(): Promise<void> {
    const connection = await this.#parts.connect({
      message: (message) => this.#fromOrigin(message),
      closed: (code, reason) => this.#isOver || this.#host.close(code === 1006 ? 1001 : code, reason),
    });
    if (this.#isOver) return connection.close(CLOSE.done, "");
    this.#connection = connection;
    if (this.#early !== null) this.#reader = this.#host.connected(this.#early);
    this.#early = null;
  }

  /** A home's channel: it takes the place of the one before. */
  join(channel: Channel): ChannelReader {
    this.#cancelGrace?.();
    this.#cancelGrace = null;
    if (this.#isOver) {
      channel.close(CLOSE.done, "");
      return { frame: () => {}, broken: () => {} };
    }
    if (this.#connection !== null) return this.#host.connected(channel);
    this.#early?.close(CLOSE.done, "");
    this.#early = channel;
    return {
      frame: (bytes) => this.#reader?.frame(bytes),
      broken: () => {
        if (this.#early !== channel) return this.#reader?.broken();
        this.#early = null;
        this.#wait();
      },
    };
  }

  /** The site stops. */
  close(): void {
    this.#host.abandon();
    this.#end(1001, "the site stops", null);
  }

  #wait(): void {
    if (this.#isOver) return;
    this.#cancelGrace?.();
    const { log, clock } = this.#parts;
    const isHolding = (log?.promised ?? 0) > 0;
    this.#cancelGrace = clock.after(isHolding ? HOLDING_MS : GRACE_MS, () => {
      this.#host.abandon();
      this.#end(1001, "nobody is there", null);
    });
  }

  /** OE1, OE2 */
  #fromOrigin(message: string | Uint8Array): void {
    if (this.#isOver) return;
    try {
      this.#host.send(message);
    } catch (error) {
      // Pausing was too late: what had come already is more than is kept.
      return this.#host.close(1009, codeOf(error) ?? "");
    }
    if (this.#host.bufferedBytes > UNREAD_BYTES && !this.#isPaused) {
      this.#isPaused = true;
      this.#connection?.pause();
    }
  }

  #read(): void {
    if (!this.#isPaused || this.#host.bufferedBytes > UNREAD_BYTES) return;
    this.#isPaused = false;
    this.#connection?.resume();
  }

  #toOrigin(message: string | Uint8Array): void {
    const connection = this.#connection;
    if (connection === null) return;
    connection.send(message);
    if (connection.waitingBytes > WAITING_BYTES_MAX) this.#host.close(1008, "the origin does not keep up");
  }

  #end(code: number, reason: string, why: string | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelGrace?.();
    this.#early?.close(CLOSE.refused, "");
    this.#host.abandon();
    this.#connection?.close(code, reason);
    this.#parts.over(why);
  }
}
