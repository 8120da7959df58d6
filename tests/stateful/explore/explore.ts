/**
 * All states of a few homes of one stateful session, over the production code of keepers and arbiter (real.ts).
 *
 * A home here is what the rules allow it to do, at any time, or never: nothing is in order but what the rules order.
 * Whatever a home could ever send may arrive at any time, again and again. What it was answered it may use at any later
 * time. So late, doubled and lost messages, crashes (a home that does nothing any more), and sites that come back are
 * all in it.
 *
 * Checked in every state: what homes have released are parts of one history.
 */
import {
  commonUpTo,
  lastEpochOf,
  lastOf,
  type LogPiece,
  type LogState,
} from "../../../functions/homes/asks.ts";
import type { Owner } from "../../../functions/homes/mod.ts";
import { arbiter, BLANK, type Disk, keeper, logOf, NAME } from "./real.ts";

/** What is explored, and which rule is left out. */
export interface Exploration {
  readonly sites: number;
  readonly homesMax: number;
  /** Entries that one home appends, at most. */
  readonly entriesMax: number;
  /** Disks that may be lost. */
  readonly wipesMax: number;
  readonly statesMax: number;
  /** The first of these steps, in this order, come before everything else. */
  readonly begin?: readonly string[];
  /** The home of the first epoch has crashed then. */
  readonly isFirstDead?: boolean;
  readonly broken?: Broken;
}

export type Broken =
  /** The answer is used, and the fence was never set. */
  | "no fence"
  /** A recovery opens though nobody answered. */
  | "nobody asked"
  /** Owners are on record before they have the log. */
  | "recorded first"
  /** A home releases what its own disk has. */
  | "own disk alone"
  /** While the arbiter is asked for other owners, those alone count. */
  | "not both"
  /** What another home had appended is not cut. */
  | "not cut"
  /** The arbiter's word is not asked for: owners are changed by the home alone. */
  | "own word";

interface Promise1 {
  readonly site: number;
  readonly state: LogState | null;
  readonly log: readonly Entry[];
}

interface Entry {
  readonly epoch: number;
  readonly n: number;
}

interface Home {
  readonly site: number;
  readonly epoch: number;
  readonly config: number;
  readonly recorded: readonly Owner[];
  readonly proposed: readonly Owner[] | null;
  readonly isOpen: boolean;
  readonly promises: readonly Promise1[];
  readonly log: readonly Entry[];
  /** How many entries it had when it opened, and how many it appended itself. */
  readonly floor: number;
  readonly own: number;
  /** By site: how far it was said to be held; −1: not joined. */
  readonly acked: readonly number[];
  readonly released: number;
}

interface State {
  readonly disks: readonly Disk[];
  /** Wipes so far, by site: they give a disk another number. */
  readonly wipes: readonly number[];
  readonly arbiter: Disk;
  readonly homes: readonly Home[];
}

interface Step {
  readonly what: string;
  readonly state: State;
}

export interface Explored {
  readonly states: number;
  /** Everything was seen. */
  readonly isWhole: boolean;
  /** The steps to a state in which the history splits. */
  readonly violation: readonly string[] | null;
}

const siteName = (site: number): string => `s${site}`;
const SEED = new Uint8Array(32);
const pieceOf = ({ epoch, n }: Entry): LogPiece => ({
  epoch,
  first: n,
  count: 1,
  wakeAtMs: 0,
  bytes: new Uint8Array([epoch]),
});
const isPrefix = (a: readonly Entry[], b: readonly Entry[]): boolean =>
  a.every((entry, i) => entry.epoch === b[i]?.epoch);
const replaced = <T>(list: readonly T[], at: number, value: T): readonly T[] =>
  list.map((one, i) => i === at ? value : one);

