/** Operations of operators on the messages of queues that one site owns. */
import type { Broker, QueueStatus, StoredMessage } from "../../functions/queues/broker.ts";
import type { DeadMessage, DeclaredSummary, QueueAdmin } from "../admin/queue_admin.ts";
import { type DeclaredQueues, namesOf, topicOf } from "./declared_queues.ts";
import { shownBody } from "./outside_message.ts";
import type { Webhooks } from "./webhooks.ts";

/** What the operations need of their site. */
export interface OperationsParts {
  readonly broker: Pick<Broker, "list" | "redrive" | "remove" | "status">;
  readonly declared: Pick<DeclaredQueues, "topics" | "get">;
  readonly webhooks: Pick<Webhooks, "lacks">;
  /** Returns the id of the tuple of a message whose producer gave it an id. */
  readonly tupleIdOf: (topic: string, id: string) => string;
}

/** Queues of one site, for its operators. */
export class QueueOperations implements QueueAdmin {
  readonly #parts: OperationsParts;

  constructor(parts: OperationsParts) {
    this.#parts = parts;
  }

  declared(): readonly DeclaredSummary[] {
    const { declared, webhooks } = this.#parts;
    return declared.topics.map((topic) => {
      const found = declared.get(topic);
      return {
        ...namesOf(topic),
        consumer: found?.consumer ?? "pull",
        lacks: webhooks.lacks(topic),
        isPaused: found?.settings.isPaused === true,
      };
    });
  }

  status(): readonly QueueStatus[] {
    return this.#parts.broker.status();
  }

  async dead(
    app: string,
    queue: string,
    page: { readonly limit: number; readonly after?: string },
  ): Promise<readonly DeadMessage[]> {
    return (await this.#parts.broker.list(topicOf(app, queue), "dead", page)).map(shown);
  }

  async redrive(app: string, queue: string, ids?: readonly string[]): Promise<number> {
    const topic = topicOf(app, queue);
    return await this.#parts.broker.redrive(topic, this.#tuples(topic, ids));
  }

  async remove(app: string, queue: string, ids?: readonly string[]): Promise<number> {
    const topic = topicOf(app, queue);
    return await this.#parts.broker.remove(topic, ["dead"], this.#tuples(topic, ids));
  }

  /** Returns the tuples that messages with these ids may be; those that are not here are passed over. */
  #tuples(topic: string, ids: readonly string[] | undefined): string[] | undefined {
    return ids && [...new Set(ids.flatMap((id) => [id, this.#parts.tupleIdOf(topic, id)]))];
  }
}

function shown({ id, tuple, attempts, death, owners, envelope }: StoredMessage): DeadMessage {
  const { sentMs, format } = envelope;
  const about = { id, tuple, attempts, cause: death?.cause ?? "", error: death?.error ?? "", sentMs, owners };
  try {
    return { ...about, ...shownBody(envelope) };
  } catch {
    return { ...about, format, body: null }; // it was given up for that, perhaps
  }
}
