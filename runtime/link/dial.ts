/** An attempt to reach a site: a byte connection under the link's conditions, then the handshake. */
import { clearTimeout, setTimeout } from "node:timers";
import type { Emulation } from "./emulation.ts";
import { type Acquaintance, HandshakeError, introduce, type SiteIdentity } from "./handshake.ts";
import type { DialerRole } from "./hello.ts";
import { closeQuietly } from "./byte_connection.ts";
import { type Transport } from "./transport.ts";
import { Wire } from "./wire.ts";

export interface DialOptions {
  readonly transport: Transport;
  readonly emulation: Emulation;
  readonly self: SiteIdentity;
  /** Secrets of the cluster. */
  readonly secrets: readonly Uint8Array[];
  readonly site: string;
  readonly address: string;
  /** Role of this site for the other one. */
  readonly role: DialerRole;
  readonly timeoutMs: number;
}

/** Gives up a dial under way, with the reason that its promise rejects with. */
export type CancelDial = (reason: string) => void;

/**
 * Dials a site. A dial that fails, is late or is cancelled leaves nothing open.
 * @throws HandshakeError, or the transport's error.
 */
export function dial(options: DialOptions): { made: Promise<[Wire, Acquaintance]>; cancel: CancelDial } {
  const given = Promise.withResolvers<never>();
  given.promise.catch(() => {});
  let wire: Wire | null = null;
  let over = false;
  const cancel = (reason: string) => {
    over = true;
    wire?.close();
    given.reject(new HandshakeError(reason));
  };
  const timer = setTimeout(() => cancel("no answer in time"), options.timeoutMs);
  const unlessGiven = <T>(step: Promise<T>) => Promise.race([step, given.promise]);
  const attempt = async (): Promise<[Wire, Acquaintance]> => {
    try {
      const conditions = options.emulation.of(options.site);
      await unlessGiven(conditions.healed());
      const dialled = options.transport.dial(options.address);
      dialled.then((connection) => over && closeQuietly(connection), () => {});
      wire = new Wire(await unlessGiven(dialled), options.emulation);
      // A byte connection takes a round trip to make.
      await unlessGiven(wire.pause(conditions.shape?.rttMs ?? 0));
      await unlessGiven(wire.under(conditions));
      const { self, secrets, role } = options;
      const acquaintance = await unlessGiven(introduce(wire, { self, secrets, role, target: options.site }));
      return [wire, acquaintance];
    } catch (error) {
      over = true;
      wire?.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };
  return { made: attempt(), cancel };
}
