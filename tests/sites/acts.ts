/**
 * What stateful sessions did, told as requests of a history (tests/sim/history.ts), so that the checkers of sessions and
 * sites judge it with all else: each handler that is in a log that survived follows the one before it, and who asked for it;
 * who asked follows it as soon as it has the answer.
 *
 * AC1  A handler did what an uninterrupted run of the log says (ledger.ts): reads with the rows that the log has, writes
 *      under the version of their commit. What became of it in between is nobody's business.
 * AC2  An event of the history stands where it was first seen: that of a handler where an isolate gave out the entry. So a
 *      write comes before anybody can have seen it.
 * AC3  What a handler writes leaves when it ends: who it calls before need not see it. But it has its version from when
 *      it was written, and what the handler learns afterwards is no part of its past.
 */
import { packKey } from "../../store/model/key.ts";
import { parseVersionstamp } from "../../store/model/row.ts";
import type { HistoryEvent, Seen, Written } from "../sim/history.ts";
import type { Keyspace } from "../sim/keyspace.ts";
import { APP } from "./deployed.ts";
import type { Act, Ledger, Step } from "./ledger.ts";
import type { Life } from "./surviving_log.ts";

/** Sessions and requests of the history from here on are those of stateful sessions. */
const SESSIONS_FROM = 1_000, REQUESTS_FROM = 1_000_000, ISSUES_FROM = 1_000_000;

/** A stateful session whose log survived. */
export interface Acted {
  readonly ledger: Ledger;
  readonly log: Life;
}

interface Placed {
  /** So many events were noted before it. */
  readonly order: number;
  readonly event: HistoryEvent;
}

/** The history with what stateful sessions did. */
export function withActs(
  events: readonly HistoryEvent[],
  sessions: readonly Acted[],
  keyspace: Keyspace,
): HistoryEvent[] {
  const told = new Telling(events, keyspace);
  sessions.forEach((session, i) => told.take(session, SESSIONS_FROM + i));
  return told.all();
}

class Telling {
  readonly #events: readonly HistoryEvent[];
  readonly #keyspace: Keyspace;
  readonly #placed: Placed[] = [];
  /** By the id of a request: what its client had done before each attempt. */
  readonly #lent = new Map<string, readonly { readonly order: number; readonly issue: number }[]>();
  /** By the name of a call between sessions: what its caller had done before, and what who ran it first had. */
  readonly #asked = new Map<string, number>();
  readonly #answered = new Map<string, number>();
  readonly #wereRun = new Set<string>();
  /** By the id of a request: the issue of the handler that ran it; null: two sessions did, one after the other's end. */
  readonly #ran = new Map<string, number | null>();
  #requests = REQUESTS_FROM;
  #issues = ISSUES_FROM;

  constructor(events: readonly HistoryEvent[], keyspace: Keyspace) {
    this.#events = events;
    this.#keyspace = keyspace;
    for (const [order, event] of events.entries()) {
      if (event.kind !== "lent") continue;
      const lent = this.#lent.get(event.once) ?? [];
      this.#lent.set(event.once, [...lent, { order, issue: event.issue }]);
    }
  }

  all(): HistoryEvent[] {
    for (const [order, event] of this.#events.entries()) {
      if (event.kind !== "answered") continue;
      const issue = this.#ran.get(event.once);
      if (issue !== undefined && issue !== null) {
        const { atMs, request } = event;
        this.#place(order + 1, { kind: "follows", atMs, request, issue });
      }
    }
    const placed = this.#placed.sort((a, b) => a.order - b.order);
    const all: HistoryEvent[] = [];
    let next = 0;
    for (let order = 0; order <= this.#events.length; order++) {
      for (; (placed[next]?.order ?? Infinity) < order + 1; next++) all.push((placed[next] as Placed).event);
      const event = this.#events[order];
      if (event !== undefined) all.push(event);
    }
    return all;
  }

  take({ ledger, log }: Acted, session: number): void {
    let before: number | null = null;
    for (const act of ledger.acts) before = this.#act(act, log, session, before);
  }

