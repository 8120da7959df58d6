/**
 * Metrics of the queues of each app at this site: how much waits in memory, of how many bytes it may have, and what was
 * given up for it (docs/queues.md).
 */
import type { QueueName, SiteQueues } from "../isolate/mod.ts";
import { Counter, type Family, observed } from "../telemetry/mod.ts";

/** Reads an app's queues. */
export class QueueMetrics {
  readonly #shed = new Counter({
    name: "app.queues.shed",
    unit: "{queue}",
    description: "Queues that were given up, since all of their app held more than it may.",
  });
  #queues: SiteQueues | null = null;

  /** Families of all metrics of the queues. */
  get families(): Family[] {
    return [
      observed("gauge", {
        name: "app.queues.size",
        unit: "By",
        description: "What of an app waits in this site's memory, by queue.",
      }, () => this.#waiting()),
      observed("gauge", {
        name: "app.queues.limit",
        unit: "By",
        description: "What of one app may wait, over all of its queues.",
      }, () => this.#queues?.bytesMax ?? []),
      this.#shed,
    ];
  }

  /** Sets the queues that are read. */
  watch(queues: SiteQueues): void {
    this.#queues = queues;
  }

  /** Counts a queue that was given up. */
  shed({ app, queue }: { readonly app: string; readonly queue: QueueName }): void {
    this.#shed.of(labels(app, queue)).add();
  }

  #waiting() {
    return Array.from(this.#queues?.waiting() ?? [], ({ app, queue, bytes }) => ({
      labels: labels(app, queue),
      value: bytes,
    }));
  }
}

const labels = (app: string, queue: QueueName) => [["sojourn.app", app], ["queue", queue]] as const;
