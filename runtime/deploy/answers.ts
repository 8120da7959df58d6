/**
 * Schemas of the admin handlers' answers, as a client parses them: loosely, since a cluster may run another release.
 */
import { z } from "zod";

/** Sites at which a change has arrived, and those at which it has not in time. */
export const arrivedSchema = z.object({
  sites: z.array(z.object({ id: z.string(), ms: z.number() })),
  missing: z.array(z.string()),
});

export const placementSchema = arrivedSchema.extend({
  app: z.string(),
  version: z.string(),
  changed: z.boolean(),
  /** Rows that were removed with an app. */
  rows: z.number().optional(),
});
/** Result of a deploy or a rollback, and the sites at which it has arrived. */
export type Deployed = z.infer<typeof placementSchema>;

export const appsSchema = z.array(z.object({
  app: z.string(),
  version: z.string(),
  versions: z.number(),
  rollout: z.object({ version: z.string(), weight: z.number() }).optional(),
  deployedMs: z.number(),
  tables: z.array(z.string()),
}));
/** Entry of an app in the answer to `apps`. */
export type AppSummary = z.infer<typeof appsSchema>[number];

export const versionsSchema = z.array(
  z.object({
    version: z.string(),
    createdMs: z.number(),
    current: z.boolean(),
    weight: z.number().optional(),
  }),
);
/** Entry of a version in the answer to `versions`. */
export type VersionSummary = z.infer<typeof versionsSchema>[number];

export const rolloutSchema = z.object({
  app: z.string(),
  current: z.string(),
  rollout: z.object({ version: z.string(), weight: z.number(), sinceMs: z.number() }).nullable(),
});
/** Version that serves an app, and the one that a part of its sessions gets instead. */
export type RolloutState = z.infer<typeof rolloutSchema>;

export const routesSchema = z.object({
  app: z.string(),
  version: z.string(),
  hosts: z.array(z.string()),
  paths: z.array(z.object({ path: z.string(), at: z.string() })),
});
/** Paths and hosts of an app. */
export type RouteSummary = z.infer<typeof routesSchema>;

export const sitesSchema = z.array(z.object({
  id: z.string(),
  parent: z.string().nullable(),
  depth: z.number(),
  tier: z.string(),
  url: z.string(),
}));
/** Entry of a site in the answer to `sites`. */
export type SiteSummary = z.infer<typeof sitesSchema>[number];

/** Answer to `sites remove`. */
export const removedSchema = z.object({
  site: z.string(),
  connected: z.boolean(),
  /** Rows that the site said it had not pushed; null where it was away. */
  pending: z.number().nullable(),
  pendingBytes: z.number().nullable(),
  /** Time until which the root has all that the site knew; null: nothing is certain. */
  keptUntilMs: z.number().nullable(),
});
/** Answer to `sites drain`. */
export const drainedSchema = z.object({
  site: z.string(),
  untilMs: z.number(),
  pending: z.number(),
  complete: z.boolean(),
  /** Copies that are on its disks alone; a release before does not say. */
  sole: z.array(z.object({ what: z.string(), count: z.number() })).default([]),
});
/** Answer to `sites move`. */
export const movedSchema = z.object({ site: z.string(), from: z.string(), to: z.string() });
/** Answer to `sites clock`: the milliseconds by which the machine's clock was believed to be ahead. */
export const believedSchema = z.object({ site: z.string(), aheadMs: z.number() });
/** Answer to `sites add`. */
export const admittedSchema = z.object({ site: z.string() });

export const rowsSchema = z.array(z.object({
  /** Packed key below the app, hexadecimal. */
  key: z.string(),
  versionstamp: z.string(),
  /** Tagged value, base64. */
  value: z.string(),
}));
/** A stored row of an app, still encoded. */
export type StoredRowSummary = z.infer<typeof rowsSchema>[number];

export const secretSetSchema = z.object({
  app: z.string(),
  name: z.string(),
  changed: z.boolean(),
  tier: z.enum(["root", "everywhere"]),
  stamp: z.string(),
  declared: z.boolean().nullable(),
  redacted: z.boolean(),
});
/** Result of setting a secret. */
export type SecretSetSummary = z.infer<typeof secretSetSchema>;

export const secretsSchema = z.array(z.object({
  name: z.string(),
  setMs: z.number().nullable(),
  tier: z.enum(["root", "everywhere"]),
  declared: z.boolean(),
  from: z.enum(["command", "dotenv"]).nullable(),
  readable: z.boolean(),
}));
/** Entry of a secret in the answer to `secrets APP list`: never its value. */
export type SecretListing = z.infer<typeof secretsSchema>[number];

export const problemSchema = z.looseObject({
  code: z.string(),
  detail: z.string(),
  place: z.string().optional(),
});

export const progressSchema = z.discriminatedUnion("event", [
  z.object({ event: z.literal("evaluated"), app: z.string(), version: z.string() }),
  z.object({ event: z.literal("live"), app: z.string(), version: z.string(), changed: z.boolean() }),
  z.object({ event: z.literal("site"), id: z.string(), ms: z.number() }),
  z.object({ event: z.literal("removed"), rows: z.number() }),
  z.object({ event: z.literal("answer"), status: z.number(), body: z.unknown() }),
]);
/** Event on the way of a change. */
export type ProgressEvent = z.infer<typeof progressSchema>;
