/**
 * Peers of a stateful session that this site serves, from one opening to the next. Most sessions have no peers, and
 * then this object is all there is.
 *
 * HP1  A peer that waits for the session has it opened. Where it can't be opened here all channels are told to look
 *      elsewhere: the peers ask again, and hear why.
 * HP2  A home that another one follows tells its channels so, also while the session rests.
 * HP3  Where hosts hold the log they come before the session is open, and are asked for it, where it may be opened:
 *      they wait for the opening, and are told why there is none. At any other site nobody gets a channel: the gateway
 *      or agent that brings one is told where the session's home is, and goes on there.
 * HP4  A class that names an origin has a way to it from its first run here on, until the session is not served here
 *      any more; where the origin's host side may hold the log, also before that.
 * HP5  A run may go on when its peers were told to look elsewhere (at a planned stop): what it gives out for them stays
 *      theirs, and is kept for the next home. A peer that comes meanwhile is told what the run's log has of it all the
 *      same.
 */
import { HomeError } from "../home/mod.ts";
import {
  type Channel,
  type ChannelReader,
  type HomeSideStatus,
  type LogAsk,
  Remembered,
} from "../attach/mod.ts";
import type { Commit, HandledEvent, OpenedProgram, Peer } from "../turn/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";
import { OriginWay } from "../attach/origin_way.ts";
import type { RunPeers } from "./run_over.ts";
import { problemOf } from "../../vocabulary/problem.ts";
import type { RunStore } from "./ports.ts";
import { FOR_GOOD } from "./refusals.ts";
import { SessionPeers, type SessionPeersPorts } from "./session_peers.ts";
import type { SessionRun } from "./session_run.ts";

/** The site's part that the peers need. */
export interface PeersSite extends Omit<SessionPeersPorts, "wake" | "left" | "outrun" | "remembered"> {
  /** Reports whether hosts hold the log of the session's class. */
  readonly isShared: () => boolean;
  /** Returns the way to the session's origin, as the code that is live has it; null: there is none. */
  readonly origin: () => Pick<SessionRun, "version" | "originWay"> | null;
  /** Reports a fault in the work for the peers, of this session only. */
  readonly failed: (error: unknown) => void;
}

/** The session's part that its peers need. */
export interface PeersSession {
  /** Returns the open run, or opens one. @throws HomeError, Problem … */
  ensure(): Promise<SessionRun>;
  readonly run: SessionRun | null;
  /** Returns the ports of the peers. Most sessions have no peers, and never need them. */
  peersSite(): PeersSite;
}

const INTERNAL = { code: "internal", message: "the stateful session could not be opened" };
/** Codes of errors after which another site may serve the session. */
const MOVED: ReadonlySet<string> = new Set(["elsewhere", "superseded", "closed"]);
const NOBODY = { peers: [], outputs: [] };

/** See the file's header. */
export class HostedPeers implements RunPeers {
  readonly #session: PeersSession;
  #site: PeersSite | null = null;
  #peers: SessionPeers | null = null;
  /** Record that is kept of all peers, over all `SessionPeers`; null: there has been none. */
  #remembered: Remembered | null = null;
  /** Peers that were let go while a run goes on (HP5). */
  #left: SessionPeers | null = null;
  #connecting = 0;
  /** Run that has said what its log has of peers. */
  #opened: SessionRun | null = null;
  /** Tokens of what peers have seen that came before the session was open (HP3). */
  #unseen: TokenState[] | null = null;
  #asking = 0;
  /** Resolves, while somebody connects, when hosts are asked for the log (HP3). */
  #asked: PromiseWithResolvers<null> | null = null;
  /** Way to the origin, and the code whose origin it is (HP4). */
  #way: { readonly version: string; readonly way: OriginWay } | null = null;

  constructor(session: PeersSession) {
    this.#session = session;
  }

