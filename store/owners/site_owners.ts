/**
 * The owners of one site: which sites may be owners, which live, and which this site would choose now.
 *
 * Life: made with the replica → `ready`: the site tells its area, and with f ≥ 1 begins to measure candidates →
 * `configure` as often as the operator likes → `leaves`, where it stops as planned → `close`.
 *
 * W1  With f = 0, for the site and all its uses, nobody is measured and nothing is sent for it.
 * W2  Settings that no choice can meet are refused and change nothing. Settings that a site starts with are not
 *     refused: the sites that they need may join later; until then choosing is refused.
 */
import { CodecError } from "../model/codec.ts";
import type { Core } from "../core/core.ts";
import { BEAT_MS, NEAR_MS, SILENT_SITE_MS, SUSPECT_MS } from "../model/limits.ts";
import type { TuplesMessage } from "../wire/message.ts";
import type { SiteId, Storage } from "../model/ports.ts";
import type { Position } from "../model/row.ts";
import { areaKey, encodeJson } from "../members/topology.ts";
import { worthMeasuring } from "../presence/candidates.ts";
import {
  checkOwners,
  type Choice,
  chooseOwners,
  nearestFirst,
  type OwnersSettings,
} from "../presence/choose.ts";
import { Detector } from "../presence/detector.ts";
import { Tuples, type TuplesUser } from "./tuples.ts";

/** Length of the number that tells one process from the next: two are alike once in 10^14. */
const BOOT_BYTES = 6;

/** Settings of a site that names none: nothing is kept elsewhere. */
export const NO_OWNERS: OwnersSettings = {
  f: 0,
  area: null,
  sites: null,
  nearMs: NEAR_MS,
  beatMs: BEAT_MS,
  suspectMs: SUSPECT_MS,
  deadMs: SILENT_SITE_MS,
  unreachable: "fail",
};

export class SiteOwners {
  readonly #core: Core;
  readonly detector: Detector;
  #settings: OwnersSettings;
  #isReady = false;
  #leaves = false;
  /** Functions that end the watch over a candidate, by candidate. */
  readonly #candidates = new Map<SiteId, () => void>();
  #revision = -1;
  #forget: () => void = () => {};
  readonly #channels = new Map<string, (from: SiteId, packet: Uint8Array) => void>();
  readonly #uses = new Map<string, { readonly f: () => number; tuples: Tuples | null }>();

