/**
 * Tuples of one use at one site: each at f + 1 sites, with one of them responsible (GeoRep, sections 2.1 and 2.3).
 *
 * Life of a tuple at its first site: `store` → on disk here and at f others: held, the producer hears it → `mine`: the
 * user acts on it → `remove` → gone here, then at all who had it. At the others: stored → (all owners before this site
 * are suspected) adopted → `mine`, as above. A site that restarts or was suspected hears first what the others know.
 *
 * O1  What a producer was told is stored is on the disks of f + 1 sites, and is so again when one of them is lost for
 *     as long as another one lives.
 * O2  Nobody acts on a tuple before every other owner has told what it knows of it, or is suspected.
 * O3  Of two sites that think themselves responsible one is told of the other when they hear of each other, and lets
 *     it go; that there were two means that a living site was taken for dead.
 * O4  What is gone at one owner comes back at none: gone is newer than anything, is on disk before it is told, and is
 *     remembered until all owners have it.
 * O5  Every tuple that is held is `mine` somewhere until it is removed.
 */
import {
  TUPLE_BYTES_MAX,
  TUPLE_ID_BYTES_MAX,
  TUPLES_MAX,
  TUPLES_WAITING_BYTES_MAX,
  WAIT_MS_MAX,
} from "../model/limits.ts";
import type { Clock, SiteId, Storage } from "../model/ports.ts";
import type { Choice } from "../presence/choose.ts";
import type { Standing, StandingChanged } from "../presence/detector.ts";
import { Custody } from "./custody.ts";
import { TupleExchange } from "./exchange.ts";
import { decodeTuplePacket, type Entry, isTupleId, type TupleId } from "./packet.ts";
import { Shelf } from "./shelf.ts";
import { Tuple } from "./tuple.ts";

/** Whom a site knows, and what it would choose (site_owners.ts). */
export interface Fellows {
  readonly f: number;
  choose(kept: readonly SiteId[], without: (site: SiteId) => boolean): Choice;
  /** Whether it belongs to the tree. */
  isKnown(site: SiteId): boolean;
  /** Whether it never did, as far as is known here. */
  isStranger(site: SiteId): boolean;
  standing(site: SiteId): Standing;
  watch(site: SiteId): () => void;
  measured(site: SiteId, ms: number): void;
  onChange(changed: StandingChanged): () => void;
}

export interface TuplesPorts {
  readonly site: SiteId;
  /** 48 random bits: this process. */
  readonly boot: number;
  readonly clock: Clock;
  /** Milliseconds that never go back. */
  readonly nowMs: () => number;
  /** A disk of its own. */
  readonly storage: Storage;
  /** Tuples that there is room for; `TUPLES_MAX` by default. */
  readonly tuplesMax?: number;
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
  readonly fellows: Fellows;
  /** What another site says is not taken: to be counted, and noted now and then. */
  readonly refused: (event: string, from: SiteId) => void;
  readonly fatal: (error: Error) => void;
}

/** What a tuple is for. */
export interface TuplesUser {
  /** This site is responsible: act, and remove it then. The payload where it is in memory, else `read` has it. */
  mine(id: TupleId, how: "stored" | "adopted" | "loaded", payload: Uint8Array | null): void;
  /** Another site is responsible, or it is gone: stop. */
  lost(id: TupleId): void;
  /** Whether this site may take a tuple over, or leave an owner out; at once where this is left out. */
  readonly mayChange?: (id: TupleId, from: readonly SiteId[]) => Promise<boolean>;
}

/** Why a tuple was not taken. */
export class TupleRefused extends Error {
  override readonly name = "TupleRefused";
  constructor(
    readonly code: "tuple_invalid" | "tuples_full" | "owners_missing" | "closed",
    message: string,
  ) {
    super(message);
  }
}

export interface TuplesStatus {
  readonly tuples: number;
  /** Those that this site is responsible for. */
  readonly mine: number;
  /** Removed, and not known to be everywhere. */
  readonly gone: number;
  /** With fewer than f + 1 owners for want of sites, or waiting for their arbiter. */
  readonly short: number;
  readonly waitingBytes: number;
  readonly counters: Readonly<Record<string, number>>;
}

