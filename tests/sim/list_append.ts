/**
 * Histories in the format of an outside checker (Elle's list-append, as JSON lines): a second opinion that shares
 * neither code nor ideas with the checkers here.
 *
 * Our keys are registers of which the last writer wins, and that checker wants lists. A register with one writer is
 * a list: a read of its n-th version has seen the first n. Hence {@link asLists}, the plan of such a run: each key
 * is written by one session, which has one request at a time and keeps its last token; no deletions, no sums, no
 * lost disks.
 *
 * L1  A *process* is a chain: requests of a session each of which presents the answer of the one before. What was
 *     done after a request's last answer is in no chain, since nobody was told of it.
 * L2  A write that nobody was told of counts only if an answer shows it.
 */
import type { History, HistoryEvent, Seen, Stamp } from "./history.ts";
import type { Plan } from "./topology.ts";

/** The plan of a run whose registers can be read as lists. */
export const asLists = (plan: Plan): Plan => ({
  ...plan,
  sessions: Math.min(plan.sessions, plan.groups * plan.keysPerGroup),
  sumKeys: 0,
  ownKeys: true,
  concurrency: 1,
  mergeShare: 0,
  openChance: 0,
  oldTokenChance: 0,
  parallelChance: 0,
  weights: { ...plan.weights, delete: 0, expiring: 0, sum: 0 },
  faults: { ...plan.faults, wipe: 0, wipeInner: 0 },
});

/** One step of a transaction, as that checker reads it. */
type Step = readonly ["append", number, number] | readonly ["r", number, readonly number[]];

interface Request {
  readonly session: number;
  readonly presents: readonly number[];
  /** Its operations, and the issue that told of them. */
  readonly done: { readonly event: Operation; issue: number | null }[];
  lastIssue: number | null;
}

type Operation = HistoryEvent & { readonly kind: "read" | "wrote" };

/** The history as JSON lines: an invocation and a completion for each operation. */
export function listAppend(history: History): string {
  const requests = requestsOf(history.events);
  const versions = versionsOf(requests);
  const lines: string[] = [];
  const chains = new Map<number, number>();
  let processes = 0;
  for (const request of requests) {
    const continued = request.presents.find((issue) => chains.has(issue));
    const process = continued === undefined ? processes++ : chains.get(continued) ?? 0;
    if (continued !== undefined && request.lastIssue !== null) chains.delete(continued);
    if (request.lastIssue !== null) chains.set(request.lastIssue, process);
    for (const { event, issue } of request.done) {
      if (issue === null) continue;
      transaction(lines, process, stepsOf(event, versions));
    }
  }
  for (const append of untold(requests, versions)) transaction(lines, processes++, [append]); // L2
  return lines.join("\n") + "\n";
}

function requestsOf(events: readonly HistoryEvent[]): Request[] {
  const requests = new Map<number, Request>();
  for (const event of events) {
    if (event.kind === "request") {
      const { session, presents } = event;
      requests.set(event.request, { session, presents, done: [], lastIssue: null });
    } else if (event.kind === "read" || (event.kind === "wrote" && event.stamp !== null)) {
      requests.get(event.request)?.done.push({ event, issue: null });
    } else if (event.kind === "issue") {
      const request = requests.get(event.request);
      if (request === undefined) continue;
      for (const each of request.done) each.issue ??= event.issue;
      request.lastIssue = event.issue;
    }
  }
  return [...requests.values()];
}

/** Per key, the writes that anybody was told of or shown, oldest version first. */
function versionsOf(requests: readonly Request[]): Map<number, { write: number; stamp: Stamp }[]> {
  const byKey = new Map<number, Map<number, Stamp>>();
  const note = (key: number, write: number, stamp: Stamp) => {
    const writes = byKey.get(key) ?? new Map<number, Stamp>();
    byKey.set(key, writes.set(write, stamp));
  };
  for (const { event, issue } of requests.flatMap((request) => request.done)) {
    if (issue === null) continue;
    if (event.kind === "wrote") {
      for (const { key, write } of event.writes) note(key, write, event.stamp ?? "");
    } else {
      for (const { key, write, stamp } of event.rows) if (write !== null) note(key, write, stamp);
    }
  }
  return new Map(
    [...byKey].map(([key, writes]) => [
      key,
      [...writes].map(([write, stamp]) => ({ write, stamp })).sort((a, b) => a.stamp < b.stamp ? -1 : 1),
    ]),
  );
}

function stepsOf(
  event: Operation,
  versions: ReadonlyMap<number, readonly { write: number; stamp: Stamp }[]>,
): Step[] {
  if (event.kind === "wrote") return event.writes.map(({ key, write }) => ["append", key, write]);
  const list = ({ key, write, stamp }: Seen) =>
    write === null
      ? []
      : (versions.get(key) ?? []).filter((each) => each.stamp <= stamp).map((each) => each.write);
  return event.rows.map((row) => ["r", row.key, list(row)]);
}

/** Appends that answers show, and of which no answer told. */
function untold(
  requests: readonly Request[],
  versions: ReadonlyMap<number, readonly { write: number }[]>,
): Step[] {
  const told = new Set(
    requests.flatMap(({ done }) =>
      done.flatMap(({ event, issue }) =>
        event.kind === "wrote" && issue !== null ? event.writes.map(({ write }) => write) : []
      )
    ),
  );
  return [...versions].flatMap(([key, writes]) =>
    writes.filter(({ write }) => !told.has(write)).map(({ write }): Step => ["append", key, write])
  );
}

function transaction(lines: string[], process: number, steps: readonly Step[]): void {
  const asked = steps.map((step) => step[0] === "r" ? ["r", step[1], null] : step);
  for (const [type, value] of [["invoke", asked], ["ok", steps]] as const) {
    lines.push(JSON.stringify({ index: lines.length, type, process, value }));
  }
}
