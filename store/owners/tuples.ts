/**
 * Tuples of one use at one site: each at f + 1 sites, with one of them responsible (GeoRep, sections 2.1 and 2.3).
 *
 * Life of a tuple at its first site: `store` → on disk here and at f others: held, the producer hears it → `mine`: the
 * user acts on it, and may `amend` its mark meanwhile → `remove` → gone here, then at all who had it, and its id
 * perhaps remembered. At the others: stored → (all owners before this site are suspected) adopted → `mine`, as above. A
 * site that restarts or was suspected hears first what the others know.
 *
 * O1  What a producer was told is stored is on the disks of f + 1 sites, and is so again when one of them is lost for
 *     as long as another one lives. The same holds for a producer that comes again with the same id.
 * O2  Nobody acts on a tuple before every other owner has told what it knows of it, or is suspected.
 * O3  Of two sites that think themselves responsible one is told of the other when they hear of each other, and lets
 *     the tuple go; that there were two means that a living site was taken for dead, or that one of them had died
 *     before the other knew its version, and is back. Each site that knew another as an owner tells it of a version
 *     that leaves it out: the site that is left out may be away when the author of that version loses its disk, and
 *     would act on the tuple later.
 * O4  What is gone at one owner comes back at none: gone is newer than anything, is on disk before it is told, and is
 *     kept in mind until all owners have it. It says nothing of what is stored later under an id that was given up, or
 *     is not to be known any more (tuple.ts T2): that is not lost by it.
 * O5  Every tuple that is held is `mine` somewhere until it is removed.
 * O6  An id that its producer gave is stored once until the time that it is to be remembered: what was acted on is
 *     remembered as gone, on the disks of its owners. Where too many ids are remembered the oldest are given up first,
 *     and counted.
 * O7  A mark is changed by the responsible site alone, as a version of the tuple, and is on that site's disk before the
 *     change is told to anybody, the user included.
 * O8  A site that comes back later than it had announced counts all tuples that it had as adopted: it acts on none of
 *     them before its other owners have told what they know; that they are suspected is not enough. Before the
 *     announced time nobody adopts the tuples that the absent site is responsible for (GeoRep, section 2.1.4). Nor does
 *     a site that had not heard all that the absent one knew adopt what that one may have adopted; nor does a site that
 *     was down meanwhile, and is not back as it had announced, act on such tuples by what its own disk has. From when a
 *     site announces its stop it adopts nothing itself: those that it takes for dead then would not hear of it.
 */
import {
  F_MAX,
  TUPLE_BYTES_MAX,
  TUPLE_ID_BYTES_MAX,
  TUPLE_NOTE_BYTES_MAX,
  TUPLE_TOPIC_BYTES_MAX,
  TUPLES_BYTES_MAX,
  TUPLES_MAX,
  TUPLES_WAITING_BYTES_MAX,
  WAIT_MS_MAX,
} from "../model/limits.ts";
import type { Clock, SiteId, Storage } from "../model/ports.ts";
import type { Choice } from "../presence/choose.ts";
import type { Standing, StandingChanged } from "../presence/detector.ts";
import { Custody } from "./custody.ts";
import { TupleExchange } from "./exchange.ts";
import {
  decodeTuplePacket,
  type Entry,
  isNote,
  isTopic,
  isTupleId,
  REMEMBER_UNTIL_S_MAX,
  type TupleId,
  type TupleMark,
} from "./packet.ts";
import { Shelf } from "./shelf.ts";
import { entryOf, type How, type Tuple, type TupleSlot, versionAt } from "./tuple.ts";
import { TupleTable, type TupleView } from "./tuple_table.ts";

/** The other sites that this one knows, and the owners that it would choose (site_owners.ts). */
export interface Fellows {
  /** @throws OwnersError where there are not so many sites at all. */
  choose(f: number, kept: readonly SiteId[], without: (site: SiteId) => boolean): Choice;
  /** Reports whether a site belongs to the tree. */
  isKnown(site: SiteId): boolean;
  /** Reports whether a site never belonged to the tree, as far as is known here. */
  isStranger(site: SiteId): boolean;
  standing(site: SiteId): Standing;
  /** Time until which a site said that it is away; null where it did not say so, or that time is over. */
  awaitedUntilMs(site: SiteId): number | null;
  /** Reports whether a site was heard so lately that it can't have taken this site for dead. */
  isInTouch(site: SiteId): boolean;
  /** Returns how long a site is silent before it is suspected, as it is configured now. */
  suspectMs(): number;
  watch(site: SiteId): () => void;
  measured(site: SiteId, ms: number): void;
  onChange(changed: StandingChanged): () => void;
}

