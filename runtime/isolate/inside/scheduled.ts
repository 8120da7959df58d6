/** Arguments of a `scheduled` handler: Workers' ScheduledController, with the job's name. */

/** A cron job that is due, as the site sends it. */
export interface ScheduledFrame {
  readonly event: { readonly name: string; readonly cron: string; readonly scheduledTime: number };
  readonly context: { readonly session: string; readonly site: string; readonly version: string };
  /** `traceparent` of the run's span, where it is recorded. */
  readonly traceparent?: string;
}

/** The first argument of the handler. */
export class ScheduledController {
  readonly type = "scheduled";
  readonly name: string;
  readonly cron: string;
  readonly scheduledTime: number;
  readonly #noRetry: () => void;

  constructor(event: ScheduledFrame["event"], noRetry: () => void) {
    this.name = event.name;
    this.cron = event.cron;
    this.scheduledTime = event.scheduledTime;
    this.#noRetry = noRetry;
  }

  /** Says that a failure of this run is not to be tried again. */
  noRetry(): void {
    this.#noRetry();
  }
}

/** Work that a run has left to `waitUntil`. */
export class WaitUntilWork {
  #left: Promise<unknown>[] = [];

  add(promise: Promise<unknown>): void {
    const work = Promise.resolve(promise);
    work.catch(() => {}); // `ended` reports it
    this.#left.push(work);
  }

  /** Resolves when all work is over, and what it left itself too. @throws the first error among it. */
  async ended(): Promise<void> {
    const errors: unknown[] = [];
    while (this.#left.length > 0) {
      const left = this.#left;
      this.#left = [];
      for (const result of await Promise.allSettled(left)) {
        if (result.status === "rejected") errors.push(result.reason);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
