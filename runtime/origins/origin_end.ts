/**
 * The end of an origin: its plain connection, and the host side that speaks for the origin to a stateful session,
 * wherever that is at home. The end stays where it is while homes come and go, so the origin sees one connection.
 *
 * Life: `join` (a home's channel came) → connecting → open, with one home's channel after the other → `over`, once: the
 * origin closed, the session sent it away or ended, or no home came for the grace of a peer (OE3: for HOLDING_MS).
 *
 * OE1  Messages of the origin are kept until they are in the session's log, and each message of the session is given to
 *      the origin once.
 * OE2  While an origin sends faster than the session takes it is not read; one that takes slower than the session sends
 *      is closed at WAITING_BYTES_MAX.
 * OE3  An end at an agent, next to the origin, holds the session's log where that is kept at hosts
 *      (docs/protocol/hosts.md): such an end outlives homes and their sites. An end at the root holds none: it dies
 *      with its site, whose disk holds the log already. An end that holds the log may be the one that an opening waits
 *      for, however long the home's site is away.
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

/** Parts of an end. */
export interface OriginEndParts {
  readonly connect: (listener: OriginListener) => Promise<OriginConnection>;
  readonly clock: PeerClock;
  /** Instance number, drawn for this end. */
  readonly instance: number;
  /** Log that the end holds (OE3); left out: it holds none. */
  readonly log?: HeldLog | undefined;
  /** Called when nothing follows; `why` where the origin could not be reached. */
  readonly over: (why: string | null) => void;
}

/** Unacknowledged bytes above which the origin is not read. */
const UNREAD_BYTES = 1 << 20;
/** Bytes waiting to be written to an origin above which it is closed as too slow. */
const WAITING_BYTES_MAX = 16 << 20;

/** The end of an origin; see the file's header. */
export class OriginEnd {
  readonly #parts: OriginEndParts;
  readonly #host: HostSide;
  #connection: OriginConnection | null = null;
  /** Channel that came before the origin was connected. */
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

  /** Takes a home's channel in place of the one before. */
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

  /** Closes the end: the site stops. */
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

  /** Takes a message of the origin (OE1, OE2). */
  #fromOrigin(message: string | Uint8Array): void {
    if (this.#isOver) return;
    try {
      this.#host.send(message);
    } catch (error) {
      // Pausing was too late: more has come already than is kept.
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