export interface TuplesPorts {
  readonly site: SiteId;
  /** Number of this process: 48 random bits. */
  readonly boot: number;
  readonly clock: Clock;
  /** Milliseconds that never go back. */
  readonly nowMs: () => number;
  /** Milliseconds of the wall clock. */
  readonly wallMs: () => number;
  /** Disk of these tuples alone. */
  readonly storage: Storage;
  /** Number of tuples that there is room for; `TUPLES_MAX` by default. */
  readonly tuplesMax?: number;
  /** Bytes of payloads that there is room for; `TUPLES_BYTES_MAX` by default. */
  readonly bytesMax?: number;
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
  readonly fellows: Fellows;
  /** Called where something that another site says is not taken: to be counted, and noted now and then. */
  readonly refused: (event: string, from: SiteId) => void;
  readonly fatal: (error: Error) => void;
}

/** A tuple that is to be stored. */
export interface NewTuple {
  readonly payload: Uint8Array;
  readonly topic: string;
  /** Number of other sites that the tuple is to be at. */
  readonly f: number;
  /** Id that the producer gave; one is drawn where there is none. */
  readonly id?: TupleId;
  /** Time at which the tuple is to be acted on; at once by default. */
  readonly dueMs?: number;
  readonly note?: string;
  /**
   * End of the time in which nothing else is stored under the id though the tuple is over; no longer than it has to be,
   * by default.
   */
  readonly rememberUntilMs?: number;
  /** Owners that the tuple is to have, this site first; chosen where they are left out. */
  readonly owners?: readonly SiteId[];
  /**
   * True where the producer comes again with the id until the tuple is stored: one that not all owners have in time is
   * not given up then, and gets other owners where some are lost.
   */
  readonly isKept?: boolean;
}

/** A tuple that its user is to act on. */
export interface OwnTuple extends TupleMark {
  readonly id: TupleId;
  /** Number by which the user knows the tuple, until it is `lost` or removed. */
  readonly slot: TupleSlot;
  readonly topic: string;
  /** Length of the payload. */
  readonly bytes: number;
  readonly how: How;
  /** Payload where it is in memory; `read` has it otherwise. */
  readonly payload: Uint8Array | null;
}

/** The part of the site that acts on tuples. */
export interface TuplesUser {
  /** Tells the user that this site is responsible: it acts on the tuple, and removes it then. */
  mine(tuple: OwnTuple): void;
  /** Tells the user to stop: another site is responsible, or the tuple is gone. */
  lost(slot: TupleSlot, id: TupleId): void;
}

/** Error that says why a tuple was not taken. */
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
  /** Number of tuples that this site is responsible for. */
  readonly mine: number;
  /** Number of tuples that are removed, and not known to be so everywhere. */
  readonly gone: number;
  /** Number of tuples that are over everywhere, and whose ids are remembered (O6). */
  readonly remembered: number;
  /** Number of tuples with fewer than f + 1 owners for want of sites, or of room at one. */
  readonly short: number;
  /** Bytes of payloads, on disk or in memory. */
  readonly bytes: number;
  /** Sites that have to be heard before this one acts (O8). */
  readonly unheard: readonly SiteId[];
  readonly waitingBytes: number;
  readonly counters: Readonly<Record<string, number>>;
}

interface Waiter {
  readonly untilMs: number;
  /** True where the tuple is not to be given up when that time is over. */
  isKept: boolean;
  readonly promise: Promise<TupleId>;
  readonly resolve: (id: TupleId) => void;
  readonly reject: (error: Error) => void;
}

/** Interval at which producers' waits, the exchange and the custody look at what waits for time to pass. */
const TICK_MS = 250;
/** Number of tuples that a step looks at to put them to rest: more than come in one. */
const SETTLED_AT_ONCE = 4_096;

