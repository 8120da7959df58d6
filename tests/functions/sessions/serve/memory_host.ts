/**
 * A session host without processes: real homes and a real replica over memory, and the executor in this process. Its
 * "isolates" can be lost, all at once.
 */
import { BOOT_MIN, type Homes, Homes as HomesOf } from "../../../../functions/sessions/home/mod.ts";
import type { PeerClock } from "../../../../functions/sessions/attach/mod.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { SESSION_SLOT, type SessionSlot } from "../../../../functions/class/session_slot.ts";
import { TurnLoop } from "../../../../functions/sessions/turn/turn_loop.ts";
import { ProgramStore as TurnStore } from "../../../../functions/sessions/turn/session_store.ts";
import type { Commit, SessionSink } from "../../../../functions/sessions/turn/mod.ts";
import type { LiveVersion } from "../../../../runtime/deploy/mod.ts";
import { appSpace } from "../../../../runtime/gateway/session_store.ts";
import { useOneForm } from "../../../../functions/values/value.ts";
import { EgressRules } from "../../../../runtime/isolate/egress_rules.ts";
import { DEFAULT_ISOLATE_LIMITS } from "../../../../runtime/isolate/limits.ts";
import type { ChannelSink } from "../../../../functions/sessions/serve/ports.ts";
import { SystemClock, SystemRandom } from "../../../../runtime/site/system_ports.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import { NO_WAITS } from "../../../../functions/sessions/serve/waits.ts";
import { ParkedTable } from "../../../../runtime/stateful/parked_table.ts";
import { hostPorts, type HostServices } from "../../../../runtime/stateful/host_services.ts";
import { SessionHost } from "../../../../functions/sessions/serve/session_host.ts";
import { MemoryRows, MemoryStorage } from "../../../../runtime/storage/memory.ts";
import type { Replica, TokenState } from "../../../../store/api/api.ts";
import { openReplica } from "../../../../store/replica.ts";

const { core } =
  (Deno as unknown as Record<symbol, { core: { processTicksAndRejections(): void; runMicrotasks(): void } }>)[
    (Deno as unknown as { internal: symbol }).internal
  ] as { core: { processTicksAndRejections(): void; runMicrotasks(): void } };

// As isolates of stateful sessions do (runtime/isolate/inside/stateful_host.ts): V8's bytes differ from run to run.
useOneForm();

