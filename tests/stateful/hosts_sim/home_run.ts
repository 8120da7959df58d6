/** The session as one site runs it: its home, what goes to its peers, and what comes of them. */
import { type Home, HomeError, type Opened } from "../../../functions/homes/mod.ts";
import { type HostEnd as LogEnd, HostFeeds } from "../../../functions/sealed_log/mod.ts";
import type { Draws } from "../../sim/random.ts";
import type { HomeEnd, ToHome } from "./frames.ts";
import {
  acknowledged,
  apply,
  BLANK,
  decode,
  encode,
  type Entry,
  type Output,
  type State,
} from "./program.ts";

export interface HomeWrongs {
  /** What nobody has acknowledged is not in a checkpoint. */
  readonly forgetsKept?: boolean;
  /** Outputs leave before the log that made them. */
  readonly logLater?: boolean;
  /** A message counts as in the log when any host has it. */
  readonly acksForOthers?: boolean;
  /** Who is there is told ahead, on record or not. */
  readonly aheadAtOnce?: boolean;
  /** A message that comes again is handled again. */
  readonly handlesTwice?: boolean;
  /** Others are told when the own isolate has done it. */
  readonly tellsAtOnce?: boolean;
}

export interface RunPorts {
  readonly secret: Uint8Array;
  readonly draws: Draws;
  readonly wrongs: HomeWrongs;
  readonly checkpointEvery: number;
  /** The site lives, and this is its run. */
  isAlive(): boolean;
  made(before: string, digest: string, entry: Entry): void;
  complain(message: string): void;
  over(error: HomeError): void;
}

interface Peer {
  readonly end: HomeEnd;
  /** The last output that left on this channel, or that it had. */
  sent: number;
  acked: number;
  /** Up to this entry it was sent the log. */
  logged: number;
}

export class HomeRun {
  readonly home: Home;
  readonly #ports: RunPorts;
  readonly #feeds: HostFeeds;
  readonly #peers = new Map<string, Peer>();
  #state: State;
  /** By host and message: the entry that it is in, of those since it was opened. */
  readonly #entries = new Map<string, number>();
  readonly #openedAt: number;
  #checkpointAt: number;
  #isCheckpointing = false;

