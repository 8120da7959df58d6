/**
 * One damage after another: the folders of a past are copied, one site's files are damaged, all sites are started
 * and asked. Some of them may have run before the others by then, one or more times, and have written.
 *
 * What must hold, for each:
 * DA1  Whoever presents a token is answered with what it had seen, or later; or told by a code. Nobody is answered with what
 *      nobody wrote.
 * DA2  What the root had, and nothing happened to the root's disk, is there in the end: as it was, or refused by name.
 *      With f ≥ 1 so is all that was acknowledged.
 * DA3  A stateful session goes on from all that was released, or not at all. What an origin had answered is not asked again;
 *      the kept log of one that ended is what it was, or not there.
 * DA4  A site that does not start, or stops, says which file or folder, and what to do.
 */
import { join } from "node:path";
import { packKey } from "../../store/model/key.ts";
import { prefixRange } from "../../store/model/range.ts";
import { Draws } from "../sim/random.ts";
import { type Damage, damage } from "./damage.ts";
import { Client, type Model } from "./model.ts";
import {
  asked,
  copyFolder,
  entriesOf,
  makePast,
  type Past,
  read,
  sessionName,
  textOf,
  utf8,
  write,
} from "./past.ts";
import { SITES, Tree, type TreeSite } from "./tree.ts";

/** What came of a damage. */
export interface Finding {
  readonly at: number;
  readonly says: string;
  readonly wrong: readonly string[];
}

export interface Suite {
  readonly damages: number;
  /** By what was answered, how often. */
  readonly answers: Readonly<Record<string, number>>;
  /** By kind, why sites did not start or go on. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  readonly ms: number;
}

export interface SuiteOptions {
  readonly damages: number;
  readonly seed: number;
  /** The first damage's number. */
  readonly from?: number;
  readonly msMax?: number;
  readonly say?: (line: string) => void;
}

/** A past costs as much as some ten damages. */
const DAMAGES_PER_PAST = 20;
const AFTER_MS = 12_000, OPEN_MS = 16_000;
const ALONE_CHANCE = 0.5, WRITES_ALONE_MAX = 12;
/** The restarts that whoever runs a site gives it in the time of a damage. */
const STARTS_MAX = 3;

/** Runs damages, each by its number: seed and number repeat it. */
export async function suite(
  { damages, seed, from = 0, msMax = Infinity, say }: SuiteOptions,
): Promise<Suite> {
  const begun = performance.now(), findings: Finding[] = [];
  const answers: Record<string, number> = {}, refusals: Record<string, number> = {};
  let done = 0, past: Begun | null = null;
  try {
    for (let at = from; at < from + damages && performance.now() - begun < msMax; at++, done++) {
      const number: number = Math.floor(at / DAMAGES_PER_PAST);
      if (past?.number !== number) {
        const before = past;
        past = null;
        past = await begin(seed, number, before);
      }
      const one = new One(past.past, new Draws(`damage ${seed} ${at}`), join(past.folder, "now"));
      const { says, wrong } = await one.run();
      for (const [name, count] of one.answers) answers[name] = (answers[name] ?? 0) + count;
      for (const name of one.refusals) refusals[name] = (refusals[name] ?? 0) + 1;
      say?.(
        [`${at} ${says}: ${one.refusals.join("; ")}`, ...wrong.map((each) => `  WRONG ${each}`)].join("\n"),
      );
      if (wrong.length > 0) findings.push({ at, says, wrong });
    }
  } finally {
    if (past !== null) await Deno.remove(past.folder, { recursive: true });
  }
  return { damages: done, answers, refusals, findings, ms: performance.now() - begun };
}

interface Begun {
  readonly number: number;
  readonly past: Past;
  readonly folder: string;
}

async function begin(seed: number, number: number, before: Begun | null): Promise<Begun> {
  if (before !== null) await Deno.remove(before.folder, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: await memoryFolder(), prefix: "sojourn-damage-" });
  try {
    return { number, folder, past: await makePast(`${seed} ${number}`, number % 2, folder) };
  } catch (error) {
    await Deno.remove(folder, { recursive: true });
    throw error;
  }
}

