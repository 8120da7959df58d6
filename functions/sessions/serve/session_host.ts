/**
 * Stateful sessions that this site serves as their home: opened when somebody asks for them or a timer of theirs is
 * due, out of memory when they are idle, given other code when their app has it.
 *
 * S1  At most one run of a session is open here; every opening goes through the homes (functions/sessions/home).
 * S2  A log is replayed by the code that wrote it; other code takes over from a checkpoint, with no event between.
 */
import { HomeError, type StatefulName } from "../home/mod.ts";
import type { HostsPort } from "../log/hosts_asked.ts";
import { openHostLog } from "../sealed/mod.ts";
import type { Channel, ChannelReader, PeerClock } from "../attach/mod.ts";
import { decodeCall } from "../../calls/call.ts";
import type { TokenState } from "../../../store/api/api.ts";
import type { EndedLogs } from "./ended_logs.ts";
import type { ClockValue } from "../../../store/model/row.ts";
import { Problem } from "../../vocabulary/problem.ts";
import { guarded, pauseBy } from "./clock.ts";
import { Hosted, type HostedPorts, type HostedSite } from "./hosted.ts";
import { mapKey, shownSession } from "./session_name.ts";
import type { Answered, HostedRequest } from "./request.ts";
import type { PeersSite } from "./hosted_peers.ts";
import { peerKeys } from "./host_logs.ts";
import { Parking, type ParkingPorts } from "./parking.ts";
import { type OpeningPorts, Openings } from "./openings.ts";
import { LastAnswers } from "./last_answers.ts";
import { SessionRun } from "./session_run.ts";
import { type CallWait, NO_WAITS } from "./waits.ts";
import { isShared } from "./versions.ts";

/** Interval at which idle sessions are looked for. */
const SWEEP_MS = 1_000;
/** Milliseconds within which a site that is to take a session over opens it: an isolate starts, and replays nothing. */
const TAKEN_MS_MAX = 5_000;
/** Milliseconds within which open sessions have moved at a planned stop: each takes some trips between sites. */
const LEAVE_MS_MAX = 3_000;
const LEAVING_AT_ONCE = 16;
/** Idle sessions that leave the arbiter's site at once: the others stay open until it is their turn. */
const SEATING_AT_ONCE = 4;
/** Milliseconds for an idle session to drain: it needs a checkpoint, and no more. */
const SEAT_DRAIN_MS = 1_000;
/** Milliseconds for logs to become checkpoints at a planned stop, as many as do. */
const REST_MS_MAX = 2_000;

/** Ids of attached peers that operators are shown. */
const SHOWN_PEERS_MAX = 20;

/**
 * Milliseconds for which last answers are kept, where a site says nothing else: as long as other answers
 * (functions/sessions/log/limits.ts, ANSWER_KEPT_MS).
 */
const LAST_ANSWERS_MS = 60_000;

/** Site, as hosting stateful sessions needs it. */
export interface HostPorts extends OpeningPorts, ParkingPorts, HostedPorts {
  readonly apps: OpeningPorts["apps"];
  readonly clock: PeerClock;
  /** Reads the store's clock: what is drawn of it later is later. */
  readonly storeClock: () => ClockValue;
  readonly idleMs: number;
  /** Largest number of channels of attached peers. */
  readonly channelsMax: number;
  /** Draws a new peer's id. */
  readonly newPeer: () => string;
  /** Draws bytes that nobody can guess. */
  readonly random: (length: number) => Uint8Array<ArrayBuffer>;
  /** Secrets of the cluster, newest first: peers' keys and sealed logs are made with them. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  /** Milliseconds for which the last answers of a session that ended are kept for callers that ask again. */
  readonly lastAnswersMs?: number;
  /** Logs of sessions that ended; left out: none are kept. */
  readonly endedLogs?: Pick<EndedLogs, "keep" | "drop" | "sweep">;
  readonly log: (line: { app: string; version: string; level: string; text: string }) => void;
}

