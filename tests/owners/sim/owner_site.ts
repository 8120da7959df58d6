/**
 * One site that holds tuples, in virtual time: a disk, and one process after another over it, each with a detector,
 * the production code of tuples, and a user that acts on what is `mine` after a while.
 */
import { decodeMessage, encodeMessage } from "../../../store/wire/message.ts";
import type { OwnersSettings } from "../../../store/presence/choose.ts";
import { unpackKey } from "../../../store/model/key.ts";
import { decodeState, type TupleState } from "../../../store/owners/tuple.ts";
import { Detector } from "../../../store/presence/detector.ts";
import { type Fellows, Tuples, type TuplesUser } from "../../../store/owners/tuples.ts";
import type { SiteId, Storage } from "../../../store/model/ports.ts";
import { SimDisk } from "../../sim/disk.ts";
import type { Endpoint, SimNetwork } from "../../sim/network.ts";
import type { Draws } from "../../sim/random.ts";
import { ProcessClock, type World } from "../../sim/world.ts";
import { fellowsOf } from "./fellows.ts";

/** What happens at a site, for the history. */
export type SiteEvent =
  | { readonly kind: "up"; readonly site: SiteId }
  /** `held`: tuples that go with it, with how many other owners each wants. */
  | { readonly kind: "down"; readonly site: SiteId; readonly held: ReadonlyMap<string, number> }
  /** `held`: tuples that the disk may have had. */
  | { readonly kind: "wiped"; readonly site: SiteId; readonly held: readonly string[] }
  /** `suspects`: for its silence, and not since it said that it stops; it is `dead` after more of that. */
  | { readonly kind: "suspects" | "dead" | "trusts"; readonly site: SiteId; readonly other: SiteId }
  /** A process has the first packet of another one. */
  | { readonly kind: "hears"; readonly site: SiteId; readonly other: SiteId }
  | { readonly kind: "chose"; readonly site: SiteId; readonly suspects: readonly SiteId[] }
  | { readonly kind: "lets go" | "acted" | "removed"; readonly site: SiteId; readonly id: string }
  /** It is told to be a site's, with so many tries on its mark. */
  | {
    readonly kind: "acts";
    readonly site: SiteId;
    readonly id: string;
    readonly how: string;
    readonly tries: number;
  }
  /** So many tries are on the disk of who acts on it. */
  | { readonly kind: "tried"; readonly site: SiteId; readonly id: string; readonly tries: number }
  /** A site stops and will be back by then; these it is responsible for, with the others that have them by its disk. */
  | {
    readonly kind: "leaves";
    readonly site: SiteId;
    readonly untilMs: number;
    readonly own: ReadonlyMap<string, readonly SiteId[]>;
  }
  | { readonly kind: "fatal"; readonly site: SiteId; readonly text: string };

/** How a process is made wrong on purpose. */
export interface Wrongs {
  readonly storage?: (storage: Storage, world: World) => Storage;
  readonly fellows?: (fellows: Fellows) => Fellows;
  /** What is added to the wall clock that tuples see. */
  readonly aheadMs?: number;
  /** And to the one that its detector sees. */
  readonly detectorAheadMs?: number;
  /** It adopts as if it had not said that it stops, up to its last step. */
  readonly adoptsToTheEnd?: boolean;
  /** A packet on its way in; null: it is lost. */
  readonly receives?: (site: SiteId, from: SiteId, packet: Uint8Array) => Uint8Array | null;
  /** A packet on its way out; `answer` hands this process one as if it came from there. */
  readonly sends?: (
    site: SiteId,
    to: SiteId,
    packet: Uint8Array,
    answer: (packet: Uint8Array) => void,
  ) => Uint8Array;
}

export interface OwnerSiteOptions {
  readonly id: SiteId;
  readonly sites: readonly SiteId[];
  readonly settings: OwnersSettings;
  readonly areas: ReadonlyMap<SiteId, string | null>;
  readonly world: World;
  readonly network: SimNetwork;
  readonly draws: Draws;
  readonly commitMs: readonly [number, number];
  /** How much faster than time its clock runs. */
  readonly drift: number;
  /** Least and greatest time from `mine` to the act, and from the act to `remove`. */
  readonly thinkMs: readonly [number, number];
  /** At most so many times it marks a tuple before it acts. */
  readonly tries: number;
  /** Tuples that it has room for. */
  readonly tuplesMax: number;
  /** Until when sites said that they are away. */
  readonly away: ReadonlyMap<SiteId, number>;
  readonly wrongs: Wrongs;
  readonly record: (event: SiteEvent) => void;
}

interface Process extends Endpoint {
  readonly tuples: Tuples;
  readonly detector: Detector;
  readonly clock: ProcessClock;
  alive: boolean;
}

const BEAT = 0, PACKET = 1;

export class OwnerSite {
  readonly id: SiteId;
  readonly #options: OwnerSiteOptions;
  #disk: SimDisk;
  #process: Process | null = null;
  #starts = 0;
  /** Ids that were acted on by the process that runs. */
  readonly actedNow = new Set<string>();
  /** And those of which its disk knows. */
  readonly removedNow = new Set<string>();
  /** What it does not act on until it is told to. */
  isIdle = false;
  /** It stops: it begins nothing. */
  #isLeaving = false;

