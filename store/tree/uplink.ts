/**
 * This site's side of the tree edge to its parent.
 *
 * Stages: disconnected → hello sent → welcomed (pushes, feeds, fetches) → disconnected …
 *
 * P1  A push holds every row that is pending to the parent, past what was pushed before, as committed at the mark's
 *     head, and speaks of that head (PROTOCOL I1).
 * P2  A feed's rows are applied before its positions, in one step (I2); rows outside coverage are ignored (I3).
 * P3  A fetched range replaces what stands here, except for rows pending to the parent, which are merged (I3).
 * P4  One fetch serves all who wait for its range.
 * P5  Rows for which the parent can't vouch any more stay as stale rows, and are compared before they are fetched
 *     (resync.ts).
 * P6  The answer to a hello is taken only while no other hello was said since. Pushes that rest on it would come to the
 *     parent behind the later hello's answer, and what they leave out as pushed before would count there as taken.
 */
import { StoreUnavailable } from "../api/api.ts";
import { newestClock } from "../core/clock_guard.ts";
import type { Core, Mark } from "../core/core.ts";
import { damagedRow, DamagedRowError } from "../core/damage.ts";
import { Fetches, type Fetching } from "./fetches.ts";
import type { Key } from "../model/key.ts";
import {
  EAGER_MS,
  FETCHES_MAX,
  MARK_IDLE_MS,
  MARK_MS_MIN,
  MESSAGE_BYTES_TARGET,
  REGAIN_EVERY_MS,
  WAIT_MS_MAX,
} from "../model/limits.ts";
import {
  chunks,
  type Claim,
  type Feed,
  type Fetched,
  type Message,
  type MovedSite,
  type Welcome,
  type WireRow,
} from "../wire/message.ts";
import { assertRooted, OlderDisk } from "../core/lost.ts";
import type { SiteId } from "../model/ports.ts";
import { common, overlap, pointRange, type Range, WHOLE } from "../model/range.ts";
import { Resync } from "./resync.ts";
import type { Frozen } from "../rows/rows.ts";
import { type ClockValue, type Position, type ReplicaNumber, type Row, unixMs } from "../model/row.ts";
import { Stager } from "../core/stager.ts";
import { encodeJson, keptKey, ROOT_ONLY_RANGE, SYSTEM_RANGE } from "../members/topology.ts";
import { broughtAlong, isParentKnown, isSaidEnough } from "../change/moving.ts";

