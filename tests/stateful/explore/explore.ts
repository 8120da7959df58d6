/**
 * All states of a few homes of one stateful session, over the production code of keepers and arbiter (real.ts).
 *
 * A home here is what the rules allow it to do, at any time, or never: nothing is in order but what the rules order.
 * Whatever a home could ever send may arrive at any time, again and again. What it was answered it may use at any later
 * time. So late, doubled and lost messages, crashes (a home that does nothing any more), and sites that come back are
 * all in it.
 *
 * The arbiter's disk may be replaced by an older copy of itself, or by a blank one (lost.ts).
 *
 * Checked in every state: what homes have released are parts of one history.
 */
import {
  type ArbiterAsk,
  commonUpTo,
  lastEpochOf,
  lastOf,
  type LogPiece,
  type LogState,
} from "../../../functions/sessions/log/asks.ts";
import type { Owner } from "../../../functions/sessions/home/mod.ts";
import { isHeld, lostSteps } from "./lost.ts";
import { arbiter, BLANK, keeper, LEAP, logOf, NAME } from "./real.ts";
import {
  type Add,
  type Broken,
  type Entry,
  type Exploration,
  type Home,
  type Promise1,
  replaced,
  siteName,
  type State,
} from "./state.ts";

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

const SEED = new Uint8Array(32);
const pieceOf = ({ epoch, n, by }: Entry): LogPiece => ({
  epoch,
  first: n,
  count: 1,
  wakeAtMs: 0,
  bytes: new Uint8Array([by]),
});
const isPrefix = (a: readonly Entry[], b: readonly Entry[]): boolean =>
  a.every((entry, i) => entry.epoch === b[i]?.epoch && entry.by === b[i]?.by);

/** Parts of states, and their numbers: most states have most of theirs from the one before. */
class Parts {
  readonly #numbers = new Map<string, number>();

  of(part: unknown): number {
    const text = JSON.stringify(part);
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.#numbers.size);
    return this.#numbers.size - 1;
  }

  key({ disks, wipes, arbiter, homes, lost }: State): string {
    return [...disks, "", ...wipes, arbiter, this.of(lost), ...homes.map((home) => this.of(home))].join(" ");
  }
}

