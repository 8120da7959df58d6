/**
 * Stateful sessions whose logs are on this disk, that nobody runs, and that have something to do: a named timer is due,
 * or the log leaves work open (a write that is not known to be applied, a call without an outcome). Says when one is to
 * be opened.
 *
 * D1  A session that is at home here and open looks after that itself. One that rests is due here; one whose home is
 *     another site only when that one is lost: all owners that live may say so then, and the arbiter lets one of them.
 * D2  A session that is due and is not opened is said again, every 5 s; open work less and less often.
 * D3  A home that lives may have lost its disk, or never have opened the session that it became the home of, and know
 *     of nothing. So owners tell the site that the arbiter has on record of what is due, and is late; a site that has
 *     it open knows better, and a session that stands still is due for as long as it does: they do so less and less
 *     often.
 * D4  Work is due at the start, and when the log has been as it is for a while: the site was started anew, or it is not
 *     known that the home is lost. Otherwise the site that has the session open is at it.
 * D5  A clock that was ahead and is right again leaves nothing waiting for the time that it showed.
 */
import sortedBtree from "sorted-btree";
import type { SiteId } from "../../../store/model/ports.ts";
import type { StatefulName } from "../log/api.ts";
import type { KeptLog } from "../log/kept_log.ts";
import { keyOf } from "../log/name.ts";
import type { LogNews } from "../log/ports.ts";

/** The package is CommonJS, hence the second `default`. */
const BTree = sortedBtree.default;

/**
 * Pause after which a due timer is said again (D3). A home that runs the session has fired it by then, or waits for a
 * handler: being told of it does no harm.
 */
const AGAIN_MS = 5_000;
/** Time after which a log's open work is due (D4): a commit leaves, and its writes are on disk, in less. */
const WORK_MS = 10_000;
/** Doublings of the pause between two looks at open work: up to 80 s, and a home rests after 60 s. */
const WORK_DOUBLINGS = 4;
/**
 * Number of looks at open work before its home is told (D3): one that lost power may lack the end of its log, where it
 * would read of it.
 */
const WORK_TOLD = 3;
/** Smallest set-back of the clock that is acted on (D5): less is made good by itself. */
const SET_BACK_MS = 1_000;
/** Openings asked for in one tick: a burst that a site survives. */
const AT_ONCE = 100;
/** Logs looked at in one tick. Most open work is so at a home that is at it: that is seen without a question. */
const LOOKED_AT_ONCE = 1_000;

/** Questions of what is due, and those that are told of it. */
export interface DuePorts {
  readonly site: SiteId;
  /**
   * Returns the site that is to open a session, as far as is known here (D1); null: it is open here, or about to be.
   */
  whose(name: StatefulName): SiteId | null;
  /** Returns the session's home, as the arbiter says; null: it is none to be woken, or that is not known. */
  recorded(name: StatefulName): Promise<SiteId | null>;
  isLost(site: SiteId): boolean;
  /** Opens a session here. */
  open(name: StatefulName): void;
  /** Tells another site to open a session. */
  tell(site: SiteId, name: StatefulName): void;
}

/** Fields of a log that are looked at. */
type DueKept = Pick<KeptLog, "name" | "wakeAtMs" | "open">;

interface DueLog {
  readonly name: StatefulName;
  /** Time of the earliest timer; 0: there is none. */
  readonly timerMs: number;
  /** Time at which the work that the log leaves open is due; 0: it leaves none. */
  workMs: number;
  /** Time of the next look. */
  atMs: number;
  /** Number of times that it was due before, as the log is now. */
  times: number;
}

