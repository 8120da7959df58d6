/** What the sites of a run share, and what may be wrong with them on purpose. */
import type { Homes } from "../../../functions/homes/mod.ts";
import type { OriginListener } from "../../../runtime/origins/plain_origin.ts";
import type { HostServices } from "../../../runtime/stateful/host_services.ts";
import type { SiteId, Storage } from "../../../store/ports.ts";
import type { SimNetwork } from "../../sim/network.ts";
import type { World } from "../../sim/world.ts";
import type { Deployed } from "./deployed.ts";
import type { IsolateWrongs, LogTap } from "./isolates.ts";
import type { Numbers } from "./links.ts";
import type { OriginProgram, Server } from "./outside.ts";
import type { Rows } from "./rows.ts";

/** What makes processes wrong on purpose. */
export interface Wrongs extends IsolateWrongs {
  readonly services?: (services: HostServices, site: SiteId) => HostServices;
  readonly storage?: (storage: Storage, site: SiteId) => Storage;
  /** A packet of homes on its way in, and from whom; null: it is lost. */
  readonly receives?: (site: SiteId, from: SiteId, packet: Uint8Array) => [SiteId, Uint8Array] | null;
  /** Something on its way to the program behind a session, as frames go over a link. */
  readonly toOrigin?: (chunk: Uint8Array) => readonly Uint8Array[];
  /** A home that another one follows is not told so. */
  readonly isDeaf?: boolean;
}

/** What all sites of a run share. */
export interface Surroundings {
  readonly sites: readonly SiteId[];
  readonly peers: ReadonlyMap<SiteId, { readonly isUp: boolean; readonly homes: Homes | null }>;
  readonly f: number;
  readonly world: World;
  readonly network: SimNetwork;
  readonly rows: Rows;
  readonly server: Server;
  readonly deployed: Deployed;
  readonly numbers: Numbers;
  readonly tap: LogTap;
  readonly hasStandbys: boolean;
  readonly isAhead: boolean;
  readonly idleMs: number;
  readonly commitMs: readonly [number, number];
  /** That a packet comes again, seconds later, whoever lives then. */
  readonly echoChance: number;
  /** That a site is found gone that is there. */
  readonly mistakes: number;
  readonly wrongs: Wrongs;
  /** A program behind a session is connected to. */
  readonly program: (session: string, listener: OriginListener) => OriginProgram;
  readonly complain: (text: string) => void;
  readonly probe: (name: string) => void;
  /** Lines for the app, for who looks into a run. */
  readonly logs?: (text: string) => void;
  /** A site's process has died. */
  readonly died: (site: SiteId) => void;
  /** A process passes a point at which it might die. */
  readonly passes: (site: SiteId, point: string) => void;
  /** Something is sent on an origin's way; true: it breaks there. */
  readonly originBreaks: () => boolean;
}
