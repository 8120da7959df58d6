/**
 * Stateful sessions that are at home at a site: open ones, and those that rest.
 *
 * AH1  Open sessions are looked at with every tick. Of those that rest there may be a hundred thousand, and nothing of
 *      theirs is urgent but what they are told as it happens (an owner that is lost): they are looked at one part after
 *      the other.
 */
import type { StatefulName } from "../log/api.ts";
import type { LiveHome } from "./live_home.ts";
import { keyOf } from "../log/name.ts";

interface Entry {
  readonly live: LiveHome;
  isResting: boolean;
}

/** Ticks in which all sessions that rest are looked at once: with four ticks a second, in 4 s. */
const RESTING_TICKS = 16;

/** Sessions at home (see the file's header). */
export class AtHome {
  readonly #all = new Map<string, Entry>();
  readonly #open = new Set<LiveHome>();
  /** Sessions that were not looked at in this round; the open ones among them are passed over. */
  #round: Iterator<Entry> = this.#all.values();

  get(name: StatefulName): Entry | undefined {
    return this.#all.get(keyOf("", name));
  }

  *all(): Generator<LiveHome> {
    for (const { live } of this.#all.values()) yield live;
  }

  get counts(): { readonly open: number; readonly resting: number; readonly stalled: number } {
    let stalled = 0;
    for (const live of this.all()) if (live.isStalled) stalled++;
    const open = this.#open.size;
    return { open, resting: this.#all.size - open, stalled };
  }

  begins(live: LiveHome): void {
    this.#all.set(keyOf("", live.name), { live, isResting: false });
    this.#open.add(live);
  }

  rests(live: LiveHome): void {
    this.#set(live, true);
  }

  wakes(live: LiveHome): void {
    this.#set(live, false);
  }

  over(live: LiveHome): void {
    if (this.get(live.name)?.live === live) this.#all.delete(keyOf("", live.name));
    this.#open.delete(live);
  }

  /** Looks at the open sessions and at some that rest; to be called a few times a second (AH1). */
  tick(): void {
    for (const live of this.#open) live.tick();
    // The round goes on also where no session is left: until then it would hold all that were there.
    for (let left = Math.max(1, Math.ceil(this.#all.size / RESTING_TICKS)); left > 0; left--) {
      const next = this.#round.next();
      if (next.done === true) {
        this.#round = this.#all.values();
        return;
      }
      if (next.value.isResting) next.value.live.tick();
    }
  }

  #set(live: LiveHome, isResting: boolean): void {
    const entry = this.get(live.name);
    if (entry?.live !== live) return;
    entry.isResting = isResting;
    if (isResting) this.#open.delete(live);
    else this.#open.add(live);
  }
}
