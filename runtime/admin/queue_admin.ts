/** Queues of a site, as the admin handlers reach them. */
import type { QueueStatus } from "../../functions/queues/broker.ts";

/** Message that was given up, as operators see it. */
export interface DeadMessage {
  /** Id that its producer gave it, or that was drawn. */
  readonly id: string;
  /** Id of its tuple, after which a list goes on. */
  readonly tuple: string;
  readonly attempts: number;
  readonly cause: string;
  /** Error with which the message was given up, shortened. */
  readonly error: string;
  readonly sentMs: number;
  readonly owners: readonly string[];
  readonly format: string;
  /** Body of the message; bytes are base64. null: it can't be read. */
  readonly body: unknown;
}

/** Queue that an app declares. */
export interface DeclaredSummary {
  readonly app: string;
  readonly queue: string;
  /** What is given the messages. */
  readonly consumer: "handler" | "webhook" | "pull";
  /** Why messages wait for their webhook, as this site sees it; null: they don't. */
  readonly lacks: string | null;
  readonly isPaused: boolean;
}

/** Queues of a site, as the admin handlers use them. */
export interface QueueAdmin {
  /** Returns the queues that apps declare, whether they have messages or not. */
  declared(): readonly DeclaredSummary[];
  /** Returns what this site owns, by topic. */
  status(): readonly QueueStatus[];
  /** Returns dead messages that this site owns, in the order in which they were given up. */
  dead(
    app: string,
    queue: string,
    page: { readonly limit: number; readonly after?: string },
  ): Promise<readonly DeadMessage[]>;
  /** Has dead messages that this site owns come again; all of them where no ids are given. @returns how many */
  redrive(app: string, queue: string, ids?: readonly string[]): Promise<number>;
  /** Removes dead messages that this site owns; all of them where no ids are given. @returns how many */
  remove(app: string, queue: string, ids?: readonly string[]): Promise<number>;
}
