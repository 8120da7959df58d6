/**
 * The broker of a site: takes the messages of all queues that the site is responsible for from their producers to their
 * consumers. It stands over the tuples of the site (store/owners/tuples.ts): each message is one, its note says what
 * became of it so far.
 *
 * Life of a message: `send` → at f + 1 sites: the producer hears it → `mine`: delayed, then ready → lent to a consumer
 * (dealer.ts) → acknowledged: its tuple is removed; or not, in its time: delayed, and ready again; or given up: dead,
 * until an operator has it come again or removes it. Where its site is lost, it begins again at `mine` at another.
 *
 * Q1  A message that a producer was told is stored is delivered until a consumer acknowledges it, it is given up, or an
 *     operator removes it.
 * Q2  It is lent to one consumer at a time, and not before it is due.
 * Q3  It is lent no more than its queue's `maxAttempts` times, once more where its site was lost during the first. That
 *     one is written down once it has failed; of a message that another process or site may have lent before, each
 *     time is written down before it is lent: so a message that kills every process that works on it is given up, too.
 * Q4  What is given up stays, and says why, until an operator or its app has dealt with it; what expires is given up.
 * Q5  An acknowledgement counts whenever and at whichever owner it arrives, if the message is the one that was lent
 *     (EN1): then it is delivered no more. No other verdict is taken from a consumer that has no message lent.
 * Q6  What a message costs in memory while it waits is some 30 bytes; payloads are read when they are lent.
 */
import { CodecError } from "../../store/model/codec.ts";
import type { Clock, SiteId } from "../../store/model/ports.ts";
import type { TupleId } from "../../store/owners/packet.ts";
import type { TupleSlot } from "../../store/owners/tuple.ts";
import type { TupleView } from "../../store/owners/tuple_table.ts";
import type { NewTuple, OwnTuple, Tuples, TuplesUser } from "../../store/owners/tuples.ts";
import { Alarm } from "./alarm.ts";
import { MessageBacklog, type QueueBacklog, type WaitsFor } from "./backlog.ts";
import { Dealer, type Room, type Taker } from "./dealer.ts";
import { type BodyFormat, decodeEnvelope, encodeEnvelope, type MessageEnvelope } from "./envelope.ts";
import { Leases, type MessageLease } from "./leases.ts";
import {
  AT_ONCE,
  DELAY_MS_MAX,
  ENVELOPE_BYTES_MAX,
  FRESH_BYTES_MAX,
  HAND_OVER_AGAIN_MS,
  LEASE_MS_MAX,
  LEASED_MAX,
  PRODUCER_ID_BYTES_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
} from "./limits.ts";
import { type DeathCause, decodeNote, encodeNote, FRESH_NOTE, type MessageNote } from "./note.ts";
import { attemptsMax, pauseMs, QUEUE_DEFAULTS, type QueueSettings } from "./settings.ts";
import { SlotColumn } from "./slot_columns.ts";
import type { HandedMessage, OutletWord, OwnerWord, Verdict, VerdictResult } from "./words.ts";

/** Operations on the tuples of its site that a broker needs. */
export type MessageTuples = Pick<
  Tuples,
  "store" | "amend" | "remove" | "read" | "idAt" | "view" | "isKnown"
>;

export interface BrokerPorts {
  readonly site: SiteId;
  /** Random number of 48 bits that names this process. */
  readonly boot: number;
  readonly clock: Pick<Clock, "after" | "steadyMs" | "turn">;
  readonly wallMs: () => number;
  /** Returns a random number from 0 to 1. */
  readonly random: () => number;
  readonly settings: (queue: string) => QueueSettings | undefined;
  /** Sites with consumers of a queue, the nearest first. */
  readonly outlets: (queue: string) => readonly SiteId[];
  readonly rttMs: (site: SiteId) => number;
  readonly tell: (to: SiteId, word: OwnerWord) => void;
  /** Returns the id of the tuple of a message whose producer gave it an id: the same at all sites. */
  readonly tupleIdOf: (queue: string, id: string) => TupleId;
  /**
   * Deals with a message that is given up, where its queue says so; the message is removed once this resolves. False:
   * there is nothing to be done with it, and it stays.
   */
  readonly undelivered: (queue: string, message: StoredMessage) => Promise<boolean>;
  /** Reports a rare event, worth a line in the log. */
  readonly note: (event: string, detail: Record<string, unknown>) => void;
  readonly fail: (error: unknown) => void;
}

/** A message to be sent. */
export interface NewMessage {
  readonly body: Uint8Array;
  readonly format?: BodyFormat;
  /** Id from the producer: another message with the same id is not stored for a while (`dedupeMs`). */
  readonly id?: string;
  readonly delayMs?: number;
  /** Time after which the message expires. */
  readonly ttlMs?: number;
  readonly trace?: string;
  /** Time at which it was sent, where that is earlier than now: its times count from there. */
  readonly sentMs?: number;
  /**
   * Id of its tuple, of a message without an id that its site may send again: while it is there, and for a while
   * after, it is not stored again.
   */
  readonly tuple?: TupleId;
  /** True where its producer sends it again until it is stored: it is not given up meanwhile. */
  readonly isKept?: boolean;
  /** Pauses of this message before each retry; its queue's where they are left out. */
  readonly backoffMs?: readonly number[];
  readonly undelivered?: Uint8Array;
}

