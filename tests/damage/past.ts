/**
 * A past: what clients did before a disk was damaged, and the folders of all sites as they were at three times, each for
 * as many damages as want to begin with it.
 *
 * DP1  `before` is what disks had at a moment in the middle, `killed` as their processes ended without a word, and
 *      `stopped` as they stopped in order.
 */
import { join } from "node:path";
import { type Home, HomeError, type OpenedSession } from "../../functions/sessions/home/mod.ts";
import { keepParent } from "../../runtime/site/parent_file.ts";
import { StoreUnavailable } from "../../store/api/api.ts";
import { packKey } from "../../store/model/key.ts";
import { Draws } from "../sim/random.ts";
import { Client, Model } from "./model.ts";
import { SITES, Tree, type TreeOptions, type TreeSite } from "./tree.ts";

/** What a damage begins with. */
export interface Past {
  readonly options: Omit<TreeOptions, "folder">;
  readonly model: Model;
  readonly clients: readonly Client[];
  /** Folders with all sites' folders (DP1). */
  readonly before: string;
  readonly killed: string;
  readonly stopped: string;
  /** Of each key, which value stood at the root in the end. */
  readonly atRoot: ReadonlyMap<string, number>;
}

const KEYS = 18, CLIENTS = 6, SESSIONS = 5, STEPS = 20, CUT_STEPS = 12;
/** Rows of several pages are cut and flipped in other ways than small ones. */
const PADDING = [10, 10, 200, 2_000, 9_000] as const;

export const utf8 = new TextEncoder();
export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
export const storeKey = (key: string) => packKey(["k", key]);
export const sessionName = (id: string) => ({ app: "shop", class: "cart", id });

/** Makes a past in a folder of its own. */
export async function makePast(seed: string, f: number, folder: string): Promise<Past> {
  const draws = new Draws(`past ${seed}`);
  const options = { f, seed, rootEngine: draws.pick(["denokv", "sqlite"] as const) };
  const live = join(folder, "live");
  const tree = new Tree({ ...options, folder: live });
  for (const { id } of SITES) await tree.start(id);
  if (!await tree.settled()) {
    throw new Error(`not all sites became ready: ${[...tree.refusals.values()].join()}`);
  }
  await tree.pass(3_000); // owners are found
  const maker = new Maker(tree, draws);
  await maker.begin();
  await maker.steps(STEPS);
  if (draws.chance(0.7)) await restart(tree, { maker, isMoved: draws.chance(0.5) });
  await maker.steps(STEPS);
  const before = join(folder, "before");
  await copyFolder(live, before);
  if (draws.chance(0.7)) await restart(tree, { maker, isMoved: false });
  await maker.steps(STEPS);
  if (draws.chance(0.6)) {
    const [a, b] = draws.pick([["edge", "core"], ["core", "cloud"]] as const);
    tree.network.partition(a, b, Infinity);
    await maker.steps(CUT_STEPS);
  }
  const atRoot = await maker.atRoot();
  const killed = join(folder, "killed"), stopped = join(folder, "stopped");
  await copyFolder(live, killed);
  for (const { id } of SITES.toReversed()) await tree.stop(id);
  await tree.killAll();
  await copyFolder(live, stopped);
  await Deno.remove(live, { recursive: true });
  return { options, model: maker.model, clients: maker.clients, before, killed, stopped, atRoot };
}

/** All sites stop in order, which leaves all of their rows in the one file of each database, and start again. */
async function restart(
  tree: Tree,
  { maker, isMoved }: { readonly maker: Maker; readonly isMoved: boolean },
): Promise<void> {
  maker.leaves();
  for (const { id } of SITES.toReversed()) await tree.stop(id);
  if (isMoved) {
    const { parent } = tree.config("far");
    if (parent === null) throw new Error("far has a parent");
    await keepParent(tree.config("far"), { id: "core", url: "tcp://core.test:1", lost: [] }, parent);
  }
  for (const { id } of SITES) await tree.start(id);
  if (!await tree.settled()) {
    throw new Error(`not all sites came back: ${[...tree.refusals.values()].join()}`);
  }
  await tree.pass(3_000);
}

/** What came of something that a site was asked. */
export type Outcome<T> = { readonly value: T } | { readonly code: string };

/** A value, or the code that a client would be told. @throws what is neither. */
export async function asked<T>(tree: Tree, run: () => Promise<T>, ms?: number): Promise<Outcome<T>> {
  try {
    return await tree.of(run(), ms) ?? { code: "silence" };
  } catch (error) {
    if (error instanceof StoreUnavailable) return { code: error.code };
    if (error instanceof HomeError) return { code: error.code };
    throw error;
  }
}

/** A client writes a value at a site. */
export async function write(
  tree: Tree,
  site: TreeSite,
  { model, client, key, padding }: { model: Model; client: Client; key: string; padding: number },
): Promise<Outcome<null>> {
  const process = tree.at(site);
  if (process === null) return { code: "down" };
  const { token } = client, { text, index } = model.begin(client, key, padding);
  return await asked(tree, async () => {
    const session = await process.replica.attach(token);
    await session.write([{ kind: "set", key: storeKey(key), value: utf8.encode(text) }]);
    await session.durable();
    model.acknowledged(client, key, index, session.token(false));
    return null;
  });
}

/** What a client is shown of some keys at a site, and the token that it leaves with. */
export async function read(
  tree: Tree,
  site: TreeSite,
  client: Pick<Client, "token">,
  keys: readonly string[],
) {
  const process = tree.at(site);
  if (process === null) return { code: "down" };
  const { token } = client;
  return await asked(tree, async () => {
    const session = await process.replica.attach(token);
    const rows = await session.get(keys.map(storeKey));
    await session.durable();
    const shown = new Map(keys.map((key, i) => {
      const value = rows[i]?.value ?? null;
      return [key, value === null ? null : textOf(value)] as const;
    }));
    return { shown, token: session.token(false) };
  });
}

