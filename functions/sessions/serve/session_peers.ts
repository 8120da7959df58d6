/**
 * Who is attached to a stateful session at home here: its home side (functions/sessions/attach), over the runs of the session.
 *
 * Life: made when somebody attaches, or a run says that somebody is → runs come and go (an isolate that ended, a rest, other
 * code) → over: another site is the home, or the session has ended. It outlives its runs, so that channels stay while a
 * session is out of memory.
 *
 * SP1  An event is handed to a run when that has said what its log has of peers, and then at most once; what a run did
 *      not do is handed to the next.
 * SP2  What a run gives out reaches peers when its commit has left (session_run.ts, R1), and what it says of its log
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

/** The run that serves, as far as peers need it. */
export interface PeersRun {
  /** Whose log hosts hold; null: they do not. */
  readonly shared: Home | null;
  readonly isOver: boolean;
  /** It is to take no events for now, so that it comes to rest. */
  readonly isSwitching: boolean;
  deliver(event: HandledEvent): void;
  acknowledge(outputs: Readonly<Record<string, number>>): void;
  /** Somebody is attached no more, as all owners know. */
  detached(peer: string): void;
}

/** What is needed of the session and its site. */
export interface SessionPeersPorts {
  readonly clock: PeerClock;
  newId(): string;
  random(length: number): Uint8Array;
  /** The session is to be opened: something waits for it. */
  wake(): void;
  /** Somebody has seen a newer home: look whether this is one still. */
  outrun(): void;
  /** It outlives this: there is another one when somebody comes again. */
  readonly remembered: Remembered;
  /** As HomePorts has them. */
  keysOf(id: string): [Uint8Array, ...Uint8Array[]];
  openLog(host: string, records: readonly Uint8Array[]): OpenedHostLog;
  /** The cluster's newest secret. */
  readonly secret: Uint8Array;
  log(level: string, text: string): void;
}

/** What a log says of peers. */
export type OpenedPeers = Pick<OpenedProgram, "peers" | "outputs">;

/** And its home, of the log. */
interface OpenedLog extends OpenedPeers {
  readonly leftBehind: readonly string[];
}

/** For so long events wait until other code runs; then they go on with the code that runs. */
const SWITCH_MS_MAX = 2_000;

/** See the file's header. */
export class SessionPeers {
  readonly #ports: SessionPeersPorts;
  readonly #home: HomeSide;
  /** All that outputs may be for. */
  readonly #ids = new Set<string>();
  #run: PeersRun | null = null;
  #channels = 0;
  /** A run has said who is attached, and that is not at all owners yet. */
  #isNoted = false;
  #held: PeerInput[] = [];
  #cancelHold: () => void = () => {};
  /** Acknowledged while no run served. */
  #acknowledged: Record<string, number> = {};
  /** SP3: in whose place the run was told a rejection, and those of which the log had nothing then. */
  #killed: HandledEvent | null = null;
  readonly #stoodFor = new WeakSet<HandledEvent>();
  #epoch = 0;
  /** SP4 */
  #logs: HostLogs | null = null;
  /** Where the logs end of hosts that an opening asked. */
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

  /** Somebody is attached, or has a channel; or is about to be, as the log of a run that opens says. */
  get isUsed(): boolean {
    return this.#isNoted || this.#channels > 0 || this.#home.status.attached > 0;
  }

  /** The session has something to do. */
  get isWaiting(): boolean {
    return this.#home.status.waiting > 0;
  }

  /** Of the home that it is for; 0 before a run has served. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Those that are attached, or about to be. */
  get ids(): readonly string[] {
    return [...this.#ids];
  }

  /** Whether an output is for a peer. */
  isPeer(to: string): boolean {
    return this.#ids.has(to);
  }

  /** A host side of such a peer has a channel to here. */
  accept(channel: Channel, kind: Peer["kind"]): ChannelReader {
    const reader = this.#home.accept(channel, kind);
    this.#channels++;
    return {
      frame: (bytes) => reader.frame(bytes),
      broken: () => {
        this.#channels--;
        reader.broken();
      },
    };
  }

  // ── Runs ──

  /** An isolate says what the log has; nothing of it is told to peers yet. */
  noted({ peers }: OpenedPeers): void {
    for (const { id } of peers) this.#ids.add(id);
    this.#isNoted = true;
  }

  /** And nothing will be: that isolate does not serve. */
  notOpened(): void {
    this.#isNoted = false;
  }

  /** That is at all owners (SP2). What killed the run before was rejected already (SP3). */
  opened(epoch: number, { peers, outputs, leftBehind }: OpenedLog, run: PeersRun): void {
    this.#epoch = epoch;
    this.#isNoted = false;
    this.#run = run;
    const ahead = run.shared === null ? {} : { ahead: this.#ahead(run.shared) };
    run.acknowledge(this.#acknowledged);
    this.#acknowledged = {};
    const toPeers = outputs.filter(({ to }) => this.#ids.has(to));
    this.#home.opened({ epoch, peers, outputs: toPeers, leftBehind, ...ahead });
    for (const peer of leftBehind) if (!peers.some(({ id }) => id === peer)) run.detached(peer);
    this.#killed = null;
  }

  /** SP4 */
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

  /** SP4: of a commit up to that entry. */
  appended(entry: number, outputs: readonly OutputToPeer[]): void {
    this.#home.appended({ entry, outputs: outputs.filter(({ to }) => this.#ids.has(to)) });
  }

  /** A commit has left, and these events are done with it. */
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

  /** The run is over, and another may follow here. `killed`: the next one is told a rejection in its place. */
  runOver(killed: HandledEvent | null): void {
    this.#run = null;
    this.#isNoted = false;
    this.#held = [];
    this.#cancelHold();
    this.#killed = killed;
  }

  // ── Openings ──

  /** An opening asks hosts for the log (functions/sessions/home, HostsPort). */
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

  /** It can't be opened here: those that wait for that are told why. */
  unavailable(code: string, message: string, retry: PeerRetry): void {
    this.#home.unavailable(code, message, retry);
  }

  // ── Ends ──

  /** This site is not the home any more, or can't serve it. */
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
    // It was rejected: it does not wait for other code either.
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
