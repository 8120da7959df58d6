/**
 * Adoption of a site that comes from under another parent, with its disk: this site, its new parent, takes it in.
 *
 * Life: hello with `moved` → this site has what the root had told the child (F1) → it has what only the old parent, or
 * its other children, have (F2) → the child's old incarnation ends, with its next (enrolment.ts N1) → welcome → the
 * child pushes all that the root is not known to have (uplink.ts) → its subtree has → settled (F3).
 *
 * F1  The child is answered when the root's journal has arrived here as far as it had there: what the child serves from
 *     here on is never older than what it served before. A number goes down behind the feed (numbers.ts N2), so a child
 *     that hears a new one is answered no sooner anyway, as long as each hello over a new link asks for one
 *     (downlinks.ts): no schedule needs the wait here by itself.
 * F2  Rows that the child got from its old parent may have causes that are neither at the child nor at the root. All
 *     rows that are not known at the root are therefore asked of the old parent or, where that one is given up, of the
 *     child and of every other child that it had; they are installed here at once, before the child is answered
 *     (PROTOCOL C4). A site that is given up, by an operator or by its removal, is not waited for. A site has only what
 *     it covers, and what it was fed may have causes at those above it: so after it each inner site above it is asked,
 *     bottom-up, as far as the lowest common ancestor, whose feed may be behind here (gather_sources.ts, PROTOCOL C2).
 *     Rows that only a parent had that is given up are lost: sessions that may have seen them are told (topology.ts).
 *     The child may come to depend on more while this site's answer is on its way, and says so in another hello
 *     (moving.ts M1).
 * F3  Until the child's whole subtree has pushed here what it had, its old incarnation is unsettled: stable clocks say
 *     nothing of its entries past its end, neither to a session that comes from there (handoff.ts H3) nor to the
 *     watermark, which does not pass that end. The end is a clock up to which the root has it all.
 */
import { newestClock } from "../core/clock_guard.ts";
import type { Core } from "../core/core.ts";
import type { Child } from "../core/child.ts";
import { GATHER_RETRY_MS, MESSAGE_BYTES_TARGET, NOTE_EVERY_MS } from "../model/limits.ts";
import {
  type ChildHello,
  chunks,
  type Gather,
  type Gathered,
  type MovedSite,
  type WireRow,
} from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import { firstSources, type GatherSource, isGivenUp, sourcesAbove } from "./gather_sources.ts";
import { isParentPartial } from "./moving.ts";
import { firstId } from "../model/question.ts";
import type { Position, ReplicaNumber } from "../model/row.ts";
import { Stager } from "../core/stager.ts";
import { decodeJson, encodeJson, type Ended, endedKey } from "../members/topology.ts";

interface Host {
  /** Resolves when everything applied so far is on disk. */
  durable(): Promise<void>;
  /** Called when children whose hello waits may be answered now. */
  ready(): void;
}

/** An answer that comes in several messages. */
interface Arriving {
  readonly rows: Stager;
  /** True where one of the messages was refused, and so all of them. */
  isRefused: boolean;
}

interface Answer {
  readonly rows: readonly WireRow[];
  readonly need: Position;
  /** Site that stood above the one that answered. */
  readonly above: GatherSource;
}

/** Rows and answers that have come for one hello. */
interface Gathering {
  readonly hello: ChildHello;
  /** Number of the round that is under way. */
  id: number;
  /** True where the old parent was given up when the gathering began. */
  isGivenUp: boolean;
  /** Sites that stood above those of the round before; null in the first round. */
  above: readonly GatherSource[] | null;
  readonly answers: Map<SiteId, Answer>;
  readonly arriving: Map<SiteId, Arriving>;
  /** Time since which the child waits, over all its hellos. */
  readonly sinceMs: number;
  /** Sites of the rounds that are over. */
  readonly asked: Set<SiteId>;
  readonly rows: WireRow[];
  need: Position;
  /** True where there is nobody left to ask. */
  isComplete: boolean;
  waitsFor: readonly SiteId[];
  notedAtMs: number;
  done: boolean;
}

