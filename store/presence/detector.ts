/**
 * The failure detector: which sites live, as one site sees it, and how far away each is (GeoRep, section 2.1.3).
 *
 * Life of a watched site: unknown (nothing heard since the watch began) → alive → suspected, after `suspectMs` of
 * silence → dead, after `deadMs` of it → alive again with the first message. A site that announced until when it is
 * away (["s", "away", id]) is suspected from there, and dead when it is not back by then.
 *
 * F1  Any message of a site shows that it lives: a beat asks it only where nothing else came for `beatMs`.
 * F2  A site is not dead before the time it announced.
 * F3  While this process stood still no site could be heard: that time counts as no site's silence.
 * F4  A round trip is the site's own answer to a beat that was sent while the clock ran on, or less.
 * F5  Only sites of the tree are answered and heard.
 * F6  That no process listens at a site's address is strong evidence that the site is dead, and may be wrong (an
 *     address that only some can dial). It does not change the standing: it shows in `presence`, for users to whom a
 *     mistake does no harm, such as homes, which fence the home that they replace. Users that act by standing alone, as
 *     tuples and wards do, wait for silence.
 */
import { BEAT_MS_MAX, MEASURE_MS } from "../model/limits.ts";
import type { Beat } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import { Quiet } from "../model/quiet.ts";

export type Standing = "unknown" | "alive" | "suspected" | "dead";

/** Lengths of silence and what they mean, all in milliseconds. */
export interface DetectorTimes {
  readonly beatMs: number;
  readonly suspectMs: number;
  readonly deadMs: number;
}

export interface DetectorPorts {
  /** Returns milliseconds that never go back. */
  readonly nowMs: () => number;
  /** Returns the time of the wall clock, by which sites announce until when they are away. */
  readonly wallMs: () => number;
  readonly after: (ms: number, callback: () => void) => () => void;
  readonly send: (to: SiteId, beat: Beat) => Promise<void>;
  /** Reports whether a site belongs to the tree. */
  readonly isKnown: (site: SiteId) => boolean;
  /** Reports whether this site has its system rows: before, every site is a stranger. */
  readonly knowsTree: () => boolean;
  readonly awayUntilMs: (site: SiteId) => number | undefined;
  readonly count: (name: string) => void;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** State of a watched site. */
export interface WatchedSite {
  readonly site: SiteId;
  readonly standing: Standing;
  /** Round trip in milliseconds; null before it was measured. */
  readonly rttMs: number | null;
  /** Milliseconds for which nothing was heard of the site. */
  readonly silentMs: number;
}

export type StandingChanged = (site: SiteId, standing: Standing, before: Standing) => void;

interface Entry {
  readonly site: SiteId;
  users: number;
  standing: Standing;
  hasSpoken: boolean;
  heardMs: number;
  /**
   * Time at which the site was heard last, with no standstill forgiven (F3): meanwhile others may have taken this site
   * for dead.
   */
  spokeMs: number;
  askedMs: number;
  /** Beats that are not answered yet and count (F4), oldest first: a site may be farther away than a beat. */
  unanswered: { readonly stamp: number; readonly askedMs: number }[];
  measuredMs: number;
  /** Number of answers so far. */
  samples: number;
  rttMs: number | null;
  isSending: boolean;
}

/** Share of the difference by which an answer that is slower than the round trip before moves it: an eighth. */
const RISE_SHARE = 8;
/** Answers that are asked for at once: the first is slow where processes have just started; of a few, one is not. */
const FIRST_SAMPLES = 4;
/** Share of the silence so far that passes between two questions: an eighth. */
const SILENCE_SHARE = 8;
/** Beats of one site whose answers count: as many as are under way to one that is suspected after them, and more. */
const UNANSWERED_MAX = 32;

export class Detector {
  readonly #ports: DetectorPorts;
  readonly #entries = new Map<SiteId, Entry>();
  readonly #listeners = new Set<StandingChanged>();
  readonly #quiet: Quiet;
  /** Sites at whose address no process listens, with the time since when (F6). */
  readonly #refused = new Map<SiteId, number>();
  readonly #presenceListeners = new Set<StandingChanged>();
  #times: DetectorTimes;
  #tickedMs = 0;
  #cancel: () => void = () => {};
  #closed = false;

  constructor(ports: DetectorPorts, times: DetectorTimes) {
    this.#ports = ports;
    this.#times = times;
    this.#quiet = new Quiet(ports.nowMs);
  }

