/**
 * A light double of an edge: it speaks the protocol of a child (store/tree/uplink.ts) and keeps nothing, so that a
 * process holds ten thousand of them beside the real sites that are measured.
 *
 * Life: connect → hello → welcome → fetches the system range, as every site does, and its own → live: takes feeds,
 * and says how far it is as an idle site does.
 *
 * E1  It sends what a real edge that does the same sends: tree_pass.ts runs a tree of real edges and one of doubles
 *     and says how the counts compare. What it is sent is counted, not kept.
 *     One that takes another number fetches everything, as a blank site does: a real one compares what it had
 *     (store/tree/resync.ts). No pass of the benchmark brings that about.
 * E2  It takes a message at once and sends no sooner than a millisecond later.
 */
import { Reader } from "../../../store/model/codec.ts";
import { MARK_IDLE_MS, MARK_MS_MIN } from "../../../store/model/limits.ts";
import {
  decodeMessage,
  encodeMessage,
  type Message,
  type Welcome,
  type WireRow,
} from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import type { Range } from "../../../store/model/range.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { SYSTEM_RANGE } from "../../../store/members/topology.ts";
import { kindOf, type Receiver, type VirtualWorld } from "./virtual.ts";

/** Sends to its parent. */
type Say = (message: Uint8Array) => void;

export class EdgeDouble implements Receiver {
  readonly id: SiteId;
  readonly #world: VirtualWorld;
  readonly #say: Say;
  /** What it covers beside the system range. */
  readonly #ranges: readonly Range[];
  #replica = 0;
  #parentReplica = 0;
  #connection = 0;
  #fetched = 0;
  #nextId = 1;
  /** Head of the journal that it would have. */
  #head = 0;
  #cursor = 0;
  #sentHead = 0;
  #sentAtMs = -Infinity;
  #cancel: () => void = () => {};
  /** Welcomed, and all that it covers has come. */
  live = false;
  /** Rows that came, and whole answers to fetches. */
  fed = 0;
  answers = 0;

  constructor(id: SiteId, world: VirtualWorld, ranges: readonly Range[], say: Say) {
    this.id = id;
    this.#world = world;
    this.#ranges = ranges;
    this.#say = say;
  }

  #send(message: Message): void {
    const connection = this.#connection;
    this.#world.after(1, () => {
      if (connection === this.#connection) this.#say(encodeMessage(message));
    });
  }

  connect(): void {
    this.#connection++;
    this.live = false;
    this.#send({
      kind: "hello",
      attempt: this.#connection,
      replica: this.#replica,
      parentReplica: this.#parentReplica,
      cursor: this.#cursor,
      clock: this.#clock,
      tier: "edge",
      url: `http://${this.id}.example.net:8080`,
      linkAddress: `${this.id}.example.net:9000`,
      coverage: this.#replica === 0 ? [] : [SYSTEM_RANGE, ...this.#ranges],
    });
  }

  disconnect(): void {
    this.#connection++;
    this.live = false;
    this.#cancel();
  }

  /** Asks for one more range; `answers` counts what came. It is not among what it says it covers. */
  miss(range: Range): void {
    this.#fetch(range);
  }

  /** Its subtree's changes: it is live, and goes on from here. */
  write(rows: readonly WireRow[]): void {
    this.#head += rows.length;
    this.#push(rows);
  }

  #fetch(range: Range): void {
    this.#send({ kind: "fetch", id: this.#nextId++, range, limit: 0, reverse: false, trace: "" });
  }

  get replica(): number {
    return this.#replica;
  }

  get #clock(): number {
    return (this.#world.nowMs() - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS;
  }

  receive(_: SiteId, bytes: Uint8Array): void {
    // Answers to fetches are long: ten thousand times all system rows.
    if (kindOf(bytes) === "fetched") return this.#take(bytes);
    const message = decodeMessage(bytes);
    if (message.kind === "welcome") this.#welcome(message);
    else if (message.kind === "feed") {
      this.#cursor = message.upTo;
      this.#news(message.rows.length);
    } else if (message.kind === "again") this.connect();
  }

  #welcome({ replica, parentReplica }: Welcome): void {
    const isNew = replica !== this.#replica || parentReplica !== this.#parentReplica;
    this.#replica = replica;
    this.#parentReplica = parentReplica;
    if (!isNew) this.#fetched = this.#ranges.length + 1;
    else {
      this.#fetched = this.#cursor = 0;
      for (const range of [SYSTEM_RANGE, ...this.#ranges]) this.#fetch(range);
    }
    this.live = this.#fetched > this.#ranges.length;
    this.#pushLater();
  }

  /** Counts the rows (store/wire/message.ts has the order of the fields). */
  #take(bytes: Uint8Array): void {
    const reader = new Reader(bytes);
    reader.byte();
    reader.uint();
    const more = reader.flag();
    reader.flag();
    reader.key();
    reader.key();
    this.#news(reader.uint());
    if (more) return;
    this.answers++;
    this.#fetched++;
    this.live = this.#fetched > this.#ranges.length;
  }

  /** A mark is answered with one, at an idle site's pace. */
  #news(rows: number): void {
    this.fed += rows;
    this.#head += rows;
    this.#pushLater();
  }

  /** The next time to say how far it is (Uplink.#pushWaitMs). */
  #pushLater(): void {
    this.#cancel();
    const every = this.#head > this.#sentHead ? MARK_MS_MIN : MARK_IDLE_MS;
    const waitMs = Math.max(1, this.#sentAtMs + every - this.#world.nowMs());
    this.#cancel = this.#world.after(Number.isFinite(waitMs) ? waitMs : 1, () => this.#push());
  }

  #push(rows: readonly WireRow[] = []): void {
    const clock = this.#clock;
    this.#sentHead = this.#head;
    this.#sentAtMs = this.#world.nowMs();
    this.#say(
      encodeMessage({
        kind: "push",
        upTo: this.#head,
        stable: clock,
        floor: clock,
        clock,
        rows,
        more: false,
      }),
    );
  }
}
