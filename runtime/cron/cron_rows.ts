/**
 * Rows of cron jobs: written at the root, read at every site.
 *
 *   ["s", "cron", app, name] → {@link JobState}
 */
import { z } from "zod";
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import { prefixRange, type Range } from "../../store/model/range.ts";
import { decodeSystem, encodeSystem } from "../../store/model/system_value.ts";
import type { JobState } from "./job.ts";

const lastSchema = z.object({
  scheduledMs: z.number(),
  startedMs: z.number(),
  endedMs: z.number(),
  ok: z.boolean(),
  attempts: z.number(),
  manual: z.boolean(),
  error: z.string().optional(),
});

/** Schema of a job's row. JSON has no Infinity: a job that never comes due again has no due time. */
const jobSchema = z.object({
  cron: z.string(),
  dueMs: z.number().nullable().transform((ms) => ms ?? Infinity),
  attempts: z.number(),
  startedMs: z.number(),
  running: z.boolean(),
  retryMs: z.number(),
  last: lastSchema.nullable(),
});

const LEAD = ["s", "cron"] as const;

/** Returns the key of a job's row. */
export const jobKey = (app: string, name: string): Key => packKey([...LEAD, app, name]);
/** Returns the range of all jobs; of one app where it is named. */
export const jobRange = (app?: string): Range =>
  prefixRange(packKey([...LEAD, ...app === undefined ? [] : [app]]));

/** Returns the app and the name in a job's key. */
export function jobOf(key: Key): { app: string; name: string } {
  const parts = unpackKey(key);
  return { app: String(parts.at(-2)), name: String(parts.at(-1)) };
}

export const encodeJob = (job: JobState): Uint8Array<ArrayBuffer> => encodeSystem(job);
/** Decodes a job's state. @throws where the bytes are no job's row. */
export const decodeJob = (bytes: Uint8Array): JobState => jobSchema.parse(decodeSystem(bytes));