  #act(act: Act, log: Life, session: number, before: number | null): number {
    const request = this.#requests++;
    const orderOf = (at: number) => log.orders[at] ?? this.#events.length;
    const place = (at: number, event: (atMs: number) => HistoryEvent) => {
      const order = orderOf(at);
      this.#place(order, event(this.#events[Math.max(0, Math.floor(order) - 1)]?.atMs ?? 0));
    };
    const presents: number[] = before === null ? [] : [before];
    const asked = act.what.split(" ")[0] ?? "";
    const begunAt = orderOf(act.first);
    // Which attempt was heard first nobody outside knows: of those made by then the last has done the least.
    const lent = this.#lent.get(act.request ?? "")?.findLast(({ order }) => order < begunAt)?.issue;
    presents.push(lent ?? this.#issueOf(this.#asked, asked));
    place(act.first, (atMs) => ({ kind: "request", atMs, request, session, site: "", presents }));
    const made: number[] = [];
    for (const step of act.steps) {
      switch (step.kind) {
        case "write": // AC3
          made.push(
            this.#writes(
              step,
              { request, session, before: made.at(-1) ?? null },
              (event) => place(step.at, event),
            ),
          );
          break;
        case "read":
          place(step.at, (atMs) => ({ kind: "read", atMs, request, rows: [this.#seen(step)] }));
          break;
        case "asks": {
          const issue = this.#issueOf(this.#asked, step.asked);
          place(step.at, (atMs) => ({ kind: "lent", atMs, request, issue, once: step.asked }));
          break;
        }
        case "told": {
          const issue = this.#issueOf(this.#answered, step.asked);
          place(step.at, (atMs) => ({ kind: "follows", atMs, request, issue }));
          break;
        }
      }
    }
    for (const issue of made) place(act.last, (atMs) => ({ kind: "follows", atMs, request, issue }));
    const issue = this.#wereRun.has(asked) ? this.#issues++ : this.#issueOf(this.#answered, asked);
    this.#wereRun.add(asked);
    place(act.last, (atMs) => ({ kind: "issue", atMs, request, issue, open: false }));
    place(act.last, (atMs) => ({ kind: "end", atMs, request, outcome: "ok", final: false }));
    if (act.request !== null) this.#ran.set(act.request, this.#ran.has(act.request) ? null : issue);
    return issue;
  }

  /** A write, as a request of its own that follows what its handler has done so far; its issue. */
  #writes(
    { op, stamp }: Extract<Step, { kind: "write" }>,
    by: { readonly request: number; readonly session: number; readonly before: number | null },
    place: (event: (atMs: number) => HistoryEvent) => void,
  ): number {
    const request = this.#requests++, lent = this.#issues++, issue = this.#issues++;
    const presents = by.before === null ? [lent] : [lent, by.before];
    place((atMs) => ({ kind: "lent", atMs, request: by.request, issue: lent, once: op }));
    place((atMs) => ({ kind: "request", atMs, request, session: by.session, site: "", presents }));
    for (const event of this.#write(op, stamp, request)) place((atMs) => ({ ...event, atMs }));
    place((atMs) => ({ kind: "issue", atMs, request, issue, open: false }));
    place((atMs) => ({ kind: "end", atMs, request, outcome: "ok", final: false }));
    return issue;
  }

  #issueOf(issues: Map<string, number>, name: string): number {
    const issue = issues.get(name) ?? this.#issues++;
    issues.set(name, issue);
    return issue;
  }

  #place(order: number, event: HistoryEvent): void {
    this.#placed.push({ order, event });
  }

  #seen({ row, value, stamp }: Extract<Step, { kind: "read" }>): Seen {
    const number = this.#numberOf(row);
    if (value === null) return this.#keyspace.absent(number);
    const { clock, replica } = parseVersionstamp(stamp) ?? { clock: 0, replica: 0 };
    const seen = this.#keyspace.seen({
      ...{ key: this.#keyspace.key(number), value: Uint8Array.fromHex(value), clock, replica },
      ...{ position: 0, known: 0, expiresAtMs: 0 },
    });
    return seen ?? this.#keyspace.absent(number);
  }

  /** AC1 */
  #write(op: string, stamp: string, request: number): (HistoryEvent & { kind: "write" | "wrote" })[] {
    const [kind = "", row = "", write = ""] = op.split(":");
    const key = this.#numberOf(row);
    const what = kind === "del" ? "delete" : kind === "sum" ? "sum" : "set";
    const writes: readonly Written[] = [{ write: Number(write), key, what }];
    return [
      { kind: "write", atMs: 0, request, writes, checks: [] },
      { kind: "wrote", atMs: 0, request, writes, stamp },
    ];
  }

  #numberOf(row: string): number {
    const [group = "", number] = row.split("/");
    const found = this.#keyspace.number(packKey(["a", APP, group, Number(number)]));
    if (found === undefined) throw new Error(`no row is called ${row}`);
    return found;
  }
}
