/**
 * Stand-ins for a session's source that does not answer: its owners answer in its place, and those of each inner site
 * on the way up that does not answer either (PROTOCOL C1, C2 and O4). The site that the session came to puts the
 * answers together.
 *
 * Bottom-up, from the source to below the common ancestor: the owners of the source → its parent, which relays the
 * question as always → where that is silent, the parent's owners → its parent …
 *
 * T1  An owner's ward will do if it reaches what the token names; for an inner site, also what the site below had got
 *     of its journal. Whether the source lives does not matter then.
 * T2  An open token names too little. But what its session was told before it came here was on the disks of all owners
 *     of the configuration that was in effect; so one of them has it. The root is asked whether a configuration is the
 *     newest *after* its owner has answered: none that the root does not have has been in effect by then.
 * T3  A configuration that one of its owners does not know to be in effect has never been told under: then an owner of
 *     the one before it has all that was told.
 * T4  An owner's answer stays while sites further up are asked again: it is an answer that took its time. The rows of a
 *     source may be megabytes.
 */
import type { TokenState } from "../api/api.ts";
import { followedOf } from "../api/token_path.ts";
import { newestClock } from "../core/clock_guard.ts";
import type { Core } from "../core/core.ts";
import { STAND_IN_AFTER_MS, STAND_IN_MS_MAX, WAIT_MS_MAX } from "../model/limits.ts";
import type { Carry, RowsAsk } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import { firstId } from "../model/question.ts";
import { newerRow } from "../model/merge.ts";
import type { Position, ReplicaNumber } from "../model/row.ts";
import type { WireRow } from "../wire/wire_row.ts";
import type { Key } from "../model/key.ts";
import type { Configuration } from "../members/configuration.ts";
import type { Keeper } from "./keeper.ts";
import type { Newest, StandIn, StoodIn } from "../wire/ward_message.ts";

/** Asks a living site for what it has, as the next on the way up; null: no answer in time. */
export type AskLiving = (
  to: SiteId,
  ask: Pick<RowsAsk, "replica" | "depth" | "need" | "rows" | "trace">,
) => Promise<Carry | null>;

/** The question that is answered in place of a silent source. */
export interface Around {
  /** Depth of the common ancestor. */
  readonly depth: number;
  readonly trace: string;
  /** Resolves where it is known that the source will not answer. */
  readonly refused: Promise<void>;
  /** Reports whether the source has answered. */
  readonly isOver: () => boolean;
}

/** Answers that have been put together, from the source up to below a depth. */
interface Gathered {
  readonly said: { readonly need: Position; readonly clock: number; readonly rows: readonly WireRow[] };
  /** Position of the journal of the site above that the site at that depth had got. */
  readonly position: Position;
  readonly depth: number;
}

/** Sites from the source to below the common ancestor, and how the living ones are asked. */
interface Way {
  readonly path: readonly SiteId[];
  readonly depth: number;
  readonly trace: string;
  readonly askLiving: AskLiving;
  /** Questions to sites that have not answered yet, by depth. */
  readonly living: Map<number, Promise<Carry>>;
}

interface Wanted {
  readonly replica: ReplicaNumber;
  /** Depth of the common ancestor. */
  readonly depth: number;
  readonly position: Position;
  readonly isOpen: boolean;
}

export class StandIns {
  readonly #core: Core;
  readonly #keeper: Keeper;
  readonly #asked = new Map<number, (answer: StoodIn | Newest) => void>();
  /** Callers that wait for a site to be silent for long. */
  readonly #silences = new Map<SiteId, Set<() => void>>();
  #nextId: number;

  constructor(core: Core, keeper: Keeper) {
    this.#core = core;
    this.#keeper = keeper;
    this.#nextId = firstId(core.ports.random);
  }

