/** Tables and queues of the gateway, and what is in them. */
import { queue, table } from "sojourn";
import * as z from "zod";

const company = z.string().regex(
  /^[a-z0-9][a-z0-9-]{0,39}$/,
  "a company is a-z, 0-9 and -, at most 40 of them",
);

/** What a company has sent to one of its customers. */
export const textMessage = z.object({
  company,
  to: z.string().regex(/^\+\d{7,15}$/, "a number is a + and 7 to 15 digits"),
  text: z.string().min(1, "a message has a text").max(1_600, "a text has at most 1,600 characters"),
}, "a message is JSON: {to, text}");

/** Text message with its id: what the broker hands over. */
export type TextMessage = z.infer<typeof textMessage> & { readonly id: string };

/** What an operator says of a message that has reached its phone. */
const report = z.object({
  company,
  id: z.string(),
  to: z.string(),
  operator: z.string(),
  /** Number that the operator gave the message as it took it: 1 for the first. */
  serial: z.int().positive(),
  /** Milliseconds since 1970. */
  takenMs: z.number(),
  deliveredMs: z.number(),
});

/** Delivery report. */
export type Report = z.infer<typeof report>;

/**
 * Deliveries of a message before it is a dead letter. An operator that is out of service is tried again after
 * 2.5 s: it may be so for half a minute.
 */
export const ATTEMPTS_MAX = 12;

export const resources = {
  tables: {
    /** Messages that have reached their phones. A report that comes twice is the same row twice. */
    reports: table({
      schema: report,
      key: ["company", "id"],
      indexes: { newest: ["deliveredMs"], ofCompany: ["company", "deliveredMs"] },
    }),
    /**
     * Messages that were given up. A table of its own: what was given up and comes again is taken out by its operator,
     * whatever the clock of the site says where its report is written.
     */
    failures: table({
      schema: z.object({
        company,
        id: z.string(),
        to: z.string(),
        operator: z.string(),
        why: z.string(),
        failedMs: z.number(),
      }),
      key: ["company", "id"],
      indexes: { newest: ["failedMs"] },
    }),
    /** What each operator does, for the page: written by the operator alone. */
    operators: table({
      schema: z.object({
        name: z.string(),
        isOut: z.boolean(),
        slowMs: z.number(),
        perSecond: z.number(),
        /** Messages that it was ever asked to take: the sum of the next four. */
        posted: z.number(),
        waiting: z.number(),
        taken: z.number(),
        delivered: z.number(),
        failed: z.number(),
      }),
      key: ["name"],
    }),
  },
  queues: {
    /** From companies to operators. A slow operator keeps one call of the handler waiting, of eight. */
    outgoing: queue({
      schema: textMessage,
      ...{ f: 1, maxAttempts: ATTEMPTS_MAX, retryMinMs: 250, retryMaxMs: 2_000 },
      ...{ batchMax: 20, concurrency: 8 },
    }),
    /** From operators to companies. Nothing but a fault of the store keeps one from its table. */
    reports: queue({ schema: report, f: 1, maxAttempts: 100, batchMax: 50, batchWaitMs: 20 }),
  },
} as const;
