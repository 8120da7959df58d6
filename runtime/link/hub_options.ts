/** Options of the hub of a site's links, and the handlers that it calls. */
import type { LinkShape } from "./emulation.ts";
import type { IncomingRequest, LinkAnswer } from "./exchanges.ts";
import type { LinkLimits } from "./limits.ts";
import type { LinkRole } from "./site_link.ts";
import type { Transport } from "./transport.ts";

export interface LinkHandlers {
  /** Called when a link is up. Messages and requests of that site follow. */
  readonly connected: (site: string, role: LinkRole, info: LinkInfo) => void;
  /** Called when a link is down. `planned`: one of the two sides said goodbye. */
  readonly disconnected: (site: string, planned: boolean) => void;
  /** Called when a peer could not be dialled: what waited for that is dropped. */
  readonly unreachable?: (site: string) => void;
  /** Called when nothing listens at the address of a site to which no link is up: its process is gone, or restarts. */
  readonly refused?: (site: string) => void;
  /**
   * Takes a store message; the bytes are the receiver's. The next of that site comes when the promise, if any, settles.
   */
  readonly message: (site: string, bytes: Uint8Array) => void | Promise<void>;
  /** Answers a request; an exception becomes a LinkError at the other side. */
  readonly request: (site: string, request: IncomingRequest) => Promise<LinkAnswer>;
}

export interface LinkInfo {
  readonly incarnation: string;
}

export interface LinkLogEntry {
  readonly level: "info" | "warn";
  /**
   * Name of the event: link.connected, link.disconnected, link.refused (a connection from outside), link.dial_failed.
   */
  readonly event: string;
  readonly site?: string;
  readonly reason?: string;
  readonly [detail: string]: unknown;
}

export interface LinkHubOptions {
  readonly site: string;
  readonly incarnation: string;
  /** Secrets of the cluster, at least 16 bytes each: one, or more while it is changed. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  readonly listen: { readonly hostname: string; readonly port: number };
  readonly parent: { readonly site: string; readonly address: string } | null;
  /** Returns the address at which a peer listens, or null when unknown. */
  readonly addressOf: (site: string) => string | null;
  /** Decides on a site whose membership is proved, in that role: null admits it, a text is the reason not to. */
  readonly admit: (site: string, role: "child" | "peer") => string | null;
  readonly handlers: LinkHandlers;
  readonly log: (entry: LinkLogEntry) => void;
  /** Returns the topology's delay, rate and loss of the link to a site; null or absent: none is added. */
  readonly emulate?: (site: string) => LinkShape | null;
  /** Reports which links begin cut, until `control.heal`; none by default. */
  readonly isCut?: (site: string) => boolean;
  /** Randomness for loss and jitter; default Math.random. */
  readonly random?: () => number;
  /**
   * Resolves when messages and requests of another site may be taken; null: at once. Called with the kind of a request
   * that comes in or is answered, null for store messages. By default all is taken at once.
   */
  readonly hold?: (kind: string | null) => Promise<void> | null;
  readonly limits?: Partial<LinkLimits>;
  readonly transport?: Transport;
  /** Returns milliseconds that only go forward; default performance.now. */
  readonly nowMs?: () => number;
}