/** Message that is stored, with its state. */
export interface StoredMessage extends MessageNote {
  /** Id from the producer, or the tuple's. */
  readonly id: string;
  readonly tuple: TupleId;
  readonly dueMs: number;
  readonly owners: readonly SiteId[];
  readonly envelope: MessageEnvelope;
}

/** Error thrown where the broker refuses to do what it is asked with a message. */
export class QueueRefused extends Error {
  override readonly name = "QueueRefused";
  constructor(
    readonly code: "queue_unknown" | "queue_full" | "message_invalid" | "limit_message",
    message: string,
  ) {
    super(message);
  }
}

/** Event of a queue that is counted, since the process began. */
export type QueueEvent =
  | "sent"
  | "refused"
  | "delivered"
  | "redelivered"
  | "acknowledged"
  | "late_acknowledged"
  | "retried"
  | "timed_out"
  | "taken_back"
  | "died"
  | "expired"
  | "redriven"
  | "purged"
  | "adopted"
  | "malformed";

export interface QueueStatus {
  readonly queue: string;
  readonly ready: number;
  readonly delayed: number;
  readonly dead: number;
  /** Number of messages that are lent to consumers, or about to be. */
  readonly lent: number;
  readonly bytes: number;
  /** Time for which the message that has been ready longest has been so; null where none is ready. */
  readonly oldestMs: number | null;
  readonly counters: Readonly<Partial<Record<QueueEvent, number>>>;
}

/** Time between two looks at what waits for the wall clock, which may be set. */
const WALL_MS = 1_000;
/** Flag of a message that may have been lent before, here or elsewhere. */
const OLD = 1;

export class Broker implements TuplesUser {
  readonly #ports: BrokerPorts;
  #tuples: MessageTuples | null = null;
  readonly #backlog = new MessageBacklog();
  readonly #leases: Leases;
  readonly #dealer: Dealer;
  readonly #alarm: Alarm;
  /** Flag of each message that may have been lent before this process had it (Q3). */
  readonly #flags = new SlotColumn();
  /** Payloads of new messages, which need not be read from disk, oldest first. */
  readonly #fresh = new Map<TupleSlot, Uint8Array>();
  #freshBytes = 0;
  readonly #dirty = new Set<QueueBacklog>();
  #isDealing = false;
  /** Messages and bytes that are being stored, by queue. */
  readonly #coming = new Map<string, { messages: number; bytes: number }>();
  readonly #counters = new Map<string, Partial<Record<QueueEvent, number>>>();
  /** Dead messages that are being handed over to their app, with the time at which that is tried again. */
  readonly #handing = new Map<TupleSlot, number>();
  /** Time up to which each queue was purged. */
  readonly #purged = new Map<string, number>();
  #isClosed = false;

