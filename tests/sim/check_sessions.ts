/**
 * The session guarantees, from what clients saw (Terry et al., 1994, and transitive causality): per chain of
 * presented tokens, a read never shows less than what the chain proves must be visible, and a write never loses
 * to something that its session had seen.
 *
 * A request follows exactly what it presents: two requests of one session that do not present each other's
 * issues are concurrent. An open token stands for all that its answer had told when it is presented. An absence counts as a read: where something must be visible, only a deletion at least
 * as new explains it.
 *
 * What others did before what a request sees may be lost with a disk, and its effects live on elsewhere: that much
 * no store can mend. What the chain itself has read or written is never excused: it is told of the loss instead.
 */
import type { History, HistoryEvent, Seen, Violation } from "./history.ts";
import { Ledger } from "./ledger.ts";
import { Losses } from "./losses.ts";
import { OpenAnswers } from "./open_answers.ts";
import { GUARANTEE, Past, type Reason } from "./past.ts";

interface Request {
  readonly session: number;
  readonly site: string;
  readonly past: Past;
  /** The past as each read under way found it. */
  readonly reading: Map<number, Past>;
}

/**
 * All breaches of session guarantees and causality in a history.
 *
 * @param excused hears each time that something is let pass because of a lost disk.
 */
export function checkSessions(history: History, excused: (what: string) => void = () => {}): Violation[] {
  const check = new SessionCheck(history, excused);
  for (const event of history.events) check.step(event);
  return check.violations;
}

class SessionCheck {
  readonly violations: Violation[] = [];
  readonly #keys: number;
  readonly #ledger: Ledger;
  readonly #losses: Losses;
  readonly #requests = new Map<number, Request>();
  readonly #issues = new Map<number, Past>();
  readonly #answers = new OpenAnswers();
  readonly #versions = new Map<string, number>();

  readonly #excused: (what: string) => void;

  constructor(history: History, excused: (what: string) => void) {
    this.#excused = excused;
    this.#keys = history.keys;
    this.#ledger = new Ledger(history.keys);
    this.#losses = new Losses(this.#ledger, history);
  }

  step(event: HistoryEvent): void {
    if (event.kind === "commit") { for (const row of event.rows) this.#ledger.seen(row); }
    this.#losses.step(event);
    const told = this.#answers.step(event, (request) => this.#requests.get(request)?.past);
    if (told !== null) { for (const issue of told.issues) this.#issues.get(issue)?.join(told.past); }
    switch (event.kind) {
      case "request": {
        const past = new Past(this.#keys);
        for (const issue of event.presents) past.join(this.#issues.get(issue) ?? past);
        this.#requests.set(event.request, {
          session: event.session,
          site: event.site,
          past,
          reading: new Map(),
        });
        return;
      }
      case "reading": {
        const request = this.#requests.get(event.request);
        request?.reading.set(event.reading, request.past.copy());
        return;
      }
      case "read":
        return this.#read(event);
      case "write": {
        const request = this.#requests.get(event.request);
        if (request !== undefined) this.#ledger.begin(event, request.session, request.past);
        return;
      }
      case "wrote":
        return this.#wrote(event);
      case "follows": {
        const past = this.#issues.get(event.issue);
        if (past !== undefined) this.#requests.get(event.request)?.past.join(past);
        return;
      }
      case "lent":
      case "issue": {
        const request = this.#requests.get(event.request);
        if (request !== undefined) this.#issues.set(event.issue, request.past.copy());
        return;
      }
      case "end":
        this.#requests.delete(event.request);
        return;
    }
  }

  #read({ atMs, request: number, rows, reading }: HistoryEvent & { kind: "read" }): void {
    const request = this.#requests.get(number);
    if (request === undefined) return;
    // All rows against the past before the read: which of them was looked at first is nobody's business.
    const past = request.reading.get(reading ?? -1) ?? request.past;
    for (const row of rows) this.#checkRow(atMs, number, { ...request, past }, row);
    for (const row of rows) this.#learn(request.past, past, row);
  }

  #checkRow(atMs: number, number: number, request: Request, row: Seen): void {
    const say = (checker: string, message: string) =>
      this.violations.push({
        checker,
        atMs,
        message: `session ${request.session}, request ${number} at ${request.site}: ${message}`,
      });
    if (row.sums !== undefined) return this.#checkSums(request, row, row.sums, say);
    const whole = request.past.need(row.key);
    const { stamp, reason } = request.past.need(
      row.key,
      (stamp, reason) => this.#isExcused(row.key, stamp, reason),
    );
    if (row.stamp >= stamp && row.stamp < whole.stamp) this.#excused("session: the cause is lost");
    if (row.write === null) {
      if (stamp !== "" && this.#ledger.deletions(row.key, stamp).length === 0) {
        say(GUARANTEE[reason], `key ${row.key} is absent, needs ${stamp} or newer`);
      }
      return;
    }
    const record = this.#ledger.seen(row);
    if (record === undefined || record.key !== row.key || record.state === "refused") {
      say("integrity", `key ${row.key} shows write ${row.write}, which was never made to it`);
    } else if (record.stamp !== null && record.stamp !== row.stamp) {
      say("integrity", `write ${row.write} of key ${row.key} shows as ${row.stamp}, was ${record.stamp}`);
    }
    if (row.stamp < stamp) {
      say(GUARANTEE[reason], `key ${row.key} is ${row.stamp} (write ${row.write}), needs ${stamp} or newer`);
    }
  }

