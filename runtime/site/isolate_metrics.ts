/** Metrics of a site's isolates by app: how many, how often one had to be started, and why they ended. */
import type { IsolateApp, IsolateEnd, IsolatePool, PoolObserver } from "../isolate/mod.ts";
import { Counter, type Family, Histogram, observed, SECONDS } from "../telemetry/mod.ts";

/** Counts isolates. */
export class IsolateMetrics implements PoolObserver {
  readonly #coldStarts = new Counter({
    name: "faas.coldstarts",
    unit: "{coldstart}",
    description: "Isolates that began to serve an app.",
  });
  readonly #opening = new Histogram({
    name: "faas.init_duration",
    unit: "s",
    description: "Time from wanting an isolate until it had loaded its bundle.",
  }, SECONDS);
  readonly #ends = new Counter({
    name: "isolate.ends",
    unit: "{isolate}",
    description:
      "Isolates that ended: closed (no longer needed), crashed, or killed because of cpu, stalled, memory, load, unread, frames.",
  });
  #pool: IsolatePool | null = null;

  /** Families of all metrics that are counted here. */
  get families(): Family[] {
    return [this.#coldStarts, this.#opening, this.#ends, ...this.#gauges()];
  }

  /** Sets the pool whose isolates are read. */
  watch(pool: IsolatePool): void {
    this.#pool = pool;
  }

  opened({ app }: IsolateApp, ms: number): void {
    this.#coldStarts.of([["sojourn.app", app]]).add();
    this.#opening.of([["sojourn.app", app]]).observe(ms / 1000);
  }

  ended({ app }: IsolateApp, end: IsolateEnd): void {
    const reason = end.kind === "killed" ? end.cause : end.kind;
    this.#ends.of([["sojourn.app", app], ["reason", reason]]).add();
  }

  #gauges(): Family[] {
    const byApp = (count: (isolates: readonly { readonly running: number }[]) => number) => {
      const sums = new Map<string, number>();
      for (const { app, isolates } of this.#pool?.status().apps ?? []) {
        sums.set(app, (sums.get(app) ?? 0) + count(isolates));
      }
      return Array.from(sums, ([app, value]) => ({ labels: [["sojourn.app", app]] as const, value }));
    };
    return [
      observed("gauge", {
        name: "isolate.count",
        unit: "{isolate}",
        description: "Isolates that serve an app.",
      }, () => byApp((isolates) => isolates.length)),
      observed("gauge", {
        name: "isolate.requests",
        unit: "{request}",
        description:
          "Requests that run in an app's isolates, with what they left to waitUntil and open streams.",
      }, () => byApp((isolates) => isolates.reduce((sum, { running }) => sum + running, 0))),
      observed("gauge", {
        name: "isolate.spares",
        unit: "{isolate}",
        description: "Isolates that wait for an app.",
      }, () => this.#pool?.status().spares ?? 0),
    ];
  }
}