  constructor(core: Core) {
    this.#core = core;
    this.#settings = core.config.owners ?? NO_OWNERS;
    this.detector = new Detector({
      nowMs: () => core.steady.nowMs(),
      wallMs: () => core.wall.nowMs(),
      after: (ms, callback) => core.ports.clock.after(ms, callback),
      send: (to, beat) => core.send(to, beat),
      isKnown: (site) => this.isKnown(site),
      knowsTree: () => this.#isReady,
      awayUntilMs: (site) => this.#awayUntilMs(site),
      count: (name) => core.count(name),
      note: core.ports.note,
    }, this.#settings);
  }

  get settings(): OwnersSettings {
    return this.#settings;
  }

  /** Begins once the site has its system rows. */
  async ready(): Promise<void> {
    this.#isReady = true;
    this.#forget = this.#core.onAdvance(() => this.#survey());
    this.#survey();
    await this.#tellArea();
  }

  /**
   * Applies other settings from now on.
   *
   * @throws OwnersError where the sites there are can't meet them (W2).
   */
  async configure(settings: OwnersSettings): Promise<void> {
    checkOwners(this.#core.config.site, settings, this.#known());
    this.#settings = settings;
    this.detector.configure(settings);
    this.#revision = -1;
    this.#survey();
    if (this.#isReady) await this.#tellArea();
  }

  /**
   * Chooses the owners of what arrives here now, this site first.
   *
   * @param f other owners; as configured by default.
   * @param kept of these, those that there are already.
   * @param last the site whose loss costs most (C5).
   * @throws OwnersError where there are not so many sites at all.
   */
  choose(
    f = this.#settings.f,
    kept: readonly SiteId[] = [],
    without: (site: SiteId) => boolean = () => false,
    last: SiteId | null = null,
  ): Choice {
    const { config: { site }, topology } = this.#core;
    checkOwners(site, { f, sites: this.#settings.sites }, this.#known());
    const candidates = this.detector.list().filter((one) => this.#candidates.has(one.site)).map((one) => ({
      id: one.site,
      area: topology.area(one.site),
      rttMs: one.rttMs,
      isAlive: one.standing === "alive" && !this.#isLeaving(one.site) && !without(one.site),
      isLast: one.site === last,
    }));
    const keptSites = kept.map((id) => ({ id, area: topology.area(id) }));
    return chooseOwners(
      { id: site, area: this.#settings.area },
      { ...this.#settings, f },
      candidates,
      keptSites,
    );
  }

  /**
   * Lists sites that live, of those that may be owners here, the nearest first; those that are not measured yet come
   * last.
   */
  nearest(): SiteId[] {
    const alive = this.detector.list().filter((one) =>
      this.#candidates.has(one.site) && one.standing === "alive" && !this.#isLeaving(one.site)
    );
    return nearestFirst(alive);
  }

  /**
   * Opens the tuples of one use over a disk of their own; the caller closes them.
   *
   * @param use the same at all sites.
   * @param f how many other owners tuples may want: where it is 0 nobody is watched for them.
   */
  async open(
    use: string,
    { storage, user, f = () => this.#settings.f }: { storage: Storage; user: TuplesUser; f?: () => number },
  ): Promise<Tuples> {
    const core = this.#core, { detector } = this;
    const opened: { f: () => number; tuples: Tuples | null } = { f, tuples: null };
    this.#uses.set(use, opened);
    this.#revision = -1;
    this.#survey();
    const tuples = opened.tuples = await Tuples.open({
      site: core.config.site,
      boot: core.ports.random.bytes(BOOT_BYTES).reduce((number, byte) => number * 256 + byte, 0) + 1,
      clock: core.ports.clock,
      nowMs: () => core.steady.nowMs(),
      wallMs: () => core.wall.nowMs(),
      storage,
      send: (to, packet) => core.send(to, { kind: "tuples", use, packet }),
      fellows: {
        choose: (wanted, kept, without) => this.choose(wanted, kept, without),
        isKnown: (site) => this.isKnown(site),
        isStranger: (site) => core.topology.site(site) === undefined && !core.topology.isRemoved(site),
        standing: (site) => detector.standing(site),
        awaitedUntilMs: (site) => this.#isLeaving(site) ? this.#awayUntilMs(site) ?? null : null,
        isInTouch: (site) => detector.isInTouch(site),
        suspectMs: () => this.#settings.suspectMs,
        watch: (site) => detector.watch(site),
        measured: (site, ms) => detector.measured(site, ms),
        onChange: (changed) => detector.onChange(changed),
      },
      refused: (event, from) => core.refused(event, from),
      fatal: core.ports.fatal,
    }, user);
    if (this.#leaves) tuples.leaves();
    return tuples;
  }

  /** How many owners the tuples of a use may want is another number than before. */
  usesChanged(): void {
    this.#revision = -1;
    this.#survey();
  }

  /** See Replica.owners in store/api/api.ts. */
  channel(
    use: string,
    received: (from: SiteId, packet: Uint8Array) => void,
  ): (to: SiteId, packet: Uint8Array) => Promise<void> {
    this.#channels.set(use, received);
    return (to, packet) => this.#core.send(to, { kind: "tuples", use, packet });
  }

  /** Takes a packet for the tuples of a use; one for a use that is not opened here is not heard: it is told again. */
  received(from: SiteId, { use, packet }: TuplesMessage): void {
    const core = this.#core;
    if (!this.#isReady) return;
    if (!this.isKnown(from)) return core.refused("packet_stranger", from);
    try {
      this.#uses.get(use)?.tuples?.received(from, packet);
      this.#channels.get(use)?.(from, packet);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      core.refused("message_malformed", from, { error: String(error) });
    }
  }

  isKnown(site: SiteId): boolean {
    const { topology } = this.#core;
    return topology.site(site) !== undefined && !topology.isRemoved(site);
  }

  /** Reason why the sites there are cannot meet the settings; null where they can. */
  get unmet(): string | null {
    if (this.#settings.f === 0) return null;
    try {
      const { missing } = this.choose();
      return missing === 0 ? null : `${missing} of ${this.#settings.f} other owners are missing`;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Announces a planned stop to all tuples, and is to be called before this site says so (Tuples.leaves). */
  leaves(): void {
    this.#leaves = true;
    for (const { tuples } of this.#uses.values()) tuples?.leaves();
  }

  close(): void {
    this.#forget();
    this.detector.close();
  }

  /** Reports whether a site said that it is away, which the detector may find a moment later. */
  #isLeaving(site: SiteId): boolean {
    return this.#core.wall.nowMs() < (this.#awayUntilMs(site) ?? -Infinity);
  }

  /**
   * Returns until when a site said that it is away; undefined for a site that was removed since, whose word means
   * nothing.
   */
  #awayUntilMs(site: SiteId): number | undefined {
    return this.isKnown(site) ? this.#core.topology.awayUntilMs(site) : undefined;
  }

  #known(): SiteId[] {
    return this.#core.topology.sites().map(({ id }) => id);
  }

  /** Watches the sites that may be chosen, now that the tree has changed. */
  #survey(): void {
    const { topology } = this.#core;
    if (!this.#isReady || topology.revision === this.#revision) return;
    this.#revision = topology.revision;
    const needs = this.#settings.f > 0 || [...this.#uses.values()].some(({ f }) => f() > 0); // W1
    const wanted = new Set(needs ? this.#worthMeasuring() : []);
    for (const [site, forget] of this.#candidates) {
      if (wanted.has(site)) continue;
      forget();
      this.#candidates.delete(site);
    }
    for (const site of wanted) {
      if (!this.#candidates.has(site)) this.#candidates.set(site, this.detector.watch(site));
    }
  }

  #worthMeasuring(): SiteId[] {
    const { config: { site }, path, topology } = this.#core;
    return worthMeasuring(this.#settings.sites ?? topology.present.keys(), {
      site,
      path,
      sites: topology.present,
    });
  }

  async #tellArea(): Promise<Position> {
    const core = this.#core, { site } = core.config, { area } = this.#settings;
    if (core.topology.area(site) === area) return core.rows.head;
    const key = areaKey(site);
    const position = await core.rows.lock.run(async () => {
      const [old] = await core.rows.lookup([key]);
      core.rows.apply(old, core.own(key, area === null ? null : encodeJson({ area })));
      return core.rows.head;
    });
    core.wake();
    return position;
  }
}
