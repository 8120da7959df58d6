/**
 * Peers that are attached to a stateful session at home here: their home side (functions/sessions/attach), over the
 * runs of the session.
 *
 * Life: made when somebody attaches, or a run says that somebody is → runs come and go (an isolate that ended, a rest,
 * other code) → over: another site is the home, or the session has ended. It outlives its runs, so that channels stay
 * while a session is out of memory.
 *
 * SP1  An event is handed to a run when that has said what its log has of peers, and then at most once; what a run did
 *      not do is handed to the next.
 * SP2  Outputs of a run reach peers when their commit has left (session_run.ts, R1), and what the run says of its log
 *      when that is at all owners.
 * SP3  An event in whose handler an isolate ended is not run again: it is rejected in its place.
 * SP4  Where hosts hold the log they are told of a commit when it is appended, before it has left (host_logs.ts).
 */
import type { Home } from "../home/mod.ts";
import type { LogCopy } from "../log/log_copy.ts";
import {
  type Channel,
  type ChannelReader,
  HomeSide,
  type HomeSideStatus,
  type LogAsk,
  type OutputToPeer,
  type PeerClock,
  type PeerInput,
  type PeerRetry,
  type Remembered,
} from "../attach/mod.ts";
import { type HostLogEnd, type OpenedHostLog } from "../sealed/mod.ts";
import type { Commit, HandledEvent, OpenedProgram, Peer } from "../turn/mod.ts";
import { HostLogs } from "./host_logs.ts";

/** The serving run's part that peers need. */
export interface PeersRun {
  readonly home: Pick<Home, "hosts">;
  /** Home whose log hosts hold; null: they do not. */
  readonly shared: Home | null;
  readonly isOver: boolean;
  /** True while the run is to take no events, so that it comes to rest. */
  readonly isSwitching: boolean;
  deliver(event: HandledEvent): void;
  acknowledge(outputs: Readonly<Record<string, number>>): void;
  /** Notes that a peer is attached no more, as all owners know. */
  detached(peer: string): void;
}

/** The part of the session and its site that the peers need. */
export interface SessionPeersPorts {
  readonly clock: PeerClock;
  newId(): string;
  random(length: number): Uint8Array;
  /** Opens the session: something waits for it. */
  wake(): void;
  /** Called when a channel is broken: there may be nobody any more. */
  left(): void;
  /** Looks whether this home is one still: a host has seen a newer home. */
  outrun(): void;
  /** Record of peers that outlives this object: there is another object when somebody attaches again. */
  readonly remembered: Remembered;
  /** Functions of the same names in HomePorts. */
  keysOf(id: string): [Uint8Array, ...Uint8Array[]];
  openLog(host: string, records: readonly Uint8Array[]): OpenedHostLog;
  /** The cluster's newest secret. */
  readonly secret: Uint8Array;
  log(level: string, text: string): void;
}

/** Peers of a log, and the outputs that it leaves. */
export type OpenedPeers = Pick<OpenedProgram, "peers" | "outputs">;

/** Peers of a log that was opened, and the hosts that its home has left behind. */
interface OpenedLog extends OpenedPeers {
  readonly leftBehind: readonly string[];
}

/** Milliseconds for which events wait until other code runs; then they go on with the code that runs. */
const SWITCH_MS_MAX = 2_000;

/** See the file's header. */
export class SessionPeers {
  readonly #ports: SessionPeersPorts;
  readonly #home: HomeSide;
  /** Ids of all peers that outputs may be for. */
  readonly #ids = new Set<string>();
  #run: PeersRun | null = null;
  #channels = 0;
  /** True once a run has said who is attached, until that is at all owners. */
  #isNoted = false;
  #held: PeerInput[] = [];
  #cancelHold: () => void = () => {};
  /** Outputs that peers acknowledged while no run served. */
  #acknowledged: Record<string, number> = {};
  /** Event in whose place the run was told a rejection, and such events of which the log had nothing then (SP3). */
  #killed: HandledEvent | null = null;
  readonly #stoodFor = new WeakSet<HandledEvent>();
  #epoch = 0;
  /** Logs at hosts (SP4); null: hosts hold none. */
  #logs: HostLogs | null = null;
  /** Ends of the logs of hosts that an opening asked. */
  #ends: ReadonlyMap<string, HostLogEnd> = new Map();

