/**
 * What sites must show together: closure, convergence, durability, the time; and that everything ended.
 *
 * Closure: after every commit, each row that a site holds has all its causes among the rows of what the site
 * covers. It sees in hundreds of runs what reads of sessions show in thousands. Durability: a write that was
 * acknowledged is at the root in the end, or something newer is, unless every disk that had it was lost. The time:
 * no site goes by one that is far ahead of the right one, whatever its wall clock says; and where all wall clocks are
 * right, each site goes by its own in the end.
 */
import type { Excused } from "./excuses.ts";
import type { Held, History, HistoryEvent, Seen, Stamp, Violation } from "./history.ts";
import type { WriteRecord } from "./ledger.ts";
import type { Past } from "./past.ts";
import type { Life, Loss } from "./lives.ts";
import { type Issue, type Request, Trail } from "./trail.ts";

/**
 * All breaches of closure, convergence, durability and liveness in a history.
 *
 * @param excused hears each time that something is let pass.
 */
export function checkSites(history: History, excused: Excused = () => {}): Violation[] {
  const trail = new Trail(history), check = new SitesCheck(trail, excused);
  for (const event of history.events) {
    check.before(event);
    trail.step(event);
    check.after(event);
  }
  check.end();
  return check.violations;
}

/** What a request may be told that was not done, and may be asked again. */
const REFUSALS = [
  "source_unreachable",
  "store_unreachable",
  "owners_unreachable",
  "pending_full",
  "disk_failed",
];

/**
 * As far ahead as two wrong clocks that agree may be (store/model/limits.ts CLOCK_AHEAD_MS_MAX), with what a site takes of a
 * neighbour's, and with skew.
 */
const AHEAD_MS_MAX = 130_000;
/**
 * What drift comes to in a run, and what disks have of clocks beyond the time, at each of some starts
 * (store/model/limits.ts CLOCK_RESERVE_MS).
 */
const OFF_MS_MAX = 10_000;

/** See the file's header. */
export class SitesCheck {
  readonly violations: Violation[] = [];
  readonly #seen = new Set<string>();
  readonly #trail: Trail;
  readonly #excused: Excused;
  readonly #acknowledged = new Set<WriteRecord>();
  /** By site: which keys it covers. */
  readonly #covers = new Map<string, Set<number>>();
  readonly #finals = new Map<string, HistoryEvent & { kind: "final" }>();
  /** By site: what its watcher read last. */
  readonly #watched = new Map<string, readonly Seen[]>();
  readonly #system = new Map<string, HistoryEvent & { kind: "system" }>();
  /** Sites that are in the tree: a root that is alone there has nobody to ask what time it is. */
  readonly #joined = new Set<string>();

  constructor(trail: Trail, excused: Excused) {
    this.#trail = trail;
    this.#excused = excused;
  }

  #report(checker: string, atMs: number, message: string): void {
    // A site that is wrong stays wrong: once is enough.
    if (this.#seen.has(`${checker} ${message}`)) return;
    this.#seen.add(`${checker} ${message}`);
    this.violations.push({ checker, atMs, message });
  }

  /** An event that the trail is about to take in. */
  before(event: HistoryEvent): void {
    switch (event.kind) {
      case "issue":
      case "chunk":
        return this.#acknowledge(this.#trail.request(event.request));
      case "end":
        return this.#ended(event, this.#trail.request(event.request));
      case "start":
        // A site's watchers went with its process.
        return void this.#watched.delete(event.site);
      case "lost":
        this.#covers.delete(event.site);
        return void this.#watched.delete(event.site);
      case "watched":
        return void this.#watched.set(event.site, event.rows);
      case "numbered":
        return void this.#joined.add(event.site);
      case "removed":
        return void this.#joined.delete(event.site);
      case "read":
        return this.#dated(event);
      case "system":
        return void this.#system.set(event.site, event);
      case "final":
        return void this.#finals.set(event.site, event);
    }
  }