  constructor(opened: Opened, ends: ReadonlyMap<string, LogEnd>, ports: RunPorts) {
    this.#ports = ports;
    const { checkpoint, log } = opened;
    this.#state = checkpoint === null ? BLANK : decode(checkpoint.bytes) as State;
    for (const piece of log) this.#state = apply(this.#state, decode(piece.bytes) as Entry).state;
    this.#checkpointAt = checkpoint?.at ?? 0;
    const home = this.home = opened.start([]);
    this.#openedAt = home.sequence;
    const { secret, draws, wrongs } = ports;
    const hosts = wrongs.aheadAtOnce === true ? { ...bound(home), isAhead: () => true } : home.hosts;
    const feedHome = {
      ...{ name: home.name, epoch: home.epoch, hosts, copy: () => home.copy() },
      get copyBytes() {
        return home.copyBytes;
      },
      get last() {
        return home.sequence;
      },
      get released() {
        return home.released;
      },
    };
    this.#feeds = new HostFeeds(feedHome, {
      secret,
      random: (length) => draws.bytes(length),
      ready: (host) => this.#flush(host),
      failed: (_, error) => {
        if (!(error instanceof HomeError)) ports.complain(`${error}`);
      },
    }, ends);
    home.hosts.onRecorded = () => this.#flushAll();
    void home.over.then((error) => ports.over(error));
  }

  get state(): State {
    return this.#state;
  }

  /** A host has said hello, and is welcome. */
  greet(end: HomeEnd, hello: ToHome & { readonly kind: "hello" }): void {
    const { host } = hello;
    if (this.#state.received[host] === undefined) this.#handle({ kind: "attach", from: host, sequence: 0 });
    const peer: Peer = { end, sent: hello.received, acked: 0, logged: 0 };
    this.#peers.set(host, peer);
    end.onFrame = (frame) => this.#ports.isAlive() ? this.#frame(host, frame) : undefined;
    end.onBroken = () => {
      if (!this.#ports.isAlive() || this.#peers.get(host) !== peer) return;
      this.#peers.delete(host);
      this.#feeds.detach(host);
    };
    const received = peer.acked = this.#acknowledgement(host, peer);
    const handled = this.#state.received[host] ?? 0;
    end.send({ kind: "welcome", epoch: this.home.epoch, handled, received });
    this.#feeds.attach(host, hello.tag);
  }

  /** Others wait until it is released. */
  async request(request: string): Promise<string> {
    const { answer, held } = this.#handle({ kind: "request", from: request, sequence: 0 });
    if (this.#ports.wrongs.tellsAtOnce !== true) await held;
    return answer;
  }

  close(): void {
    for (const { end } of this.#peers.values()) end.close();
    this.#peers.clear();
  }

  #handle(what: Omit<Entry, "draw">): { readonly answer: string; readonly held: Promise<void> } {
    const entry = { ...what, draw: this.#ports.draws.integer(0, 1e9) };
    const before = this.#state.digest;
    const { state, answer } = apply(this.#state, entry);
    this.#state = state;
    this.#ports.made(before, state.digest, entry);
    const bytes = encode(entry), { home } = this;
    const held = home.commit({ count: 1, entries: bytes, answers: [], wakeAtMs: null });
    held.then(() => this.#ports.isAlive() && this.#released(), () => {});
    this.#feeds.appended({ epoch: home.epoch, first: home.sequence, count: 1, wakeAtMs: 0, bytes });
    this.#flushAll();
    return { answer, held };
  }

  #frame(host: string, frame: ToHome): void {
    if (frame.kind === "message") {
      const isNew = frame.sequence === (this.#state.received[host] ?? 0) + 1;
      if (!isNew && this.#ports.wrongs.handlesTwice !== true) return;
      this.#entries.set(`${host} ${frame.sequence}`, this.home.sequence + 1);
      this.#handle({ kind: "message", from: host, sequence: frame.sequence });
    } else if (frame.kind === "ack") {
      this.#feeds.taken(host, frame.taken);
      this.#state = acknowledged(this.#state, host, frame.received);
    }
  }

  #released(): void {
    this.#flushAll();
    const { checkpointEvery } = this.#ports;
    if (this.home.sequence - this.#checkpointAt >= checkpointEvery && !this.#isCheckpointing) {
      void this.#checkpoint();
    }
  }

  async #checkpoint(): Promise<void> {
    this.#isCheckpointing = true;
    const at = this.home.sequence;
    const state = this.#ports.wrongs.forgetsKept === true ? { ...this.#state, kept: [] } : this.#state;
    try {
      await this.home.checkpoint({ at, bytes: encode(state), version: "v1" });
      this.#checkpointAt = at;
      this.#feeds.based(at);
    } catch (error) {
      if (!(error instanceof HomeError)) this.#ports.complain(`${error}`);
    }
    this.#isCheckpointing = false;
  }

  #flushAll(): void {
    for (const host of this.#peers.keys()) this.#flush(host);
  }

  /** HF1 */
  #flush(host: string): void {
    const peer = this.#peers.get(host);
    if (peer === undefined || !this.#ports.isAlive()) return;
    const reach = this.#feeds.reach(host);
    if (reach < 0) return;
    const records = this.#feeds.next(host);
    if (records.length > 0) peer.logged = reach;
    const outputs = this.#due(host, peer, reach);
    const received = this.#acknowledgement(host, peer);
    if (records.length === 0 && outputs.length === 0 && received === peer.acked) return;
    peer.acked = received;
    const { epoch } = this.home;
    const isLater = this.#ports.wrongs.logLater === true;
    const first = outputs.shift() ?? null;
    peer.end.send({ kind: "output", epoch, records: isLater ? [] : records, output: first, received });
    for (const output of outputs) peer.end.send({ kind: "output", epoch, records: [], output, received });
    if (isLater) peer.end.send({ kind: "output", epoch, records, output: null, received });
  }

  #due(host: string, peer: Peer, reach: number): { readonly sequence: number; readonly text: string }[] {
    const kept = this.#state.kept.filter((one: Output) => one.to === host && one.entry <= reach);
    const due = kept.filter(({ sequence }) => sequence > peer.sent);
    const last = due.at(-1);
    if (last !== undefined) peer.sent = last.sequence;
    return due;
  }

  /** HO5 */
  #acknowledgement(host: string, peer: Peer): number {
    const logged = this.#ports.wrongs.acksForOthers === true
      ? Math.max(...[...this.#peers.values()].map((one) => one.logged))
      : peer.logged;
    const through = Math.max(this.home.released, logged);
    let received = peer.acked;
    const all = this.#state.received[host] ?? 0;
    const entryOf = (message: number) => this.#entries.get(`${host} ${message}`) ?? this.#openedAt;
    while (received < all && entryOf(received + 1) <= through) received++;
    return received;
  }
}

const bound = (home: Home) => ({
  has: (host: string, through: number) => home.hosts.has(host, through),
  drop: (host: string) => home.hosts.drop(host),
  told: (host: string, through: number) => home.hosts.told(host, through),
});