  constructor(ports: SessionPeersPorts) {
    this.#ports = ports;
    this.#home = new HomeSide({
      clock: ports.clock,
      newId: () => ports.newId(),
      keysOf: (id) => ports.keysOf(id),
      openLog: (host, records) => ports.openLog(host, records),
      outrun: () => ports.outrun(),
      remembered: ports.remembered,
      deliver: (event) => this.#deliver(event),
      acknowledge: (outputs) => {
        if (this.#run !== null) this.#run.acknowledge(outputs);
        else Object.assign(this.#acknowledged, outputs);
      },
    });
  }

  get status(): HomeSideStatus {
    return this.#home.status;
  }

  /**
   * True while a peer is attached, or has a channel, or is about to be attached, as the log of a run that opens says.
   */
  get isUsed(): boolean {
    return this.#isNoted || this.#channels > 0 || this.#home.status.attached > 0;
  }

  /** True while peers have something for the session to do. */
  get isWaiting(): boolean {
    return this.#home.status.waiting > 0;
  }

  /** Epoch of the home that these peers are attached to; 0 before a run has served. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Ids of peers that are attached, or about to be. */
  get ids(): readonly string[] {
    return [...this.#ids];
  }

  /** Reports whether a receiver of outputs is a peer. */
  isPeer(to: string): boolean {
    return this.#ids.has(to);
  }

  /** Accepts a channel that the host side of such a peer has to this site. */
  accept(channel: Channel, kind: Peer["kind"]): ChannelReader {
    const reader = this.#home.accept(channel, kind);
    this.#channels++;
    return {
      frame: (bytes) => reader.frame(bytes),
      broken: () => {
        this.#channels--;
        reader.broken();
        this.#ports.left();
      },
    };
  }

  // ── Runs ──

  /** Takes the peers of the log, as an isolate tells them; nothing of that is told to peers yet. */
  noted({ peers }: OpenedPeers): void {
    for (const { id } of peers) this.#ids.add(id);
    this.#isNoted = true;
  }

  /** Undoes `noted`: that isolate does not serve. */
  notOpened(): void {
    this.#isNoted = false;
  }

  /**
   * Takes what the run's log has of peers, once it is at all owners (SP2). The event that killed the run before was
   * rejected already (SP3).
   */
  opened(epoch: number, { peers, outputs, leftBehind }: OpenedLog, run: PeersRun): void {
    this.#epoch = epoch;
    this.#isNoted = false;
    this.#run = run;
    const ahead = run.shared === null ? this.#noneAhead(run.home) : { ahead: this.#ahead(run.shared) };
    run.acknowledge(this.#acknowledged);
    this.#acknowledged = {};
    const toPeers = outputs.filter(({ to }) => this.#ids.has(to));
    this.#home.opened({ epoch, peers, outputs: toPeers, leftBehind, ...ahead });
    for (const peer of leftBehind) if (!peers.some(({ id }) => id === peer)) run.detached(peer);
    this.#killed = null;
  }

  /** Returns the feeds of hosts that hold the log (SP4). */
  #ahead(home: Home) {
    if (this.#logs?.epoch === home.epoch) this.#logs.runs(home);
    else {
      this.#logs = new HostLogs(home, this.#ends, {
        secret: this.#ports.secret,
        random: (length) => this.#ports.random(length),
        changed: () => this.#home.hostsChanged(),
        log: (text) => this.#ports.log("warn", text),
      });
    }
    const { released, hosts: { asked } } = home;
    return { feeds: this.#logs.feeds, released, asked };
  }

  /** Returns the hosts that are on record yet of a class whose hosts hold the log no longer. */
  #noneAhead({ hosts }: Pick<Home, "hosts">) {
    hosts.onRecorded = () => this.#home.hostsChanged();
    return { onRecord: hosts };
  }

  /** Notes a commit up to that entry that was appended, and tells hosts of it (SP4). */
  appended(entry: number, outputs: readonly OutputToPeer[]): void {
    this.#home.appended({ entry, outputs: outputs.filter(({ to }) => this.#ids.has(to)) });
  }

  /** Notes a commit that has left, and the events that are done with it. */
  released(
    { outputs, rejected, through }: Commit,
    done: readonly (readonly [number, HandledEvent])[],
    entry: number,
  ): void {
    const ended = done.flatMap(([number, event]) => {
      const of = event.kind === "reject" ? event.of : event;
      if (of === null || !isOfPeer(of) || (of !== event && !this.#stoodFor.has(of))) return [];
      return [{ event: of, rejected: number === through && rejected?.attempt === 0 ? rejected : null }];
    });
    const toPeers = outputs.filter(({ to }) => this.#ids.has(to));
    if (ended.length === 0 && toPeers.length === 0 && this.#logs === null) return;
    this.#home.released({ done: ended, outputs: toPeers, entry });
    for (const { event } of ended) {
      if (event.kind !== "detach") continue;
      this.#ids.delete(event.peer);
      this.#run?.detached(event.peer);
    }
  }

  /**
   * Notes that the run is over, and another may follow here. `killed`: the event in whose place the next run is told a
   * rejection.
   */
  runOver(killed: HandledEvent | null): void {
    this.#run = null;
    this.#isNoted = false;
    this.#held = [];
    this.#cancelHold();
    this.#killed = killed;
  }

  // ── Openings ──

  /** Asks the hosts for the log, for an opening (functions/sessions/home, HostsPort). */
  async ask(ask: LogAsk): Promise<ReadonlyMap<string, LogCopy | null> | "superseded"> {
    const answers = await this.#home.ask(ask);
    if (answers === "superseded") return answers;
    const ends = new Map<string, HostLogEnd>(), logs = new Map<string, LogCopy | null>();
    for (const [host, copy] of answers) {
      logs.set(host, copy?.log ?? null);
      if (copy !== null) ends.set(host, { ...copy, baseAt: copy.log.base?.at ?? 0 });
    }
    this.#ends = ends;
    return logs;
  }

  /** Tells those that wait for the session why it can't be opened here. */
  unavailable(code: string, message: string, retry: PeerRetry): void {
    this.#home.unavailable(code, message, retry);
  }

  // ── Ends ──

  /** Tells the peers that this site is not the home any more, or can't serve the session. */
  over(site: string | null): void {
    this.#run = null;
    this.#cancelHold();
    this.#home.over(site);
  }

  ended(): void {
    this.#run = null;
    this.#cancelHold();
    this.#home.ended(1000, "the stateful session has ended");
  }

  // ── Events ──

  #deliver(event: PeerInput): void {
    if (event.kind === "attach") this.#ids.add(event.peer.id);
    const run = this.#run;
    if (run === null || run.isOver) return this.#ports.wake(); // SP1: the next run is told
    // The event was rejected: it does not wait for other code either.
    if (this.#killed === event) return void this.#stoodFor.add(event);
    if (run.isSwitching) this.#hold(run, event);
    else run.deliver(event);
  }

  #hold(run: PeersRun, event: PeerInput): void {
    if (this.#held.push(event) > 1) return;
    this.#cancelHold = this.#ports.clock.after(SWITCH_MS_MAX, () => {
      const held = this.#held;
      this.#held = [];
      if (this.#run === run) { for (const each of held) run.deliver(each); }
    });
  }
}
const isOfPeer = (event: HandledEvent): event is PeerInput =>
  event.kind === "attach" || event.kind === "message" || event.kind === "detach";
