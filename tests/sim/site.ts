/**
 * One site of a run: a disk, and one process after another over it.
 *
 * Life of a process: start (the disk is read, the replica opened, the parent dialled) → serving → crash (power is
 * cut), stop (goodbye) or wipe (the disk is lost too) → nothing → the next start.
 *
 * Q1  A dead process does nothing that anybody sees: no message, no answer, no line in the history.
 */
import type { OpenReplica, Replica, ReplicaConfig } from "../../store/api/api.ts";
import type { HistoryEvent } from "./history.ts";
import type { Keyspace } from "./keyspace.ts";
import { ABOVE_TAG, type Endpoint, type SimNetwork } from "./network.ts";
import type { Probes } from "./probes.ts";
import type { Draws } from "./random.ts";
import { type DiskWatch, heardBy, RecordingStorage } from "./recording.ts";
import type { SiteId } from "../../store/model/ports.ts";
import type { Key } from "../../store/model/key.ts";
import { Reader } from "../../store/model/codec.ts";
import { OlderDisk } from "../../store/core/lost.ts";
import type { ClockValue, Position, Row } from "../../store/model/row.ts";
import { type DiskCopy, SimDisk } from "./disk.ts";
import type { SitePlan } from "./topology.ts";
import { ProcessClock, type World } from "./world.ts";

/** What a process runs above its replica. */
export interface AboveProcess {
  received(from: SiteId, message: Uint8Array): void;
  disconnected(site: SiteId): void;
  /** The oldest version that it may still write (store/api/api.ts, ReplicaPorts). */
  readonly owed: ClockValue;
  /** A planned stop: nothing of it writes to the replica any more when this resolves. */
  close(): Promise<void>;
}

/** What its process gives it. */
export interface AboveParts {
  readonly draws: Draws;
  readonly isAlive: () => boolean;
  /** A crash may be waiting for this. */
  readonly passed: (point: string) => void;
  /** To the same above another site's replica. */
  readonly send: (to: SiteId, message: Uint8Array) => void;
  readonly fatal: (error: Error) => void;
}

/** What a site runs above its replica, over disks of its own: they outlive its processes. */
export interface Above {
  /** A process has its replica, and that is ready; null: the process has died meanwhile. */
  begin(process: SiteProcess, parts: AboveParts): Promise<AboveProcess | null>;
  /** Power is cut, whether a process runs or not; `isWiped`: the disks are lost, too. */
  ended(isWiped: boolean): void;
  fillDisks(): void;
  slowDisks(factor: number): void;
}

/** What all sites of a run share. */
export interface Surroundings {
  readonly world: World;
  readonly network: SimNetwork;
  readonly keyspace: Keyspace;
  readonly probes: Probes;
  readonly open: OpenReplica;
  readonly keepChance: number;
  readonly horizonMs: number;
  readonly pendingBytesMax: number;
  readonly compareRowsBytes: number;
  readonly stepRows: number;
  readonly record: (event: HistoryEvent) => void;
  /** Something happened at a site that a crash may be waiting for. */
  readonly passed: (site: SiteId, point: string) => void;
  /** A process has begun to serve. */
  readonly serving: (site: SiteId, process: SiteProcess) => void;
  readonly disks?: DiskWatch;
  /** What each site runs above its replica; left out: nothing. */
  readonly above?: (site: SimSite) => Above;
}

/** What a request in flight is doing: where a crash can hit it. */
export type Stage =
  | "waiting for the site"
  | "attaching"
  | "reading"
  | "writing"
  | "syncing"
  | "calling"
  | "thinking";

/** A request that runs in a process. */
export interface Running {
  stage: Stage;
  /** The process is gone; the client sees a broken connection. */
  readonly broken: () => void;
}

/** A process that lives. */
export interface SiteProcess extends Endpoint {
  readonly replica: Replica;
  readonly storage: RecordingStorage;
  readonly clock: ProcessClock;
  readonly running: Set<Running>;
  alive: boolean;
  ready: boolean;
  /** Takes no requests any more. */
  draining: boolean;
  above: AboveProcess | null;
  /** Resolves when requests can be served. */
  readonly serving: Promise<void>;
}

/** Numbers at the beginning of a replica's state, before the path (docs/protocol/journal.md). */
const STATE_NUMBERS = 6;
/** First byte of a welcome: docs/protocol/journal.md. */
const WELCOME = 1;

