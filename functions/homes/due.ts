/**
 * Named timers of stateful sessions whose logs are on this disk, and that nobody runs: says when one is to be opened.
 *
 * D1  Who is at home here and open looks after its timers itself. One that rests is due here; one whose home is another
 *     site only when that one is lost: all owners that live may say so then, and the arbiter lets one of them.
 * D2  What is due and is not opened is said again, every 5 s.
 */
import sortedBtree from "sorted-btree";
import type { StatefulName } from "./api.ts";
import type { KeptLog } from "./kept_log.ts";
import { keyOf } from "./name.ts";

/** The package is CommonJS, hence the second `default`. */
const BTree = sortedBtree.default;

const AGAIN_MS = 5_000;
/** Opening so many at once is a burst that a site survives. */
const AT_ONCE = 100;

export class Due {
  /** [when, name] in order. */
  readonly #order = new BTree<[number, string], StatefulName>(
    undefined,
    (a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0),
  );
  readonly #when = new Map<string, number>();
  readonly #mayOpen: (name: StatefulName) => boolean;
  readonly #due: (name: StatefulName) => void;

  /** @param mayOpen whether it is for this site to open it now (D1). */
  constructor(mayOpen: (name: StatefulName) => boolean, due: (name: StatefulName) => void) {
    this.#mayOpen = mayOpen;
    this.#due = due;
  }

  /** A log is other than before. */
  changed({ name, wakeAtMs }: Pick<KeptLog, "name" | "wakeAtMs">, gone: boolean): void {
    const key = keyOf("", name);
    const before = this.#when.get(key);
    const when = gone || wakeAtMs === 0 ? undefined : wakeAtMs;
    if (before === when) return;
    if (before !== undefined) this.#order.delete([before, key]);
    this.#when.delete(key);
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
      if (this.#mayOpen(name)) this.#due(name);
    }
  }
}
