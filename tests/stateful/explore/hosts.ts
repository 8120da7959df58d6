/**
 * All states of a few homes of one stateful session whose hosts hold the log, over the production code of what a host
 * takes and promises (HostLog) and of whom a home goes by (host_owners.ts). Disks, the arbiter's row and the way of
 * messages are modelled: functions/sessions/home has a search of its own (explore.ts).
 *
 * Nothing is in order but what the rules order: a home does any step at any time, or never; what it sent may arrive at
 * any later time; what it was answered it may use at any later time. So crashes, late messages of fenced homes and
 * openings in a row are all in it.
 *
 * Checked in every state: what hosts have taken and what was released to others are parts of one history, and a home
 * that has opened has all that an earlier one let out.
 */
import { disksOf, HostOwners, hostsOf, missing } from "../../../functions/sessions/log/host_owners.ts";
import type { Owner } from "../../../functions/sessions/home/mod.ts";
import { HostLog } from "../../../functions/sessions/sealed/host_log.ts";
import { SALT_BYTES, TAG_BYTES } from "../../../functions/sessions/sealed/limits.ts";
import type { Explored } from "./explore.ts";

export type BrokenHosts =
  /** A host answers first and promises later. */
  | "answer before fence"
  /** A host that is asked promises nothing. */
  | "no fence"
  /** One host that answers is enough. */
  | "one host asked"
  /** A disk that answers is enough. */
  | "no host asked"
  /** Hosts open a log that others were told of without them. */
  | "hosts alone"
  /** The shortest log is taken. */
  | "shortest"
  /** A host is told ahead of the disks before it is on record. */
  | "ahead unrecorded"
  /** A host is recorded before it has what was released, where hosts are enough. */
  | "recorded first"
  /** So it is before it has what one was told that has left the record. */
  | "recorded after another"
  /** The home counts a host no more that it has dropped, without the arbiter. */
  | "own word"
  /** While the arbiter is asked, the new configuration alone counts. */
  | "not both"
  /** A host leaves the record though the disks have not all that it was told. */
  | "left early"
  /** An opening draws its epoch itself. */
  | "no arbiter"
  /** A host takes records of fenced homes. */
  | "late records";

export interface HostExploration {
  readonly hosts: number;
  /** Disks on record: f + 1. With one, each later home has a disk of its own. */
  readonly disks: 1 | 2;
  readonly homesMax: number;
  /** Entries that one home appends. */
  readonly entriesMax: number;
  /** Times that one home asks the arbiter for other owners. */
  readonly changesMax: number;
  /** Whether the first disk may be lost. */
  readonly wipes: boolean;
  readonly statesMax: number;
  readonly begin?: readonly string[];
  readonly broken?: BrokenHosts;
}

/** An entry is the epoch that wrote it: two of one number and one epoch are the same. */
type Log = readonly number[];

interface Disk {
  readonly promised: number;
  readonly log: Log | null;
}

interface Host {
  readonly promised: number;
  readonly log: Log;
  /** The home whose record it took last. */
  readonly from: number;
}

interface Home {
  readonly epoch: number;
  readonly config: number;
  readonly own: number;
  readonly recorded: readonly Owner[];
  readonly proposed: readonly Owner[] | null;
  readonly isApplied: boolean;
  readonly isOpen: boolean;
  /** What an opening was answered: by disks, by hosts. */
  readonly diskAnswers: Readonly<Record<string, Log>>;
  readonly hostAnswers: Readonly<Record<string, Log>>;
  readonly log: Log;
  readonly appended: number;
  readonly changes: number;
  readonly acked: Readonly<Record<string, number>>;
  readonly sent: Readonly<Record<string, number>>;
  readonly taken: Readonly<Record<string, number>>;
  readonly has: Readonly<Record<string, number>>;
  readonly told: Readonly<Record<string, number>>;
  /** What those were told that have left the record. */
  readonly left: number;
  readonly released: number;
}

