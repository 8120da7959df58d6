/**
 * Stateful session at home: its log goes to all owners before anything that follows from it leaves.
 *
 * Life: opened (recovery.ts has its own disk's log made that of this epoch) → its owners join → those that are missing
 * are replaced → commits, checkpoints, rests → over: another site has it, it has ended, or this site stops.
 *
 * The rules (docs/protocol/homes.md has them all):
 * H2  Owners that the arbiter has on record hold everything that was ever released: they are recorded after they do.
 * H3  A commit is released when it is on disk at all owners of each configuration that may be on record: while the
 *     arbiter is asked for another, that is both.
 * H4  In one epoch there is one home, and each owner's log is a first part of its log; so entries with one number and
 *     one epoch are the same, and so is all before them.
 * H11 Owners that are on record take the place of those before when this site's own disk knows of it: so an arbiter
 *     that hears this site hears of it (certainty.ts, AW1). The others are told, for an arbiter that has lost it
 *     (rebuild.ts, RB3).
 * H16 A run may be of other code than what is before the base that it goes on from. So an owner is sent what comes after
 *     that base when it has a base as new: behind each base, on any disk, is a log of one code.
 * H6  The home changes its owners only through the arbiter; it begins no log at an owner that is on record: one that
 *     does not know it has been told to forget it, by a later home.
 * H8  Once an owner has promised a later epoch nothing is released any more, and nothing is told but `superseded`.
 * H18 Nobody is sent anything for a home that is over: its followers are closed, one that is begun afterwards too. One
 *     that went on would try again at once, for ever, and nothing else on its site would.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import { HomeError, type Owner, type StatefulName } from "../log/api.ts";
import { sameOwners } from "./arbiter.ts";
import type { Base, HomeWord, LogCopy, LogPiece, LogState, Reply, SiteAsk } from "../log/asks.ts";
import type { Asking } from "../log/exchange.ts";
import { Follower, type FollowerHome, type Following } from "../log/follower.ts";
import { disksOf, HostOwners, isClient } from "../log/host_owners.ts";
import { FULL_RETRY_MS, LOG_PACKET_BYTES_TARGET, MEND_RETRY_MS } from "../log/limits.ts";
import type { LiveHomePorts, LiveHomeStart } from "./live_home_ports.ts";
import { shownName } from "../log/name.ts";
import { ownCopy } from "./own_copy.ts";
import type { StateMark } from "../log/state_parts.ts";

interface Waiter {
  readonly last: number;
  readonly resolve: () => void;
  readonly reject: (error: HomeError) => void;
}

/** Listener that serves from a home; a home that rests has none. */
export interface HomeListener {
  /** Notes that all up to an entry is released. */
  onHeld(through: number): void;
  onOver(error: HomeError): void;
}

/** Live home (see the file's header). */
export class LiveHome implements FollowerHome {
  readonly #ports: LiveHomePorts<LiveHome>;
  readonly name: StatefulName;
  readonly epoch: number;
  readonly seed: Uint8Array;
  readonly version: string;
  /** Number of the configuration, as the arbiter has it. */
  #config: number;
  #recorded: readonly Owner[];
  /** Owners that the arbiter was asked for, until this site's own disk knows that they are on record (H11). */
  #proposed: readonly Owner[] | null = null;
  #followers: readonly Follower[] = [];
  readonly #own: Follower;
  /** Clients and origins that hold its log, too (host_owners.ts has the rules). */
  readonly hosts: HostOwners;
  /** Number of the next follower; the own disk's is 0 (recovery.ts). */
  #turn = 0;
  /** Pieces that some owner may not have yet, from the oldest on. */
  readonly #pending: LogPiece[] = [];
  readonly #waiters: Waiter[] = [];
  /** Entry that owners which joined at the start have to have before they are recorded (H2). */
  readonly #floor: number;
  /** Last entry that is released. */
  held = 0;
  last: number;
  /** Entry of the base that the run goes on from (H16). */
  from: number;
  #over: HomeError | null = null;
  #isChecking = false;
  #triedMs = -Infinity;
  #retriedMs = -Infinity;
  /** Asks that end with this home. */
  readonly #asks: Pick<Asking, "cancel">[] = [];
  /** Follower that gets all that owners get, and is none (move.ts, M3). */
  #guest: Follower | null = null;
  listener: HomeListener | null = null;
  /** Sites that were asked to promise, since a home of before may still write there. */
  readonly #fences = new Map<SiteId, Promise<void>>();

