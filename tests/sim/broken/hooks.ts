/**
 * How a variant breaks the store: wrappers around a replica's ports, messages and sessions, and changes of the
 * plan that make a run likely to need the rule that is broken. Production code is left as it is.
 */
import type {
  AttachedSession,
  OpenReplica,
  Replica,
  ReplicaPorts,
  TokenState,
} from "../../../store/api/api.ts";
import { decodeMessage, encodeMessage, type Message } from "../../../store/wire/message.ts";
import type { Clock, SiteId, Storage } from "../../../store/model/ports.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import { openReplica } from "../../../store/replica.ts";
import type { Plan } from "../topology.ts";

/** One way to break the store. */
export interface Variant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly rule: string;
  /** A fresh broken store for one run. */
  readonly make: () => OpenReplica;
  /** The first seed that is tried: those before it show nothing, or take long to. */
  readonly from?: number;
  /** Makes the runs more likely to need the rule. */
  readonly change?: (plan: Plan) => Plan;
  /** Checkers that may catch it beside those of guarantees: of what never comes, only a lack tells. */
  readonly checkers?: readonly string[];
}

/** Where a wrapper may put its hands on a replica; each part is optional. */
export interface Hooks {
  /** A message on its way out; what comes back is sent, in this order. */
  readonly sends?: (to: SiteId, message: Message, ports: ReplicaPorts) => readonly Message[];
  /** A message on its way in. */
  readonly receives?: (
    from: SiteId,
    message: Message,
    replica: Replica,
    ports: ReplicaPorts,
  ) => readonly Message[];
  readonly storage?: (storage: Storage) => Storage;
  readonly clock?: (clock: Clock) => Clock;
  readonly presents?: (token: TokenState, replica: Replica) => TokenState;
  readonly session?: (session: AttachedSession) => Partial<AttachedSession>;
  /** The host's own reads and writes. */
  readonly system?: (system: Replica["system"]) => Partial<Replica["system"]>;
  /** Links that begin and end. */
  readonly links?: (replica: Replica, ports: ReplicaPorts) => Pick<Replica, "connected" | "disconnected">;
  /** A session comes: throws where it is sent away. */
  readonly arrives?: (token: TokenState, replica: Replica) => void;
}

/** A store with hooks; `hooks` is called for each process. */
export function hooked(hooks: (site: SiteId) => Hooks): OpenReplica {
  return async (config, ports) => {
    const { sends, receives, storage, clock, presents, session, system, links, arrives } = hooks(config.site);
    const network: ReplicaPorts["network"] = sends === undefined ? ports.network : {
      send: async (to, bytes) => {
        for (const message of sends(to, decodeMessage(bytes), ports)) {
          await ports.network.send(to, encodeMessage(message));
        }
      },
    };
    const inner = await openReplica(config, {
      ...ports,
      network,
      clock: clock === undefined ? ports.clock : clock(ports.clock),
      storage: storage === undefined ? ports.storage : storage(ports.storage),
    });
    const change = (token: TokenState) => {
      arrives?.(token, inner);
      return presents === undefined ? token : presents(token, inner);
    };
    const linked = links?.(inner, ports) ?? inner;
    const wrap = (attached: AttachedSession) => overlaid(attached, change, session ?? (() => ({})));
    return {
      site: inner.site,
      ready: inner.ready,
      attach: async (token) => wrap(await inner.attach(token === null ? null : change(token))),
      attachAll: async (tokens) => wrap(await inner.attachAll(tokens.map(change))),
      durable: (position) => inner.durable(position),
      isDurable: (position) => inner.isDurable(position),
      holdAtMost: (bytes) => inner.holdAtMost(bytes),
      system: system === undefined ? inner.system : overlaidSystem(inner.system, system),
      members: inner.members,
      owners: inner.owners,
      connected: (site, role) => linked.connected(site, role),
      disconnected: (site) => linked.disconnected(site),
      unreachable: (site) => inner.unreachable(site),
      receive: (from, bytes) => {
        if (receives === undefined) return inner.receive(from, bytes);
        for (const message of receives(from, decodeMessage(bytes), inner, ports)) {
          inner.receive(from, encodeMessage(message));
        }
      },
      move: (to, lost) => inner.move(to, lost),
      nowMs: () => inner.nowMs(),
      believeClock: () => inner.believeClock(),
      status: () => inner.status(),
      evict: (range) => inner.evict(range),
      debugCovers: (key) => inner.debugCovers(key),
      close: () => inner.close(),
    };
  };
}

