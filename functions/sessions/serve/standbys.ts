/**
 * Standbys of a site for stateful sessions of other sites: of those classes that ask for it (`static standby`), whose
 * logs this disk keeps, and of whose owners this site is the nearest to their home.
 *
 * Life: a log is kept here → its owners are asked for → followed (standby.ts) → its home is suspected: this site asks
 * to be its home, whether anybody needs the session or not → taken over, in place.
 *
 * Which site follows a session is a matter of speed: two sites that follow one session, or none, harm nothing.
 *
 * SS2  A session that can't be followed is told in the app's log and counted, and not tried again before its log is
 *      based on another checkpoint: its home is not concerned.
 * SS3  At most STANDBYS_MAX are followed, in isolates of their own: one that takes its isolate with it takes no session
 *      that is at home here.
 * SS4  A session that is about to be opened here is followed meanwhile, of whatever class (`ahead`): its state is made
 *      anew while its epoch is asked for. Nobody is told of that, and it is let go of where nothing comes of it.
 */
import type { Followable, FollowedLog, KeptLog, LogNews, StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import type { OpenSession } from "../turn/mod.ts";
import type { ChannelSink, FollowedChannel } from "./ports.ts";
import { mapKey, shownSession } from "./session_name.ts";
import { sessionOf, Standby, type StandbyEnd } from "./standby.ts";

/** The site's part that standbys need. */
export interface StandbyServices {
  readonly site: string;
  readonly logs: Followable;
  /** Reports whether any class at all is to have standbys (`wantsAny`), and whether a session's class is (`wants`). */
  readonly wantsAny: () => boolean;
  readonly wants: (name: StatefulName) => boolean;
  /** Returns the version and code of a log, with which its isolates are opened; undefined: the code is not here. */
  readonly codeOf: (
    name: StatefulName,
    copy: FollowedLog,
  ) => Promise<{ readonly version: string; readonly code: string } | undefined>;
  /**
   * Opens a follower in an isolate of a version. Where the session is about to be opened here that is one of the
   * isolates of the sessions at home here.
   */
  readonly follow: (
    name: StatefulName,
    version: string,
    session: OpenSession,
    sink: ChannelSink,
    isAhead: boolean,
  ) => Promise<FollowedChannel>;
  readonly fellows: {
    isLost(site: string): boolean;
    watch(site: string): () => void;
    onChange(changed: (site: string) => void): () => void;
  };
  /** Opens the session here, whose home is suspected. */
  readonly takeOver: (name: StatefulName) => void;
  readonly log: (name: StatefulName, level: string, text: string) => void;
  readonly clock: PeerClock;
  /** Milliseconds between sweeps through the logs. */
  readonly sweepMs?: number;
  /** Overrides STANDBYS_MAX. */
  readonly max?: number;
}

/** Record of one session that may be followed. */
interface Entry {
  readonly name: StatefulName;
  home: string;
  unwatch: () => void;
  standby: Standby | null;
  /** Resolves when the session is followed, or can't be; null: it is not being opened. */
  opening: Promise<void> | null;
  /** Time until which the session may be about to be opened here (SS4); 0: it was not. */
  aheadUntilMs: number;
  /** True once the log has changed in a way that can't be followed, while the session was being opened. */
  isStale: boolean;
  /** News of entries that were appended while the session was being opened. */
  early: Extract<LogNews, { readonly kind: "appended" }>[];
  /** Time before which the session is not looked at again. */
  againMs: number;
  /** True for a session that can't be followed (SS2). */
  isRefused: boolean;
}

/** Number of sessions that are followed: each has its state in memory, and an isolate is started for every 500. */
const STANDBYS_MAX = 1_000;
/** Number of sessions that are known, also those that other sites are nearer to: some 500 bytes each. */
const KNOWN_MAX = 20_000;
const SWEEP_MS = 1_000;
/** Number of sweeps of which one goes through all logs. There may be 200,000; what begins in between is told. */
const ALL_EVERY = 10;
/** Milliseconds until a session is looked at again: its owners may be on record by then, its isolate start. */
const AGAIN_MS = 1_000;
/**
 * Milliseconds for which a session is kept ready: one that is asked for again and again, and can't be opened, is not
 * made anew each time (SS4).
 */
const AHEAD_MS = 10_000;
/** Number of sessions that are made ready at once: more than that would wait for the processor. */
const AHEAD_MAX = 8;
/** Milliseconds until a session that others are nearer to is looked at again: that changes when one of them is lost. */
const FAR_MS = 30_000;

/** See the file's header. */
export class Standbys {
  readonly #services: StandbyServices;
  readonly #entries = new Map<string, Entry>();
  readonly #ahead = new Set<Entry>();
  readonly #unlisten: () => void;
  readonly #clock: PeerClock;
  #cancelSweep: () => void = () => {};
  readonly #sweepMs: number;
  readonly #max: number;
  #diverged = 0;
  #promoted = 0;
  #closed = false;

  constructor(services: StandbyServices) {
    this.#services = services;
    this.#clock = services.clock;
    this.#unlisten = services.fellows.onChange((site) => this.#changed(site));
    this.#sweepMs = services.sweepMs ?? SWEEP_MS;
    this.#max = services.max ?? STANDBYS_MAX;
    this.#sweepLater();
  }

  /** Numbers for status and metrics. */
  get counts(): { readonly standbys: number; readonly diverged: number; readonly promoted: number } {
    const { wants } = this.#services;
    let standbys = 0;
    for (const { standby, name } of this.#entries.values()) if (standby !== null && wants(name)) standbys++;
    return { standbys, diverged: this.#diverged, promoted: this.#promoted };
  }

  /** Takes news of a log on this disk. */
  onLog(log: KeptLog, news: LogNews): void {
    const entry = this.#entries.get(mapKey(log.name));
    if (news.kind === "gone") return entry === undefined ? undefined : this.#forget(entry);
    if (entry === undefined) {
      if (news.kind === "begun" && this.#found(log)) this.#lookSoon();
      return;
    }
    const { standby } = entry;
    this.#isAt(entry, log.head.by);
    switch (news.kind) {
      case "begun":
        if (!news.isSame) this.#drop(entry);
        return;
      case "appended":
        if (standby === null && entry.opening !== null) entry.early.push(news);
        if (standby !== null && !standby.appended(news)) this.#drop(entry);
        return;
      case "based":
        entry.isRefused = false;
        if (standby === null || news.at > standby.last) this.#drop(entry);
        else if (standby.isLong) this.#drop(entry);
    }
  }

  /** Reports whether a session is followed here, or about to be. */
  follows(name: StatefulName): boolean {
    const entry = this.#entries.get(mapKey(name));
    return entry !== undefined && (entry.opening !== null || entry.standby !== null);
  }

  /**
   * Follows a session of another site that is about to be opened here (SS4). Returns false where it is not followed for
   * that.
   */
  ahead(name: StatefulName): boolean {
    const { logs, site } = this.#services;
    const by = logs.log(name)?.head.by ?? site;
    const known = this.#entries.get(mapKey(name));
    if (this.#closed || by === site || known?.isRefused) return false;
    const isFollowed = this.follows(name);
    if (!isFollowed && this.#ahead.size >= AHEAD_MAX) return false;
    const entry = known ?? this.#add(name, by);
    entry.aheadUntilMs = this.#clock.nowMs() + AHEAD_MS;
    this.#ahead.add(entry);
    if (!isFollowed) this.#open(entry);
    return true;
  }

  /** Takes the standby of a session that this site has just become the home of; null: there is none that is as far. */
  async take(name: StatefulName, version: string, last: number): Promise<Standby | null> {
    const entry = this.#entries.get(mapKey(name));
    if (entry === undefined) return null;
    // An opening without the standby would begin with the same work.
    if (this.#ahead.has(entry)) await entry.opening;
    if (this.#entries.get(mapKey(name)) !== entry) return null;
    const { standby } = entry;
    entry.standby = null;
    this.#forget(entry);
    if (standby === null || standby.isOver) return null;
    if (standby.version === version && standby.last === last) {
      if (this.#services.wants(name)) this.#promoted++;
      return standby;
    }
    standby.close();
    return null;
  }

  close(): void {
    this.#closed = true;
    this.#cancelSweep();
    this.#unlisten();
    for (const entry of [...this.#entries.values()]) this.#forget(entry);
  }

  // ── Who is followed ──

  #isLooking = false;
  /** Number of sweeps since all logs were looked through; 0: the next sweep does. */
  #sweeps = 0;

  #sweepLater(): void {
    this.#cancelSweep = this.#clock.after(this.#sweepMs, () => {
      this.#sweepLater();
      this.#sweep();
    });
  }

  #lookSoon(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#clock.after(this.#sweepMs / 10, () => {
      this.#isLooking = false;
      this.#look();
    });
  }

  #sweep(): void {
    const { logs, wantsAny } = this.#services;
    if (!wantsAny()) this.#sweeps = 0;
    else {
      if (this.#sweeps === 0) { for (const log of logs.all()) this.#found(log); }
      this.#sweeps = (this.#sweeps + 1) % ALL_EVERY;
    }
    this.#look();
  }

  /** Notes a log that is to be followed and was not known so far. Returns whether it is one. */
  #found({ name, head: { by: home } }: Pick<KeptLog, "name" | "head">): boolean {
    const { site, wants } = this.#services;
    if (home === site || !wants(name) || this.#entries.size >= KNOWN_MAX) return false;
    if (this.#entries.has(mapKey(name))) return false;
    this.#add(name, home);
    return true;
  }

  #look(): void {
    if (this.#closed) return;
    const { site, wants, fellows, takeOver } = this.#services;
    const nowMs = this.#clock.nowMs();
    let followed = 0;
    for (const { standby, opening } of this.#entries.values()) {
      if (standby !== null || opening !== null) followed++;
    }
    for (const entry of [...this.#entries.values()]) {
      const { name, home, standby, opening, isRefused, againMs } = entry;
      const isAhead = entry.aheadUntilMs > nowMs;
      if (!isAhead) this.#ahead.delete(entry);
      if (!wants(name)) { if (!isAhead) this.#forget(entry); }
      // Asked for again: the arbiter could not be asked before, or was not sure.
      else if (standby !== null) { if (fellows.isLost(home)) takeOver(name); }
      else if (home !== site && opening === null && !isRefused && nowMs >= againMs && followed < this.#max) { // SS3
        followed++;
        this.#open(entry);
      }
    }
  }

  #add(name: StatefulName, home: string): Entry {
    const entry: Entry = {
      ...{ name, home, standby: null, opening: null, isStale: false, againMs: 0, isRefused: false },
      ...{ early: [], aheadUntilMs: 0 },
      unwatch: this.#services.fellows.watch(home),
    };
    this.#entries.set(mapKey(name), entry);
    return entry;
  }

  #isAt(entry: Entry, home: string): void {
    if (entry.home === home) return;
    entry.unwatch();
    entry.home = home;
    entry.unwatch = home === this.#services.site ? () => {} : this.#services.fellows.watch(home);
  }

  #drop(entry: Entry): void {
    entry.standby?.close();
    entry.standby = null;
    entry.isStale = true;
    entry.againMs = 0;
    this.#lookSoon();
  }

  #forget(entry: Entry): void {
    entry.standby?.close();
    entry.standby = null;
    entry.isStale = true;
    entry.unwatch();
    this.#ahead.delete(entry);
    this.#entries.delete(mapKey(entry.name));
  }

  #open(entry: Entry): void {
    entry.opening = this.#opening(entry).finally(() => {
      entry.opening = null;
      entry.early = [];
    });
  }

  async #opening(entry: Entry): Promise<void> {
    const { log, wants } = this.#services;
    entry.isStale = false;
    entry.early = [];
    entry.againMs = this.#clock.nowMs() + AGAIN_MS;
    try {
      await this.#follow(entry);
    } catch (error) {
      entry.standby?.close();
      entry.standby = null;
      if (!wants(entry.name)) return; // the opening of the session reports it
      log(entry.name, "warn", `${shownSession(entry.name)} has no standby for now: ${error}`);
    }
  }

  /** Opens a follower of the session's log on this disk (SB1). */
  async #follow(entry: Entry): Promise<void> {
    const { logs, codeOf, follow } = this.#services;
    const { name } = entry, isAhead = this.#ahead.has(entry);
    const rank = isAhead ? 0 : await logs.rank(name);
    if (rank === null) return;
    if (rank > 0) {
      entry.againMs = this.#clock.nowMs() + FAR_MS;
      return;
    }
    const copy = await logs.copy(name);
    const code = copy === null ? undefined : await codeOf(name, copy);
    if (copy === null || code === undefined) return;
    const session: OpenSession = {
      ...await sessionOf(name, copy),
      ...{ epoch: 0, replica: 0, code: code.code, out: {}, effectsApplied: 0 },
    };
    const standby = new Standby(
      { version: code.version, copy, session },
      (end) => this.#ended(entry, end),
    );
    if (this.#closed || entry.isStale || !entry.early.every((news) => standby.appended(news))) return;
    entry.standby = standby;
    standby.opened(await follow(name, code.version, session, standby.sink, isAhead));
  }

  /** Notes that a standby has ended, and whether its session can be followed again (SS2). */
  #ended(entry: Entry, end: StandbyEnd): void {
    entry.standby = null;
    if (!this.#services.wants(entry.name)) return this.#forget(entry);
    // Other code has gone on with the session from a checkpoint: from there it can be followed.
    entry.isRefused = !(end.kind === "parked" && end.parked.code === "code_differs");
    if (!entry.isRefused) return;
    const why = end.kind === "killed" ? end.why : `${end.parked.code}: ${end.parked.message}`;
    if (end.kind === "parked" && end.parked.code === "diverged") this.#diverged++;
    const detail = end.kind === "parked" ? ` ${JSON.stringify(end.parked.detail)}` : "";
    this.#services.log(entry.name, "error", `${shownSession(entry.name)} can't be followed: ${why}${detail}`);
  }

  // ── Who takes over ──

  #changed(site: string): void {
    if (this.#closed || !this.#services.fellows.isLost(site)) return;
    const { wants, takeOver } = this.#services;
    for (const { home, standby, name } of this.#entries.values()) {
      if (home === site && standby !== null && wants(name)) takeOver(name);
    }
  }
}