/** The entries of an opened session, as its checkpoint and its log say. */
export function entriesOf({ checkpoint, log }: OpenedSession): string[] {
  const base = checkpoint === null ? [] : JSON.parse(textOf(checkpoint.bytes)) as string[];
  return [...base, ...log.map(({ bytes }) => textOf(bytes))];
}

class Maker {
  readonly model = new Model();
  readonly clients: readonly Client[];
  readonly #tree: Tree;
  readonly #draws: Draws;
  readonly #homes = new Map<string, Home>();

  constructor(tree: Tree, draws: Draws) {
    this.#tree = tree;
    this.#draws = draws;
    this.clients = Array.from({ length: CLIENTS }, (_, i) => new Client(`client-${i}`));
  }

  /** Sessions are opened at sites in turn, and something is kept of one that ended. */
  async begin(): Promise<void> {
    const tree = this.#tree, draws = this.#draws;
    for (let i = 0; i < SESSIONS; i++) {
      const id = `cart-${i}`, begun: string[] = [];
      this.model.sessions.set(id, { released: [], asked: begun });
      // With owners the root is nobody's home.
      const sites = [...SITES.slice(i % SITES.length), ...SITES.slice(0, i % SITES.length)];
      if (await this.#open(id, begun, sites) === null) throw new Error(`${id} does not open`);
    }
    for (const { id } of SITES) {
      const text = `the log of ${id} ${draws.word()}`, log = [{ bytes: utf8.encode(text) }];
      const copy = { epoch: 1, version: "v1", checkpoint: null, log };
      const keep = tree.at(id)?.ended?.keep(
        sessionName(`ended-${id}`),
        undefined,
        () => Promise.resolve(copy),
      );
      await tree.of(keep ?? Promise.resolve());
      this.model.ended.set(`ended-${id}`, text);
    }
  }

  /** No session is open any more. */
  leaves(): void {
    this.#homes.clear();
  }

  async steps(count: number): Promise<void> {
    for (let step = 0; step < count; step++) await this.step();
  }

  /** One client, or one session, does something. */
  async step(): Promise<void> {
    const draws = this.#draws;
    await this.#tree.pass(draws.pick([1, 5, 40, 300]));
    const what = draws.weighted({ write: 8, read: 4, commit: 5, outcome: 1 });
    if (what === "commit") return await this.#commit();
    if (what === "outcome") return await this.#outcome();
    const client = draws.pick(this.clients), site = draws.pick(SITES).id;
    const own = Number(client.name.split("-")[1]);
    const key = `key-${
      what === "write" ? draws.integer(0, KEYS / CLIENTS - 1) * CLIENTS + own : draws.integer(0, KEYS - 1)
    }`;
    if (what === "write") {
      await write(this.#tree, site, { model: this.model, client, key, padding: draws.pick(PADDING) });
      return;
    }
    const found = await read(this.#tree, site, client, [key]);
    if ("code" in found) return;
    const { wrong, ...seen } = this.model.shows(client, found.value.shown);
    if (wrong.length > 0) throw new Error(`before any damage: ${wrong.join()}`);
    client.takes(found.value.token, seen);
  }

  async #commit(): Promise<void> {
    const draws = this.#draws, [id, { released, asked: begun }] = draws.pick([...this.model.sessions]);
    const home = this.#homes.get(id) ?? await this.#open(id, begun);
    if (home === null) return;
    const text = `${id} entry ${begun.length + 1} ${"y".repeat(draws.pick(PADDING))}`;
    begun.push(text);
    const commit = { count: 1, entries: utf8.encode(text), answers: [], wakeAtMs: null };
    const done = await asked(this.#tree, async () => await home.commit(commit));
    if ("code" in done) {
      this.#homes.delete(id); // nobody knows what became of it
      return;
    }
    released.push(text);
    if (!draws.chance(0.2)) return;
    const base = { at: begun.length, bytes: utf8.encode(JSON.stringify(begun)), version: "v1" };
    await asked(this.#tree, async () => await home.checkpoint(base));
  }

  /** Where it is at home by now, wherever that is. */
  async #open(
    id: string,
    begun: string[],
    sites: readonly { readonly id: TreeSite }[] = SITES,
  ): Promise<Home | null> {
    for (const { id: site } of sites) {
      const homes = this.#tree.at(site)?.homes ?? null;
      if (homes === null) continue;
      const opened = await asked(this.#tree, () => homes.open(sessionName(id), "v1"), 20_000);
      if ("code" in opened) continue;
      // What was appended and never released may be gone, and is not asked for again.
      begun.splice(0, Infinity, ...entriesOf(opened.value));
      const home = opened.value.start([]);
      this.#homes.set(id, home);
      return home;
    }
    return null;
  }

  async #outcome(): Promise<void> {
    const draws = this.#draws, key = `once-${draws.word()}`, text = `answer to ${key}`;
    const kept = this.#tree.at("cloud")?.outcomes;
    if (kept === undefined || kept === null) return;
    await this.#tree.of(kept.once(key, () => Promise.resolve({ ok: true, bytes: utf8.encode(text) })));
    this.model.outcomes.set(key, text);
  }

  /** Which values the root has. */
  async atRoot(): Promise<ReadonlyMap<string, number>> {
    const found = await read(this.#tree, "cloud", { token: null }, this.model.keys);
    if ("code" in found) throw new Error(`the root answers ${found.code}`);
    return new Map([...found.value.shown].map(([key, text]) => [key, this.model.indexOf(key, text) ?? -1]));
  }
}

/** Copies a folder with all that is in it. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}