/** What a damage may do, as the documentation says. */
interface Known {
  /** No effect may be shown without its cause: not so where the disk of an inner site is lost, and f = 0. */
  readonly isCausal: boolean;
  /**
   * An older copy of all that a site has, f = 0: what nobody else had of it is unknown to everybody, but for a token that
   * comes to that site itself. Of a key; null: of a stateful session.
   */
  readonly isForgotten: (key: string | null) => boolean;
}

/** Where a sync costs nothing; undefined: there is no such folder. */
async function memoryFolder(): Promise<string> {
  const folder = "/dev/shm";
  return await Deno.stat(folder).then(({ isDirectory }) => isDirectory, () => false)
    ? folder
    : Deno.env.get("TMPDIR") ?? "/tmp";
}

class One {
  readonly answers = new Map<string, number>();
  readonly refusals: string[] = [];
  readonly #past: Past;
  readonly #model: Model;
  readonly #clients: Client[];
  readonly #draws: Draws;
  readonly #folder: string;
  readonly #wrong: string[] = [];
  /** What is said in docs/faults.md of this damage. */
  #known: Known = { isCausal: true, isForgotten: () => false };

  constructor(past: Past, draws: Draws, folder: string) {
    this.#past = past;
    this.#model = past.model.copy();
    this.#clients = past.clients.map((client) => Object.assign(new Client(client.name), client));
    this.#draws = draws;
    this.#folder = folder;
  }