/** A site. */
export class SimSite {
  readonly plan: SitePlan;
  readonly #around: Surroundings;
  readonly #draws: Draws;
  #disk: SimDisk;
  #blank = true;
  #process: SiteProcess | null = null;
  /** Of the process that runs or begins to. */
  #clock: ProcessClock | null = null;
  #starting = 0;
  #parent: SiteId | null;
  /** Whose child it was last. */
  #joined: SiteId | null = null;
  /** The number that its disk goes by; 0: none yet. */
  #number = 0;
  #isMoving = false;
  /** It was sent elsewhere before it had arrived: a number may be given to it there at any later time. */
  #hasTurned = false;
  /** The machine's wall clock is wrong by so much. */
  #leapMs = 0;
  /** For how long all had slept when its disk last said what time it is. */
  #sleptMs = 0;
  #lost: readonly SiteId[] = [];
  #isUp = false;
  #isDiskFull = false;
  /** What happens where its disk is found to be an older copy; null: none was put back. */
  #older: (() => void) | null = null;
  #failed: () => void = () => {};
  /** What came while it is held; null: it is not. */
  #heldBack: (() => void)[] | null = null;
  readonly #above: Above | null;

  constructor(plan: SitePlan, around: Surroundings, draws: Draws) {
    this.plan = plan;
    this.#parent = plan.parent;
    this.#around = around;
    this.#draws = draws;
    const diskDraws = draws.fork("disk");
    this.#disk = new SimDisk({
      // The disk outlives its processes; a dead process hears nothing of it (Q1).
      clock: {
        nowMs: () => around.world.nowMs,
        steadyMs: () => around.world.nowMs,
        after: (ms, run) => around.world.after(ms, run),
        turn: () => around.world.sleep(0),
      },
      random: () => diskDraws.unit(),
      commitDelayMs: plan.commitMs,
      ...(plan.readMs === null ? {} : { readDelayMs: plan.readMs }),
      keepChance: around.keepChance,
    });
    this.#above = around.above?.(this) ?? null;
  }

  /** As its operator last said. */
  get parent(): SiteId | null {
    return this.#parent;
  }

  /** On its way to another parent, who may never have heard of it, or back from there to the one before. */
  get isMoving(): boolean {
    return this.#isMoving || this.#hasTurned;
  }

  /** Its operator gives it another parent: told to the process that runs, and to each later one at its start. */
  move(to: SiteId, lost: readonly SiteId[]): void {
    const from = this.#parent;
    this.#parent = to;
    this.#lost = lost;
    this.#hasTurned ||= this.#isMoving && from !== to;
    this.#isMoving ||= this.#joined !== null && from !== to;
    this.#process?.replica.move(to, lost);
    if (from !== null && from !== to) this.#around.network.moved(this.plan.id, from);
  }

  #welcomed(by: SiteId): void {
    this.#joined = by;
    if (by === this.#parent) this.#isMoving = false;
  }

  get process(): SiteProcess | null {
    return this.#process;
  }

  /** Starts a process over the disk as it is; one that runs goes on. */
  async start(): Promise<void> {
    if (this.#isUp) return;
    this.#isUp = true;
    const { world, network, keyspace, probes, record, open, passed, disks } = this.#around;
    const attempt = ++this.#starting;
    const { id, tier, capacityBytes, skewMs, drift, owners } = this.plan;
    const crossing = (point: string) => {
      if (attempt === this.#starting) passed(id, point);
    };
    const parent = this.#parent;
    const storage = new RecordingStorage(this.#disk, {
      site: id,
      isRoot: parent === null,
      keyspace,
      nowMs: () => world.nowMs,
      clockMs: () => this.#process?.replica.nowMs() ?? 0,
      passed: crossing,
      disks,
      record: (event) => {
        if (attempt === this.#starting) record(event);
      },
      committed: () => {
        if (attempt !== this.#starting) return;
        this.#sleptMs = world.sleptMs;
        told();
      },
    });
    // A new number is on its disk with what it keeps.
    const told = () => {
      const now = this.#process?.replica.status().replica ?? 0;
      if (now === 0 || now === this.#number) return;
      if (this.#number !== 0) {
        record({ kind: "reborn", atMs: world.nowMs, site: id, parent: this.#joined });
      }
      this.#number = now;
      record({ kind: "numbered", atMs: world.nowMs, site: id, number: now });
    };
    this.#setClock(world.sleptMs - this.#sleptMs);
    await storage.start(this.#blank);
    this.#blank = false;
    const random = this.#draws.fork(`process ${attempt}`);
    // A restart may find the wall clock set back.
    const clock = new ProcessClock(world, {
      skewMs: skewMs === 0 ? 0 : skewMs + random.integer(-RESTART_SKEW_MS, RESTART_SKEW_MS),
      drift,
      turning: () => crossing("turn begins"),
      due: () => crossing("timer due"),
    });
    clock.leapMs = this.#leapMs;
    this.#clock = clock;
    const place = {
      site: id,
      parent,
      tier,
      url: "",
      linkAddress: "",
      capacityBytes,
      owners,
      lost: this.#lost,
    };
    const { horizonMs, pendingBytesMax, compareRowsBytes, stepRows } = this.#around;
    const config: ReplicaConfig = { ...place, horizonMs, pendingBytesMax, compareRowsBytes, stepRows };
    const said = (text: string) => record({ kind: "fault", atMs: world.nowMs, text: `${id}: ${text}` });
    const fatal = (error: Error) => {
      if (attempt !== this.#starting) return;
      probes.count("fatal");
      if (this.#isDiskFull) return this.#failed();
      if (error instanceof OlderDisk && this.#older !== null) return this.#setAside();
      said(`fatal: ${error.stack ?? error.message}`);
    };
    const serving = Promise.withResolvers<void>();
    const holder: { process: SiteProcess | null } = { process: null };
    const replica = await open(config, {
      clock,
      random,
      storage: this.#above === null ? storage : heardBy(storage, clock),
      network: {
        send: (to, message) =>
          holder.process === null ? Promise.resolve() : network.send(holder.process, id, to, message),
      },
      fatal,
      owed: () => this.#above === null ? Infinity : holder.process?.above?.owed ?? 0,
      note: (event, detail) => {
        probes.count(`note ${event}`);
        // As a site does: a child that is none any more dials again, and is told so until it is let in.
        if (event === "child_removed") {
          network.partition(id, String(detail?.child), world.nowMs + DISMISSED_MS);
        }
      },
    });
    if (attempt !== this.#starting) return;
    const running = new Set<Running>();
    const process: SiteProcess = {
      replica,
      storage,
      clock,
      running,
      alive: true,
      ready: false,
      draining: false,
      above: null,
      serving: this.#above === null ? replica.ready : serving.promise,
      connected: (site, role) => clock.whenRunning(() => replica.connected(site, role)),
      disconnected: (site) =>
        clock.whenRunning(() => {
          replica.disconnected(site);
          process.above?.disconnected(site);
        }),
      unreachable: (site) => clock.whenRunning(() => replica.unreachable(site)),
      receive: (from, message) => {
        if (this.#heldBack !== null) return void this.#heldBack.push(() => received(from, message));
        received(from, message);
      },
    };
    const received = (from: SiteId, message: Uint8Array) =>
      clock.whenRunning(() => {
        if (!process.alive) return;
        if (message[0] === ABOVE_TAG) return process.above?.received(from, message.subarray(1));
        if (message[0] === WELCOME) this.#welcomed(from);
        replica.receive(from, message);
      });
    holder.process = process;
    this.#process = process;
    // Its operator has changed his mind while the disk was read.
    if (parent !== null && this.#parent !== null && this.#parent !== parent) {
      replica.move(this.#parent, this.#lost);
    }
    const parts: AboveParts = {
      ...{ draws: random.fork("above"), isAlive: () => process.alive, passed: crossing, fatal },
      send: (to, message) => {
        if (!process.alive) return;
        const tagged = new Uint8Array(1 + message.length);
        tagged[0] = ABOVE_TAG;
        tagged.set(message, 1);
        void network.send(process, id, to, tagged);
      },
    };
    void replica.ready.then(async () => {
      const above = process.alive ? await this.#begin(process, parts) : null;
      process.above = above;
      process.ready = true;
      serving.resolve();
      if (process.alive) this.#around.serving(id, process);
    });
    network.up(id, process);
  }

  /** What is above the replica is not begun where the site stops meanwhile, as in `runtime/site/site.ts`. */
  async #begin(process: SiteProcess, parts: AboveParts): Promise<AboveProcess | null> {
    try {
      return await this.#above?.begin(process, parts) ?? null;
    } catch (error) {
      if (process.alive && !process.draining) throw error;
      return null;
    }
  }

  /** A row of its disk rots; false where there is none. */
  rot(key: Key): boolean {
    return this.#disk.rot(key);
  }

  /** Up to where, as its disk has it, the root has its journal. */
  get rootReach(): Position {
    const state = this.#disk.record("state");
    if (state === undefined) return 0;
    const reader = new Reader(state);
    for (let i = 0; i < STATE_NUMBERS; i++) reader.uint();
    if (reader.list(() => reader.text()).length === 0) return 0;
    const [, , own = 0] = [reader.uint(), reader.uint(), reader.uint()];
    return own;
  }

  /** What is on its disk now. */
  get held(): Row[] {
    return this.#disk.held();
  }

  /** Power is cut. */
  crash(): void {
    this.#probeCrash();
    this.#kill();
    this.#disk = this.#disk.crash();
    this.#above?.ended(false);
  }

  /** Power is cut and the disk is lost. @param isForGood the site does not come back as it was. */
  wipe(isForGood = false): void {
    this.#probeCrash();
    this.#kill();
    const isLoss = !this.#blank || isForGood;
    this.#blankDisk();
    if (isLoss) {
      const { world, record } = this.#around;
      record({ kind: "lost", atMs: world.nowMs, site: this.plan.id, isForGood });
    }
    this.#above?.ended(true);
  }

  #blankDisk(): void {
    this.#disk = this.#disk.wipe();
    [this.#blank, this.#number] = [true, 0];
    this.#around.disks?.lost(this.plan.id);
  }

  /** Whether it takes nothing that other sites say (docs/protocol/backups.md CT1). */
  get isHeld(): boolean {
    return this.#heldBack !== null;
  }

  /** From now on it does not. */
  hold(): void {
    this.#heldBack ??= [];
  }

  /** It takes all of that, in the order in which it came (CT2). */
  release(): void {
    const came = this.#heldBack ?? [];
    this.#heldBack = null;
    for (const take of came) take();
  }

  /** What is on its disk now. */
  copyDisk(): DiskCopy {
    return this.#disk.copy();
  }

  /** Power is cut, and its disk is an older copy from now on. @param found it was found to be one: the disk is blank. */
  putBack(copy: DiskCopy, found: () => void): void {
    this.wipe();
    this.#disk = this.#disk.wipe(copy);
    this.#blank = false;
    this.#older = found;
  }

  /** As a site does whose disk is an older copy (runtime/site/site.ts). */
  #setAside(): void {
    const { world, record } = this.#around;
    record({ kind: "lost", atMs: world.nowMs, site: this.plan.id, isForGood: false, isAside: true });
    this.#kill();
    this.#blankDisk();
    this.#above?.ended(false);
    this.#older?.();
  }

  /**
   * It is drained, to be taken off the tree, and its disk is emptied where that says that the root has all of it. False:
   * it died meanwhile, or has something left, and is to start again.
   */
  async retire(graceMs: number): Promise<boolean> {
    const process = this.#process;
    if (process === null) return false;
    await this.#around.world.sleep(graceMs);
    const isDrained = process.alive && await this.#drain(process);
    if (!process.alive) return false;
    this.#kill();
    if (isDrained) {
      const { world, record } = this.#around;
      record({ kind: "emptied", atMs: world.nowMs, site: this.plan.id });
      this.#blankDisk();
    } else this.#disk = this.#disk.crash();
    this.#above?.ended(isDrained);
    return isDrained;
  }

  /** Whether a process runs that has no room on its disk, which it may not have met yet. */
  get isDiskFull(): boolean {
    return this.#isDiskFull;
  }

  /** Every commit from now on fails; the process must end itself, and is started again later by `failed`. */
  fillDisk(failed: () => void): void {
    if (this.#process === null) return;
    this.#isDiskFull = true;
    this.#failed = failed;
    this.#disk.fail();
    this.#above?.fillDisks();
  }

  /** Goodbye: requests get some time to end, then the replica closes; says whether it did. */
  async stop(graceMs: number): Promise<boolean> {
    const process = this.#process;
    if (process === null) return true;
    const { world } = this.#around;
    await world.sleep(graceMs);
    if (!process.alive) return true;
    if (process.ready && this.#draws.fork(`stop ${this.#starting}`).chance(0.5)) await this.#drain(process);
    if (!process.alive) return true;
    // Its gateway takes no more requests; its disk may take a while to take the last of what there is.
    process.draining = true;
    const isAboveClosed = await this.#closeAbove(process);
    if (!process.alive) return true;
    const closed = isAboveClosed && await isWithin(world, process.replica.close(), CLOSE_MS_MAX);
    if (!process.alive) return true;
    this.#kill();
    this.#disk = this.#disk.crash();
    this.#above?.ended(false);
    return closed;
  }

  /** A planned stop: no new requests, those that run end, and what is pending goes up, in bounded time: whether all has. */
  async #drain(process: SiteProcess): Promise<boolean> {
    const { world, probes } = this.#around;
    process.draining = true;
    const untilMs = world.nowMs + DRAIN_MS_MAX;
    while (process.alive && process.running.size > 0 && world.nowMs < untilMs) await world.sleep(1);
    if (!process.alive || process.running.size > 0) return false;
    if (!await this.#closeAbove(process) || !process.alive) return false;
    const left = process.replica.members.leave(world.nowMs + DRAIN_MS_MAX).then(() => true, () => false);
    const done = await Promise.race([left, world.sleep(DRAIN_MS_MAX).then(() => false)]);
    probes.count(done ? "drained" : "drained in part");
    return done;
  }

  /** Whether it has closed, in time. */
  async #closeAbove({ above }: SiteProcess): Promise<boolean> {
    return above === null || await isWithin(this.#around.world, above.close(), ABOVE_CLOSE_MS_MAX);
  }

  /**
   * One that is behind and starts where it can't know that, on a blank disk or after a sleep in which its time would
   * have come, refuses its parent until its operator sets its clock. A root takes the time from its children; where its
   * disk is blank it has nobody to ask.
   */
  #setClock(sleptMs: number): void {
    const isBlank = this.#number === 0, isRoot = this.plan.parent === null;
    if (this.#isBlankRoot) this.#leapMs = 0;
    if (this.#leapMs < 0 && (isBlank || !isRoot && sleptMs > 0)) this.#leapMs = 0;
  }

  /** The machine's wall clock is wrong by so much, whatever process reads it; 0 puts it right. */
  leap(ms: number): void {
    this.#leapMs = this.#isBlankRoot ? 0 : ms;
    if (this.#clock !== null) this.#clock.leapMs = this.#leapMs;
  }

  /** It has nobody to ask what time it is, and dates what it writes by its wall clock. */
  get #isBlankRoot(): boolean {
    return this.plan.parent === null && this.#number === 0;
  }

  /** The machine's wall clock is wrong by so much, and the steady clock of the process that runs has gone on with it. */
  warp(ms: number): void {
    if (this.#isBlankRoot) return;
    this.leap(ms);
    if (this.#clock !== null) this.#clock.warpedMs += ms;
  }

  /** The clock of the process that runs now is set. */
  jump(ms: number): void {
    if (this.#process !== null) this.#process.clock.jumpedMs += ms;
  }

  /** The process that runs now stands still for so long; others go on. */
  standStill(ms: number): void {
    this.#process?.clock.standStill(ms);
  }

  /** The disk takes so many times longer from now on. */
  slowDisk(factor: number): void {
    this.#disk.slow(factor);
    this.#above?.slowDisks(factor);
  }

  /** The wall clock has jumped (World.sleptMs). */
  napped(): void {
    this.#process?.clock.napped();
  }

  /** It has, by so much, and the machine was suspended: its steady clock has not noticed. */
  suspended(ms: number): void {
    if (this.#clock !== null) this.#clock.suspendedMs += ms;
  }

  /** Takes the counters of the process that is about to end. */
  tally(): void {
    const process = this.#process;
    if (process === null) return;
    for (const [name, count] of Object.entries(process.replica.status().counters)) {
      this.#around.probes.count(name, count);
    }
  }

  #probeCrash(): void {
    const { probes } = this.#around;
    const process = this.#process;
    if (process === null) return probes.count("crash: down already");
    if (!process.ready) probes.count("crash: before ready");
    if (process.storage.isCommitting) probes.count("crash: committing");
    for (const { stage } of process.running) probes.count(`crash: ${stage}`);
    if (process.running.size === 0) probes.count("crash: no request");
  }

  #kill(): void {
    this.tally();
    this.#starting++;
    this.#isUp = false;
    this.#isDiskFull = false;
    this.#clock?.stop();
    this.#clock = null;
    const process = this.#process;
    this.#process = null;
    if (process === null) return;
    process.alive = false;
    this.#around.network.down(this.plan.id);
    for (const running of [...process.running]) running.broken();
  }
}

const isWithin = (world: World, done: Promise<void>, ms: number): Promise<boolean> =>
  Promise.race([done.then(() => true), world.sleep(ms).then(() => false)]);

const RESTART_SKEW_MS = 200;
const DISMISSED_MS = 20;
const DRAIN_MS_MAX = 1_500;
/** Sessions move for 3 s and become checkpoints for 2 (functions/sessions/serve/session_host.ts); the process may stand still meanwhile. */
const ABOVE_CLOSE_MS_MAX = 15_000;
/** A replica that has not closed by then never will: its disk takes milliseconds. */
const CLOSE_MS_MAX = 5_000;