  /** One that it has taken in. */
  after(event: HistoryEvent): void {
    if (event.kind === "commit") this.#commit(event);
  }

  /** All that is left to say when the history is over. */
  end(): void {
    for (const { number, site, atMs } of this.#trail.requests.values()) {
      this.#report("liveness", atMs, `request ${number} at ${site} never ended`);
    }
    const root = this.#finals.get(this.#trail.history.root);
    if (root === undefined) return;
    for (const final of this.#finals.values()) this.#converged(final, root);
    if (this.#trail.history.hasWrongClocks !== true) {
      for (const final of this.#finals.values()) this.#inTime(final);
    }
    this.#durable(root);
    const { watch } = this.#trail.history;
    if (watch !== undefined && this.#finals.has(watch.site)) this.#sawLast(watch, root);
    const system = this.#system.get(this.#trail.history.root);
    for (const { site, atMs, rows } of this.#system.values()) {
      if (rows.join() === system?.rows.join()) continue;
      this.#report("system rows", atMs, `${site} shows system rows ${rows}, the root ${system?.rows}`);
    }
  }

  /** All that a request has written so far is told. */
  #acknowledge({ untold }: Request): void {
    for (const write of untold) {
      const record = this.#trail.ledger.writes.get(write);
      if (record !== undefined) this.#acknowledged.add(record);
    }
  }

  #ended({ outcome, final, atMs }: HistoryEvent & { kind: "end" }, request: Request): void {
    const where = `request ${request.number} of session ${request.session} at ${request.site}`;
    // What is above the replicas is judged by those who know it (tests/sites/checker.ts).
    if (outcome === "ok" || (outcome.startsWith("call: ") && !final)) return;
    if (outcome === "source_lost") {
      const excuse = this.#excuseOf(request);
      if (excuse !== null) this.#excused(excuse);
      else this.#report("source_lost", atMs, `${where}: source_lost, but no disk of its past was lost`);
    } else if (outcome === "crashed" || REFUSALS.includes(outcome)) {
      if (outcome !== "crashed") this.#excused(`refused: ${outcome}`);
      if (final) this.#report("liveness", atMs, `${where}: ${outcome} with no fault left`);
    } else this.#report("fault", atMs, `${where}: ${outcome}`);
  }

  /** By which loss a request was rightly told of one; null: by none. */
  #excuseOf(request: Request): string | null {
    const { presents, life } = request;
    // A request goes on while its own site joins again, or moves away from one that was lost.
    const isMeanwhile = this.#trail.lives.since(life).some(({ endedBy }) => endedBy.length > 0);
    const over = presents.filter((issue) => issue.life.endedBy.some((loss) => this.#mayTake(issue, loss)));
    if (over.some(({ past }) => this.#hasLost(past, request))) return "source_lost: what it saw is gone";
    if (isMeanwhile) return "source_lost: a disk above, meanwhile";
    if (over.some(({ life }) => life.endedBy.some(({ site }) => site === life.site))) {
      return "source_lost: the disk of its source, and what it saw is elsewhere";
    }
    if (over.length > 0) return "source_lost: a disk above its source, and what it saw is elsewhere";
    const hasLost = (does: (loss: Loss, life: Life, open: boolean) => boolean) =>
      presents.some(({ life, open }) => life.endedBy.some((loss) => does(loss, life, open)));
    const isOwn = (loss: Loss, life: Life) => loss.site === life.site;
    if (hasLost((loss, life, open) => isOwn(loss, life) ? life.isYoung && open : loss.isYoung)) {
      return "source_lost: its source, or a disk above it, had no owners yet";
    }
    return hasLost((loss, life) => loss.isForGood && !isOwn(loss, life))
      ? "source_lost: a disk above its source, which an operator named as lost"
      : null;
  }

  /** Whether owners may not be enough: too many disks at one time, or what an open session was told by one removed. */
  #mayTake({ life, open }: Issue, { site, atOnce, isForGood }: Loss): boolean {
    const { owners, root } = this.#trail.history;
    const fOf = (of: string) => of === root ? 0 : owners?.get(of) ?? 0;
    return atOnce > Math.min(fOf(life.site), fOf(site)) || (open && isForGood);
  }

  /** Whether a version that was seen went with a disk. */
  #hasLost(past: Past, { site }: Request): boolean {
    const { losses, history } = this.#trail;
    if ((past.needSums() & losses.lostSums(site, false)) !== 0n) return true;
    for (let key = 0; key < history.keys; key++) {
      const { stamp } = past.need(key);
      if (stamp !== "" && losses.isLost(key, stamp, site, false)) return true;
    }
    return false;
  }

  // ── Closure ──

  #commit(event: HistoryEvent & { kind: "commit" }): void {
    const covers = this.#covers.get(event.site) ?? new Set<number>();
    this.#covers.set(event.site, covers);
    for (const [key, covered] of event.covers) {
      if (covered) covers.add(key);
      else covers.delete(key);
    }
    const rows = this.#trail.losses.rows(event.site);
    for (const row of rows.values()) {
      for (const record of this.#recordsOf(row)) {
        for (const key of covers) {
          const lack = this.#lack(event.site, rows.get(key), key, record.past);
          if (lack === null) continue;
          const has = `holds key ${row.key} at ${row.stamp} (write ${record.write})`;
          this.#report("site closure", event.atMs, `${event.site} ${has}, whose past needs ${lack}`);
        }
      }
    }
  }

  /** The writes that a row stands for; a tombstone's is found by its version. */
  #recordsOf(row: Held): WriteRecord[] {
    const { ledger } = this.#trail;
    const writes = row.sums ?? (row.write === null ? [] : [row.write]);
    if (writes.length > 0) return writes.flatMap((write) => ledger.writes.get(write) ?? []);
    return row.sums === undefined ? [ledger.deletionOf(row.key, row.stamp) ?? []].flat() : [];
  }

