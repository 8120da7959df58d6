/**
 * What a tuple costs: bytes between sites against the number of sites and against f, and the time to store one, in
 * virtual time; tuples a second on this machine's disk.
 */
import { cpuUsage } from "node:process";
import { setImmediate } from "node:timers";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { openSqlite } from "../../runtime/storage/sqlite.ts";
import { SystemClock } from "../../runtime/site/system_ports.ts";
import { chooseOwners } from "../../store/presence/choose.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import { Tuples } from "../../store/owners/tuples.ts";
import type { Storage } from "../../store/model/ports.ts";
import { OwnerSite } from "../owners/sim/owner_site.ts";
import { SimNetwork } from "../sim/network.ts";
import { Draws } from "../sim/random.ts";
import { World } from "../sim/world.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { type BenchRecord, record } from "./record.ts";

/** A text message with its addresses. */
const PAYLOAD_BYTES = 200;
const ONE_WAY_MS = 10;
const COMMIT_MS = 1;

interface Cost {
  readonly bytesPerTuple: number;
  readonly storeMs: number;
}

/** Each of n sites stores tuples, a few at once, and removes each soon. */
async function virtual(n: number, f: number, tuplesPerSite: number): Promise<Cost> {
  const world = new World();
  const draws = new Draws(`bench owners ${n} ${f}`);
  const ids = Array.from({ length: n }, (_, i) => `s${i}`);
  const network = new SimNetwork({
    world,
    draws: draws.fork("network"),
    parentOf: () => null,
    quality: () => ({ delayMs: [ONE_WAY_MS, ONE_WAY_MS], lossChance: 0, bytesPerMs: Infinity }),
    window: 64,
    noticeMs: [0, 0],
    lateChance: 0,
  });
  const sites = ids.map((id) =>
    new OwnerSite({
      id,
      sites: ids,
      settings: { ...NO_OWNERS, f },
      areas: new Map(),
      world,
      network,
      draws: draws.fork(id),
      commitMs: [COMMIT_MS, COMMIT_MS],
      drift: 0,
      thinkMs: [5, 10],
      tries: 0,
      away: new Map(),
      tuplesMax: Infinity,
      wrongs: {},
      record: () => {},
    })
  );
  for (const site of sites) void site.start();
  await world.run(world.nowMs + 3_000);
  const before = network.counts.bytes;
  const took: number[] = [];
  const payload = new Uint8Array(PAYLOAD_BYTES);
  for (const site of sites) {
    for (let i = 0; i < tuplesPerSite; i++) {
      world.after(draws.between(0, 2 * tuplesPerSite), () => {
        const beganMs = world.nowMs;
        void site.tuples?.store({ payload, topic: "mail", f }).then(() => took.push(world.nowMs - beganMs));
      });
    }
  }
  await world.run(world.nowMs + 2 * tuplesPerSite + 1_000);
  if (took.length !== n * tuplesPerSite || sites.some((site) => site.tuples?.status().tuples !== 0)) {
    throw new Error(`of ${n * tuplesPerSite} tuples ${took.length} were stored, and not all removed`);
  }
  took.sort((a, b) => a - b);
  return {
    bytesPerTuple: (network.counts.bytes - before) / took.length,
    storeMs: took[took.length >> 1] ?? 0,
  };
}

/** More would wait for each other longer than a producer does. */
const STORED_AT_ONCE = 2_000;

interface Rate {
  readonly perS: number;
  /** Of both sites: a busy machine moves it less. */
  readonly cpuMicros: number;
}

/** Two sites in this process, over links that deliver at once. */
class Pair {
  readonly #open: (site: string) => Storage;
  readonly #mine: (site: string, id: string) => void;
  readonly sites = new Map<string, Tuples>();
  readonly storages = new Map<string, Storage>();
  #boots = 0;

  constructor(open: (site: string) => Storage, mine: (site: string, id: string) => void) {
    this.#open = open;
    this.#mine = mine;
  }

