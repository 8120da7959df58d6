/**
 * A session's source does not answer: its owners do, in its place, and those of each inner site on the way up that
 * does not answer either (PROTOCOL C1, C2 and O4). The site that the session came to puts the answers together.
 *
 * Bottom-up, from the source to below the common ancestor: the owners of the source → its parent, which relays the
 * question as always → where that is silent, the parent's owners → its parent …
 *
 * T1  An owner's ward will do if it reaches what the token names; for an inner site, what the one below had got of its
 *     journal. Whether the source lives does not matter then.
 * T2  An open token names too little. But what its session was told before it came here was on the disks of all owners
 *     of the configuration that was in effect; so one of them has it. Whether a configuration is the newest the root
 *     is asked *after* its owner has answered: none that the root does not have has been in effect by then.
 * T3  A configuration that one of its owners does not know to be in effect has never been told under: then an owner of
 *     the one before it has all that was told.
 */
import type { TokenState } from "../api.ts";
import type { Core } from "../core.ts";
import { STAND_IN_AFTER_MS, STAND_IN_MS_MAX, WAIT_MS_MAX } from "../limits.ts";
import type { Ask, Carry } from "../message.ts";
import type { SiteId } from "../ports.ts";
import { firstId } from "../question.ts";
import { newerRow } from "../merge.ts";
import type { Position, ReplicaNumber } from "../row.ts";
import type { WireRow } from "../wire_row.ts";
import type { Key } from "../key.ts";
import type { Configuration } from "./configuration.ts";
import type { Keeper } from "./keeper.ts";
import type { Newest, StandIn, StoodIn } from "./message.ts";

/** Asks a living site for what it has, as the next on the way up; null: no answer in time. */
export type AskLiving = (
  to: SiteId,
  ask: Pick<Ask, "replica" | "depth" | "need" | "rows" | "trace">,
) => Promise<Carry | null>;

/** Of the question that is answered for somebody else. */
export interface Around {
  /** Of the common ancestor. */
  readonly depth: number;
  readonly trace: string;
  /** Resolves where it is known that the source will not answer. */
  readonly refused: Promise<void>;
  /** The source has answered. */
  readonly isOver: () => boolean;
}

interface Wanted {
  readonly replica: ReplicaNumber;
  /** Of the common ancestor. */
  readonly depth: number;
  readonly position: Position;
  readonly isOpen: boolean;
}

export class StandIns {
  readonly #core: Core;
  readonly #keeper: Keeper;
  readonly #asked = new Map<number, (answer: StoodIn | Newest) => void>();
  #nextId: number;

  constructor(core: Core, keeper: Keeper) {
    this.#core = core;
    this.#keeper = keeper;
    this.#nextId = firstId(core.ports.random);
  }

