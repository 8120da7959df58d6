/**
 * Stateful sessions of one site: those at home here, the logs that it keeps for others, and, at the root, the arbiter.
 *
 * Life: `Homes.open` → (opened, resting, taken over …) → `close`.
 */
import type { Standing } from "../../../store/presence/detector.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { type Home, HomeError, type HomeRow, type OpenedSession, type StatefulName } from "../log/api.ts";
import { alignOwn, overtaken } from "./align_own.ts";
import { AnswerRoom } from "./answer_room.ts";
import { Arbitration } from "./arbitration.ts";
import {
  isForArbiter,
  isRecall,
  type KeeperAsk,
  type LogCopy,
  type RecallAsk,
  type Reply,
  type SiteAsk,
} from "../log/asks.ts";
import { AtHome } from "./at_home.ts";
import { Audit } from "./audit.ts";
import { Births } from "./births.ts";
import { Due, type DuePorts } from "./due.ts";
import { LogExchange } from "../log/exchange.ts";
import { GroupCommit } from "../log/group_commit.ts";
import type { KeptLog } from "../log/kept_log.ts";
import { drawDisk, Keepers, type KeepersPorts, loadDisk } from "../log/keepers.ts";
import {
  ENDED_MS,
  FORCED_MS,
  LOG_PACKET_BYTES_TARGET,
  LOST_MS,
  OPEN_HELD_MS,
  OPEN_MS_MAX,
  PER_APP_MAX,
  SEAT_BYTES_MAX,
  SEAT_MOVES_MAX,
  SEAT_MS_MAX,
  SEED_BYTES,
  SITE_ANSWERS_BYTES_MAX,
} from "../log/limits.ts";
import { LiveHome } from "./live_home.ts";
import type { LiveHomePorts, LiveHomeStart } from "./live_home_ports.ts";
import { type MoveArbiter, type MovedHome, takenOver } from "./move.ts";
import { birthId, checkName, keyOf, shownName } from "../log/name.ts";
import { type OpenHomePorts, Opening } from "./open_home.ts";
import { type Forced, HomeRecovery, type RecoveryPorts } from "./recovery.ts";
import { Followable, type KeptCopy, keptCopy, ownLogs, unreadable } from "./own_logs.ts";
import type { HomesPorts, HomesStatus, LogNews } from "../log/ports.ts";
import { Routes } from "./routes.ts";
import { Seats } from "./seats.ts";
import { soleLogs } from "./sole_logs.ts";
import { Watches } from "./watches.ts";

type Hooks = Pick<KeepersPorts, "fenced" | "changed">;

const TICK_MS = 250;
/** Sign of open work without a version (ports.ts, `openOf`). */
const NO_VERSION = 1;

/** Sessions of one site (see the file's header). */
export class Homes {
  readonly #ports: HomesPorts;
  readonly #keepers: Keepers;
  readonly #arbitration: Arbitration | null;
  /** Choice, at the arbiter's site, of the site that has what is asked for here. */
  readonly #seats: Seats | null;
  /** Number of sessions that leave the arbiter's site as they are opened. */
  #leaving = 0;
  readonly #exchange: LogExchange;
  readonly #routes = new Routes();
  readonly #watches: Watches;
  readonly #births: Births;
  readonly #due: Due;
  /** Logs that leave something open, and the time at which each was last written. */
  readonly #leftOpen = new Map<KeptLog, number>();
  readonly #audit: Audit;
  /** Logs of other sites' sessions on this disk. */
  readonly followable: Followable;
  readonly #homes = new AtHome();
  readonly #opening = new Set<string>();
  /** Epochs of sessions that are being opened and were granted one. */
  readonly #granted = new Map<string, number>();
  #isLeaving = false;
  readonly #live: LiveHomePorts<LiveHome>;
  readonly #openHomes: OpenHomePorts;
  readonly #room: AnswerRoom;
  readonly #counters: Record<string, number> = {};
  /** Error for all that is asked, once nothing new is served. */
  #closing: HomeError | null = null;
  #isClosed = false;
  #cancelTick: () => void = () => {};
  readonly #forget: () => void;

