/** Services of the site that admin handlers use, and the caller's role, which comes with each request. */
import type { Context, Hono } from "hono";
import type { Replica, SoleCopies } from "../../store/api/api.ts";
import { problemResponse } from "../gateway/problem.ts";
import type { AppTable, SystemStore } from "../deploy/app_table.ts";
import type { Deployments } from "../deploy/deployments.ts";
import type { CronScheduler } from "../cron/mod.ts";
import type { Role } from "../deploy/roles.ts";
import type { ClusterServices } from "./cluster.ts";
import type { LogServices } from "./logs.ts";
import type { SiteBackups } from "../backup/site_backups.ts";
import type { QueueAdmin } from "./queue_admin.ts";
import type { StatefulAdmin } from "./stateful_admin.ts";
import type { SecretRing, SecretStore, SecretTable } from "../secrets/mod.ts";

/** Outcome of a planned stop. */
export interface Drained {
  readonly untilMs: number;
  /** Rows that had not been pushed when the site stopped; they are on its disk. */
  readonly pending: number;
  /** True where the root has all rows. */
  readonly complete: boolean;
  /** Copies that are on this site's disks alone. */
  readonly sole: readonly SoleCopies[];
}

/** The parent that a site is to have. */
export interface NewParent {
  readonly id: string;
  /** URL at which the parent's links come in. */
  readonly url: string;
  /** Ids of sites that are gone for good: the site waits no more for what they alone had. */
  readonly lost: string[];
}

/** Services of the site that admin handlers use. */
export interface AdminServices {
  readonly site: string;
  readonly system: SystemStore;
  readonly apps: AppTable;
  /** Writer of deployments; null below the root. */
  readonly deployments: Deployments | null;
  /** Sends an admin request to the root over the links, with the caller's role. */
  forwardToRoot(request: Request, role: Role): Promise<Response>;
  /** Sends an admin request to any other site over the links. */
  forward(site: string, request: Request, role: Role): Promise<Response>;
  /** Sends a call without a body that may be done twice to a site, also where the sites between do not get there. */
  forwardTwice(site: string, request: Request, role: Role): Promise<Response>;
  /** Resolves when the writes of an app's functions that are under way here have been applied. */
  written?(app: string): Promise<void>;
  /** Makes an isolate of a version before its first request, where the site wants that. */
  warm?(app: string, version: string): Promise<void>;
  /** Ring that seals at every site, and the writer, which is at the root only. */
  readonly secrets?: {
    readonly ring: SecretRing;
    readonly store: SecretStore | null;
    readonly table: Pick<SecretTable, "shows">;
  };
  /** Drains this site (runtime/site/drain.ts). */
  readonly drain?: (untilMs: number) => Promise<Drained>;
  /**
   * Takes an operator's word for this machine's clock (store/model/wall.ts B4); returns the milliseconds by which it
   * was taken to be ahead of the time.
   */
  readonly believeClock?: () => number;
  /** Gives this site another parent; resolves with the one before (runtime/site/site.ts). */
  readonly move?: (parent: NewParent) => Promise<string>;
  /** Members of the tree, at the root; null below. */
  readonly members?: Replica["members"] | null;
  /** Scheduler of cron jobs, at the root; null below. */
  readonly cron?: CronScheduler | null;
  readonly stateful?: StatefulAdmin;
  readonly queues?: QueueAdmin;
  /** Backups of this site. */
  readonly backups?: SiteBackups;
  /** Logs and overview that the site keeps for operators. */
  readonly observed?: Omit<LogServices & ClusterServices, "site" | "forward" | "nowMs">;
  nowMs(): number;
  /** Writes a log line. */
  note(event: string, detail?: Record<string, unknown>): void;
}

/** Bindings that the gateway passes with each request: `admin.fetch(request, { role })`. */
export interface AdminBindings {
  /** Role of the caller; null: no valid token. */
  role: Role | null;
}

/** The Hono app that subjects add their routes to. */
export type AdminHono = Hono<{ Bindings: AdminBindings }>;
/** Context of one call. */
export type AdminContext = Context<{ Bindings: AdminBindings }>;

/** Returns the answer for an app that does not exist. */
export const unknownApp = (name: string): Response =>
  problemResponse("app_unknown", `no app is called ${JSON.stringify(name)}`);