  #lack(site: string, row: Held | undefined, key: number, past: Past): string | null {
    const { ledger, losses } = this.#trail;
    const missing = past.needSums() & ledger.sumMask(key) & ~ledger.sumBits(row?.sums ?? []);
    if (missing !== 0n) {
      const left = missing & ~losses.lostSums(site, false);
      if (left !== 0n) return `sum writes ${ledger.sumsOf(left).map(({ write }) => write)} of key ${key}`;
      this.#excused("the cause is lost, and a disk has the effect");
    }
    const isEnough = (stamp: Stamp) =>
      stamp === "" || (row?.stamp ?? "") >= stamp ||
      row === undefined && ledger.explains(key, stamp, { site: null, clockMs: null }).length > 0;
    if (isEnough(past.need(key).stamp)) return null;
    // Its effects may outlive what was lost with a disk; what was not lost must be there all the same.
    const { stamp } = past.need(key, (stamp) => losses.isLost(key, stamp, site, false));
    if (isEnough(stamp)) {
      this.#excused("the cause is lost, and a disk has the effect");
      return null;
    }
    return `key ${key} at ${stamp} or newer (it is ${row?.stamp ?? "absent"})`;
  }

  // ── Clocks ──

  /**
   * A clock that is too far ahead would part its site from all others for so long; that of a root which has no site below
   * it from nobody (docs/protocol/clocks.md, B7).
   */
  #dated({ request, atMs, aheadMs = 0 }: HistoryEvent & { kind: "read" }): void {
    const { root } = this.#trail.history, isAlone = [...this.#joined].every((site) => site === root);
    if (aheadMs <= AHEAD_MS_MAX || isAlone) return;
    const { site } = this.#trail.request(request);
    this.#report("clock", atMs, `${site} takes a time for the right one that is ${aheadMs} ms ahead`);
  }

  /** Where all clocks are right, nobody goes by another one for good that is further off than theirs are apart. */
  #inTime({ site, atMs, aheadMs = 0 }: HistoryEvent & { kind: "final" }): void {
    if (Math.abs(aheadMs) <= (this.#trail.history.clocksApartMs ?? 0) + OFF_MS_MAX) return;
    this.#report("clock", atMs, `${site} goes by a time that is ${aheadMs} ms off, and all clocks are right`);
  }

  // ── In the end ──

  #converged(final: HistoryEvent & { kind: "final" }, root: HistoryEvent & { kind: "final" }): void {
    if (final.pending > 0) {
      this.#report("liveness", final.atMs, `${final.site} still has ${final.pending} rows to push`);
    }
    for (const key of final.covers) {
      const here = this.#held(final.rows, key), there = this.#held(root.rows, key);
      if (here === there) continue;
      this.#report("convergence", final.atMs, `${final.site} has ${here} at key ${key}, the root ${there}`);
    }
  }

  /** A row as all sites are to have it: what is deleted, or has expired, each may collect in its own time. */
  #held(rows: readonly Held[], key: number): string {
    const row = rows.find((each) => each.key === key);
    if (row?.sums !== undefined) return `sums ${[...row.sums].sort((a, b) => a - b)}`;
    if (row === undefined || row.write === null || this.#isOver(row)) return "nothing";
    return `write ${row.write} (${row.stamp})`;
  }

  #isOver({ key, stamp, write }: Held): boolean {
    const explained = this.#trail.ledger.explains(key, stamp, { site: null, clockMs: null });
    return explained.some(({ record }) => record?.write === write);
  }

  /** A watcher that was told of every change has read the last one; that something has expired nobody is told. */
  #sawLast({ site, keys }: NonNullable<History["watch"]>, root: HistoryEvent & { kind: "final" }): void {
    const rows = this.#watched.get(site);
    if (rows === undefined) {
      return this.#report("convergence", root.atMs, `a watcher at ${site} saw nothing at all`);
    }
    for (const key of keys) {
      const here = this.#shown(rows, key), there = this.#shown(root.rows, key);
      const none = here === "sums " || here === "nothing";
      if (here === there || none && (there === "nothing" || there === "sums ")) continue;
      const text = `a watcher at ${site} last saw ${here} at key ${key}, the root shows ${there}`;
      this.#report("convergence", root.atMs, text);
    }
  }

  /** What a reader would see, without what expires. */
  #shown(rows: readonly Held[], key: number): string {
    const row = rows.find((each) => each.key === key);
    if (row?.sums !== undefined) return `sums ${[...row.sums].sort((a, b) => a - b)}`;
    const isExpiring = this.#trail.ledger.writes.get(row?.write ?? -1)?.what === "expiring";
    return row === undefined || row.write === null || isExpiring
      ? "nothing"
      : `write ${row.write} (${row.stamp})`;
  }

  #durable(root: HistoryEvent & { kind: "final" }): void {
    const { losses, ledger, lives, history } = this.#trail;
    for (const record of this.#acknowledged) {
      const gone = losses.gone.get(record), f = history.owners?.get(record.site) ?? 0;
      if (gone !== undefined && lives.atOnce(gone.site, gone.atMs) > f) {
        this.#excused(
          f === 0 ? "an acknowledged write, with its disk" : "an acknowledged write, with f + 1 disks",
        );
        continue;
      }
      const row = root.rows.find(({ key }) => key === record.key), stamp = record.stamp ?? "";
      const isThere = record.what === "sum" ? row?.sums?.includes(record.write) : (row?.stamp ?? "") >= stamp;
      if (isThere) continue;
      const isOver = row === undefined && losses.hasReachedRoot(record) &&
        ledger.explains(record.key, stamp, { site: null, clockMs: null }).length > 0;
      if (isOver) continue;
      const has = row === undefined ? "nothing" : row.stamp;
      const text =
        `${record.what} ${record.write} of key ${record.key} (${stamp}) was acknowledged, the root has ${has}`;
      this.#report("durability", root.atMs, text);
    }
  }
}
