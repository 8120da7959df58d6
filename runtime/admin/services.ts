/**
 * What admin handlers are given: their site, and with each request the caller's role.
 */
import type { Context, Hono } from "hono";
import type { Replica } from "../../store/api/api.ts";
import { problemResponse } from "../gateway/problem.ts";
import type { AppTable, SystemStore } from "../deploy/app_table.ts";
import type { Deployments } from "../deploy/deployments.ts";
import type { CronScheduler } from "../cron/mod.ts";
import type { Role } from "../deploy/roles.ts";
import type { ClusterServices } from "./cluster.ts";
import type { LogServices } from "./logs.ts";
import type { SiteBackups } from "../backup/site_backups.ts";
import type { StatefulAdmin } from "./stateful_admin.ts";
import type { SecretRing, SecretStore, SecretTable } from "../secrets/mod.ts";

/** How a planned stop went. */
export interface Drained {
  readonly untilMs: number;
  /** Rows that had not been pushed when it stopped; they are on its disk. */
  readonly pending: number;
  /** Whether the root has all. */
  readonly complete: boolean;
}

/** The parent that a site is to have. */
export interface NewParent {
  readonly id: string;
  /** Where its links come in. */
  readonly url: string;
  /** Sites that are gone for good: nobody waits for what they alone had. */
  readonly lost: string[];
}

/** What the admin handlers need of their site. */
export interface AdminServices {
  readonly site: string;
  readonly system: SystemStore;
  readonly apps: AppTable;
  /** Only at the root. */
  readonly deployments: Deployments | null;
  /** Sends an admin request to the root over the links, with the caller's role. */
  forwardToRoot(request: Request, role: Role): Promise<Response>;
  /** Sends an admin request to any other site over the links. */
  forward(site: string, request: Request, role: Role): Promise<Response>;
  /** The same for a call without a body that may be done twice, also where the sites between do not get there. */
  forwardTwice(site: string, request: Request, role: Role): Promise<Response>;
  /** Resolves when the writes of an app's functions that are under way here have been applied. */
  written?(app: string): Promise<void>;
  /** Makes an isolate of a version before its first request, where the site wants that. */
  warm?(app: string, version: string): Promise<void>;
  /** Seals at every site; the writer only at the root. */
  readonly secrets?: {
    readonly ring: SecretRing;
    readonly store: SecretStore | null;
    readonly table: Pick<SecretTable, "shows">;
  };
  /** Drains this site (runtime/site/drain.ts). */
  readonly drain?: (untilMs: number) => Promise<Drained>;
  /** An operator vouches for this machine's clock (store/model/wall.ts B4): how far ahead of the time it was taken for. */
  readonly believeClock?: () => number;
  /** Gives this site another parent; resolves with the one before (runtime/site/site.ts). */
  readonly move?: (parent: NewParent) => Promise<string>;
  /** Only at the root. */
  readonly members?: Replica["members"] | null;
  /** Only at the root. */
  readonly cron?: CronScheduler | null;
  readonly stateful?: StatefulAdmin;
  /** Backups of this site. */
  readonly backups?: SiteBackups;
  /** What the site keeps to be looked at. */
  readonly observed?: Omit<LogServices & ClusterServices, "site" | "forward" | "nowMs">;
  nowMs(): number;
  /** A log line. */
  note(event: string, detail?: Record<string, unknown>): void;
}

/** What the gateway passes with each request: `admin.fetch(request, { role })`. */
export interface AdminBindings {
  /** null: no valid token. */
  role: Role | null;
}

/** The Hono app that subjects add their routes to. */
export type AdminHono = Hono<{ Bindings: AdminBindings }>;
/** One call. */
export type AdminContext = Context<{ Bindings: AdminBindings }>;

/** The answer for an app that there is not. */
export const unknownApp = (name: string): Response =>
  problemResponse("app_unknown", `no app is called ${JSON.stringify(name)}`);