  constructor(ports: LiveHomePorts<LiveHome>, start: LiveHomeStart) {
    this.#ports = ports;
    this.name = start.name;
    this.epoch = start.row.epoch;
    this.#config = start.row.config;
    this.#recorded = start.row.owners;
    this.seed = start.seed;
    this.version = start.version;
    this.hosts = new HostOwners(this.#recorded, start.hosts, this);
    const state = this.state();
    this.last = this.#floor = state.segments.at(-1)?.upTo ?? state.base.at;
    this.from = state.base.at;
    this.hosts.opened(this.#floor);
    const { disk, isBorn: mayInstall } = start;
    const own = this.#own = this.#follow(ports.site, { disk, isOwn: true, mayInstall: true });
    const others = disksOf(this.#recorded).filter((one) => one.site !== ports.site || one.disk !== disk)
      .map(({ site, disk }) => this.#follow(site, { disk, mayInstall }));
    // Followers join when all are there: what the own disk has is held by nobody else yet (H3).
    own.join({ disk, aligned: true, log: state });
    for (const other of others) other.join(start.promised.get(other.site) ?? null);
    this.#checkSoon();
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  /** Error with which it ended; null: it is not over. */
  get overBy(): HomeError | null {
    return this.#over;
  }

  /** True where something waits for an owner that is not there. */
  get isStalled(): boolean {
    return this.held < this.last && this.#required().some((follower) => this.#isUseless(follower));
  }

  get owners(): readonly Owner[] {
    return this.#recorded;
  }

  /**
   * Word for an arbiter that has lost what it knew. While the arbiter is asked for other owners it may have had these
   * on record, and may have them now in any case, since they have everything (H2).
   */
  get word(): HomeWord {
    const { epoch } = this, proposed = this.#proposed, config = this.#config;
    return proposed === null
      ? { epoch, config, owners: this.#recorded, isChanging: false }
      : { epoch, config: config + 1, owners: proposed, isChanging: true };
  }

  // ── What the log is told ──

  /** Appends a piece; resolves when all owners have it. */
  append(piece: Omit<LogPiece, "epoch" | "first">): Promise<void> {
    if (this.#over !== null) return Promise.reject(this.#over);
    const appended = { ...piece, epoch: this.epoch, first: this.last + 1 };
    this.#pending.push(appended);
    this.last += piece.count;
    this.hosts.onAppended(appended);
    for (const follower of this.#followers) follower.pump();
    return this.whenHeld(this.last);
  }

  /** Notes the entry of the base that a run goes on from. */
  goesOnFrom(at: number): void {
    this.from = at;
  }

  /** Drops the listener, until the home is woken. */
  rests(): void {
    this.listener = null;
  }

  /** Resolves when entries up to `last` are held. */
  whenHeld(last: number): Promise<void> {
    if (this.#over !== null) return Promise.reject(this.#over);
    if (last <= this.held && this.#recorded.length > 0) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiters.push({ last, resolve, reject }));
  }

  /** Gives the other owners the base with which this site's own log begins now. */
  async rebased(at: number): Promise<void> {
    for (const follower of this.#followers) follower.pump();
    while (this.#over === null && this.#required().some((follower) => follower.baseAt < at)) {
      await this.#nextAdvance();
    }
    if (this.#over !== null) throw this.#over;
    this.hosts.onBased(at);
  }

  /** Resolves when all owners on record have joined. */
  async joined(): Promise<void> {
    while (this.#over === null && !this.#required().every(({ isJoined }) => isJoined)) {
      await this.#nextAdvance();
    }
    if (this.#over !== null) throw this.#over;
  }

  /** Has a site promise this epoch, whether it is an owner or was one: a home of before is over there (H8). */
  fence(site: SiteId): Promise<void> {
    const fenced = this.#fences.get(site) ?? this.#fence(site);
    this.#fences.set(site, fenced);
    return fenced;
  }

  async #fence(site: SiteId): Promise<void> {
    const { name, epoch } = this, never = new Promise<void>(() => {});
    if (this.#over !== null) return never;
    const asking = this.#ports.ask(site, { kind: "promise", name, disk: 0, epoch });
    const ended = this.#endsWith(asking);
    const reply = await asking.reply;
    ended();
    if (reply.kind === "promised") return;
    if (reply.kind === "refused" && reply.why === "superseded") this.superseded(reply.epoch);
    return never;
  }

  /** Asks the arbiter; null where this home is over. */
  async askArbiter(ask: SiteAsk): Promise<Reply | null> {
    for (;;) {
      if (this.#over !== null) return null;
      const asking = this.#ports.ask(this.#ports.arbiter(), ask);
      const over = Promise.withResolvers<null>();
      const ended = this.#endsWith({
        cancel: () => {
          asking.cancel();
          over.resolve(null);
        },
      });
      const reply = await Promise.race([asking.reply, over.promise]);
      ended();
      if (reply === null) return null;
      if (reply.kind !== "nobody" && reply.kind !== "waits") return reply;
      await this.nextTick();
    }
  }

  /** Returns the log as it is on the own disk, with all that was appended before. */
  async copy(): Promise<LogCopy> {
    const { last } = this;
    while (this.#over === null && this.#own.acked < last) await this.#nextAdvance();
    for (;;) {
      if (this.#over !== null) throw this.#over;
      const copy = await ownCopy(this.#ports, this.name);
      if (copy !== null) return { ...copy, seed: this.seed, version: this.version };
      // A base is on its way to the disk: nothing that is awaited here lets it get there.
      await this.nextChange();
    }
  }

  // ── A move (move.ts) ──

  get baseAt(): number {
    return this.#ports.baseAt(this.name);
  }

  nowMs(): number {
    return this.#ports.nowMs();
  }

  unfit(site: SiteId): string | null {
    const ports = this.#ports;
    if (site === ports.site) return "it is at home there";
    if (!ports.isKnown(site)) return "there is no such site";
    const standing = ports.standing(site);
    return standing === "suspected" || standing === "dead" ? "that site does not answer" : null;
  }

  welcomed(site: SiteId): Follower {
    const known = this.#followers.find((one) => one.site === site && !one.isOwn && !one.isLost);
    const guest = known ?? this.#follow(site);
    if (known === undefined) guest.join();
    return this.#guest = guest;
  }

  dismissed(site: SiteId): void {
    if (this.#guest?.site !== site) return;
    this.#guest = null;
    this.#checkSoon();
  }

  async nextChange(): Promise<void> {
    await Promise.race([this.#nextAdvance(), this.nextTick()]);
  }

  // ── What happens to it ──

  /** Ends the home: another site has the session (H8). */
  supersede(why: string, site: SiteId | null = null): void {
    if (this.#over === null) this.#ports.count("superseded");
    this.end(
      new HomeError("superseded", `cannot go on as the home of ${shownName(this.name)}: ${why}`, site),
    );
  }

  end(error: HomeError): void {
    if (this.#over !== null) return;
    this.#over = error;
    for (const follower of this.#followers) follower.close();
    for (const asking of this.#asks.splice(0)) asking.cancel();
    for (const { reject } of this.#waiters.splice(0)) reject(error);
    for (const resolve of this.#advances.splice(0)) resolve();
    for (const resolve of this.#ticks.splice(0)) resolve();
    this.listener?.onOver(error);
    this.#ports.over(this, error);
  }

  /** Notes that a site's standing has changed. */
  changed(site: SiteId): void {
    if (this.#followers.some((follower) => follower.site === site)) this.#checkSoon();
  }

  /**
   * Looks after the home four times a second, with thousands that are open: nothing is allocated where nothing is to be
   * done.
   */
  tick(): void {
    if (this.#ticks.length > 0) { for (const resolve of this.#ticks.splice(0)) resolve(); }
    const nowMs = this.#ports.nowMs();
    if (nowMs - this.#retriedMs >= FULL_RETRY_MS) {
      this.#retriedMs = nowMs;
      for (const follower of this.#followers) follower.retry();
    }
    if (nowMs - this.#triedMs >= MEND_RETRY_MS && this.#isShort) this.#checkSoon();
  }

  /** True where there are not as many owners as there are to be, or one is of no use. */
  get #isShort(): boolean {
    let disks = 0;
    for (const owner of this.#recorded) if (!isClient(owner)) disks++;
    if (disks !== this.#ports.f() + 1) return true;
    for (const follower of this.#followers) if (this.#isUseless(follower)) return true;
    return false;
  }

  readonly #ticks: (() => void)[] = [];
  readonly #advances: (() => void)[] = [];

  /** Resolves a moment later, and at once where it is over. */
  nextTick(): Promise<void> {
    return this.#over === null ? new Promise((resolve) => this.#ticks.push(resolve)) : Promise.resolve();
  }

  #nextAdvance(): Promise<void> {
    return new Promise((resolve) => this.#advances.push(resolve));
  }

  /** Cancels an ask when this home is over, unless the function that it returns was called before. */
  #endsWith(asking: Pick<Asking, "cancel">): () => void {
    this.#asks.push(asking);
    return () => {
      const at = this.#asks.indexOf(asking);
      if (at >= 0) this.#asks.splice(at, 1);
    };
  }

  // ── Release ──

  /** Returns the owners that a release waits for (H3), and the own disk, which the others are sent from. */
  #required(): Follower[] {
    const owners = [...this.#recorded, ...this.#proposed ?? []];
    return this.#followers.filter(({ isOwn, site, disk }) =>
      isOwn || owners.some((owner) => owner.site === site && owner.disk === disk)
    );
  }

  advanced(): void {
    if (this.#over !== null) return;
    for (const resolve of this.#advances.splice(0)) resolve();
    const required = this.#required();
    if (this.#recorded.length > 0) {
      const held = Math.min(this.hosts.held, ...required.map(({ acked }) => acked)); // H3
      if (held > this.held) {
        this.held = held;
        this.hosts.onReleased();
      }
    }
    const kept = Math.min(this.held, ...required.map(({ acked }) => acked));
    const cut = this.#pending.findIndex(({ first, count }) => first + count - 1 > kept);
    this.#pending.splice(0, cut < 0 ? this.#pending.length : cut);
    if (this.#recorded.length > 0) {
      this.listener?.onHeld(this.held);
      while (this.#waiters[0] !== undefined && this.#waiters[0].last <= this.held) {
        this.#waiters.shift()?.resolve();
      }
    }
    this.#checkSoon();
  }

  // ── For its followers ──

  state(): LogState {
    return this.#ports.state(this.name);
  }

  ask(to: SiteId, ask: SiteAsk): Asking {
    return this.#ports.ask(to, ask);
  }

  base(): Promise<Base | null> {
    return this.#ports.base(this.name);
  }

  hasState(mark: StateMark): boolean {
    return this.#ports.hasState(this.name, mark);
  }

  parts(at: number, first: number): Promise<readonly Uint8Array[] | null> {
    return this.#ports.parts(this.name, at, first);
  }

  superseded(epoch: number): void {
    this.supersede(`epoch ${epoch} was promised`);
  }

  pieces(after: number): readonly LogPiece[] | Promise<readonly LogPiece[]> {
    const oldest = this.#pending[0];
    if (oldest === undefined || oldest.first > after + 1) return this.#ports.read(this.name, after);
    const pieces: LogPiece[] = [];
    let bytes = 0;
    for (const piece of this.#pending) {
      if (piece.first <= after) continue;
      bytes += piece.bytes.length;
      if (pieces.length > 0 && bytes > LOG_PACKET_BYTES_TARGET) break;
      pieces.push(piece);
    }
    return pieces;
  }

  // ── Owners ──

  #follow(site: SiteId, known: Omit<Following, "site" | "turn"> = { mayInstall: true }): Follower {
    const follower = new Follower(this, { ...known, site, turn: this.#turn++ });
    if (site !== this.#ports.site) follower.unwatch = this.#ports.watch(site);
    this.#followers = this.#followers.concat(follower); // has room for no more, as `push` would
    if (this.#over !== null) follower.close();
    return follower;
  }

  #isUseless({ isOwn, isLost, site }: Follower): boolean {
    if (isOwn) return false;
    const standing = this.#ports.isKnown(site) ? this.#ports.standing(site) : "dead";
    return isLost || standing === "suspected" || standing === "dead";
  }

  #checkSoon(): void {
    if (this.#isChecking || this.#over !== null) return;
    this.#isChecking = true;
    queueMicrotask(() => {
      this.#isChecking = false;
      if (this.#over === null) this.#check();
    });
  }

  /** Gets as many owners as there are to be, and has them recorded. */
  #check(): void {
    for (const follower of this.#followers) follower.join();
    if (this.#proposed !== null) return;
    const wanted = this.#wanted();
    if (wanted === null) return;
    const joinedAll = wanted.every(({ isJoined, acked }) => isJoined && acked >= this.#joinAt);
    if (!joinedAll) return;
    const kept = Math.min(...wanted.map(({ acked }) => acked));
    const hosts = this.hosts.wanted({ released: this.held, kept, disks: wanted.length });
    if (hosts === null) return;
    const owners = [...wanted.map(({ site, disk }) => ({ site, disk })), ...hosts];
    const isAsRecorded = owners.length === this.#recorded.length &&
      owners.every(({ site, disk }) => this.#recorded.some((one) => one.site === site && one.disk === disk));
    // move.ts M3
    if (isAsRecorded) this.#leave((follower) => !wanted.includes(follower) && follower !== this.#guest);
    else void this.#configure(owners);
  }

  /** Entry that owners have to have before they are recorded (H2). */
  get #joinAt(): number {
    return Math.max(this.held, this.#floor);
  }

  /** Returns the owners that there should be, this site first; null: not so many live. */
  #wanted(): Follower[] | null {
    const f = this.#ports.f();
    const useful = this.#followers.filter((follower) => !follower.isOwn && !this.#isUseless(follower));
    const last = this.#ports.last(), { nowMs } = this.#ports;
    const lastOne = useful.find(({ site }) => site === last);
    const kept = useful.filter((one) => one !== lastOne).slice(0, f);
    const isTried = lastOne !== undefined && nowMs() - this.#triedMs < MEND_RETRY_MS;
    if (kept.length < f && !isTried) {
      this.#triedMs = nowMs();
      for (const site of this.#chosen(kept.map(({ site }) => site))) {
        const follower = site === lastOne?.site ? lastOne : this.#follow(site);
        follower.join();
        kept.push(follower);
      }
    }
    if (lastOne !== undefined && kept.length < f && !kept.includes(lastOne)) kept.push(lastOne);
    return kept.length < f ? null : [this.#own, ...kept];
  }

  /** Returns new owners beside those kept. */
  #chosen(kept: readonly SiteId[]): readonly SiteId[] {
    try {
      const isRefused = (site: SiteId) =>
        this.#followers.some((one) => one.site === site && one.lostBy !== "disk" && this.#isUseless(one));
      return this.#ports.choose(kept, isRefused).owners.slice(1 + kept.length);
    } catch {
      return []; // as many as there are to be, there are not at all: looked at again (MEND_RETRY_MS)
    }
  }

  /** Has the arbiter record other owners (H6). */
  async #configure(owners: readonly Owner[]): Promise<void> {
    this.#proposed = owners;
    this.hosts.proposed(owners);
    this.#ports.count("configured");
    const { name, epoch } = this;
    const reply = await this.askArbiter({ kind: "configure", name, epoch, config: this.#config, owners });
    if (reply?.kind !== "row") return;
    const { row, outcome } = reply;
    if (outcome !== "granted" || row === null || !sameOwners(row.owners, owners)) {
      return this.supersede("the arbiter has given it to another", row?.site ?? null);
    }
    await this.#known(owners, row.config);
    if (this.#over !== null) return;
    this.#recorded = owners;
    this.hosts.recorded(owners);
    this.#config = row.config;
    this.#proposed = null;
    const recorded = new Set(this.#required());
    this.#leave((follower) => !recorded.has(follower) && follower !== this.#guest); // move.ts M3
    for (const follower of recorded) follower.mayInstall = false;
    this.advanced();
  }

  /** Tells the owners that they are on record; resolves when the own disk knows (H11). */
  async #known(owners: readonly Owner[], config: number): Promise<void> {
    const { name, epoch } = this, { site: self } = this.#ports;
    let isKnown = false;
    for (const { site, disk } of disksOf(owners)) {
      const asking = this.#ports.ask(site, { kind: "recorded", name, disk, epoch, config, owners });
      void asking.reply.then(this.#endsWith(asking));
      if (site !== self) continue;
      void asking.reply.then((reply) => {
        isKnown = reply.kind !== "refused";
        for (const resolve of this.#advances.splice(0)) resolve();
      });
    }
    while (this.#over === null && !isKnown) await this.nextChange();
  }

  /** Tells followers that are no owners to forget the log, as far as they live; the others find out (AUDIT_MS). */
  #leave(isLeaving: (follower: Follower) => boolean): void {
    for (const follower of this.#followers.filter((one) => isLeaving(one) && !one.isOwn)) {
      follower.close();
      this.#followers = this.#followers.filter((one) => one !== follower);
      if (this.#isUseless(follower) || follower.disk === 0) continue;
      const { site, disk, turn } = follower, { name, epoch } = this;
      const asking = this.#ports.ask(site, { kind: "forget", name, disk, epoch, turn });
      void asking.reply.then(this.#endsWith(asking));
    }
  }

  /** Has all owners forget the log of a session that has ended. Those that can't be asked find out (AUDIT_MS). */
  async forgetAll(): Promise<void> {
    const { name, epoch } = this;
    const told = this.#followers.filter((one) => one.disk !== 0 && !this.#isUseless(one));
    for (const { site, disk, turn, isOwn } of told) {
      if (!isOwn) this.#ports.tell(site, { kind: "forget", name, disk, epoch, turn });
    }
    await this.#ports.ended(name, epoch);
  }

  /** Asks the arbiter about an owner on record that does not know the log (H6). */
  async doubt({ site }: Follower): Promise<void> {
    this.#ports.note("log_unknown", { name: shownName(this.name), site });
    const reply = await this.askArbiter({ kind: "look", name: this.name });
    if (reply?.kind !== "row") return;
    const { row } = reply;
    const isOther = row !== null && (row.site !== this.#ports.site || row.ended);
    if (row !== null && (row.epoch > this.epoch || (row.epoch === this.epoch && isOther))) {
      this.supersede("the arbiter has given it to another", row.site);
    }
  }
}
