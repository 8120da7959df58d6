/**
 * Session-aware reconciliation (SessionStore, section V.B; the rules are PROTOCOL's "Handoff"): what happens when a
 * session arrives with a token from another site.
 *
 * `a` is the lowest common ancestor of the token's site s and of this site d. In this order:
 * H1  N1: the same incarnation of the same site: go on.
 * H2  I8: the token's incarnation has ended and its clock lies past what was stable: what the session saw is lost, and
 *     the session is told so.
 * H3  N2: the stable clock of a, as of what has arrived from a, has reached the token's: nothing to do.
 * H4  N3: the token's position for a is not pending and has arrived: nothing to do.
 * H5  An `open` token says too little: its session may have written since. s is asked, always; where s is another
 *     incarnation by now, under which the session may have gone on, that one is asked. The session may have seen what
 *     went with a disk above s before that: owners say whether they have put all of it into the tree (H11).
 * H6  C1–C4: s answers with all rows pending towards a, each inner site on the way up adds its own, the topmost sends
 *     them here. They are installed, at once and all of them, when two things have arrived from a: all that they may
 *     depend on (`need`), and what the token names of a's journal, also where something is pending towards a
 *     (`followed`). Rows from the owners of s, or from s itself since a crash, may be older than what the session has
 *     seen there.
 * H7  W: all the while N2 and N3 may come true; whichever is sooner. An open token can't take that way.
 * H9  The row that a site wrote before a planned stop (members.ts A1) counts like H4, for open tokens too: their
 *     sessions had ended. So it does where the site was taken off the tree since. Where the root had that row as it
 *     took the site off, all of that has come with the root's own row (removal.ts R1), whatever became of a's disk,
 *     also at s itself, which was let in again: else the row is worth no more than a's disk was. Nothing says when a
 *     token that lags has left, or when s wrote what it has told nobody (H14): that may be since it was back. So for
 *     such a token the row counts only where s was taken off the tree and the row stands still: it never was.
 * H12 An incarnation that ended and goes on (succession.ts) is not lost: its successor's row, with the root's journal
 *     up to the floor that the row names, counts like H9. Nothing else of what that site said before does.
 * H8  An answer is taken in whole or not at all, and a source of another incarnation refuses.
 * H13 A token of this very incarnation, or one from below, or an answer for it, names no position of this journal that
 *     this disk has not had: a session with a position past the journal's head or in a gap (gaps.ts) saw what is gone.
 *     The disk went back; below the root a site ends over a token of its own, as where a neighbour has had more
 *     (lost.ts). Each site knows the gaps of the root's journal: a session that has seen what went with them is told so
 *     wherever it comes.
 * H10 `need` is a position in a's journal under the incarnation that the token's incarnation had above it. Where a has
 *     lost its disk since, this site's `down[a]` counts in another journal, and the answer is void.
 * H17 A site that starts over an older copy of its disk may date what it writes before what that disk has pushed since,
 *     since its clock went back with it. Until its parent has met it its tokens are `open`, so that no clock is taken
 *     for proof that what their sessions saw is elsewhere; but for those of sessions that saw nothing of its journal,
 *     and whose clock is no later than its watermark. These rest on nothing of this disk, and nobody need be asked.
 * H14 Writes that a site told nobody of are on its disk alone: its owners need not have them. Whoever has to know
 *     whether such a write was made asks that site itself while that disk is in use, under whichever number. What is
 *     left of an incarnation that is over, and that none goes on as, is in one of three places. It is in the journal
 *     above that incarnation before the row of its end; or an owner has it and says so; or it was carried away before,
 *     also to its site itself (wards/retake.ts B6). An answer on its way is taken in or given up within LEFT_MS, and
 *     owners have taken what they hold by then. Once the stable clocks of the root and of the site above have passed
 *     the row of the end, and the last row of its owners, by LEFT_MS, all that is left is in what has arrived here: a
 *     row that is not there never comes.
 * H15 A write that waits at that site for what it looks at would be made after the site's answer, beside the same write
 *     of the caller: so whoever wrote under the token's session is stopped there first, and only then the site is
 *     asked.
 * H11 A source, or a site above it, that does not answer is stood in for by its owners (wards/stand_in.ts). What an
 *     incarnation that is over had told is not lost where its owners have put it into the tree (wards/recovery.ts).
 */