/** Breadth first, so that what is found is the shortest. */
export async function explore(what: Exploration): Promise<Explored> {
  const explorer = new Explorer(what), parts = new Parts();
  let first: State = {
    disks: Array.from({ length: what.sites }, () => BLANK),
    wipes: Array.from({ length: what.sites }, () => 0),
    arbiter: BLANK,
    homes: [],
    lost: { copy: null, restores: 0, heard: null, words: null, fences: null, fenced: 0 },
  };
  for (const wanted of what.begin ?? []) {
    const step = (await explorer.steps(first)).find((one) => one.what === wanted);
    if (step === undefined) {
      const steps = (await explorer.steps(first)).map((one) => one.what).join(", ");
      throw new Error(`${wanted} can't be done there, but: ${steps}`);
    }
    first = step.state;
  }
  explorer.begun = true;
  const seen = new Map<string, { readonly from: string; readonly what: string }>();
  seen.set(parts.key(first), { from: "", what: "" });
  let queue: State[] = [first];
  const pathTo = (key: string): string[] => {
    const entry = seen.get(key);
    return entry === undefined || entry.what === "" ? [] : [...pathTo(entry.from), entry.what];
  };
  while (queue.length > 0) {
    const next: State[] = [];
    for (const state of queue) {
      const from = parts.key(state);
      if (splits(state)) return { states: seen.size, isWhole: false, violation: pathTo(from) };
      for (const step of await explorer.steps(state)) {
        const key = parts.key(step.state);
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
    if (this.#what.restoresMax !== undefined) await lostSteps(this.#what, state, add);
    for (let site = 0; site < this.#what.sites; site++) {
      if (state.homes.length < this.#what.homesMax) await this.#acquire(state, site, add);
      const lost = state.wipes.reduce((sum, wipes) => sum + wipes, 0);
      if (lost < this.#what.wipesMax) {
        const wipes = replaced(state.wipes, site, (state.wipes[site] ?? 0) + 1);
        add(`wipe ${site}`, { disks: replaced(state.disks, site, BLANK), wipes });
      }
    }
    for (const [at, home] of state.homes.entries()) {
      if (home.isDead || (at === 0 && this.begun && this.#what.isFirstDead === true)) continue;
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
    const { answer: reply, disk, position } = await this.#arbiter(state, site, ask);
    if (reply.kind !== "row" || reply.outcome !== "granted" || reply.row === null) return;
    const home: Home = {
      site,
      epoch: reply.row.epoch,
      config: reply.row.config,
      recorded: reply.row.owners,
      proposed: null,
      position,
      known: null,
      isDead: false,
      isOpen: false,
      promises: [],
      log: [],
      floor: 0,
      own: 0,
      acked: Array.from({ length: this.#what.sites }, () => -1),
      released: 0,
    };
    // Who opens it is not its home any more.
    const homes = this.#what.restoresMax === undefined
      ? state.homes
      : state.homes.map((one) => one.site === site ? { ...one, isDead: true } : one);
    add(`acquire ${site} e${home.epoch}`, { arbiter: disk, homes: [...homes, home] });
  }

  #arbiter(state: State, site: number, ask: ArbiterAsk) {
    const heard = this.#broken === "not asked" ? null : state.lost.heard;
    return arbiter(state.arbiter, siteName(site), ask, heard, this.#broken === "no leap" ? 1 : LEAP);
  }

  #positionOf({ position }: Home): number {
    return this.#broken === "no witness" ? 0 : position;
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
    // H9: owners that a home had recorded had it.
    const mayBeBlank = home.recorded.length === 0 || home.config === 0;
    const isEnough = known.length > 0 || (mayBeBlank && home.promises.length === home.recorded.length) ||
      this.#broken === "nobody asked";
    if (!isEnough) return;
    const best = known.toSorted((a, b) => furthest(a.state, b.state))[0];
    await this.#open(state, at, home, best?.log ?? [], put, add);
  }

  async #promise(state: State, site: number, home: Home, number: number) {
    const disk = state.disks[site] ?? BLANK, wipes = state.wipes[site] ?? 0;
    const before = await logOf(disk, wipes);
    if (isHeld(this.#what, state, site)) return null;
    const ask = { kind: "promise", name: NAME, disk: number, epoch: home.epoch } as const;
    const position = this.#positionOf(home);
    const { reply, disk: after } = await keeper(disk, wipes, siteName(home.site), [ask], position);
    if (reply.kind !== "promised") return null;
    const promise: Promise1 = {
      site,
      state: reply.log,
      log: before.pieces.map(({ epoch, first, bytes: [by = 0] }) => ({ epoch, n: first, by })),
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
    if (isHeld(this.#what, state, home.site)) return;
    const { reply, disk: after } = await keeper(
      disk,
      state.wipes[home.site] ?? 0,
      siteName(home.site),
      asks,
      this.#positionOf(home),
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
      const log = [...home.log, { epoch: home.epoch, n: home.log.length + 1, by: at }];
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
    if (isHeld(this.#what, state, site)) return;
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
      const position = this.#positionOf(home);
      const { reply, disk: after } = await keeper(made.disks[site] ?? BLANK, wipes, from, [ask], position);
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
      const position = this.#positionOf(home);
      const asks = [{ kind: "append", ...of, pieces } as const];
      const { reply, disk: after } = await keeper(disk, wipes, from, asks, position);
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
    at: number,
    home: Home,
    put: (next: Partial<Home>) => Partial<State>,
    add: Add,
  ): Promise<void> {
    const { epoch, config, proposed } = home;
    if (home.known !== null) return await this.#known(state, home, home.known, put, add);
    if (proposed !== null) {
      const ask = { kind: "configure", name: NAME, epoch, config, owners: proposed } as const;
      const { answer, disk, position } = await this.#arbiter(state, home.site, ask);
      if (answer.kind !== "row" || answer.outcome !== "granted" || answer.row === null) return;
      // Where the disk goes back to before that, it is as if it had not been.
      if (this.#isByItself) add(`configured e${epoch}`, { arbiter: disk });
      const learned = this.#isByItself
        ? { recorded: proposed, proposed: null, config: config + 1 }
        : { known: [] };
      add(`learned e${epoch}`, { arbiter: disk, ...put({ ...learned, position }) });
      return;
    }
    for (const owners of await this.#sets(state, home)) {
      const joinAt = Math.max(home.released, home.floor);
      const sites = owners.map(({ site }) => Number(site.slice(1)));
      const isReady = sites.every((site) => (home.acked[site] ?? -1) >= joinAt);
      if (!isReady && this.#broken !== "recorded first") continue;
      const isSame = owners.length === home.recorded.length &&
        owners.every(({ site, disk }) => home.recorded.some((one) => one.site === site && one.disk === disk));
      if (isSame) continue;
      const next = this.#broken === "own word" ? { recorded: owners, proposed: null } : { proposed: owners };
      add(`propose e${epoch} ${sites.slice(1).join(" ")}`.trimEnd(), put(next));
    }
    if (this.#what.restoresMax !== undefined) await this.#forget(state, at, home, add);
  }

  /** Where the arbiter's disk is never lost, who knows of what is of no matter. */
  get #isByItself(): boolean {
    return this.#what.restoresMax === undefined || this.#broken === "not known";
  }

  /** Owners that a home may have recorded, itself first. */
  async #sets(state: State, { site }: Home): Promise<Owner[][]> {
    const own = await this.#owner(state, site), sets: Owner[][] = [];
    const sizes = this.#what.disks ?? [2];
    if (sizes.includes(1)) sets.push([own]);
    for (let other = 0; other < this.#what.sites && sizes.includes(2); other++) {
      if (other !== site) sets.push([own, await this.#owner(state, other)]);
    }
    return sets;
  }

  async #owner(state: State, site: number): Promise<Owner> {
    const { id } = await logOf(state.disks[site] ?? BLANK, state.wipes[site] ?? 0);
    return { site: siteName(site), disk: id };
  }

  /** H11: its owners hear that they are on record; those before are needed until its own disk has. */
  async #known(
    state: State,
    home: Home,
    known: readonly number[],
    put: (next: Partial<Home>) => Partial<State>,
    add: Add,
  ): Promise<void> {
    const { epoch, config, proposed } = home;
    const owners = proposed ?? [];
    for (const { site: name, disk: number } of owners) {
      const site = Number(name.slice(1));
      if (known.includes(site) || isHeld(this.#what, state, site)) continue;
      const of = { name: NAME, disk: number, epoch };
      const ask = { kind: "recorded", ...of, config: config + 1, owners } as const;
      const disk = state.disks[site] ?? BLANK, wipes = state.wipes[site] ?? 0;
      const { reply, disk: after } = await keeper(
        disk,
        wipes,
        siteName(home.site),
        [ask],
        this.#positionOf(home),
      );
      if (reply.kind !== "held") continue;
      add(`known ${site} e${epoch}`, {
        ...put({ known: [...known, site].sort() }),
        disks: replaced(state.disks, site, after),
      });
    }
    if (!known.includes(home.site)) return;
    const next = { recorded: owners, proposed: null, known: null, config: config + 1 };
    add(`goes by e${epoch}`, put(next));
  }

  /** Who is no owner may be told to forget the log. */
  async #forget(state: State, _at: number, home: Home, add: Add): Promise<void> {
    if (home.recorded.length === 0) return;
    for (let site = 0; site < this.#what.sites; site++) {
      const disk = state.disks[site] ?? BLANK, wipes = state.wipes[site] ?? 0;
      const { id, state: log } = await logOf(disk, wipes);
      const isOwner = home.recorded.some((one) => one.site === siteName(site) && one.disk === id);
      if (isOwner || log === null || (home.acked[site] ?? -1) < 0 || isHeld(this.#what, state, site)) {
        continue;
      }
      const ask = { kind: "forget", name: NAME, disk: id, epoch: home.epoch, turn: 1 } as const;
      const from = siteName(home.site), position = this.#positionOf(home);
      const { reply, disk: after } = await keeper(disk, wipes, from, [ask], position);
      if (reply.kind !== "held") continue;
      add(`forget ${site} e${home.epoch}`, { disks: replaced(state.disks, site, after) });
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
