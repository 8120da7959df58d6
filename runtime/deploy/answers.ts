/**
 * What the admin handlers answer, as a client parses it: loosely, since a cluster may run another release.
 */
import { z } from "zod";

/** Where a change has arrived, and where it has not in time. */
export const arrivedSchema = z.object({
  sites: z.array(z.object({ id: z.string(), ms: z.number() })),
  missing: z.array(z.string()),
});

export const placementSchema = arrivedSchema.extend({
  app: z.string(),
  version: z.string(),
  changed: z.boolean(),
  /** Removed with an app. */
  rows: z.number().optional(),
});
/** What a deploy or a rollback did, and where it has arrived. */
export type Deployed = z.infer<typeof placementSchema>;

export const appsSchema = z.array(z.object({
  app: z.string(),
  version: z.string(),
  versions: z.number(),
  rollout: z.object({ version: z.string(), weight: z.number() }).optional(),
  deployedMs: z.number(),
  tables: z.array(z.string()),
}));
/** An app, as `apps` lists it. */
export type AppSummary = z.infer<typeof appsSchema>[number];

export const versionsSchema = z.array(
  z.object({
    version: z.string(),
    createdMs: z.number(),
    current: z.boolean(),
    weight: z.number().optional(),
  }),
);
/** A version, as `versions` lists it. */
export type VersionSummary = z.infer<typeof versionsSchema>[number];

export const rolloutSchema = z.object({
  app: z.string(),
  current: z.string(),
  rollout: z.object({ version: z.string(), weight: z.number(), sinceMs: z.number() }).nullable(),
});
/** What serves an app, and what a part of its sessions gets instead. */
export type RolloutState = z.infer<typeof rolloutSchema>;

export const routesSchema = z.object({
  app: z.string(),
  version: z.string(),
  hosts: z.array(z.string()),
  paths: z.array(z.object({ path: z.string(), at: z.string() })),
});
/** Where an app is reached. */
export type RouteSummary = z.infer<typeof routesSchema>;

export const sitesSchema = z.array(z.object({
  id: z.string(),
  parent: z.string().nullable(),
  depth: z.number(),
  tier: z.string(),
  url: z.string(),
}));
/** A site, as `sites` lists it. */
export type SiteSummary = z.infer<typeof sitesSchema>[number];

/** What `sites remove` is told. */
export const removedSchema = z.object({
  site: z.string(),
  connected: z.boolean(),
  /** What the site said that it had not pushed; null where it was away. */
  pending: z.number().nullable(),
  pendingBytes: z.number().nullable(),
  /** The root has all that the site knew until then; null: nothing is certain. */
  keptUntilMs: z.number().nullable(),
});
/** What `sites drain` is told. */
export const drainedSchema = z.object({
  site: z.string(),
  untilMs: z.number(),
  pending: z.number(),
  complete: z.boolean(),
});
/** What `sites move` is told. */
export const movedSchema = z.object({ site: z.string(), from: z.string(), to: z.string() });
/** What `sites clock` is told: how far ahead of the time the machine's clock was taken for. */
export const believedSchema = z.object({ site: z.string(), aheadMs: z.number() });
/** What `sites add` is told. */
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
/** What setting a secret did. */
export type SecretSetSummary = z.infer<typeof secretSetSchema>;

export const secretsSchema = z.array(z.object({
  name: z.string(),
  setMs: z.number().nullable(),
  tier: z.enum(["root", "everywhere"]),
  declared: z.boolean(),
  from: z.enum(["command", "dotenv"]).nullable(),
  readable: z.boolean(),
}));
/** A secret, as `secrets APP list` shows it: never its value. */
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
/** What happened on the way of a change. */
export type ProgressEvent = z.infer<typeof progressSchema>;