import { ClockAhead, type StopAt, StoreUnavailable, type TokenState } from "../api/api.ts";
import { followedOf } from "../api/token_path.ts";
import { newestClock } from "../core/clock_guard.ts";
import type { Core } from "../core/core.ts";
import { OlderDisk, sourceLost, wentBack } from "../core/lost.ts";
import { newerRow } from "../model/merge.ts";
import type { Key } from "../model/key.ts";
import { CARRY_BYTES_MAX, CLOCK_AHEAD_MS_MAX, LEFT_MS, WAIT_MS_MAX } from "../model/limits.ts";
import { type Carry, type RowsAsk, wireBytes, type WireRow } from "../wire/message.ts";
import { CLOCK_TICKS_PER_MS, type Position, type ReplicaNumber, unixMs } from "../model/row.ts";
import type { SiteId } from "../model/ports.ts";
import { firstId } from "../model/question.ts";
import { Relays } from "../tree/relays.ts";
import { mayHaveLost, recoveryOf, type TokenStanding } from "../wards/recovery.ts";
import type { Wards } from "../wards/wards.ts";

export interface ArrivingSession {
  readonly how: "same" | "nothing" | "carry" | "wait";
  readonly rows: number;
  readonly bytes: number;
  /** Positions that the session has touched, per depth of this site's path, the site itself last; null: pending. */
  readonly path: readonly (Position | null)[];
  /** Positions, as in a token, of all else that the session has touched of sites towards which something is pending. */
  readonly followed?: readonly Position[] | undefined;
}

type Touched = Pick<ArrivingSession, "path" | "followed">;

type Asking = Pick<RowsAsk, "replica" | "depth" | "need" | "rows" | "trace">;

/** Standing of a token's incarnation: whether it is over, and what that means for the token. */
type Ended = { readonly kind: "living" | "safe" } | TokenStanding;

interface Source {
  readonly site: SiteId;
  /** Depth of the lowest common ancestor. */
  readonly depth: number;
}

interface Host {
  /** Returns this site's own stable clock now. */
  stableOwn(): number;
  eager(): void;
  /** Takes the clock of a session that was refused for it (timekeeper.ts K5). */
  ahead(ms: number): void;
  readonly wards: Wards;
}

export class Handoff {
  readonly #core: Core;
  readonly #host: Host;
  readonly #asked = new Map<number, (carry: Carry) => void>();
  readonly #relays: Relays;
  #nextId: number;

  constructor(core: Core, host: Host) {
    this.#core = core;
    this.#host = host;
    this.#relays = new Relays(core);
    this.#nextId = firstId(core.ports.random);
  }

  /**
   * Brings a session to this site. Nearly every session comes from here, or needs nothing: that is known at once.
   *
   * @throws StoreUnavailable `source_lost`, `source_unreachable`.
   */
  arrive(presented: TokenState, trace: string): ArrivingSession | Promise<ArrivingSession> {
    const core = this.#core, token = this.#ofLast(presented);
    const { clock, replica } = token ?? presented;
    // The clock comes first: a session that is told of a loss goes on without what its token names, and has to write
    // later than that.
    if (replica !== core.replica && !core.clock.admits(clock)) throw this.#ahead(token ?? presented);
    core.clock.merge(clock);
    if (token === null) throw sourceLost(core, presented);
    const unrooted = this.#unrooted(token);
    if (unrooted !== null) throw unrooted;
    if (token.replica === core.replica) { // H1
      this.#assertHere(token);
      return { how: "same", rows: 0, bytes: 0, path: token.path, followed: token.followed };
    }
    const known = core.topology.incarnation(token.replica);
    if (known !== undefined) {
      const source = this.#source(known.path);
      const ended = this.#ended(token, source);
      if (ended.kind === "lost") throw sourceLost(core, token);
      const past = this.#past(token, followedOf(token, core.depth));
      if (past !== null) throw past;
      const came = this.#nothing(token, source, ended);
      if (came !== null) return { how: "nothing", rows: 0, bytes: 0, ...came };
    }
    return this.#waitOrCarry(presented, trace);
  }