function overlaidSystem(
  inner: Replica["system"],
  change: (system: Replica["system"]) => Partial<Replica["system"]>,
): Replica["system"] {
  return {
    get: (keys) => inner.get(keys),
    list: (range, options) => inner.list(range, options),
    write: (mutations, checks) => inner.write(mutations, checks),
    watch: (ranges, changed) => inner.watch(ranges, changed),
    durable: () => inner.durable(),
    ...change(inner),
  };
}

/** A session with some of its methods replaced; `presents` as in {@link Hooks}. */
function overlaid(
  inner: AttachedSession,
  presents: (token: TokenState) => TokenState,
  change: (session: AttachedSession) => Partial<AttachedSession>,
): AttachedSession {
  return {
    id: inner.id,
    how: inner.how,
    carried: inner.carried,
    get: (keys) => inner.get(keys),
    list: (range, options) => inner.list(range, options),
    write: (mutations, checks) => inner.write(mutations, checks),
    writeAs: (mutations, version) => inner.writeAs(mutations, version),
    isOld: (version) => inner.isOld(version),
    writeOld: (writes, merges) => inner.writeOld(writes, merges),
    settle: () => inner.settle(),
    get touches() {
      return inner.touches;
    },
    tick: () => inner.tick(),
    watch: (ranges, changed) => inner.watch(ranges, changed),
    see: (token) => inner.see(presents(token)),
    seeWhole: (token, stop) => inner.seeWhole(presents(token), stop),
    close: () => inner.close(),
    durable: () => inner.durable(),
    get isDurable() {
      return inner.isDurable;
    },
    token: (open) => inner.token(open),
    get highest() {
      return inner.highest;
    },
    ...change(inner),
  };
}

/** More of some faults. */
export const withFaults = (faults: Partial<Plan["faults"]>) => (plan: Plan): Plan => ({
  ...plan,
  faults: { ...plan.faults, ...faults },
});

/** Slow disks, crashes that lose what they had not written, and some of those at a given point. */
export const slowDisks = (point: string) => (plan: Plan): Plan => ({
  ...withFaults({ crash: 8, wipe: 0 })(plan),
  sites: plan.sites.map((site) => ({ ...site, commitMs: [8, 20] as const })),
  crashes: [10, 20, 30, 45, 60, 80].map((nth) => ({ point, nth })),
  keepChance: 0,
});

/** Nobody has owners, who would answer in the place of a source that is slow. */
export const alone = (plan: Plan): Plan => ({
  ...plan,
  sites: plan.sites.map((site) => ({ ...site, owners: NO_OWNERS })),
});

/** Slow links and busy users who move: what makes a carry more than a formality. */
export const restless = (plan: Plan): Plan => ({
  ...plan,
  sessions: Math.max(3, plan.sessions),
  requests: 110,
  moveChance: 0.6,
  sites: alone(plan).sites.map((site) => ({
    ...site,
    linkMs: [site.linkMs[0] * 3, site.linkMs[1] * 6] as const,
  })),
});

/**
 * Two edges under one core, whose way up is slow, and one edge elsewhere: much is pending at the core, of which
 * each edge covers a part.
 */
export function deep(plan: Plan): Plan {
  const [any] = alone(plan).sites;
  if (any === undefined) return plan;
  const site = (id: string, parent: string | null, depth: number, linkMs: number) => ({
    ...any,
    id,
    parent,
    depth,
    tier: parent === null ? "root" as const : id.startsWith("e") ? "edge" as const : "core" as const,
    skewMs: 0,
    capacityBytes: 1 << 30,
    linkMs: [linkMs, 2 * linkMs] as const,
  });
  return {
    ...plan,
    sites: [
      site("root", null, 0, 1),
      site("c1", "root", 1, 2),
      site("c2", "c1", 2, 150),
      site("e1", "c2", 3, 0.5),
      site("e2", "c2", 3, 0.5),
      site("e3", "c1", 2, 0.5),
    ],
    keysPerGroup: 3,
    groups: 3,
    sessions: 5,
    requests: 110,
    moveChance: 0.5,
    edgeShare: 1,
    operationsMax: 2,
    faults: { ...plan.faults, evict: 15, crash: 0, wipe: 0, stop: 0, point: 0 },
  };
}
