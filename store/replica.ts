/**
 * The replica of one site: its parts put together, and the pump that drives them.
 *
 * Stages: load → (hello to the parent → number → system ranges → after the loss of its disk: each child it had
 * has pushed again → its owners have given back what they held (wards/retake.ts)) → ready → … → closed.
 *
 * The pump: events apply changes and wake it; it freezes all that was applied into one commit, waits for the
 * disk, and only then tells others: writers that wait, the parent, the children.
 *
 * Q1  One commit at a time; what leaves the site was committed before, and speaks of the head of that commit
 *     (PROTOCOL I1).
 * Q2  A mark's stable clock was drawn at its freeze, after every row of it and before every later one (I4, I5),
 *     and is never above what the disk has of the clock.
 * Q3  A failed commit ends the replica: nothing is acknowledged any more.
 */
import {
  type AttachedSession,
  type Replica,
  type ReplicaConfig,
  type ReplicaPorts,
  type ReplicaStatus,
  StoreUnavailable,
  type TokenState,
} from "./api/api.ts";
import { Collector } from "./tree/collector.ts";
import { Core, type Mark } from "./core/core.ts";
import { Downlinks } from "./tree/downlinks.ts";
import { type ArrivingSession, Handoff } from "./session/handoff.ts";
import { Inboxes } from "./core/inboxes.ts";
import type { Key } from "./model/key.ts";
import { CLOCK_RESERVE_MS, COLLECTIONS_PER_HORIZON, MARK_IDLE_MS } from "./model/limits.ts";
import { Durability } from "./session/durability.ts";
import { Past } from "./change/past.ts";
import { Numbers } from "./change/numbers.ts";
import type { SiteId } from "./model/ports.ts";
import { type Range, WHOLE } from "./model/range.ts";
import type { Frozen } from "./rows/rows.ts";
import { CLOCK_TICKS_PER_MS, type ClockValue, type Position } from "./model/row.ts";
import { introduceRoot } from "./root.ts";
import { Scrub } from "./rows/scrub.ts";
import { type SessionReplica, StoreSession } from "./session/session.ts";
import { openMembers } from "./change/members.ts";
import { SiteOwners } from "./owners/site_owners.ts";
import { replicaStatus } from "./status.ts";
import { mergedArrival } from "./session/merged_arrival.ts";
import { assertRooted } from "./core/lost.ts";
import { loadState, saveState } from "./core/state.ts";
import { isTalk, siteMessageOf } from "./talk.ts";
import { Timekeeper } from "./tree/timekeeper.ts";
import { SYSTEM_RANGE } from "./members/topology.ts";
import { Uplink } from "./tree/uplink.ts";
import type { Doubt } from "./model/wall.ts";
import { Warming } from "./session/warming.ts";
import { wantedOwners } from "./wards/wanted.ts";
import { Wards } from "./wards/wards.ts";

/** Name of the record that is there as long as this site resyncs (Core.resyncing). */
const RESYNC = "resync";

const ATTACH_COUNTERS = {
  same: "attach_same",
  nothing: "attach_nothing",
  carry: "attach_carry",
  wait: "attach_wait",
} as const satisfies Record<ArrivingSession["how"], string>;

export class SiteReplica implements Replica {
  readonly site: SiteId;
  readonly ready: Promise<void>;
  readonly system: Replica["system"];
  readonly members: Replica["members"];
  readonly owners: SiteOwners;
  readonly #core: Core;
  readonly #uplink: Uplink | null;
  readonly #downlinks: Downlinks;
  readonly #handoff: Handoff;
  readonly #collector: Collector;
  readonly #past: Past;
  readonly #warming: Warming;
  readonly #numbers: Numbers;
  readonly #inboxes: Inboxes;
  readonly #ready = Promise.withResolvers<void>();
  readonly #wards: Wards;
  readonly #durability: Durability;
  readonly #timekeeper: Timekeeper;
  #awake = false;
  #isReady = false;
  #pumping: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => {};
  #cancelCollect: () => void = () => {};
  #scrub: Scrub | null = null;
  #failure: Error | null = null;