interface State {
  readonly row: { readonly epoch: number; readonly config: number; readonly owners: readonly Owner[] };
  readonly disks: readonly Disk[];
  readonly hosts: readonly Host[];
  readonly homes: readonly Home[];
  readonly isWiped: boolean;
}

type Add = (what: string, next: Partial<State>) => void;

const isPrefix = (a: Log, b: Log): boolean => a.every((entry, at) => entry === b[at]);
const put = <T>(list: readonly T[], at: number, value: T): readonly T[] =>
  list.map((one, i) => i === at ? value : one);
const diskOwner = (disk: number): Owner => ({ site: `d${disk}`, disk: 1 });
const sameOwners = (a: readonly Owner[], b: readonly Owner[]): boolean =>
  a.length === b.length && a.every(({ site }) => b.some((other) => other.site === site));
/** As functions/sessions/home has it: the later epoch, then the longer one. */
const further = (a: Log, b: Log): number => (b.at(-1) ?? 0) - (a.at(-1) ?? 0) || b.length - a.length;

/** A whole record of these entries: a model's, whose seal is nothing. */
const recordOf = (epoch: number, log: Log): Uint8Array =>
  Uint8Array.of(0, epoch, ...new Uint8Array(SALT_BYTES), ...log, ...new Uint8Array(TAG_BYTES));
const entriesOf = (record: Uint8Array): Log => [...record.subarray(2 + SALT_BYTES, -TAG_BYTES)];

function hostLog({ promised, log, from }: Host): HostLog {
  const host = new HostLog();
  if (from > 0) host.take(from, recordOf(from, log));
  host.promise(promised);
  return host;
}

function ownersOf({ recorded, proposed, has, told, left }: Home): HostOwners {
  // None of them is left behind: whom it does not count any more it has dropped.
  const owners = new HostOwners(recorded, new Map(hostsOf(recorded).map((host) => [host, 0])));
  owners.opened(left);
  for (const host of hostsOf(recorded)) if (!Object.hasOwn(has, host)) owners.drop(host);
  for (const [host, through] of Object.entries(has)) owners.has(host, through);
  for (const [host, through] of Object.entries(told)) owners.told(host, through);
  if (proposed !== null) owners.proposed(proposed);
  return owners;
}

/** Breadth first, so that what is found is the shortest. */
export function exploreHosts(what: HostExploration): Explored {
  const explorer = new HostExplorer(what);
  let first = explorer.first();
  for (const wanted of what.begin ?? []) {
    const step = explorer.steps(first).find((one) => one.what === wanted);
    if (step === undefined) {
      const steps = explorer.steps(first).map((one) => one.what).join(", ");
      throw new Error(`${wanted} can't be done there: ${steps}`);
    }
    first = step.state;
  }
  const seen = new Map<string, { readonly from: string; readonly what: string }>();
  seen.set(JSON.stringify(first), { from: "", what: "" });
  const pathTo = (key: string): string[] => {
    const entry = seen.get(key);
    return entry === undefined || entry.what === "" ? [] : [...pathTo(entry.from), entry.what];
  };
  for (let queue = [first]; queue.length > 0;) {
    const next: State[] = [];
    for (const state of queue) {
      const from = JSON.stringify(state);
      for (const step of explorer.steps(state)) {
        const key = JSON.stringify(step.state);
        if (seen.has(key)) continue;
        seen.set(key, { from, what: step.what });
        if (explorer.splits(step.state)) return { states: seen.size, isWhole: false, violation: pathTo(key) };
        next.push(step.state);
      }
      if (seen.size > what.statesMax) return { states: seen.size, isWhole: false, violation: null };
    }
    queue = next;
  }
  return { states: seen.size, isWhole: true, violation: null };
}

class HostExplorer {
  readonly #what: HostExploration;
  readonly #broken: BrokenHosts | undefined;

