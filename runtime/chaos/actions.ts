/**
 * Faults on purpose, as data: the body of `POST /_sojourn/admin/chaos`, for commands, the dashboard and tests alike.
 * Only the dev process knows which sites exist (runtime/dev/chaos.ts): here ids are words.
 */
import { z } from "zod";

/** Returns the schema of a text of a form, with the message for everything else. */
const word = (form: RegExp, expected: string) => z.string(expected).regex(form, expected);
/** Returns the schema of a number within bounds, with the message for everything else. */
const within = (min: number, max: number, what: string) => {
  const expected = `expected ${what}, ${min} to ${max}`;
  return z.number(expected).min(min, expected).max(max, expected);
};

const siteId = word(/^[a-z][a-z0-9-]{0,39}$/, "expected a site id like edge-1: [a-z][a-z0-9-]{0,39}");
/** Names of a group: more than a dev cluster has sites are a mistake. */
const GROUP_MAX = 64;
const GROUP_EXPECTED = `expected a list of 1 to ${GROUP_MAX} sites`;
/** Schema of a group of a partition. */
const group = z.array(siteId, GROUP_EXPECTED).min(1, GROUP_EXPECTED).max(GROUP_MAX, GROUP_EXPECTED);
/** Milliseconds of the longest round trip: above this a link is no link, as the handshake gives up before it. */
const LINK_MS_MAX = 10_000;
/** Milliseconds of the largest skew, ten years: far beyond every limit of the store, and still a date. */
const SKEW_MS_MAX = 10 * 365 * 86_400_000;

const appName = word(/^[a-z][a-z0-9-]{0,39}$/, "expected an app's name like guestbook");
const linkMs = within(0, LINK_MS_MAX, "milliseconds");

/** Fields that say what a site gives back: all, an app's rows, a table's. */
export const EVICTED = {
  app: appName.optional(),
  table: word(/^.{1,200}$/s, "expected a table's name").optional(),
};

/** States of a disk: it works, takes no more, or fails in every operation. */
export const DISK_STATES = ["ok", "full", "fail"] as const;
/** State of a disk: one of {@link DISK_STATES}. */
export type DiskState = (typeof DISK_STATES)[number];

const onSite = <const Name extends string>(action: Name) =>
  z.strictObject({ action: z.literal(action), site: siteId });

/** Schema of an action; unknown fields are refused, so that a misspelt one is not lost in silence. */
export const chaosActionSchema = z.discriminatedUnion("action", [
  onSite("kill"),
  onSite("restart"),
  onSite("pause"),
  onSite("resume"),
  onSite("wipe"),
  z.strictObject({
    action: z.literal("partition"),
    a: group,
    /** The other group; without it: all other sites. */
    b: group.optional(),
  }),
  z.strictObject({ action: z.literal("heal"), a: siteId.optional(), b: siteId.optional() })
    .refine(({ a, b }) => (a === undefined) === (b === undefined), {
      message: "expected both ends of a link, a and b, or neither for all links",
    }),
  z.strictObject({
    action: z.literal("delay"),
    a: siteId,
    b: siteId,
    rttMs: linkMs.optional(),
    jitterMs: linkMs.optional(),
    loss: within(0, 1, "a share of the frames").optional(),
    mbps: within(0.01, 100_000, "a rate in Mbit/s").optional(),
  }).refine(
    ({ rttMs, jitterMs, loss, mbps }) => [rttMs, jitterMs, loss, mbps].some((value) => value !== undefined),
    { message: "expected at least one of rttMs, jitterMs, loss, mbps" },
  ),
  z.strictObject({
    action: z.literal("evict"),
    site: siteId,
    ...EVICTED,
  }).refine(({ app, table }) => table === undefined || app !== undefined, {
    message: "expected an app with the table",
  }),
  z.strictObject({
    action: z.literal("skew"),
    site: siteId,
    /** Milliseconds added to the wall clock; 0 ends the skew. */
    ms: within(-SKEW_MS_MAX, SKEW_MS_MAX, "whole milliseconds").int("expected whole milliseconds"),
  }),
  z.strictObject({
    action: z.literal("disk"),
    site: siteId,
    state: z.enum(DISK_STATES, `expected one of ${DISK_STATES.join(", ")}`),
  }),
], { error: 'expected a JSON object: {"action": …} and what that action takes' });

/** An action. */
export type ChaosAction = z.infer<typeof chaosActionSchema>;

/** Names of all actions. */
export const CHAOS_ACTIONS: readonly string[] = chaosActionSchema.options.map(({ shape }) =>
  shape.action.value
);

/** Schema of an action's result. */
export const chaosDoneSchema = z.object({
  action: z.string(),
  /** A sentence for people. */
  did: z.string(),
  /** Command line that takes the action back, or the reason why none does. */
  undo: z.string(),
  /** Sites that should have been told and did not answer: the action holds there from their next start on. */
  missing: z.array(z.string()),
});
/** Result of an action. */
export type ChaosDone = z.infer<typeof chaosDoneSchema>;

const shapeSchema = z.object({ rttMs: z.number(), jitterMs: z.number(), loss: z.number(), mbps: z.number() });

/** Schema of the faults that are in force now: the answer of `GET /_sojourn/admin/chaos`. */
export const chaosStateSchema = z.object({
  /** Links that are cut; each pair once, `a` before `b`. */
  cuts: z.array(z.object({ a: z.string(), b: z.string() })),
  /** Links that differ from the topology. */
  delays: z.array(z.object({ a: z.string(), b: z.string(), ...shapeSchema.shape })),
  skews: z.array(z.object({ site: z.string(), ms: z.number() })),
  disks: z.array(z.object({ site: z.string(), state: z.enum(["full", "fail"]) })),
  /** Sites whose process does not run. */
  down: z.array(z.string()),
  paused: z.array(z.string()),
});
/** Faults that are in force now. */
export type ChaosState = z.infer<typeof chaosStateSchema>;

/** Returns one line a problem: the field, the value that stands there, what is expected. */
export function explainAction(error: z.ZodError, body: unknown): string {
  return error.issues.map((issue) => {
    const field = issue.path.join(".") || "body";
    if (field === "action") return `there is no such action; there are ${CHAOS_ACTIONS.join(", ")}`;
    if (issue.code === "unrecognized_keys") return `${issue.keys.join(", ")}: no field of this action`;
    const found = issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], body);
    if (issue.path.length === 0) return issue.message;
    return `${field}: ${issue.message}${
      found === undefined ? ", found none" : `, not ${JSON.stringify(found)}`
    }`;
  }).join("; ");
}