export class Tuples {
  readonly #ports: TuplesPorts;
  readonly #table = new TupleTable();
  readonly #shelf: Shelf;
  readonly #exchange: TupleExchange;
  readonly #custody: Custody;
  /** Producers that wait, by tuple, oldest first. */
  readonly #waiters = new Map<TupleId, Waiter>();
  /** Callers that wait for a removal or a mark to be on disk. */
  #writings: { resolve: () => void; reject: (error: Error) => void }[] = [];
  readonly #counters: Record<string, number> = {};
  #nextId = 1;
  #awake = false;
  /** True once no step but the last one begins any more. */
  #isClosing = false;
  #pumping: Promise<void> = Promise.resolve();
  #cancelTick: () => void = () => {};
  #forget: () => void = () => {};
  #failure: Error | null = null;

  private constructor(ports: TuplesPorts, user: TuplesUser) {
    this.#ports = ports;
    const shelf = this.#shelf = new Shelf(ports.storage);
    const { fellows, site, nowMs, wallMs } = ports;
    const shared = {
      table: this.#table,
      awaitedUntilMs: (one: SiteId) => fellows.awaitedUntilMs(one),
      count: (name: string, by?: number) => this.#count(name, by),
      wake: () => this.#wake(),
      nowMs,
    };
    // The exchange and the custody know each other: the callbacks below are called once both are there.
    this.#exchange = new TupleExchange({
      ...shared,
      boot: ports.boot,
      send: ports.send,
      watch: (one) => fellows.watch(one),
      measured: (one, ms) => fellows.measured(one, ms),
      isLost: (one) => this.#custody.isLost(one),
      isInTouch: (one) => fellows.isInTouch(one),
      suspectMs: () => fellows.suspectMs(),
      merge: (entry, from) => this.#custody.merge(entry, from),
      acked: (tuple, one) => this.#custody.acked(tuple, one),
      forget: (id) => this.#custody.forget(id),
      lacks: (tuple, one) => this.#custody.lacks(tuple, one),
      agreed: (id, one) => this.#custody.agreed(id, one),
      restarted: (one) => this.#custody.restarted(one),
      reconciled: (one) => this.#custody.reconciled(one),
      toldAll: (one, untilMs) => {
        shelf.told(one, untilMs, wallMs());
        this.#wake();
      },
      heardAll: () => this.#heardAll(),
      refused: (tuples, one) => tuples.forEach((tuple) => this.#custody.refused(tuple, one)),
    });
    this.#custody = new Custody({
      ...shared,
      site,
      wallMs,
      shelf,
      choose: (f, kept) => this.#choose(f, kept),
      isKnown: (one) => fellows.isKnown(one),
      isStranger: (one) => fellows.isStranger(one),
      refused: (event, from) => ports.refused(event, from),
      standing: (one) => fellows.standing(one),
      hasRoom: (bytes) => this.#hasRoom(bytes),
      fail: (error) => this.#fail(error),
      held: (id) => this.#settle(id, (waiter) => waiter.resolve(id)),
      lacking: (id) => this.#settle(id, (waiter) => waiter.reject(this.#lacks(id, "not all have it yet"))),
      overtaken: (id, isDone) =>
        this.#settle(id, (waiter) => {
          if (isDone) waiter.resolve(id);
          else waiter.reject(this.#lacks(id, "another site has taken the tuple over, and may act on it"));
        }),
      mine: ({ slot, id, topic, bytes, how, payload, dueMs, note }) =>
        user.mine({ slot, id, topic, bytes, how, payload, dueMs, note }),
      lost: ({ slot, id }) => user.lost(slot, id),
    }, this.#exchange);
  }

  /**
   * Opens the tuples that the disk has; the user is told of its own ones (`mine`) once the other owners were heard
   * (O2).
   */
  static async open(ports: TuplesPorts, user: TuplesUser): Promise<Tuples> {
    const tuples = new Tuples(ports, user);
    await tuples.#load();
    tuples.#forget = ports.fellows.onChange((site, standing) => {
      if (standing !== "unknown") tuples.#custody.changed(site, standing);
    });
    tuples.#tickLater();
    tuples.#wake();
    return tuples;
  }

  async #load(): Promise<void> {
    const { clock, wallMs } = this.#ports;
    const { awayUntilMs, toldUntilMs } = await this.#shelf.load(
      (id, state, isAmended) => this.#custody.loaded(id, state, isAmended),
      () => {
        this.#table.settle(SETTLED_AT_ONCE);
        return clock.turn();
      },
    );
    // O8
    if (awayUntilMs !== null && wallMs() > awayUntilMs) this.#exchange.mustHear();
    else if (awayUntilMs !== null) {
      this.#custody.inTime();
      this.#heardAll();
    }
    for (const [one, untilMs] of toldUntilMs) this.#exchange.remember(one, untilMs);
    this.#custody.allLoaded();
  }

  /** Forgets what this site had said about its return: it means nothing any more. */
  #heardAll(): void {
    this.#shelf.away(null);
    this.#wake();
  }

  /**
   * Stores a tuple at f + 1 sites; resolves when all of them have it on disk.
   *
   * An id that is here already is not stored again, nor one that was acted on and is remembered.
   *
   * @throws TupleRefused; `owners_missing` after a wait means that nobody knows: it may yet be acted on. The same id is
   *     refused then until all owners have heard that it was given up, unless it was to be kept (`isKept`).
   * @throws OwnersError where there are not so many sites at all.
   */
  store(fresh: NewTuple): Promise<TupleId> {
    const id = fresh.id ?? this.#freshId();
    const known = this.#table.get(id);
    if (known !== undefined && !this.#isOutdated(known)) return this.#storeAgain(known, fresh);
    const { payload, topic, f, rememberUntilMs = 0, dueMs = this.#ports.wallMs(), note = "" } = fresh;
    const mark = { dueMs: Math.max(0, Math.ceil(dueMs)), note };
    let owners: readonly SiteId[];
    try {
      this.#check(fresh, id);
      owners = fresh.owners === undefined ? this.#chosen(f) : this.#given(fresh.owners);
    } catch (error) {
      return Promise.reject(error);
    }
    const rememberUntilS = Math.min(Math.max(0, Math.ceil(rememberUntilMs / 1_000)), REMEMBER_UNTIL_S_MAX);
    const waiter = this.#waiter(id, fresh);
    const version = fresh.id === undefined ? 1 : versionAt(this.#ports.wallMs());
    this.#custody.take(id, owners, { topic, f, rememberUntilS, payload }, mark, version);
    this.#count("stored");
    return waiter.promise;
  }

  /** Reports whether a tuple is here, or is remembered to be over. */
  isKnown(id: TupleId): boolean {
    return this.#table.has(id);
  }

  /** Reports whether a tuple is over, as is the time for which its id is known: not all may have heard of its end. */
  #isOutdated({ gone, isUnsure, rememberUntilS }: Tuple): boolean {
    return gone && !isUnsure && rememberUntilS > 0 &&
      rememberUntilS < Math.floor(this.#ports.wallMs() / 1_000);
  }

  /**
   * Answers a producer that comes again with an id: stored once all owners have the tuple, or at once where it is over
   * (O1).
   */
  #storeAgain(tuple: Tuple, fresh: NewTuple): Promise<TupleId> {
    const { id } = tuple;
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (tuple.isUnsure) {
      const why = `one with the id ${JSON.stringify(id)} was given up, and not all know it`;
      return Promise.reject(this.#missing(tuple.f, why));
    }
    this.#count("stored_again");
    if (tuple.gone) return Promise.resolve(id);
    const waiting = this.#waiters.get(id);
    if (waiting !== undefined) {
      waiting.isKept ||= fresh.isKept === true;
      return waiting.promise;
    }
    const waiter = this.#waiter(id, fresh);
    this.#custody.confirm(tuple);
    return waiter.promise;
  }

  #waiter(id: TupleId, { isKept = false }: NewTuple): Waiter {
    const untilMs = this.#ports.nowMs() + WAIT_MS_MAX;
    const waiter = { ...Promise.withResolvers<TupleId>(), untilMs, isKept };
    waiter.promise.catch(() => {});
    this.#waiters.set(id, waiter);
    return waiter;
  }

  /** Removes a tuple whose work is done: no owner is to act on it any more. Resolves when that is on disk here. */
  remove(id: TupleId): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const tuple = this.#table.get(id);
    if (tuple !== undefined && !tuple.gone) {
      this.#count("removed");
      this.#custody.end(tuple);
    } else if (this.#shelf.isWritten(id)) return Promise.resolve();
    return this.#written();
  }

  /**
   * Gives another mark to a tuple that this site acts on (O7). Resolves when the mark is on disk here, at once where
   * another site acts on the tuple by now.
   */
  amend(id: TupleId, mark: TupleMark): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (!isNote(mark.note)) {
      return Promise.reject(invalid(`a note of ${mark.note.length} letters`, NOTE_EXPECTED));
    }
    const tuple = this.#table.get(id);
    if (tuple?.acting !== true) return Promise.resolve();
    this.#custody.amend(tuple, { dueMs: Math.max(0, Math.ceil(mark.dueMs)), note: mark.note });
    return this.#written();
  }

  #written(): Promise<void> {
    return new Promise((resolve, reject) => this.#writings.push({ resolve, reject }));
  }

  /** Returns the payload of a tuple that this site has. */
  async read(id: TupleId): Promise<Uint8Array | null> {
    const view = this.#table.peek(id);
    if (view === undefined || view.gone) return null;
    const inMemory = this.#table.moves(id)?.payload ?? null;
    return inMemory ?? await this.#shelf.read(id);
  }

  /** Returns the id of the tuple in a slot. */
  idAt(slot: TupleSlot): TupleId | null {
    return this.#table.idAt(slot);
  }

  /** Returns a tuple's fields as they are now. */
  view(id: TupleId): TupleView | undefined {
    return this.#table.peek(id);
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
    for (const { roster, count } of this.#table.counted()) {
      if (roster.gone) gone += count;
      else if (roster.owners[0] === this.#ports.site) mine += count;
    }
    const { remembered, payloads: { bytes: waitingBytes } } = this.#custody, { size, bytes } = this.#table;
    return {
      tuples: size - gone,
      mine,
      gone: gone - remembered,
      remembered,
      short: this.#custody.short(),
      bytes,
      waitingBytes,
      unheard: [...this.#exchange.unheard],
      counters: { ...this.#counters },
    };
  }

  /**
   * Counts, by topic, the tuples that no other owner which lives is known to have: all that is left of them is on this
   * disk. An owner that has stopped as planned does not count: its disk may be given up, too.
   */
  sole(): Map<string, number> {
    const { site } = this.#ports, sole = new Map<string, number>();
    for (const { roster: { topic, owners, unacked, gone }, count } of this.#table.counted()) {
      const others = owners.filter((one) => one !== site && !unacked.includes(one));
      if (gone || others.some((one) => !this.#custody.isLost(one))) continue;
      sole.set(topic, (sole.get(topic) ?? 0) + count);
    }
    return sole;
  }

  /** For checkers: lists what this site has of its tuples. */
  debugEntries(): Entry[] {
    return [...this.#table.views()].map(([id, view]) => entryOf(id, view));
  }

  /** Ends adoption, and is to be called before this site says that it stops: it goes on with what it has (O8). */
  leaves(): void {
    this.#custody.leaves();
  }

  /**
   * Writes the changes that have gathered, and stops. Packets that come meanwhile are neither taken nor answered; a
   * producer is refused at once.
   *
   * @param awayUntilMs when this site said that it will be back, by the wall clock (O8).
   */
  async close(awayUntilMs?: number): Promise<void> {
    if (this.#failure !== null) return;
    this.#isClosing = true;
    this.leaves();
    await this.#pumping;
    // An announcement of an earlier stop that is over still holds for what the other owners have to tell (O8).
    if (awayUntilMs !== undefined && this.#exchange.unheard.size === 0) this.#shelf.away(awayUntilMs);
    await this.#step();
    this.#stop(this.#closed());
  }

  #closed(): TupleRefused {
    return new TupleRefused("closed", `site ${this.#ports.site} is stopping`);
  }

  #freshId(): TupleId {
    return `${this.#ports.boot.toString(36)}.${(this.#nextId++).toString(36)}`;
  }

  /** @throws TupleRefused, or the error with which this site has stopped. */
  #check({ payload, topic, f, note = "" }: NewTuple, id: TupleId): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#isClosing) throw this.#closed();
    if (!isTupleId(id)) {
      const shown = JSON.stringify(id.slice(0, 2 * TUPLE_ID_BYTES_MAX));
      throw invalid(`the id ${shown}`, `an id has 1 to ${TUPLE_ID_BYTES_MAX} bytes of UTF-8`);
    }
    if (!isTopic(topic)) {
      throw invalid(
        `the topic ${JSON.stringify(topic.slice(0, 2 * TUPLE_TOPIC_BYTES_MAX))}`,
        `a topic has 1 to ${TUPLE_TOPIC_BYTES_MAX} bytes of UTF-8`,
      );
    }
    if (!isNote(note)) throw invalid(`a note of ${note.length} letters`, NOTE_EXPECTED);
    if (!Number.isInteger(f) || f < 0 || f > F_MAX) {
      throw invalid(`f = ${f}`, `it may be at 0 to ${F_MAX} other sites`);
    }
    if (payload.length > TUPLE_BYTES_MAX) {
      throw invalid(`${payload.length} bytes`, `a payload has up to ${TUPLE_BYTES_MAX}`);
    }
    if (this.#hasRoom(payload.length)) return;
    const { size, bytes } = this.#table, { payloads: { bytes: waitingBytes } } = this.#custody;
    throw new TupleRefused(
      "tuples_full",
      `cannot store a tuple now: ${size} of ${bytes} bytes are here, up to ${this.#tuplesMax} of ${this.#bytesMax} ` +
        `may be, and ${waitingBytes} bytes wait for their owners, up to ${TUPLES_WAITING_BYTES_MAX} may; try again ` +
        "when some are removed",
    );
  }

  get #tuplesMax(): number {
    return this.#ports.tuplesMax ?? TUPLES_MAX;
  }

  get #bytesMax(): number {
    return this.#ports.bytesMax ?? TUPLES_BYTES_MAX;
  }

  /** Reports whether there is room for a tuple; ids that are only remembered have a bound of their own. */
  #hasRoom(bytes: number): boolean {
    const { remembered, payloads: { bytes: waitingBytes } } = this.#custody;
    return this.#table.size - remembered < this.#tuplesMax && this.#table.bytes + bytes <= this.#bytesMax &&
      waitingBytes + bytes <= TUPLES_WAITING_BYTES_MAX;
  }

  #missing(f: number, why: string): TupleRefused {
    return new TupleRefused("owners_missing", `cannot keep a tuple at ${f} other sites: ${why}`);
  }

  #lacks(id: TupleId, why: string): TupleRefused {
    return this.#missing(this.#table.peek(id)?.f ?? 0, why);
  }

  #choose(f: number, kept: readonly SiteId[]): Choice {
    return this.#ports.fellows.choose(f, kept, (site) => this.#exchange.isFull(site));
  }

  #chosen(f: number): readonly SiteId[] {
    const { owners, missing } = this.#choose(f, []);
    if (missing > 0) throw this.#missing(f, `${missing} of them do not live`);
    return owners;
  }

  /** Checks owners that were chosen before: all of them have to be there still. */
  #given(owners: readonly SiteId[]): readonly SiteId[] {
    const lost = owners.slice(1).filter((site) => this.#custody.isLost(site) || this.#exchange.isFull(site));
    if (owners[0] !== this.#ports.site) throw invalid(`the owners ${owners.join()}`, "this site comes first");
    if (lost.length > 0) throw this.#missing(owners.length - 1, `${lost.join(" and ")} can't take it now`);
    return owners;
  }

  /** Tells a producer what became of its tuple. */
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

  /** Takes one step of the disk, and sends what may be said before and after it; one step at a time. */
  async #step(): Promise<void> {
    if (this.#failure !== null) return;
    this.#custody.considerSome();
    const outgoing = this.#exchange.freeze();
    outgoing.early();
    const writings = this.#writings;
    this.#writings = [];
    try {
      const changed = await this.#shelf.commit();
      if (this.#failure !== null) throw this.#failure;
      if (changed.size > 0) this.#count("commits");
      outgoing.late();
      for (const { resolve } of writings) resolve();
      for (const id of changed) this.#custody.written(id);
      this.#table.settle(SETTLED_AT_ONCE);
    } catch (error) {
      for (const { reject } of writings) reject(error instanceof Error ? error : new Error(String(error)));
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
    for (const [id, { untilMs, isKept }] of this.#waiters) {
      if (untilMs > nowMs) break;
      const why = `not all have it within ${WAIT_MS_MAX} ms; it may yet be acted on`;
      const tuple = this.#table.get(id);
      this.#settle(id, (waiter) => waiter.reject(this.#lacks(id, why)));
      if (tuple !== undefined && !tuple.held && !tuple.gone && !isKept) this.#custody.end(tuple, true);
    }
    this.#exchange.tick();
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
    for (const { reject } of this.#writings) reject(failure);
    this.#waiters.clear();
  }

  #count(name: string, by = 1): void {
    this.#counters[name] = (this.#counters[name] ?? 0) + by;
  }
}

const NOTE_EXPECTED = `a note has up to ${TUPLE_NOTE_BYTES_MAX} bytes of UTF-8`;

function invalid(what: string, expected: string): TupleRefused {
  return new TupleRefused("tuple_invalid", `cannot store a tuple with ${what}: ${expected}`);
}