  constructor(what: HostExploration) {
    this.#what = what;
    this.#broken = what.broken;
  }

  /** The first home is open, its disks have nothing, no host is there yet. */
  first(): State {
    const { disks, hosts } = this.#what;
    const owners = Array.from({ length: disks }, (_, disk) => diskOwner(disk));
    const home = { ...this.#home(1, 1, owners, 0), isOpen: true };
    return {
      row: { epoch: 1, config: 1, owners },
      disks: Array.from({ length: 2 }, () => ({ promised: 1, log: [] })),
      hosts: Array.from({ length: hosts }, () => ({ promised: 0, log: [], from: 0 })),
      homes: [home],
      isWiped: false,
    };
  }

  #home(epoch: number, config: number, recorded: readonly Owner[], own: number): Home {
    const nothing = { diskAnswers: {}, hostAnswers: {}, acked: {}, sent: {}, taken: {}, has: {}, told: {} };
    const fresh = {
      proposed: null,
      isApplied: false,
      isOpen: false,
      log: [],
      appended: 0,
      changes: 0,
      left: 0,
      released: 0,
    };
    return { epoch, config, own, recorded, ...nothing, ...fresh };
  }

  /** What anybody knows is not of one history, or a home has opened without it. */
  splits({ homes, hosts }: State): boolean {
    const released = homes.map(({ epoch, log, released }) => ({ from: epoch, log: log.slice(0, released) }));
    const known = [...released, ...hosts];
    return known.some((a) =>
      known.some((b) => !isPrefix(a.log, b.log) && !isPrefix(b.log, a.log)) ||
      homes.some(({ epoch, isOpen, log }) => isOpen && epoch > a.from && !isPrefix(a.log, log))
    );
  }