  async run(): Promise<{ readonly says: string; readonly wrong: readonly string[] }> {
    const { options } = this.#past, draws = this.#draws;
    const how = draws.pick(["killed", "stopped"] as const);
    await copyFolder(this.#past[how], this.#folder);
    const done = await damage(draws, this.#folder, this.#past.before);
    this.#known = this.#knownOf(done);
    const tree = new Tree({ ...options, folder: this.#folder, seed: `${options.seed} again` });
    const says = `f = ${options.f}, ${options.rootEngine} at the root, ${how}: ${done.says}`;
    try {
      await this.#alone(tree);
      await this.#start(tree);
      await this.#ask(tree);
      await this.#sessions(tree, done);
      await this.#others(tree, done);
      await tree.pass(AFTER_MS);
      await this.#restarts(tree);
      await this.#ask(tree);
      await this.#end(tree, done);
      this.#explained(tree);
    } catch (error) {
      this.#wrong.push(error instanceof Error ? error.stack ?? error.message : String(error));
    } finally {
      await tree.killAll();
      await Deno.remove(this.#folder, { recursive: true });
    }
    return { says, wrong: [...new Set(this.#wrong)] };
  }

  #knownOf({ site, isCopy, path }: Damage): Known {
    const { options: { f }, atRoot, model } = this.#past;
    const isAlone = isCopy && path === "" && site !== "cloud" && f === 0;
    return {
      isCausal: !(site === "core" && f === 0),
      isForgotten: (key) => isAlone && (key === null || model.last(key) > (atRoot.get(key) ?? -1)),
    };
  }

  /** Some sites are there before others, for some starts, and somebody who has seen nothing writes there. */
  async #alone(tree: Tree): Promise<void> {
    const draws = this.#draws;
    if (!draws.chance(ALONE_CHANCE)) return;
    const first = SITES.filter(() => draws.chance(0.5)), starts = draws.integer(1, 2);
    for (let start = 0; start < starts; start++) {
      for (const { id } of first) await tree.start(id);
      await tree.settled(3_000);
      this.#explained(tree);
      for (const site of tree.up) {
        const client = new Client(`alone-${site}-${start}`);
        this.#clients.push(client);
        for (let i = draws.integer(0, WRITES_ALONE_MAX); i > 0; i--) {
          const key = `alone-${site}-${start}-${i}`;
          this.#count(
            "write, alone",
            await write(tree, site, { model: this.#model, client, key, padding: 20 }),
          );
        }
      }
      await tree.killAll();
    }
  }

  async #start(tree: Tree): Promise<void> {
    for (const { id } of this.#draws.chance(0.5) ? SITES : SITES.toReversed()) await tree.start(id);
    await tree.settled(6_000);
    await this.#restarts(tree);
  }

  /** Whoever runs a site starts it again when it has ended. */
  async #restarts(tree: Tree): Promise<void> {
    for (let starts = 1; starts < STARTS_MAX && tree.refusals.size > 0; starts++) {
      this.#explained(tree);
      for (const site of [...tree.refusals.keys()]) await tree.start(site as TreeSite);
      await tree.settled(6_000);
    }
  }

  /** DA4 */
  #explained(tree: Tree): void {
    for (const [site, { message, stack }] of tree.refusals) {
      const isNamed = message.includes(`/${site}/`) || message.includes(`of site ${site}`);
      const saysWhat = /put back|empty|remove/.test(message);
      this.refusals.push(`${site}: ${kindOf(message)}`);
      if (!isNamed || !saysWhat) this.#wrong.push(`${site} ends with no clear word: ${stack ?? message}`);
    }
  }

  #count(what: string, outcome: { readonly code: string } | { readonly value: unknown }): void {
    const name = `${what}: ${"code" in outcome ? outcome.code : "answered"}`;
    this.answers.set(name, (this.answers.get(name) ?? 0) + 1);
  }

  /** DA1 */
  async #ask(tree: Tree): Promise<void> {
    for (const site of tree.up) {
      for (const client of this.#clients) {
        await this.#askOne(tree, site, client);
        await this.#list(tree, site, client);
      }
      const nobody = await read(tree, site, { token: null }, this.#model.keys);
      const nothing = { seen: new Map(), shown: new Map() };
      if (!("code" in nobody)) this.#shows(`${site} to nobody in particular`, nothing, nobody.value.shown);
    }
    const client = this.#draws.pick(this.#clients), site = this.#draws.pick(SITES).id;
    const key = `after-${client.name}-${this.#draws.word()}`;
    const written = await write(tree, site, { model: this.#model, client, key, padding: 20 });
    this.#count("write", written);
    for (const other of tree.up) await this.#askOne(tree, other, client, [key]);
  }

  async #askOne(tree: Tree, site: TreeSite, client: Client, keys?: readonly string[]): Promise<void> {
    const all = keys ?? this.#model.keys;
    const whole = await read(tree, site, client, all);
    this.#count("read", whole);
    if (!("code" in whole)) {
      client.takes(whole.value.token, this.#shows(`${site} to ${client.name}`, client, whole.value.shown));
      return;
    }
    if (whole.code !== "row_damaged") return;
    // One row that is refused refuses all that were asked for with it.
    for (const key of all) {
      const found = await read(tree, site, client, [key]);
      this.#count("read of one", found);
      if (!("code" in found)) this.#shows(`${site} to ${client.name}`, client, found.value.shown);
    }
  }

  #shows(
    who: string,
    client: Pick<Client, "seen" | "shown">,
    rows: ReadonlyMap<string, string | null>,
  ): Pick<Client, "seen" | "shown"> {
    const { isCausal, isForgotten } = this.#known;
    const asked = new Map([...rows].filter(([key]) => !isForgotten(key)));
    for (const _ of [...rows].slice(asked.size)) {
      this.#count("a value", { code: "not asked after an older copy" });
    }
    const { wrong, ...seen } = this.#model.shows(client, asked, isCausal && asked.size === rows.size);
    this.#wrong.push(...wrong.map((each) => `${who}: ${each}`));
    return seen;
  }

  async #list(tree: Tree, site: TreeSite, client: Client): Promise<void> {
    const process = tree.at(site);
    if (process === null) return;
    const found = await asked(tree, async () => {
      const session = await process.replica.attach(client.token);
      return await session.list(prefixRange(packKey(["k"])));
    });
    this.#count("list", found);
    if ("code" in found) return;
    const there = new Map(found.value.map(({ value }) => {
      const text = textOf(value ?? new Uint8Array());
      return [text.split(" ")[0] ?? "", text] as const;
    }));
    const rows = new Map(this.#model.keys.map((key) => [key, there.get(key) ?? null]));
    this.#shows(`a list of ${site} for ${client.name}`, client, rows);
  }

  /** DA3: sessions. */
  async #sessions(tree: Tree, { path, isCopy, site: damaged }: Damage): Promise<void> {
    for (const [id, { released, asked: begun }] of this.#model.sessions) {
      for (const site of this.#draws.chance(0.5) ? tree.up : tree.up.toReversed()) {
        const homes = tree.at(site)?.homes ?? null;
        if (homes === null) continue;
        const opened = await asked(tree, () => homes.open(sessionName(id), "v1"), OPEN_MS);
        this.#count("session", opened);
        if ("code" in opened) continue;
        const entries = entriesOf(opened.value);
        const isWhole = released.every((text, i) => entries[i] === text);
        const isTrue = entries.every((text) => begun.includes(text));
        // docs/faults.md: one that only the root kept is as in the copy of all that the root has.
        const isKnown = isCopy && damaged === "cloud" && path === "" && site === "cloud" &&
          this.#past.options.f === 0;
        if (!isWhole && this.#known.isForgotten(null)) {
          this.#count("session, forgotten by an older copy", opened);
        } else if (!isWhole && isTrue && isKnown) {
          this.#count("session, as in the root's copy", opened);
        } else if (!isWhole || !isTrue) {
          this.#wrong.push(
            `${site} opens ${id} with ${entries.length} entries; ${released.length} were released` +
              (isTrue ? "" : ", and some of them nobody wrote"),
          );
        }
        const home = opened.value.start([]), text = `${id} after ${this.#draws.word()}`;
        begun.push(text);
        const commit = { count: 1, entries: utf8.encode(text), answers: [], wakeAtMs: null };
        const done = await asked(tree, async () => await home.commit(commit));
        this.#count("commit", done);
        if ("value" in done) released.splice(0, Infinity, ...entries, text);
        break;
      }
    }
  }

  /** DA3: what else is kept. */
  async #others(tree: Tree, { path, isCopy, site: damaged }: Damage): Promise<void> {
    const kept = tree.at("cloud")?.outcomes ?? null;
    // docs/faults.md: so are what origins answered, of ten minutes, after an older copy of the root's disk.
    const isKnown = isCopy && damaged === "cloud" && path === "";
    for (const [key, text] of kept === null || isKnown ? [] : this.#model.outcomes) {
      let isAgain = false;
      const found = await asked(tree, () =>
        (kept as NonNullable<typeof kept>).once(key, () => {
          isAgain = true;
          return Promise.resolve({ ok: true, bytes: utf8.encode("again") });
        }));
      this.#count("outcome", found);
      if (isAgain) this.#wrong.push(`an origin is asked again what it had answered: ${key}`);
      else if ("value" in found && found.value.ok && textOf(found.value.bytes) !== text) {
        this.#wrong.push(`an origin's answer is another than it was: ${textOf(found.value.bytes)}`);
      }
    }
    for (const site of tree.up) {
      const ended = tree.at(site)?.ended ?? null, name = `ended-${site}`;
      if (ended === null) continue;
      const found = await asked(tree, () => ended.get(sessionName(name)));
      this.#count("ended log", found);
      if ("code" in found || found.value === null) continue;
      const text = found.value.log.map(({ bytes }) => textOf(bytes)).join();
      if (text !== this.#model.ended.get(name)) {
        this.#wrong.push(`a kept log is another than it was: ${text}`);
      }
    }
  }

  /** DA2 */
  async #end(tree: Tree, done: Damage): Promise<void> {
    if (tree.at("cloud") === null) return;
    const isBackup = done.site === "cloud" && done.isCopy && done.path === "";
    for (const [key, atRoot] of isBackup ? [] : this.#past.atRoot) {
      const found = await read(tree, "cloud", { token: null }, [key]);
      this.#count("in the end", found);
      if ("code" in found) continue;
      const index = this.#model.indexOf(key, found.value.shown.get(key) ?? null) ?? -1;
      const least = this.#past.options.f > 0 && tree.up.length >= SITES.length - 1
        ? this.#past.model.last(key)
        : atRoot;
      if (index < least) {
        this.#wrong.push(`in the end ${key} is value ${index} at the root, and ${least} was acknowledged`);
      }
    }
  }
}

/** A message without what differs from one damage to the next. */
const kindOf = (message: string): string =>
  message.replaceAll(/\/\S*\//g, "…/").replaceAll(/\d+/g, "N").slice(0, 160);
