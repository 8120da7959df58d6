/**
 * A store that is trivially right: one copy of all rows, that every site reads and writes. The simulator and the
 * checkers are tried on it, and on what becomes of it when it is made wrong on purpose.
 */
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import type {
  AttachedSession,
  OpenReplica,
  Replica,
  StoreMutation,
  WriteResult,
} from "../../store/api/api.ts";
import type { Key } from "../../store/model/key.ts";
import { contribute } from "../../store/model/merge.ts";
import { holds } from "../../store/model/range.ts";
import { isLive, type Row, type Version } from "../../store/model/row.ts";

/** How the one copy is made wrong. */
export interface SoloFlaws {
  /** A site reads what the copy held when the site last wrote. */
  readonly isStale?: boolean;
  /** Every n-th write is acknowledged and forgotten. */
  readonly forgets?: number;
}

/** Replicas over one shared copy. */
export function openSolo(flaws: SoloFlaws = {}): OpenReplica {
  const rows = new Map<Key, Row>();
  const shared = { clock: 1, position: 0, writes: 0 };
  return (config, ports) => {
    let view: ReadonlyMap<Key, Row> = rows;
    const read = (key: Key) => {
      const row = view.get(key);
      return isLive(row, 0) ? row : undefined;
    };
    const write = (mutations: readonly StoreMutation[]): WriteResult => {
      const version: Version = { clock: ++shared.clock, replica: 1 };
      shared.writes++;
      const forgotten = flaws.forgets !== undefined && shared.writes % flaws.forgets === 0;
      for (const mutation of forgotten ? [] : mutations) {
        const value = mutation.kind === "delete"
          ? null
          : mutation.kind === "set"
          ? mutation.value
          : contribute(rows.get(mutation.key), mutation.kind, mutation.value, version);
        const row: Row = {
          key: mutation.key,
          ...version,
          value,
          position: ++shared.position,
          known: 0,
          expiresAtMs: 0,
        };
        rows.set(mutation.key, row);
      }
      if (flaws.isStale) view = new Map(rows);
      return { ok: true, version };
    };
    const session: AttachedSession = {
      id: new Uint8Array(16),
      how: "new",
      carried: { rows: 0, bytes: 0 },
      get: (keys) => Promise.resolve(keys.map(read)),
      list: (range, options) => {
        const found = [...view.keys()].filter((key) => holds(range, key) && read(key) !== undefined).sort();
        if (options?.reverse) found.reverse();
        return Promise.resolve(found.slice(0, options?.limit).flatMap((key) => read(key) ?? []));
      },
      write: (mutations) => Promise.resolve(write(mutations)),
      writeAs: (mutations) => Promise.resolve(write(mutations).ok),
      isOld: () => false,
      writeOld: () => Promise.resolve({ ok: true, left: [], refused: [] }),
      settle: () => Promise.resolve(),
      touches: 0,
      tick: () => ++shared.clock,
      watch: () => () => {},
      // Nothing is on this disk, but the one copy outlives all processes.
      see: () => Promise.resolve(),
      seeWhole: () => Promise.resolve(false),
      close: () => {},
      durable: () => new Promise((resolve) => ports.clock.after(1, resolve)),
      isDurable: false,
      highest: 0,
      token: (open) => ({
        session: new Uint8Array(16),
        sequence: 0,
        replica: 1,
        clock: shared.clock,
        path: [],
        open,
      }),
    };
    const replica: Replica = {
      site: config.site,
      ready: Promise.resolve(),
      attach: () => Promise.resolve(session),
      attachAll: () => Promise.resolve(session),
      durable: () => session.durable(),
      isDurable: () => false,
      holdAtMost: () => {},
      system: session,
      members: {
        remove: () => Promise.resolve({ kind: "removed", stable: 0 }),
        admit: () => Promise.resolve(true),
        isRemoved: () => true,
        leave: () => Promise.resolve(),
        back: () => Promise.resolve(),
        awayUntilMs: () => undefined,
        soleAt: () => [],
        heldBy: () => ({ left: [], owned: [] }),
        sites: new Map(),
        children: 0,
        changes: 0,
      },
      owners: {
        settings: NO_OWNERS,
        configure: () => Promise.resolve(),
        choose: () => ({ owners: [config.site], missing: 0 }),
        nearest: () => [],
        isKnown: (site) => site === config.site,
        detector: {
          presence: () => "unknown",
          watch: () => () => {},
          onPresence: () => () => {},
          refused: () => {},
        },
        channel: () => () => Promise.resolve(),
      },
      connected: () => {},
      disconnected: () => {},
      unreachable: () => {},
      receive: () => {},
      move: () => {},
      nowMs: () => ports.clock.nowMs(),
      believeClock: () => null,
      status: () => ({
        site: config.site,
        replica: 1,
        depth: 0,
        position: shared.position,
        parent: null,
        coverage: { ranges: 0, bytes: 0, capacityBytes: config.capacityBytes },
        pending: 0,
        pendingBytes: 0,
        stableLagMs: 0,
        children: [],
        adopting: [],
        clockDoubt: null,
        clocksAhead: [],
        watched: [],
        ownersMissing: null,
        damaged: [],
        wards: {
          owners: Array.from({ length: config.owners?.f ?? 0 }, () => config.site),
          next: null,
          isClosed: false,
          isAlone: false,
          silent: [],
          heldBytes: 0,
        },
        counters: {},
      }),
      evict: () => Promise.resolve(),
      debugCovers: () => true,
      close: () => Promise.resolve(),
    };
    return Promise.resolve(replica);
  };
}