/** Breadth first, so that what is found is the shortest. */
export async function explore(what: Exploration): Promise<Explored> {
  const explorer = new Explorer(what);
  let first: State = {
    disks: Array.from({ length: what.sites }, () => BLANK),
    wipes: Array.from({ length: what.sites }, () => 0),
    arbiter: BLANK,
    homes: [],
  };
  for (const wanted of what.begin ?? []) {
    const step = (await explorer.steps(first)).find((one) => one.what === wanted);
    if (step === undefined) throw new Error(`${wanted} can't be done there`);
    first = step.state;
  }
  explorer.begun = true;
  const seen = new Map<string, { readonly from: string; readonly what: string }>([[
    JSON.stringify(first),
    { from: "", what: "" },
  ]]);
  let queue: State[] = [first];
  const pathTo = (key: string): string[] => {
    const entry = seen.get(key);
    return entry === undefined || entry.what === "" ? [] : [...pathTo(entry.from), entry.what];
  };
  while (queue.length > 0) {
    const next: State[] = [];
    for (const state of queue) {
      const from = JSON.stringify(state);
      if (splits(state)) return { states: seen.size, isWhole: false, violation: pathTo(from) };
      for (const step of await explorer.steps(state)) {
        const key = JSON.stringify(step.state);
        if (seen.has(key)) continue;
        seen.set(key, { from, what: step.what });
        next.push(step.state);
      }
      if (seen.size > what.statesMax) return { states: seen.size, isWhole: false, violation: null };
    }
    queue = next;
  }
  return { states: seen.size, isWhole: true, violation: null };
}

/** Two homes have released what is not of one history, or one has opened without what was released before. */
function splits({ homes }: State): boolean {
  const released = homes.map(({ log, released }) => log.slice(0, released));
  return released.some((a, i) =>
    released.some((b, j) => j < i && !isPrefix(a, b) && !isPrefix(b, a)) ||
    homes.some(({ epoch, isOpen, log }) => isOpen && epoch > (homes[i]?.epoch ?? 0) && !isPrefix(a, log))
  );
}

class Explorer {
  readonly #what: Exploration;
  readonly #broken: Broken | undefined;
  begun = false;

  constructor(what: Exploration) {
    this.#what = what;
    this.#broken = what.broken;
  }