  /**
   * Gathers all rows pending towards the ancestor at `depth` as the source would have carried them; null: nobody has
   * them.
   */
  async carry(token: TokenState, around: Around, askLiving: AskLiving): Promise<Carry | null> {
    const core = this.#core, { depth, trace, refused, isOver } = around;
    const path = core.topology.incarnation(token.replica)?.path;
    // A source above this site has nothing pending towards itself, and its rows come from nobody else.
    if (path === undefined || path.length - 1 <= depth) return null;
    const untilMs = core.steady.nowMs() + WAIT_MS_MAX;
    const way: Way = { path, depth, trace, askLiving, living: new Map() };
    let gathered: Gathered = {
      said: { need: 0, clock: 0, rows: [] },
      position: token.path.at(-1) ?? 0,
      depth: path.length,
    };
    await Promise.race([this.#silence(path.at(-1) ?? ""), refused]);
    while (core.steady.nowMs() < untilMs && !core.closed && !isOver()) {
      const more = await this.#step(token, way, gathered);
      if ("kind" in more) return more;
      gathered = more;
      if (gathered.depth > depth + 1) continue;
      core.count("stand_in_carry");
      return { kind: "carry", id: 0, outcome: "rows", ...gathered.said };
    }
    return null;
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#core.ports.clock.after(STAND_IN_AFTER_MS, resolve));
  }

  /** Resolves when a site has been silent for so long that it may be gone, or as soon as it can't be reached. */
  #silence(site: SiteId): Promise<void> {
    return new Promise((resolve) => {
      const over = () => {
        cancel();
        waiting.delete(over);
        if (waiting.size === 0) this.#silences.delete(site);
        resolve();
      };
      const cancel = this.#core.ports.clock.after(STAND_IN_AFTER_MS, over);
      const waiting = this.#silences.get(site) ?? new Set();
      this.#silences.set(site, waiting.add(over));
    });
  }

  /** Ends the wait for a site's silence: there is no way to the site now. */
  unreachable(site: SiteId): void {
    for (const over of [...this.#silences.get(site) ?? []]) over();
  }

  /**
   * Gathers from one site further up; or returns the same again, a moment later, where nobody has an answer yet (T4).
   */
  async #step(token: TokenState, way: Way, gathered: Gathered): Promise<Carry | Gathered> {
    const { path, depth } = way, { said, position } = gathered;
    const at = gathered.depth - 1;
    const isSource = at === path.length - 1;
    const replica = this.#core.topology.above(token.replica, at);
    if (replica === undefined || !this.#isSameAncestor(token.replica, depth)) {
      await this.#pause();
      return gathered;
    }
    const isAsked = way.living.has(at);
    const living = isSource ? null : this.#living(token, way, gathered);
    if (living !== null && !isAsked) {
      const early = await Promise.race([living, this.#silence(path[at] ?? "")]);
      if (early) return early;
    }
    const part = await this.#part({ replica, depth, position, isOpen: isSource && token.open });
    if (part === null) {
      return await Promise.race(living === null ? [this.#pause()] : [living, this.#pause()]) ?? gathered;
    }
    return {
      said: {
        need: Math.max(said.need, part.down[depth] ?? 0),
        clock: Math.max(said.clock, part.clock),
        rows: joined(part.rows, said.rows),
      },
      position: Math.max(part.down[at - 1] ?? 0, followedOf(token, at - 1)), // T1
      depth: at,
    };
  }

  /**
   * Asks a living site on the way to add its rows to all from below; pending for ever where it does not answer with
   * rows.
   */
  #living({ replica }: TokenState, way: Way, gathered: Gathered): Promise<Carry> {
    const at = gathered.depth - 1;
    const { need, rows } = gathered.said;
    const before = way.living.get(at);
    if (before !== undefined) return before;
    const asked = way.askLiving(way.path[at] ?? "", {
      replica,
      depth: way.depth,
      need,
      rows,
      trace: way.trace,
    });
    const living = new Promise<Carry>((resolve) => {
      asked.then((carry) => {
        if (carry?.outcome === "rows") resolve(carry);
        else way.living.delete(at); // it is asked again
      });
    });
    way.living.set(at, living);
    return living;
  }

  /**
   * Reports whether the common ancestor is the same incarnation for both sites: a position of another could not be
   * waited for.
   */
  #isSameAncestor(replica: ReplicaNumber, depth: number): boolean {
    const { topology, replica: mine, depth: own } = this.#core;
    return topology.above(replica, depth) === (depth === own ? mine : topology.above(mine, depth));
  }

  /** Gets an incarnation's pending rows from one of its owners. */
  async #part(wanted: Wanted): Promise<StoodIn | null> {
    const { wards } = this.#core.topology;
    const configuration = wards.of(wanted.replica);
    if (configuration === undefined) return null;
    return wanted.isOpen
      ? await this.#newestOf(wanted, configuration)
      : await this.#first(wards.owners(wanted.replica).map((owner) => this.ask(owner, wanted)));
  }

  /** Returns the first answer that will do (T1). */
  #first(answers: readonly Promise<StoodIn | null>[]): Promise<StoodIn | null> {
    return new Promise((resolve) => {
      let left = answers.length;
      if (left === 0) resolve(null);
      for (const answer of answers) {
        answer.then((part) => {
          if (part?.outcome === "rows") resolve(part);
          if (--left === 0) resolve(null);
        });
      }
    });
  }

  /** Returns the answer of an owner of the newest configuration, for an open token (T2, T3). */
  async #newestOf(wanted: Wanted, configuration: Configuration): Promise<StoodIn | null> {
    const { number, owners, previous } = configuration;
    const all = [...new Set([...owners, ...previous])];
    const answers = new Map<SiteId, StoodIn>();
    await Promise.all(all.map(async (owner) => {
      const part = await this.ask(owner, wanted);
      if (part !== null) answers.set(owner, part);
    }));
    if (await this.#newest(wanted.replica) !== number) return null;
    const of = (sites: readonly SiteId[]) => sites.flatMap((site) => answers.get(site) ?? []);
    const whole = of(owners).filter((part) => part.config === number);
    const [settled] = whole.filter((part) => part.outcome === "rows");
    if (settled !== undefined) this.#core.count("stand_in_open");
    if (settled !== undefined || whole.length > 0) return settled ?? null;
    if (of(owners).length === 0) return null;
    const before = of(previous).filter((part) => part.outcome === "rows");
    return before.sort((a, b) => b.position - a.position)[0] ?? null;
  }

  /** Asks an owner for what it holds of an incarnation; null: no answer in time. */
  async ask(
    owner: SiteId,
    { replica, depth, position }: Pick<StandIn, "replica" | "depth" | "position">,
  ): Promise<StoodIn | null> {
    const id = this.#nextId++;
    const ask: StandIn = { kind: "standIn", id, replica, depth, position };
    if (owner === this.#core.config.site) return this.#keeper.standIn(ask);
    this.#core.send(owner, ask);
    const answer = await this.#answer(id);
    return answer?.kind === "stoodIn" ? answer : null;
  }

  /** Asks the root for the newest configuration that it has; null where it does not answer. */
  async #newest(replica: ReplicaNumber): Promise<number | null> {
    const core = this.#core;
    if (core.isRoot) return core.topology.wards.of(replica)?.number ?? 0;
    const id = this.#nextId++;
    core.send(core.path[0] ?? "", { kind: "newest", id, replica, isAnswer: false, config: 0 });
    const answer = await this.#answer(id);
    return answer?.kind === "newest" ? answer.config : null;
  }

  #answer(id: number): Promise<StoodIn | Newest | null> {
    return new Promise((resolve) => {
      const cancel = this.#core.ports.clock.after(STAND_IN_MS_MAX, () => {
        this.#asked.delete(id);
        resolve(null);
      });
      this.#asked.set(id, (answer) => {
        this.#asked.delete(id);
        cancel();
        resolve(answer);
      });
    });
  }

  /** Takes an answer to a question of this site. */
  answered(from: SiteId, answer: StoodIn | Newest): void {
    const { clock } = this.#core;
    const isAhead = answer.kind === "stoodIn" && !clock.admits(newestClock(answer));
    if (isAhead) return this.#core.refused("clock_ahead", from);
    this.#asked.get(answer.id)?.(answer);
  }
}

/** Joins the rows of two sites: the newer one of each key. */
function joined(upper: readonly WireRow[], lower: readonly WireRow[]): readonly WireRow[] {
  const byKey = new Map<Key, WireRow>(lower.map((row) => [row.key, row]));
  for (const row of upper) {
    const below = byKey.get(row.key);
    byKey.set(row.key, below === undefined ? row : newerRow(row, below));
  }
  return [...byKey.values()];
}