  /**
   * Checks that this disk has had the token's position of this journal (H13). @throws StoreUnavailable `source_lost`
   */
  #assertHere(token: TokenState): void {
    const core = this.#core, position = token.path[core.depth] ?? 0;
    if (core.hasHad(position)) return;
    if (!core.isRoot) core.ports.fatal(new OlderDisk(core, "a session", position));
    throw this.#wentBack(token, position);
  }

  /**
   * Checks positions in the root's journal (H13): the one that the token names, and the one up to which its site had
   * that journal as it took another number.
   *
   * @param need position that the answer of the token's source depends on.
   */
  #unrooted(token: TokenState, need: Position = 0): StoreUnavailable | null {
    const core = this.#core, { rootGaps, succession } = core.topology;
    const named = [followedOf(token, 0), succession.keptOf(token.replica)?.floor ?? 0, need];
    for (const position of named) {
      const gap = rootGaps.around(position);
      if (gap === undefined) continue;
      const root = core.path[0] ?? core.config.site;
      core.refused("disk_went_back", root, { position, found: gap.from });
      return wentBack(root, token, gap);
    }
    return null;
  }

  /** Checks a position in this journal that a site below knows (H13): `source_lost`, or null. */
  #past(token: TokenState, position: Position): StoreUnavailable | null {
    const core = this.#core;
    const isOther = core.topology.above(token.replica, core.depth) !== core.replica;
    return isOther || core.hasHad(position) ? null : this.#wentBack(token, position);
  }

  #wentBack(token: TokenState, position: Position): StoreUnavailable {
    const { gaps, config: { site } } = this.#core, gap = gaps.around(position) ?? gaps.last;
    this.#core.refused("disk_went_back", site, { position, found: gap?.from });
    return wentBack(site, token, gap);
  }

  /**
   * Returns an open token as one of the incarnation that its session may have gone on under (H5); null: its session saw
   * what is lost. The token stays as it came while an owner has not said what it has (H11).
   */
  #ofLast(token: TokenState): TokenState | null {
    const last = this.#lastOf(token);
    if (!token.open || last === token) return token;
    if (!this.#mayHaveLost(token)) return last;
    const { kind } = recoveryOf(this.#core.topology, token);
    return kind === "lost" ? null : kind === "unknown" ? token : last;
  }

  /** Returns a token as its site might say it under the last number that its disk has. */
  #lastOf(token: TokenState): TokenState {
    const { topology } = this.#core, last = topology.succession.last(token.replica);
    if (last === token.replica) return token;
    const own = token.path.at(-1) ?? null;
    const path = (topology.incarnation(last)?.path ?? []).map((_, j, { length }) =>
      j + 1 < length ? null : own
    );
    return { ...token, replica: last, path, followed: [followedOf(token, 0)] };
  }

  /**
   * Resolves when all that a token's incarnation wrote, told or not, has arrived: first what is on its disk while that
   * is in use, under whichever number, of which nobody else can tell, and then what is left (H14); null where nobody
   * can tell.
   *
   * @param stop resolves when whoever wrote under the token's session at that site writes no more (H15).
   * @throws StoreUnavailable `source_unreachable` where it has not by then.
   */
  async whole(presented: TokenState, stop: StopAt): Promise<ArrivingSession | null> {
    const token = this.#lastOf(presented);
    if (token.replica === this.#core.replica) return await this.arrive(token, "");
    if (this.#isOver(token)) return await this.#left(token, stop);
    try {
      await this.#stopped(token, stop);
      return await this.#waitOrCarry({ ...token, open: true, lags: true }, "", true); // H9
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || error.code !== "source_lost") throw error;
      return await this.#left(this.#lastOf(token), stop);
    }
  }

  /** Reports whether nobody has the disk of a token's incarnation any more. */
  #isOver({ replica }: TokenState): boolean {
    return this.#core.topology.recordedEnd(replica) !== undefined;
  }

  /** Resolves once the writer at a token's site is stopped (H15). @throws StoreUnavailable */
  async #stopped(token: TokenState, stop: StopAt): Promise<void> {
    const { topology, ports } = this.#core;
    const siteOf = () => topology.incarnation(token.replica)?.site;
    await this.#until(() => siteOf() !== undefined, WAIT_MS_MAX);
    const site = siteOf(), late = Promise.withResolvers<boolean>();
    const cancel = ports.clock.after(WAIT_MS_MAX, () => late.resolve(false));
    const isStopped = site !== undefined &&
      await Promise.race([stop(site).then(() => true), late.promise]);
    cancel();
    if (!isStopped && !this.#isOver(token)) throw this.#silent(token);
  }

  /** Waits for what is left of an incarnation that is over (H14). */
  async #left(token: TokenState, stop: StopAt): Promise<ArrivingSession | null> {
    const core = this.#core, { replica } = core;
    let standing = this.#leftOf(token);
    const isOver = () => core.replica !== replica || (standing = this.#leftOf(token)) !== "coming";
    const isKnown = await this.#until(isOver, 2 * LEFT_MS);
    if (core.replica !== replica) return await this.whole(token, stop);
    if (!isKnown) throw this.#silent(token);
    if (standing === "unknown") return null;
    core.count("left_known");
    return { how: "wait", rows: 0, bytes: 0, path: [...core.down, core.rows.head] };
  }

  #leftOf({ replica }: TokenState): "here" | "coming" | "unknown" {
    const core = this.#core, { topology } = core;
    const known = topology.incarnation(replica), told = topology.toldEnd(replica);
    if (known === undefined || known.parent === 0 || topology.succession.heir(replica) !== null) {
      return "unknown";
    }
    if (topology.endedByRemoval(replica)) return "unknown"; // it may have told its parent more after that word
    const depth = Math.min(this.#source(known.path).depth, known.path.length - 2);
    for (let at = known.parent;;) {
      if (topology.recordedEnd(at) !== undefined) return "unknown";
      const above = topology.incarnation(at);
      if (above === undefined) return "unknown";
      if (above.path.length - 1 <= depth) break;
      at = above.parent;
    }
    const here = depth === core.depth ? core.replica : topology.above(core.replica, depth);
    if (here === undefined) return "coming";
    if (here !== topology.above(replica, depth)) return "unknown";
    if (told === undefined) return "coming";
    const { wards } = topology;
    const isSilent = (owner: SiteId) => !wards.recovered(replica).has(owner) && !topology.isRemoved(owner);
    if (wards.owners(replica).some(isSilent)) return "coming";
    const stable = depth === core.depth ? this.#host.stableOwn() : core.stable[depth] ?? 0;
    const whole = core.isRoot ? stable : Math.min(stable, core.stable[0] ?? 0);
    const settled = Math.min(whole, topology.movingSince(replica, depth));
    return settled >= told + LEFT_MS * CLOCK_TICKS_PER_MS ? "here" : "coming";
  }

  #source(path: readonly SiteId[]): Source {
    const mine = [...this.#core.path, this.#core.config.site];
    let depth = 0;
    while (depth + 1 < mine.length && depth + 1 < path.length && mine[depth + 1] === path[depth + 1]) depth++;
    return { site: path.at(-1) ?? "", depth };
  }

  /** Finds whether a token's incarnation is over, and what that means for the token (H2, H12). */
  #ended(token: TokenState, source: Source): Ended {
    const { topology } = this.#core;
    const stable = topology.ended(token.replica);
    // An incarnation that goes on as it was may stand below one that does not.
    const mayHaveLost = this.#mayHaveLost(token);
    if (stable === undefined) return mayHaveLost ? recoveryOf(topology, token) : { kind: "living" };
    if (token.clock <= stable && !token.open && !mayHaveLost) return { kind: "safe" };
    const goesOn = topology.succession.heir(token.replica) !== null || this.#isKept(token);
    const isTold = goesOn || this.#isTold(token, source);
    if (mayHaveLost || isTold === false) return recoveryOf(topology, token);
    return { kind: isTold === null ? "unknown" : "safe" };
  }

  /**
   * Finds whether the token's incarnation itself is over (H14): what was lost above a disk is not what was written on
   * it.
   */
  #endedItself(token: TokenState): Ended {
    return { kind: this.#isOver(token) ? "lost" : "living" };
  }

  /**
   * Reports whether all that a token's session saw has come here with the row of its site's planned stop (H9); null:
   * that is not known here yet.
   */
  #isTold(token: TokenState, source: Source): boolean | null {
    if (!this.#hasAnnounced(token)) return false;
    const { topology } = this.#core, { replica } = token;
    const end = topology.endedByRemoval(replica) ? topology.recordedEnd(replica) ?? -1 : -1;
    return end >= topology.announced(replica) || this.#sharesAncestor(token, source);
  }

  #hasAnnounced({ replica, clock, lags }: TokenState): boolean {
    const { topology } = this.#core;
    const isRemoved = topology.endedByRemoval(replica), isLiving = topology.ended(replica) === undefined;
    const mayCount = lags === undefined ? isRemoved || isLiving : isRemoved && topology.isAway(replica);
    return mayCount && topology.hasAnnounced(replica, clock);
  }

  #mayHaveLost(token: TokenState): boolean {
    return mayHaveLost(this.#core.topology, token.replica, token);
  }

  /** Reports whether the token's incarnation goes on, and all that it had has come here (H12). */
  #isKept(token: TokenState): boolean {
    const core = this.#core;
    const kept = core.topology.succession.keptOf(token.replica);
    return kept !== undefined && (core.isRoot ? core.rows.head : core.down[0] ?? 0) >= kept.floor;
  }

  /** Returns what the session has touched if nothing needs doing (H3, H4), else null. */
  #nothing(token: TokenState, source: Source, ended: Ended): Touched | null {
    if (ended.kind === "unknown") return null;
    const core = this.#core, { depth } = source;
    const here = depth === core.depth;
    const down = here ? core.rows.head : core.down[depth] ?? 0;
    const least = ended.kind === "recovered" ? ended.clock : token.clock;
    const stable = here ? this.#host.stableOwn() : core.stable[depth] ?? 0;
    // No stable clock of the old path tells of rows that are under way to another parent.
    const byClock = Math.min(stable, core.topology.movingSince(token.replica, depth)) >= least;
    const position = token.path[depth] ?? null;
    // A position of a's journal means nothing in the journal of another incarnation of a.
    const { topology } = core;
    const isShared = (j: number) => {
      const mine = j === core.depth ? core.replica : topology.above(core.replica, j);
      return mine !== undefined && mine === topology.above(token.replica, j);
    };
    // Rows that an open token's session has seen since stand behind its position.
    const byPosition = !token.open && position !== null && down >= position && isShared(depth);
    const isKept = this.#isKept(token) && !this.#mayHaveLost(token);
    const byWord = isKept || this.#isTold(token, source) === true; // H9
    const isClosed = !token.open || ended.kind === "recovered";
    if (!byWord && (!isClosed || (!byClock && !byPosition))) return null;
    core.count(
      byClock
        ? "nothing_by_clock"
        : byPosition
        ? "nothing_by_position"
        : isKept
        ? "nothing_by_successor"
        : "nothing_by_word",
    );
    // Above the common ancestor the token's own positions hold; below it, what this site has of each.
    const path: (Position | null)[] = [...core.down, core.rows.head];
    const followed: Position[] = [];
    core.takes(depth);
    for (let j = 0; j < depth; j++) {
      path[j] = token.open || isKept || !isShared(j) ? null : token.path[j] ?? null;
      followed[j] = isShared(j) ? followedOf(token, j) : 0;
    }
    path[depth] = byPosition ? position : down;
    return { path, followed };
  }

  /**
   * Reports whether the common ancestor has the same disk for both sites; null: this site does not know its own yet.
   */
  #sharesAncestor(token: TokenState, { depth }: Source): boolean | null {
    const { topology, replica, depth: mine } = this.#core;
    const here = depth === mine ? replica : topology.above(replica, depth);
    return here === undefined ? null : here === topology.above(token.replica, depth);
  }

  /** @param isOwn whether only its source itself answers, and an incarnation that is over is lost (H14). */
  async #waitOrCarry(presented: TokenState, trace: string, isOwn = false): Promise<ArrivingSession> {
    const core = this.#core;
    const outcome = Promise.withResolvers<ArrivingSession>();
    outcome.promise.catch(() => {});
    const { replica } = core;
    let asked: ReplicaNumber | null = null, carrying = false;
    let unreachable: StoreUnavailable | null = null;
    const step = () => {
      if (carrying) return;
      // Under another parent the common ancestor is another, and the question was for the old one.
      if (core.replica !== replica) {
        carrying = true;
        const again = () => isOwn ? this.#waitOrCarry(presented, trace, true) : this.arrive(presented, trace);
        return outcome.resolve(Promise.resolve().then(again));
      }
      const token = isOwn ? this.#lastOf(presented) : this.#ofLast(presented);
      if (token === null) return outcome.reject(sourceLost(core, presented));
      const known = core.topology.incarnation(token.replica);
      if (known === undefined) return;
      const source = this.#source(known.path);
      const ended = isOwn ? this.#endedItself(token) : this.#ended(token, source);
      if (ended.kind === "lost") return outcome.reject(sourceLost(core, token));
      const past = this.#unrooted(token) ?? this.#past(token, followedOf(token, core.depth));
      if (past !== null) return outcome.reject(past);
      const came = this.#nothing(token, source, ended);
      if (came !== null) return outcome.resolve({ how: "wait", rows: 0, bytes: 0, ...came });
      if (asked === token.replica || ended.kind !== "living") return;
      asked = token.replica;
      this.#carry(token, source, trace, isOwn).then(async (carry) => {
        if (carry?.outcome !== "rows") return; // H8
        const isHere = source.depth === core.depth;
        const past = isHere ? this.#past(token, carry.need) : null;
        const lost = past ?? (source.depth === 0 ? this.#unrooted(token, carry.need) : null);
        if (lost !== null) return outcome.reject(lost);
        const need = Math.max(carry.need, followedOf(token, source.depth)); // H6
        const hasNeed = () => isHere || (core.down[source.depth] ?? 0) >= need;
        const isSettled = await this.#until(() => {
          const isShared = this.#sharesAncestor(token, source);
          return core.replica !== replica || isShared === false || (isShared === true && hasNeed());
        });
        // Only the end of the token's incarnation, or the clock, can tell then (H10).
        if (!isSettled || core.replica !== replica || this.#sharesAncestor(token, source) !== true) return;
        carrying = true;
        const arrival = await this.#install(carry, token, source);
        if (arrival !== null && !(arrival instanceof StoreUnavailable)) return outcome.resolve(arrival);
        unreachable = arrival;
        carrying = false;
        step();
      }).catch((error) => outcome.reject(error));
    };
    const forget = core.onAdvance(step);
    const cancel = core.ports.clock.after(
      WAIT_MS_MAX,
      () => outcome.reject(unreachable ?? this.#silent(presented)),
    );
    this.#host.eager();
    try {
      step();
      return await outcome.promise;
    } finally {
      forget();
      cancel();
    }
  }

  /** Makes the problem `source_unreachable` of a token: why, and what may be lost if its source never comes back. */
  #unreachable(token: TokenState, why: (site: string) => string): StoreUnavailable {
    const site = this.#core.topology.incarnation(token.replica)?.site;
    const mayBeLost = {
      site: site ?? `of incarnation ${token.replica}`,
      incarnation: token.replica,
      from: unixMs(this.#core.stable[0] ?? 0),
      to: unixMs(token.clock),
    };
    return new StoreUnavailable("source_unreachable", why(mayBeLost.site), { mayBeLost });
  }

  #ahead(token: TokenState): ClockAhead {
    this.#core.count("clock_ahead");
    this.#host.ahead(unixMs(token.clock));
    const { message, detail } = this.#unreachable(
      token,
      (site) =>
        `what this session saw at site ${site} is dated more than ${CLOCK_AHEAD_MS_MAX} ms in the future at ` +
        `${this.#core.config.site}: a clock is wrong`,
    );
    return new ClockAhead(message, detail);
  }

  #tooOld(token: TokenState, row: WireRow): StoreUnavailable {
    this.#core.count("carry_too_old");
    const ageMs = Math.round((this.#core.clock.last - row.clock) / CLOCK_TICKS_PER_MS);
    return this.#unreachable(
      token,
      (site) =>
        `site ${site} has had no way to its parent for so long that what this session saw there can't be carried to ` +
        `${this.#core.config.site}: a row is ${ageMs} ms old, ${this.#core.horizonMs} ms are possible; go on at ` +
        `${site}, or wait until its link is back`,
    );
  }

  #silent(token: TokenState): StoreUnavailable {
    return this.#unreachable(
      token,
      (site) =>
        `what this session saw at site ${site} has not arrived at ${this.#core.config.site} within ${WAIT_MS_MAX} ms, and ` +
        `that site does not answer, nor who would do so in its place; ask again, or reset the session to go on without it`,
    );
  }

  /**
   * Resolves once a condition holds, looking again whenever this site advances; false after a time in which the arrival
   * that it is for has failed.
   */
  #until(condition: () => boolean, ms = 2 * WAIT_MS_MAX): Promise<boolean> {
    if (condition()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const forget = this.#core.onAdvance(() => {
        if (!condition()) return;
        forget();
        cancel();
        resolve(true);
      });
      const cancel = this.#core.ports.clock.after(ms, () => {
        forget();
        resolve(false);
      });
    });
  }

  /** Asks the source, or those that stand in for it, for a carry (C1, C2); null when no answer came in time. */
  #carry(token: TokenState, { site, depth }: Source, trace: string, isOwn: boolean): Promise<Carry | null> {
    const { replica } = token;
    const ask = (to: SiteId, what: Asking) => this.#ask(to, what);
    const refused = Promise.withResolvers<void>();
    const asked = ask(site, { replica, depth, need: 0, rows: [], trace });
    const { wards } = this.#core.topology;
    // H11
    if (isOwn || !wards.exist) return asked.then((carry) => carry?.outcome === "rows" ? carry : null);
    return new Promise((resolve) => {
      let isOver = false;
      const taken = (carry: Carry | null) => {
        if (carry?.outcome !== "rows") return refused.resolve();
        isOver = true;
        resolve(carry);
      };
      const around = { depth, trace, refused: refused.promise, isOver: () => isOver };
      const instead = this.#host.wards.carry(token, around, ask).then(taken);
      Promise.all([asked.then(taken), instead]).then(() => resolve(null));
    });
  }

  #ask(to: SiteId, what: Asking): Promise<Carry | null> {
    const core = this.#core;
    const id = this.#nextId++;
    core.count("ask");
    core.send(to, { kind: "ask", id, to: core.config.site, ...what });
    return new Promise((resolve) => {
      const cancel = core.ports.clock.after(WAIT_MS_MAX, () => {
        this.#asked.delete(id);
        resolve(null);
      });
      this.#asked.set(id, (carry) => {
        this.#asked.delete(id);
        cancel();
        resolve(carry);
      });
    });
  }

  /**
   * Installs carried rows as this site's own pending rows, covered or not (C4); H7 goes on where one of them is too
   * old, and the error that is returned says so. Null: this site is another incarnation by now (H10).
   */
  async #install(
    carry: Carry,
    token: TokenState,
    source: Source,
  ): Promise<ArrivingSession | StoreUnavailable | null> {
    const core = this.#core, { replica } = core;
    const rows = carry.rows.filter((row) => !core.isCollectable(row));
    const old = await core.rows.lock.run(async () => {
      const found = await core.rows.lookup(rows.map((row) => row.key));
      // The rows' causes came with the journals of the sites that this site stood below when it asked.
      if (core.replica !== replica) return "void";
      const old = rows.find((row) => core.isTooOldToCarry(row));
      if (old !== undefined) return old;
      rows.forEach((row, i) => core.rows.apply(found[i], { ...row, known: core.depth }));
      core.clock.merge(carry.clock);
      core.takes(source.depth);
      return null;
    });
    if (old === "void") return null;
    if (old !== null) return this.#tooOld(token, old);
    core.wake();
    core.count("carried_rows", rows.length);
    const bytes = carry.rows.reduce((sum, row) => sum + wireBytes(row), 0);
    core.count("carried_bytes", bytes);
    // With nothing carried, all that s had is in a's journal up to `need`.
    const path: (Position | null)[] = rows.length > 0
      ? [...core.down.map(() => null), core.rows.head]
      : [...core.down, core.rows.head];
    if (rows.length === 0) { for (let j = 0; j < source.depth; j++) path[j] = token.path[j] ?? null; }
    if (rows.length === 0 && token.open) { for (let j = 0; j < source.depth; j++) path[j] = null; }
    const followed = core.down.map((down, j) => j < source.depth ? followedOf(token, j) : down);
    return { how: "carry", rows: rows.length, bytes, path, followed };
  }

  // ── The source and the inner sites ──

  /** Answers an ask with the rows pending here, or passes on the rows from below with these added (bottom-up, C2). */
  async asked(from: SiteId, ask: RowsAsk): Promise<void> {
    const ended = ask.trace === "" ? undefined : this.#core.ports.traced?.(ask.trace, "handoff");
    try {
      await this.#answer(from, ask);
    } finally {
      ended?.();
    }
  }

  async #answer(from: SiteId, ask: RowsAsk): Promise<void> {
    const core = this.#core, sinceMs = core.steady.nowMs();
    // The ask is from the destination itself, not from a child that was asked: so this site must be the source, or
    // above a source that is stood in for. Whose incarnation that is may not be known here yet, on a blank disk.
    const first = from === ask.to;
    const refuse = (outcome: Carry["outcome"]) =>
      core.send(ask.to, { kind: "carry", id: ask.id, outcome, need: 0, clock: core.clock.last, rows: [] });
    if (
      core.replica === 0 || core.resyncing || ask.depth > core.depth ||
      (!first && ask.depth === core.depth) ||
      // A site that the source was below once knows other ancestors by the same depths.
      !(first && ask.replica === core.replica ||
        core.topology.above(ask.replica, core.depth) === core.replica)
    ) {
      return await refuse("refused");
    }
    // s is the common ancestor itself: nothing is pending towards it.
    if (ask.depth === core.depth) {
      const head = core.rows.head;
      if (!await this.#committed(head)) return;
      return await core.send(ask.to, {
        kind: "carry",
        id: ask.id,
        outcome: "rows",
        need: head,
        clock: core.clock.last,
        rows: [],
      });
    }
    const { rows, need, head } = await this.#snapshot(ask);
    if (core.damage.isPending) return await refuse("refused"); // damage.ts G2
    if (!await this.#committed(head)) return;
    if (rows.reduce((sum, row) => sum + wireBytes(row), 0) > CARRY_BYTES_MAX) {
      return await refuse("too_large");
    }
    const top = core.depth === ask.depth + 1;
    if (top) {
      const carry = {
        kind: "carry",
        id: ask.id,
        outcome: "rows",
        need,
        clock: core.clock.last,
        rows,
      } as const;
      await this.#relays.send(ask.to, carry, ask, sinceMs);
      // The carry does not go to a new parent that has not answered yet: what is pending here is said along the path as
      // it was.
    } else await this.#relays.send(core.path.at(-1) ?? "", { ...ask, need, rows }, ask, sinceMs);
  }

  /**
   * Resolves once a head is on disk: only what is on disk leaves, since a position or version that a crash undoes might
   * be given out again. False: too late.
   */
  #committed(head: Position): Promise<boolean> {
    this.#core.wake();
    return this.#until(() => this.#core.rows.committedHead >= head);
  }

  /** Reads all rows pending towards the common ancestor, as of one head, joined with those from below. */
  #snapshot(ask: RowsAsk): Promise<{ rows: WireRow[]; need: Position; head: Position }> {
    const core = this.#core;
    return core.rows.lock.run(async () => {
      const floor = core.reach[ask.depth]?.top ?? 0;
      const keys = [...core.pending.after(floor, ask.depth + 1)].map((entry) => entry.key);
      const need = Math.max(ask.need, core.down[ask.depth] ?? 0); // H6
      const byKey = new Map<Key, WireRow>(ask.rows.map((row) => [row.key, row]));
      for (const row of await core.rows.lookup(keys)) {
        if (row === undefined) continue;
        const below = byKey.get(row.key);
        byKey.set(row.key, below === undefined ? row : newerRow(row, below));
      }
      return { rows: [...byKey.values()], need, head: core.rows.head };
    });
  }

  /** Takes the answer to an ask of this site. */
  answered(from: SiteId, carry: Carry): void {
    const { clock } = this.#core;
    const isAhead = !clock.admits(newestClock(carry));
    if (isAhead) this.#core.refused("clock_ahead", from);
    if (isAhead) return this.#asked.get(carry.id)?.({ ...carry, outcome: "refused", rows: [] });
    clock.merge(carry.clock);
    this.#asked.get(carry.id)?.(carry);
  }
}