/** Host of stateful sessions (see the file's header). */
export class SessionHost implements HostedSite {
  readonly ports: HostPorts;
  readonly #hosted = new Map<string, Hosted>();
  readonly #unlisten: () => void;
  readonly #clock: PeerClock;
  #cancelSweep: () => void = () => {};
  #closed = false;
  #channels = 0;
  readonly openings: Openings;
  readonly lastAnswers: LastAnswers;
  readonly parking: Parking;
  /** Sessions that leave this site, which is the arbiter's, for good. */
  readonly #seating = new Set<Hosted>();
  #owed: ClockValue = 0;

  constructor(ports: HostPorts) {
    this.ports = ports;
    this.#clock = ports.clock;
    this.parking = new Parking(ports, (name) => this.#hosted.get(mapKey(name))?.parked === null);
    this.openings = new Openings(ports, (name, level, text) => this.log(name, level, text));
    this.lastAnswers = new LastAnswers(this.#clock, ports.lastAnswersMs ?? LAST_ANSWERS_MS);
    const unlisten = ports.apps.onChange(() => this.#followApps());
    const undropped = ports.parked.onDrop((name) => this.#hosted.get(mapKey(name))?.unpark());
    this.#unlisten = () => {
      unlisten();
      undropped();
    };
    this.#lookWhatIsOwed();
    this.#sweepLater();
  }

  /**
   * Oldest version that a session at home here, or whose log is here, may still write (store/api/api.ts, ReplicaPorts):
   * as of the last look, and no later than that. 0 before the first one.
   */
  get owed(): ClockValue {
    return this.#owed;
  }

  #lookWhatIsOwed(): void {
    // Rows written under versions drawn after this do not matter before the next look, be that hours late.
    let least = this.ports.storeClock();
    least = Math.min(least, this.ports.homes.leastOpen);
    for (const { run } of this.#hosted.values()) least = Math.min(least, run?.owed ?? Infinity);
    this.#owed = least;
  }

  /** Numbers of sessions that are open, that stand still, and of what waits for them or is attached. */
  get counts() {
    let open = 0, parked = 0, waiting = 0, attached = 0;
    for (const hosted of this.#hosted.values()) {
      if (hosted.run !== null) open++;
      if (hosted.parked !== null) parked++;
      waiting += hosted.waiting;
      attached += hosted.peers.status?.attached ?? 0;
    }
    for (const name of this.parking.reported()) {
      if (!this.#hosted.get(mapKey(name))?.parked) parked++;
    }
    return { open, parked, waiting, attached, channels: this.#channels };
  }

  /**
   * Has a request run by a stateful session that is at home here, or is to be.
   *
   * @throws HomeError, Problem, StoreUnavailable
   */
  async request(name: StatefulName, request: HostedRequest): Promise<Answered> {
    const last = this.lastAnswers.get(mapKey(name), request.request);
    if (last !== null) return { answer: last, token: null };
    if (!this.#hosted.has(mapKey(name))) this.#checkMethod(name, request.bytes);
    return await this.#of(name).request(request);
  }

  /** Checks that the class has the method that is called: a session is not made for another. @throws Problem */
  #checkMethod(name: StatefulName, bytes: Uint8Array): void {
    const sessions = this.ports.apps.get(name.app)?.current.manifest.sessions ?? {};
    const methods = Object.hasOwn(sessions, name.class) ? sessions[name.class]?.methods : null;
    if (!Array.isArray(methods)) return;
    const call = decodeCall(bytes);
    if (call.kind !== "rpc" || methods.includes(call.method)) return;
    throw new Problem("not_available", `${name.class} of ${name.app} has no method ${call.method}`);
  }

  /**
   * Takes a channel to a session that is at home here, or is to be.
   *
   * @param token of what the peer has seen.
   * @throws HomeError, Problem, StoreUnavailable
   */
  async connect(name: StatefulName, channel: Channel, token: TokenState | null): Promise<ChannelReader> {
    if (this.#closed) throw new HomeError("closed", "the site is stopping");
    const { channelsMax } = this.ports;
    if (this.#channels >= channelsMax) {
      throw new Problem(
        "overloaded",
        `${channelsMax} channels lead to stateful sessions of this site already`,
      );
    }
    this.#channels++;
    try {
      const reader = await this.#of(name).peers.connect(channel, token);
      return {
        frame: (bytes) => reader.frame(bytes),
        broken: () => {
          this.#channels--;
          reader.broken();
        },
      };
    } catch (error) {
      this.#channels--;
      throw error;
    }
  }

  /** Returns what a call of another stateful session waits for, of what is open here (waits.ts). */
  waits(name: StatefulName, request: string): CallWait {
    return this.#hosted.get(mapKey(name))?.waits(request) ?? NO_WAITS;
  }

  /** Notes that the caller of a request has its answer. */
  received(name: StatefulName, request: string): void {
    const run = this.#hosted.get(mapKey(name))?.run;
    if (run && !run.isOver) run.received(request);
  }

  /** Opens a session that is at home here: a timer of it is due. */
  wake(name: StatefulName): void {
    if (!this.#closed) this.#of(name).ensure().catch(() => {}); // who asks for it next is told
  }

  /** Ends what is served of an epoch of which this site is not the home any more. */
  homeOver(name: StatefulName, epoch: number, error: HomeError): void {
    try {
      this.#hosted.get(mapKey(name))?.homeOver(epoch, error);
    } catch (fault) {
      this.ports.failed(name, fault);
    }
  }

  /** Returns what is known here of a session; null: it is not in memory. */
  look(name: StatefulName) {
    const hosted = this.#hosted.get(mapKey(name));
    const parked = hosted?.parked ?? this.parking.why(name);
    const run = hosted?.run ?? null;
    const { attached = 0, apart = 0 } = hosted?.peers.status ?? {};
    const peers = hosted?.peers.ids.slice(0, SHOWN_PEERS_MAX) ?? [];
    if (hosted === undefined || run === null) {
      const unopened = this.openings.why(name);
      const state = parked !== null ? "parked" : unopened === null ? "resting" : "unreachable";
      const problem = parked ?? unopened;
      return problem === null && attached === 0
        ? null
        : { ...NOTHING, attached, apart, peers, state, problem };
    }
    const { waiting, ...state } = run.state;
    const waits = Math.max(waiting, hosted.waiting);
    const { version } = run;
    return { ...state, version, attached, apart, peers, waiting: waits, state: "open", problem: parked };
  }

  /** Ends a session for good, without asking it; nothing of it is kept. @throws HomeError */
  async remove(name: StatefulName): Promise<void> {
    await this.ports.endedLogs?.drop(name);
    await this.#end(name);
  }

  /** Has a session begin anew, here. Returns false where it does so with its next use. @throws HomeError */
  async reset(name: StatefulName): Promise<boolean> {
    await this.keepLog(name);
    await this.#end(name);
    return await this.#of(name).ensure().then(() => true, () => false);
  }

  async #end(name: StatefulName): Promise<void> {
    if (this.#hosted.get(mapKey(name))?.parked === null) {
      // The log that clients hold goes, too: those that do not come back are not waited for.
      const run = await this.openings.forced(name, () => this.#of(name).ensure()).catch(() => null);
      await run?.remove();
      if (run !== null) return await run.finished;
    }
    const { apps, homes, parked } = this.ports, one = this.#of(name);
    const dropped = await one.apart(async () => {
      const home = (await homes.open(name, apps.get(name.app)?.current.version ?? "", "ends")).start([]);
      await home.end();
      one.forgotten();
      return { done: parked.drop(name) }; // who comes does not wait for that
    });
    await dropped.done;
  }

  /**
   * Moves a session that is at home here to another site; it is open there when this resolves.
   *
   * @param drainMs milliseconds for which what was begun may go on.
   * @throws HomeError `move_refused`: it goes on here.
   */
  async move(name: StatefulName, to: string, drainMs: number): Promise<void> {
    const { homes } = this.ports;
    const epoch = await this.#of(name).move(to, () => this.#moveUnopened(name, to), drainMs);
    if (await homes.whenTaken({ name, epoch, to }, TAKEN_MS_MAX)) return;
    this.wake(name);
    throw new HomeError(
      "move_refused",
      `cannot move ${name.class} ${
        JSON.stringify(name.id)
      } of ${name.app} to ${to}: that site did not open it in ` +
        `${TAKEN_MS_MAX} ms; it is at home here again`,
    );
  }

  /** Moves a session that is not open: its log is on the disk, and no isolate is needed for that. */
  async #moveUnopened(name: StatefulName, to: string): Promise<number> {
    const version = this.ports.apps.get(name.app)?.current.version ?? "";
    const home = (await this.ports.homes.open(name, version, false, true)).start([]);
    try {
      await home.moveTo(to);
    } catch (error) {
      await home.rest().catch(() => {});
      throw error;
    }
    return home.epoch;
  }

  /**
   * Begins nothing any more. What is open moves to the nearest of the sites that keep its log; where no other does, or
   * it does not come to rest, it becomes a checkpoint as far as it can.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.ports.homes.leave();
    this.#unlisten();
    this.#cancelSweep();
    const untilMs = this.#clock.nowMs() + LEAVE_MS_MAX;
    const leaving = [...this.#hosted.values()];
    const next = async () => {
      for (let one = leaving.pop(); one !== undefined && this.#clock.nowMs() < untilMs; one = leaving.pop()) {
        await this.#leave(one, untilMs - this.#clock.nowMs());
      }
    };
    const left = Promise.all(Array.from({ length: LEAVING_AT_ONCE }, next));
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(LEAVE_MS_MAX, resolve);
    await Promise.race([left, late]); // a site that is slow may take a minute to get a log
    cancel();
    await this.#rest();
  }

  async #leave(hosted: Hosted, ms: number): Promise<void> {
    const heir = hosted.run?.isOver === false ? hosted.run.home.heirs[0] : undefined;
    if (heir === undefined) return;
    const { homes } = this.ports;
    try {
      const epoch = await hosted.move(heir, () => Promise.reject(new Error("it is not open")), ms);
      await homes.whenTaken({ name: hosted.name, epoch, to: heir, isLeaving: true }, ms);
    } catch (error) {
      this.log(hosted.name, "info", `it stays at a site that stops: ${error}`);
    }
  }

  async #rest(): Promise<void> {
    for (const hosted of this.#hosted.values()) hosted.peers.over(null);
    const untilMs = this.#clock.nowMs() + REST_MS_MAX;
    const isLeft = () => [...this.#hosted.values()].some(({ run }) => run !== null && run.isIdle);
    while (isLeft() && this.#clock.nowMs() < untilMs) {
      for (const { run } of this.#hosted.values()) run?.rest();
      await pauseBy(this.#clock, SWEEP_MS / 100);
    }
    await this.parking.settled();
  }

  #of(name: StatefulName): Hosted {
    const key = mapKey(name);
    let hosted = this.#hosted.get(key);
    if (hosted === undefined) {
      if (this.#closed) throw new HomeError("closed", "the site is stopping");
      hosted = new Hosted(name, this);
      this.#hosted.set(key, hosted);
    }
    return hosted;
  }

  /**
   * Keeps the log of a session that has ended, or goes on without it: operators may look at it for a while
   * (ended_logs.ts).
   */
  async keepLog(name: StatefulName): Promise<void> {
    const { endedLogs, apps, homes } = this.ports;
    const sessions = apps.get(name.app)?.current.manifest.sessions ?? {};
    const declared = Object.hasOwn(sessions, name.class) ? sessions[name.class] : undefined;
    await endedLogs?.keep(name, declared?.retention?.logMs, () => homes.kept(name));
  }

  // ── For its sessions ──

  gone(one: { readonly name: StatefulName }): void {
    // The later of two sessions of one name is served.
    if (this.#hosted.get(mapKey(one.name)) === one) this.#hosted.delete(mapKey(one.name));
  }

  serves(name: StatefulName, run: SessionRun): void {
    void this.ports.parked.drop(name);
    this.#follow(name, run);
  }

  peersOf(name: StatefulName): PeersSite {
    const { secrets, newPeer, apps } = this.ports;
    const failed = (error: unknown) => this.ports.failed(name, error);
    return {
      clock: guarded(this.#clock, failed),
      newId: newPeer,
      random: this.ports.random,
      isShared: () => isShared(apps.get(name.app)?.current, name),
      origin: () => {
        const live = apps.get(name.app)?.current;
        if (live === undefined) return null;
        return { version: live.version, originWay: live.originWay(name) };
      },
      keysOf: peerKeys(secrets, name),
      openLog: (receiver, records) => openHostLog(secrets, { name, receiver }, records),
      secret: secrets[0],
      log: (level, text) => this.log(name, level, text),
      failed,
    };
  }

  /**
   * Way in which openings reach hosts (functions/sessions/home, HostsPort): those that have come here, and those that
   * come.
   */
  readonly hosts: HostsPort = {
    ask: async (name, epoch, hosts, untilMs, isForced) => {
      if (this.#closed) return new Map();
      return await this.#of(name).peers.ask({
        epoch,
        hosts,
        withinMs: untilMs - this.#clock.nowMs(),
        isForced,
      });
    },
  };

  /**
   * Lets a session that stands still try again. @throws Problem, HomeError where it can't go on.
   *
   * @param isForced true: also without clients that hold its log and do not come back
   * (functions/sessions/log/host_owners.ts, HO8).
   * @returns these clients.
   */
  async resume(name: StatefulName, isForced = false): Promise<readonly string[]> {
    await this.ports.parked.drop(name);
    this.#of(name).unpark();
    const ensure = () => this.#of(name).ensure(); // by then it may be another one (hosted.ts, H6)
    const run = await (isForced ? this.openings.forced(name, ensure) : this.openings.here(name, ensure));
    return run.home.hosts.leftBehind;
  }

  log({ app }: StatefulName, level: string, text: string): void {
    const version = this.ports.apps.get(app)?.current.version ?? "";
    this.ports.log({ app, version, level, text });
  }

  #followApps(): void {
    for (const hosted of this.#hosted.values()) {
      if (this.ports.apps.get(hosted.name.app) === undefined) continue;
      hosted.unpark();
      if (hosted.run !== null) this.#follow(hosted.name, hosted.run);
    }
  }

  /**
   * Has a run go on with the version that serves: also one that the code before has opened, since its log is of that
   * (S2).
   */
  #follow({ app }: StatefulName, run: SessionRun): void {
    const version = this.ports.apps.get(app)?.current.version;
    if (version !== undefined && run.version !== version) run.checkpoint(version);
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#clock.after(SWEEP_MS, () => {
      this.#sweepLater();
      this.#sweep();
    });
  }

  #sweep(): void {
    this.#lookWhatIsOwed();
    const beforeMs = this.#clock.nowMs() - this.ports.idleMs;
    this.lastAnswers.sweep();
    void this.ports.endedLogs?.sweep();
    for (const hosted of [...this.#hosted.values()]) {
      const { run, waiting } = hosted;
      hosted.tidy();
      if (run === null || waiting > 0 || run.usedMs > beforeMs) continue;
      const seat = this.ports.homes.seat(run.home);
      if (seat === null) run.rest();
      else if (run.isIdle && this.#seating.size < SEATING_AT_ONCE) void this.#seat(hosted, run, seat);
    }
  }

  /**
   * Moves an idle session that is not to rest at this site (functions/sessions/home/seats.ts); it rests where it can't
   * move.
   */
  async #seat(hosted: Hosted, run: SessionRun, to: string): Promise<void> {
    if (this.#seating.has(hosted)) return;
    this.#seating.add(hosted);
    try {
      await this.move(hosted.name, to, SEAT_DRAIN_MS);
    } catch (error) {
      this.ports.homes.seatRefused(run.home, to);
      this.log(hosted.name, "info", `${shownSession(hosted.name)} stays at this site for now: ${error}`);
    } finally {
      this.#seating.delete(hosted);
    }
  }
}

/** State of a session that stands still: nothing else is known here. */
const NOTHING = { sequence: 0, checkpoint: 0, logBytes: 0, timers: [], waiting: 0, unsent: null };
