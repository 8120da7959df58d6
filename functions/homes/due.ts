/**
 * Named timers of stateful sessions whose logs are on this disk, and that nobody runs: says when one is to be opened.
 *
 * D1  Who is at home here and open looks after its timers itself. One that rests is due here; one whose home is another
 *     site only when that one is lost: all owners that live may say so then, and the arbiter lets one of them.
 * D2  What is due and is not opened is said again, every 5 s.
 * D3  A home that lives may have lost its disk, or never have opened what it became the home of, and know of no timers.
 *     So owners tell the site that the arbiter has on record of what is due, and is late; who has it open knows better,
 *     and one that stands still is due for as long as it does: they do so less and less often.
 */
import sortedBtree from "sorted-btree";
import type { SiteId } from "../../store/ports.ts";
import type { StatefulName } from "./api.ts";
import type { KeptLog } from "./kept_log.ts";
import { keyOf } from "./name.ts";

/** The package is CommonJS, hence the second `default`. */
const BTree = sortedBtree.default;

/** A home that runs it has called it by then, or it waits for a handler: being told of it does no harm (D3). */
const AGAIN_MS = 5_000;
/** Opening so many at once is a burst that a site survives. */
const AT_ONCE = 100;

/** What is asked, and who is told, of what is due. */
export interface DuePorts {
  readonly site: SiteId;
  /** The site that is to open it, as far as is known here (D1); null: it is open here, or about to be. */
  whose(name: StatefulName): SiteId | null;
  /** The site where it is at home, as the arbiter says; null: it is none to be woken, or that is not known. */
  recorded(name: StatefulName): Promise<SiteId | null>;
  isLost(site: SiteId): boolean;
  /** It is to be opened here. */
  open(name: StatefulName): void;
  /** Another site is to open it. */
  tell(site: SiteId, name: StatefulName): void;
}

/** See the file's header. */
export class Due {
  /** [when, name] in order. */
  readonly #order = new BTree<[number, string], StatefulName>(
    undefined,
    (a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0),
  );
  readonly #when = new Map<string, number>();
  /** How often it was due before, as the log has it now. */
  readonly #late = new Map<string, number>();
  readonly #ports: DuePorts;

  constructor(ports: DuePorts) {
    this.#ports = ports;
  }

  /** A log is other than before. */
  changed({ name, wakeAtMs }: Pick<KeptLog, "name" | "wakeAtMs">, gone: boolean): void {
    const key = keyOf("", name);
    const before = this.#when.get(key);
    const when = gone || wakeAtMs === 0 ? undefined : wakeAtMs;
    if (before === when) return;
    if (before !== undefined) this.#order.delete([before, key]);
    this.#when.delete(key);
    this.#late.delete(key);
    if (when === undefined) return;
    this.#when.set(key, when);
    this.#order.set([when, key], name);
  }

  tick(nowMs: number): void {
    const ready: [number, string, StatefulName][] = [];
    for (const [[when, key], name] of this.#order.entries()) {
      if (when > nowMs || ready.length === AT_ONCE) break;
      ready.push([when, key, name]);
    }
    for (const [when, key, name] of ready) {
      this.#order.delete([when, key]);
      // D2; a change of the log puts it where it belongs.
      this.#when.set(key, nowMs + AGAIN_MS);
      this.#order.set([nowMs + AGAIN_MS, key], name);
      const times = this.#late.get(key) ?? 0;
      this.#late.set(key, times + 1);
      void this.#say(name, isTold(times));
    }
  }

  /** @param tells where it is another's, too (D3). */
  async #say(name: StatefulName, tells: boolean): Promise<void> {
    const { site, whose, recorded, isLost } = this.#ports;
    const isMine = () => whose(name) === site;
    if (!isMine() && (!tells || whose(name) === null)) return;
    const home = await recorded(name);
    if (home === null || whose(name) === null) return;
    if (tells && home !== site && !isLost(home)) this.#ports.tell(home, name);
    else if (isMine()) this.#ports.open(name);
  }
}

/** After 5, 10, 20, 40 s, and every 80 s from then on. */
const isTold = (times: number): boolean =>
  times > 0 && ((times & (times - 1)) === 0 || times % TOLD_EVERY === 0);
const TOLD_EVERY = 16;