  /** Sets other timeouts from now on. */
  configure(times: DetectorTimes): void {
    this.#times = times;
    if (this.#entries.size > 0) this.#tick();
  }

  /**
   * Watches a site, until the returned functions have been called as often as this was. The site is asked half a beat
   * from now: one that has just joined is a stranger to sites that its row has yet to reach.
   */
  watch(site: SiteId): () => void {
    const nowMs = this.#ports.nowMs();
    if (this.#entries.size === 0) this.#schedule(nowMs);
    const entry = this.#entries.get(site) ?? {
      site,
      users: 0,
      standing: "unknown",
      hasSpoken: false,
      heardMs: nowMs,
      spokeMs: -Infinity,
      askedMs: -Infinity,
      unanswered: [],
      measuredMs: -Infinity,
      samples: 0,
      rttMs: null,
      isSending: false,
    };
    this.#entries.set(site, entry);
    entry.users++;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--entry.users > 0) return;
      this.#entries.delete(site);
      if (this.#entries.size === 0) this.#cancel();
    };
  }

  /** Notes that a message came from a site (F1). */
  heard(site: SiteId): void {
    const isBack = this.#refused.delete(site);
    this.#heard(site);
    if (isBack) this.#tellPresence(site, "suspected");
  }

  /** Notes that no process listens at a site's address, and no link to it is up (F6). */
  refused(site: SiteId): void {
    if (!this.#ports.isKnown(site)) return; // F5
    const before = this.presence(site);
    this.#refused.set(site, this.#ports.nowMs());
    if (before !== "suspected" && before !== "dead") this.#tellPresence(site, before);
  }

  /**
   * Returns a site's standing, but "suspected" at once where no process listens there, for as long as silence would
   * take to say more (F6).
   */
  presence(site: SiteId): Standing {
    const standing = this.standing(site);
    const refusedMs = this.#refused.get(site);
    if (refusedMs === undefined || standing === "dead") return standing;
    if (this.#ports.nowMs() - refusedMs < this.#times.deadMs) return "suspected";
    this.#refused.delete(site);
    return standing;
  }

  /** Calls back when a site's presence may have changed; the returned function unsubscribes. */
  onPresence(changed: StandingChanged): () => void {
    this.#presenceListeners.add(changed);
    return () => this.#presenceListeners.delete(changed);
  }

  #tellPresence(site: SiteId, before: Standing): void {
    const presence = this.presence(site);
    for (const changed of [...this.#presenceListeners]) changed(site, presence, before);
  }

  #heard(site: SiteId): void {
    const entry = this.#entries.get(site);
    if (entry === undefined || !this.#ports.isKnown(site)) return;
    const nowMs = this.#ports.nowMs();
    this.#forgiveStandstill(nowMs);
    entry.heardMs = entry.spokeMs = nowMs;
    entry.hasSpoken = true;
    if (entry.standing !== "alive") this.#judge(entry, nowMs);
  }

  /** Notes how long an exchange of another kind with a site took: its round trip is no longer than that (F4). */
  measured(site: SiteId, ms: number): void {
    const entry = this.#entries.get(site);
    if (entry === undefined) return;
    entry.rttMs = Math.min(entry.rttMs ?? Infinity, ms);
  }

  /** Takes a beat, or the answer to one. */
  received(from: SiteId, beat: Beat): void {
    const ports = this.#ports;
    if (!ports.knowsTree()) return;
    if (!ports.isKnown(from)) { // F5
      ports.count("beat_stranger");
      const before = this.#quiet.admits(from);
      if (before !== null) ports.note("beat_stranger", { from, before });
      return;
    }
    if (!beat.isAnswer) {
      ports.send(from, { kind: "beat", stamp: beat.stamp, isAnswer: true }).catch(() => {});
      return;
    }
    const entry = this.#entries.get(from);
    const asked = entry?.unanswered.findIndex(({ stamp }) => stamp === beat.stamp) ?? -1;
    const { askedMs } = entry?.unanswered[asked] ?? {};
    if (entry === undefined || askedMs === undefined) return;
    entry.unanswered.splice(0, asked + 1);
    const nowMs = ports.nowMs();
    const tookMs = Math.max(0, nowMs - askedMs);
    entry.measuredMs = nowMs;
    entry.samples++;
    const { rttMs } = entry;
    entry.rttMs = rttMs === null || tookMs < rttMs ? tookMs : rttMs + (tookMs - rttMs) / RISE_SHARE;
  }

  /** Returns the standing of a site; `unknown` for one that is not watched. */
  standing(site: SiteId): Standing {
    return this.#entries.get(site)?.standing ?? "unknown";
  }

  /**
   * Reports whether a site was heard so lately that it can't have taken this one for dead: of two sites that lose each
   * other one has heard the other later by as much as passes until that one is asked, and a round trip (F1). Of a link
   * that loses one way only it knows nothing (store/owners/exchange.ts X6).
   */
  isInTouch(site: SiteId): boolean {
    const entry = this.#entries.get(site), { suspectMs, beatMs } = this.#times;
    if (entry === undefined) return false;
    const apartMs = beatMs + this.#tickEveryMs + (entry.rttMs ?? 0);
    return this.#ports.nowMs() - entry.spokeMs < suspectMs - apartMs;
  }

  /** Returns the round trip of a site in milliseconds; null: not measured yet, or not watched. */
  rttMs(site: SiteId): number | null {
    return this.#entries.get(site)?.rttMs ?? null;
  }

  /** Returns the state of all watched sites. */
  list(): WatchedSite[] {
    const nowMs = this.#ports.nowMs();
    return [...this.#entries.values()].map(({ site, standing, rttMs, heardMs }) => ({
      site,
      standing,
      rttMs,
      silentMs: Math.max(0, nowMs - heardMs),
    }));
  }

  /** Calls back when a site's standing has changed; the returned function unsubscribes. */
  onChange(changed: StandingChanged): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  /** Stops watching and telling. */
  close(): void {
    this.#closed = true;
    this.#cancel();
    this.#listeners.clear();
    this.#presenceListeners.clear();
  }

  #schedule(nowMs: number): void {
    this.#cancel();
    this.#tickedMs = nowMs;
    if (!this.#closed) this.#cancel = this.#ports.after(this.#tickEveryMs, () => this.#tick());
  }

  /** Milliseconds between two looks, so that silence is noticed within half a beat. */
  get #tickEveryMs(): number {
    return Math.max(1, this.#times.beatMs / 2);
  }

  #tick(): void {
    const nowMs = this.#ports.nowMs();
    this.#forgiveStandstill(nowMs);
    this.#schedule(nowMs);
    for (const entry of [...this.#entries.values()]) this.#look(entry, nowMs);
  }

  /** Takes a standstill of this process out of every site's silence, and forgets beats sent before it (F3, F4). */
  #forgiveStandstill(nowMs: number): void {
    const lateMs = nowMs - this.#tickedMs - this.#tickEveryMs;
    if (lateMs < this.#times.beatMs) return;
    this.#tickedMs += lateMs;
    for (const entry of this.#entries.values()) {
      entry.heardMs += lateMs;
      entry.unanswered = [];
    }
  }

  #look(entry: Entry, nowMs: number): void {
    this.#judge(entry, nowMs);
    const silentMs = nowMs - entry.heardMs;
    const everyMs = Math.min(Math.max(this.#times.beatMs, silentMs / SILENCE_SHARE), BEAT_MS_MAX);
    const isSilent = !entry.hasSpoken || silentMs >= this.#times.beatMs;
    const isUnmeasured = entry.samples < FIRST_SAMPLES || nowMs - entry.measuredMs >= MEASURE_MS;
    if (!(isSilent || isUnmeasured) || nowMs - entry.askedMs < everyMs) return;
    if (entry.isSending || this.#closed || !this.#ports.isKnown(entry.site)) return;
    entry.askedMs = nowMs;
    const stamp = Math.max(1, Math.floor(nowMs));
    entry.unanswered.push({ stamp, askedMs: nowMs });
    if (entry.unanswered.length > UNANSWERED_MAX) entry.unanswered.shift();
    entry.isSending = true;
    this.#ports.count("beats");
    this.#ports.send(entry.site, { kind: "beat", stamp, isAnswer: false })
      .catch(() => {}) // a link that is down: silence says it
      .finally(() => entry.isSending = false);
  }

  #judge(entry: Entry, nowMs: number): void {
    const before = entry.standing;
    entry.standing = this.#standingOf(entry, nowMs - entry.heardMs);
    if (entry.standing === before) return;
    for (const changed of [...this.#listeners]) changed(entry.site, entry.standing, before);
    this.#tellPresence(entry.site, before);
  }

  #standingOf({ site, hasSpoken }: Entry, silentMs: number): Standing {
    const { suspectMs, deadMs } = this.#times;
    const untilMs = this.#ports.awayUntilMs(site);
    if (untilMs !== undefined) {
      if (this.#ports.wallMs() < untilMs) return "suspected"; // F2
      if (silentMs >= suspectMs) return "dead";
    }
    if (silentMs >= deadMs) return "dead";
    if (silentMs >= suspectMs) return "suspected";
    return hasSpoken ? "alive" : "unknown";
  }
}
