/**
 * A stateful session whose clients hold its log, behind the sites of a {@link VirtualHost}: real home sides and feeds, one
 * disk that can be lost with its home, and an arbiter that is always there. It tells all its peers each message, with
 * its number in the log.
 */
import { strict as assert } from "node:assert";
import {
  type Channel,
  HomeSide,
  type OutputToPeer,
  type PeerInput,
  SUBPROTOCOL,
} from "../../../functions/sessions/attach/mod.ts";
import { tag } from "../../../functions/sessions/attach/frame_bytes.ts";
import { type HostCopy, HostFeeds, openHostLog } from "../../../functions/sessions/sealed/mod.ts";
import type { Socket, SocketListener } from "../../../functions/client/ports.ts";
import type { LogCopy, LogPiece } from "../../../functions/sessions/log/log_copy.ts";
import type { FakeSite, VirtualHost } from "./virtual_host.ts";

const NAME = { app: "duel", class: "duel", id: "one" };
const SECRET = new Uint8Array(32).fill(5);
const SEED = new Uint8Array(32).fill(6);
/** From the log to the disk: slow, so that clients are ahead of it. */
const DISK_MS = 60;
const ASK_MS = 300;
const ABNORMAL = 1006;
const utf8 = new TextEncoder();

type Entry =
  | { readonly kind: "attach" | "detach"; readonly peer: string }
  | { readonly kind: "message"; readonly peer: string; readonly text: string };

interface Folded {
  readonly outputs: OutputToPeer[];
  readonly peers: Map<string, { sent: number; received: number }>;
  /** Every message, in order. */
  readonly heard: string[];
}

/** What a log comes to. */
function fold(entries: readonly Entry[]): Folded {
  const folded: Folded = { outputs: [], peers: new Map(), heard: [] };
  for (const entry of entries) step(folded, entry);
  return folded;
}

function step({ outputs, peers, heard }: Folded, entry: Entry): OutputToPeer[] {
  if (entry.kind === "attach") peers.set(entry.peer, { sent: 0, received: 0 });
  if (entry.kind === "detach") peers.delete(entry.peer);
  if (entry.kind === "message") {
    const from = peers.get(entry.peer);
    if (from !== undefined) from.received++;
    const number = heard.push(entry.text);
    const given = [...peers].map(([to, peer]) => ({
      to,
      sequence: ++peer.sent,
      bytes: tag(`${number} ${entry.text}`),
    }));
    outputs.push(...given);
    return given;
  }
  return [];
}

const entryOf = (event: PeerInput): Entry =>
  event.kind === "attach"
    ? { kind: "attach", peer: event.peer.id }
    : event.kind === "detach"
    ? { kind: "detach", peer: event.peer }
    : { kind: "message", peer: event.peer, text: String(event.message) };

const entriesIn = ({ pieces }: LogCopy): Entry[] =>
  pieces.map(({ bytes }) => JSON.parse(new TextDecoder().decode(bytes)) as Entry);

