/** What the hub of a site's links is given, and whom it tells what. */
import type { LinkShape } from "./emulation.ts";
import type { IncomingRequest, LinkAnswer } from "./exchanges.ts";
import type { LinkLimits } from "./limits.ts";
import type { LinkRole } from "./site_link.ts";
import type { Transport } from "./transport.ts";

export interface LinkHandlers {
  /** A link is up. Messages and requests of that site follow. */
  readonly connected: (site: string, role: LinkRole, info: LinkInfo) => void;
  /** A link is down. `planned`: one of the two sides said goodbye. */
  readonly disconnected: (site: string, planned: boolean) => void;
  /** A peer could not be dialled: what waited for that is dropped. */
  readonly unreachable?: (site: string) => void;
  /** Nobody listens at the address of a site that no link is up to: its process is gone, or restarts. */
  readonly refused?: (site: string) => void;
  /** A store message; the bytes are the receiver's. The next of that site comes when the promise, if any, settles. */
  readonly message: (site: string, bytes: Uint8Array) => void | Promise<void>;
  /** Answers a request; what it throws becomes a LinkError at the other side. */
  readonly request: (site: string, request: IncomingRequest) => Promise<LinkAnswer>;
}

export interface LinkInfo {
  readonly incarnation: string;
}

export interface LinkLogEntry {
  readonly level: "info" | "warn";
  /** link.connected, link.disconnected, link.refused (somebody at our door), link.dial_failed. */
  readonly event: string;
  readonly site?: string;
  readonly reason?: string;
  readonly [detail: string]: unknown;
}

export interface LinkHubOptions {
  readonly site: string;
  readonly incarnation: string;
  /** The cluster's, at least 16 bytes each: one, or more while it is changed. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  readonly listen: { readonly hostname: string; readonly port: number };
  readonly parent: { readonly site: string; readonly address: string } | null;
  /** Where a peer listens, or null when unknown. */
  readonly addressOf: (site: string) => string | null;
  /** null admits a site whose membership is proved in that role; a text is the reason not to. */
  readonly admit: (site: string, role: "child" | "peer") => string | null;
  readonly handlers: LinkHandlers;
  readonly log: (entry: LinkLogEntry) => void;
  /** The topology's delay, rate and loss of the link to a site; null or absent: none is added. */
  readonly emulate?: (site: string) => LinkShape | null;
  /** Links that begin cut, until `control.heal`; none by default. */
  readonly isCut?: (site: string) => boolean;
  /** For loss and jitter; default Math.random. */
  readonly random?: () => number;
  /**
   * Resolves when what another site says may be taken; null: at once. Asked with the kind of a request that comes in or is
   * answered, null for store messages. By default all is taken at once.
   */
  readonly hold?: (kind: string | null) => Promise<void> | null;
  readonly limits?: Partial<LinkLimits>;
  readonly transport?: Transport;
  /** Milliseconds that only go forward; default performance.now. */
  readonly nowMs?: () => number;
}