interface Waiter {
  readonly untilMs: number;
  readonly promise: Promise<TupleId>;
  readonly resolve: (id: TupleId) => void;
  readonly reject: (error: Error) => void;
}

/** How often what waits for time to pass is looked at. */
const TICK_MS = 250;

export class Tuples {
  readonly #ports: TuplesPorts;
  readonly #shelf: Shelf;
  readonly #exchange: TupleExchange;
  readonly #custody: Custody;
  /** Producers, by tuple, oldest first. */
  readonly #waiters = new Map<TupleId, Waiter>();
  /** Who waits for a removal to be on disk. */
  #removals: { resolve: () => void; reject: (error: Error) => void }[] = [];
  readonly #counters: Record<string, number> = {};
  #nextId = 1;
  /** As of the last tick. */
  #f = -1;
  #awake = false;
  /** No step begins any more but the last one. */
  #isClosing = false;
  #pumping: Promise<void> = Promise.resolve();
  #cancelTick: () => void = () => {};
  #forget: () => void = () => {};
  #failure: Error | null = null;

  private constructor(ports: TuplesPorts, user: TuplesUser) {
    this.#ports = ports;
    const shelf = this.#shelf = new Shelf(ports.storage);
    const { fellows, site, nowMs } = ports;
    const shared = {
      count: (name: string, by?: number) => this.#count(name, by),
      wake: () => this.#wake(),
      nowMs,
    };
    // The two know each other: what is said below is asked when both are there.
    this.#exchange = new TupleExchange({
      ...shared,
      boot: ports.boot,
      send: ports.send,
      watch: (one) => fellows.watch(one),
      measured: (one, ms) => fellows.measured(one, ms),
      isLost: (one) => this.#custody.isLost(one),
      tuple: (id) => this.#custody.tuples.get(id),
      merge: (entry, from) => this.#custody.merge(entry, from),
      acked: (tuple, one) => this.#custody.acked(tuple, one),
      forget: (id) => this.#custody.forget(id),
      lacks: (tuple, one) => this.#custody.lacks(tuple, one),
      restarted: (one) => this.#custody.tellAgain(one, true),
      reconciled: (one, unnamed) => this.#custody.reconciled(one, unnamed),
      refused: (tuples, one) => tuples.forEach((tuple) => this.#custody.refused(tuple, one)),
    });
    this.#custody = new Custody({
      ...shared,
      site,
      shelf,
      f: () => fellows.f,
      choose: (kept) => this.#choose(kept),
      isKnown: (one) => fellows.isKnown(one),
      isStranger: (one) => fellows.isStranger(one),
      refused: (event, from) => ports.refused(event, from),
      standing: (one) => fellows.standing(one),
      hasRoom: () => this.#hasRoom(0),
      fail: (error) => this.#fail(error),
      held: ({ id }) => this.#settle(id, (waiter) => waiter.resolve(id)),
      overtaken: (id, gone) =>
        this.#settle(id, (waiter) => {
          if (gone) waiter.resolve(id);
          else waiter.reject(this.#missing("another site has taken the tuple over, and may act on it"));
        }),
      mine: ({ id, how, payload }) => user.mine(id, how, payload),
      lost: (id) => user.lost(id),
      mayChange: user.mayChange?.bind(user),
    }, this.#exchange);
  }

  /** Opens what is on the disk; the user hears of what is `mine` when the others were heard (O2). */
  static async open(ports: TuplesPorts, user: TuplesUser): Promise<Tuples> {
    const tuples = new Tuples(ports, user);
    for (const tuple of await tuples.#shelf.load()) tuples.#custody.loaded(tuple);
    tuples.#forget = ports.fellows.onChange((site, standing) => {
      if (standing !== "unknown") tuples.#custody.changed(site, standing);
    });
    tuples.#tickLater();
    tuples.#wake();
    return tuples;
  }

  /**
   * Stores a tuple at f + 1 sites; resolves when all of them have it on disk.
   *
   * @param id one that is here already is not stored again, nor one that was acted on and is remembered.
   * @throws TupleRefused; `owners_missing` after a wait means that nobody knows: it may yet be acted on. The same id is
   *     refused then until all owners have heard that it was given up.
   * @throws OwnersError where there are not so many sites at all.
   */
  store(payload: Uint8Array, id: TupleId = this.#freshId()): Promise<TupleId> {
    const known = this.#custody.tuples.get(id);
    if (known?.isUnsure === true) {
      return Promise.reject(
        this.#missing(`one with the id ${JSON.stringify(id)} was given up, and not all know it`),
      );
    }
    if (known !== undefined) return this.#waiters.get(id)?.promise ?? Promise.resolve(id);
    let choice: Choice;
    try {
      this.#check(payload, id);
      choice = this.#choose([]);
      if (choice.missing > 0) throw this.#missing(`${choice.missing} of them do not live`);
    } catch (error) {
      return Promise.reject(error);
    }
    const tuple = new Tuple(id, { version: 1, owners: choice.owners, former: [], gone: false }, false);
    tuple.how = "stored";
    const waiter = { ...Promise.withResolvers<TupleId>(), untilMs: this.#ports.nowMs() + WAIT_MS_MAX };
    waiter.promise.catch(() => {});
    this.#waiters.set(id, waiter);
    this.#custody.take(tuple, payload);
    this.#count("stored");
    return waiter.promise;
  }

  /** Its work is done: no owner is to act on it any more. Resolves when that is on disk here. */
  remove(id: TupleId): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const tuple = this.#custody.tuples.get(id);
    if (tuple !== undefined && !tuple.gone) {
      this.#count("removed");
      this.#custody.end(tuple);
    } else if (this.#shelf.isWritten(id)) return Promise.resolve();
    return new Promise((resolve, reject) => this.#removals.push({ resolve, reject }));
  }

  /** The payload of a tuple that this site has. */
  async read(id: TupleId): Promise<Uint8Array | null> {
    const tuple = this.#custody.tuples.get(id);
    if (tuple === undefined || tuple.gone) return null;
    return tuple.payload ?? await this.#shelf.read(id);
  }

  /** @throws CodecError for bytes that are no packet. */
  received(from: SiteId, bytes: Uint8Array): void {
    if (this.#failure !== null) return;
    const packet = decodeTuplePacket(bytes);
    if (this.#ports.fellows.isKnown(from)) this.#exchange.received(from, packet);
    else this.#ports.refused("packet_stranger", from);
  }

  status(): TuplesStatus {
    let mine = 0, gone = 0;
    const { tuples, short, payloads: { bytes: waitingBytes } } = this.#custody;
    for (const tuple of tuples.values()) {
      if (tuple.gone) gone++;
      else if (tuple.responsible === this.#ports.site) mine++;
    }
    const counters = { ...this.#counters };
    return { tuples: tuples.size - gone, mine, gone, short: short.size, waitingBytes, counters };
  }

  /** For checkers: what this site has of its tuples. */
  debugEntries(): Entry[] {
    return [...this.#custody.tuples.values()].map((tuple) => tuple.entry());
  }

  /** Writes what has gathered, and stops. What comes meanwhile is not taken, nor answered. */
  async close(): Promise<void> {
    if (this.#failure !== null) return;
    this.#isClosing = true;
    await this.#pumping;
    await this.#step();
    this.#stop(new TupleRefused("closed", `site ${this.#ports.site} is stopping`));
  }

  #freshId(): TupleId {
    return `${this.#ports.boot.toString(36)}.${(this.#nextId++).toString(36)}`;
  }

  /** @throws TupleRefused, or why this site has stopped. */
  #check(payload: Uint8Array, id: TupleId): void {
    if (this.#failure !== null) throw this.#failure;
    if (!isTupleId(id)) {
      throw new TupleRefused(
        "tuple_invalid",
        `cannot store a tuple with the id ${
          JSON.stringify(id.slice(0, 2 * TUPLE_ID_BYTES_MAX))
        }: an id has 1 to ${TUPLE_ID_BYTES_MAX} bytes of UTF-8`,
      );
    }
    if (payload.length > TUPLE_BYTES_MAX) {
      throw new TupleRefused(
        "tuple_invalid",
        `cannot store a tuple of ${payload.length} bytes: a payload has up to ${TUPLE_BYTES_MAX}`,
      );
    }
    if (this.#hasRoom(payload.length)) return;
    const { tuples, payloads: { bytes: waitingBytes } } = this.#custody;
    throw new TupleRefused(
      "tuples_full",
      `cannot store a tuple now: ${tuples.size} are here, up to ${this.#tuplesMax} may be, and ${waitingBytes} bytes wait ` +
        `for their owners, up to ${TUPLES_WAITING_BYTES_MAX} may; try again when some are removed`,
    );
  }

  get #tuplesMax(): number {
    return this.#ports.tuplesMax ?? TUPLES_MAX;
  }

  #hasRoom(bytes: number): boolean {
    const { tuples, payloads: { bytes: waitingBytes } } = this.#custody;
    return tuples.size < this.#tuplesMax && waitingBytes + bytes <= TUPLES_WAITING_BYTES_MAX;
  }

  #missing(why: string): TupleRefused {
    return new TupleRefused(
      "owners_missing",
      `cannot keep a tuple at ${this.#ports.fellows.f} other sites: ${why}`,
    );
  }

  #choose(kept: readonly SiteId[]): Choice {
    return this.#ports.fellows.choose(kept, (site) => this.#exchange.isFull(site));
  }

  /** A producer hears what became of its tuple. */
  #settle(id: TupleId, say: (waiter: Waiter) => void): void {
    const waiter = this.#waiters.get(id);
    this.#waiters.delete(id);
    if (waiter !== undefined) say(waiter);
  }

  // ── The pump ──

  #wake(): void {
    if (this.#awake || this.#isClosing || this.#failure !== null) return;
    this.#awake = true;
    this.#pumping = this.#pumping.then(() => this.#pump()).catch((error) => this.#fail(error));
  }

  async #pump(): Promise<void> {
    await this.#ports.clock.turn();
    this.#awake = false;
    await this.#step();
  }

  /** One step of the disk, and what may be said before and after it; one at a time. */
  async #step(): Promise<void> {
    if (this.#failure !== null) return;
    this.#custody.considerSome();
    const outgoing = this.#exchange.freeze();
    outgoing.early();
    const removals = this.#removals;
    this.#removals = [];
    try {
      const changed = await this.#shelf.commit();
      if (this.#failure !== null) throw this.#failure;
      if (changed.size > 0) this.#count("commits");
      outgoing.late();
      for (const { resolve } of removals) resolve();
      for (const id of changed) this.#custody.written(id);
    } catch (error) {
      for (const { reject } of removals) reject(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }

  #tickLater(): void {
    this.#cancelTick = this.#ports.clock.after(TICK_MS, () => {
      this.#tick();
      if (this.#failure === null) this.#tickLater();
    });
  }

  #tick(): void {
    const nowMs = this.#ports.nowMs();
    for (const [id, { untilMs }] of this.#waiters) {
      if (untilMs > nowMs) break;
      const why = `not all have it within ${WAIT_MS_MAX} ms; it may yet be acted on`;
      this.#settle(id, (waiter) => waiter.reject(this.#missing(why)));
      const tuple = this.#custody.tuples.get(id);
      if (tuple !== undefined && !tuple.held && !tuple.gone) this.#custody.end(tuple, true);
    }
    this.#exchange.tick();
    if (this.#ports.fellows.f !== this.#f) this.#custody.resized();
    this.#f = this.#ports.fellows.f;
    this.#custody.tick();
  }

  #fail(error: unknown): void {
    if (this.#failure !== null) return;
    const failure = error instanceof Error ? error : new Error(String(error));
    this.#stop(failure);
    this.#ports.fatal(failure);
  }

  #stop(failure: Error): void {
    this.#failure = failure;
    this.#cancelTick();
    this.#forget();
    for (const { reject } of this.#waiters.values()) reject(failure);
    for (const { reject } of this.#removals) reject(failure);
    this.#waiters.clear();
  }

  #count(name: string, by = 1): void {
    this.#counters[name] = (this.#counters[name] ?? 0) + by;
  }
}
