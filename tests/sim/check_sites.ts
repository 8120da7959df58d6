/**
 * What the disks of sites must show: closure, convergence, durability; and that everything ended.
 *
 * Closure: after every commit, each row that a site holds has all its causes among the rows of what the site
 * covers. It sees in hundreds of runs what reads of sessions show in thousands. Durability: a write that was
 * acknowledged is at the root in the end, or something newer is, unless every disk that had it was lost: never where
 * the site that acknowledged it has owners, and no more disks were lost in all than it has.
 */
import type { Held, History, HistoryEvent, Seen, Stamp, Violation } from "./history.ts";
import { Ledger, type WriteRecord } from "./ledger.ts";
import { LostDisks, type Told } from "./lost_disks.ts";
import { Losses, shows } from "./losses.ts";
import { OpenAnswers } from "./open_answers.ts";
import { Past } from "./past.ts";

interface SiteState {
  readonly rows: Map<number, Held>;
  readonly covers: Set<number>;
}

/** A token that left. */
interface Issued extends Told {
  readonly past: Past;
}

type Report = (checker: string, atMs: number, message: string) => void;

/**
 * All breaches of closure, convergence, durability and liveness in a history.
 *
 * @param excused hears each time that something is let pass because of a lost disk.
 */
export function checkSites(history: History, excused: (what: string) => void = () => {}): Violation[] {
  const violations: Violation[] = [];
  const seen = new Set<string>();
  const report: Report = (checker, atMs, message) => {
    // A site that is wrong stays wrong: once is enough.
    if (seen.has(`${checker} ${message}`)) return;
    seen.add(`${checker} ${message}`);
    violations.push({ checker, atMs, message });
  };
  const check = new SitesCheck(history, report, excused);
  for (const event of history.events) check.step(event);
  check.end();
  return violations;
}

class SitesCheck {
  readonly #history: History;
  readonly #report: Report;
  readonly #ledger: Ledger;
  readonly #sites = new Map<string, SiteState>();
  readonly #pasts = new Map<
    number,
    { readonly past: Past; readonly session: number; readonly open: Set<number> }
  >();
  readonly #issues = new Map<number, Issued>();
  readonly #answers = new OpenAnswers();
  readonly #requests = new Map<number, HistoryEvent & { kind: "request" }>();
  readonly #acknowledged = new Set<WriteRecord>();
  readonly #losses: Losses;
  readonly #disks: LostDisks;
  readonly #finals = new Map<string, HistoryEvent & { kind: "final" }>();
  /** By site and first key: what its watcher read last. */
  readonly #watched = new Map<string, HistoryEvent & { kind: "watched" }>();
  readonly #system = new Map<string, HistoryEvent & { kind: "system" }>();

  readonly #excused: (what: string) => void;

  constructor(history: History, report: Report, excused: (what: string) => void) {
    this.#history = history;
    this.#report = report;
    this.#excused = excused;
    this.#ledger = new Ledger(history.keys);
    this.#losses = new Losses(this.#ledger, history);
    this.#disks = new LostDisks(history, this.#losses);
  }

  step(event: HistoryEvent): void {
    const told = this.#answers.step(event, (request) => this.#pasts.get(request)?.past);
    if (told !== null) { for (const issue of told.issues) this.#issues.get(issue)?.past.join(told.past); }
    this.#disks.step(event);
    this.#take(event);
    this.#losses.step(event);
  }

  #take(event: HistoryEvent): void {
    switch (event.kind) {
      case "request":
        return this.#begin(event);
      case "read":
        for (const row of event.rows) this.#learn(event.request, row);
        return;
      case "write": {
        const request = this.#pasts.get(event.request);
        if (request !== undefined) this.#ledger.begin(event, request.session, request.past);
        return;
      }
      case "wrote":
        return this.#wrote(event);
      case "issue":
        return this.#issue(event);
      case "lent": {
        const past = this.#pasts.get(event.request)?.past.copy();
        const site = this.#requests.get(event.request)?.site;
        if (past === undefined || site === undefined) return;
        this.#issues.set(event.issue, { past, site, atMs: event.atMs, open: false });
        return;
      }
      case "follows": {
        const past = this.#issues.get(event.issue)?.past;
        if (past !== undefined) this.#pasts.get(event.request)?.past.join(past);
        return;
      }
      case "chunk":
        return this.#acknowledge(event.request);
      case "end":
        return this.#ended(event);
      case "start":
        this.#unwatch(event.site);
        if (event.blank) this.#lost(event);
        return;
      case "gone":
        this.#unwatch(event.site);
        return this.#lost(event);
      case "commit":
        return this.#commit(event);
      case "watched":
        this.#watched.set(`${event.site} ${event.keys[0]}`, event);
        return;
      case "system":
        this.#system.set(event.site, event);
        return;
      case "final":
        this.#finals.set(event.site, event);
        return;
    }
  }