/** One home, until it is killed. */
class Home {
  readonly side: HomeSide;
  readonly #session: HostedSession;
  readonly #world: VirtualHost;
  readonly epoch: number;
  pieces: LogPiece[] = [];
  #folded = fold([]);
  #feeds: HostFeeds | null = null;
  #released = 0;
  readonly #held = new Map<string, number>();
  /** How often each host was lost here. */
  readonly #drops = new Map<string, number>();
  readonly #waiting: {
    readonly entry: number;
    readonly event: PeerInput;
    readonly outputs: OutputToPeer[];
  }[] = [];
  isAlive = true;

  constructor(session: HostedSession, world: VirtualHost, epoch: number) {
    this.#session = session;
    this.#world = world;
    this.epoch = epoch;
    this.side = new HomeSide({
      clock: { nowMs: () => world.nowMs(), after: (ms, run) => this.#later(ms, run) },
      deliver: (event) => this.#later(0, () => this.#append(event)),
      acknowledge: () => {},
      newId: () => session.newId(),
      keysOf: (id) => [new Uint8Array(16).fill(id.length)],
      openLog: (receiver, records) => openHostLog([SECRET], { name: NAME, receiver }, records),
      outrun: () => {},
    });
    void this.#open();
  }

  #later(ms: number, run: () => void): () => void {
    return this.#world.later(ms, () => this.isAlive ? run() : undefined);
  }

  /** HO2 */
  async #open(): Promise<void> {
    const { recorded, disk } = this.#session;
    const hosts = [...recorded];
    let answers: ReadonlyMap<string, HostCopy | null> = new Map();
    while (hosts.some((host) => !answers.has(host))) {
      const asked = await this.side.ask({ epoch: this.epoch, hosts, withinMs: ASK_MS });
      if (!this.isAlive) return;
      if (asked === "superseded") return; // a later one has been begun, and kills this one
      answers = new Map([...answers, ...asked]);
      const missing = hosts.filter((host) => !answers.has(host));
      if (missing.length > 0 && this.#session.tells) {
        this.side.unavailable("stateful_unreachable", `missing: ${missing.join(", ")}`, "retry");
      }
    }
    if (!this.isAlive) return;
    const copies = [...answers.values()].flatMap((copy) => copy === null ? [] : [copy.log.pieces]);
    if (disk !== null) copies.push(disk);
    const lastOf = (pieces: readonly LogPiece[]) => pieces.at(-1) ?? { epoch: 0, first: 0 };
    copies.sort((a, b) => lastOf(b).epoch - lastOf(a).epoch || lastOf(b).first - lastOf(a).first);
    this.pieces = [...copies[0] ?? []];
    this.#session.recovered(this.pieces.length, disk?.length ?? -1);
    this.#folded = fold(entriesIn(this.#copy()));
    const ends = new Map([...answers].flatMap(([host, copy]) => {
      this.#held.set(host, copy?.through ?? 0);
      if (copy === null) return [];
      const { tag, through, bytes, records } = copy;
      return [[host, { tag, through, bytes, records, baseAt: 0 }] as const];
    }));
    this.#serve(ends, hosts);
  }

  #copy(): LogCopy {
    return { seed: SEED, version: "v1", base: null, parts: [], pieces: [...this.pieces] };
  }

  #serve(ends: ConstructorParameters<typeof HostFeeds>[2], asked: readonly string[]): void {
    const { recorded } = this.#session;
    const last = () => this.pieces.length, released = () => this.#released;
    let salts = this.epoch * 100_000;
    this.#feeds = new HostFeeds({
      ...{ name: NAME, epoch: this.epoch, copy: () => Promise.resolve(this.#copy()), copyBytes: 0 },
      get last() {
        return last();
      },
      get released() {
        return released();
      },
      hosts: {
        has: (host, through) => {
          this.#held.set(host, Math.max(through, this.#held.get(host) ?? 0));
          if (!recorded.has(host) && through >= this.#released) this.#later(1, () => this.#record(host));
          this.#release();
          return true;
        },
        drop: (host) => {
          this.#held.delete(host);
          // HO4: not before the disk has all that it may have been told.
          const told = this.pieces.length, at = (this.#drops.get(host) ?? 0) + 1;
          this.#drops.set(host, at);
          this.#later(2 * DISK_MS, () => {
            if (this.#drops.get(host) !== at || this.#held.has(host)) return;
            assert((this.#session.disk?.length ?? 0) >= told, "the disk has it by now");
            recorded.delete(host);
            this.#release();
          });
        },
        told: () => {},
        isAhead: (host) => recorded.has(host) && this.#held.has(host),
        isAwaited: (host) => recorded.has(host),
      },
    }, {
      secret: SECRET,
      random: (length) => {
        const salt = new Uint8Array(length);
        new DataView(salt.buffer).setUint32(0, salts++);
        return salt;
      },
      ready: () => this.side.hostsChanged(),
      failed: (_host, error) => assert.fail(String(error)),
    }, ends);
    const feeds = this.#feeds;
    this.#later(DISK_MS, () => this.#begin(feeds, asked));
  }

  /** Nothing is told before the disk has what it was opened with; hosts that lack some of it are off the record then. */
  #begin(feeds: HostFeeds, asked: readonly string[]): void {
    const { recorded } = this.#session;
    this.#session.disk = [...this.pieces];
    this.#released = this.pieces.length;
    for (const host of [...recorded]) {
      if ((this.#held.get(host) ?? 0) >= this.#released) continue;
      this.#held.delete(host);
      recorded.delete(host);
    }
    this.side.opened({
      epoch: this.epoch,
      peers: [...this.#folded.peers].map(([id, peer]) => ({ kind: "client", id, ...peer, isClosed: false })),
      outputs: this.#folded.outputs,
      ahead: { feeds, released: this.#released, asked },
    });
  }

  /** HO3: only who has all that was released. */
  #record(host: string): void {
    if ((this.#held.get(host) ?? -1) < this.#released) return;
    this.#session.recorded.add(host);
    this.side.hostsChanged();
  }

  #append(event: PeerInput): void {
    const entry = entryOf(event), first = this.pieces.length + 1;
    const piece = {
      epoch: this.epoch,
      first,
      count: 1,
      wakeAtMs: 0,
      bytes: utf8.encode(JSON.stringify(entry)),
    };
    this.pieces.push(piece);
    const outputs = step(this.#folded, entry);
    this.#waiting.push({ entry: first, event, outputs });
    this.#feeds?.appended(piece);
    this.side.appended({ entry: first, outputs });
    this.#write(first);
  }

  #write(through: number): void {
    this.#later(DISK_MS, () => {
      this.#session.disk = this.pieces.slice(0, Math.max(through, this.#session.disk?.length ?? 0));
      this.#release();
    });
  }

  /** HO3: the disk, and all hosts on record, have it. */
  #release(): void {
    const { disk, recorded } = this.#session;
    const all = Math.min(disk?.length ?? 0, ...[...recorded].map((host) => this.#held.get(host) ?? 0));
    if (all <= this.#released) return;
    this.#released = all;
    const done = this.#waiting.filter(({ entry }) => entry <= all);
    this.#waiting.splice(0, done.length);
    for (const { event, entry } of done) {
      this.side.released({ done: [{ event, rejected: null }], outputs: [], entry });
    }
  }

  get log(): Folded {
    return this.#folded;
  }
}

interface Open {
  readonly site: FakeSite;
  readonly listener: SocketListener;
  reader: ReturnType<HomeSide["accept"]> | null;
}

/** See the file's header. */
export class HostedSession {
  readonly #world: VirtualHost;
  readonly #open = new Set<Open>();
  #home: Home;
  #epoch = 1;
  #ids = 0;
  /** At the arbiter. */
  readonly recorded = new Set<string>();
  /** null: it was lost. */
  disk: LogPiece[] | null = [];
  /** A home that lacks clients' logs says so to those that have come. */
  tells = false;
  /** Recoveries in which clients had more than the disk. */
  fromHosts = 0;

  constructor(world: VirtualHost) {
    this.#world = world;
    world.sockets = (site, _opened, listener) => this.#socket(site, listener);
    this.#home = new Home(this, world, this.#epoch);
  }

  newId(): string {
    return `peer-${++this.#ids}`;
  }

  recovered(entries: number, onDisk: number): void {
    if (entries > onDisk) this.fromHosts++;
  }

  get heard(): readonly string[] {
    return this.#home.log.heard;
  }

  get peers(): number {
    return this.#ids;
  }

  /** The home dies, with its disk or not, and another one is begun. */
  kill(isDiskLost: boolean): void {
    this.#home.isAlive = false;
    // With nobody on record the disk is all there is.
    if (isDiskLost && this.recorded.size > 0) this.disk = null;
    for (const each of [...this.#open]) this.#broken(each);
    this.#home = new Home(this, this.#world, ++this.#epoch);
  }

  /** Channels break, and nobody is dead. */
  cut(): void {
    for (const each of [...this.#open]) this.#broken(each);
  }

  #socket(site: FakeSite, listener: SocketListener): Socket {
    const open: Open = { site, listener, reader: null };
    const world = this.#world;
    this.#open.add(open);
    world.later(site.rttMs, () => {
      if (site.state === "dead") this.#broken(open);
      else if (this.#open.has(open)) this.#accept(open);
    });
    return {
      bufferedAmount: 0,
      send: (data) =>
        void world.later(site.rttMs / 2, () => {
          if (typeof data !== "string") open.reader?.frame(data);
        }),
      close: (code = 1005, reason = "") => {
        if (!this.#open.delete(open)) return;
        world.later(site.rttMs / 2, () => open.reader?.broken());
        world.later(site.rttMs, () => listener.closed(code, reason));
      },
    };
  }

  #accept(open: Open): void {
    const { site, listener } = open;
    const channel: Channel = {
      send: (frame) =>
        void this.#world.later(
          site.rttMs / 2,
          () => this.#open.has(open) ? listener.message(frame) : undefined,
        ),
      close: (code, reason) =>
        void this.#world.later(site.rttMs / 2, () => {
          if (this.#open.delete(open)) listener.closed(code, reason);
        }),
    };
    open.reader = this.#home.side.accept(channel, "client");
    listener.opened(SUBPROTOCOL);
  }

  #broken(open: Open): void {
    if (!this.#open.delete(open)) return;
    open.reader?.broken();
    this.#world.later(1, () => open.listener.closed(ABNORMAL, ""));
  }
}
