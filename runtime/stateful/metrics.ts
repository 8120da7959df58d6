/** Metrics that a site has of its stateful sessions. */
import type { HomesStatus } from "../../functions/sessions/home/mod.ts";
import { Counter, type Family, observed } from "../telemetry/mod.ts";

/** Values that the metrics show. */
export interface StatefulSources {
  readonly homes: HomesStatus;
  readonly pool: { readonly isolates: number; readonly sessions: number };
  readonly parked: number;
  readonly waiting: number;
  /** Number of peers attached to sessions at home here; `channels`: those that lead here. */
  readonly attached: number;
  readonly channels: number;
  /**
   * Number of sessions of other sites that are followed here; how many were promoted, or did otherwise than their home.
   */
  readonly standby: { readonly standbys: number; readonly promoted: number; readonly diverged: number };
  /** Number of WebSockets of this gateway that are attached to stateful sessions, wherever these are. */
  readonly sockets: number;
}

/** Metrics of stateful sessions. */
export class StatefulMetrics {
  readonly #calls = new Counter({
    name: "stateful.calls",
    unit: "{call}",
    description:
      "Calls of stateful sessions: here (run at this site), there (sent to their home), served (for another site), retried.",
  });
  readonly #events = new Counter({
    name: "stateful.events",
    unit: "{event}",
    description: "What happened to homes and logs, by kind (docs/protocol/homes.md).",
  });
  readonly #rejected = new Counter({
    name: "stateful.rejected",
    unit: "{handler}",
    description:
      "Handlers that threw or were killed, by what they were for: request, message, timer, attach, detach, local.",
  });
  readonly #peers = new Counter({
    name: "stateful.sockets.events",
    unit: "{socket}",
    description:
      "WebSockets to stateful sessions: attached (plain), relayed (of the client library), refused, resumed " +
      "(went on with another home), lost (found none), slow (closed, since it did not read).",
  });
  #sources: (() => StatefulSources) | null = null;
  readonly #told: Record<string, number> = {};

  /** Sets where the gauges look. */
  watch(sources: () => StatefulSources): void {
    this.#sources = sources;
  }

  count(what: string): void {
    this.#calls.of([["where", what]]).add();
  }

  countPeers(what: string): void {
    this.#peers.of([["what", what]]).add();
  }

  /** Counts a handler that threw or was killed. */
  countRejected(what: string): void {
    this.#rejected.of([["for", what]]).add();
  }

  /** Families of all that is counted here. */
  get families(): Family[] {
    const gauge = (name: string, unit: string, description: string, of: (from: StatefulSources) => number) =>
      observed("gauge", { name, unit, description }, () => this.#sources === null ? 0 : of(this.#sources()));
    return [
      this.#calls,
      this.#events,
      this.#rejected,
      this.#peers,
      gauge(
        "stateful.open",
        "{session}",
        "Stateful sessions that are open here.",
        ({ homes }) => this.#seen(homes).open,
      ),
      gauge("stateful.resting", "{session}", "At home here, out of memory.", ({ homes }) => homes.resting),
      gauge("stateful.parked", "{session}", "At home here, and standing still.", ({ parked }) => parked),
      gauge("stateful.attached", "{peer}", "Attached to those at home here.", ({ attached }) => attached),
      gauge("stateful.channels", "{channel}", "Channels of those attached.", ({ channels }) => channels),
      gauge(
        "stateful.sockets",
        "{socket}",
        "WebSockets that came in here and are attached to stateful sessions.",
        ({ sockets }) => sockets,
      ),
      gauge("stateful.waiting", "{request}", "Requests that wait for them.", ({ waiting }) => waiting),
      gauge("stateful.stalled", "{session}", "Open ones that wait for owners.", ({ homes }) => homes.stalled),
      gauge("stateful.kept", "{log}", "Logs on this disk, those of others too.", ({ homes }) => homes.kept),
      gauge("stateful.kept.size", "By", "Bytes of those logs.", ({ homes }) => homes.keptBytes),
      gauge(
        "stateful.standbys",
        "{session}",
        "Of other sites, followed here.",
        ({ standby }) => standby.standbys,
      ),
      this.#standby((of) => of.promoted, "promoted", "Standbys that became homes."),
      this.#standby((of) => of.diverged, "diverged", "Standbys that did otherwise than their homes."),
      gauge("stateful.isolates", "{isolate}", "Isolates of stateful sessions.", ({ pool }) => pool.isolates),
    ];
  }

  #standby(of: (counts: StatefulSources["standby"]) => number, name: string, description: string) {
    return observed("counter", { name: `stateful.standbys.${name}`, unit: "{session}", description }, () => {
      return this.#sources === null ? 0 : of(this.#sources().standby);
    });
  }

  /** Takes a status of the homes, which count by themselves: what was added since the last look is added here. */
  #seen(homes: HomesStatus): HomesStatus {
    for (const [name, value] of Object.entries(homes.counters)) {
      this.#events.of([["kind", name]]).add(value - (this.#told[name] ?? 0));
      this.#told[name] = value;
    }
    return homes;
  }
}