  /** Whether what must show was another's, further back, and went with a disk. */
  #isExcused(key: number, stamp: string, reason: Reason): boolean {
    return reason !== "own" && reason !== "seen" && this.#losses.isLost(key, stamp);
  }

  #checkSums(
    request: Request,
    row: Seen,
    sums: readonly number[],
    say: (checker: string, message: string) => void,
  ): void {
    const bits = this.#ledger.sumBits(sums);
    const lost = [...this.#losses.lost].reduce((all, record) => all | record.bit, 0n);
    const gone = lost & ~request.past.ownSums();
    const missing = request.past.needSums() & this.#ledger.sumMask(row.key) & ~bits & ~gone;
    if (missing !== 0n) {
      const lost = this.#ledger.sumsOf(missing).map((record) => record.write);
      say(GUARANTEE[request.past.reasonOfSums(missing)], `the sum at key ${row.key} lacks writes ${lost}`);
    }
    const strange = sums.filter((write, i) =>
      sums.indexOf(write) !== i || this.#ledger.writes.get(write)?.key !== row.key ||
      this.#ledger.writes.get(write)?.state === "refused"
    );
    if (strange.length > 0) say("integrity", `the sum at key ${row.key} counts writes ${strange} wrongly`);
  }

  /** What a read that began with one past adds to that of those who saw it. */
  #learn(past: Past, began: Past, row: Seen): void {
    if (row.sums !== undefined) {
      const bits = this.#ledger.sumBits(row.sums);
      past.noteSums("seen", bits);
      for (const record of this.#ledger.sumsOf(bits)) past.joinWriter(record.past);
      return;
    }
    if (row.write !== null) {
      past.note("seen", row.key, row.stamp);
      const record = this.#ledger.seen(row);
      if (record !== undefined) past.joinWriter(record.past);
      return;
    }
    // One of the deletions was seen; which one is known only if there is just one.
    const { stamp } = began.need(row.key);
    if (stamp === "") return;
    const candidates = this.#ledger.deletions(row.key, stamp);
    const stamps = candidates.map((record) => record.stamp ?? "").sort();
    past.note("seen", row.key, stamps[0] ?? "");
    const [only] = candidates;
    if (candidates.length === 1 && only !== undefined) past.joinWriter(only.past);
  }

  #wrote(event: HistoryEvent & { kind: "wrote" }): void {
    const request = this.#requests.get(event.request);
    const before = event.writes.map(({ write, key }) => this.#ledger.writes.get(write)?.past.need(key));
    this.#ledger.end(event);
    if (request === undefined || event.stamp === null) return;
    for (const [i, { write, key, what }] of event.writes.entries()) {
      const where = `session ${request.session}, request ${event.request} at ${request.site}`;
      const same = `${key} ${event.stamp}`;
      const other = this.#versions.get(same);
      this.#versions.set(same, write);
      if (other !== undefined) {
        const message = `${where}: writes ${other} and ${write} of key ${key} share version ${event.stamp}`;
        this.violations.push({ checker: "integrity", atMs: event.atMs, message });
      }
      if (what === "sum") {
        request.past.noteSums("own", this.#ledger.writes.get(write)?.bit ?? 0n);
        continue;
      }
      const { stamp, reason } = before[i] ?? request.past.need(key);
      if (event.stamp <= stamp) {
        const checker = reason === "own" ? "monotonic writes" : "writes follow reads";
        const message = `${where}: write ${write} of key ${key} got ${event.stamp} and loses to ${stamp}`;
        this.violations.push({ checker, atMs: event.atMs, message });
      }
      request.past.note("own", key, event.stamp);
    }
  }
}
