/**
 * One pass of the figures of a tree of N edges below cores below a root, in a process of its own. The root, the
 * cores and three edges are replicas (the production store, storage in memory); the other edges are doubles
 * (edge_double.ts). What is measured is done at the three. Time is virtual; CPU is this process's: of all sites
 * together, doubles and links among them.
 *
 * Input (fresh.ts): {@link TreeInput}; answer: figures by name. Needs `--expose-gc`.
 */
import type { AttachedSession, Replica, TokenState } from "../../../store/api/api.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { deriveKeyRing, sealToken } from "../../../store/session/token.ts";
import { freshAnswer, freshInput } from "../fresh.ts";
import { type Forest, plant, type Site } from "./forest.ts";
import { cpuMicros, heapBytes } from "./virtual.ts";

export interface TreeInput {
  readonly edges: number;
  readonly cores: number;
  /** All edges are replicas: what doubles say is held against. */
  readonly allReal: boolean;
  /** Operations of each kind. */
  readonly count: number;
}

type Figures = Record<string, number>;

const VALUE = new Uint8Array(1024);
/** Operations come so far apart that each is over before the next. */
const EVERY_MS = 20;
/** Kinds of message that hold an operation's rows; all else is marks. */
const LINKS = [
  "edge>core",
  "core>root",
  "root>core",
  "core>edge",
  "core>double",
  "double>core",
  "peer",
] as const;

interface Sent {
  readonly messages: Record<string, number>;
  readonly bytes: Record<string, number>;
}

class Tree {
  readonly #forest: Forest;
  readonly #input: TreeInput;
  /** Two edges of one core, and one of another. */
  readonly here: Site;
  readonly sibling: Site;
  readonly cousin: Site;

  constructor(forest: Forest, input: TreeInput) {
    this.#forest = forest;
    this.#input = input;
    const site = (id: string) => {
      const site = forest.replicas.get(id);
      if (site === undefined) throw new Error(`there is no replica at ${id}`);
      return site;
    };
    this.here = site("edge-0");
    this.sibling = site(`edge-${input.cores}`);
    this.cousin = site("edge-1");
  }