export class Uplink {
  readonly #core: Core;
  readonly #dirty = new Set<Key>();
  readonly #feeds = new Stager();
  readonly #fetching = new Fetches();
  readonly #resync: Resync;
  readonly #numbers = new Map<number, { claim: Claim; resolve: (number: ReplicaNumber) => void }>();
  readonly #voided: () => void;
  #connected = false;
  #welcomed = false;
  #sending = false;
  /** Contents of the last hello that may change before it is answered (moving.ts M1). */
  #said: { readonly moved: MovedSite | undefined; readonly coverage: readonly Range[] } = {
    moved: undefined,
    coverage: [],
  };
  /** Number that counts connections: what was begun on one must not go on over the next. */
  #connection = 0;
  #nextId = 1;
  /** True while the parent takes no pushes. */
  #isHeld = false;
  #sentUpTo: Position = 0;
  #sentStable: ClockValue = 0;
  #sentAtMs = -Infinity;
  /**
   * True where a feed has come since the last push: a parent of so many children that it says little is told as little.
   */
  #hasHeard = true;
  #eagerSentMs = -Infinity;
  /** True while another attempt to cover the watched ranges is due. */
  #isWatchDue = false;

  /** @param voided called when what children were told on their hello holds no longer: they must say it again. */
  constructor(core: Core, voided: () => void) {
    this.#core = core;
    this.#voided = voided;
    this.#resync = new Resync(core, this.#fetching, {
      send: (message) => void (this.#welcomed && this.#send(message)),
      request: (fetching) => this.#request(fetching),
      fetch: (range) => this.fetch(range, 0, false),
      nextId: () => this.#nextId++,
    });
  }

  get connected(): boolean {
    return this.#welcomed;
  }

  get #parent(): SiteId {
    return this.#core.config.parent ?? "";
  }

  /** Reports whether a range is being fetched, so that it must not be dropped. */
  fetches(range: Range): boolean {
    return this.#fetching.touch(range);
  }

  connect(): void {
    const core = this.#core;
    this.#connected = true;
    this.#welcomed = false;
    this.#sending = false;
    this.#connection++;
    this.#feeds.clear();
    this.#resync.connect();
    for (const f of [...this.#fetching.all()]) {
      f.stager.clear();
      this.#fetching.endUnwanted(f);
    }
    const moved = broughtAlong(core, this.#parent);
    this.#said = { moved, coverage: core.coverage.all() };
    this.#send({
      kind: "hello",
      attempt: this.#connection,
      replica: core.replica,
      parentReplica: core.parentReplica,
      cursor: core.down[core.depth - 1] ?? 0,
      clock: Math.max(core.clock.last, core.clock.wall()),
      tier: core.config.tier,
      url: core.config.url,
      linkAddress: core.config.linkAddress,
      coverage: this.#said.coverage,
      ...(moved === undefined ? {} : { moved }),
    });
  }

  /** Says hello again where the last one is not answered yet and its contents have changed. */
  retell(): void {
    if (this.#connected && !this.#welcomed) this.connect();
  }

  /** Ends the connection: the link has ended, or the site is about to have another parent, which is connected next. */
  disconnect(): void {
    this.#core.clockGuard.forget(this.#parent);
    this.#connected = this.#welcomed = false;
    this.#connection++;
  }

  #send(message: Message): Promise<void> {
    return this.#core.send(this.#parent, message);
  }

  async receive(message: Message): Promise<void> {
    if (!this.#connected) return;
    if (message.kind === "welcome") await this.#welcome(message);
    else if (message.kind === "again") this.connect();
    else if (message.kind === "wall") this.#core.wall.hears(this.#parent, message.ms, true);
    else if (!this.#welcomed) this.#core.count("early");
    else if (message.kind === "feed") await this.#feed(message);
    else if (message.kind === "fetched") await this.#fetched(message);
    else if (message.kind === "compared") await this.#resync.compared(this.#parent, message); // resync.ts Y1
    else if (message.kind === "number") this.#numbers.get(message.id)?.resolve(message.replica);
    else this.#core.refused("unexpected_message", this.#parent, { kind: message.kind });
  }

  // ── Joining ──

  /** Reports whether the parent's clock is too far ahead; this site joins it again when it is not. */
  #refuses(clock: ClockValue): boolean {
    const refused = this.#core.clockGuard.refuses(this.#parent, clock, () => {
      if (connection === this.#connection) this.connect();
    });
    if (refused) {
      this.#welcomed = false;
      this.#send({ kind: "wall", ms: this.#core.wall.saysMs });
    }
    // Nothing that the parent says on this connection until then is to be taken either.
    const connection = refused ? ++this.#connection : 0;
    return refused;
  }

  async #welcome(welcome: Welcome): Promise<void> {
    const core = this.#core;
    if (welcome.attempt !== this.#connection) return core.count("early"); // P6
    core.wall.meets(unixMs(welcome.clock));
    if (this.#refuses(welcome.clock)) return;
    const reborn = welcome.replica !== core.replica || welcome.parentReplica !== core.parentReplica;
    if (!reborn && !core.hasHad(welcome.pushed)) throw new OlderDisk(core, this.#parent, welcome.pushed);
    const connection = this.#connection;
    await core.rows.lock.run(async () => {
      core.clock.hears(this.#parent, welcome.clock);
      if (reborn) await this.#beginAnew(welcome, connection);
      else for (const range of welcome.refused) await this.#forget(range);
    });
    // This site was moved again meanwhile, or says another hello first.
    if (connection !== this.#connection) return;
    core.hasMet = true; // handoff.ts H17
    this.#isHeld = false;
    this.#sentUpTo = Math.max(welcome.pushed, core.acked);
    this.#dirty.clear();
    for (const entry of core.pending.after(this.#sentUpTo, core.depth)) this.#dirty.add(entry.key); // P1
    this.#welcomed = this.#hasHeard = true;
    if (!reborn) this.#dropEvicted(welcome.refused);
    // The system rows come before anything else that was asked for: they say what may be missing.
    const asked = [...this.#fetching.all()];
    if (!core.coverage.hasRange(SYSTEM_RANGE)) this.fetch(SYSTEM_RANGE, 0, false).catch(() => {});
    for (const f of asked) this.#request(f);
    for (const [id, { claim }] of this.#numbers) this.#claim(id, claim);
    // A child that covers a range which is dropped here now would wait for its changes for ever (I3).
    if (!reborn && welcome.refused.length > 0) this.#voided();
    this.#coverWatched();
    this.uncovered(core.damage.atParent);
    this.#resync.goOn();
    core.advanced();
    core.wake();
  }

  /**
   * Drops, at the parent, ranges that the hello named as covered, and that were evicted before its answer came: the
   * parent would feed and keep them for ever.
   */
  #dropEvicted(refused: readonly Range[]): void {
    const { coverage } = this.#core;
    for (const range of this.#said.coverage) {
      const isUnheard = refused.some(({ start, end }) => start === range.start && end === range.end);
      if (isUnheard || coverage.within(range).length > 0) continue;
      this.#send({ kind: "drop", range });
    }
  }

  /**
   * Fetches rows that the disk lost and the parent has: system rows, and rows that somebody watches or waits for, at
   * once.
   */
  uncovered(keys: readonly Key[]): void {
    if (!this.#welcomed) return;
    if (!this.#core.coverage.hasRange(SYSTEM_RANGE)) this.fetch(SYSTEM_RANGE, 0, false).catch(() => {});
    this.#coverWatched();
    for (const key of keys) {
      if (this.#core.damage.isAtParent(key)) this.fetch(pointRange(key), 0, false).catch(() => {});
    }
  }

  /**
   * Covers again the ranges that somebody here watches, and tells the watchers: the changes would not come otherwise.
   */
  #coverWatched(): void {
    const { watchers, coverage } = this.#core;
    for (const range of watchers.ranges()) {
      if (coverage.hasRange(range)) continue;
      const tell = () => {
        for (const changed of watchers.within(range)) changed();
      };
      this.fetch(range, 0, false).then(tell, (error) => this.watchFailed(error));
    }
  }

  /** Tries again later to cover watched ranges: where a row of one is damaged above, somebody may write it anew. */
  watchFailed(error: unknown): void {
    if (damagedRow(error) === null || this.#isWatchDue) return;
    this.#isWatchDue = true;
    this.#core.ports.clock.after(REGAIN_EVERY_MS, () => {
      this.#isWatchDue = false;
      if (this.#welcomed && !this.#core.closed) this.#coverWatched();
    });
  }

  /**
   * Begins a new incarnation: all positions above are void; what is pending is kept and will be pushed again. Where the
   * hello says too little by now, nothing is changed, and another hello is said.
   */
  async #beginAnew(welcome: Welcome, connection: number): Promise<void> {
    const core = this.#core;
    const kept = [...core.pending.after(0, 0)].map((entry) => entry.key);
    const rows = await core.rows.lookup(kept);
    const { seen } = await core.rows.list(SYSTEM_RANGE, 0, false);
    // From here on nothing is waited for: sessions come without a wait, and would see a part of what follows; and a
    // disk with the new number has all that was kept, and the row that says so.
    if (connection !== this.#connection) return;
    if (!isSaidEnough(core, this.#said.moved)) {
      core.count("hello_outdated");
      return this.connect();
    }
    core.uncover(WHOLE);
    for (const row of seen) if (core.pending.get(row.key) === undefined) this.#drop(row);
    const before = core.replica, known = core.via[0]?.top ?? 0, whole = isParentKnown(core);
    core.rootFloor = Math.max(core.rootFloor, core.down[0] ?? 0);
    core.replica = welcome.replica;
    core.parentReplica = welcome.parentReplica;
    core.setPath(welcome.path);
    // At once: the children know of other ancestors than those that count from here on.
    this.#voided();
    // The callers ask anew, each under its new place in the tree: a number for the old place would be nobody's.
    for (const { resolve } of [...this.#numbers.values()]) resolve(0);
    core.damage.anew();
    core.rootedTo = core.rows.head;
    for (const row of rows) if (row !== undefined) core.rows.replant({ ...row, known: core.depth });
    // The row comes after all that was kept, in this journal and so in every other (succession.ts).
    if (before !== 0) {
      core.rows.put(core.own(keptKey(before), encodeJson({ floor: core.rootFloor, known, whole })));
    }
    core.replantedTo = core.rows.head;
    core.count("incarnations");
  }

  /** Drops coverage of a range. System rows go, but for those pending: they are asked for as a whole. */
  async #forget(range: Range): Promise<void> {
    const core = this.#core;
    core.uncover(range); // P5
    const { seen } = await core.rows.list(common(range, SYSTEM_RANGE), 0, false);
    for (const row of seen) if (!core.isPendingToParent(row)) this.#drop(row);
  }

  #drop(row: Row): void {
    this.#core.rows.drop(row);
    this.#core.pending.remove(row.key);
  }

  // ── Push ──

  /** Notes the rows that a commit has made pending. */
  committed(frozen: Frozen): void {
    const { depth } = this.#core;
    // P1
    for (const [key, row] of frozen.changes) if (row !== null && row.known >= depth) this.#dirty.add(key);
  }

  /** Pushes what is due; returns after how many milliseconds the next push is due at the latest. */
  async flush(mark: Mark): Promise<number> {
    if (!this.#welcomed || this.#sending || this.#isHeld || this.#core.resyncing) return MARK_IDLE_MS;
    if (this.#core.damage.isUnclear) return MARK_IDLE_MS; // damage.ts G2
    if (mark.replica !== this.#core.replica || mark.partial) return 0;
    const stable = mark.stable.at(-1) ?? 0;
    const wait = this.#pushWaitMs(mark);
    if (wait > 0) return wait;
    const keys = [...this.#dirty], connection = this.#connection;
    this.#dirty.clear();
    const rows = (await this.#core.rows.committed(keys)).sort((a, b) => a.position - b.position);
    if (connection !== this.#connection) return MARK_IDLE_MS;
    if (this.#core.damage.holdsBack(keys)) {
      for (const key of keys) this.#dirty.add(key);
      return MARK_IDLE_MS;
    }
    this.#sentUpTo = mark.head;
    this.#sentStable = stable;
    this.#sentAtMs = this.#core.steady.nowMs();
    this.#hasHeard = false;
    this.#sendAll([...chunks(rows, MESSAGE_BYTES_TARGET)].map((chunk) => ({
      kind: "push",
      upTo: mark.head,
      stable,
      floor: mark.floor,
      clock: mark.clock,
      ...chunk,
    })));
    return MARK_IDLE_MS;
  }

  #pushWaitMs(mark: Mark): number {
    if (this.#dirty.size > 0) return 0;
    const now = this.#core.steady.nowMs();
    const isAhead = mark.head > this.#sentUpTo;
    const news = isAhead || now < this.#eagerSentMs + EAGER_MS;
    if ((mark.stable.at(-1) ?? 0) <= this.#sentStable) {
      // A child is away, or keeps what it has. Rows that came from above count as pending until this mark is
      // acknowledged.
      return isAhead ? this.#sentAtMs + MARK_IDLE_MS - now : MARK_IDLE_MS;
    }
    if (!(news || this.#hasHeard)) return MARK_IDLE_MS;
    return this.#sentAtMs + (news ? MARK_MS_MIN : MARK_IDLE_MS) - now;
  }

  async #sendAll(messages: readonly Message[]): Promise<void> {
    const connection = this.#connection;
    this.#sending = true;
    for (const message of messages) {
      await this.#send(message);
      if (messages.length > 1) await this.#core.ports.clock.turn();
      if (connection !== this.#connection) return;
    }
    this.#sending = false;
    this.#core.wake();
  }

  /**
   * Tells the parent what time it is, where the clocks of this site's rows and messages do not tell (timekeeper.ts).
   */
  tellWall(ms: number): void {
    if (this.#connected) this.#send({ kind: "wall", ms });
  }

  /** Asks the parent for marks at once, for a while: somebody here waits. */
  eager(): void {
    const now = this.#core.steady.nowMs();
    if (!this.#welcomed || now < this.#eagerSentMs + EAGER_MS / 2) return;
    this.#eagerSentMs = now;
    this.#send({ kind: "eager" });
  }

  /** Gets a fresh replica number from the root; 0 where this site has taken another one meanwhile. */
  number(claim: Claim): Promise<ReplicaNumber> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#numbers.set(id, {
        claim,
        resolve: (number) => {
          this.#numbers.delete(id);
          resolve(number);
        },
      });
      if (this.#welcomed) this.#claim(id, claim);
    });
  }

  #claim(id: number, claim: Claim): void {
    this.#send({ kind: "number", id, replica: 0, claim });
  }

  // ── Feed ──

  async #feed(feed: Feed): Promise<void> {
    const core = this.#core;
    if (this.#refuses(newestClock(feed))) return;
    this.#hasHeard = true;
    const rows = this.#feeds.add(feed.rows, feed.more);
    if (rows === null) return;
    await core.rows.lock.run(async () => {
      const mine = rows.filter((row) => core.coverage.covers(row.key)); // P2
      const old = await core.rows.lookup(mine.map((row) => row.key));
      mine.forEach((row, i) => {
        // The disk may have lost the row just now.
        if (core.coverage.covers(row.key)) core.rows.apply(old[i], this.#fromAbove(row));
      });
      core.clock.hears(this.#parent, feed.clock);
      this.#reflect(feed); // P2, core.ts O2
      core.takes(core.depth - 1, mine);
    });
    core.advanced();
    core.wake();
  }

  #fromAbove(row: WireRow): WireRow {
    return { ...row, known: Math.min(row.known, this.#core.depth - 1) };
  }

  /** Takes in the mark of a feed whose rows have just been applied. */
  #reflect(feed: Feed): void {
    const core = this.#core, parent = core.depth - 1;
    if (feed.down.length !== parent || feed.stable.length !== core.depth || feed.reach.length !== parent) {
      throw new Error(`the parent speaks of ${feed.stable.length} ancestors, this site has ${core.depth}`);
    }
    core.down = [...feed.down, feed.upTo].map((position, j) => Math.max(position, core.down[j] ?? 0));
    core.reach[parent]?.add(feed.acked, feed.upTo);
    feed.reach.forEach(([own, theirs], j) => {
      core.via[j]?.add(own, theirs);
      core.reach[j]?.add(core.reach[parent]?.reached(own) ?? 0, theirs);
    });
    core.damage.acked(core.acked);
    core.stepFed();
    core.pending.settle(core.reach[0]?.top ?? 0);
    // Ends of incarnations come with what is covered: without them newer clocks would promise too much (I8).
    if (core.coverage.hasRange(SYSTEM_RANGE)) {
      core.stable = feed.stable.map((clock, j) => Math.max(clock, core.stable[j] ?? 0));
      core.watermark = Math.max(core.watermark, feed.watermark);
    }
    core.fedClock = Math.max(core.fedClock, feed.clock);
    this.#isHeld = feed.isFull;
  }

  // ── Fetch ──

  /** Resolves when the range (or the part with its first or last `limit` live rows) is covered. */
  fetch(range: Range, limit: number, reverse: boolean, trace = ""): Promise<void> {
    const f = this.#fetchingOf(range, limit, reverse, trace);
    f.isWanted = true;
    return f.done.promise;
  }

  /** Fetches a range for a reader that does not wait for ever. */
  async fetchSoon(range: Range, limit: number, reverse: boolean, trace: string): Promise<void> {
    const unreachable = (why: string) => {
      const text =
        `a row that ${this.#core.config.site} does not hold could not be fetched from ${this.#parent} ${why}`;
      return new StoreUnavailable("store_unreachable", text);
    };
    const isShared = this.#fetching.serving({ range, limit, reverse }) !== undefined;
    if (!isShared && this.#fetching.size >= FETCHES_MAX) { // fetches.ts F3
      throw unreachable(`while ${FETCHES_MAX} others are asked for; ask again`);
    }
    const f = this.#fetchingOf(range, limit, reverse, trace);
    const reader = Promise.withResolvers<void>();
    const cancel = this.#core.ports.clock.after(
      WAIT_MS_MAX,
      () => reader.reject(unreachable(`within ${WAIT_MS_MAX} ms`)),
    );
    f.waiting.add(reader);
    try {
      await reader.promise;
    } finally {
      cancel();
      f.waiting.delete(reader);
      // On a link that holds, an answer on its way may come for the next reader that asks.
      if (!this.#welcomed) this.#fetching.endUnwanted(f);
    }
  }

  /** Returns the fetch that will serve for a question: one under way, or a new one. */
  #fetchingOf(range: Range, limit: number, reverse: boolean, trace: string): Fetching {
    const known = this.#fetching.serving({ range, limit, reverse });
    if (known !== undefined) { // P4
      this.#core.count("fetch_shared");
      return known;
    }
    const f = this.#fetching.begin({ kind: "fetch", id: this.#nextId++, range, limit, reverse, trace });
    this.#core.count("fetch");
    if (this.#welcomed) this.#request(f);
    return f;
  }

  #request(fetching: Fetching): void {
    const { id, range, limit, reverse, trace } = fetching;
    if (this.#resync.takes(fetching)) return;
    this.#send({ kind: "fetch", id, range, limit, reverse, trace });
  }

  async #fetched(fetched: Fetched): Promise<void> {
    const core = this.#core;
    if (this.#refuses(newestClock({ clock: 0, rows: fetched.rows }))) return;
    const f = this.#fetching.get(fetched.id);
    const rows = f?.stager.add(fetched.rows, fetched.more);
    if (f === undefined || rows === undefined || rows === null) return;
    this.#fetching.end(f);
    if (fetched.refused) {
      f.done.reject(
        overlap(fetched.range, ROOT_ONLY_RANGE)
          ? new StoreUnavailable("root_only", "these rows are kept at the root only")
          : new DamagedRowError(`a disk above site ${this.#core.config.site}`, fetched.range.start),
      );
      return;
    }
    await core.rows.lock.run(() => this.#replace(fetched.range, rows));
    assertRooted(core);
    f.done.resolve();
    core.wake();
  }

  async #replace(range: Range, rows: readonly WireRow[]): Promise<void> {
    const core = this.#core;
    const { seen } = await core.rows.list(range, 0, false);
    const fetched = new Set(rows.map((row) => row.key));
    const old = new Map(seen.map((row) => [row.key, row]));
    // System rows first: the ends of incarnations among them tell which rows may be collected.
    for (const row of rows) core.rows.apply(old.get(row.key), this.#fromAbove(row));
    for (const row of seen) {
      if (fetched.has(row.key) || (core.isPendingToParent(row) && !core.isCollectable(row))) continue; // P3
      core.topology.apply({ ...row, value: null });
      this.#drop(row);
    }
    core.takes(core.depth - 1, rows);
    core.cover(range);
  }
}
