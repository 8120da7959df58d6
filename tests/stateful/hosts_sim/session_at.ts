/**
 * One process of a site: the production code that serves stateful sessions (runtime/stateful, session_host.ts), over the
 * homes of a simulation, an isolate that can be lost alone, and a store that takes its time.
 */
import {
  type Home,
  HomeError,
  type Homes,
  type OpenedSession,
  type StatefulName,
} from "../../../functions/sessions/home/mod.ts";
import { disksOf } from "../../../functions/sessions/log/host_owners.ts";
import type { HostsPort } from "../../../functions/sessions/log/hosts_asked.ts";
import { CLOSE, decodeToHost, encodeToHost, type PeerClock } from "../../../functions/sessions/attach/mod.ts";
import type { LiveVersion } from "../../../runtime/deploy/mod.ts";
import { appSpace } from "../../../runtime/gateway/session_store.ts";
import { EgressRules } from "../../../runtime/isolate/egress_rules.ts";
import { DEFAULT_ISOLATE_LIMITS } from "../../../runtime/isolate/limits.ts";
import { hostPorts, type HostServices } from "../../../runtime/stateful/host_services.ts";
import { SessionHost } from "../../../functions/sessions/serve/session_host.ts";
import { NO_WAITS } from "../../../functions/sessions/serve/waits.ts";
import type { Draws } from "../../sim/random.ts";
import type { Line } from "./channel.ts";
import { Isolate, type IsolateWrongs } from "./isolate.ts";
import type { Ledger } from "./ledger.ts";

export interface SiteWrongs extends IsolateWrongs {
  /** Hosts are not asked: they count as if they held nothing. */
  readonly asksNobody?: boolean;
  /** One that answers is enough. */
  readonly asksOne?: boolean;
  /** Others are told when the own isolate has done it. */
  readonly tellsAtOnce?: boolean;
  /** Whoever was left behind is a peer all the same. */
  readonly keepsLeftBehind?: boolean;
}

/** What is the same for all processes of a run. */
export interface Surroundings {
  readonly secret: Uint8Array;
  readonly wrongs: SiteWrongs;
  readonly ledger: Ledger;
  readonly idleMs: number;
  readonly idleCommits: number;
  readonly stateBytes: number;
  /** The version of the app that serves it, and who hears that it is another. */
  readonly version: () => string;
  readonly followers: Set<() => void>;
  /** An operator has had enough of waiting (HO8). */
  readonly isForced: () => boolean;
  readonly leftBehind: (peers: readonly string[], isForced: boolean) => void;
  readonly newPeer: () => string;
  readonly isLiar: (peer: string) => boolean;
  /** A log of so many entries is opened from what a liar gave, and nobody else was there who could know better. */
  readonly believed: (entries: number) => void;
  /** A log of so many entries is opened by force from what hosts have, and none of its disks was asked (HO8). */
  readonly withoutDisks: (entries: number) => void;
  /** A peer that is a host, as far as it says. */
  readonly isHost: (line: Line) => boolean;
  readonly probe: (what: string) => void;
}

export interface ProcessParts {
  readonly site: string;
  readonly homes: Homes;
  readonly clock: PeerClock;
  readonly wallMs: () => number;
  readonly draws: Draws;
  readonly isAlive: () => boolean;
  readonly around: Surroundings;
}

export const NAME: StatefulName = { app: "duel", class: "match", id: "one" };
/** In the second version of the app hosts hold no log. */
export const SHARED = "v1", OWNED = "v2";
const LIMITS = { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 };
const TOKEN = { session: new Uint8Array(16), sequence: 0, replica: 1, clock: 0, path: [0], open: false };

const versionOf = (version: string): LiveVersion => ({
  ...{ app: NAME.app, version, tierOf: () => "edge" },
  bundle: () => Promise.resolve(new Uint8Array()),
  manifest: {
    sessions: { [NAME.class]: { methods: null, durability: version === SHARED ? "hosts" : "owners" } },
  } as unknown as LiveVersion["manifest"],
});

/** See the file's header. */
export class SiteProcess {
  readonly host: SessionHost;
  readonly isolate: Isolate;
  readonly #parts: ProcessParts;
  /** The last one that this process was. */
  home: Home | null = null;
  /** Who gave a log when they were last asked. */
  #gave: readonly string[] = [];
  /** Where its session stands, or stood when it was last in memory. */
  #digest = "0";

