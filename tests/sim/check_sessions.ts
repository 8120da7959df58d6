/**
 * The session guarantees, from what clients saw (Terry et al., 1994, and transitive causality): per chain of
 * presented tokens, a read never shows less than what the chain proves must be visible, and a write never loses
 * to something that its session had seen. An absence counts as a read: where something must be visible, only what
 * explains it will do (ledger.ts L2).
 *
 * What others did before what a request sees may be lost with a disk, and its effects live on elsewhere: that much
 * no store can mend. What the chain itself has read or written is never excused: it is told of the loss instead.
 *
 * And of one site: a read shows no less than what lay on its disk when the read began; nothing that has expired by its
 * clock; a conditional write is made exactly if what it was conditional on is still so there.
 */
import type { Excused } from "./excuses.ts";
import type { History, HistoryEvent, Seen, Violation } from "./history.ts";
import type { WriteRecord } from "./ledger.ts";
import { GUARANTEE, type Reason } from "./past.ts";
import { type Began, leastOf, onDiskOf, type Request, shownAt, Trail } from "./trail.ts";

/**
 * All breaches of session guarantees and causality in a history.
 *
 * @param excused hears each time that something is let pass.
 */
export function checkSessions(history: History, excused: Excused = () => {}): Violation[] {
  const trail = new Trail(history), check = new SessionCheck(trail, excused);
  for (const event of history.events) {
    check.before(event);
    trail.step(event);
  }
  return check.violations;
}

type Say = (checker: string, message: string) => void;

/** See the file's header. */
export class SessionCheck {
  readonly violations: Violation[] = [];
  readonly #trail: Trail;
  readonly #excused: Excused;
  /** By key and version: the write that got it. */
  readonly #versions = new Map<string, number>();
  /** By site: versions that its process has given and that no commit has taken in, by key and version. */
  readonly #uncommitted = new Map<string, Map<string, string>>();

  constructor(trail: Trail, excused: Excused) {
    this.#trail = trail;
    this.#excused = excused;
  }

  /** An event that the trail is about to take in. */
  before(event: HistoryEvent): void {
    if (event.kind === "read") this.#read(event);
    else if (event.kind === "wrote") this.#wrote(event);
    else if (event.kind === "commit") this.#committed(event);
    else if (event.kind === "start") this.#forgets(event.site);
    else if (event.kind === "write" && event.checks.length > 0) this.#conditions(event);
  }