  constructor(ports: BrokerPorts) {
    this.#ports = ports;
    this.#leases = new Leases(1 + ports.boot);
    this.#alarm = new Alarm(ports.clock, () => this.#tick());
    const { site, outlets, rttMs, tell } = ports;
    this.#dealer = new Dealer({
      ...{ site, outlets, rttMs, tell },
      fail: this.#fail,
      nowMs: () => ports.clock.steadyMs(),
      wake: (atMs) => this.#alarm.set(atMs),
      isOpen: ({ name }) => this.#isOpen && ports.settings(name)?.isPaused === false,
      leaseMs: ({ name }) => this.#leaseMs(name),
      ready: (queue) => this.#backlog.count(queue, "ready"),
      lend: (queue, room, taker) => this.#lend(queue, room, taker),
      bytesOf: ({ slot }) => this.#backlog.bytesOf(slot),
      prepare: (lease) => this.#prepare(lease),
      isLent: (lease) => this.#leases.holds(lease),
      takeBack: (lease) => this.#takeBack(lease),
    });
  }

  /**
   * Reports an error, unless the broker is closed: what fails because the tuples are closed is done when they are open
   * again.
   */
  readonly #fail = (error: unknown): void => {
    if (!this.#isClosed) this.#ports.fail(error);
  };

  /** Starts: the tuples are open. */
  begin(tuples: MessageTuples): void {
    this.#tuples = tuples;
    this.rerouted();
  }

  get #isOpen(): boolean {
    return this.#tuples !== null && !this.#isClosed;
  }

  get #store(): MessageTuples {
    if (this.#tuples === null) throw new Error("a broker is asked before its tuples are open");
    return this.#tuples;
  }

  // ── Producers ──

  /**
   * Stores a message at f + 1 sites.
   *
   * @returns the message's id: the producer's, or one that was drawn.
   * @throws QueueRefused; TupleRefused `owners_missing`, after which it is not known whether the message will be
   *     delivered, or `tuples_full`; OwnersError where there are not so many sites at all.
   */
  async send(name: string, message: NewMessage): Promise<string> {
    const settings = this.#settingsOf(name), { wallMs, tupleIdOf } = this.#ports;
    const { id, tuple: given, delayMs = 0, ttlMs } = message, nowMs = wallMs();
    const sentMs = Math.max(0, Math.min(nowMs, message.sentMs ?? nowMs));
    const payload = this.#packed(name, message, sentMs);
    const named: Pick<NewTuple, "id" | "rememberUntilMs"> = id !== undefined
      ? { id: tupleIdOf(name, id), rememberUntilMs: nowMs + settings.dedupeMs }
      : given === undefined
      ? {}
      : { id: given, rememberUntilMs: nowMs + Math.max(settings.dedupeMs, QUEUE_DEFAULTS.dedupeMs) };
    const note = encodeNote({
      ...FRESH_NOTE,
      expiresAtMs: ttlMs === undefined ? 0 : Math.ceil(sentMs + ttlMs),
    });
    const store = async () => {
      const fresh = { payload, topic: name, f: settings.f, dueMs: sentMs + delayMs, note };
      const tuple = await this.#store.store({ ...fresh, ...named, isKept: message.isKept === true });
      this.#count(name, "sent");
      return id ?? tuple;
    };
    // A message that is here already needs no room.
    if (named.id !== undefined && this.#store.isKnown(named.id)) return await store();
    return await this.#storing(name, payload.length, settings, store);
  }

  /** Counts a message as coming to its queue while `store` runs. @throws QueueRefused `queue_full`. */
  async #storing<T>(
    name: string,
    bytes: number,
    { messagesMax, bytesMax }: QueueSettings,
    store: () => Promise<T>,
  ): Promise<T> {
    const queue = this.#backlog.queue(name);
    let coming = this.#coming.get(name);
    if (coming === undefined) this.#coming.set(name, coming = { messages: 0, bytes: 0 });
    const messages = this.#backlog.size(queue) + coming.messages, all = queue.bytes + coming.bytes;
    if (messages >= messagesMax || all + bytes > bytesMax) {
      this.#count(name, "refused");
      throw new QueueRefused(
        "queue_full",
        `the queue ${name} has ${messages} messages of ${all} bytes at ${this.#ports.site}: ` +
          `up to ${messagesMax} of ${bytesMax} may wait there`,
      );
    }
    coming.messages++;
    coming.bytes += bytes;
    try {
      return await store();
    } finally {
      coming.messages--;
      coming.bytes -= bytes;
    }
  }

  #packed(name: string, message: NewMessage, sentMs: number): Uint8Array {
    const { body, format = "bytes", id = "", delayMs = 0, ttlMs = 0, trace = "" } = message;
    const { backoffMs = null, undelivered = new Uint8Array(0) } = message;
    const invalid = (what: string, expected: string) =>
      new QueueRefused("message_invalid", `cannot send to the queue ${name} ${what}: expected ${expected}`);
    const isTime = (ms: number) => ms >= 0 && ms <= DELAY_MS_MAX;
    if (
      message.id !== undefined &&
      (id === "" || !id.isWellFormed() || utf8.encode(id).length > PRODUCER_ID_BYTES_MAX)
    ) {
      throw invalid(
        `with the id ${JSON.stringify(id.slice(0, 100))}`,
        `1 to ${PRODUCER_ID_BYTES_MAX} bytes of UTF-8`,
      );
    }
    if (!isTime(delayMs)) throw invalid(`with a delay of ${delayMs} ms`, `0 to ${DELAY_MS_MAX}`);
    if (!isTime(ttlMs) || message.ttlMs === 0) throw invalid(`for ${ttlMs} ms`, `1 to ${DELAY_MS_MAX}`);
    if (backoffMs !== null && !backoffMs.every((ms) => Number.isInteger(ms) && isTime(ms))) {
      throw invalid(`with the pauses ${backoffMs.join()}`, `whole numbers from 0 to ${DELAY_MS_MAX}`);
    }
    const payload = encodeEnvelope({
      id,
      sentMs: Math.floor(sentMs),
      trace,
      backoffMs,
      undelivered,
      format,
      body,
    });
    if (body.length > QUEUE_MESSAGE_BYTES_MAX || payload.length - body.length > ENVELOPE_BYTES_MAX) {
      throw new QueueRefused(
        "limit_message",
        `a message to the queue ${name} has ${body.length} bytes: up to ${QUEUE_MESSAGE_BYTES_MAX} may be sent` +
          (body.length > QUEUE_MESSAGE_BYTES_MAX ? "" : `, and ${ENVELOPE_BYTES_MAX} of what goes with them`),
      );
    }
    return payload;
  }

  #settingsOf(name: string): QueueSettings {
    const settings = this.#ports.settings(name);
    if (settings === undefined) throw new QueueRefused("queue_unknown", `there is no queue ${name}`);
    return settings;
  }

  // ── What the tuples say ──

  mine({ slot, id, topic, bytes, how, payload, dueMs, note: text }: OwnTuple): void {
    const queue = this.#backlog.queue(topic), wallMs = this.#ports.wallMs();
    const note = this.#read(topic, text);
    this.#backlog.add(queue, slot, bytes);
    this.#flags.set(slot, how === "stored" ? 0 : OLD);
    if (how === "adopted") this.#count(topic, "adopted");
    if (note.death !== null) {
      this.#backlog.bury(slot);
      this.#buried(queue, slot, id);
      return;
    }
    if (payload !== null && dueMs <= wallMs) this.#keep(slot, payload);
    this.#waits(slot, note, dueMs);
    this.#wake(queue);
  }

  lost(slot: TupleSlot): void {
    this.#forget(slot);
  }

  #read(queue: string, text: string): MessageNote {
    if (text === "") return FRESH_NOTE;
    try {
      return decodeNote(text);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.#count(queue, "malformed");
      return FRESH_NOTE;
    }
  }

  /** Has a message be ready now, or when it is due. */
  #waits(slot: TupleSlot, { expiresAtMs }: MessageNote, dueMs: number): void {
    if (dueMs <= this.#ports.wallMs()) this.#backlog.ready(slot);
    else this.#backlog.delay(slot, dueMs);
    if (expiresAtMs > 0) this.#backlog.expire(slot, expiresAtMs);
    this.#wakeForWall();
  }

  #wakeForWall(): void {
    const leftMs = this.#backlog.nextMs - this.#ports.wallMs();
    if (leftMs < Infinity) this.#alarm.set(this.#nowMs() + Math.min(Math.max(0, leftMs), WALL_MS));
  }

  /** Keeps in memory the payload of a message that may be taken at once (Q6). */
  #keep(slot: TupleSlot, payload: Uint8Array): void {
    this.#drop(slot);
    this.#fresh.set(slot, payload);
    this.#freshBytes += payload.length;
    for (const oldest of this.#fresh.keys()) {
      if (this.#freshBytes <= FRESH_BYTES_MAX) break;
      this.#drop(oldest);
    }
  }

  #drop(slot: TupleSlot): void {
    this.#freshBytes -= this.#fresh.get(slot)?.length ?? 0;
    this.#fresh.delete(slot);
  }

  #forget(slot: TupleSlot): void {
    const queue = this.#backlog.queueOf(slot);
    // One more may be lent.
    if (queue !== null && queue.taken >= LEASED_MAX) this.#wake(queue);
    this.#backlog.forget(slot);
    this.#leases.end(slot);
    this.#handing.delete(slot);
    this.#drop(slot);
  }

  /** Removes a message for good: no owner has it any more. Resolves when that is on disk here. */
  #end(slot: TupleSlot, id: TupleId): Promise<void> {
    this.#forget(slot);
    return this.#store.remove(id);
  }

  /** Returns the tuple of a message that is this site's. */
  #viewOf(slot: TupleSlot): { readonly id: TupleId; readonly view: TupleView } | null {
    const id = this.#store.idAt(slot), view = id === null ? undefined : this.#store.view(id);
    return id === null || view === undefined || view.gone ? null : { id, view };
  }

  // ── Giving out ──

  #wake(queue: QueueBacklog): void {
    this.#dirty.add(queue);
    if (this.#isDealing) return;
    this.#isDealing = true;
    // An outlet that is told something may answer within the same call.
    void Promise.resolve().then(() => {
      this.#isDealing = false;
      if (this.#isClosed) return;
      const dirty = [...this.#dirty];
      this.#dirty.clear();
      for (const one of dirty) this.#dealer.deal(one);
    }).catch(this.#fail);
  }

  /** Lends messages that are ready to a taker, each to one consumer at a time (Q2). */
  #lend(queue: QueueBacklog, room: Room, { site: to, isPull }: Taker): readonly MessageLease[] {
    const leases: MessageLease[] = [], untilMs = this.#nowMs() + this.#leaseMs(queue.name);
    let left = room.bytes;
    while (leases.length < room.messages && left > 0 && queue.taken < LEASED_MAX) {
      const slot = this.#backlog.take(queue);
      if (slot === null) break;
      const id = this.#store.idAt(slot);
      if (id === null) throw new Error(`slot ${slot} is taken, and has no tuple`);
      leases.push(this.#leases.lend({ slot, id, queue, to, isPull }, untilMs));
      left -= this.#backlog.bytesOf(slot);
    }
    if (leases.length > 0) this.#alarm.set(this.#leases.nextEndMs);
    return leases;
  }

  /** Reads a lent message, and writes down that it is lent where that has to be known (Q3). */
  async #prepare(lease: MessageLease): Promise<HandedMessage | null> {
    const { slot, id, queue } = lease, store = this.#store;
    const payload = this.#fresh.get(slot) ?? await store.read(id);
    if (!this.#leases.holds(lease)) return null;
    const found = this.#viewOf(slot);
    if (payload === null || found === null) throw new Error(`the message ${id} is ours, and has no payload`);
    const envelope = this.#opened(queue.name, payload);
    if (envelope === null) {
      return this.#bury(slot, id, { cause: "rejected", error: "its bytes are no message" });
    }
    const note = this.#read(queue.name, found.view.note), settings = this.#ports.settings(queue.name);
    if (settings === undefined) return this.#putBack(lease);
    if (envelope.sentMs < settings.purgedBeforeMs) return this.#purge(slot, id, queue);
    if (note.expiresAtMs > 0 && note.expiresAtMs <= this.#ports.wallMs()) {
      return this.#bury(slot, id, { cause: "expired", error: "" });
    }
    if (note.attempts >= attemptsMax(settings, envelope.backoffMs)) {
      return this.#bury(slot, id, { cause: "attempts", error: "its site was lost" });
    }
    lease.attempt = note.attempts + 1;
    lease.sentMs = envelope.sentMs;
    lease.backoffMs = envelope.backoffMs;
    if (this.#flags.get(slot) === OLD) {
      const { dueMs } = found.view;
      await store.amend(id, { dueMs, note: encodeNote({ ...note, attempts: lease.attempt }) });
      if (!this.#leases.holds(lease)) return null;
    }
    this.#drop(slot);
    this.#count(queue.name, lease.attempt === 1 ? "delivered" : "redelivered");
    const { attempt, number } = lease, { expiresAtMs } = note, { owners } = found.view;
    return { id, lease: number, attempt, expiresAtMs, owners, payload };
  }

  #opened(queue: string, payload: Uint8Array): MessageEnvelope | null {
    try {
      return decodeEnvelope(payload);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.#count(queue, "malformed");
      return null;
    }
  }

  /** Makes a message ready again that was lent in vain. */
  #putBack({ slot, queue }: MessageLease): null {
    this.#leases.end(slot);
    const found = this.#viewOf(slot);
    if (found === null) return null;
    this.#backlog.ready(slot, true);
    const { expiresAtMs } = this.#read(queue.name, found.view.note);
    if (expiresAtMs > 0) this.#backlog.expire(slot, expiresAtMs);
    this.#wake(queue);
    return null;
  }

  #takeBack(lease: MessageLease): void {
    if (!this.#leases.holds(lease)) return;
    this.#count(lease.queue.name, "taken_back");
    // The outlet that it was sent to may have it: the delivery counts.
    if (lease.attempt === 0) return void this.#putBack(lease);
    this.#failed(lease, { ms: 0, error: "the consumer's site could not be heard" }).catch(this.#fail);
  }

  // ── What consumers say ──

  hear(from: SiteId, word: OutletWord): void {
    if (this.#isClosed) return;
    if (word.kind === "want") {
      const queue = this.#backlog.queue(word.queue);
      this.#dealer.wants(queue, from, word);
      this.#wake(queue);
    } else if (word.kind === "got") this.#dealer.got(from, word.batch);
    else void this.#judge(from, word.verdicts).catch(this.#fail);
  }

  /** Ends the leases of a site that can't be heard any more, or runs another process: its consumers have nothing. */
  gone(site: SiteId): void {
    this.#dealer.gone(site);
    const error = "the consumer's site could not be heard";
    for (const lease of [...this.#leases.all()]) {
      if (lease.to !== site || lease.isPull || lease.attempt === 0) continue;
      this.#failed(lease, { ms: 0, error }).catch(this.#fail);
    }
  }

  /** Gives out what is ready, as the outlets are others than before, or further away. */
  rerouted(): void {
    for (const queue of this.#backlog.queues) if (this.#backlog.count(queue, "ready") > 0) this.#wake(queue);
  }

  async #judge(from: SiteId, verdicts: readonly Verdict[]): Promise<void> {
    const results = await Promise.all(verdicts.map(async (verdict) => {
      return { number: verdict.number, result: await this.#apply(verdict) };
    }));
    if (!this.#isClosed) this.#ports.tell(from, { kind: "settled", results });
  }

  /** Applies a consumer's verdict; its effect is on disk here when this resolves. */
  async #apply(verdict: Verdict): Promise<VerdictResult> {
    const { id, kind, ms, error } = verdict;
    const view = this.#store.view(id);
    if (view === undefined) return "unknown";
    if (view.gone && kind !== "ack") return "over";
    const lease = this.#leases.get(view.slot);
    const isLent = lease !== undefined && lease.id === id && lease.number === verdict.lease;
    if (kind === "ack") return await this.#acknowledge(verdict, view, isLent);
    if (!isLent) return "over";
    const name = lease.queue.name;
    if (kind === "extend") {
      this.#leases.extend(lease, this.#nowMs() + Math.min(ms ?? this.#leaseMs(name), LEASE_MS_MAX));
    } else if (kind === "retry") await this.#failed(lease, { ms, error });
    else if (kind === "reject") {
      await this.#given(lease.slot, id, { cause: "rejected", error }, lease.attempt);
    } else if (lease.attempt > 0) await this.#released(lease);
    return "done";
  }

  /** Removes a message that a consumer has acknowledged, lent or not (Q5). */
  async #acknowledge(
    { id, sentMs }: Verdict,
    { topic }: TupleView,
    isLent: boolean,
  ): Promise<VerdictResult> {
    if (!isLent) {
      const payload = await this.#store.read(id);
      if (payload !== null && this.#opened(topic, payload)?.sentMs !== sentMs) return "over";
      if (payload !== null) this.#count(topic, "late_acknowledged");
    }
    const view = this.#store.view(id);
    if (view === undefined) return "unknown";
    if (!view.gone) this.#count(topic, "acknowledged");
    await this.#end(view.slot, id);
    return "done";
  }

  /** Makes a message ready again that no consumer took: that was no delivery. */
  async #released({ slot, id, queue, attempt }: MessageLease): Promise<void> {
    this.#leases.end(slot);
    const found = this.#viewOf(slot);
    if (found === null) return;
    const { dueMs } = found.view, note = this.#read(queue.name, found.view.note);
    this.#waits(slot, note, 0);
    this.#wake(queue);
    if (note.attempts < attempt) return;
    await this.#store.amend(id, { dueMs, note: encodeNote({ ...note, attempts: attempt - 1 }) });
  }

  /** Ends a delivery that came to nothing: the message comes again after a pause, or is given up (Q3). */
  #failed(
    { slot, id, queue, attempt, backoffMs }: MessageLease,
    { ms, error }: { readonly ms: number | null; readonly error: string },
  ): Promise<void> {
    this.#leases.end(slot);
    const found = this.#viewOf(slot), settings = this.#ports.settings(queue.name);
    if (found === null) return Promise.resolve();
    if (settings !== undefined && attempt >= attemptsMax(settings, backoffMs)) {
      return this.#given(slot, id, { cause: "attempts", error }, attempt);
    }
    this.#count(queue.name, "retried");
    const unit = this.#ports.random(), retry = settings?.retry ?? { eachMs: [0] };
    const pause = ms === null
      ? pauseMs(retry, { attempt, own: backoffMs, unit })
      : Math.min(ms, DELAY_MS_MAX);
    const dueMs = Math.ceil(this.#ports.wallMs() + pause);
    const note = { ...this.#read(queue.name, found.view.note), attempts: attempt };
    this.#waits(slot, note, dueMs);
    this.#wake(queue);
    return this.#amend(id, dueMs, note);
  }

  async #amend(id: TupleId, dueMs: number, note: MessageNote): Promise<void> {
    await this.#store.amend(id, { dueMs, note: encodeNote(note) });
  }

  // ── Dead ones ──

  #bury(slot: TupleSlot, id: TupleId, death: { readonly cause: DeathCause; readonly error: string }): null {
    this.#given(slot, id, death).catch(this.#fail);
    return null;
  }

  /** Gives a message up (Q4). */
  async #given(
    slot: TupleSlot,
    id: TupleId,
    death: { readonly cause: DeathCause; readonly error: string },
    attempt = 0,
  ): Promise<void> {
    const queue = this.#backlog.queueOf(slot), found = this.#viewOf(slot);
    if (queue === null || found === null) return;
    const attempts = Math.max(attempt, this.#read(queue.name, found.view.note).attempts);
    this.#leases.end(slot);
    this.#drop(slot);
    this.#backlog.bury(slot);
    this.#count(queue.name, death.cause === "expired" ? "expired" : "died");
    const note = { ...this.#read(queue.name, found.view.note), attempts, death };
    await this.#amend(id, found.view.dueMs, note);
    this.#buried(queue, slot, id);
  }

  /** Hands a dead message over to its app or purges it, as its queue's settings say. */
  #buried(queue: QueueBacklog, slot: TupleSlot, id: TupleId): void {
    const settings = this.#ports.settings(queue.name);
    if (settings === undefined || this.#backlog.stateOf(slot) !== "dead") return;
    if (settings.whenDead === "hand over") void this.#handOver(queue, slot, id).catch(this.#fail);
    else if (settings.purgedBeforeMs > 0) void this.#purgeOne(queue, slot, settings).catch(this.#fail);
  }

  async #handOver(queue: QueueBacklog, slot: TupleSlot, id: TupleId): Promise<void> {
    this.#handing.set(slot, Infinity);
    const message = await this.#stored(slot);
    const isThere = () => this.#backlog.stateOf(slot) === "dead" && this.#store.idAt(slot) === id;
    if (message === null || !isThere()) return;
    try {
      const isDone = await this.#ports.undelivered(queue.name, message);
      if (!isThere()) return;
      if (isDone) return await this.#end(slot, id);
      this.#handing.delete(slot); // it stays (Q4)
      const settings = this.#ports.settings(queue.name);
      if (settings !== undefined && settings.purgedBeforeMs > 0) await this.#purgeOne(queue, slot, settings);
    } catch (error) {
      if (!isThere()) return;
      this.#ports.note("queue_undelivered", { queue: queue.name, id: message.id, error: String(error) });
      this.#handing.set(slot, this.#nowMs() + HAND_OVER_AGAIN_MS);
      this.#alarm.set(this.#nowMs() + HAND_OVER_AGAIN_MS);
    }
  }

  /** Returns a message that waits, with its envelope and note. */
  async #stored(slot: TupleSlot): Promise<StoredMessage | null> {
    const found = this.#viewOf(slot);
    if (found === null) return null;
    const payload = await this.#store.read(found.id);
    const envelope = payload === null ? null : this.#opened(found.view.topic, payload);
    if (envelope === null) return null;
    const { dueMs, owners, topic, note } = found.view;
    return {
      ...this.#read(topic, note),
      id: envelope.id || found.id,
      tuple: found.id,
      dueMs,
      owners,
      envelope,
    };
  }

  // ── Operators ──

  /**
   * Returns messages of one kind that wait, in the order in which they came to do so.
   *
   * @param after the tuple of the last message that was listed before.
   */
  async list(
    name: string,
    kind: WaitsFor,
    { limit, after }: { readonly limit: number; readonly after?: TupleId },
  ): Promise<StoredMessage[]> {
    const queue = this.#backlog.queue(name), messages: StoredMessage[] = [];
    const last = after === undefined ? undefined : this.#store.view(after)?.slot;
    const isIn = last !== undefined && this.#backlog.queueOf(last) === queue &&
      this.#backlog.stateOf(last) === kind;
    let skips = isIn;
    for (const slot of this.#backlog.list(queue, kind, isIn ? last : null)) {
      if (messages.length >= limit) break;
      if (!skips) {
        const message = await this.#stored(slot);
        if (message !== null) messages.push(message);
      }
      skips = false;
    }
    return messages;
  }

  /**
   * Has dead messages delivered again, as if they had never been tried; they do not expire any more.
   *
   * @param tuples the messages' tuples; all dead messages of the queue where they are left out.
   * @returns how many messages there were.
   */
  async redrive(name: string, tuples?: readonly TupleId[]): Promise<number> {
    const queue = this.#backlog.queue(name);
    return await this.#each(queue, ["dead"], tuples, async (slot, id) => {
      const dueMs = Math.ceil(this.#ports.wallMs());
      this.#handing.delete(slot);
      this.#waits(slot, FRESH_NOTE, dueMs);
      this.#wake(queue);
      this.#count(name, "redriven");
      await this.#amend(id, dueMs, FRESH_NOTE);
    });
  }

  /** Removes messages that wait: those given, or all of a kind. @returns how many there were. */
  async remove(name: string, kinds: readonly WaitsFor[], tuples?: readonly TupleId[]): Promise<number> {
    const queue = this.#backlog.queue(name);
    return await this.#each(queue, kinds, tuples, async (slot, id) => {
      this.#count(name, "purged");
      await this.#end(slot, id);
    });
  }

  /** Calls `act` for messages that wait, AT_ONCE of them at a time. @returns how many there were. */
  async #each(
    queue: QueueBacklog,
    kinds: readonly WaitsFor[],
    tuples: readonly TupleId[] | undefined,
    act: (slot: TupleSlot, id: TupleId) => Promise<void>,
  ): Promise<number> {
    const slots = tuples === undefined
      ? Uint32Array.from(kinds.flatMap((kind) => [...this.#backlog.list(queue, kind)]))
      : tuples.flatMap((id) => this.#store.view(id)?.slot ?? []);
    let done = 0;
    for (let from = 0; from < slots.length && !this.#isClosed; from += AT_ONCE) {
      await Promise.all([...slots.slice(from, from + AT_ONCE)].map(async (slot) => {
        const state = this.#backlog.stateOf(slot), id = this.#store.idAt(slot);
        const isMeant = this.#backlog.queueOf(slot) === queue && kinds.some((kind) => kind === state);
        if (!isMeant || id === null) return;
        done++;
        await act(slot, id);
      }));
      await this.#ports.clock.turn();
    }
    return done;
  }

  /** Applies the settings of a queue, which are others or are known now. */
  async configured(name: string): Promise<void> {
    const queue = this.#backlog.queue(name), settings = this.#ports.settings(name);
    this.#wake(queue);
    if (settings === undefined) return;
    if (settings.purgedBeforeMs > (this.#purged.get(name) ?? 0)) {
      this.#purged.set(name, settings.purgedBeforeMs);
      await this.#each(
        queue,
        ["ready", "delayed", "dead"],
        undefined,
        (slot) => this.#purgeOne(queue, slot, settings),
      );
    }
    if (settings.whenDead === "keep") return;
    for (const slot of this.#backlog.list(queue, "dead")) {
      const id = this.#store.idAt(slot);
      if (id !== null && !this.#handing.has(slot)) this.#buried(queue, slot, id);
    }
  }

  async #purgeOne(queue: QueueBacklog, slot: TupleSlot, { purgedBeforeMs }: QueueSettings): Promise<void> {
    const message = await this.#stored(slot);
    if (message === null || message.envelope.sentMs >= purgedBeforeMs) return;
    const isThere = this.#backlog.queueOf(slot) === queue && this.#store.idAt(slot) === message.tuple;
    if (!isThere || this.#backlog.stateOf(slot) === "taken") return;
    this.#count(queue.name, "purged");
    await this.#end(slot, message.tuple);
  }

  #purge(slot: TupleSlot, id: TupleId, queue: QueueBacklog): null {
    this.#count(queue.name, "purged");
    this.#end(slot, id).catch(this.#fail);
    return null;
  }

  status(): QueueStatus[] {
    const wallMs = this.#ports.wallMs();
    return this.#backlog.queues.map((queue) => {
      const first = this.#backlog.firstReady(queue), found = first === null ? null : this.#viewOf(first);
      return {
        queue: queue.name,
        ready: this.#backlog.count(queue, "ready"),
        delayed: this.#backlog.count(queue, "delayed"),
        dead: this.#backlog.count(queue, "dead"),
        lent: queue.taken,
        bytes: queue.bytes,
        oldestMs: found === null ? null : Math.max(0, wallMs - found.view.dueMs),
        counters: { ...this.#counters.get(queue.name) },
      };
    });
  }

  /** Stops: nothing is given out any more. */
  close(): void {
    this.#isClosed = true;
    this.#alarm.stop();
  }

  // ── Time ──

  #nowMs(): number {
    return this.#ports.clock.steadyMs();
  }

  #leaseMs(name: string): number {
    return Math.min(this.#ports.settings(name)?.leaseMs ?? QUEUE_DEFAULTS.leaseMs, LEASE_MS_MAX);
  }

  #tick(): void {
    if (this.#isClosed) return;
    const nowMs = this.#nowMs(), wallMs = this.#ports.wallMs();
    let left = AT_ONCE;
    for (let slot; left > 0 && (slot = this.#backlog.nextDue(wallMs)) !== null; left--) this.#isDue(slot);
    for (let slot; left > 0 && (slot = this.#backlog.nextExpired(wallMs)) !== null; left--) {
      this.#isExpired(slot);
    }
    for (let lease; left > 0 && (lease = this.#leases.nextEnded(nowMs)) !== undefined; left--) {
      this.#isOverdue(lease);
    }
    for (const [slot, atMs] of this.#handing) {
      if (atMs > nowMs) continue;
      const queue = this.#backlog.queueOf(slot), id = this.#store.idAt(slot);
      if (queue !== null && id !== null) void this.#handOver(queue, slot, id).catch(this.#fail);
    }
    this.#dealer.tick();
    this.#wakeForWall();
    this.#alarm.set(this.#leases.nextEndMs);
    for (const atMs of this.#handing.values()) this.#alarm.set(atMs);
    if (left === 0) this.#alarm.set(nowMs);
  }

  #isDue(slot: TupleSlot): void {
    const queue = this.#backlog.queueOf(slot);
    if (queue === null) return;
    this.#backlog.ready(slot);
    this.#wake(queue);
  }

  /** Gives up a message that has expired, unless it is lent: the consumer still has its time. */
  #isExpired(slot: TupleSlot): void {
    const id = this.#store.idAt(slot), state = this.#backlog.stateOf(slot);
    if (id !== null && (state === "ready" || state === "delayed")) {
      this.#bury(slot, id, { cause: "expired", error: "" });
    }
  }

  /** Ends a lease whose time is over, unless the message's payload is still being read. */
  #isOverdue(lease: MessageLease): void {
    const leaseMs = this.#leaseMs(lease.queue.name);
    if (lease.attempt === 0) return this.#leases.extend(lease, this.#nowMs() + leaseMs);
    this.#count(lease.queue.name, "timed_out");
    this.#failed(lease, { ms: null, error: "it was not acknowledged in time" }).catch(this.#fail);
  }

  #count(queue: string, event: QueueEvent): void {
    let counters = this.#counters.get(queue);
    if (counters === undefined) this.#counters.set(queue, counters = {});
    counters[event] = (counters[event] ?? 0) + 1;
  }
}

const utf8 = new TextEncoder();