  constructor(options: OwnerSiteOptions) {
    this.id = options.id;
    this.#options = options;
    const { world } = options;
    const draws = options.draws.fork("disk");
    this.#disk = new SimDisk({
      clock: {
        nowMs: () => world.nowMs,
        steadyMs: () => world.nowMs,
        after: (ms, run) => world.after(ms, run),
        turn: () => world.sleep(0),
      },
      random: () => draws.unit(),
      commitDelayMs: options.commitMs,
      earlyChance: 0,
    });
  }

  get tuples(): Tuples | null {
    return this.#process?.tuples ?? null;
  }

  get isUp(): boolean {
    return this.#process !== null;
  }

  /** It is up, and has not begun to stop as planned. */
  get isStaying(): boolean {
    return this.isUp && !this.#isLeaving;
  }

  get disk(): SimDisk {
    return this.#disk;
  }

  /** Tuples that its disk has, and does not know to be gone, each as it is there. */
  get heldOnDisk(): ReadonlyMap<string, TupleState> {
    const states = new Map<string, TupleState>();
    for (const { key, value } of this.#disk.held()) {
      const [space, id] = unpackKey(key);
      if (value === null || typeof id !== "string" || space === "p") continue;
      // What is amended is newer than the rest (store/owners/tuple.ts).
      if (space === "m" || !states.has(id)) states.set(id, decodeState(value));
    }
    return new Map([...states].filter(([, { gone }]) => !gone));
  }

  async start(): Promise<void> {
    if (this.#process !== null) return;
    const { id, world, network, record, wrongs, settings } = this.#options;
    const attempt = ++this.#starts;
    const clock = new ProcessClock(world, { skewMs: 0, drift: this.#options.drift });
    const nowMs = () => clock.nowMs();
    const draws = this.#options.draws.fork(`process ${attempt}`);
    const holder: { process: Process | null } = { process: null };
    const send = (to: SiteId, kind: number, bytes: Uint8Array) => {
      const framed = new Uint8Array([kind, ...bytes]);
      const { process } = holder;
      return process === null ? Promise.resolve() : network.send(process, id, to, framed);
    };
    const detector = new Detector({
      nowMs,
      // The clock of `away`, by which sites say when they will be back.
      wallMs: () => world.nowMs + (wrongs.detectorAheadMs ?? 0),
      after: (ms, callback) => clock.after(ms, callback),
      send: (to, beat) => send(to, BEAT, encodeMessage(beat)),
      isKnown: () => true,
      knowsTree: () => true,
      awayUntilMs: (other) => this.#options.away.get(other),
      count: () => {},
      note: () => {},
    }, settings);
    for (const other of this.#options.sites) if (other !== id) detector.watch(other);
    const silent = new Set<SiteId>(), heard = new Set<SiteId>();
    detector.onChange((other, standing) => {
      if (attempt !== this.#starts) return;
      const isAwaited = (this.#options.away.get(other) ?? 0) > world.nowMs;
      const isLost = standing === "dead" || (standing === "suspected" && !isAwaited);
      if (isLost && !silent.has(other)) {
        silent.add(other);
        record({ kind: "suspects", site: id, other });
      }
      if (standing === "dead") record({ kind: "dead", site: id, other });
      if (standing === "alive") {
        silent.delete(other);
        record({ kind: "trusts", site: id, other });
      }
    });
    const fellows = fellowsOf(detector, { ...this.#options, nowMs: () => world.nowMs });
    let tuples: Tuples | null = null;
    tuples = await Tuples.open({
      site: id,
      boot: 1 + draws.integer(0, 2 ** 40),
      clock,
      nowMs,
      wallMs: () => world.nowMs + (wrongs.aheadMs ?? 0),
      storage: wrongs.storage?.(this.#disk, world) ?? this.#disk,
      send: (to, packet) => {
        const answer = (bytes: Uint8Array) => void world.after(0, () => tuples?.received(to, bytes));
        return send(to, PACKET, wrongs.sends?.(id, to, packet, answer) ?? packet);
      },
      tuplesMax: this.#options.tuplesMax,
      fellows: this.#watched(wrongs.fellows?.(fellows) ?? fellows, detector),
      refused: () => {},
      fatal: (error) => record({ kind: "fatal", site: id, text: error.stack ?? error.message }),
    }, this.#user(() => tuples, draws.fork("user"), clock));
    if (attempt !== this.#starts) return;
    const process: Process = {
      tuples,
      detector,
      clock,
      alive: true,
      connected: () => {},
      disconnected: () => {},
      receive: (from, bytes) => {
        if (!process.alive) return;
        detector.heard(from);
        const body = bytes.slice(1);
        if (bytes[0] === BEAT) {
          const beat = decodeMessage(body);
          if (beat.kind === "beat") detector.received(from, beat);
          return;
        }
        if (!heard.has(from)) {
          heard.add(from);
          record({ kind: "hears", site: id, other: from });
        }
        const packet = wrongs.receives === undefined ? body : wrongs.receives(id, from, body);
        if (packet !== null) process.tuples.received(from, packet);
      },
    };
    holder.process = this.#process = process;
    this.#isLeaving = false;
    network.up(id, process);
    record({ kind: "up", site: id });
  }

  /**
   * Stops as planned: what is under way ends, and the disk has it.
   *
   * @param untilMs when it said that it will be back.
   * @param stops is called as its process ends.
   */
  async leave(untilMs: number, stops: () => void): Promise<void> {
    const process = this.#process, { world, record, id } = this.#options;
    if (process === null || this.#isLeaving) return;
    this.#isLeaving = true;
    const { clock, tuples } = process;
    if (this.#options.wrongs.adoptsToTheEnd !== true) tuples.leaves();
    while (this.#underWay > 0 && this.#process === process) await world.sleep(5);
    if (this.#process !== process) return;
    await tuples.close(untilMs);
    if (this.#process !== process) return;
    // What came while its last step was written is lost with it, and nobody has heard what it made of that: the next process
    // knows whom it has to hear from the disk. The others may wait for more than that has.
    const own = new Map<string, readonly SiteId[]>();
    for (const { id: one, owners, mark } of tuples.debugEntries()) {
      if (mark !== null && owners[0] === id) own.set(one, []);
    }
    for (const [one, { owners }] of this.heldOnDisk) if (owners[0] === id) own.set(one, owners.slice(1));
    record({ kind: "leaves", site: id, untilMs, own });
    stops();
    clock.stop();
    this.#down(process);
  }

  /** Power is cut; `wipe`: the disk is lost too. */
  crash(wipe: boolean): void {
    const process = this.#process;
    if (process === null) return;
    const { record, id } = this.#options;
    if (wipe) {
      record({ kind: "wiped", site: id, held: process.tuples.debugEntries().map((entry) => entry.id) });
    }
    this.#down(process);
    this.#disk = wipe ? this.#disk.wipe() : this.#disk.crash();
  }

  #down(process: Process): void {
    const { network, record, id } = this.#options;
    const held = process.tuples.debugEntries().map((entry) => entry.id);
    record({
      kind: "down",
      site: id,
      held: new Map(held.map((one) => [one, process.tuples.view(one)?.f ?? 0])),
    });
    process.alive = false;
    process.detector.close();
    process.clock.stop();
    network.down(id);
    this.#starts++;
    this.#process = null;
    this.#underWay = 0;
    this.actedNow.clear();
    this.removedNow.clear();
  }

  /** Tuples that were acted on, or are about to be, and are not removed. */
  #underWay = 0;

  /** Acts on all that it was idle about. */
  wakeUser(): void {
    this.isIdle = false;
    for (const act of this.#waiting.splice(0)) act();
  }

  readonly #waiting: (() => void)[] = [];

  /** The same, with each choice written down. */
  #watched(fellows: Fellows, detector: Detector): Fellows {
    const isSuspect = (site: SiteId) => ["suspected", "dead"].includes(detector.standing(site));
    return {
      ...fellows,
      choose: (f, kept, without) => {
        const choice = fellows.choose(f, kept, without);
        const suspects = choice.owners.filter((site) => !kept.includes(site) && isSuspect(site));
        this.#options.record({ kind: "chose", site: this.id, suspects });
        return choice;
      },
    };
  }

  #user(tuples: () => Tuples | null, draws: Draws, clock: ProcessClock): TuplesUser {
    const { id: site, record, thinkMs } = this.#options;
    /** By id the number of the claim: it may go, and come back. */
    const mine = new Map<string, number>();
    let claims = 0;
    const act = (id: string, claim: number) => {
      if (mine.get(id) !== claim || this.#isLeaving) return;
      record({ kind: "acted", site, id });
      this.actedNow.add(id);
      this.#underWay++;
      clock.after(draws.between(...thinkMs), () => {
        void tuples()?.remove(id).then(() => {
          mine.delete(id);
          this.#underWay--;
          this.removedNow.add(id);
          record({ kind: "removed", site, id });
        }, () => {});
      });
    };
    const attempt = (id: string, claim: number, tries: number, left: number) =>
      void clock.after(draws.between(...thinkMs), () => {
        if (mine.get(id) !== claim || this.#isLeaving) return;
        if (left === 0) return act(id, claim);
        void tuples()?.amend(id, { dueMs: clock.nowMs(), note: `${tries + 1}` }).then(() => {
          if (mine.get(id) === claim) record({ kind: "tried", site, id, tries: tries + 1 });
          attempt(id, claim, tries + 1, left - 1);
        }, () => {});
      });
    return {
      mine: ({ id, how, note }) => {
        if (mine.has(id)) throw new Error(`${id} was told to be mine twice`);
        const claim = ++claims, tries = Number(note);
        mine.set(id, claim);
        record({ kind: "acts", site, id, how, tries });
        const soon = () => attempt(id, claim, tries, draws.integer(0, this.#options.tries));
        if (this.isIdle) this.#waiting.push(soon);
        else soon();
      },
      lost: (_, id) => {
        mine.delete(id);
        record({ kind: "lets go", site, id });
      },
    };
  }
}