  end(): void {
    for (const [request, { site, atMs }] of this.#requests) {
      this.#report("liveness", atMs, `request ${request} at ${site} never ended`);
    }
    const root = this.#finals.get(this.#history.root);
    if (root === undefined) return;
    for (const final of this.#finals.values()) this.#converged(final, root);
    this.#durable(root);
    for (const watched of this.#watched.values()) this.#sawLast(watched, root);
    const system = this.#system.get(this.#history.root);
    for (const { site, atMs, rows } of this.#system.values()) {
      if (system === undefined || rows.join() === system.rows.join()) continue;
      this.#report("system rows", atMs, `${site} shows system rows ${rows}, the root ${system.rows}`);
    }
  }

  #begin(event: HistoryEvent & { kind: "request" }): void {
    const past = new Past(this.#history.keys);
    for (const issue of event.presents) past.join(this.#issues.get(issue)?.past ?? past);
    this.#pasts.set(event.request, { past, session: event.session, open: new Set() });
    this.#requests.set(event.request, event);
  }

  #learn(request: number, row: Seen): void {
    const past = this.#pasts.get(request)?.past;
    if (past === undefined) return;
    const records = row.sums === undefined
      ? [this.#ledger.seen(row)]
      : row.sums.map((write) => this.#ledger.writes.get(write));
    if (row.write !== null && row.sums === undefined) past.note("seen", row.key, row.stamp);
    if (row.sums !== undefined) past.noteSums("seen", this.#ledger.sumBits(row.sums));
    for (const record of records) if (record !== undefined) past.joinWriter(record.past);
  }

  #wrote(event: HistoryEvent & { kind: "wrote" }): void {
    this.#ledger.end(event);
    const request = this.#pasts.get(event.request);
    if (request === undefined || event.stamp === null) return;
    for (const { write, key, what } of event.writes) {
      request.open.add(write);
      if (what === "sum") request.past.noteSums("own", this.#ledger.writes.get(write)?.bit ?? 0n);
      else request.past.note("own", key, event.stamp);
    }
  }

  #issue(event: HistoryEvent & { kind: "issue" }): void {
    const request = this.#pasts.get(event.request);
    const site = this.#requests.get(event.request)?.site;
    if (request === undefined || site === undefined) return;
    this.#issues.set(event.issue, { past: request.past.copy(), site, atMs: event.atMs, open: event.open });
    this.#acknowledge(event.request);
  }

  /** All that a request has written so far is told. */
  #acknowledge(number: number): void {
    const request = this.#pasts.get(number);
    if (request === undefined) return;
    for (const write of request.open) {
      const record = this.#ledger.writes.get(write);
      if (record !== undefined) this.#acknowledged.add(record);
    }
    request.open.clear();
  }

  #ended(event: HistoryEvent & { kind: "end" }): void {
    const request = this.#requests.get(event.request);
    this.#requests.delete(event.request);
    if (request === undefined) return;
    const where = `request ${event.request} of session ${request.session} at ${request.site}`;
    if (event.outcome.startsWith("fault")) this.#report("fault", event.atMs, `${where}: ${event.outcome}`);
    else if (event.outcome === "source_lost") {
      const presented = request.presents.flatMap((number) => this.#issues.get(number) ?? []);
      const excuse = this.#disks.excuse(request, presented);
      if (excuse !== null) this.#excused(excuse);
      else {
        this.#report("liveness", event.atMs, `${where}: source_lost, but no disk of its past was lost`);
      }
    } else if (event.final && event.outcome !== "ok") {
      this.#report("liveness", event.atMs, `${where}: ${event.outcome} with no fault left`);
    }
  }

  /** A site's watchers went with its process. */
  #unwatch(site: string): void {
    for (const name of [...this.#watched.keys()]) if (name.startsWith(`${site} `)) this.#watched.delete(name);
  }

  /** A disk was lost. */
  #lost(event: { readonly site: string; readonly atMs: number }): void {
    this.#sites.delete(event.site);
  }

  #commit(event: HistoryEvent & { kind: "commit" }): void {
    const state = this.#sites.get(event.site) ?? { rows: new Map<number, Held>(), covers: new Set<number>() };
    this.#sites.set(event.site, state);
    for (const key of event.gone) state.rows.delete(key);
    for (const row of event.rows) {
      this.#ledger.seen(row);
      state.rows.set(row.key, row);
    }
    for (const [key, covered] of event.covers) {
      if (covered) state.covers.add(key);
      else state.covers.delete(key);
    }
    this.#closed(event.site, event.atMs, state);
  }

  #closed(site: string, atMs: number, { rows, covers }: SiteState): void {
    for (const row of rows.values()) {
      for (const record of this.#recordsOf(row)) {
        for (const key of covers) {
          const lack = this.#lack(rows.get(key), key, record.past);
          if (lack === null) continue;
          const has = `holds key ${row.key} at ${row.stamp} (write ${record.write})`;
          this.#report("site closure", atMs, `${site} ${has}, whose past needs ${lack}`);
        }
      }
    }
  }

  /** The writes that a row stands for; a tombstone's is found by its version. */
  #recordsOf(row: Held): WriteRecord[] {
    const writes = row.sums ?? (row.write === null ? [] : [row.write]);
    if (writes.length > 0) {
      return writes.flatMap((write) => this.#ledger.writes.get(write) ?? []);
    }
    return this.#ledger.deletions(row.key, row.stamp).filter((record) => record.stamp === row.stamp);
  }

  #lack(row: Held | undefined, key: number, past: Past): string | null {
    const lost = [...this.#losses.lost].reduce((all, record) => all | record.bit, 0n);
    const sums = past.needSums() & ~lost & this.#ledger.sumMask(key) & ~this.#ledger.sumBits(row?.sums ?? []);
    if (sums !== 0n) return `sum writes ${this.#ledger.sumsOf(sums).map((r) => r.write)} of key ${key}`;
    const isEnough = (stamp: Stamp) =>
      stamp === "" || (row?.stamp ?? "") >= stamp ||
      row === undefined && this.#ledger.deletions(key, stamp).length > 0;
    if (isEnough(past.need(key).stamp)) return null;
    // Its effects may outlive what was lost with a disk; what was not lost must be there all the same.
    const { stamp } = past.need(key, (stamp) => this.#losses.isLost(key, stamp));
    if (isEnough(stamp)) {
      this.#excused("closure: the cause is lost");
      return null;
    }
    return `key ${key} at ${stamp} or newer (it is ${row?.stamp ?? "absent"})`;
  }

  #converged(final: HistoryEvent & { kind: "final" }, root: HistoryEvent & { kind: "final" }): void {
    if (final.pending > 0) {
      this.#report("liveness", final.atMs, `${final.site} still has ${final.pending} rows to push`);
    }
    for (const key of final.covers) {
      const here = this.#shown(final.rows, key), there = this.#shown(root.rows, key);
      if (here === there) continue;
      this.#report("convergence", final.atMs, `${final.site} shows ${here} at key ${key}, the root ${there}`);
    }
  }

  /** A watcher that was told of every change has read the last one. */
  #sawLast(watched: HistoryEvent & { kind: "watched" }, root: HistoryEvent & { kind: "final" }): void {
    for (const key of watched.keys) {
      const here = this.#shown(watched.rows, key), there = this.#shown(root.rows, key);
      const none = here === "sums " || here === "nothing";
      if (here === there || none && (there === "nothing" || there === "sums ")) continue;
      const text = `a watcher at ${watched.site} last saw ${here} at key ${key}, the root shows ${there}`;
      this.#report("convergence", root.atMs, text);
    }
  }

  #durable(root: HistoryEvent & { kind: "final" }): void {
    for (const record of this.#acknowledged) {
      if (this.#losses.gone.has(record)) {
        this.#excused("durability: on lost disks only");
        continue;
      }
      const row = root.rows.find(({ key }) => key === record.key);
      if (shows(row, record)) continue;
      const stamp: Stamp = record.stamp ?? "";
      const gone = row === undefined && this.#ledger.deletions(record.key, stamp).length > 0;
      if (gone) continue;
      const has = row === undefined ? "nothing" : row.stamp;
      const text =
        `${record.what} ${record.write} of key ${record.key} (${stamp}) was acknowledged, the root has ${has}`;
      this.#report("durability", root.atMs, text);
    }
  }

  /** What a reader would see; what expires may be gone at one site and not yet at another. */
  #shown(rows: readonly Held[], key: number): string {
    const row = rows.find((each) => each.key === key);
    if (row?.sums !== undefined) return `sums ${[...row.sums].sort((a, b) => a - b)}`;
    const isExpiring = this.#ledger.writes.get(row?.write ?? -1)?.what === "expiring";
    return row === undefined || row.write === null || isExpiring
      ? "nothing"
      : `write ${row.write} (${row.stamp})`;
  }
}