  get #ports(): PeersSite {
    return this.#site ??= this.#session.peersSite();
  }

  get status(): HomeSideStatus | null {
    return this.#peers?.status ?? null;
  }

  /** Ids of the attached peers. */
  get ids(): readonly string[] {
    return this.#peers?.ids ?? [];
  }

  get isUsed(): boolean {
    return this.#connecting > 0 || this.#asking > 0 || (this.#peers?.isUsed ?? false);
  }

  /** Connects a channel. @param token what the client that attaches has seen. @throws HomeError, Problem … */
  async connect(channel: Channel, token: TokenState | null): Promise<ChannelReader> {
    if (this.#opened === null && this.#asking > 0) return this.#waits(channel, token);
    this.#connecting++;
    try {
      const isFar = this.#opened === null && this.#ports.isShared();
      if (this.#peers === null || token !== null || isFar) {
        if (!await this.#isServed(token)) return this.#waits(channel, token);
      }
    } finally {
      if (--this.#connecting === 0) this.#asked = null;
    }
    return this.#accept(channel, "client");
  }

  /** Accepts a channel that waits until the session is open (HP3). */
  #waits(channel: Channel, token: TokenState | null): ChannelReader {
    if (token !== null) (this.#unseen ??= []).push(token);
    const reader = this.#accept(channel, "client");
    this.#wake();
    return reader;
  }

  /** Asks the hosts for the log, for an opening (functions/sessions/home, HostsPort). */
  async ask(ask: LogAsk): ReturnType<SessionPeers["ask"]> {
    this.#asking++;
    this.#asked?.resolve(null);
    this.#asked = null;
    try {
      const origin = this.#way === null ? this.#ports.origin() : null;
      if (origin !== null) this.#findOrigin(origin);
      return await this.#here().ask(ask);
    } finally {
      this.#asking--;
    }
  }

  /**
   * Makes the store see what peers have seen that came before the session was open, before the run is told who is
   * attached (HP3).
   */
  async ready(store: Pick<RunStore, "seeAll">): Promise<void> {
    while (this.#unseen !== null) {
      const unseen = this.#unseen;
      this.#unseen = null;
      await store.seeAll(unseen);
    }
  }

  appended(entry: number, outputs: Commit["outputs"]): void {
    this.#peers?.appended(entry, outputs);
  }

  /** Closes the way to the origin: nothing is left of the session here. */
  close(): void {
    this.#way?.way.close();
    this.#way = null;
  }

  /**
   * Waits until a run serves, and has seen what the client that connects has seen. Returns false where hosts are asked
   * for the log instead: that is done where the session may be opened, and nowhere else, so a client that comes to
   * another site hears where the home is before all else.
   */
  async #isServed(token: TokenState | null): Promise<boolean> {
    for (;;) {
      this.#asked ??= Promise.withResolvers<null>();
      const run = await Promise.race([this.#serving(), this.#asked.promise]);
      if (run === null) return false;
      if (token !== null) await run.store.seeAll([token]);
      if (!run.isOver) return true; // else no run would serve the peer of this channel
    }
  }

  /** Waits for a run that takes events: a run that ends makes room for the next. */
  async #serving(): Promise<SessionRun> {
    for (;;) {
      const run = await this.#session.ensure();
      if (!run.isEnding) return run;
      run.endNow();
      await run.finished;
    }
  }

  #accept(channel: Channel, kind: Peer["kind"]): ChannelReader {
    const peers = this.#here(), reader = peers.accept(channel, kind);
    // HP1: no peer was told of any log here yet, and nobody else need ask for an opening: one may have failed, or the
    // session rests, and its origin comes again.
    if (peers.epoch === 0) this.#wake();
    return reader;
  }

  /** Begins the way to the origin that the code names (HP4). */
  #findOrigin({ version, originWay }: Pick<SessionRun, "version" | "originWay">): void {
    if (this.#way?.version === version) return;
    this.close();
    if (originWay === null) return;
    const accept = (channel: Channel) => this.#accept(channel, "origin");
    this.#way = { version, way: new OriginWay(originWay, accept, this.#ports.failed, this.#ports.clock) };
  }

  // ── For runs ──

  /** Tells the channels of the home of that epoch that it is over (HP2). */
  homeOver(epoch: number, { code, site }: HomeError): void {
    if (this.#peers?.epoch !== epoch) return;
    if (code === "ended") this.ended();
    else this.over(site);
  }

  /** Reports whether a receiver of outputs is a peer (HP5). */
  isPeer(to: string): boolean {
    return this.#peers?.isPeer(to) === true || this.#left?.isPeer(to) === true;
  }

  noted(opened: OpenedProgram): void {
    this.#left = null;
    if (opened.peers.length > 0) this.#here().noted(opened);
  }

  /** Undoes `noted`: that run does not serve. */
  notOpened(): void {
    if (this.#opened !== null) return;
    this.#peers?.notOpened();
    this.#forgetUnused();
  }

  opened(opened: OpenedProgram): void {
    const run = this.#session.run;
    if (run === null) return;
    if (this.#peers === null) this.noted(opened); // HP5
    const { epoch, hosts: { leftBehind } } = run.home;
    // Also where all peers have gone again: as hosts they are on record, and are to be waited for no more.
    const onRecord = leftBehind.length + (run.shared?.hosts.asked.length ?? 0);
    const peers = onRecord > 0 ? this.#here() : this.#peers;
    this.#opened = run;
    peers?.opened(epoch, { ...opened, leftBehind }, run);
    this.#findOrigin(run);
    this.#forgetUnused();
  }

  released(commit: Commit, done: readonly (readonly [number, HandledEvent])[], entry: number): void {
    this.#peers?.released(commit, done, entry);
    this.#forgetUnused();
  }

  /**
   * Notes that the run is over, and another may follow here. `rejected` is the event that the next run is told first.
   */
  runOver(rejected: HandledEvent | null): void {
    this.#opened = null;
    this.#peers?.runOver(rejected?.kind === "reject" ? rejected.of : null);
    // A peer that said hello before any run had told what its log has waits for the next run.
    if (this.#peers?.isWaiting === true || this.#peers?.epoch === 0) this.#wake();
  }

  /** Tells the peers that the session is not served here any more; `site`: where it may be. */
  over(site: string | null): void {
    this.#take()?.over(site);
  }

  /** Tells the peers that the session has ended. */
  ended(): void {
    this.#take()?.ended();
  }

  #take(): SessionPeers | null {
    const peers = this.#peers;
    this.#left = peers ?? this.#left;
    this.#peers = null;
    this.#opened = null;
    this.#unseen = null;
    this.close();
    return peers;
  }

  #here(): SessionPeers {
    if (this.#peers !== null) return this.#peers;
    const peers = this.#peers = new SessionPeers({
      ...this.#ports,
      wake: () => this.#wake(),
      left: () => this.#forgetUnused(),
      remembered: this.#remembered ??= new Remembered(() => this.#ports.clock.nowMs()),
      // A home that is none any more finds out by writing to its owners.
      outrun: () => void this.#session.ensure().then((run) => run.checkpoint()).catch(() => {}),
    });
    const run = this.#session.run;
    if (run !== null && this.#opened === run && !run.isOver) {
      peers.opened(run.home.epoch, { ...NOBODY, leftBehind: [] }, run);
    }
    return peers;
  }

  /** Opens the session for its peers, and tells them where that fails (HP1). */
  #wake(): void {
    const peers = this.#peers;
    this.#session.ensure().catch((error) => {
      if (this.#peers !== peers) return;
      const { code, message } = error instanceof HomeError ? error : problemOf(error) ?? INTERNAL;
      if (!MOVED.has(code)) peers?.unavailable(code, message, FOR_GOOD.has(code) ? "fix" : "retry"); // HP3
      this.over(error instanceof HomeError ? error.site : null);
    });
  }

  /**
   * Drops the peers' object where nobody is attached any more and nothing of it is under way: the next peer begins a
   * new one.
   */
  #forgetUnused(): void {
    const peers = this.#peers;
    if (peers === null || peers.isUsed || peers.isWaiting) return;
    this.#peers = null;
    peers.over(null);
  }
}
