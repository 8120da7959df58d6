/**
 * Lives of sites, and the losses of disks that end them: who may be told that what its session saw is lost
 * (`source_lost`).
 *
 * A site has a *life* as one incarnation: until its disk is lost, or until it goes on under another number, because the
 * site above it lost its disk, or because it has got another parent.
 *
 * V1  With a disk end all lives that its site has had, and the one of every site that stands below it: what those had
 *     told may rest on rows that only the lost disk had. What a site tells in its next life rests on nothing of it.
 * V3  Disks are lost at one time when one is lost while the other's site is not back, or has just come back.
 * V4  An older copy that is put in the place of a disk has nothing that was not on that: when it is set aside nothing more
 *     is lost, and what the site told with it is as what it told before. Until then its site is not back. Whether owners
 *     had all that it told with it that copy says, which may be from before it had any.
 * V2  A site stands below the one that gave it its number, whatever its operator has told it since.
 */
import type { History, HistoryEvent } from "./history.ts";

/** A disk that was lost. */
export interface Loss {
  readonly site: string;
  readonly atMs: number;
  readonly isForGood: boolean;
  /** When its site began again on a blank one. */
  backMs: number;
  /** How many disks were lost at one time, this one among them (V3). */
  atOnce: number;
  /** It did not say yet that owners have all of it. */
  readonly isYoung: boolean;
}

/** So long after it is back a site that lost its disk may lack what others hold for it. */
const MENDING_MS = 500;
/** A site as one incarnation. */
export interface Life {
  readonly site: string;
  readonly number: number;
  /** What its disk goes by; null: nothing yet. */
  incarnation: number | null;
  /** The disks whose losses have ended it. */
  readonly endedBy: Loss[];
  /** It ended with its site's own disk, which did not say yet that owners have all of it. */
  isYoung: boolean;
}

/** See the file's header. */
export class Lives {
  /** By site, one after the other. */
  readonly #lives = new Map<string, Life[]>();
  readonly #parents = new Map<string, string | null>();
  readonly #losses: Loss[] = [];
  /** By site: the incarnations that have owners, as its disk says. */
  readonly #owned = new Map<string, Set<number>>();
  /** By site and incarnation: when it had owners first. */
  readonly #ownedMs = new Map<string, number>();

  constructor({ parents }: History) {
    for (const [site, parent] of parents ?? []) this.#parents.set(site, parent);
  }

  /** What a site is now. */
  of(site: string): Life {
    return this.#lives.get(site)?.at(-1) ?? this.#begin(site);
  }

  /** A life and those after it. */
  since({ site, number }: Life): readonly Life[] {
    return this.#lives.get(site)?.slice(number) ?? [];
  }

  step(event: HistoryEvent): void {
    if (event.kind === "lost") event.isAside === true ? this.#setAside(event.site) : this.#lose(event);
    else if (event.kind === "numbered") this.of(event.site).incarnation = event.number;
    else if (event.kind === "commit") this.#have(event);
    else if (event.kind === "start") {
      // What is on its disk is told anew.
      this.#owned.delete(event.site);
      const loss = this.#down(event.site);
      if (loss === undefined) return;
      loss.backMs = event.atMs;
      this.#begin(event.site);
    } else if (event.kind === "reborn") {
      this.#parents.set(event.site, event.parent);
      const life = this.#begin(event.site);
      if (event.parent === null) return;
      // The number is of a parent that was lost before it was taken, or goes on where one above it was.
      const loss = this.#down(event.parent);
      life.endedBy.push(...loss === undefined ? [] : [loss], ...this.of(event.parent).endedBy);
    }
  }

  #begin(site: string): Life {
    const lives = this.#lives.get(site) ?? [];
    const life = { site, number: lives.length, incarnation: null, endedBy: [], isYoung: false };
    lives.push(life);
    this.#lives.set(site, lives);
    return life;
  }

  #have({ site, atMs, owned = [] }: HistoryEvent & { kind: "commit" }): void {
    const all = this.#owned.get(site) ?? new Set();
    this.#owned.set(site, all);
    for (const number of owned) {
      all.add(number);
      const as = `${site} ${number}`;
      if (!this.#ownedMs.has(as)) this.#ownedMs.set(as, atMs);
    }
  }

  /** Since when a site, as what it is now, has owners that have all of it; Infinity: it has none yet. */
  ownedMs(site: string): number {
    return this.#isYoung(site)
      ? Infinity
      : this.#ownedMs.get(`${site} ${this.of(site).incarnation}`) ?? -Infinity;
  }

  /** Whether a site's disk does not say of what it is now that owners have all of it. */
  #isYoung(site: string): boolean {
    const { incarnation } = this.of(site);
    return incarnation !== null && this.#owned.get(site)?.has(incarnation) !== true;
  }

  /** The loss of a site's disk, as long as it has not begun again. */
  #down(site: string): Loss | undefined {
    return this.#losses.find((loss) => loss.site === site && loss.backMs === Infinity);
  }

  /** How many disks were lost at one time with that of a site, when it was lost then. */
  atOnce(site: string, atMs: number): number {
    return this.#losses.find((loss) => loss.site === site && loss.atMs === atMs)?.atOnce ?? 0;
  }

  #lose({ site, atMs, isForGood }: HistoryEvent & { kind: "lost" }): void {
    const others = this.#losses.filter((loss) => loss.backMs + MENDING_MS > atMs); // V3
    const atOnce = others.length + 1;
    const isYoung = this.#isYoung(site);
    const loss = { site, atMs, isForGood, backMs: Infinity, atOnce, isYoung };
    for (const other of others) other.atOnce = Math.max(other.atOnce, atOnce);
    this.#losses.push(loss);
    // What it had told as what it was before may be on that disk alone, too.
    for (const life of this.#lives.get(site) ?? [this.of(site)]) {
      if (!life.endedBy.some((one) => one.site === site)) life.isYoung = isYoung;
      life.endedBy.push(loss);
    }
    for (const other of this.#parents.keys()) {
      if (this.#isBelow(other, site)) this.of(other).endedBy.push(loss); // V1
    }
  }

  /** V4 */
  #setAside(site: string): void {
    const loss = this.#losses.findLast((one) => one.site === site);
    if (loss === undefined) throw new Error(`${site} sets a disk aside, and never lost one`);
    loss.backMs = Infinity;
    const life = this.of(site);
    life.isYoung = this.#isYoung(site);
    life.endedBy.push(loss);
  }

  /** V2 */
  #isBelow(site: string, top: string): boolean {
    const passed = new Set<string>();
    for (let at = this.#parents.get(site); at != null && !passed.has(at); at = this.#parents.get(at)) {
      if (at === top) return true;
      passed.add(at);
    }
    return false;
  }
}