  constructor(parts: ProcessParts) {
    const { around, clock, draws, isAlive } = this.#parts = parts;
    this.isolate = new Isolate({
      after: (ms, run) => void clock.after(ms, () => isAlive() ? run() : undefined),
      ...{ draws: draws.fork("isolate"), wrongs: around.wrongs },
      ...{ idleCommits: around.idleCommits, stateBytes: around.stateBytes },
      made: (before, after, entry) => {
        around.ledger.add(before, after, entry);
        this.#digest = after.digest;
      },
      stands: ({ digest }) => this.#digest = digest,
      blamed: (peer, message) => around.ledger.blamed(peer, message),
      complain: (message) => around.ledger.complain("fault", message),
    });
    this.host = new SessionHost(hostPorts(this.#services()));
  }

  #services(): HostServices {
    const { site, around, clock, wallMs, isAlive } = this.#parts;
    const fault = (text: string) =>
      isAlive() ? around.ledger.complain("fault", `${site}: ${text}`) : undefined;
    return {
      ...{ site, homes: this.#homes(), limits: LIMITS, idleMs: around.idleMs, channelsMax: 1_000, clock },
      ...{ newPeer: around.newPeer, secrets: [around.secret], nowMs: wallMs },
      pool: {
        open: (_app, session, sink) => Promise.resolve(this.isolate.open(session, sink)),
      } as HostServices["pool"],
      replica: this.#replica(),
      storeClock: () => 1,
      apps: {
        get: () => ({ name: NAME.app, record: {} as never, current: versionOf(around.version()) }),
        version: (_, version) => Promise.resolve(versionOf(version)),
        onChange: (follower) => {
          around.followers.add(follower);
          return () => void around.followers.delete(follower);
        },
      },
      prepared: (version) => ({
        ...{ space: appSpace(NAME.app), lane: () => null, writes: undefined, strayLog: () => {}, highest: 0 },
        app: { ...version, limits: DEFAULT_ISOLATE_LIMITS, vars: {}, fetchHosts: [] },
      }),
      parked: {
        get: () => null,
        all: () => [],
        onDrop: () => () => {},
        park: (_name: StatefulName, { code, message }: { code: string; message: string }) =>
          Promise.resolve(fault(`it stands still: ${code}: ${message}`)),
        drop: () => Promise.resolve(),
        settled: () => Promise.resolve(),
      } as unknown as HostServices["parked"],
      ...{
        standby: () => Promise.resolve(null),
        originOf: () => null,
        originWay: () => null,
        countRejected: () => {},
      },
      egressOf: () => new EgressRules({ fetchHosts: [] }),
      waitsOf: () => Promise.resolve(NO_WAITS),
      call: () => Promise.reject(new Error("no other session is here")),
      sends: { storeOfSession: () => Promise.reject(new Error("no queue is here")) },
      ...{ mapped: (_, text) => Promise.resolve(text), redact: (_, text) => text },
      failed: (_, error) => void fault(`${(error as Error).stack ?? error}`),
      log: ({ level, text }) =>
        level === "error" ? void fault(text) : around.probe(`log: ${text.slice(0, 40)}`),
    };
  }

  /** Homes as they are, and what is seen of those that begin. */
  #homes(): Homes {
    const { homes } = this.#parts;
    return new Proxy(homes, {
      get: (target, key) => {
        if (key === "open") {
          return async (name: StatefulName, version: string) => {
            const { around } = this.#parts, isForced = around.isForced();
            const { from_hosts: before, from_hosts_alone: aloneBefore } = target.status().counters;
            const opened = await target.open(name, version, isForced);
            const { from_hosts: after, from_hosts_alone: aloneAfter } = target.status().counters;
            return this.#watched(opened, {
              isForced,
              isBelieved: after !== before && this.#gave.every((peer) => around.isLiar(peer)),
              // With one disk hosts have all that was released (HO3): then nothing may be otherwise.
              isWithoutDisks: isForced && aloneAfter !== aloneBefore &&
                disksOf(around.ledger.row?.owners ?? []).length > 1,
            });
          };
        }
        const value = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  #watched(
    opened: OpenedSession,
    { isForced, isBelieved, isWithoutDisks }: {
      readonly isForced: boolean;
      readonly isBelieved: boolean;
      readonly isWithoutDisks: boolean;
    },
  ): OpenedSession {
    const { around } = this.#parts, { wrongs } = around;
    const start = opened.start.bind(opened);
    opened.start = (answers) => {
      const home = this.home = start(answers);
      if (isWithoutDisks) around.withoutDisks(home.sequence);
      if (isBelieved) around.believed(home.sequence);
      around.probe(`opened in ${home.epoch > 1 ? "a later" : "the first"} epoch`);
      const { leftBehind } = home.hosts;
      if (wrongs.keepsLeftBehind !== true && leftBehind.length > 0) around.leftBehind(leftBehind, isForced);
      if (wrongs.keepsLeftBehind === true) {
        const { hosts } = home;
        const twisted = new Proxy(hosts, {
          get: (target, key) => {
            if (key === "leftBehind") return [];
            const value = Reflect.get(target, key, target);
            return typeof value === "function" && !`${String(key)}`.startsWith("on")
              ? value.bind(target)
              : value;
          },
          set: (target, key, value) => Reflect.set(target, key, value, target),
        });
        Object.defineProperty(home, "hosts", { get: () => twisted });
      }
      if (wrongs.tellsAtOnce === true) {
        const commit = home.commit.bind(home);
        home.commit = (what) => {
          commit(what).catch(() => {});
          return Promise.resolve();
        };
      }
      return home;
    };
    return opened;
  }

  #replica(): HostServices["replica"] {
    const { around, clock, draws, isAlive } = this.#parts;
    let clockValue = 1;
    const slow = draws.fork("store");
    const session = {
      token: () => TOKEN,
      see: () => Promise.resolve(),
      durable: () => Promise.resolve(),
      settle: () => Promise.resolve(),
      ...{ isDurable: true, touches: 0 },
      tick: () => clockValue++,
      writeAs: async (
        rows: readonly { readonly value?: Uint8Array }[],
        { clock: effect }: { clock: number },
      ) => {
        await new Promise<void>((resolve) => void clock.after(slow.between(0, 8), resolve));
        if (!isAlive()) return await new Promise<void>(() => {});
        for (const { value } of rows) around.ledger.wrote(effect, new TextDecoder().decode(value));
        return true;
      },
      ...{ isOld: () => false, close: () => {} },
    };
    const attach = () => Promise.resolve(session);
    return {
      ...{ attach, status: () => ({ replica: 1 }) },
    } as unknown as HostServices["replica"];
  }

  /** What was appended so far, as far as it is released, is told to the ledger. */
  look(): void {
    const { home } = this;
    if (home === null) return;
    this.#parts.around.ledger.released(home.released, this.#digest);
  }

  // ── Who attaches ──

  /** Channels to it. */
  readonly #lines = new Set<Line>();

  /** Its process has died: who had a channel may find out at once. */
  dies(): void {
    for (const line of this.#lines) line.break();
  }

  accept(line: Line): void {
    this.#lines.add(line);
    const { around, site, isAlive } = this.#parts;
    let peer = "";
    const end = line.end(line.down, (bytes) => {
      if (!isAlive() || line.isBroken) return;
      this.look();
      const frame = decodeToHost(bytes);
      if (frame.kind === "welcome") peer = frame.identity.id;
      if (frame.kind === "record" || (frame.kind === "output" && frame.increment !== null)) {
        around.probe("record");
      }
      if (frame.kind !== "output" || this.home === null) return;
      around.ledger.leaves(peer, String(frame.payload), this.home, around.isHost(line));
    });
    const channel = {
      send: (frame: Uint8Array<ArrayBuffer>) => isAlive() ? end.send(frame) : undefined,
      close: (code: number, reason: string) => isAlive() ? end.close(code, reason) : undefined,
    };
    this.host.connect(NAME, channel, null).then((reader) => {
      line.up.read({
        frame: (bytes) => isAlive() ? reader.frame(bytes) : undefined,
        broken: () => isAlive() ? reader.broken() : undefined,
      });
    }, (error) => {
      if (!isAlive()) return;
      if (!(error instanceof HomeError)) around.ledger.complain("fault", `${site}: ${error?.stack ?? error}`);
      around.probe(`not attached: ${error.code}`);
      channel.send(encodeToHost({ kind: "moved", site: error.site ?? null }));
      channel.close(CLOSE.done, "");
    });
  }

  /** How openings reach hosts (functions/sessions/home, HostsPort). */
  readonly hosts: HostsPort = {
    ask: async (...asked) => {
      const { probe, wrongs: { asksNobody = false, asksOne = false } } = this.#parts.around;
      const [, , hosts] = asked;
      if (asksNobody) return new Map(hosts.map((host) => [host, null]));
      const answers = await this.host.hosts.ask(...asked);
      if (answers === "superseded") return answers;
      this.#gave = [...answers].flatMap(([host, log]) => log === null ? [] : [host]);
      for (const [, log] of answers) probe(log === null ? "host with nothing" : "host asked");
      if (!asksOne || answers.size === 0) return answers;
      return new Map(hosts.map((host) => [host, answers.get(host) ?? null]));
    },
  };
}