  /** Everything that may happen next. */
  steps(state: State): { readonly what: string; readonly state: State }[] {
    const steps: { what: string; state: State }[] = [];
    const add: Add = (what, next) => steps.push({ what, state: { ...state, ...next } });
    if (this.#what.wipes && !state.isWiped) {
      add("wipe", { disks: put(state.disks, 0, { promised: 0, log: null }), isWiped: true });
    }
    if (state.homes.length < this.#what.homesMax) this.#acquire(state, add);
    for (const [at, home] of state.homes.entries()) {
      const become = (next: Partial<Home>) => ({ homes: put(state.homes, at, { ...home, ...next }) });
      if (home.isOpen) this.#open(state, home, become, add);
      else this.#opening(state, home, become, add);
    }
    return steps;
  }

  #acquire({ row, homes }: State, add: Add): void {
    const isOwnWord = this.#broken === "no arbiter";
    const epoch = isOwnWord ? (homes[0]?.epoch ?? 0) + 1 : row.epoch + 1;
    const config = row.config + 1;
    const own = this.#what.disks === 1 ? 1 : 0;
    const taken = isOwnWord ? row : { ...row, epoch, config };
    add(`acquire e${epoch}`, { row: taken, homes: [...homes, this.#home(epoch, config, row.owners, own)] });
  }

  // ── An opening ──

  #opening(state: State, home: Home, become: (next: Partial<Home>) => Partial<State>, add: Add): void {
    const { epoch, recorded, diskAnswers, hostAnswers } = home;
    for (const { site } of disksOf(recorded)) {
      const at = Number(site.slice(1)), disk = state.disks[at];
      if (disk?.log == null || disk.promised > epoch || diskAnswers[site] !== undefined) continue;
      const next = become({ diskAnswers: { ...diskAnswers, [site]: disk.log } });
      add(`e${epoch} asks ${site}`, { ...next, disks: put(state.disks, at, { ...disk, promised: epoch }) });
    }
    for (const id of hostsOf(recorded)) this.#ask(state, home, id, become, add);
    const answered = new Set(Object.keys(hostAnswers));
    const lacks = missing(recorded, { hosts: answered, hasDisk: Object.keys(diskAnswers).length > 0 });
    if (lacks.isDiskMissing && this.#broken !== "hosts alone") return;
    const logs = [...Object.values(diskAnswers), ...Object.values(hostAnswers)];
    const isEnough = lacks.hosts.length === 0 || this.#broken === "no host asked" ||
      (this.#broken === "one host asked" && answered.size > 0);
    if (!isEnough || logs.length === 0) return;
    const sorted = logs.toSorted(further);
    const log = (this.#broken === "shortest" ? sorted.at(-1) : sorted[0]) ?? [];
    const own = state.disks[home.own];
    if (own === undefined || own.promised > epoch) return;
    const has = Object.fromEntries(Object.entries(hostAnswers).map(([id, held]) => [id, held.length]));
    add(`e${epoch} opens with ${log.length}`, {
      ...become({ isOpen: true, log, has, told: has, acked: { [`d${home.own}`]: log.length } }),
      disks: put(state.disks, home.own, { promised: epoch, log }),
    });
  }

  #ask(
    state: State,
    home: Home,
    id: string,
    become: (next: Partial<Home>) => Partial<State>,
    add: Add,
  ): void {
    const at = Number(id.slice(1)), host = state.hosts[at];
    const { epoch, hostAnswers } = home;
    if (host === undefined) return;
    const log = hostLog(host);
    const records = log.promise(epoch);
    if (records === null) return;
    const fenced = put(state.hosts, at, { ...host, promised: log.promised });
    if (hostAnswers[id] !== undefined) {
      if (this.#broken === "answer before fence") add(`e${epoch} fences ${id}`, { hosts: fenced });
      return;
    }
    const answer = become({
      hostAnswers: { ...hostAnswers, [id]: entriesOf(records[0] ?? recordOf(0, [])) },
    });
    const isUnfenced = this.#broken === "no fence" || this.#broken === "answer before fence";
    add(`e${epoch} asks ${id}`, isUnfenced ? answer : { ...answer, hosts: fenced });
  }

  // ── A home ──

  #open(state: State, home: Home, become: (next: Partial<Home>) => Partial<State>, add: Add): void {
    const { epoch, log, appended } = home;
    if (appended < this.#what.entriesMax) {
      add(`e${epoch} steps`, become({ log: [...log, epoch], appended: appended + 1 }));
    }
    this.#disks(state, home, become, add);
    for (let at = 0; at < state.hosts.length; at++) this.#host(state, home, at, become, add);
    const released = this.#held(home);
    if (released > home.released) add(`e${epoch} releases ${released}`, become({ released }));
    this.#configure(state, home, become, add);
  }

  #disks(state: State, home: Home, become: (next: Partial<Home>) => Partial<State>, add: Add): void {
    for (const [at, disk] of state.disks.entries()) {
      const site = `d${at}`, { epoch, log, acked } = home;
      const isMine = at === home.own || disksOf(home.recorded).some((owner) => owner.site === site);
      if (!isMine || disk.log === null || disk.promised > epoch || acked[site] === log.length) continue;
      add(`e${epoch} writes ${log.length} to ${site}`, {
        ...become({ acked: { ...acked, [site]: log.length } }),
        disks: put(state.disks, at, { promised: epoch, log }),
      });
    }
  }

  #host(
    state: State,
    home: Home,
    at: number,
    become: (next: Partial<Home>) => Partial<State>,
    add: Add,
  ): void {
    const id = `h${at}`, { epoch, log, sent, taken, has } = home;
    const host = state.hosts[at];
    if (host === undefined) return;
    const owners = ownersOf(home);
    const may = owners.isAhead(id) || this.#broken === "ahead unrecorded" ? log.length : home.released;
    const isNew = sent[id] === undefined;
    if (isNew || may > (sent[id] ?? 0)) {
      const told = owners.isAhead(id) ? { ...home.told, [id]: may } : home.told;
      add(`e${epoch} sends ${id} ${may}`, become({ sent: { ...sent, [id]: may }, told }));
    }
    if (sent[id] !== undefined && sent[id] !== taken[id]) {
      const record = recordOf(epoch, log.slice(0, sent[id]));
      const held = hostLog(host);
      const isTaken = held.take(epoch, record) === "held" || this.#broken === "late records";
      if (isTaken) {
        const next = { promised: Math.max(held.promised, epoch), log: entriesOf(record), from: epoch };
        // A further record never makes a log shorter: the home knows what its host holds.
        if (next.log.length >= host.log.length || epoch > host.from) {
          const after = become({ taken: { ...taken, [id]: sent[id] } });
          add(`e${epoch} reaches ${id} with ${sent[id]}`, { ...after, hosts: put(state.hosts, at, next) });
        }
      }
    }
    if (taken[id] !== undefined && (has[id] ?? -1) < taken[id]) {
      add(`e${epoch} hears ${id} ${taken[id]}`, become({ has: { ...has, [id]: taken[id] } }));
    }
    if (has[id] !== undefined) {
      const { [id]: _, ...rest } = has, { [id]: __, ...others } = taken;
      add(`e${epoch} drops ${id}`, become({ has: rest, taken: others }));
    }
  }

  /** Up to where others may be told. */
  #held(home: Home): number {
    const { recorded, proposed, acked, own } = home;
    const isNewOnly = this.#broken === "not both" && proposed !== null;
    const owners = isNewOnly ? proposed : [...recorded, ...proposed ?? []];
    const disks = this.#kept({ acked }, [...disksOf(owners), diskOwner(own)]);
    const hosts = isNewOnly
      ? new HostOwners(proposed, new Map(Object.entries(home.has))).held
      : this.#broken === "own word"
      ? Math.min(...Object.values(home.has))
      : ownersOf(home).held;
    return Math.min(disks, hosts);
  }

  #kept({ acked }: Pick<Home, "acked">, disks: readonly Owner[]): number {
    return Math.min(...disks.map(({ site }) => acked[site] ?? 0));
  }

