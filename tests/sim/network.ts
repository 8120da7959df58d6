/**
 * Links in virtual time.
 *
 * Life of a link: dialled by its lower end (a child, or whoever first sends to a peer) → up at both ends → cut,
 * which each end notices at its own time → dialled again by the dialler of a tree link, or on the next send.
 *
 * L1  FIFO per direction from connect to disconnect. What is under way at a cut is lost from a (drawn) message on,
 *     in each direction by itself: what was sent before may still arrive while its end has not noticed the cut, so
 *     that its sender, who does not know, sends it again over the next link. What is sent to a dead link is lost.
 * L2  An end hears `disconnected` for the old link before `connected` for the next one, and nothing of the old link
 *     after that.
 * L3  A process sends and hears only while it lives.
 * L4  A message that is lost on a lossy link is sent again by the transport: it, and all behind it, come later.
 */
import type { SiteId } from "../../store/model/ports.ts";
import type { Draws } from "./random.ts";
import type { World } from "./world.ts";

/** What is said above the replicas of two sites (site.ts, Above) begins with this byte; no message of theirs does. */
export const ABOVE_TAG = 0xff;

/** What the network tells one process. */
export interface Endpoint {
  connected(site: SiteId, role: "parent" | "child" | "peer"): void;
  disconnected(site: SiteId): void;
  /** A dial of a peer was refused. */
  unreachable?(site: SiteId): void;
  receive(from: SiteId, message: Uint8Array): void;
}

/** What a link is like, in both directions. */
export interface LinkQuality {
  /** Least and greatest delay of a message. */
  readonly delayMs: readonly [number, number];
  /** Chance that the transport has to send a message again. */
  readonly lossChance: number;
  readonly bytesPerMs: number;
}

/** Whether and how a site relates to another in the tree, and how far they are. */
export interface NetworkOptions {
  readonly world: World;
  readonly draws: Draws;
  readonly parentOf: (site: SiteId) => SiteId | null;
  readonly quality: (a: SiteId, b: SiteId) => LinkQuality;
  readonly window: number;
  /** How soon an end notices that its link is gone: at once (reset) or by silence. */
  readonly noticeMs: readonly [number, number];
  /** Chance that a cut lets some of what is under way arrive (L1). */
  readonly lateChance: number;
  /** Every message that a process sends. */
  readonly tap?: (from: SiteId, to: SiteId, message: Uint8Array) => void;
  /** Every message as it has left. */
  readonly left?: (from: SiteId, to: SiteId, message: Uint8Array) => void;
  /** Every message as it has arrived. */
  readonly arrived?: (from: SiteId, to: SiteId, message: Uint8Array) => void;
}

interface End {
  readonly site: SiteId;
  readonly process: Endpoint;
  /** This end believes the link to be up. */
  up: boolean;
  /** Virtual time before which nothing more arrives here (L1). */
  lastMs: number;
  /** Virtual time until which nothing arrives here. */
  stalledUntilMs: number;
  /** Virtual time at which the line to this end is free. */
  freeMs: number;
  /** After a cut: how many of the messages on their way still arrive. */
  late: number;
  /** Arrivals that are due, of messages that came sooner: the line became wider. */
  surplus: number;
  /** Messages on their way to this end, and senders that wait for room. */
  readonly flying: Uint8Array[];
  readonly room: (() => void)[];
}

interface Link {
  readonly ends: readonly [End, End];
  /** The wire itself. */
  alive: boolean;
}

const REDIAL_MS: readonly [number, number] = [1, 40];
/** What a lost packet costs: a round trip where the next ones tell of it, a timeout where there are none. */
const RESEND_MS: readonly [number, number] = [5, 250];

const pairOf = (a: SiteId, b: SiteId): string => a < b ? `${a} ${b}` : `${b} ${a}`;

/** All links of a run. */
export class SimNetwork {
  readonly #options: NetworkOptions;
  readonly #processes = new Map<SiteId, Endpoint>();
  readonly #links = new Map<string, Link>();
  readonly #blocked = new Map<string, number>();
  #slowness = 1;
  #isHealed = false;
  readonly counts = { messages: 0, bytes: 0, lost: 0, cuts: 0, peers: 0, late: 0, resent: 0, queued: 0 };

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** A process came up: it dials its parent, and its children's dials succeed from now on. */
  up(site: SiteId, process: Endpoint): void {
    this.#processes.set(site, process);
    this.#dialParent(site, process);
  }

  /** A process died: others notice in their time. */
  down(site: SiteId): void {
    this.#processes.delete(site);
    for (const link of this.#links.values()) {
      const own = link.ends.find((end) => end.site === site);
      if (own === undefined) continue;
      own.up = false;
      this.#cut(link);
    }
  }

