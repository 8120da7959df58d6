/**
 * Certainty of the arbiter: whether it may go by its disk, which may be an older copy of itself (a backup that was put
 * back), or blank.
 *
 * The arbiter counts what it writes: its *position*. A site's *witness* is the highest position that it has heard of, on
 * its own disk. So a witness above the position, or of one that was left out (arbiter.ts, A7), proves that the
 * arbiter's disk went back; and where every site was heard and no witness is such, nothing is missing. Until all are
 * heard, each name is granted by what is known of it.
 *
 * Life: made with the arbiter → `survey`, again and again: each site of the tree is asked once → sure, when all are
 * heard; for as long as this process lives.
 *
 * AW1  Before anything follows from what the arbiter has granted, the sites that could go on from it have that position
 *      on disk: a site that opens asks for promises with it, a home that has owners recorded has it on its own disk,
 *      and the owners of a configuration have that of its epoch.
 * AW2  So whatever is missing on this disk of a name shows in a witness (arbiter.ts, A7), or was never acted upon, if
 *      all sites are heard, or if its home and all its owners are, on the disks that are on record: a site that opens
 *      it needs one of these, and only that home has other owners recorded. The arbiter's own site does not count for
 *      that, since its disks may have gone back together; nor do hosts, which can have it opened without any disk.
 * AW3  A site that is gone HEARD_MS_MAX after the start is not waited for any longer: a tree in which one is away goes
 *      on after a restart of its root. Nor is one that is there, and does not answer for SILENT_MS_MAX: it may wait for
 *      a disk, or for sites below it that never come. What such a site alone knows of is not known then, until it
 *      comes; where that shows that the disk went back, what was granted meanwhile stays (rebuild.ts). No site is given
 *      up while it is known that the disk went back.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Owner } from "../log/api.ts";
import type { Reply, SiteAsk } from "../log/asks.ts";
import type { Asking } from "../log/exchange.ts";
import { disksOf } from "../log/host_owners.ts";
import { HEARD_MS_MAX, SILENT_MS_MAX } from "../log/limits.ts";

/** Record of a name, as far as AW2 goes by it. */
export interface Grant {
  readonly site: SiteId;
  readonly owners: readonly Owner[];
  readonly ended: boolean;
}

/** Sites that were heard. */
export interface SitesHeard {
  /** Site of the arbiter. */
  readonly site: SiteId;
  /** True once all sites of the tree have said how far they have heard of the arbiter. */
  readonly isSure: boolean;
  /** Sites that have not, and are waited for. */
  readonly unheard: readonly SiteId[];
  /**
   * Returns the number of a site's disk; 0: the site can't say, being of the version before; undefined: it was not
   * heard.
   */
  diskOf(site: SiteId): number | undefined;
}

/** Returns the sites that are missed before a name may be granted, by its record; none where it may be (AW2). */
export function missedFor(grant: Grant | null, heard: SitesHeard): readonly SiteId[] {
  const { unheard } = heard;
  if (unheard.length === 0) return unheard;
  const known = grant === null || grant.ended ? null : grant;
  if (known === null) return unheard;
  const { site, owners } = known, disks = disksOf(owners);
  const isElsewhere = [site, ...disks.map((owner) => owner.site)].every((one) => one !== heard.site);
  const isOnDisks = disks.length > 0 && disks.length === owners.length;
  const isHeard = !unheard.includes(site) &&
    disks.every((owner) => [0, owner.disk].includes(heard.diskOf(owner.site) ?? -1));
  if (isElsewhere && isOnDisks && isHeard) return [];
  const own = unheard.filter((one) => one === site || disks.some((owner) => owner.site === one));
  return own.length > 0 ? own : unheard;
}

