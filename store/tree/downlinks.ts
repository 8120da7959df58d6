/**
 * This site's side of the tree edges to its children.
 *
 * A child: hello → (number from the root) → welcome → live. A live child gets, at each flush that concerns it,
 * one message group: the feed up to the committed head, then the replies to its fetches as of that head.
 *
 * D1  A feed holds the child's covered rows past its cursor, as committed at the mark's head (PROTOCOL I1, I2).
 * D2  A fetch reply follows the feed of the same flush; its range is subscribed in that flush (I3).
 * D3  What a child pushed is not fed back to it, unless a join made it new.
 */
import { Adoptions, haveAllPushed } from "../change/adoption.ts";
import { Child, CHILD_RECORD } from "../core/child.ts";
import { newestClock } from "../core/clock_guard.ts";
import type { Core, Mark } from "../core/core.ts";
import { Enrolment } from "../change/enrolment.ts";
import type { Key } from "../model/key.ts";
import { EAGER_MS, MARK_IDLE_MS, MARK_MS_MIN, MARK_MS_PER_CHILD } from "../model/limits.ts";
import { FlushReads } from "./flush_reads.ts";
import { Least } from "../model/least.ts";
import type { ChildHello, Claim, Feed, Fetch, Message, Push } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import { isEmpty, overlap, pointRange, type Range } from "../model/range.ts";
import { Removals } from "../change/removal.ts";
import { Replies } from "./replies.ts";
import type { Frozen } from "../rows/rows.ts";
import { type ClockValue, type Position, type ReplicaNumber, unixMs } from "../model/row.ts";
import { Subscriptions } from "../rows/subscriptions.ts";
import { ROOT_ONLY_RANGE, SYSTEM_RANGE } from "../members/topology.ts";

interface Host {
  /** Gets a number from the root. */
  number(claim: Claim): Promise<ReplicaNumber>;
  /** Resolves when everything applied so far is on disk. */
  durable(): Promise<void>;
  /** Covers a range for a child here first. */
  fetch(fetch: Fetch): Promise<void>;
  eager(): void;
  /** Takes a child's word of what its wall clock says, which the child does not believe. */
  wall(child: SiteId, ms: number): void;
  /** Takes the clock of a child that is refused for it. */
  ahead(child: SiteId, ms: number): void;
  /** Reports whether a message that speaks of a position may leave; else resolves when it may (PROTOCOL O2). */
  isSafe(position: Position): boolean;
  safe(position: Position): Promise<void>;
}

/** Position up to which a child's journal was taken in, and the incarnation that had pushed it. */
interface Pushed {
  readonly replica: ReplicaNumber;
  readonly upTo: Position;
}

export class Downlinks {
  readonly #core: Core;
  readonly #host: Host;
  readonly #enrolment: Enrolment;
  readonly #replies: Replies;
  readonly removals: Removals;
  readonly adoptions: Adoptions;
  readonly #children = new Map<SiteId, Child>();
  readonly #least = { stables: new Least<Child>(), floors: new Least<Child>() };
  readonly #subscriptions = new Subscriptions<Child>();
  /** Children with fetches, and some that had fetches. */
  readonly #asking = new Set<Child>();
  /** Children with something due at the next flush. */
  readonly #due = new Set<Child>();
  /**
   * Children that pushed since the last freeze, each with the position that it reached; `#pushedFrozen` has those of
   * the freeze under way.
   */
  #pushed = new Map<Child, Pushed>();
  #pushedFrozen = new Map<Child, Pushed>();
  /** Children whose hello came before it could be answered. */
  readonly #early = new Set<Child>();
  #sweptAtMs = -Infinity;