  #say({ number, session, site }: Request, atMs: number): Say {
    return (checker, message) =>
      this.violations.push({
        checker,
        atMs,
        message: `session ${session}, request ${number} at ${site}: ${message}`,
      });
  }

  // ── Reads ──

  /** All rows against what was seen before the read: which of them was looked at first is nobody's business. */
  #read(event: HistoryEvent & { kind: "read" }): void {
    const request = this.#trail.request(event.request), began = this.#trail.began(event);
    const say = this.#say(request, event.atMs);
    for (const row of event.rows) {
      if (row.sums !== undefined) this.#sums(request, began, row, row.sums, say);
      else if (row.write === null) this.#absent(request, began, row, shownAt(began, event), say);
      else this.#present(request, began, { ...row, write: row.write }, event.clockMs ?? 0, say);
    }
  }

  #present(
    request: Request,
    began: Began,
    row: Seen & { readonly write: number },
    clockMs: number,
    say: Say,
  ): void {
    const { write } = row;
    this.#atLeast(request, began, row, say);
    const there = onDiskOf(row.key, began);
    if (row.stamp < there) {
      say("stale read", `key ${row.key} is ${row.stamp} (write ${write}), and ${there} lay on the disk`);
    }
    const record = this.#trail.ledger.seen(row);
    const wrong = misshown(row, record);
    if (wrong !== null) say("integrity", wrong);
    // Both where it began and where it was over: a clock may be set meanwhile.
    const shownMs = Math.min(began.clockMs ?? 0, clockMs);
    if (record?.what === "expiring" && shownMs >= record.expiresAtMs) {
      const ms = shownMs - record.expiresAtMs;
      say("expiry", `key ${row.key} shows write ${write}, which had expired ${ms} ms before`);
    }
  }

  #atLeast(request: Request, { past }: Began, row: Seen, say: Say): void {
    const whole = past.need(row.key);
    if (row.stamp >= whole.stamp) return;
    const { stamp, reason } = this.#need(request, past, row.key);
    if (row.stamp >= stamp) return this.#excused("the cause is lost, and read without it");
    say(GUARANTEE[reason], `key ${row.key} is ${row.stamp} (write ${row.write}), needs ${stamp} or newer`);
  }

  #absent(request: Request, began: Began, row: Seen, clockMs: number, say: Say): void {
    const { ledger } = this.#trail, { key } = row;
    const isExplained = (least: string) =>
      least === "" || ledger.explains(key, least, { site: request.site, clockMs }).length > 0;
    if (isExplained(leastOf(key, began))) return;
    const there = onDiskOf(key, began);
    if (!isExplained(there)) say("stale read", `key ${key} is absent, and ${there} lay on the disk`);
    const whole = began.past.need(key);
    if (isExplained(whole.stamp)) return;
    const { stamp, reason } = this.#need(request, began.past, key);
    if (isExplained(stamp)) return this.#excused("the cause is lost, and read without it");
    say(GUARANTEE[reason], `key ${key} is absent, needs ${stamp} or newer`);
  }

  /** What must show, without what others did further back and what went with a disk. */
  #need({ site, isFinal }: Request, past: Began["past"], key: number) {
    const { losses } = this.#trail;
    const isExcused = (stamp: string, reason: Reason) =>
      reason !== "own" && reason !== "seen" && losses.isLost(key, stamp, site, isFinal);
    return past.need(key, isExcused);
  }

  #sums(
    { site, isFinal }: Request,
    { past, disk }: Began,
    row: Seen,
    sums: readonly number[],
    say: Say,
  ): void {
    const { ledger, losses } = this.#trail, { key } = row;
    const bits = ledger.sumBits(sums), missing = past.needSums() & ledger.sumMask(key) & ~bits;
    const numbers = (of: bigint) => ledger.sumsOf(of).map(({ write }) => write);
    if (missing !== 0n) {
      const left = missing & ~(losses.lostSums(site, isFinal) & ~past.ownSums());
      if (left === 0n) this.#excused("the cause is lost, and read without it");
      else say(GUARANTEE[past.reasonOfSums(left)], `the sum at key ${key} lacks writes ${numbers(left)}`);
    }
    const unread = ledger.sumBits(disk.get(key)?.sums ?? []) & ~bits;
    if (unread !== 0n) {
      say("stale read", `the sum at key ${key} lacks writes ${numbers(unread)}, which lay on the disk`);
    }
    const strange = strangeSums(row, sums, ledger.writes);
    if (strange.length > 0) say("integrity", `the sum at key ${key} counts writes ${strange} wrongly`);
  }

  // ── Writes ──

  #wrote(event: HistoryEvent & { kind: "wrote" }): void {
    const { ledger } = this.#trail, { stamp: version, atMs } = event;
    const request = this.#trail.request(event.request), say = this.#say(request, atMs);
    if (version === null) return this.#refused(event, say);
    for (const { write, key, what } of event.writes) {
      const same = `${key} ${version}`, other = this.#versions.get(same);
      this.#versions.set(same, write);
      const uncommitted = this.#uncommitted.get(request.site) ?? new Map<string, string>();
      this.#uncommitted.set(request.site, uncommitted.set(same, version));
      if (other !== undefined) {
        say("integrity", `writes ${other} and ${write} of key ${key} share version ${version}`);
      }
      const before = ledger.writes.get(write)?.past.need(key);
      if (what === "sum" || before === undefined || version > before.stamp) continue;
      const checker = before.reason === "own" ? "monotonic writes" : "writes follow reads";
      say(checker, `write ${write} of key ${key} got ${version} and loses to ${before.stamp}`);
    }
    const broken = this.#broken.get(event.request)?.get(event.writes[0]?.write ?? -1);
    if (broken !== undefined) say("conditions", `${broken}, and the write was made`);
  }

  /** A commit makes what a site had written until then last: its clock on disk goes on from there. */
  #committed({ site, rows, wards = [] }: HistoryEvent & { kind: "commit" }): void {
    const newest = rows.reduce((most, { stamp }) => stamp > most ? stamp : most, "");
    const uncommitted = this.#uncommitted.get(site);
    for (const [same, version] of uncommitted ?? []) if (version <= newest) uncommitted?.delete(same);
    for (const { key, stamp } of [...rows, ...wards.flatMap(({ row }) => row ?? [])]) {
      for (const others of this.#uncommitted.values()) others.delete(`${key} ${stamp}`);
    }
  }

  /** A process has died with what no disk had of its writes, and nobody else saw: their versions may be given again. */
  #forgets(site: string): void {
    for (const same of this.#uncommitted.get(site)?.keys() ?? []) this.#versions.delete(same);
    this.#uncommitted.delete(site);
  }

  /** By request and first write: why a write that was asked for must be refused. */
  readonly #broken = new Map<number, Map<number, string>>();
  /** By first write: what it was conditional on. */
  readonly #checks = new Map<number, readonly Seen[]>();

  /** What a write is conditional on, against what its site has shown or taken in by now. */
  #conditions(event: HistoryEvent & { kind: "write" }): void {
    const { site } = this.#trail.request(event.request), first = event.writes[0]?.write ?? -1;
    this.#checks.set(first, event.checks);
    for (const { key, write, stamp } of event.checks) {
      const there = this.#newest(site, key);
      if (there === null) continue;
      // What explains an absence may have come, and be on no disk here yet.
      const isBroken = write === null
        ? there.isLive &&
          this.#trail.ledger.explains(key, there.stamp, { site, clockMs: Infinity }).length === 0
        : there.stamp > stamp;
      if (!isBroken) continue;
      const was = write === null ? "absent" : stamp;
      const of = this.#broken.get(event.request) ?? new Map<number, string>();
      this.#broken.set(event.request, of.set(first, `key ${key} was ${was}, and ${there.stamp} there`));
    }
  }

  /** The newest version of a key that a site had on its disk, or that its process had made. */
  #newest(site: string, key: number): { readonly stamp: string; readonly isLive: boolean } | null {
    const row = this.#trail.losses.rows(site).get(key);
    const mayExpire = (record: WriteRecord | undefined) => record?.what === "expiring";
    let newest = row === undefined ? null : {
      stamp: row.stamp,
      isLive: row.write !== null && !mayExpire(this.#trail.ledger.writes.get(row.write)),
    };
    for (const record of this.#trail.ledger.of(key)) {
      const { stamp, state, isHere, what } = record;
      if (!isHere || record.site !== site || state !== "written" || stamp === null) continue;
      if (stamp > (newest?.stamp ?? "")) newest = { stamp, isLive: what === "set" };
    }
    return newest;
  }

  /** A write that is refused has a reason: another one of what it was conditional on, or what has expired. */
  #refused(event: HistoryEvent & { kind: "wrote" }, say: Say): void {
    const { ledger } = this.#trail;
    const own = new Set(event.writes.map(({ write }) => write));
    const checks = this.#checks.get(event.writes[0]?.write ?? -1) ?? [];
    const hasReason = checks.some(({ key, write, stamp }) =>
      ledger.writes.get(write ?? -1)?.what === "expiring" ||
      ledger.of(key).some((record) =>
        !own.has(record.write) && record.state !== "refused" && (record.stamp ?? "~") > stamp
      )
    );
    if (!hasReason) {
      say("conditions", `nobody has changed keys ${checks.map(({ key }) => key)}, and the write was refused`);
    }
  }
}

/** What is wrong with a row that shows a write; null: nothing. */
export function misshown(row: Seen, record: WriteRecord | undefined): string | null {
  if (record === undefined || record.key !== row.key || record.state === "refused") {
    return `key ${row.key} shows write ${row.write}, which was never made to it`;
  }
  return record.stamp !== null && record.stamp !== row.stamp
    ? `write ${row.write} of key ${row.key} shows as ${row.stamp}, was ${record.stamp}`
    : null;
}

/** Writes that a sum counts and must not, or not so often. */
export const strangeSums = (
  row: Seen,
  sums: readonly number[],
  writes: ReadonlyMap<number, WriteRecord>,
): number[] =>
  sums.filter((write, i) =>
    sums.indexOf(write) !== i || writes.get(write)?.key !== row.key || writes.get(write)?.state === "refused"
  );