export interface CertaintyPorts {
  readonly site: SiteId;
  /** Number of this site's disk, as an owner. */
  readonly disk: number;
  /** Milliseconds that never go back. */
  readonly nowMs: () => number;
  /** Returns all sites of the tree. */
  readonly sites: () => readonly SiteId[];
  ask(to: SiteId, ask: SiteAsk): Asking;
  /** Watches whether a site can be reached; ends with the function that it returns. */
  watch(site: SiteId): () => void;
  /** Reports whether a site can be asked to serve what is at home there. */
  readonly gone: (site: SiteId) => "gone" | "here" | "unsure";
  /** Notes that a site has heard of a position; called before the site counts as heard. */
  readonly heardOf: (site: SiteId, position: number) => void;
  /** Reports whether it is known that the arbiter's disk went back (AW3). */
  readonly isBehind: () => boolean;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

interface Survey {
  readonly asking: Asking;
  readonly unwatch: () => void;
}

/** Certainty of the arbiter (see the file's header). */
export class Certainty implements SitesHeard {
  readonly #ports: CertaintyPorts;
  readonly #beganMs: number;
  /** Number of the disk of each site that was heard. */
  readonly #disks = new Map<SiteId, number>();
  readonly #surveys = new Map<SiteId, Survey>();
  /** Sites that are not waited for any longer (AW3). */
  readonly #givenUp = new Set<SiteId>();
  readonly #listeners = new Set<() => void>();
  #isSure = false;
  #isClosed = false;

  constructor(ports: CertaintyPorts) {
    this.#ports = ports;
    this.#beganMs = ports.nowMs();
    this.#disks.set(ports.site, ports.disk);
  }

  get site(): SiteId {
    return this.#ports.site;
  }

  get isSure(): boolean {
    return this.#isSure;
  }

  get unheard(): readonly SiteId[] {
    const isBehind = this.#ports.isBehind();
    return this.silent.filter((site) => isBehind || !this.#givenUp.has(site));
  }

  /** Sites of the tree that were not heard, also those that are not waited for. */
  get silent(): readonly SiteId[] {
    return this.#isSure ? [] : this.#ports.sites().filter((site) => !this.#disks.has(site));
  }

  /** True once all were heard, or are not waited for any longer, whatever else is known. */
  get isDone(): boolean {
    return this.silent.every((site) => this.#givenUp.has(site));
  }

  diskOf(site: SiteId): number | undefined {
    return this.#disks.get(site);
  }

  /** Calls back when another site was heard, or given up. */
  onChange(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  /** Asks sites that were not asked yet; to be called a few times a second: the tree may change. */
  survey(): void {
    if (this.#isSure || this.#isClosed) return;
    const { silent } = this, wanted = new Set(silent);
    for (const [site, survey] of this.#surveys) if (!wanted.has(site)) this.#end(site, survey);
    for (const site of silent) if (!this.#surveys.has(site)) this.#ask(site);
    this.#giveUp(silent);
    if (silent.length > 0) return;
    this.#isSure = true;
    this.#changed();
  }

  close(): void {
    this.#isClosed = true;
    for (const [site, survey] of this.#surveys) this.#end(site, survey);
    this.#changed();
  }

  /** Gives up sites that are gone, or silent for too long (AW3). */
  #giveUp(silent: readonly SiteId[]): void {
    const { nowMs, gone, note } = this.#ports;
    const waitedMs = nowMs() - this.#beganMs;
    if (waitedMs < HEARD_MS_MAX) return;
    const isGivenUp = (site: SiteId) => waitedMs >= SILENT_MS_MAX || gone(site) === "gone";
    const sites = silent.filter((site) => !this.#givenUp.has(site) && isGivenUp(site));
    if (sites.length === 0) return;
    for (const site of sites) this.#givenUp.add(site);
    note("arbiter_unheard", { sites });
    this.#changed();
  }

  #ask(site: SiteId): void {
    const asking = this.#ports.ask(site, { kind: "witness" });
    const survey = { asking, unwatch: this.#ports.watch(site) };
    this.#surveys.set(site, survey);
    void asking.reply.then((reply) => this.#told(site, survey, reply));
  }

  #told(site: SiteId, survey: Survey, reply: Reply): void {
    if (reply.kind === "witness") {
      for (const position of [...reply.jumps, reply.position]) this.#ports.heardOf(site, position);
    }
    this.#disks.set(site, reply.kind === "witness" ? reply.disk : 0);
    this.#end(site, survey);
    this.survey();
    this.#changed();
  }

  #end(site: SiteId, { asking, unwatch }: Survey): void {
    asking.cancel();
    unwatch();
    this.#surveys.delete(site);
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