/** Sessions with something to do (see the file's header). */
export class Due {
  /** Logs by [time of the next look, name], in order. */
  readonly #order = new BTree<[number, string], DueLog>(
    undefined,
    (a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0),
  );
  readonly #logs = new Map<string, DueLog>();
  readonly #ports: DuePorts;
  /** Latest time that the clock has shown since it was set back (D5). */
  #latestMs = -Infinity;

  constructor(ports: DuePorts) {
    this.#ports = ports;
  }

  /** Notes that a log has changed. @param news null: it is as it was found at the start. */
  changed({ name, wakeAtMs, open }: DueKept, news: LogNews | null, nowMs: number): void {
    this.#shows(nowMs);
    const key = keyOf("", name), before = this.#logs.get(key);
    const isGone = news?.kind === "gone", timerMs = isGone ? 0 : wakeAtMs;
    const workMs = isGone || open === 0 ? 0 : news === null ? nowMs : nowMs + WORK_MS; // D4
    if (before !== undefined && before.timerMs === timerMs && before.workMs > 0 && workMs > 0) {
      // With each commit of a session that writes: the log is looked at too early once, and put where it belongs.
      before.workMs = workMs;
      before.times = 0;
      if (before.atMs <= dueMs({ timerMs, workMs })) return;
    }
    if (before !== undefined) {
      this.#order.delete([before.atMs, key]);
      this.#logs.delete(key);
    }
    if (timerMs === 0 && workMs === 0) return;
    const log = { name, timerMs, workMs, atMs: dueMs({ timerMs, workMs }), times: 0 };
    this.#logs.set(key, log);
    this.#order.set([log.atMs, key], log);
  }

  /** Looks at all logs anew where the clock was set back (D5). */
  #shows(nowMs: number): void {
    const byMs = this.#latestMs - nowMs;
    if (byMs < SET_BACK_MS) {
      this.#latestMs = Math.max(this.#latestMs, nowMs);
      return;
    }
    this.#latestMs = nowMs;
    this.#order.clear();
    for (const [key, log] of this.#logs) {
      if (log.workMs > 0) log.workMs = Math.max(1, log.workMs - byMs);
      if (dueMs(log) <= nowMs) log.atMs -= byMs;
      else [log.atMs, log.times] = [dueMs(log), 0];
      this.#order.set([log.atMs, key], log);
    }
  }

  tick(nowMs: number): void {
    this.#shows(nowMs);
    const ready: [string, DueLog][] = [];
    let asked = 0;
    for (const [[when, key], log] of this.#order.entries()) {
      if (when > nowMs || asked === AT_ONCE || ready.length === LOOKED_AT_ONCE) break;
      ready.push([key, log]);
      if (dueMs(log) <= nowMs && this.#concerns(log, nowMs)) asked++;
    }
    for (const [key, log] of ready) {
      this.#order.delete([log.atMs, key]);
      if (dueMs(log) > nowMs) log.atMs = dueMs(log);
      else {
        const tells = isTold(log, nowMs);
        log.atMs = nowMs + againMs(log, nowMs); // D2
        log.times++;
        void this.#say(log.name, tells);
      }
      this.#order.set([log.atMs, key], log);
    }
  }

  /** Reports whether anybody is to be asked about a log. */
  #concerns(log: DueLog, nowMs: number): boolean {
    const { site, whose } = this.#ports, one = whose(log.name);
    return one === site || (one !== null && isTold(log, nowMs));
  }

  /** Says that a session is due. @param tells true where its home is told, too, though it is another site (D3). */
  async #say(name: StatefulName, tells: boolean): Promise<void> {
    const { site, whose, recorded, isLost } = this.#ports;
    const isMine = () => whose(name) === site; // D1
    if (!isMine() && (!tells || whose(name) === null)) return;
    const home = await recorded(name);
    if (home === null || whose(name) === null) return;
    if (tells && home !== site && !isLost(home)) this.#ports.tell(home, name);
    else if (isMine()) this.#ports.open(name); // D1
  }
}

const dueMs = ({ timerMs, workMs }: Pick<DueLog, "timerMs" | "workMs">): number =>
  Math.min(timerMs || Infinity, workMs || Infinity);

const isTimer = ({ timerMs }: DueLog, nowMs: number): boolean => timerMs > 0 && timerMs <= nowMs;

const againMs = (log: DueLog, nowMs: number): number =>
  isTimer(log, nowMs) ? AGAIN_MS : AGAIN_MS * 2 ** Math.min(log.times, WORK_DOUBLINGS);

/**
 * Reports whether the home is told this time: of a timer after 5, 10, 20, 40 s, and every 80 s from then on; of open
 * work after 45 and 85 s, and every 80 s.
 */
function isTold(log: DueLog, nowMs: number): boolean {
  const { times } = log;
  if (!isTimer(log, nowMs)) return times >= WORK_TOLD;
  return times > 0 && ((times & (times - 1)) === 0 || times % TOLD_EVERY === 0);
}
const TOLD_EVERY = 16;