export class Adoptions {
  readonly #core: Core;
  readonly #host: Host;
  readonly #gatherings = new Map<Child, Gathering>();
  /** Questions that are being answered: one that comes again meanwhile is not answered twice. */
  readonly #answering = new Set<string>();
  #nextId: number;
  /** True while a hello waits until this site, which moved itself, is as far as it was. */
  #isHeld = false;

  constructor(core: Core, host: Host) {
    this.#core = core;
    this.#host = host;
    this.#nextId = firstId(core.ports.random);
    core.onAdvance(() => {
      if (this.#isHeld && !this.#isBehind) {
        this.#isHeld = false;
        this.#host.ready();
      }
      for (const [child, gathering] of this.#gatherings) this.#step(child, gathering);
    });
  }

  /** Children that are not answered yet, and the sites that each of them waits for. */
  get waiting(): { readonly child: SiteId; readonly waitsFor: readonly SiteId[]; readonly forMs: number }[] {
    const nowMs = this.#core.steady.nowMs();
    return [...this.#gatherings].flatMap(([child, { done, waitsFor, sinceMs }]) =>
      done || !child.connected ? [] : [{ child: child.id, waitsFor, forMs: nowMs - sinceMs }]
    );
  }

  get #isBehind(): boolean {
    const core = this.#core;
    return !core.isRoot && (core.down[0] ?? 0) < core.rootFloor;
  }

  /** Reports whether a hello may be answered; where not, the host hears when it may. */
  isReady(child: Child, hello: ChildHello): boolean {
    const { moved } = hello;
    if (this.#isBehind) {
      this.#isHeld = true;
      return false;
    }
    if (moved === undefined) {
      this.#gatherings.delete(child);
      return true;
    }
    let gathering = this.#gatherings.get(child);
    if (gathering?.hello !== hello) {
      gathering = {
        hello,
        id: this.#nextId++,
        isGivenUp: this.isGivenUp(hello),
        above: null,
        answers: new Map(),
        arriving: new Map(),
        sinceMs: gathering?.done === false ? gathering.sinceMs : this.#core.steady.nowMs(),
        asked: new Set(),
        rows: [],
        need: moved.floor,
        isComplete: false,
        waitsFor: [],
        notedAtMs: -Infinity,
        done: false,
      };
      this.#gatherings.set(child, gathering);
      if (!this.#isEnough(gathering, moved)) this.#ask(child, gathering);
    }
    gathering.done ||= this.#isEnough(gathering, moved);
    return gathering.done;
  }

  forget(child: Child): void {
    this.#gatherings.delete(child);
  }

  /**
   * Reports whether this site has come as far as F1 asks, and has nothing to ask for: a site that lost its disk asks
   * its children anyway.
   */
  #isEnough(gathering: Gathering, moved: MovedSite): boolean {
    const core = this.#core;
    const isThere = core.isRoot || (core.down[0] ?? 0) >= moved.floor;
    return isThere && (gathering.done || moved.from === "" || core.resyncing);
  }

  /** Reports whether rows that only the child's old parent had are given up. */
  isGivenUp(hello: ChildHello): boolean {
    return isGivenUp(this.#core, hello);
  }

  #ask(child: Child, gathering: Gathering): void {
    const core = this.#core;
    // A child that has left, or lost its link, says another hello when it comes again.
    const isOver = this.#gatherings.get(child) !== gathering || gathering.done || !child.connected;
    if (isOver || core.closed) return;
    const isGivenUp = this.isGivenUp(gathering.hello);
    if (gathering.isGivenUp !== isGivenUp) {
      gathering.isGivenUp = isGivenUp;
      this.#next(gathering, null);
      gathering.asked.clear();
      gathering.isComplete = false;
    }
    this.#round(child, gathering);
    this.#note(child, gathering);
    this.#step(child, gathering);
    core.ports.clock.after(GATHER_RETRY_MS, () => this.#ask(child, gathering));
  }

  /** Asks the sites of the round that have not answered; where all have, the sites above them. */
  #round(child: Child, gathering: Gathering): void {
    const core = this.#core, { hello, answers, asked } = gathering;
    if (hello.moved === undefined || hello.moved.from === "" || core.resyncing) return;
    while (!gathering.isComplete) {
      const { above } = gathering;
      const sources = above === null ? firstSources(core, child.id, hello) : sourcesAbove(core, above, hello);
      // Where this site itself is the one to ask, it has all rows. A site that is on its way names the one that it has
      // left.
      const round = sources.filter(({ site }) => site !== core.config.site && !asked.has(site));
      const lacking = round.filter(({ site }) => !answers.has(site));
      gathering.waitsFor = lacking.map(({ site }) => site);
      for (const { site, replica } of lacking) {
        // Parts of an answer that have come stay: the rest may be on its way over a slow link.
        if (!gathering.arriving.has(site)) gathering.arriving.set(site, newAnswer());
        core.send(site, { kind: "gather", id: gathering.id, replica });
      }
      if (lacking.length > 0) return; // gather_sources.ts S1
      gathering.isComplete = round.length === 0;
      this.#close(gathering, round);
    }
  }

