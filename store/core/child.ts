/** What a parent knows of one child. */
import type { ReplicaNumber } from "../model/row.ts";
import type { ChildHello, Fetch, NumberMessage } from "../wire/message.ts";
import type { Mark } from "./core.ts";
import type { Digest } from "../model/digest.ts";
import { DIRTY_KEYS_MAX } from "../model/limits.ts";
import type { Key } from "../model/key.ts";
import type { SiteId } from "../model/ports.ts";
import type { Range } from "../model/range.ts";
import type { ClockValue, Position } from "../model/row.ts";
import { Reader, Writer } from "../model/codec.ts";
import type { Least } from "../model/least.ts";
import { Stager } from "./stager.ts";

/** Names the record of a child on disk, before its id. */
export const CHILD_RECORD = "child/";

export interface ChildFetch extends Fetch {
  /** Of the rows that the child has there from before, where it has some. */
  readonly has: Digest | null;
  /** The covered part of its range as of the last freeze. */
  part: Range | null;
  /** This site is fetching it from its own parent. */
  asked: boolean;
  /** Above it is damaged, and this row of it is the one that was named; null: it is not. */
  damaged: Key | null;
  /** Ends its span, where it is recorded. */
  readonly answered: (() => void) | undefined;
}

export class Child {
  readonly id: SiteId;
  readonly #stables: Least<Child>;
  readonly #floors: Least<Child>;
  #replica: ReplicaNumber = 0;
  #stable: ClockValue = 0;
  #floor: ClockValue = 0;
  /** Its journal has been applied here up to this position. */
  pushed: Position = 0;
  /** The same, as committed: what may be acknowledged. */
  acked: Position = 0;
  readonly pushes = new Stager();

  connected = false;
  welcomed = false;
  /** On this very connection: the incarnation of this site that gave it its number (0: none did), … */
  enrolledBy: ReplicaNumber = 0;
  /** … and the number that it had come with, … */
  enrolledFrom: ReplicaNumber = 0;
  /** … and that the root had all that it depended on: a later hello may say otherwise (moving.ts M1). */
  enrolledAsKnown = false;
  /** A whole push of its has come to this incarnation. */
  hasPushed = false;
  /** A batch is on its way into the link. */
  sending = false;
  /** Counts connections, as in uplink.ts. */
  connection = 0;
  /** Fed up to this position of the journal. */
  cursor: Position = 0;
  /** The journal is to be scanned from here before the next feed; null once live. */
  scanFrom: Position | null = null;
  readonly dirty = new Set<Key>();
  /** In the order in which they came. */
  fetches = new Set<ChildFetch>();
  /** Answers to its requests for numbers, which go behind the feed up to a position (numbers.ts N2). */
  numbers: { readonly behind: Position; readonly message: NumberMessage }[] = [];
  ranges = 0;
  /** Somebody below waits for marks until this time. */
  eagerUntilMs = 0;
  markedAtMs = -Infinity;
  markedHead: Position = -1;
  markedDown: readonly Position[] | null = null;
  markedAcked: Position = -1;
  /** A hello that came before this site was ready to answer it. */
  hello: ChildHello | null = null;
  /** When it was last connected; tombstones wait for it that long plus the horizon. */
  seenAtMs: number;
  /** Tombstones it may have missed were collected: on its return it starts with empty coverage. */
  outdated = false;

  /** @param least the stable clocks and floors of all children that a hello was answered of: it keeps its own there. */
  constructor(id: SiteId, seenAtMs: number, least: { stables: Least<Child>; floors: Least<Child> }) {
    this.id = id;
    this.seenAtMs = seenAtMs;
    this.#stables = least.stables;
    this.#floors = least.floors;
  }

  /** 0 until a hello was answered. */
  get replica(): ReplicaNumber {
    return this.#replica;
  }

  set replica(replica: ReplicaNumber) {
    this.#replica = replica;
    this.#keep();
  }

  /** Its stable clock as of `pushed`. */
  get stable(): ClockValue {
    return this.#stable;
  }

  set stable(stable: ClockValue) {
    this.#stable = stable;
    this.#keep();
  }

  /** Its floor as of its last push to this process (PROTOCOL I9): 0 before there was one. */
  set floor(floor: ClockValue) {
    this.#floor = floor;
    this.#keep();
  }

  #keep(): void {
    if (this.#replica === 0) return this.forget();
    this.#stables.set(this, this.#stable);
    this.#floors.set(this, this.#floor);
  }

  /** It is none any more. */
  forget(): void {
    this.#stables.delete(this);
    this.#floors.delete(this);
  }

  encode(): Uint8Array {
    return new Writer(32).uint(this.replica).uint(this.pushed).uint(this.stable).flag(this.hasPushed).done();
  }

  restore(bytes: Uint8Array): void {
    const reader = new Reader(bytes);
    this.replica = reader.uint();
    this.pushed = this.acked = reader.uint();
    this.stable = reader.uint();
    this.hasPushed = reader.flag();
    reader.end();
  }

  /** A row that it covers has changed. One that reads nothing for long is brought up to date from the journal. */
  changed(key: Key): void {
    this.dirty.add(key);
    if (this.dirty.size <= DIRTY_KEYS_MAX) return;
    this.dirty.clear();
    this.scanFrom ??= this.cursor;
  }

  /** Whether there is more to send than a mark. */
  get isDue(): boolean {
    return this.dirty.size > 0 || this.scanFrom !== null || this.numbers.length > 0 ||
      this.fetches.values().some((fetch) => !fetch.asked);
  }

  /** Numbers that may go behind a feed up to this position. */
  takeNumbers(head: Position): NumberMessage[] {
    const due = this.numbers.filter(({ behind }) => behind <= head); // numbers.ts N1, N2
    this.numbers = this.numbers.filter(({ behind }) => behind > head);
    return due.map(({ message }) => message);
  }

  /** Whether a mark would tell it anything new. */
  isBehind(mark: Mark): boolean {
    return mark.head !== this.markedHead || mark.down !== this.markedDown || this.acked !== this.markedAcked;
  }

  disconnect(nowMs: number): void {
    this.connected = this.welcomed = this.sending = false;
    this.connection++;
    this.enrolledBy = 0;
    this.dirty.clear();
    this.fetches = new Set();
    this.numbers = [];
    this.pushes.clear();
    this.hello = null;
    this.seenAtMs = nowMs;
  }
}