  /** A site has another parent: the link to the one before is cut, and the new one is dialled. */
  moved(site: SiteId, from: SiteId): void {
    const link = this.#links.get(pairOf(site, from));
    if (link !== undefined) this.#cut(link);
    const process = this.#processes.get(site);
    if (process !== undefined) this.#dialParent(site, process);
  }

  /** Cuts the links between two sites and refuses new ones until the clock reaches `untilMs`. */
  partition(a: SiteId, b: SiteId, untilMs: number): void {
    this.block(a, b, untilMs);
    const link = this.#links.get(pairOf(a, b));
    if (link !== undefined) this.#cut(link);
  }

  /** Refuses new links between two sites until the clock reaches `untilMs`; those that are stay. */
  block(a: SiteId, b: SiteId, untilMs: number): void {
    this.#blocked.set(pairOf(a, b), untilMs);
  }

  /** Nothing that one site sends arrives at another until the clock reaches `untilMs`; nothing is lost. */
  stall(from: SiteId, to: SiteId, untilMs: number): void {
    const end = this.#links.get(pairOf(from, to))?.ends.find(({ site }) => site === to);
    if (end !== undefined) end.stalledUntilMs = Math.max(end.stalledUntilMs, untilMs);
  }

  /** Multiplies all delays. */
  slow(factor: number): void {
    this.#slowness = factor;
  }

  /** Ends all partitions and stalls; links lose nothing and are as wide as it takes from now on. */
  heal(): void {
    this.#isHealed = true;
    this.#blocked.clear();
    this.#slowness = 1;
    for (const link of this.#links.values()) {
      for (const end of link.ends) {
        end.stalledUntilMs = 0;
        this.#hurry(link, end);
      }
    }
  }

  /** What stands in line arrives as if the line had been wide when it was sent. */
  #hurry(link: Link, far: End): void {
    const { world } = this.#options;
    const [own] = link.ends.filter((end) => end !== far);
    if (own === undefined || far.freeMs <= world.nowMs) return;
    far.freeMs = 0;
    far.lastMs = world.nowMs + this.#delay(own.site, far.site);
    far.surplus += far.flying.length;
    for (const _ of far.flying) world.at(far.lastMs, () => this.#arrive(link, own, far));
  }

  /** The sending half of `Network`, for one process. */
  send(process: Endpoint, from: SiteId, to: SiteId, message: Uint8Array): Promise<void> {
    if (this.#processes.get(from) !== process) return Promise.resolve();
    this.#options.tap?.(from, to, message);
    const link = this.#links.get(pairOf(from, to));
    const own = link?.ends.find((end) => end.site === from);
    if (link === undefined || own === undefined || !own.up) {
      // L1: a tree link comes back by itself, with what is sent then; a peer link is dialled, and carries this.
      if (this.#isTree(from, to)) this.counts.lost++;
      else this.#dialPeer(from, to, process, message);
      this.#options.left?.(from, to, message);
      return Promise.resolve();
    }
    const room = this.#fly(link, own, message);
    this.#options.left?.(from, to, message);
    return room;
  }

  #isTree(a: SiteId, b: SiteId): boolean {
    return this.#options.parentOf(a) === b || this.#options.parentOf(b) === a;
  }

  /** Whether a dial from one site finds another's process. */
  isThere(from: SiteId, to: SiteId): "there" | "refused" | "silent" {
    if (this.#isBlocked(from, to)) return "silent";
    return this.#processes.has(to) ? "there" : "refused";
  }

  #isBlocked(a: SiteId, b: SiteId): boolean {
    return (this.#blocked.get(pairOf(a, b)) ?? -1) > this.#options.world.nowMs;
  }

  #delay(a: SiteId, b: SiteId): number {
    const [least, greatest] = this.#options.quality(a, b).delayMs;
    return this.#options.draws.between(least, greatest) * this.#slowness;
  }

  /** How long a message takes on a lossy or narrow line beyond its delay (L4). */
  #hindrance(own: End, far: End, bytes: number): number {
    const { world, draws, quality } = this.#options;
    const { lossChance, bytesPerMs } = quality(own.site, far.site);
    let ms = 0;
    if (bytesPerMs < Infinity) {
      if (far.freeMs > world.nowMs) this.counts.queued++;
      far.freeMs = Math.max(far.freeMs, world.nowMs) + bytes / bytesPerMs;
      ms = far.freeMs - world.nowMs;
    }
    while (lossChance > 0 && draws.chance(lossChance)) {
      this.counts.resent++;
      ms += draws.between(...RESEND_MS);
    }
    return ms;
  }

