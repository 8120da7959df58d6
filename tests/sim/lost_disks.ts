/**
 * Which requests may be told that what their session saw is lost (`source_lost`): the disk of the site that told them
 * was lost after that, or one above it, while it went on as it was.
 *
 * D1  A site below a lost disk takes another number when it joins again. What it tells from then on does not rest on
 *     what that disk had, so nobody who heard it later is told of that loss. Where sites move this is not known: then
 *     a disk above stays an excuse.
 * D2  A disk was above a site if it belongs to a parent that the site has had, or one of that parent's.
 */
import type { History, HistoryEvent } from "./history.ts";
import type { Losses } from "./losses.ts";

/** A token that left. */
export interface Told {
  readonly site: string;
  readonly atMs: number;
  readonly open: boolean;
}

/** A disk that was lost, or a site that begins. */
interface LostDisk {
  readonly site: string;
  readonly atMs: number;
  /** Sites below it that have joined again, and when. */
  readonly joined: Map<string, number>;
}

/** Follows lost disks and who stood below them. */
export class LostDisks {
  readonly #history: History;
  readonly #losses: Losses;
  readonly #disks: LostDisk[] = [];
  #hasMoved = false;
  /** By site: all the parents that it has had so far. */
  readonly #parents = new Map<string, Set<string>>();

  constructor(history: History, losses: Losses) {
    this.#history = history;
    this.#losses = losses;
    for (const [site, parent] of history.parents ?? []) {
      this.#parents.set(site, new Set(parent === null ? [] : [parent]));
    }
  }

  step(event: HistoryEvent): void {
    if (event.kind === "gone" || event.kind === "start" && event.blank) {
      this.#disks.push({ site: event.site, atMs: event.atMs, joined: new Map() });
    } else if (event.kind === "reborn") this.#reborn(event.site, event.atMs);
    else if (event.kind === "fault") this.#noteMove(event.text);
  }

  /** By which loss a request was rightly told of one, where it presented these; null: by none. */
  excuse(
    request: { readonly site: string; readonly atMs: number },
    presented: readonly Told[],
  ): string | null {
    for (const told of presented) {
      // What an open session was told later is known to nobody once its site is off the tree.
      const own = this.#disks.some(({ site, atMs }) =>
        site === told.site && atMs >= told.atMs && (told.open || !this.#losses.keeps(site))
      );
      if (own) return "source_lost: the disk of its source";
      if (this.#stoodBelow(told)) return "source_lost: a disk above its source";
    }
    // A request goes on while its own site joins again, or moves away from one that was lost.
    return this.#stoodBelow(request) ? "source_lost: a disk above, meanwhile" : null;
  }

  /** Whether a site went on as it was below a disk that is lost by now (D1). */
  #stoodBelow({ site, atMs }: { readonly site: string; readonly atMs: number }): boolean {
    return this.#disks.some((lost) =>
      lost.atMs > 0 && lost.site !== site && this.#wasAbove(lost.site, site) &&
      atMs <= (lost.joined.get(site) ?? Infinity)
    );
  }

  /** D2 */
  #wasAbove(site: string, other: string): boolean {
    const seen = new Set([other]);
    for (const at of seen) for (const parent of this.#parents.get(at) ?? []) seen.add(parent);
    return seen.has(site);
  }

  /** A site goes on under another number: below a lost disk when its parent has, or is that. */
  #reborn(site: string, atMs: number): void {
    if (this.#hasMoved) return;
    const parent = this.#history.parents?.get(site) ?? "";
    for (const lost of this.#disks) {
      const isBelow = parent === lost.site || lost.joined.has(parent);
      if (isBelow && !lost.joined.has(site)) lost.joined.set(site, atMs);
    }
  }

  #noteMove(text: string): void {
    const [, site = "", to = ""] = /^(\S+) moves from \S+ to (\S+)$/.exec(text) ?? [];
    if (site === "") return;
    this.#hasMoved = true;
    this.#parents.get(site)?.add(to);
  }
}