  /** Everything that may happen next. */
  async steps(state: State): Promise<Step[]> {
    const steps: Step[] = [];
    const add = (what: string, next: Partial<State>) => steps.push({ what, state: { ...state, ...next } });
    for (let site = 0; site < this.#what.sites; site++) {
      if (state.homes.length < this.#what.homesMax) await this.#acquire(state, site, add);
      const lost = state.wipes.reduce((sum, wipes) => sum + wipes, 0);
      if (lost < this.#what.wipesMax) {
        const wipes = replaced(state.wipes, site, (state.wipes[site] ?? 0) + 1);
        add(`wipe ${site}`, { disks: replaced(state.disks, site, BLANK), wipes });
      }
    }
    for (const [at, home] of state.homes.entries()) {
      if (at === 0 && this.begun && this.#what.isFirstDead === true) continue;
      const put = (next: Partial<Home>) => ({ homes: replaced(state.homes, at, { ...home, ...next }) });
      if (home.isOpen) await this.#openSteps(state, at, home, put, add);
      else await this.#recoverySteps(state, at, home, put, add);
    }
    return steps;
  }

  async #acquire(
    state: State,
    site: number,
    add: (what: string, next: Partial<State>) => void,
  ): Promise<void> {
    const epoch = Math.max(0, ...state.homes.map((home) => home.epoch));
    const grant = state.homes.length + 1;
    const ask = { kind: "acquire", name: NAME, seen: epoch, grant, version: "" } as const;
    const { reply, disk } = await arbiter(state.arbiter, siteName(site), ask);
    if (reply.kind !== "row" || reply.outcome !== "granted" || reply.row === null) return;
    const home: Home = {
      site,
      epoch: reply.row.epoch,
      config: reply.row.config,
      recorded: reply.row.owners,
      proposed: null,
      isOpen: false,
      promises: [],
      log: [],
      floor: 0,
      own: 0,
      acked: Array.from({ length: this.#what.sites }, () => -1),
      released: 0,
    };
    add(`acquire ${site} e${home.epoch}`, { arbiter: disk, homes: [...state.homes, home] });
  }

  async #recoverySteps(
    state: State,
    at: number,
    home: Home,
    put: (next: Partial<Home>) => Partial<State>,
    add: (what: string, next: Partial<State>) => void,
  ): Promise<void> {
    for (const { site: name, disk: number } of home.recorded) {
      const site = Number(name.slice(1));
      if (home.promises.some((one) => one.site === site)) continue;
      const made = await this.#promise(state, site, home, number);
      if (made === null) continue;
      const promises = [...home.promises, made.promise].sort((a, b) => a.site - b.site);
      add(`promise ${site} e${home.epoch}`, { ...put({ promises }), disks: made.disks });
    }
    const known = home.promises.filter((one) => one.state !== null);
    const isEnough = known.length > 0 || home.promises.length === home.recorded.length ||
      this.#broken === "nobody asked";
    if (!isEnough) return;
    const best = known.toSorted((a, b) => furthest(a.state, b.state))[0];
    await this.#open(state, at, home, best?.log ?? [], put, add);
  }

  async #promise(state: State, site: number, home: Home, number: number) {
    const disk = state.disks[site] ?? BLANK, wipes = state.wipes[site] ?? 0;
    const before = await logOf(disk, wipes);
    const ask = { kind: "promise", name: NAME, disk: number, epoch: home.epoch } as const;
    const { reply, disk: after } = await keeper(disk, wipes, siteName(home.site), [ask]);
    if (reply.kind !== "promised") return null;
    const promise: Promise1 = {
      site,
      state: reply.log,
      log: before.pieces.map(({ epoch, first }) => ({ epoch, n: first })),
    };
    return { promise, disks: this.#broken === "no fence" ? state.disks : replaced(state.disks, site, after) };
  }

  /** The own disk's log is made the chosen one, in one step. */
  async #open(
    state: State,
    _at: number,
    home: Home,
    log: readonly Entry[],
    put: (next: Partial<Home>) => Partial<State>,
    add: (what: string, next: Partial<State>) => void,
  ): Promise<void> {
    const of = { name: NAME, disk: 0, epoch: home.epoch };
    const asks = [
      { kind: "install", turn: 0, ...of, seed: SEED, version: "", base: null, parts: [] } as const,
      ...log.length === 0 ? [] : [{ kind: "append", ...of, pieces: log.map(pieceOf) } as const],
    ];
    const disk = state.disks[home.site] ?? BLANK;
    const { reply, disk: after } = await keeper(
      disk,
      state.wipes[home.site] ?? 0,
      siteName(home.site),
      asks,
    );
    if (reply.kind !== "held") return;
    const acked = replaced(home.acked, home.site, log.length);
    add(`open e${home.epoch} with ${log.length}`, {
      ...put({ isOpen: true, log, floor: log.length, acked }),
      disks: replaced(state.disks, home.site, after),
    });
  }

  async #openSteps(
    state: State,
    at: number,
    home: Home,
    put: (next: Partial<Home>) => Partial<State>,
    add: (what: string, next: Partial<State>) => void,
  ): Promise<void> {
    if (!this.begun || home.own < this.#what.entriesMax) {
      const log = [...home.log, { epoch: home.epoch, n: home.log.length + 1 }];
      add(`step e${home.epoch}`, put({ log, own: home.own + 1 }));
    }
    for (let site = 0; site < this.#what.sites; site++) await this.#reach(state, home, site, put, add);
    const held = await this.#held(state, home);
    if (held > home.released) add(`release e${home.epoch} ${held}`, put({ released: held }));
    await this.#configure(state, at, home, put, add);
  }

  /** Joins an owner, or appends to one. */
  async #reach(
    state: State,
    home: Home,
    site: number,
    put: (next: Partial<Home>) => Partial<State>,
    add: (what: string, next: Partial<State>) => void,
  ): Promise<void> {
    const disk = state.disks[site] ?? BLANK, wipes = state.wipes[site] ?? 0;
    const from = siteName(home.site);
    const here = await logOf(disk, wipes);
    const isRecorded = home.recorded.some((one) => one.site === siteName(site) && one.disk === here.id);
    const of = { name: NAME, disk: here.id, epoch: home.epoch };
    const acked = home.acked[site] ?? -1;
    if (acked < 0) {
      const made = await this.#promise(state, site, home, isRecorded ? here.id : 0);
      if (made === null) return;
      const isUnknown = made.promise.state === null;
      if (isUnknown && isRecorded) return; // H6
      const keep = this.#keep(home, made.promise.state);
      const ask = keep === null
        ? { kind: "install", turn: 1, ...of, seed: SEED, version: "", base: null, parts: [] } as const
        : { kind: "align", turn: 1, ...of, keep } as const;
      const { reply, disk: after } = await keeper(made.disks[site] ?? BLANK, wipes, from, [ask]);
      if (reply.kind !== "held") return;
      const next = replaced(home.acked, site, reply.through);
      add(`join ${site} e${home.epoch}`, {
        ...put({ acked: next }),
        disks: replaced(state.disks, site, after),
      });
      return;
    }
    for (let upTo = acked + 1; upTo <= home.log.length; upTo++) {
      const pieces = home.log.slice(0, upTo).map(pieceOf);
      const { reply, disk: after } = await keeper(disk, wipes, from, [{ kind: "append", ...of, pieces }]);
      if (reply.kind !== "held") continue;
      const next = replaced(home.acked, site, Math.max(acked, reply.through));
      add(`append ${site} e${home.epoch} ${upTo}`, {
        ...put({ acked: next }),
        disks: replaced(state.disks, site, after),
      });
    }
  }