  private constructor(ports: HomesPorts, { keepers, arbitration }: {
    readonly keepers: (hooks: Hooks) => Keepers;
    readonly arbitration: Arbitration | null;
  }, watches: Watches) {
    this.#ports = ports;
    this.#watches = watches;
    const { answersBytesMax: bytesMax = SITE_ANSWERS_BYTES_MAX } = ports;
    this.#room = new AnswerRoom({ nowMs: ports.nowMs, bytesMax });
    this.#due = new Due(this.#duePorts());
    this.#keepers = keepers({
      fenced: (name, epoch, by) => this.#fenced(name, epoch, by),
      changed: (log, news) => this.#changed(log, news),
    });
    this.#arbitration = arbitration;
    this.#seats = arbitration === null ? null : this.#newSeats(arbitration);
    const count = (name: string, by?: number) => this.#count(name, by);
    const { site, boot, clock, nowMs, send, fellows } = ports;
    this.#exchange = new LogExchange({
      site,
      boot,
      clock,
      nowMs,
      send,
      // AB3 (arbitration.ts)
      witness: () => arbitration === null ? this.#keepers.recollection.position : arbitration.position,
      heard: (from, position) => {
        this.#keepers.recollection.hear(position); // certainty.ts AW1
        arbitration?.heard(from, position);
      },
      handle: (from, ask) => this.#handle(from, ask),
      count,
    });
    this.#births = new Births({ ...this.#recoveryPorts(), fellows });
    this.#audit = new Audit(
      {
        ...{ ...this.#recoveryPorts(), keepers: this.#keepers, fatal: ports.fatal },
        ...{ wallMs: () => clock.nowMs(), endedMs: ports.endedMs ?? ENDED_MS },
      },
      (name) => this.#isAtHome(name),
    );
    this.followable = new Followable(this.#keepers, this.#audit, site);
    this.#live = this.#livePorts();
    this.#openHomes = this.#openPorts();
    for (const log of this.#keepers.all()) this.#changed(log, null);
    this.#forget = fellows.onChange((one, standing) => this.#standing(one, standing));
    this.#tickLater();
  }

  /** Opens what is on the disks. */
  static async open(ports: HomesPorts): Promise<Homes> {
    const { storage, arbiterStorage, clock, nowMs, fatal, random, fellows, site } = ports;
    const { openOf = () => 0 } = ports;
    const loaded = await loadDisk(storage, random, openOf);
    const disk = new GroupCommit({ storage, clock, fatal }, loaded.position);
    const watches = new Watches(fellows, site, nowMs);
    const { keptMax, keptBytesMax, batchBytes = LOG_PACKET_BYTES_TARGET, perAppMax = PER_APP_MAX } = ports;
    const gone = (one: SiteId) => watches.gone(one);
    const held: { homes: Homes | null } = { homes: null };
    const late = () => {
      if (held.homes === null) throw new Error("the arbiter asks before the homes of its site are there");
      return held.homes;
    };
    const arbitration = arbiterStorage === null ? null : await Arbitration.open({
      ...{ ...ports, storage: arbiterStorage, gone, perAppMax },
      ...{ disk: loaded.id, witness: loaded.heardOf.position },
      ask: (to, ask) => late().#exchange.ask(to, ask),
      recollection: () => late().#keepers.recollection,
      wentBack: () => late().#wentBack(),
    });
    const homes = held.homes = new Homes(ports, {
      arbitration,
      keepers: (hooks) =>
        new Keepers({
          storage,
          disk,
          nowMs,
          batchBytes,
          openOf,
          ...hooks,
          ...(keptMax === undefined ? {} : { keptMax }),
          ...(keptBytesMax === undefined ? {} : { keptBytesMax }),
        }, loaded),
    }, watches);
    arbitration?.begin();
    return homes;
  }

  // ── Where ──

  /**
   * Returns the home of a stateful session, as far as is known here without asking: this site, another, or null. A hint
   * that was right once.
   */
  where(name: StatefulName): SiteId | null {
    const key = keyOf("", name);
    if (this.#isAtHome(name)) return this.#ports.site;
    return this.#routes.get(key, this.#keepers.log(name)?.head.by ?? null);
  }

  /** Notes that the site that `where` named is not the session's home. */
  misled(name: StatefulName): void {
    this.#routes.set(keyOf("", name), null);
  }

  /** Notes that another site says to be the session's home. */
  heard(name: StatefulName, site: SiteId): void {
    this.#routes.set(keyOf("", name), site);
  }

  /**
   * Returns the site that is to have an open session that is to rest, where this site is the arbiter's; null: it may
   * rest here.
   */
  seat({ name, epoch, heirs }: Pick<Home, "name" | "epoch" | "heirs">): SiteId | null {
    return this.#seats?.of(name, epoch, heirs) ?? null;
  }

  /** Notes that a site that was to have a session did not take it. */
  seatRefused({ name, epoch }: Pick<Home, "name" | "epoch">, by: SiteId): void {
    this.#seats?.refused(name, epoch, by);
  }

  #newSeats(arbitration: Arbitration): Seats | null {
    const { site, nowMs, fellows } = this.#ports;
    const { nearest } = fellows;
    return nearest === undefined ? null : new Seats({
      ...{ site, nowMs, nearest },
      f: () => fellows.f,
      gone: (one) => this.#watches.gone(one),
      look: (name) => arbitration.handle(site, { kind: "look", name }),
      invite: (one, name) => this.#seated(one, name),
    });
  }

  async #seated(one: SiteId, name: StatefulName): Promise<boolean> {
    const asking = this.#exchange.ask(one, { kind: "invite", name });
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const cancel = this.#ports.clock.after(SEAT_MS_MAX, () => resolve(null));
    const reply = await Promise.race([asking.reply, late]);
    cancel();
    asking.cancel();
    this.#count(reply?.kind === "held" ? "seated" : "seat_refused");
    return reply?.kind === "held";
  }

  // ── Opening ──

  /**
   * Makes this site the session's home, where no site is, or none that lives; or opens it again where this site is.
   *
   * @param version of the code to run, where nothing is known of the session yet.
   * @param forced true: without waiting for clients that hold its log; "ends": also from nothing, where its disks are
   * lost.
   * @param isHere true: at this site and no other, also where it is the arbiter's (seats.ts). A forced opening is so,
   * too.
   * @throws HomeError `elsewhere` (with the site), `superseded`, `stateful_unreachable`, `arbiter_unreachable`,
   * `closed`, `limit_stateful`, `overloaded`.
   */
  async open(
    name: StatefulName,
    version: string,
    forced: Forced = false,
    isHere = forced !== false,
  ): Promise<OpenedSession> {
    this.#serving();
    checkName(name);
    this.#room.checkFor(`open ${shownName(name)}`);
    const key = keyOf("", name);
    const resting = this.#homes.get(name);
    if (this.#opening.has(key) || resting?.isResting === false) {
      throw new Error(`${shownName(name)} is open here, or being opened`);
    }
    this.#opening.add(key);
    try {
      let mayLeave = this.#seats !== null && !isHere;
      if (mayLeave && resting === undefined) mayLeave = await this.#instead(name);
      const opened = resting === undefined
        ? await this.#open(name, version, forced)
        : await this.#wake(resting.live);
      return mayLeave ? await this.#unlessItLeaves(opened) : opened;
    } finally {
      this.#opening.delete(key);
      this.#granted.delete(key);
    }
  }

  /**
   * Has another site open a session without a home, at the arbiter's site.
   *
   * @returns true where the session is at home here, and may leave. @throws HomeError `elsewhere`, where another opens
   * it
   */
  async #instead(name: StatefulName): Promise<boolean> {
    const { site } = this.#ports;
    const { to, mayLeave } = await this.#seats?.opener(name) ?? { to: site, mayLeave: false };
    this.#serving();
    if (to !== site) throw this.#isElsewhere(name, to);
    return mayLeave;
  }

  #isElsewhere(name: StatefulName, to: SiteId): HomeError {
    this.#routes.set(keyOf("", name), to);
    return new HomeError("elsewhere", `cannot open ${shownName(name)}: its home is ${to}`, to);
  }

  /**
   * Moves a session that is at home at the arbiter's site away before it is run (SE4). @throws HomeError `elsewhere`,
   * where it has left
   */
  async #unlessItLeaves(opened: OpenedSession): Promise<OpenedSession> {
    const live = this.#homes.get(opened.name)?.live;
    if (live === undefined || this.#leaving >= SEAT_MOVES_MAX) return opened;
    const owners = live.owners.map(({ site }) => site);
    const to = this.#seats?.of(live.name, live.epoch, owners) ?? null;
    const { bytes } = this.#keepers.log(live.name) ?? { bytes: 0 };
    if (to === null || bytes > SEAT_BYTES_MAX) return opened;
    const home = opened.start([]);
    this.#leaving++;
    try {
      await home.moveTo(to);
      this.#count("seat_moves");
    } catch {
      if (live.overBy !== null) throw live.overBy;
      this.#seats?.refused(live.name, live.epoch, to);
      await home.rest();
      return await this.#wake(live);
    } finally {
      this.#leaving--;
    }
    throw this.#isElsewhere(live.name, to);
  }

  /**
   * Makes a session with an id that says where it was born: the root need not be asked. @throws HomeError as `open`.
   */
  async create(
    { app, class: className }: { readonly app: string; readonly class: string },
    version: string,
  ): Promise<OpenedSession> {
    this.#serving();
    const { name, owners, copy } = await this.#born({ app, class: className }, version);
    const promised = new Map(owners.map(({ site, disk }) => [site, { disk, aligned: false, log: null }]));
    const row = { epoch: 1, config: 0, owners };
    const live = this.#begin({ name, row, promised, isBorn: true, copy });
    // Nobody is told the session's name before all its owners know it (H2).
    await this.#within(live.joined(), () =>
      live.end(
        new HomeError(
          "stateful_unreachable",
          `cannot make a stateful session: not all that are to keep its log answer`,
        ),
      ));
    return this.#opened(live, copy);
  }

  /** Begins a new session on this disk, under a number that the arbiter knows. */
  async #born({ app, class: className }: { readonly app: string; readonly class: string }, version: string) {
    const { site, random, nowMs } = this.#ports, untilMs = nowMs() + OPEN_MS_MAX;
    for (;;) {
      const birth = await this.#births.current(untilMs);
      const id = birthId({ site, number: birth.number }, random.bytes(16));
      const name = { app, class: className, id };
      checkName(name);
      const copy = { seed: random.bytes(SEED_BYTES), version, base: null, parts: [], pieces: [] };
      await alignOwn(this.#recoveryPorts(), { name, epoch: 1, copy, mine: null });
      if (!this.#births.isLapsed(birth)) return { name, owners: birth.owners, copy };
      await this.#keepers.forgetFormer(name, 2); // BR1: it has promised 1
    }
  }

  #serving(): void {
    if (this.#closing !== null) throw this.#closing;
  }

  async #open(name: StatefulName, version: string, forced: Forced): Promise<OpenedSession> {
    const { site, nowMs } = this.#ports;
    const head = this.#keepers.log(name)?.head;
    const recovery = new HomeRecovery(this.#recoveryPorts(), name, version, nowMs() + OPEN_MS_MAX);
    const recovered = await recovery.run(head?.by === site ? head.promised : 0, forced);
    this.#serving();
    if (this.#keepers.log(name)?.head.promised !== recovered.row.epoch) {
      throw overtaken(name);
    }
    this.#count(recovered.row.epoch === 1 ? "claimed" : "recovered");
    return this.#opened(this.#begin({ name, ...recovered }), recovered.copy);
  }

  /** Opens a session that rests here: its log is on the own disk. */
  async #wake(live: LiveHome): Promise<OpenedSession> {
    const { site, nowMs } = this.#ports;
    const recovery = new HomeRecovery(this.#recoveryPorts(), live.name, "", nowMs() + OPEN_MS_MAX);
    const copy = await recovery.fetch(site, this.#keepers.disk, live.epoch);
    if (live.overBy !== null) throw live.overBy;
    if (copy === null) throw unreadable(live.name);
    this.#count("woken");
    this.#homes.wakes(live);
    return this.#opened(live, copy);
  }

  #begin(
    { copy: { seed, version }, ...start }: Omit<LiveHomeStart, "seed" | "version" | "disk"> & {
      readonly copy: LogCopy;
    },
  ): LiveHome {
    const live = new LiveHome(this.#live, { ...start, seed, version, disk: this.#keepers.disk });
    this.#homes.begins(live);
    return live;
  }

  #opened(live: LiveHome, copy: LogCopy): OpenedSession {
    return new Opening(this.#openHomes, live, copy);
  }

  #openPorts(): OpenHomePorts {
    const { nowMs, site, batchBytes = LOG_PACKET_BYTES_TARGET } = this.#ports;
    return {
      ...{ nowMs, batchBytes, room: this.#room, disk: () => this.#keepers.disk },
      own: (ask) => this.#keepers.handle(site, ask),
      log: (name) => this.#keepers.log(name),
      rested: (live) => this.#homes.rests(live),
      invite: (to, name) => void this.#invite(to, name),
      moveArbiter: this.#moveArbiter(),
    };
  }

  /**
   * Tells a site to open a session. Where that is not heard, a site that asks the arbiter says it again. Resolves when
   * the site says that it does not.
   */
  #invite(to: SiteId, name: StatefulName): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    void this.#tell(to, { kind: "invite", name }).then((reply) => {
      if (reply.kind === "nobody") resolve();
    });
    return promise;
  }

  /** Asks for as long as an opening may take; the promise never settles after that. */
  #tell(to: SiteId, ask: SiteAsk): Promise<Reply> {
    const asking = this.#exchange.ask(to, ask);
    const cancel = this.#ports.clock.after(OPEN_MS_MAX, () => asking.cancel());
    void asking.reply.then(cancel);
    return asking.reply;
  }

  /**
   * Reports whether a site that `Home.moveTo` named has taken a session over. Where it has not within a while it is not
   * to any more, and the session may be opened here again.
   */
  async whenTaken(moved: MovedHome, withinMs: number): Promise<boolean> {
    const { name, to } = moved;
    const taken = await takenOver(this.#moveArbiter(), moved, withinMs, this.#invite(to, name));
    if (!taken) this.#routes.forget(keyOf("", name));
    return taken;
  }

  /** Takes nothing over any more: this site is about to stop. */
  leave(): void {
    this.#isLeaving = true;
  }

  #moveArbiter(): MoveArbiter {
    const { clock, arbiter } = this.#ports;
    return {
      after: (ms, callback) => clock.after(ms, callback),
      ask: (ask) => this.#exchange.ask(arbiter(), ask),
    };
  }

  /** Waits for as long as an opening may take; after that calls `give`, which gives up. */
  async #within(done: Promise<void>, give: () => void): Promise<void> {
    const cancel = this.#ports.clock.after(OPEN_MS_MAX, give);
    await done.finally(cancel);
  }

  // ── What the parts need ──

  #recoveryPorts(): RecoveryPorts {
    const { site, nowMs, clock, random, arbiter, fellows } = this.#ports;
    return {
      site,
      disk: () => this.#keepers.disk,
      nowMs,
      after: (ms, callback) => clock.after(ms, callback),
      random: (length) => random.bytes(length),
      ask: (to, ask) => this.#exchange.ask(to, ask),
      arbiter,
      isLost: (one) => this.#watches.isLost(one),
      look: (one) => fellows.look(one),
      onLost: (changed) => fellows.onChange(changed),
      learned: (name, one) => this.#routes.set(keyOf("", name), one),
      granted: (name, epoch) => void this.#granted.set(keyOf("", name), epoch),
      invite: (one, name) => void this.#invite(one, name),
      ...{ hosts: this.#ports.hosts, forcedMs: this.#ports.forcedMs ?? FORCED_MS },
      lostMs: this.#ports.lostMs ?? LOST_MS,
      count: (name) => this.#count(name),
    };
  }

  /** Returns the ports of a live home: one object for all homes, of which there may be many. */
  #livePorts(): LiveHomePorts<LiveHome> {
    const { site, nowMs, arbiter, fellows, note, fatal } = this.#ports;
    return {
      site,
      nowMs,
      arbiter,
      note,
      ask: (to, what) => this.#exchange.ask(to, what),
      tell: (to, what) => void this.#tell(to, what),
      // Where the disk has failed the site stops, and says no more.
      ended: (name, epoch) =>
        this.#keepers.ended(name, epoch, this.#ports.clock.nowMs()).catch(() => new Promise<void>(() => {})),
      last: () => fellows.nearest === undefined ? null : arbiter(),
      f: () => fellows.f,
      // With the arbiter as its owner a home that loses it could ask nobody for another.
      choose: (kept, without) => fellows.choose(kept, without, arbiter()),
      isKnown: (one) => fellows.isKnown(one),
      standing: (one) => fellows.standing(one),
      watch: (one) => fellows.watch(one),
      ...ownLogs(this.#keepers, site, fatal),
      count: (what) => this.#count(what),
      over: (home, error) => this.#over(home, error),
    };
  }

  #over(live: LiveHome, error: HomeError): void {
    const { code, site } = error;
    this.#homes.over(live);
    // This disk may not have heard of the next home.
    if (code === "superseded") this.#routes.set(keyOf("", live.name), site);
    // The part that ended it is in the middle of something.
    queueMicrotask(() => this.#ports.onOver?.(live.name, live.epoch, error));
  }

  /** Ends the home of a log on this disk of which another site has the promise. */
  #fenced(name: StatefulName, epoch: number, by: SiteId): void {
    const entry = this.#homes.get(name);
    if (entry !== undefined && epoch > entry.live.epoch) {
      entry.live.supersede(`${by} has promised epoch ${epoch}`, by);
    }
  }

  /** Sees to a log on this disk that has changed. */
  #changed(log: KeptLog, news: LogNews | null): void {
    const gone = news?.kind === "gone";
    if (news !== null) this.#ports.onLog?.(log, news);
    this.#due.changed(log, news, this.#ports.clock.nowMs());
    if (!gone && log.open > 0) this.#leftOpen.set(log, this.#ports.nowMs());
    else this.#leftOpen.delete(log);
    const { by } = log.head;
    const isWatched = !gone && (log.wakeAtMs !== 0 || log.hasLeftOpen);
    this.#watches.ofHome(keyOf("", log.name), isWatched ? by : null);
    if (!gone && by !== this.#ports.site) this.#routes.forget(keyOf("", log.name));
  }

  /**
   * Least version that a log on this disk says to be open (ports.ts, `openOf`), of those written lately; Infinity: none
   * does.
   */
  get leastOpen(): number {
    const sinceMs = this.#ports.nowMs() - OPEN_HELD_MS;
    let least = Infinity;
    for (const [{ open }, writtenMs] of this.#leftOpen) {
      if (writtenMs >= sinceMs && open > NO_VERSION) least = Math.min(least, open);
    }
    return least;
  }

  #isAtHome(name: StatefulName): boolean {
    return this.#homes.get(name) !== undefined || this.#opening.has(keyOf("", name));
  }

  #duePorts(): DuePorts {
    const { site, due } = this.#ports;
    const isLost = (one: SiteId) => this.#watches.isLost(one);
    return {
      ...{ site, isLost, open: due, tell: (one, name) => void this.#invite(one, name) },
      whose: (name) => {
        const entry = this.#homes.get(name);
        if (this.#opening.has(keyOf("", name)) || this.#closing !== null || entry?.isResting === false) {
          return null;
        }
        const by = this.#keepers.log(name)?.head.by ?? null;
        return entry !== undefined || (by !== null && isLost(by)) ? site : by;
      },
      // A session that has ended is not begun again by a timer that its log still has.
      recorded: async (name) => this.#homes.get(name) !== undefined ? site : await this.#audit.home(name),
    };
  }

  // ── Others ──

  /** Takes a packet of another site. @throws CodecError for bytes that are none. */
  received(from: SiteId, packet: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#ports.fellows.isKnown(from)) this.#exchange.received(from, packet);
    else this.#count("packet_stranger");
  }

  #handle(from: SiteId, ask: SiteAsk): Promise<Reply> {
    if (ask.kind === "invite") {
      if (this.#closing !== null || this.#isLeaving) return Promise.resolve({ kind: "nobody" });
      if (!this.#isAtHome(ask.name)) this.#ports.due(ask.name);
      return Promise.resolve({ kind: "held", through: 0 });
    }
    if (isRecall(ask)) return this.#recall(ask);
    if (!isForArbiter(ask)) return this.#kept(from, ask);
    return this.#arbitration?.handle(from, ask) ?? Promise.resolve({ kind: "nobody" });
  }

  /**
   * Answers an ask to the keepers; at the arbiter's own site when it is known whether its disk of logs went back
   * (arbitration.ts, AB1).
   */
  async #kept(from: SiteId, ask: KeeperAsk): Promise<Reply> {
    const known = this.#arbitration?.known ?? null;
    if (known !== null) await known;
    return await this.#keepers.handle(from, ask);
  }

  /**
   * Notes that the store of this site is an older copy of itself: so may be what the arbiter has, where it is here.
   *
   * @param site that has had more of it.
   */
  storeWentBack(site: SiteId): void {
    this.#arbitration?.storeWentBack(site);
  }

  /** Ends all homes, which went by what this disk had, and makes it another disk (K8). */
  #wentBack(): Promise<void> {
    for (const live of [...this.#homes.all()]) live.supersede("this site's disk of logs went back");
    return this.#keepers.wentBack(drawDisk(this.#ports.random));
  }

  /** Answers what the arbiter asks of this site. */
  #recall(ask: RecallAsk): Promise<Reply> {
    const { recollection } = this.#keepers;
    switch (ask.kind) {
      case "witness":
        return recollection.witness();
      case "names":
        if (ask.after === null) this.#births.lapse(); // BR1
        return recollection.names(ask.after);
      case "recall": {
        const { name } = ask;
        const home = this.#homes.get(name)?.live.word ?? null;
        const granted = this.#granted.get(keyOf("", name)) ?? 0;
        return recollection.recall(name, this.#keepers.log(name), { home, granted });
      }
    }
  }

  #standing(site: SiteId, standing: Standing): void {
    if (standing === "alive") this.#exchange.again(site);
    for (const live of this.#homes.all()) live.changed(site);
  }

  #tickLater(): void {
    this.#cancelTick = this.#ports.clock.after(TICK_MS, () => {
      this.#tickLater();
      this.#exchange.tick();
      this.#watches.tick();
      this.#due.tick(this.#ports.clock.nowMs());
      this.#audit.tick(this.#arbitration?.arbiter ?? null);
      this.#arbitration?.tick();
      this.#homes.tick();
    });
  }

  // ── For operators ──

  /** Returns rows of the arbiter by name, after `after`; at the root only. */
  rows(
    options: { readonly app?: string; readonly after?: StatefulName; readonly limit: number },
  ): Promise<HomeRow[]> {
    if (this.#arbitration === null) throw new Error(`site ${this.#ports.site} is no arbiter`);
    return this.#arbitration.arbiter.rows(options);
  }

  /** Returns what this disk has of a log, for checkers. */
  debugLog(name: StatefulName): KeptLog | undefined {
    return this.#keepers.log(name);
  }

  status(): HomesStatus {
    const { disk, size: kept, bytes: keptBytes } = this.#keepers;
    const arbiter = this.#arbitration?.status ?? null;
    return { arbiter, disk, ...this.#homes.counts, kept, keptBytes, counters: { ...this.#counters } };
  }

  /** Counts the logs that are on this disk alone, as far as is known (sole_logs.ts); before `close`. */
  sole(): Promise<number> {
    const { site, clock } = this.#ports;
    return soleLogs({
      ...{ site, disk: this.#keepers.disk },
      logs: () => this.#keepers.all(),
      owners: (name) => this.#homes.get(name)?.live.owners ?? null,
      recorded: (name) => this.#audit.record(name),
      gone: (one) => this.#watches.gone(one),
      after: (ms, callback) => clock.after(ms, callback),
    });
  }

  /** Returns a log as this disk has it; null: there is none here. */
  kept(name: StatefulName): Promise<KeptCopy | null> {
    return keptCopy(this.#keepers, name);
  }

  /**
   * Serves nothing any more. Resolves when all that was appended is held, or has waited `waitMs`, and nothing is
   * written.
   */
  async close(waitMs = 2_000): Promise<void> {
    if (this.#closing !== null) return;
    const error = this.#closing = new HomeError("closed", `site ${this.#ports.site} is stopping`);
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#ports.clock.after(waitMs, resolve);
    const settled = [...this.#homes.all()].map((live) => live.whenHeld(live.last).catch(() => {}));
    await Promise.race([Promise.all(settled), late]);
    cancel();
    this.#isClosed = true;
    for (const live of [...this.#homes.all()]) live.end(error);
    this.#cancelTick();
    this.#forget();
    this.#watches.close();
    const arbitrated = this.#arbitration?.close();
    this.#exchange.close();
    await arbitrated; // Its last step ends on the disk of logs, too (arbitration.ts AB4).
    await this.#keepers.close();
  }

  #count(name: string, by = 1): void {
    this.#counters[name] = (this.#counters[name] ?? 0) + by;
  }
}