  #fly(link: Link, own: End, message: Uint8Array): Promise<void> {
    const { world, window } = this.#options;
    const far = link.ends[0] === own ? link.ends[1] : link.ends[0];
    this.counts.messages++;
    this.counts.bytes += message.length;
    if (!link.alive) {
      this.counts.lost++;
      return Promise.resolve();
    }
    const arriveMs = Math.max(
      world.nowMs + this.#delay(own.site, far.site) +
        (this.#isHealed ? 0 : this.#hindrance(own, far, message.length)),
      far.lastMs,
      far.stalledUntilMs,
    );
    far.lastMs = arriveMs;
    far.flying.push(message);
    world.at(arriveMs, () => this.#arrive(link, own, far));
    if (far.flying.length < window) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    far.room.push(resolve);
    return promise;
  }

  /** Hands over the oldest message under way: one call for each that was sent. */
  #arrive(link: Link, own: End, far: End): void {
    // A stall that began after the message had left holds it too, and what follows it.
    if (link.alive && far.stalledUntilMs > this.#options.world.nowMs) {
      far.lastMs = Math.max(far.lastMs, far.stalledUntilMs);
      this.#options.world.at(far.stalledUntilMs, () => this.#arrive(link, own, far));
      return;
    }
    const message = far.flying.shift();
    if (message === undefined && far.surplus-- > 0) return;
    if (message === undefined) throw new Error("a message arrived that was never sent");
    far.room.shift()?.();
    const arrives = link.alive || far.late-- > 0;
    if (!arrives || !far.up || this.#processes.get(far.site) !== far.process) {
      this.counts.lost++;
      return;
    }
    if (!link.alive) this.counts.late++;
    far.process.receive(own.site, message);
    this.#options.arrived?.(own.site, far.site, message);
  }

  #cut(link: Link): void {
    if (!link.alive) return;
    const { world, draws, noticeMs, lateChance } = this.#options;
    link.alive = false;
    this.counts.cuts++;
    for (const end of link.ends) {
      if (draws.chance(lateChance)) end.late = draws.integer(0, end.flying.length);
      if (end.up) world.after(draws.between(...noticeMs), () => this.#notice(link, end));
      for (const resolve of end.room.splice(0)) resolve();
    }
  }

  /** One end learns that its link is gone; the child dials again. */
  #notice(link: Link, end: End): void {
    if (!end.up) return;
    end.up = false;
    const other = link.ends[0] === end ? link.ends[1] : link.ends[0];
    if (this.#processes.get(end.site) !== end.process) return;
    end.process.disconnected(other.site);
    if (this.#options.parentOf(end.site) === other.site) this.#dialParent(end.site, end.process);
  }

  #dialParent(site: SiteId, process: Endpoint): void {
    const parent = this.#options.parentOf(site);
    if (parent === null) return;
    const { world, draws } = this.#options;
    world.after(draws.between(...REDIAL_MS) + this.#delay(site, parent), () => {
      if (this.#processes.get(site) !== process || this.#options.parentOf(site) !== parent) return;
      const far = this.#processes.get(parent);
      if (far === undefined || this.#isBlocked(site, parent)) return this.#dialParent(site, process);
      this.#establish(site, process, parent, far);
    });
  }

  #dialPeer(from: SiteId, to: SiteId, process: Endpoint, first: Uint8Array): void {
    const { world } = this.#options;
    this.counts.peers++;
    world.after(this.#delay(from, to) * 2, () => {
      const far = this.#processes.get(to);
      if (this.#processes.get(from) !== process) return;
      if (far === undefined || this.#isBlocked(from, to)) {
        this.counts.lost++;
        // A dead host refuses; where the way is cut there is silence.
        if (far === undefined) process.unreachable?.(to);
        return;
      }
      const known = this.#links.get(pairOf(from, to));
      const link = known?.alive && known.ends.every((end) => end.up)
        ? known
        : this.#establish(from, process, to, far);
      const own = link.ends.find((end) => end.site === from);
      if (own !== undefined) void this.#fly(link, own, first);
    });
  }

  #establish(lower: SiteId, lowerProcess: Endpoint, upper: SiteId, upperProcess: Endpoint): Link {
    const old = this.#links.get(pairOf(lower, upper));
    if (old !== undefined) {
      this.#cut(old);
      // L2
      for (const end of old.ends) {
        const other = old.ends[0] === end ? old.ends[1] : old.ends[0];
        if (end.up && this.#processes.get(end.site) === end.process) {
          end.up = false;
          end.process.disconnected(other.site);
        }
      }
    }
    const end = (site: SiteId, process: Endpoint): End => ({
      site,
      process,
      up: true,
      lastMs: 0,
      stalledUntilMs: 0,
      freeMs: 0,
      surplus: 0,
      late: 0,
      flying: [],
      room: [],
    });
    const link: Link = {
      ends: [end(lower, lowerProcess), end(upper, upperProcess)],
      alive: true,
    };
    this.#links.set(pairOf(lower, upper), link);
    const isTree = this.#isTree(lower, upper);
    upperProcess.connected(lower, isTree ? "child" : "peer");
    lowerProcess.connected(upper, isTree ? "parent" : "peer");
    return link;
  }
}