  #sent(): Sent {
    const messages: Record<string, number> = {}, bytes: Record<string, number> = {};
    for (const link of LINKS) {
      for (const [kind, traffic] of this.#forest.world.counts.get(link) ?? []) {
        messages[`${link} ${kind}`] = traffic.messages;
        bytes[`${link} ${kind}`] = traffic.bytes;
      }
    }
    return { messages, bytes };
  }

  /** Waits for something in virtual time. */
  async get<T>(promise: Promise<T> | T): Promise<T> {
    let done = false;
    const settled = Promise.resolve(promise).finally(() => done = true);
    settled.catch(() => {});
    await this.#forest.world.settle();
    await this.#forest.world.until(() => done, "an operation");
    return await settled;
  }

  /**
   * Does something `count` times, and as long nothing: what it costs beyond idling.
   *
   * @returns CPU in µs, and messages and bytes by link and kind, each per time.
   */
  async cost(count: number, body: (i: number) => Promise<void>): Promise<{ micros: number; sent: Sent }> {
    const { world } = this.#forest;
    const phase = async (work: (i: number) => Promise<void>) => {
      const before = this.#sent();
      const micros = await cpuMicros(async () => {
        for (let i = 0; i < count; i++) {
          const untilMs = world.nowMs() + EVERY_MS;
          await work(i);
          await world.run(Math.max(0, untilMs - world.nowMs()));
        }
      });
      this.#forest.check();
      return { micros, sent: difference(this.#sent(), before, count) };
    };
    const idle = await phase(() => Promise.resolve()), busy = await phase(body);
    const idleAgain = await phase(() => Promise.resolve());
    const mean = difference(sum(idle.sent, idleAgain.sent), { messages: {}, bytes: {} }, 2);
    return {
      micros: (busy.micros - (idle.micros + idleAgain.micros) / 2) / count,
      sent: difference(busy.sent, mean, 1),
    };
  }

  /** Until every site has heard of everything. */
  async settle(): Promise<void> {
    await this.#forest.world.run(1_500 + this.#input.edges / this.#input.cores / 5);
  }
}

function difference(a: Sent, b: Sent, by: number): Sent {
  const over = (x: Record<string, number>, y: Record<string, number>) =>
    Object.fromEntries(Object.entries(x).map(([name, value]) => [name, (value - (y[name] ?? 0)) / by]));
  return { messages: over(a.messages, b.messages), bytes: over(a.bytes, b.bytes) };
}

function sum(a: Sent, b: Sent): Sent {
  const add = (x: Record<string, number>, y: Record<string, number>) => {
    const names = new Set([...Object.keys(x), ...Object.keys(y)]);
    return Object.fromEntries([...names].map((name) => [name, (x[name] ?? 0) + (y[name] ?? 0)]));
  };
  return { messages: add(a.messages, b.messages), bytes: add(a.bytes, b.bytes) };
}

const total = (of: Record<string, number>, has: (name: string) => boolean): number =>
  Object.entries(of).reduce((sum, [name, value]) => has(name) ? sum + value : sum, 0);

async function session(tree: Tree, at: Replica, token: TokenState | null): Promise<AttachedSession> {
  return await tree.get(at.attach(token));
}

/** Attaches, does something, and leaves with a token once it is durable. */
async function request(
  tree: Tree,
  at: Replica,
  token: TokenState | null,
  body: (session: AttachedSession) => Promise<unknown>,
): Promise<{ token: TokenState; how: string }> {
  const attached = await session(tree, at, token);
  await tree.get(body(attached));
  await tree.get(attached.durable());
  return { token: attached.token(false), how: attached.how };
}

async function run(input: TreeInput): Promise<Figures> {
  const figures: Figures = {};
  let forest: Forest | undefined;
  const isReal = (i: number) => input.allReal || i === 0 || i === 1 || i === input.cores;
  const joinMicros = await cpuMicros(async () => {
    forest = await plant({ cores: input.cores, edges: input.edges, real: isReal });
    figures["join, all at once: virtual ms"] = await forest.ready();
  });
  if (forest === undefined) throw new Error("there is no tree");
  figures["join, all at once: CPU µs/site"] = joinMicros / input.edges;
  const tree = new Tree(forest, input);
  await tree.settle();
  await idle(forest, input, figures);
  await writes(tree, input, figures);
  await readMisses(forest, tree, input, figures);
  await handoffs(tree, input, figures);
  await footprints(tree, figures);
  await coveredPoints(tree, figures);
  await known(forest, tree, input, figures);
  return figures;
}

async function idle(forest: Forest, { edges }: TreeInput, figures: Figures): Promise<void> {
  const { world } = forest, seconds = 2;
  const counted = () =>
    ["root>core", "core>edge", "core>double", "edge>core", "double>core", "core>root"]
      .map((link) => world.traffic(link)).reduce((a, b) => ({
        messages: a.messages + b.messages,
        bytes: a.bytes + b.bytes,
      }));
  const before = counted(), micros = await cpuMicros(() => world.run(1000 * seconds)), after = counted();
  figures["idle: CPU µs/site/s"] = micros / edges / seconds;
  figures["idle: messages/site/s"] = (after.messages - before.messages) / edges / seconds;
  figures["idle: bytes/site/s"] = (after.bytes - before.bytes) / edges / seconds;
}

/** Writes of 1 KB at an edge, of rows that no other edge covers. */
async function writes(tree: Tree, { count, edges }: TreeInput, figures: Figures): Promise<void> {
  const { micros, sent } = await tree.cost(count, async (i) => {
    await request(
      tree,
      tree.here.replica,
      null,
      (session) => session.write([{ kind: "set", key: packKey(["a", "w", i % 100]), value: VALUE }]),
    );
  });
  const isUp = (name: string) => name === "edge>core push" || name === "core>root push";
  const isMark = (name: string) => name.endsWith(" mark");
  figures["write at an edge: CPU µs, all sites"] = micros;
  figures["write at an edge: pushes up"] = total(sent.messages, isUp);
  figures["write at an edge: bytes up"] = total(sent.bytes, isUp);
  figures["write at an edge: marks beyond idle/site"] = total(sent.messages, isMark) / edges;
}

/** Reads of 1 KB rows that only the root has. */
async function readMisses(forest: Forest, tree: Tree, { count }: TreeInput, figures: Figures): Promise<void> {
  const root = forest.replicas.get("root");
  const key = (i: number) => packKey(["a", "cold", i]);
  for (let i = 0; i < count; i++) {
    await root?.replica.system.write([{ kind: "set", key: key(i), value: VALUE }]);
  }
  await tree.settle();
  let ms = 0;
  const { micros, sent } = await tree.cost(count, async (i) => {
    const fromMs = forest.world.nowMs();
    await request(tree, tree.here.replica, null, (session) => session.get([key(i)]));
    ms += forest.world.nowMs() - fromMs;
  });
  const isFetch = (name: string) => name.endsWith(" fetch") || name.endsWith(" fetched");
  figures["read miss, from the root: CPU µs, all sites"] = micros;
  figures["read miss, from the root: messages"] = total(sent.messages, isFetch);
  figures["read miss, from the root: bytes"] = total(sent.bytes, isFetch);
  figures["read miss, from the root: virtual ms at 1 ms a link"] = ms / count;
}

async function handoffs(tree: Tree, { count }: TreeInput, figures: Figures): Promise<void> {
  const key = packKey(["a", "h", 0]),
    set = (session: AttachedSession) => session.write([{ kind: "set", key, value: VALUE }]);
  const from = (await request(tree, tree.here.replica, null, set)).token;
  await tree.settle();
  const isHandoff = (name: string) =>
    name.startsWith("peer ") || name.endsWith(" ask") || name.endsWith(" carry");
  const told = new Map<string, number>();
  const nothing = await tree.cost(count, async () => {
    const { how } = await request(tree, tree.cousin.replica, from, () => Promise.resolve());
    told.set(how, (told.get(how) ?? 0) + 1);
  });
  if (told.get("nothing") !== count) throw new Error(`not "nothing": ${JSON.stringify([...told])}`);
  const warming = (name: string) => name.includes("warm") || name.includes("footprint");
  figures["handoff, settled: messages"] = total(nothing.sent.messages, (n) => isHandoff(n) && !warming(n));
  figures["handoff, settled: CPU µs"] = await attachMicros(tree.cousin.replica, from);
  let bytes = 0, carried = 0;
  const carry = await tree.cost(count, async (i) => {
    const written = await request(
      tree,
      tree.here.replica,
      null,
      (session) => session.write([{ kind: "set", key: packKey(["a", "c", i]), value: VALUE }]),
    );
    const arrived = await session(tree, tree.cousin.replica, written.token);
    bytes += arrived.carried.bytes;
    carried += arrived.how === "carry" ? 1 : 0;
  });
  figures["handoff, just written: CPU µs with the write, all sites"] = carry.micros;
  figures["handoff, just written: messages"] = total(carry.sent.messages, (n) => isHandoff(n) && !warming(n));
  figures["handoff, just written: bytes carried"] = bytes / count;
  figures["handoff, just written: share that carried"] = carried / count;
  const ring = deriveKeyRing([new Uint8Array(32).fill(1)]);
  const random = { bytes: (n: number) => new Uint8Array(n).fill(3) };
  figures["token: bytes"] = sealToken(from, ring, { nowMs: Date.UTC(2026, 0, 1), random }).length;
}

/** Arrivals that need nothing take no time but CPU: one right after the other. */
async function attachMicros(at: Replica, from: TokenState): Promise<number> {
  const count = 5_000;
  const some = async () => {
    for (let i = 0; i < count; i++) (await at.attach(from)).token(false);
  };
  await some();
  return await cpuMicros(some) / count;
}

/** What a session that is over leaves at a site: what it touched (warming.ts). */
async function footprints(tree: Tree, figures: Figures): Promise<void> {
  const sessions = 2_000, keys: Key[] = [];
  for (let i = 0; i < 32; i++) keys.push(packKey(["a", "w", i]));
  await request(tree, tree.here.replica, null, (session) => session.get(keys));
  for (const touched of [1, 32]) {
    const before = heapBytes();
    for (let i = 0; i < sessions; i++) {
      await request(tree, tree.here.replica, null, (session) => session.get(keys.slice(0, touched)));
    }
    const name = `heap of a session that touched ${touched}: bytes`;
    figures[name] = (heapBytes() - before) / sessions;
  }
}

/** Rows that are not there: coverage alone. */
async function coveredPoints(tree: Tree, figures: Figures): Promise<void> {
  const count = 2_000, before = heapBytes();
  for (let i = 0; i < count; i += 100) {
    const keys = Array.from({ length: 100 }, (_, j) => packKey(["a", "absent", i + j]));
    await request(tree, tree.here.replica, null, (session) => session.get(keys));
  }
  figures["heap of a covered point, on the way to the root: bytes"] = (heapBytes() - before) / count;
}

/** What all the sites of the tree cost one edge: to start with them on its disk, and to keep in memory. */
async function known(
  forest: Forest,
  tree: Tree,
  { edges, cores }: TreeInput,
  figures: Figures,
): Promise<void> {
  const { sibling } = tree;
  await tree.get(sibling.replica.close());
  forest.disconnect(sibling.id);
  forest.forget(sibling.id);
  const sites = edges + cores + 1, before = heapBytes();
  const micros = await cpuMicros(async () => {
    await forest.replica(sibling.id, sibling.parent, "edge", { storage: sibling.storage, alone: true });
    await forest.world.settle();
  });
  figures["start with all sites known: CPU ms"] = micros / 1000;
  figures["heap of a known site, its rows aside: bytes"] = (heapBytes() - before) / sites;
}

if (import.meta.main) freshAnswer(await run(freshInput() as TreeInput));
