/**
 * What one can break on purpose, as data: the body of `POST /_sojourn/admin/chaos`, for commands, the dashboard and
 * tests alike. Which sites there are, only the dev process knows (runtime/dev/chaos.ts): here ids are words.
 */
import { z } from "zod";

/** A text of a form, and what is said of everything else. */
const word = (form: RegExp, expected: string) => z.string(expected).regex(form, expected);
/** A number within bounds, and what is said of everything else. */
const within = (min: number, max: number, what: string) => {
  const expected = `expected ${what}, ${min} to ${max}`;
  return z.number(expected).min(min, expected).max(max, expected);
};

const siteId = word(/^[a-z][a-z0-9-]{0,39}$/, "expected a site id like edge-1: [a-z][a-z0-9-]{0,39}");
/** More names than a dev cluster has sites are a mistake. */
const GROUP_MAX = 64;
const GROUP_EXPECTED = `expected a list of 1 to ${GROUP_MAX} sites`;
/** A group of a partition. */
const group = z.array(siteId, GROUP_EXPECTED).min(1, GROUP_EXPECTED).max(GROUP_MAX, GROUP_EXPECTED);
/** Above this a link is no link: the handshake gives up before it. */
const LINK_MS_MAX = 10_000;
/** Ten years: far beyond every limit of the store, and still a date. */
const SKEW_MS_MAX = 10 * 365 * 86_400_000;

const appName = word(/^[a-z][a-z0-9-]{0,39}$/, "expected an app's name like guestbook");
const linkMs = within(0, LINK_MS_MAX, "milliseconds");

/** What of a site is given back: all, an app's rows, a table's. */
export const EVICTED = {
  app: appName.optional(),
  table: word(/^.{1,200}$/s, "expected a table's name").optional(),
};

/** What a disk does: works, takes no more, or fails in every operation. */
export const DISK_STATES = ["ok", "full", "fail"] as const;
/** One of {@link DISK_STATES}. */
export type DiskState = (typeof DISK_STATES)[number];

const onSite = <const Name extends string>(action: Name) =>
  z.strictObject({ action: z.literal(action), site: siteId });

/** One action; unknown fields are refused, so that a misspelt one is not lost in silence. */
export const chaosActionSchema = z.discriminatedUnion("action", [
  onSite("kill"),
  onSite("restart"),
  onSite("pause"),
  onSite("resume"),
  onSite("wipe"),
  z.strictObject({
    action: z.literal("partition"),
    a: group,
    /** Without it: from all others. */
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
    /** Added to the wall clock; 0 ends it. */
    ms: within(-SKEW_MS_MAX, SKEW_MS_MAX, "whole milliseconds").int("expected whole milliseconds"),
  }),
  z.strictObject({
    action: z.literal("disk"),
    site: siteId,
    state: z.enum(DISK_STATES, `expected one of ${DISK_STATES.join(", ")}`),
  }),
], { error: 'expected a JSON object: {"action": …} and what that action takes' });

/** One action. */
export type ChaosAction = z.infer<typeof chaosActionSchema>;

/** Names of all actions. */
export const CHAOS_ACTIONS: readonly string[] = chaosActionSchema.options.map(({ shape }) =>
  shape.action.value
);

/** What an action did. */
export const chaosDoneSchema = z.object({
  action: z.string(),
  /** One sentence for people. */
  did: z.string(),
  /** The command line that takes it back, or why nothing does. */
  undo: z.string(),
  /** Sites that should have been told and did not answer: the action holds there from their next start on. */
  missing: z.array(z.string()),
});
/** What an action did. */
export type ChaosDone = z.infer<typeof chaosDoneSchema>;

const shapeSchema = z.object({ rttMs: z.number(), jitterMs: z.number(), loss: z.number(), mbps: z.number() });

/** What is in force now: the answer of `GET /_sojourn/admin/chaos`. */
export const chaosStateSchema = z.object({
  /** Links that are cut; each pair once, `a` before `b`. */
  cuts: z.array(z.object({ a: z.string(), b: z.string() })),
  /** Links that are not what the topology says. */
  delays: z.array(z.object({ a: z.string(), b: z.string(), ...shapeSchema.shape })),
  skews: z.array(z.object({ site: z.string(), ms: z.number() })),
  disks: z.array(z.object({ site: z.string(), state: z.enum(["full", "fail"]) })),
  /** Sites whose process does not run. */
  down: z.array(z.string()),
  paused: z.array(z.string()),
});
/** What is in force now. */
export type ChaosState = z.infer<typeof chaosStateSchema>;

/** One line a problem: the field, the value that stands there, what is expected. */
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