/** What is tested, and handles on what is around it. */
export interface MemoryHost {
  readonly host: SessionHost;
  readonly homes: Homes;
  readonly replica: Replica;
  readonly lines: string[];
  readonly parked: ParkedTable;
  readonly apps: HostServices["apps"];
  /** Openings so far, as far as something holds them still. */
  readonly runs: readonly WeakRef<ChannelSink>[];
  /** All isolates are gone; `cause` names the session whose turn it was. */
  loseIsolates(cause?: string, received?: number): void;
  /** The turn that runs never ends: nothing leaves the isolates any more, and they are lost for it. */
  hang(cause: string): void;
  /** For which an isolate was wanted before their log was there, by id. */
  readonly prepared: readonly string[];
  /** What isolates say of commits from now on. */
  twist(change: (commit: Commit) => Commit): void;
  /** Another version serves the app from now on. */
  deploy(version: string, make: (name: string) => SessionObject): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Disks that outlive a host. */
export class Disks {
  #rows = new MemoryRows();
  #homes = new MemoryRows();
  #arbiter = new MemoryRows();
  rows = new Disk(this.#rows);
  homes = new Disk(this.#homes);
  arbiter = new Disk(this.#arbiter);

  /** The process that has them dies: nothing of it is written any more, whatever it believes; nobody hears of it. */
  crash(lost: { readonly homes?: boolean } = {}): void {
    for (const disk of [this.rows, this.homes, this.arbiter]) disk.isCut = true;
    if (lost.homes === true) this.#homes = new MemoryRows();
    this.rows = new Disk(this.#rows);
    this.homes = new Disk(this.#homes);
    this.arbiter = new Disk(this.#arbiter);
  }
}

class Disk extends MemoryStorage {
  isCut = false;
  /** Commits that wait for it while it is held. */
  waiting = 0;
  #held: Promise<void> | null = null;

  /** It takes nothing until what is returned is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return () => {
      this.#held = null;
      this.waiting = 0;
      resolve();
    };
  }

  override async commit(commit: Parameters<MemoryStorage["commit"]>[0]): Promise<void> {
    if (this.#held !== null) {
      this.waiting++;
      await this.#held;
    }
    if (!this.isCut) await super.commit(commit);
  }
}

export async function memoryHost(
  make: (name: string) => SessionObject,
  {
    disks = new Disks(),
    forcedMs = 300,
    idleMs = 60_000,
    methods = null,
    durability = "owners",
    ends = {},
    sends = { storeOfSession: () => Promise.reject(new Error("no queue is here")) },
    peerClock = SYSTEM_CLOCK,
    wallMs = Date.now,
  }: {
    disks?: Disks;
    /** So long an operator's opening waits for clients. */
    forcedMs?: number;
    durability?: "owners" | "hosts";
    idleMs?: number;
    /** The time by which the host waits. */
    peerClock?: PeerClock;
    wallMs?: () => number;
    /** What is kept of sessions that end. */
    ends?: Pick<HostServices, "lastAnswersMs" | "endedLogs">;
    /** What takes messages to queues. */
    sends?: HostServices["sends"];
    /** What can be called; null: not known. */
    methods?: readonly string[] | null;
  } = {},
): Promise<MemoryHost> {
  const clock = new SystemClock(), random = new SystemRandom(), lines: string[] = [], prepared: string[] = [];
  const fatal = (error: Error) => {
    throw error;
  };
  const replica = await openReplica({
    ...{ site: "cloud", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e9 },
  }, {
    ...{ clock, random, storage: disks.rows, fatal },
    network: { send: () => Promise.resolve() },
    note: () => {},
  });
  await replica.ready;
  const held: { host?: SessionHost } = {};
  const homes = await HomesOf.open({
    ...{
      site: "cloud",
      boot: BOOT_MIN,
      clock,
      random,
      storage: disks.homes,
      arbiterStorage: disks.arbiter,
      fatal,
    },
    nowMs: () => performance.now(),
    forcedMs,
    arbiter: () => "cloud",
    send: () => Promise.resolve(),
    fellows: {
      f: 0,
      sites: () => ["cloud"],
      choose: () => ({ owners: ["cloud"], missing: 0 }),
      isKnown: (site) => site === "cloud",
      standing: () => "unknown",
      watch: () => () => {},
      onChange: () => () => {},
      look: () => {},
    },
    due: (name) => held.host?.wake(name),
    hosts: { ask: async (...asked) => await held.host?.hosts.ask(...asked) ?? new Map<string, null>() },
    onOver: (name, epoch, error) => held.host?.homeOver(name, epoch, error),
    note: () => {},
  });
  const makers = new Map([["v1", make]]);
  const listeners = new Set<() => void>();
  let current = "v1";
  const versionOf = (version: string): LiveVersion => ({
    ...{ app: "shop", version, tierOf: () => "edge" },
    bundle: () => Promise.resolve(new Uint8Array()),
    manifest: { sessions: { robot: { methods, durability } } } as unknown as LiveVersion["manifest"],
  });
  const pool = new MemoryPool(makers);
  const limits = { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 };
  const parked = new ParkedTable(replica.system, () => {});
  await parked.follow();
  const apps: HostServices["apps"] = {
    get: (name) => name === "shop" ? { name, record: {} as never, current: versionOf(current) } : undefined,
    version: (_, version) => Promise.resolve(makers.has(version) ? versionOf(version) : undefined),
    onChange: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const host = held.host = new SessionHost(hostPorts({
    ...{ homes, pool, replica, limits, idleMs, channelsMax: 1_000, clock: peerClock },
    storeClock: () => 1,
    newPeer: () => random.bytes(16).toHex(),
    secrets: [new Uint8Array(32).fill(9)],
    standby: () => Promise.resolve(null),
    prepare: ({ id }) => void prepared.push(id),
    apps,
    prepared: (version) => ({
      ...{ space: appSpace("shop"), writes: undefined, strayLog: () => {}, highest: 0, lane: () => null },
      app: { ...version, limits: DEFAULT_ISOLATE_LIMITS, vars: {}, fetchHosts: [] },
    }),
    originOf: () => null,
    originWay: () => null,
    egressOf: () => new EgressRules({ fetchHosts: [] }),
    nowMs: wallMs,
    call: () => Promise.reject(new Error("no other session is here")),
    waitsOf: () => Promise.resolve(NO_WAITS),
    log: ({ text }) => void lines.push(text),
    countRejected: () => {},
    failed: (_, error) => void lines.push(`fault: ${error}`),
    ...{ parked, site: "cloud", mapped: (_: string, text: string) => Promise.resolve(text) },
    redact: (_, text) => text,
    sends,
    ...ends,
  }));
  return {
    ...{ host, homes, replica, lines, parked, apps, runs: pool.runs },
    loseIsolates: (cause, received) => pool.lose(cause, received),
    hang: (cause) => pool.hang(cause),
    prepared,
    twist: (change) => void (pool.twist = change),
    deploy: (version, made) => {
      makers.set(version, made);
      current = version;
      for (const listener of listeners) listener();
    },
    [Symbol.asyncDispose]: async () => {
      await host.close();
      parked.close();
      pool.lose();
      await homes.close(100);
      await replica.close();
    },
  };
}

/** Sessions that are attached to a replica from now on take in tokens as `see` says; null: as they do. */
export function seeing(replica: Replica): { see: (() => Promise<void>) | null } {
  const attach = replica.attach.bind(replica);
  const how: { see: (() => Promise<void>) | null } = { see: null };
  Object.assign(replica, {
    attach: async (...asked: Parameters<typeof attach>) => {
      const session = await attach(...asked);
      const see = session.see.bind(session);
      return Object.assign(session, { see: (token: TokenState) => how.see?.() ?? see(token) });
    },
  });
  return how;
}

/** Every loop of this process: app code asks whose turn it is, as the globals of an isolate would. */
const loops = new Set<TurnLoop>();

/** What `setTimeout` is in an isolate of stateful sessions. */
export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve, reject) => {
    for (const { current } of loops) if (current !== undefined) return void current.setLocal(ms, resolve);
    reject(new Error("no turn runs"));
  });

type Makers = ReadonlyMap<string, (name: string) => SessionObject>;
type Pool = HostServices["pool"];

/** Turn loops of this process in place of isolates: one for each version. */
class MemoryPool implements Pool {
  twist: (commit: Commit) => Commit = (commit) => commit;
  readonly runs: WeakRef<ChannelSink>[] = [];
  readonly #makers: Makers;
  #next = 1;
  #loops = new Map<string, TurnLoop>();
  #sinks = new Map<number, { readonly sink: ChannelSink; readonly id: string }>();

  constructor(makers: Makers) {
    this.#makers = makers;
  }

  open: Pool["open"] = (app, session, sink) => {
    const channel = this.#next++;
    const loop = this.#loops.get(app.version) ?? this.#loop(app.version);
    this.#loops.set(app.version, loop);
    this.#sinks.set(channel, { sink, id: session.id });
    this.runs.push(new WeakRef(sink));
    loop.open(channel, session);
    return Promise.resolve({
      channel,
      isolate: {
        deliver: (channel, event) => loop.deliver(channel, event),
        acknowledge: (channel, what) => loop.acknowledge(channel, what),
        checkpointNow: (channel) => loop.checkpointNow(channel),
        holds: () => {},
        closeChannel: (channel) => {
          loop.close(channel);
          this.#sinks.delete(channel);
        },
        killFor: () => this.lose(),
      },
    });
  };

  hang(cause: string): void {
    for (const loop of this.#loops.values()) loops.delete(loop);
    this.#loops.clear();
    setTimeout(() => this.lose(cause));
  }

  /** @param received events of the cause that had come there; all that were sent, where it is left out. */
  lose(cause?: string, received = Infinity): void {
    const sinks = [...this.#sinks];
    this.#sinks.clear();
    for (const loop of this.#loops.values()) loops.delete(loop);
    this.#loops.clear();
    for (const [channel, { sink, id }] of sinks) {
      sink.ended({ isPlanned: false, why: "it was lost", channel, received }, id === cause);
    }
  }

  #loop(version: string): TurnLoop {
    const to = <A extends unknown[]>(say: (sink: ChannelSink, ...args: A) => void) =>
    (
      channel: number,
      ...args: A
    ) => {
      // As frames do, it leaves when turns let the event loop go on.
      setTimeout(() => {
        const open = this.#sinks.get(channel);
        if (open !== undefined && this.#loops.get(version) === loop) say(open.sink, ...args);
      });
    };
    const sink: SessionSink = {
      opened: to((sink, opened) => sink.opened(opened)),
      commit: to((sink, commit) => sink.commit(this.twist(commit))),
      call: to((sink, call) => sink.call(call)),
      dropped: to((sink, call) => sink.dropped(call)),
      checkpoint: to((sink, checkpoint) => sink.checkpointed(checkpoint)),
      parked: to((sink, parked) => sink.parked(parked)),
      log: to((sink, level: string, text: string) => sink.log(level, text)),
    };
    let clock = 1;
    const loop: TurnLoop = new TurnLoop({
      sink,
      nowMs: () => Date.now(),
      storeClock: (least) => clock = Math.max(clock, least) + 1,
      drain: () => {
        core.runMicrotasks();
        core.processTicksAndRejections();
      },
      schedule: (run) => void setTimeout(run),
      after: (ms, run) => {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
      mark: () => {},
      make: (name, port) => {
        const slot: SessionSlot = { making: port };
        (globalThis as { [SESSION_SLOT]?: SessionSlot })[SESSION_SLOT] = slot;
        try {
          return (this.#makers.get(version) as (name: string) => SessionObject)(name);
        } finally {
          slot.making = undefined;
        }
      },
      envOf: (program) => new TurnStore(program),
    });
    loops.add(loop);
    return loop;
  }
}