  constructor(core: Core) {
    this.#core = core;
    this.site = core.config.site;
    this.ready = this.#ready.promise;
    this.ready.catch(() => {});
    this.#inboxes = new Inboxes({
      clock: core.ports.clock,
      isClosed: () => core.closed,
      fail: (error) => this.#fail(error),
    });
    const { parent } = core.config;
    this.#uplink = parent === null ? null : new Uplink(core, () => this.#downlinks.again());
    this.#numbers = new Numbers(
      core,
      this.#uplink === null ? null : (claim) => (this.#uplink as Uplink).number(claim),
    );
    this.#downlinks = new Downlinks(core, {
      number: (claim) => this.#numbers.give(claim),
      durable: () => this.#durability.onDisk(core.rows.head),
      fetch: ({ range, limit, reverse, trace }) =>
        this.#uplink?.fetch(range, limit, reverse, trace) ?? Promise.resolve(),
      eager: () => this.#uplink?.eager(),
      wall: (child, ms) => this.#timekeeper.told(child, ms),
      ahead: (child, ms) => this.#timekeeper.refused(child, ms),
      isSafe: (position) => this.#wards.source.mayFeed(position),
      safe: (position) => this.#durability.fed(position),
    });
    this.#timekeeper = new Timekeeper(core, {
      tell: (ms) => this.#uplink?.tellWall(ms),
      tellBelow: (ms) => this.#downlinks.tellWall(ms),
      children: () => this.#downlinks.all(),
    });
    this.owners = new SiteOwners(core);
    this.#wards = new Wards(core, {
      wanted: (current, isFull) => wantedOwners(core, this.owners, current, isFull),
      policy: () => this.owners.settings.unreachable,
      moved: () => this.#durability.tell(),
      afterCommit: () => this.#durability.recorded(),
      stableOwn: () => this.#stableNow(),
      fail: (error) => this.#fail(error),
    });
    this.#durability = new Durability(core, this.#wards.source);
    const eager = () => this.#uplink?.eager();
    this.#handoff = new Handoff(core, {
      ...{ stableOwn: () => this.#stableNow(), eager, wards: this.#wards },
      ahead: (ms) => this.#timekeeper.refusedSession(ms),
    });
    this.#collector = new Collector(core, this.#uplink, this.#downlinks);
    this.#past = new Past(core);
    this.#warming = new Warming(core, this.#uplink);
    const durable = (position: Position) => this.#durability.safe(position);
    const host: SessionReplica = {
      ...{ core, uplink: this.#uplink, warming: this.#warming, durable },
      isDurable: (position) => this.#durability.isSafe(position),
      arrive: (token, trace) => this.#handoff.arrive(token, trace),
      whole: (token, stop) => this.#handoff.whole(token, stop),
      arrived: (token, arrival) => this.#noteArrival(token, arrival),
    };
    const system = () =>
      new StoreSession({ ...host, warming: null }, { id: new Uint8Array(16), sequence: 0, clock: 0 }, {
        how: "new",
        rows: 0,
        bytes: 0,
        path: [],
      });
    this.system = {
      get: (keys) => system().get(keys),
      list: (range, options) => system().list(range, options),
      write: (mutations, checks) => system().write(mutations, checks),
      watch: (ranges, changed) => system().watch(ranges, changed),
      durable: () => durable(core.rows.head),
    };
    this.members = openMembers(
      core,
      this.#downlinks.removals,
      (position) => this.#durability.onDisk(position),
      () => this.owners.leaves(),
    );
    this.#host = host;
    core.damage.serve({
      uncovered: (keys) => {
        this.#uplink?.uncovered(keys);
        this.#downlinks.uncovered(keys);
        core.wake();
      },
      lost: () => this.#wards.regain(),
    });
    core.onWake(() => this.#wake());
  }

  readonly #host: SessionReplica;

  /** Loads the disk and starts the pump. */
  async start(): Promise<void> {
    const core = this.#core;
    const records = await core.ports.storage.load();
    this.#numbers.restore(
      await loadState(
        core,
        records,
        (name, value) => this.#downlinks.restore(name, value) || this.#wards.restore(name, value),
      ),
    );
    assertRooted(core);
    this.#wards.loaded();
    core.jump();
    core.wardsLeast = this.#wards.least;
    core.resyncing = !core.isRoot && (core.replica === 0 || records.has(RESYNC));
    if (core.resyncing) core.rows.record(RESYNC, new Uint8Array());
    this.#collector.sweepTo(core.rows.head);
    await this.#downlinks.removals.sweep();
    if (core.isRoot) await this.#startRoot();
    this.#scheduleCollect();
    this.#scrub = new Scrub({
      ...core.ports,
      failed: (error) => this.#fail(error),
    });
    this.#checkReady();
    this.#wake();
  }

  async #startRoot(): Promise<void> {
    const core = this.#core;
    if (core.replica === 0) {
      core.replica = 1;
      core.coverage.add(WHOLE);
      core.setPath([]);
    }
    await introduceRoot(core);
  }

  #checkReady(): void {
    const core = this.#core;
    if (core.replica === 0 || !core.coverage.hasRange(SYSTEM_RANGE)) return;
    this.#downlinks.answerEarly().catch((error) => this.#fail(error));
    if (this.#isReady) return;
    if (core.resyncing) {
      if (!this.#downlinks.haveAllPushed || !this.#wards.isRetaken(() => this.#checkReady())) return;
      core.resyncing = false;
      core.rows.record(RESYNC, null);
      this.#downlinks.resynced();
    }
    this.#isReady = true;
    this.#ready.resolve();
    this.#wards.ready();
    this.members.back().then(() => this.owners.ready()).catch((error) => this.#fail(error));
  }

  // ── Sessions ──

  attach(token: TokenState | null, trace = ""): AttachedSession | Promise<AttachedSession> {
    const isServing = this.#failure === null && !this.#core.closed && this.#isReady;
    return isServing ? this.#attach(token, trace) : this.#serving().then(() => this.#attach(token, trace));
  }

  #attach(token: TokenState | null, trace: string): AttachedSession | Promise<AttachedSession> {
    if (token === null) {
      const identity = { id: this.#core.ports.random.bytes(16), sequence: 0, clock: 0 };
      return new StoreSession(this.#host, identity, { how: "new", rows: 0, bytes: 0, path: [] });
    }
    const arrival = this.#handoff.arrive(token, trace);
    if (!(arrival instanceof Promise)) return this.#arrived(token, arrival);
    return this.#asOne(() => arrival, () => this.#attach(token, trace), (came) => this.#arrived(token, came));
  }

  /**
   * Takes what has come if this site is the same incarnation still, or asks for it again: paths of another mean
   * nothing.
   */
  async #asOne<T, R>(came: () => Promise<T>, again: () => R | Promise<R>, done: (came: T) => R): Promise<R> {
    const { replica } = this.#core;
    const what = await came();
    return this.#core.replica === replica ? done(what) : await again();
  }

  #arrived(token: TokenState, arrival: ArrivingSession): AttachedSession {
    const clock = this.#noteArrival(token, arrival);
    return new StoreSession(this.#host, { id: token.session, sequence: token.sequence, clock }, arrival);
  }

  #noteArrival(token: TokenState, arrival: ArrivingSession): ClockValue {
    this.#core.count(ATTACH_COUNTERS[arrival.how]);
    this.#warming.arrived(token.session, token.replica);
    return this.#clockOf(token);
  }

  /**
   * Returns the clock that a token stands for here. Rows that a session wrote after it was given an open token are
   * older than what has come here of them by now; and so are rows that it saw at a site that took a new number since,
   * by whose clock others can't tell whether they have them.
   */
  #clockOf(token: TokenState): ClockValue {
    const { topology } = this.#core;
    const isOld = token.open || topology.succession.nextOf(token.replica) !== undefined ||
      topology.movingSince(token.replica, 0) < Infinity;
    return isOld ? Math.max(token.clock, this.#core.clock.last) : token.clock;
  }

  async attachAll(tokens: readonly TokenState[], trace = ""): Promise<AttachedSession> {
    const [first] = tokens;
    if (first === undefined) return await this.attach(null);
    await this.#serving();
    return await this.#asOne(
      () => Promise.all(tokens.map(async (token) => await this.#handoff.arrive(token, trace))),
      () => this.attachAll(tokens, trace),
      (arrivals) => this.#arrivedAll(first, tokens, arrivals),
    );
  }

  #arrivedAll(
    first: TokenState,
    tokens: readonly TokenState[],
    arrivals: readonly ArrivingSession[],
  ): AttachedSession {
    for (const token of tokens) this.#warming.arrived(token.session, token.replica);
    const { identity, arrival } = mergedArrival(first, tokens, arrivals, this.#core.depth);
    this.#core.count(ATTACH_COUNTERS[arrival.how]);
    const clock = Math.max(identity.clock, ...tokens.map((token) => this.#clockOf(token)));
    return new StoreSession(this.#host, { ...identity, clock }, arrival);
  }

  async #serving(): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    if (this.#core.closed) throw new StoreUnavailable("closed", `site ${this.site} is stopping`);
    if (!this.#isReady) await this.ready;
  }

  // ── Neighbours ──

  #linkChanged(site: SiteId): void {
    this.#downlinks.linkEnded(site);
    this.#inboxes.next(site);
  }

  connected(site: SiteId, role: "parent" | "child" | "peer"): void {
    this.#wards.connected(site);
    if (role === "peer") return;
    this.#linkChanged(site);
    this.#inboxes.enqueue(site, () => {
      if (role === "parent") this.#uplink?.connect();
      else this.#downlinks.connect(site);
    });
  }

  disconnected(site: SiteId): void {
    this.#wards.disconnected(site);
    if (!this.#inboxes.has(site)) return;
    this.#linkChanged(site);
    // At once, since what is queued is void with the next link (inboxes.ts B4). The site may have been a child until this
    // one was moved below it, and be the parent over that link.
    this.#downlinks.disconnect(site);
    this.#inboxes.enqueue(site, () => {
      if (site === this.#core.config.parent) this.#uplink?.disconnect();
    });
  }

  unreachable(site: SiteId): void {
    this.#wards.unreachable(site);
  }

  move(to: SiteId, lost: readonly SiteId[] = []): void {
    const { config } = this.#core;
    if (config.parent === null || this.#uplink === null) throw new Error("the root has no parent to leave");
    const before = config.parent;
    if (to !== before) {
      // Nothing that the old parent still says is heard, and its goodbye is nobody's.
      this.#inboxes.next(before);
      this.#uplink.disconnect();
    }
    // At once: what waits in the inboxes of two new parents may happen in any order (inboxes.ts B3).
    this.#core.moveTo(to, lost);
    if (to === before) this.#inboxes.enqueue(to, () => this.#uplink?.retell());
  }

  receive(from: SiteId, bytes: Uint8Array): void {
    const message = siteMessageOf(this.#core, from, bytes);
    if (message === null || isTalk(from, message, this.#listeners)) return;
    this.#inboxes.enqueue(from, async () => {
      if (from === this.#core.config.parent) await this.#uplink?.receive(message);
      else await this.#downlinks.receive(from, message);
      await this.#downlinks.removals.sweep();
      this.#checkReady();
    });
  }

  get #listeners() {
    const { adoptions } = this.#downlinks, { owners } = this;
    const fail = (error: unknown) => this.#fail(error);
    return { owners, handoff: this.#handoff, wards: this.#wards, adoptions, warming: this.#warming, fail };
  }

  // ── The pump ──

  #wake(): void {
    if (this.#awake || this.#core.closed) return;
    this.#awake = true;
    this.#pumping = this.#pumping.then(() => this.#pump()).catch((error) => this.#fail(error));
  }

  async #pump(): Promise<void> {
    await this.#core.ports.clock.turn();
    this.#awake = false;
    if (this.#core.closed || this.#failure !== null) return;
    await this.#commitAndTell();
  }

  async #commitAndTell(): Promise<void> {
    const core = this.#core;
    this.#cancelTimer();
    this.#timekeeper.look();
    this.#wards.prepare();
    const mark = this.#mark();
    this.#downlinks.prepare();
    const frozen = core.rows.freeze(), recorded = this.#durability.freeze();
    if (frozen.head !== mark.head) {
      throw new Error(`what leaves would speak of ${mark.head}, and ${frozen.head} is committed (Q1)`);
    }
    const { rows, drop, records } = frozen.commit;
    if (rows.length > 0 || drop.length > 0 || records.size > 0) await this.#commit(frozen); // Q1
    if (frozen.head > core.rows.committedHead) core.headClock = mark.clock;
    core.rows.settle(frozen);
    core.damage.committed(frozen.changes);
    recorded();
    this.#durability.tell();
    this.#uplink?.committed(frozen);
    this.#downlinks.committed(frozen);
    this.#wards.committed(frozen);
    const waits = await Promise.all([
      this.#uplink?.flush(mark) ?? MARK_IDLE_MS,
      this.#downlinks.flush(mark),
      this.#wards.flush(mark),
    ]);
    core.rows.told();
    await this.#collector.dropUncovered();
    if (rows.length > 0) await this.#collector.evictToCapacity();
    core.advanced();
    if (!this.#awake) {
      this.#cancelTimer = core.ports.clock.after(Math.max(1, Math.min(...waits)), () => this.#wake());
    }
  }

  async #commit(frozen: Frozen): Promise<void> {
    try {
      await this.#core.ports.storage.commit(frozen.commit);
      this.#core.count("commits");
    } catch (error) {
      throw new StoreUnavailable("disk_failed", `site ${this.site} could not write to its disk: ${error}`);
    }
  }

  /** Makes the mark that the coming commit's messages say (Q2). */
  #mark(): Mark {
    const core = this.#core;
    const clock = core.clock.tick();
    const stable = core.resyncing ? 0 : Math.min(clock, this.#downlinks.stable());
    if (clock > core.clockBound || core.rows.dirty) {
      core.clockBound = clock + CLOCK_RESERVE_MS * CLOCK_TICKS_PER_MS;
      saveState(core);
    }
    const floor = core.resyncing ? 0 : Math.min(core.floor, this.#downlinks.floor);
    core.floorSaid = Math.max(core.floorSaid, floor);
    if (core.isRoot) {
      const known = Math.min(core.topology.succession.bound(stable), floor);
      core.watermark = Math.max(core.watermark, Math.min(known, core.clock.wall(core.horizonMs)));
    }
    return {
      replica: core.replica,
      partial: core.resyncing,
      head: core.rows.head,
      clock,
      down: core.down,
      stable: [...core.stable, stable],
      reach: core.reach.map((steps) => steps.last),
      floor,
      isFull: core.isHolding,
      watermark: core.watermark,
    };
  }

  #stableNow(): number {
    return Math.min(this.#core.clock.last, this.#downlinks.stable());
  }

  #scheduleCollect(): void {
    const everyMs = this.#core.horizonMs / COLLECTIONS_PER_HORIZON;
    this.#cancelCollect = this.#core.ports.clock.after(everyMs, () => {
      this.#core.wardsLeast = this.#wards.least;
      this.#collector.collect().then(() => this.#past.sweep()).catch((error) => this.#fail(error));
      this.#scheduleCollect();
    });
  }

  /** Ends the replica (Q3). */
  #fail(error: unknown): void {
    if (this.#failure !== null || this.#core.closed) return;
    this.#failure = error instanceof Error ? error : new Error(String(error));
    this.#durability.end(this.#failure);
    this.#cancelTimer();
    this.#cancelCollect();
    this.#scrub?.close();
    this.owners.close();
    this.#core.ports.fatal(this.#failure);
  }

  // ── Operating ──

  nowMs(): number {
    return this.#core.wall.nowMs();
  }

  believeClock(): Doubt | null {
    const { wall } = this.#core, { doubt } = wall;
    wall.believe();
    return doubt;
  }

  status(): ReplicaStatus {
    return replicaStatus(this.#core, {
      uplink: this.#uplink,
      children: this.#downlinks.all(),
      owners: this.owners,
      wards: this.#wards,
      adopting: this.#downlinks.adoptions.waiting,
      stableNow: this.#stableNow(),
    });
  }

  durable(position: Position): Promise<void> {
    return this.#durability.safe(position);
  }

  holdAtMost(bytes: number): void {
    this.#core.capacityBytes = Math.min(bytes, this.#core.config.capacityBytes);
  }

  isDurable(position: Position): boolean {
    return this.#durability.isSafe(position);
  }

  async evict(range: Range = WHOLE): Promise<void> {
    await this.#collector.evict(range);
  }

  debugCovers(key: Key): boolean {
    return this.#core.coverage.covers(key);
  }

  async close(): Promise<void> {
    if (this.#core.closed) return;
    const { rows } = this.#core;
    if (this.#failure === null && this.#isReady) await this.#durability.onDisk(rows.head).catch(() => {});
    this.#core.closed = true;
    this.#cancelTimer();
    this.#cancelCollect();
    this.#scrub?.close();
    this.#warming.close();
    this.owners.close();
    await this.#pumping;
    this.#cancelTimer(); // the one that a pass which was under way has set
    this.#durability.end(new StoreUnavailable("closed", `site ${this.site} is stopping`));
  }
}

/** Opens the replica of a site over its disk; it is `ready` later, when it has joined. */
export async function openReplica(config: ReplicaConfig, ports: ReplicaPorts): Promise<SiteReplica> {
  const replica = new SiteReplica(new Core(config, ports));
  await replica.start();
  return replica;
}
