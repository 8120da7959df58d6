/** What the sites of a run share, and what may be wrong with them on purpose. */
import type { OriginListener } from "../../runtime/origins/plain_origin.ts";
import type { HostServices } from "../../runtime/stateful/host_services.ts";
import type { SiteId, Storage } from "../../store/model/ports.ts";
import type { SimNetwork } from "../sim/network.ts";
import type { World } from "../sim/world.ts";
import type { Deployed } from "./deployed.ts";
import type { IsolateWrongs, LogTap } from "./isolates.ts";
import type { Numbers } from "./links.ts";
import type { Mailbox } from "./mailbox.ts";
import type { OriginProgram, Server } from "./outside.ts";
import type { SitesPlan } from "./plan.ts";

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
  /** The store is not told of what may still be written late. */
  readonly owesNothing?: boolean;
}

/** What packets that come late find at a site. */
interface Peer {
  readonly homes: { received(from: SiteId, packet: Uint8Array): void } | null;
}

/** What all sites of a run share. */
export interface Surroundings {
  readonly plan: SitesPlan;
  readonly root: SiteId;
  readonly sites: ReadonlyMap<SiteId, Peer>;
  readonly world: World;
  readonly network: SimNetwork;
  readonly server: Server;
  readonly mailbox: Mailbox;
  readonly deployed: Deployed;
  readonly numbers: Numbers;
  readonly tap: LogTap;
  readonly wrongs: Wrongs;
  /** A program behind a session is connected to. */
  readonly program: (session: string, listener: OriginListener) => OriginProgram;
  readonly complain: (text: string) => void;
  readonly probe: (name: string) => void;
  /** Lines for the app, for who looks into a run. */
  readonly logs?: (text: string) => void;
  /** A site's process has died. */
  readonly died: (site: SiteId) => void;
  /** Something is sent on an origin's way; true: it breaks there. */
  readonly originBreaks: () => boolean;
}