  #keep(home: Home, theirs: LogState | null): number | null {
    if (theirs === null) return null;
    if (this.#broken === "not cut") return lastOf(theirs);
    return commonUpTo(stateOf(home.log), theirs);
  }

  /** How far it may release. */
  async #held(state: State, home: Home): Promise<number> {
    if (this.#broken === "own disk alone") return home.acked[home.site] ?? 0;
    if (home.recorded.length === 0) return 0;
    const owners = this.#broken === "not both" && home.proposed !== null
      ? home.proposed
      : [...home.recorded, ...home.proposed ?? []];
    let held = home.acked[home.site] ?? 0;
    for (const { site, disk } of owners) {
      const index = Number(site.slice(1));
      // What was said of a disk that is lost was said of that one.
      const { id } = await logOf(state.disks[index] ?? BLANK, state.wipes[index] ?? 0);
      held = Math.min(held, id === disk ? home.acked[index] ?? -1 : -1);
    }
    return held;
  }

  async #configure(
    state: State,
    _at: number,
    home: Home,
    put: (next: Partial<Home>) => Partial<State>,
    add: (what: string, next: Partial<State>) => void,
  ): Promise<void> {
    const { epoch, config, proposed } = home;
    if (proposed !== null) {
      const ask = { kind: "configure", name: NAME, epoch, config, owners: proposed } as const;
      const { reply, disk } = await arbiter(state.arbiter, siteName(home.site), ask);
      if (reply.kind === "row" && reply.outcome === "granted" && reply.row !== null) {
        add(`configured e${epoch}`, { arbiter: disk });
        const learned = { recorded: proposed, proposed: null, config: config + 1 };
        add(`learned e${epoch}`, { arbiter: disk, ...put(learned) });
      }
      return;
    }
    for (let other = 0; other < this.#what.sites; other++) {
      if (other === home.site) continue;
      const joinAt = Math.max(home.released, home.floor);
      const isReady = [home.site, other].every((site) => (home.acked[site] ?? -1) >= joinAt);
      if (!isReady && this.#broken !== "recorded first") continue;
      const owners: Owner[] = [];
      for (const site of [home.site, other]) {
        const { id } = await logOf(state.disks[site] ?? BLANK, state.wipes[site] ?? 0);
        owners.push({ site: siteName(site), disk: id });
      }
      if (
        owners.every(({ site, disk }) => home.recorded.some((one) => one.site === site && one.disk === disk))
      ) {
        continue;
      }
      const next = this.#broken === "own word" ? { recorded: owners, proposed: null } : { proposed: owners };
      add(`propose e${epoch} ${other}`, put(next));
    }
  }
}

const stateOf = (log: readonly Entry[]): LogState => ({
  base: { at: 0, epoch: 0, state: { count: 0, check: 0 } },
  segments: log.map(({ epoch, n }) => ({ epoch, upTo: n })),
});

function furthest(a: LogState | null, b: LogState | null): number {
  if (a === null || b === null) return 0;
  return lastEpochOf(b) - lastEpochOf(a) || lastOf(b) - lastOf(a);
}