  #configure(
    state: State,
    home: Home,
    become: (next: Partial<Home>) => Partial<State>,
    add: Add,
  ): void {
    const { epoch, config, recorded, proposed, isApplied, released, changes } = home;
    if (proposed !== null && isApplied) {
      const told = Object.fromEntries(hostsOf(proposed).map((id) => [id, home.told[id] ?? 0]));
      const gone = hostsOf(recorded).filter((id) => !Object.hasOwn(told, id)).map((id) => home.told[id] ?? 0);
      const left = this.#broken === "recorded after another" ? 0 : Math.max(home.left, ...gone);
      const learned = {
        recorded: proposed,
        config: config + 1,
        proposed: null,
        isApplied: false,
        told,
        left,
      };
      add(`e${epoch} learns`, become(learned));
      return;
    }
    const { row } = state;
    if (proposed !== null) {
      if (row.epoch !== epoch || row.config !== config) return;
      add(`e${epoch} is granted`, {
        ...become({ isApplied: true }),
        row: { epoch, config: config + 1, owners: proposed },
      });
      return;
    }
    const single = this.#what.disks === 1;
    const disks = single ? [diskOwner(home.own)] : disksOf(recorded);
    const kept = this.#broken === "left early" ? Infinity : this.#kept(home, disks);
    const wanted = { released: this.#broken === "recorded first" ? 0 : released, kept, disks: disks.length };
    const hosts = ownersOf(home).wanted(wanted);
    if (hosts === null) return;
    const owners = [...disks, ...hosts];
    if (sameOwners(owners, recorded) || changes >= this.#what.changesMax) return;
    add(
      `e${epoch} proposes ${owners.map(({ site }) => site).join(" ")}`,
      become({ proposed: owners, changes: changes + 1 }),
    );
  }
}
