/** State that a parent keeps of one child. */
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

/** Prefix of the name of a child's record on disk, before the child's id. */
export const CHILD_RECORD = "child/";

export interface ChildFetch extends Fetch {
  /** Digest of the rows that the child has in the range from before, where it has some. */
  readonly has: Digest | null;
  /** Covered part of the range as of the last freeze. */
  part: Range | null;
  /** True while this site fetches the range from its own parent. */
  asked: boolean;
  /** Key of the row for which a site above refused the range as damaged; null: none was. */
  damaged: Key | null;
  /** Ends the fetch's span, where it is recorded. */
  readonly answered: (() => void) | undefined;
}

export class Child {
  readonly id: SiteId;
  readonly #stables: Least<Child>;
  readonly #floors: Least<Child>;
  #replica: ReplicaNumber = 0;
  #stable: ClockValue = 0;
  #floor: ClockValue = 0;
  /** Position of the child's journal up to which it has been applied here. */
  pushed: Position = 0;
  /** Position up to which `pushed` is committed: it may be acknowledged. */
  acked: Position = 0;
  readonly pushes = new Stager();

  connected = false;
  welcomed = false;
  /** Incarnation of this site that gave the child its number on this very connection; 0: none did. */
  enrolledBy: ReplicaNumber = 0;
  /** Number that the child had come with on this connection. */
  enrolledFrom: ReplicaNumber = 0;
  /**
   * True where the child said on this connection that the root had all that it depended on: a later hello may say
   * otherwise (moving.ts M1).
   */
  enrolledAsKnown = false;
  /** True once a whole push of the child has come to this incarnation. */
  hasPushed = false;
  /** True while a batch is on its way into the link. */
  sending = false;
  /** Number that counts connections, as in uplink.ts. */
  connection = 0;
  /** Position of this site's journal up to which the child was fed. */
  cursor: Position = 0;
  /** Position from which the journal is to be scanned before the next feed; null once live. */
  scanFrom: Position | null = null;
  readonly dirty = new Set<Key>();
  /** Fetches that wait for an answer, in the order in which they came. */
  fetches = new Set<ChildFetch>();
  /** Answers to the child's requests for numbers; each goes behind the feed up to a position (numbers.ts N2). */
  numbers: { readonly behind: Position; readonly message: NumberMessage }[] = [];
  ranges = 0;
  /** Time until which somebody below waits for marks. */
  eagerUntilMs = 0;
  markedAtMs = -Infinity;
  markedHead: Position = -1;
  markedDown: readonly Position[] | null = null;
  markedAcked: Position = -1;
  /** A hello that came before this site was ready to answer it. */
  hello: ChildHello | null = null;
  /** Time at which the child was last connected; tombstones wait for it that long plus the horizon. */
  seenAtMs: number;
  /**
   * True where tombstones that the child may have missed were collected: on its return it starts with empty coverage.
   */
  outdated = false;

  /**
   * @param least the stable clocks and floors of all children of which a hello was answered: this child keeps its own
   *     there.
   */
  constructor(id: SiteId, seenAtMs: number, least: { stables: Least<Child>; floors: Least<Child> }) {
    this.id = id;
    this.seenAtMs = seenAtMs;
    this.#stables = least.stables;
    this.#floors = least.floors;
  }

  /** The child's number; 0 until a hello was answered. */
  get replica(): ReplicaNumber {
    return this.#replica;
  }

  set replica(replica: ReplicaNumber) {
    this.#replica = replica;
    this.#keep();
  }

  /** The child's stable clock as of `pushed`. */
  get stable(): ClockValue {
    return this.#stable;
  }

  set stable(stable: ClockValue) {
    this.#stable = stable;
    this.#keep();
  }

  /** The child's floor as of its last push to this process (PROTOCOL I9): 0 before there was one. */
  set floor(floor: ClockValue) {
    this.#floor = floor;
    this.#keep();
  }

  #keep(): void {
    if (this.#replica === 0) return this.forget();
    this.#stables.set(this, this.#stable);
    this.#floors.set(this, this.#floor);
  }

  /** Ends what is kept here of a child that is none any more. */
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

  /**
   * Notes that a row which the child covers has changed. A child that reads nothing for long is brought up to date from
   * the journal.
   */
  changed(key: Key): void {
    this.dirty.add(key);
    if (this.dirty.size <= DIRTY_KEYS_MAX) return;
    this.dirty.clear();
    this.scanFrom ??= this.cursor;
  }

  /** True where there is more to send than a mark. */
  get isDue(): boolean {
    return this.dirty.size > 0 || this.scanFrom !== null || this.numbers.length > 0 ||
      this.fetches.values().some((fetch) => !fetch.asked);
  }

  /** Takes out the numbers that may go behind a feed up to this position. */
  takeNumbers(head: Position): NumberMessage[] {
    const due = this.numbers.filter(({ behind }) => behind <= head); // numbers.ts N1, N2
    this.numbers = this.numbers.filter(({ behind }) => behind > head);
    return due.map(({ message }) => message);
  }

  /** Reports whether a mark would tell the child anything new. */
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