  async start(site: string): Promise<Tuples> {
    const storage = this.#open(site);
    this.storages.set(site, storage);
    const tuples = await Tuples.open({
      site,
      boot: ++this.#boots,
      clock: new SystemClock(),
      nowMs: () => performance.now(),
      wallMs: () => Date.now(),
      storage,
      send: (to, packet) => {
        setImmediate(() => this.sites.get(to)?.received(site, packet));
        return Promise.resolve();
      },
      fellows: {
        choose: (f, kept) => {
          const other = { id: site === "a" ? "b" : "a", area: null, rttMs: 1, isAlive: true };
          const keptSites = kept.map((id) => ({ id, area: null }));
          return chooseOwners({ id: site, area: null }, { f, nearMs: 0 }, [other], keptSites);
        },
        isKnown: () => true,
        isStranger: () => false,
        standing: () => "alive",
        awaitedUntilMs: () => null,
        isInTouch: () => true,
        suspectMs: () => 2_000,
        watch: () => () => {},
        measured: () => {},
        onChange: () => () => {},
      },
      refused: () => {},
      fatal: (error) => {
        throw error;
      },
    }, { mine: ({ id }) => this.#mine(site, id), lost: () => {} });
    this.sites.set(site, tuples);
    return tuples;
  }

  async stop(site: string): Promise<void> {
    const tuples = this.sites.get(site);
    this.sites.delete(site);
    await tuples?.close();
    await this.storages.get(site)?.close();
  }
}

/** `producers` store at one of them, each a tuple after the other. */
async function real(open: (site: string) => Storage, producers: number, forMs: number): Promise<Rate> {
  const pair: Pair = new Pair(open, (site, id) => void pair.sites.get(site)?.remove(id));
  const a = await pair.start("a");
  await pair.start("b");
  const payload = new Uint8Array(PAYLOAD_BYTES);
  const untilMs = performance.now() + forMs;
  const cpuBefore = cpuUsage();
  let stored = 0;
  await Promise.all(Array.from({ length: producers }, async () => {
    while (performance.now() < untilMs) {
      await a.store({ payload, topic: "mail", f: 1 });
      stored++;
    }
  }));
  const { user, system } = cpuUsage(cpuBefore);
  for (const site of ["a", "b"]) await pair.stop(site);
  return { perS: stored / (forMs / 1_000), cpuMicros: (user + system) / stored };
}

interface Waiting {
  /** Memory at both sites, for each tuple at each of them. */
  readonly bytesEach: number;
  /** Of the processor: what the disk has is read. */
  readonly openMs: number;
  /** Of both sites together: until the one that restarted knows what the other has, and acts. */
  readonly actsMs: number;
}

/** Many tuples wait; their site restarts. */
async function waiting(open: (site: string) => Storage, count: number): Promise<Waiting> {
  let mine = 0;
  const pair = new Pair(open, () => void mine++);
  const a = await pair.start("a");
  await pair.start("b");
  const before = usedBytes();
  const payload = new Uint8Array(PAYLOAD_BYTES);
  let stored = 0;
  while (stored < count) {
    const many = Array.from({ length: STORED_AT_ONCE }, () => a.store({ payload, topic: "mail", f: 1 }));
    // A busy machine may take longer than producers wait.
    for (const { status } of await Promise.allSettled(many)) stored += status === "fulfilled" ? 1 : 0;
  }
  const bytesEach = (usedBytes() - before) / (2 * stored);
  await pair.stop("a");
  mine = 0;
  const began = cpuUsage();
  await pair.start("a");
  const openMs = cpuMs(began);
  while (mine < stored) await new Promise<void>((resolve) => setImmediate(resolve));
  const actsMs = cpuMs(began);
  for (const site of ["a", "b"]) await pair.stop(site);
  return { bytesEach, openMs, actsMs };
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = cpuUsage(since);
  return (user + system) / 1_000;
}

function usedBytes(): number {
  const { gc } = globalThis as { readonly gc?: () => void };
  gc?.();
  gc?.();
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}

async function run({ quick, folder, say }: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  const tuples = quick ? 50 : 1_000;
  const measure = async (n: number, f: number) => {
    const { bytesPerTuple, storeMs } = await virtual(n, f, tuples);
    const of = { bench: "owners", case: `n = ${n}, f = ${f}, ${PAYLOAD_BYTES} bytes` };
    say(`${of.case}: ${bytesPerTuple.toFixed(0)} bytes a tuple, stored in ${storeMs.toFixed(1)} ms`);
    records.push(
      record({ ...of, unit: "bytes between sites/tuple", samples: [bytesPerTuple] }),
      record({
        ...of,
        unit: "virtual ms to store",
        samples: [storeMs],
        // A round trip, a commit at each end, and what gathers while one is written.
        target: { of: "median", op: "<=", value: 2 * ONE_WAY_MS + 3 * COMMIT_MS },
      }),
    );
  };
  for (const n of quick ? [2, 5] : [2, 3, 4, 5, 6, 7]) await measure(n, 1);
  for (const f of quick ? [2] : [0, 2, 3]) await measure(7, f);
  const forMs = quick ? 200 : 3_000;
  for (const [engine, open] of ENGINES) {
    for (const producers of quick ? [10] : [1, 10, 100, 1_000]) {
      const rates: Rate[] = [];
      for (let i = 0; i < (quick ? 1 : 3); i++) {
        const disk = `${folder}/${engine}-${producers}-${i}`;
        await Deno.mkdir(disk, { recursive: true });
        rates.push(await real((site) => open(`${disk}/${site}`), producers, forMs));
      }
      const shown = rates.map(({ perS, cpuMicros }) => `${perS.toFixed(0)} (${cpuMicros.toFixed(0)} µs)`);
      say(`${engine}, ${producers} producers: ${shown.join(", ")} tuples/s (CPU each)`);
      const of = { bench: "owners", case: `${engine}, n = 2, f = 1, ${producers} producers` };
      records.push(
        record({ ...of, unit: "tuples stored and removed/s", samples: rates.map(({ perS }) => perS) }),
        record({ ...of, unit: "CPU µs/tuple, both sites", samples: rates.map(({ cpuMicros }) => cpuMicros) }),
      );
    }
  }
  records.push(...await waitingRecords(quick ? 5_000 : 1_000_000, folder, say));
  return records;
}

async function waitingRecords(count: number, folder: string, say: (text: string) => void) {
  await Deno.mkdir(`${folder}/waiting`, { recursive: true });
  const { bytesEach, openMs, actsMs } = await waiting(
    (site) => openSqlite(`${folder}/waiting/${site}`),
    count,
  );
  const of = { bench: "owners", case: `${count} tuples wait, sqlite, n = 2, f = 1` };
  say(
    `${of.case}: ${bytesEach.toFixed(0)} bytes each; read in ${openMs.toFixed(0)} ms, acts after ${
      actsMs.toFixed(0)
    }`,
  );
  return [
    record({ ...of, unit: "bytes of memory/tuple at a site", samples: [bytesEach] }),
    record({ ...of, unit: "CPU ms to read them at the start", samples: [openMs] }),
    record({ ...of, unit: "CPU ms until all are acted on, both sites", samples: [actsMs] }),
  ];
}

const ENGINES: readonly [string, (folder: string) => Storage][] = [
  ["memory", () => new MemoryStorage()],
  ["sqlite", (folder) => openSqlite(folder)],
];

export const bench: Bench = {
  name: "owners",
  summary: "tuples at f + 1 sites: bytes against n and f, time to store, tuples a second",
  notMeasured: "real links and separate processes: both sites share one thread, and one disk",
  byDefault: true,
  run,
};