  constructor(core: Core, host: Host) {
    this.#core = core;
    this.#host = host;
    this.removals = new Removals(core, this);
    this.#replies = new Replies(core, {
      fetch: host.fetch,
      subscribe: (child, range) => {
        this.#subscriptions.add(child, range);
        child.ranges = this.#subscriptions.count(child);
      },
      due: (child) => void this.#due.add(child),
      asks: (child) => void this.#asking.add(child),
    });
    this.adoptions = new Adoptions(core, {
      durable: () => host.durable(),
      ready: () => this.answerEarly().catch((error) => core.ports.fatal(error)),
    });
    const isGivenUp = (hello: ChildHello) => this.adoptions.isGivenUp(hello);
    this.#enrolment = new Enrolment(core, { ...host, isGivenUp });
  }

  restore(name: string, value: Uint8Array): boolean {
    if (!name.startsWith(CHILD_RECORD)) return false;
    this.#child(name.slice(CHILD_RECORD.length)).restore(value);
    return true;
  }

  #child(id: SiteId): Child {
    let child = this.#children.get(id);
    if (child === undefined) this.#children.set(id, child = new Child(id, this.#nowMs(), this.#least));
    return child;
  }

  #nowMs(): number {
    return this.#core.steady.nowMs();
  }

  all(): IterableIterator<Child> {
    return this.#children.values();
  }

  /** Returns the children among some sites. */
  among(sites: readonly SiteId[]): Child[] {
    return sites.flatMap((site) => this.#children.get(site) ?? []);
  }

  /** Forgets a child that is none any more. */
  dismiss(child: Child): void {
    this.disconnect(child.id);
    this.adoptions.forget(child);
    this.#children.delete(child.id);
    child.forget();
    this.#core.rows.record(CHILD_RECORD + child.id, null);
  }

  /** Clock up to which every entry of the children's subtrees is applied here (PROTOCOL I4). */
  stable(): ClockValue {
    return this.#least.stables.value;
  }

  /** Version clock up to which the root's journal has all that the children have (PROTOCOL I9). */
  get floor(): ClockValue {
    return this.#least.floors.value;
  }

  /** Answers what the children asked for while their rows of a lost disk came back: they are all here now. */
  resynced(): void {
    for (const child of this.#children.values()) {
      for (const fetch of child.fetches) fetch.asked = false;
      this.#due.add(child);
    }
    this.#core.wake();
  }

  /** True where every child there was has pushed to this incarnation. */
  get haveAllPushed(): boolean {
    return haveAllPushed(this.#core, this.#children);
  }

  /** Reports whether a child covers or fetches a key of a range (PROTOCOL I3). */
  uses(range: Range): boolean {
    if (this.#subscriptions.touches(range)) return true;
    for (const child of this.#asking) {
      if (child.fetches.size === 0) this.#asking.delete(child);
      else if (child.fetches.values().some((fetch) => overlap(fetch.range, range))) return true;
    }
    return false;
  }

  /** Returns the lowest position that some child may still have to be fed: the journal past it must stay. */
  fedUpTo(): Position {
    const nowMs = this.#nowMs();
    let fed = this.#core.rows.committedHead;
    for (const child of this.#children.values()) {
      if (child.replica === 0) continue;
      if (child.welcomed) fed = Math.min(fed, child.scanFrom ?? child.cursor);
      else if (nowMs - child.seenAtMs < this.#core.horizonMs) fed = 0;
      else child.outdated = true;
    }
    return fed;
  }

  /**
   * Stops what was begun on the link to a site: at once, since it may wait for long (for a number from above), and
   * connect waits for it. The process at the other end next may be blank, and would take the answer for its own.
   */
  linkEnded(id: SiteId): void {
    const child = this.#children.get(id);
    if (child !== undefined) child.connection++;
  }

  connect(id: SiteId): void {
    const child = this.#child(id);
    child.connection++;
    child.enrolledBy = 0;
    child.connected = true;
  }

  disconnect(id: SiteId): void {
    const child = this.#children.get(id);
    if (child === undefined) return;
    this.#core.clockGuard.forget(id);
    if (child.connected) child.disconnect(this.#nowMs());
    this.#subscriptions.removeAll(child);
    child.ranges = 0;
    this.#due.delete(child);
  }

  /**
   * Takes the news that rows went with this site's disk: children that cover them, or are about to, have to say hello
   * again.
   */
  uncovered(keys: readonly Key[]): void {
    if (keys.some((key) => this.uses(pointRange(key)))) this.again();
  }

  /** Has every child say hello again: this site is a new incarnation or has lost coverage. */
  again(): void {
    for (const child of this.#children.values()) if (child.connected) this.#again(child);
  }

  /** Has a child say hello again. Until it has, it is told nothing: this site may stand elsewhere by now. */
  #again(child: Child): void {
    child.welcomed = child.sending = false;
    child.connection++;
    this.#core.send(child.id, { kind: "again" });
  }

  /** Answers hellos that came before this site had its system rows. */
  async answerEarly(): Promise<void> {
    const early = [...this.#early];
    this.#early.clear();
    await Promise.all(
      early.map(async (child) => {
        const { hello } = child;
        child.hello = null;
        if (hello !== null) await this.#hello(child, hello);
      }),
    );
  }

  async receive(from: SiteId, message: Message): Promise<void> {
    const child = this.#children.get(from);
    if (child === undefined || !child.connected) return;
    if (message.kind === "hello") this.#joins(child, message);
    else if (message.kind === "wall") this.#host.wall(from, message.ms);
    else if (!child.welcomed) this.#core.count("early");
    else if (message.kind === "push") await this.#push(child, message);
    else if (message.kind === "fetch" || message.kind === "compare") this.#replies.asked(child, message);
    else if (message.kind === "drop") this.#drop(child, message.range);
    else if (message.kind === "eager") this.#eager(child);
    else if (message.kind === "number" && message.claim !== null) {
      this.#number(child, message.id, message.claim);
    } else this.#core.refused("unexpected_message", from, { kind: message.kind });
  }

  // ── Joining ──

  /**
   * Takes a hello, whose answer nobody waits for: it may take a number from above, for long, and this site may be moved
   * below that child meanwhile, which is then the way to the number.
   */
  #joins(child: Child, hello: ChildHello): void {
    this.#hello(child, hello).then(() => this.removals.sweep()).catch((error) =>
      this.#core.ports.fatal(error)
    );
  }

  async #hello(child: Child, hello: ChildHello): Promise<void> {
    const core = this.#core;
    child.welcomed = false;
    child.sending = false;
    child.pushes.clear();
    // The child asks again for numbers that it still wants; another process of it counts its questions anew.
    child.numbers = [];
    // An earlier hello that still waits to be answered is void.
    child.hello = null;
    const connection = ++child.connection;
    if (this.removals.refuses(child.id, hello) || this.#refuses(child, hello.clock)) return;
    core.wall.hears(child.id, unixMs(hello.clock), false);
    // The child's former incarnations have to be known first (enrolment.ts N2).
    const isEarly = core.replica === 0 || !core.coverage.hasRange(SYSTEM_RANGE);
    if (isEarly || !this.adoptions.isReady(child, hello)) {
      child.hello = hello;
      this.#early.add(child);
      return;
    }
    // The same hello twice on one connection: the second was sent before the answer to the first had arrived.
    const again = child.enrolledBy === core.replica && child.enrolledFrom === hello.replica &&
      core.topology.recordedEnd(child.replica) === undefined;
    const anew = !again && (hello.replica === 0 || child.replica !== hello.replica ||
      hello.parentReplica !== core.replica || core.topology.ended(hello.replica) !== undefined);
    if (anew) await this.#enrolment.enroll(child, hello, connection);
    else await this.#enrolment.refresh(child, hello);
    // Rows that the first hello had written may be on their way to the disk still (enrolment.ts N1).
    if (again) {
      await this.#enrolment.noteLoss(child, hello);
      await this.#host.durable();
    }
    // This site may be another incarnation by now; or the child has left, or says hello anew.
    if (connection !== child.connection || !child.connected || anew && child.enrolledBy !== core.replica) {
      return;
    }
    const hasMissed = child.outdated || hello.cursor < core.collectedTo;
    const void_ = anew || again || hasMissed || hello.cursor > core.rows.head;
    this.#welcome(child, hello, void_);
  }

  /** Reports whether a child's clock is too far ahead: it is no child then, until it has joined again. */
  #refuses(child: Child, clock: ClockValue): boolean {
    const refused = this.#core.clockGuard.refuses(child.id, clock, () => {
      if (child.connected && child.connection === connection) this.#core.send(child.id, { kind: "again" });
    });
    if (refused) {
      child.welcomed = false;
      this.#host.ahead(child.id, unixMs(clock));
      // The child may have stopped believing its own wall clock, which is right again.
      this.#core.send(child.id, { kind: "wall", ms: this.#core.wall.nowMs() });
    }
    const connection = refused ? ++child.connection : 0;
    return refused;
  }

  /**
   * Tells the children what time it is, where the clocks of this site's rows and messages do not tell (timekeeper.ts).
   */
  tellWall(ms: number): void {
    for (const child of this.#children.values()) {
      if (child.connected) this.#core.send(child.id, { kind: "wall", ms });
    }
  }

  #welcome(child: Child, hello: ChildHello, anew: boolean): void {
    const core = this.#core;
    this.#subscriptions.removeAll(child);
    const refused: Range[] = [];
    for (const range of hello.coverage) {
      const isHidden = overlap(range, ROOT_ONLY_RANGE);
      if (isHidden) core.refused("range_refused", child.id);
      if (anew || isHidden || !core.coverage.hasRangeSince(range, hello.cursor)) refused.push(range);
      else refused.push(...this.#subscribe(child, range));
    }
    child.dirty.clear();
    child.fetches = new Set();
    child.ranges = this.#subscriptions.count(child);
    child.cursor = anew ? 0 : hello.cursor;
    child.scanFrom = child.ranges === 0 ? null : hello.cursor;
    child.markedHead = -1;
    child.outdated = false;
    child.welcomed = true;
    core.send(child.id, {
      kind: "welcome",
      attempt: hello.attempt,
      replica: child.replica,
      parentReplica: core.replica,
      clock: core.clock.tick(),
      pushed: child.pushed,
      path: [...core.path, core.config.site],
      refused,
    });
    this.#due.add(child);
    core.wake();
  }

  /** Subscribes a child to a range, but for rows that are damaged here (damage.ts G1): these are returned. */
  #subscribe(child: Child, range: Range): Range[] {
    const damaged = this.#core.damage.within(range).map(pointRange);
    let rest = range;
    for (const point of damaged) {
      if (rest.start < point.start) this.#subscriptions.add(child, { start: rest.start, end: point.start });
      rest = { start: point.end, end: range.end };
    }
    if (!isEmpty(rest)) this.#subscriptions.add(child, rest);
    return damaged;
  }

  async #number(child: Child, id: number, claim: Claim): Promise<void> {
    const { connection } = child;
    const replica = await this.#host.number(claim);
    if (replica === 0) return;
    // All that came before the answer is applied by then, and goes down no later (numbers.ts N2).
    const behind = await this.#core.rows.lock.run(() => Promise.resolve(this.#core.rows.head));
    if (connection !== child.connection) return;
    child.numbers.push({ behind, message: { kind: "number", id, replica, claim: null } });
    this.#due.add(child);
    this.#core.wake();
  }

  // ── From a child ──

  async #push(child: Child, push: Push): Promise<void> {
    const core = this.#core;
    if (this.#refuses(child, newestClock(push))) return;
    // The child's number is over: a site took it for lost, or for another's. It needs another number.
    if (core.topology.ended(child.replica) !== undefined) return this.#again(child);
    const connection = child.connection;
    const rows = child.pushes.add(push.rows, push.more);
    if (rows === null) return;
    await core.rows.lock.run(async () => {
      const old = await core.rows.lookup(rows.map((row) => row.key));
      if (connection !== child.connection) return;
      rows.forEach((row, i) => {
        if (core.isCollectable(row)) core.count("refused_collected");
        else core.rows.apply(old[i], { ...row, known: core.depth }, child.id);
      });
      core.clock.hears(child.id, push.clock);
      child.pushed = Math.max(child.pushed, push.upTo);
      child.stable = Math.max(child.stable, push.stable);
      child.floor = push.floor;
      this.#pushed.set(child, { replica: child.replica, upTo: child.pushed });
      const isFirst = !child.hasPushed;
      child.hasPushed = true;
      await this.adoptions.settle(child);
      await this.#enrolment.correct(child);
      if (isFirst || rows.length > 0) core.rows.record(CHILD_RECORD + child.id, child.encode());
    });
    core.advanced();
    core.wake();
  }

  #drop(child: Child, range: Range): void {
    this.#subscriptions.remove(child, range);
    child.ranges = this.#subscriptions.count(child);
  }

  #eager(child: Child): void {
    child.eagerUntilMs = this.#nowMs() + EAGER_MS;
    this.#due.add(child);
    this.#host.eager();
    this.#core.wake();
  }

  // ── To the children ──

  /** Notes, at a freeze, the covered part of each fetch: the answer is made from what is covered now. */
  prepare(): void {
    this.#pushedFrozen = this.#pushed;
    this.#pushed = new Map();
    for (const child of this.#due) {
      for (const fetch of child.fetches) {
        fetch.part = this.#core.coverage.coveredPart(fetch.range, fetch.reverse);
      }
    }
  }

  /** Notes which children a commit concerns. */
  committed(frozen: Frozen): void {
    for (const [child, { replica, upTo }] of this.#pushedFrozen) {
      // The child may have another number since the freeze, and have begun another journal, of which this position says
      // nothing (I8).
      if (child.replica === replica) child.acked = upTo;
    }
    for (const [key, row] of frozen.changes) {
      if (row === null) continue;
      const source = frozen.sources.get(key);
      for (const child of this.#subscriptions.at(key)) {
        if (child.id === source) continue; // D3
        child.changed(key);
        this.#due.add(child);
      }
    }
  }

  /** Sends what is due; returns after how many milliseconds it wants to be called again at the latest. */
  async flush(mark: Mark): Promise<number> {
    const now = this.#nowMs(), reads = new FlushReads(this.#core, mark);
    const every = Math.max(MARK_MS_MIN, this.#children.size * MARK_MS_PER_CHILD);
    const sinceMs = now - this.#sweptAtMs, swept = sinceMs >= every;
    let waitMs = swept ? Math.max(every, MARK_IDLE_MS) : every - sinceMs;
    const back = [...this.#due].filter((child) =>
      child.welcomed && !child.sending && child.scanFrom !== null
    );
    await reads.lookBack(back, (key) => this.#subscriptions.at(key));
    for (const child of [...(swept ? this.#children.values() : this.#due)]) {
      // A mark of an earlier incarnation speaks of ancestors that are not those this child was just told of.
      if (mark.replica !== this.#core.replica) return 0;
      if (!child.welcomed || child.sending) continue;
      const eager = child.eagerUntilMs > now;
      // The child's own last mark counts, not the last sweep: others' news must not keep an idle child uninformed.
      const idle = now - child.markedAtMs >= MARK_IDLE_MS;
      if (child.isDue || idle || (swept && (eager || child.isBehind(mark)))) {
        if (child.isDue) await this.#flushChild(child, reads);
        else this.#markChild(child, mark);
      }
      const idleMs = child.markedAtMs + MARK_IDLE_MS - now;
      const dueMs = eager || child.isBehind(mark) ? every : Math.max(every, idleMs);
      waitMs = Math.min(waitMs, dueMs);
    }
    if (swept) this.#sweptAtMs = now;
    return waitMs;
  }

  async #flushChild(child: Child, reads: FlushReads): Promise<void> {
    const { mark } = reads;
    this.#due.delete(child);
    const connection = child.connection;
    const chunks = await this.#changes(child, reads);
    const replies: Message[] = await this.#replies.to(child, reads);
    if (connection !== child.connection) return;
    replies.push(...child.takeNumbers(mark.head));
    // The other numbers go with the next commit.
    if (child.numbers.length > 0) this.#due.add(child);
    const feeds = chunks.map((chunk) => this.#feed(child, mark, chunk));
    this.#marked(child, mark);
    this.#sendAll(child, mark.head, [...feeds, ...replies]);
  }

  /** Sends the mark and nothing else: most of what a parent of many children sends, so it waits for nothing. */
  #markChild(child: Child, mark: Mark): void {
    this.#due.delete(child);
    this.#marked(child, mark);
    this.#sendAll(child, mark.head, [this.#feed(child, mark, { rows: [], more: false })]);
  }

  #feed(child: Child, mark: Mark, chunk: Pick<Feed, "rows" | "more">): Feed {
    return {
      kind: "feed",
      upTo: mark.head,
      clock: mark.clock,
      down: mark.down,
      stable: mark.stable,
      reach: mark.reach,
      acked: child.acked,
      watermark: mark.watermark,
      isFull: mark.isFull && child.hasPushed,
      ...chunk,
    };
  }

  #marked(child: Child, mark: Mark): void {
    child.cursor = mark.head;
    child.markedAtMs = this.#nowMs();
    child.markedHead = mark.head;
    child.markedDown = mark.down;
    child.markedAcked = child.acked;
  }

  async #sendAll(child: Child, head: Position, messages: readonly Message[]): Promise<void> {
    const { connection } = child;
    child.sending = true;
    if (!this.#host.isSafe(head)) await this.#host.safe(head);
    if (connection !== child.connection) return;
    for (const message of messages) {
      await this.#core.send(child.id, message);
      if (messages.length > 1) await this.#core.ports.clock.turn();
      if (connection !== child.connection) return;
    }
    child.sending = false;
    if (this.#due.has(child)) this.#core.wake();
  }

  /** Reads committed rows that the child covers and has not got, in journal order (D1). */
  #changes(child: Child, reads: FlushReads) {
    const has = (key: Key) => this.#subscriptions.has(child, key);
    const keys = [...child.dirty].filter(has), after = child.scanFrom;
    child.dirty.clear();
    child.scanFrom = null;
    return after === null ? reads.changes(keys) : reads.changesSince(child, after, { keys, has });
  }
}