  /** Ends a round in which all have answered. */
  #close(gathering: Gathering, round: readonly GatherSource[]): void {
    const above: GatherSource[] = [];
    for (const { site } of round) {
      const answer = gathering.answers.get(site);
      if (answer === undefined) continue;
      for (const row of answer.rows) gathering.rows.push(row);
      gathering.need = Math.max(gathering.need, answer.need);
      gathering.asked.add(site);
      if (!this.#core.path.includes(site)) above.push(answer.above); // gather_sources.ts S2
    }
    this.#next(gathering, above);
  }

  #next(gathering: Gathering, above: readonly GatherSource[] | null): void {
    gathering.above = above;
    gathering.id = this.#nextId++;
    gathering.answers.clear();
    gathering.arriving.clear();
  }

  /** Notes, once a minute, which sites are waited for, so that an operator knows whom to give up. */
  #note(child: Child, gathering: Gathering): void {
    const nowMs = this.#core.steady.nowMs();
    const isFirst = gathering.notedAtMs === -Infinity;
    if (nowMs - gathering.notedAtMs < NOTE_EVERY_MS || gathering.waitsFor.length === 0) return;
    gathering.notedAtMs = nowMs;
    if (!isFirst) {
      this.#core.ports.note("adoption_waits", { child: child.id, waitsFor: gathering.waitsFor });
    }
  }

  /** Looks whether all has come. */
  #step(child: Child, gathering: Gathering): void {
    const core = this.#core, { hello } = gathering;
    if (gathering.done || this.#gatherings.get(child) !== gathering || hello.moved === undefined) return;
    if (this.#isEnough(gathering, hello.moved)) {
      gathering.done = true;
      return this.#host.ready();
    }
    if (!gathering.isComplete || !core.isRoot && (core.down[0] ?? 0) < gathering.need) return; // F2
    gathering.done = true;
    // The rows may be megabytes, and the child stays for as long as it likes.
    this.#install(gathering.rows.splice(0)).then(() => this.#host.ready()).catch((error) => {
      if (!core.closed) core.ports.fatal(error);
    });
  }

  /** Installs gathered rows as this site's own pending rows, all in one step (F2, I1). */
  #install(gathered: readonly WireRow[]): Promise<void> {
    const core = this.#core;
    core.count("gathered_rows", gathered.length);
    return core.rows.lock.run(async () => {
      const rows = gathered.filter((row) => !core.isCollectable(row));
      const keys = [...new Set(rows.map((row) => row.key))];
      const found = await core.rows.lookup(keys);
      const old = new Map(keys.map((key, i) => [key, found[i]]));
      for (const row of rows) core.rows.apply(old.get(row.key), { ...row, known: core.depth });
      core.wake();
    });
  }

  /** Takes the answer of a site that was asked. */
  answered(from: SiteId, gathered: Gathered): void {
    const core = this.#core;
    for (const [child, gathering] of this.#gatherings) {
      if (gathering.id !== gathered.id || gathering.done || gathering.answers.has(from)) continue;
      const arriving = gathering.arriving.get(from);
      if (arriving === undefined) return;
      arriving.isRefused ||= !core.clock.admits(newestClock(gathered));
      const rows = arriving.rows.add(gathered.rows, gathered.more);
      if (rows === null) return;
      if (arriving.isRefused) {
        gathering.arriving.set(from, newAnswer());
        return core.refused("clock_ahead", from);
      }
      core.clock.merge(gathered.clock);
      const above = { site: gathered.parent, replica: gathered.parentReplica };
      gathering.answers.set(from, { rows, need: gathered.need, above });
      gathering.waitsFor = gathering.waitsFor.filter((site) => site !== from);
      if (gathering.waitsFor.length === 0) this.#round(child, gathering);
      return this.#step(child, gathering);
    }
  }

  /** Answers another site: all rows here that are not known at the root, as of one head. */
  async asked(from: SiteId, { id, replica }: Gather): Promise<void> {
    const core = this.#core;
    const isWhole = !core.resyncing && core.topology.succession.heir(replica) === core.replica;
    const question = `${id} ${from}`;
    if ((replica !== 0 && !isWhole) || this.#answering.has(question)) return;
    this.#answering.add(question);
    try {
      await this.#answer(from, id);
    } finally {
      this.#answering.delete(question);
    }
  }

  async #answer(from: SiteId, id: number): Promise<void> {
    const core = this.#core;
    const { rows, said } = await core.rows.lock.run(async () => {
      const floor = core.reach[0]?.top ?? 0;
      const keys = core.isRoot ? [] : [...core.pending.after(floor, 1)].map((entry) => entry.key);
      const rows = (await core.rows.lookup(keys)).filter((row) => row !== undefined);
      const need = core.isRoot ? core.rows.head : Math.max(core.down[0] ?? 0, core.rootFloor);
      const parent = core.path.at(-1) ?? "";
      const isNamed = !core.isRoot && !(core.resyncing && isParentPartial(core)); // gather_sources.ts S4
      return { rows, said: { need, parent, parentReplica: isNamed ? core.parentReplica : 0 } };
    });
    if (core.damage.isWaiting) return; // it is asked again (damage.ts G2)
    await this.#host.durable();
    for (const chunk of chunks(rows, MESSAGE_BYTES_TARGET)) {
      await core.send(from, { kind: "gathered", id, ...said, clock: core.clock.last, ...chunk });
    }
  }

  /** Settles the old incarnations of a child after a push of it; under the lock (F3). */
  async settle(child: Child): Promise<void> {
    const core = this.#core, { succession } = core.topology;
    const open = succession.unsettledBefore(child.replica);
    if (open.length === 0) return;
    const words = open.flatMap((number) => succession.keptOf(number)?.clock ?? []);
    const last = Math.max(0, ...words);
    if (last === 0 || child.stable < last) return;
    for (const number of open) {
      const next = succession.nextOf(number);
      if (next === undefined) continue;
      const key = endedKey(number);
      const [old] = await core.rows.lookup([key]);
      // Rows that were lost with the old parent stay lost.
      const { gap } = (decodeJson(old?.value ?? null) ?? {}) as Partial<Ended>;
      const ended: Ended = { stable: last, next, settled: true, ...gap === undefined ? {} : { gap } };
      core.rows.apply(old, core.own(key, encodeJson(ended)));
    }
    core.count("settled", open.length);
  }
}

const newAnswer = (): Arriving => ({ rows: new Stager(), isRefused: false });

/**
 * Reports whether every child that a site had has pushed to this incarnation of it, or has brought what it had to
 * another parent, and so above. The child's own row says that: what its subtree has beyond it was never here, and may
 * itself wait for this site.
 */
export function haveAllPushed(core: Core, children: ReadonlyMap<SiteId, Child>): boolean {
  const { topology, config } = core, { succession } = topology;
  const isOnItsWay = (number: ReplicaNumber) => {
    const word = succession.keptOf(number);
    return word === undefined || (core.down[0] ?? 0) < word.floor;
  };
  return !topology.unsettledBelow(config.site).some(isOnItsWay) &&
    topology.joinedBelow(config.site).every((id) => children.get(id)?.hasPushed === true);
}