  /**
   * All rows pending towards the ancestor at `depth` as the source would have carried them; null: nobody has them.
   */
  async carry(token: TokenState, around: Around, askLiving: AskLiving): Promise<Carry | null> {
    const { depth, trace, refused, isOver } = around;
    const { clock } = this.#core.ports;
    const untilMs = this.#core.steady.nowMs() + WAIT_MS_MAX;
    await Promise.race([this.#pause(STAND_IN_AFTER_MS), refused]);
    while (this.#core.steady.nowMs() < untilMs && !this.#core.closed && !isOver()) {
      const carry = await this.#gather(token, depth, trace, askLiving);
      if (carry !== null) return carry;
      await new Promise<void>((resolve) => clock.after(STAND_IN_AFTER_MS, resolve));
    }
    return null;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#core.ports.clock.after(ms, resolve));
  }

  async #gather(
    token: TokenState,
    depth: number,
    trace: string,
    askLiving: AskLiving,
  ): Promise<Carry | null> {
    const { topology } = this.#core;
    const path = topology.incarnation(token.replica)?.path;
    // A source above this site has nothing pending towards itself, and what it had told comes from nobody else.
    if (path === undefined || path.length - 1 <= depth) return null;
    if (!this.#isSameAncestor(token.replica, depth)) return null;
    let said: { need: Position; clock: number; rows: readonly WireRow[] } = { need: 0, clock: 0, rows: [] };
    let position: Position = token.path.at(-1) ?? 0;
    for (let at = path.length - 1; at > depth; at--) {
      const replica = topology.above(token.replica, at);
      if (replica === undefined) return null;
      const isSource = at === path.length - 1;
      const ask = { replica: token.replica, depth, need: said.need, rows: said.rows, trace };
      const living = isSource ? null : askLiving(path[at] ?? "", ask);
      const early = await Promise.race([living, living && this.#pause(STAND_IN_AFTER_MS)]);
      if (early) return answerOf(early) ?? null;
      const part = await this.#part({ replica, depth, position, isOpen: isSource && token.open });
      if (part === null) return answerOf(await living);
      said = {
        need: Math.max(said.need, part.down[depth] ?? 0),
        clock: Math.max(said.clock, part.clock),
        rows: joined(part.rows, said.rows),
      };
      position = part.down[at - 1] ?? 0;
    }
    this.#core.count("stand_in_carry");
    return { kind: "carry", id: 0, outcome: "rows", ...said };
  }

  /** A position of another incarnation of the ancestor could not be waited for. */
  #isSameAncestor(replica: ReplicaNumber, depth: number): boolean {
    const { topology, replica: mine, depth: own } = this.#core;
    return topology.above(replica, depth) === (depth === own ? mine : topology.above(mine, depth));
  }

  /** What one incarnation had pending, from one of its owners. */
  async #part(wanted: Wanted): Promise<StoodIn | null> {
    const { wards } = this.#core.topology;
    const configuration = wards.of(wanted.replica);
    if (configuration === undefined) return null;
    return wanted.isOpen
      ? await this.#newestOf(wanted, configuration)
      : await this.#first(wards.owners(wanted.replica).map((owner) => this.#ask(owner, wanted)));
  }

  /** T1: the first that will do. */
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

  /** T2, T3 */
  async #newestOf(wanted: Wanted, configuration: Configuration): Promise<StoodIn | null> {
    const { number, owners, previous } = configuration;
    const all = [...new Set([...owners, ...previous])];
    const answers = new Map<SiteId, StoodIn>();
    await Promise.all(all.map(async (owner) => {
      const part = await this.#ask(owner, wanted);
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

  async #ask(owner: SiteId, { replica, depth, position }: Wanted): Promise<StoodIn | null> {
    const id = this.#nextId++;
    const ask: StandIn = { kind: "standIn", id, replica, depth, position };
    if (owner === this.#core.config.site) return this.#keeper.standIn(ask);
    this.#core.send(owner, ask);
    const answer = await this.#answer(id);
    return answer?.kind === "stoodIn" ? answer : null;
  }

  /** The newest configuration that the root has; null where it does not answer. */
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

  /** An answer to a question of this site's. */
  answered(answer: StoodIn | Newest): void {
    const { clock } = this.#core;
    const isAhead = answer.kind === "stoodIn" &&
      [answer, ...answer.rows].some((said) => clock.isTooFarAhead(said.clock));
    if (isAhead) return this.#core.count("clock_ahead");
    this.#asked.get(answer.id)?.(answer);
  }
}

const answerOf = (carry: Carry | null): Carry | null => carry?.outcome === "rows" ? carry : null;

/** Rows of two sites, the newer of each key. */
function joined(upper: readonly WireRow[], lower: readonly WireRow[]): readonly WireRow[] {
  const byKey = new Map<Key, WireRow>(lower.map((row) => [row.key, row]));
  for (const row of upper) {
    const below = byKey.get(row.key);
    byKey.set(row.key, below === undefined ? row : newerRow(row, below));
  }
  return [...byKey.values()];
}
