/**
 * Takes connections from outside through the handshake. Connections that have not proved membership get little: a
 * bounded number of connections, a bounded time, one short message at a time (LU3 of hub.ts).
 */
import { clearTimeout, setTimeout } from "node:timers";
import type { Emulation } from "./emulation.ts";
import { type Acquaintance, type DialingSite, receiveIntroduction, type SiteIdentity } from "./handshake.ts";
import type { LinkLimits } from "./limits.ts";
import { errorText } from "./link_error.ts";
import { type ByteConnection, closeQuietly } from "./byte_connection.ts";
import type { SecretChoice } from "./secret_choice.ts";
import { type ByteListener } from "./transport.ts";
import { Wire } from "./wire.ts";

export interface DoorkeeperOptions {
  readonly listener: ByteListener;
  readonly emulation: Emulation;
  readonly self: SiteIdentity;
  readonly secrets: SecretChoice;
  readonly limits: LinkLimits;
  /** Judges a site whose proof was right: null admits it, a text refuses. */
  readonly judge: (arrival: DialingSite) => string | null;
  /** Takes an admitted connection, to its end. */
  readonly admitted: (arrival: DialingSite, wire: Wire, acquaintance: Acquaintance) => Promise<void>;
  readonly refused: (source: string, reason: string) => void;
}

export class Doorkeeper {
  readonly #options: DoorkeeperOptions;
  /** Connections that have not finished their handshake. */
  readonly #strangers = new Set<ByteConnection>();
  readonly #connections = new Set<Promise<void>>();
  #closed = false;

  constructor(options: DoorkeeperOptions) {
    this.#options = options;
  }

  /** Accepts until closed; resolves when every connection that came in has ended. */
  async run(): Promise<void> {
    for (;;) {
      const arrival = await this.#options.listener.accept();
      if (!arrival) break;
      void this.take(arrival.connection, arrival.source);
    }
    await Promise.all(this.#connections);
  }

  /** Takes a connection that came by another way than the listener. Resolves when it has ended. */
  take(connection: ByteConnection, source: string): Promise<void> {
    const received = this.#receive(connection, source);
    this.#connections.add(received);
    return received.finally(() => this.#connections.delete(received));
  }

  close(): void {
    this.#closed = true;
    this.#options.listener.close();
    for (const connection of this.#strangers) closeQuietly(connection);
  }

  /** Serves a connection from its first byte to its end. */
  async #receive(connection: ByteConnection, source: string): Promise<void> {
    const { emulation, self, secrets, limits, judge } = this.#options;
    const wire = new Wire(connection, emulation);
    if (this.#closed) return wire.close();
    this.#enter(connection);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      wire.close();
    }, limits.handshakeMs);
    try {
      const judged = (arrival: DialingSite) => {
        const refusal = judge(arrival);
        if (refusal === null) connection.proved?.(); // the peer's data may follow its admission at once
        return refusal;
      };
      const claimed = (arrival: DialingSite) => wire.under(emulation.of(arrival.site));
      const { arrival, acquaintance } = await receiveIntroduction(wire, {
        self,
        ports: { claimed, judge: judged, secretFor: (arrival) => secrets.next(arrival.site) },
      });
      secrets.proved(arrival.site);
      clearTimeout(timer);
      this.#strangers.delete(connection);
      if (this.#closed) wire.close();
      else await this.#options.admitted(arrival, wire, acquaintance);
    } catch (error) {
      wire.close();
      // A peer that closes without sending a byte has looked whether anybody listens (witness.ts).
      const isLook = !late && !wire.hasHeard && this.#strangers.has(connection);
      if (!this.#closed && !isLook) {
        this.#options.refused(source, late ? "no handshake in time" : errorText(error));
      }
    } finally {
      clearTimeout(timer);
      this.#strangers.delete(connection);
    }
  }

  /**
   * Counts a stranger. Past the limit another one is closed, whichever: silent ones are soon gone, while of a crowd of
   * members that all come at once some always get through. Were it the oldest, it would be the one nearest to its
   * proof: where more come within a handshake than the limit, none would ever get in.
   */
  #enter(connection: ByteConnection): void {
    if (this.#strangers.size >= this.#options.limits.strangersMax) {
      const other = [...this.#strangers][Math.floor(Math.random() * this.#strangers.size)];
      if (other !== undefined) {
        this.#strangers.delete(other);
        closeQuietly(other);
      }
    }
    this.#strangers.add(connection);
  }
}
