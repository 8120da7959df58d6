/**
 * Store as one stateful session sees it at its home: a session of the store of its own, which has seen what the
 * session's log says, what its callers had seen, and what it has read and written since.
 *
 * O1  What a turn wrote is applied under the version that its log has: done again, here or at another site, it is the
 *     same row.
 * O2  A sum, and a write with checks, can't be the same row: it is written together with a mark that names its number,
 *     and not again where the mark is there.
 * O3  What is told to anyone waits until all of it is on disk here (`token`): the pieces of its log, too.
 * O4  Where hosts hold the log, a session goes on without what it and its attached peers had seen at a site that can't
 *     be asked: what it wrote itself since its last checkpoint it writes again, but for writes of which that site alone
 *     can tell whether they were made (O5). That is logged. Where its own log is dated ahead of this site's clock nobody
 *     is missing, and it is not opened: what it writes later is never dated before what it had seen. One of those
 *     attached whose token is so holds up nobody.
 * O5  What its log names is seen again at each opening, and is all of it (pieces.ts P1): what the home before wrote
 *     since is written again (O1). Only where a mark would tell whether a write was made (O2), and is not here, is the
 *     site before asked for what nobody was told of, when the session's run is over there: a run that waits to make
 *     such a write makes it no more (`close`). Where that site is lost, what is left of it is waited for
 *     (store/session/handoff.ts H14, H15): a mark that is not there then is nowhere, nor is what it was written with.
 *     Where nobody can tell what is left, such a write is not made. That is told, and so is what a log of the form
 *     before says less of; the mark is made, so that the site that opens the log after this one finds it. All of that
 *     is done before anything else leaves (`knowMarks`, releases.ts RL4).
 * O6  Effects so old that the store has forgotten deletions since are applied all at once, in their order: the rows
 *     that stand tell whether they were applied before, and are then what the whole of them would have left
 *     (store/session/old_writes.ts). Where nothing can tell, they are left out, and that is said. Their merges are made
 *     in the same step, unless a mark says that they were (O2): nobody sees what was written after a merge, and not it.
 * O7  A write of O2 is made on condition that its mark is as it was found: where an isolate was lost as a write was
 *     under way, that may be done still, and the next isolate of the same home asks for it again.
 */
import { type Effect, type EffectMutation, isMergeEffect, type OpenedProgram } from "../turn/mod.ts";
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  ReadLevel,
  RowPage,
  StoreClient,
  StoredRow,
} from "../../vocabulary/store_client.ts";
import {
  type AttachedSession,
  ClockAhead,
  type DatedWrite,
  type OldMerges,
  type PlainMutation,
  type Replica,
  type StopAt,
  type StoreMutation,
  StoreUnavailable,
  type TokenState,
} from "../../../store/api/api.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import type { Lane } from "../../../store/model/lock.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { parseVersionstamp, unixMs, type Version } from "../../../store/model/row.ts";
import { decodeSystem, encodeSystem } from "../../../store/model/system_value.ts";
import type { RunStore } from "./ports.ts";
import type { PieceHead } from "./pieces.ts";

/** Rows of an app as its code names them: the site adds the app's prefix, and enforces its limits. */
export interface SessionRows extends Pick<StoreClient, "get" | "list" | "commit"> {
  /** Checks mutations, and returns them as the store has them, for whoever writes them himself. */
  absolute(mutations: readonly Mutation[]): StoreMutation[];
}

/** Site, as the store of a session needs it. */
export interface OwnStoreServices {
  readonly replica: Pick<Replica, "attach">;
  /** Returns the app's rows over a session of the store. */
  readonly rows: (session: AttachedSession, nowMs: () => number) => SessionRows;
  /** Registers a write of the app as under way, until it settles; left out: nobody waits for such writes. */
  readonly track?: (<T>(write: Promise<T>) => Promise<T>) | undefined;
  /** Returns the lane of the app now; null: none. Left out: there is none. */
  readonly lane?: () => Lane | null;
  readonly nowMs: () => number;
  /** Reports what the session goes on without (O4); left out: such an error is thrown. */
  readonly missed?: ((error: StoreUnavailable) => void) | undefined;
  /** Reports a write that was not made, or not made again, since nobody can know whether it was made. */
  readonly leftOut: (name: { readonly class: string; readonly id: string }, text: string) => void;
}

/** Stateful session, and what tells it from others that had its name before. */
interface NamedBirth {
  readonly class: string;
  readonly id: string;
  readonly birth: string;
}

/** Mark that tells whether a write was made (O2). */
interface Mark {
  readonly key: Key;
  /** Reports whether the mark is set where it names such a number. */
  readonly isSet: (stands: number) => boolean;
  /** Number that the mark gets where nobody can tell whether the write was made. */
  readonly without: number;
  /** Text that is logged then. */
  readonly text: string;
}

/** Marks of writes with checks: more than a handler has under way at once. */
const MARKS = 256;
/** Milliseconds for which a site that could not be asked is not asked again: each time costs two seconds. */
const MISSING_MS = 10_000;
/** Reason why nobody can know whether a write was made. */
const LOST = "the disks that could tell are lost, or out of reach";
const UNKNOWN = `whether a write with checks was made is not known: ${LOST}`;
/** Codes of the store for a site that can't be asked. */
const MISSING: ReadonlySet<string> = new Set(["source_unreachable", "source_lost"]);

/** Store of one session (see the file's header). */
export class OwnStore implements RunStore {
  readonly #services: OwnStoreServices;
  /** Lead of the keys of its marks: a session that is made later under the same name has others. */
  readonly #lead: readonly [string, string, string, string];
  readonly #session: AttachedSession;
  readonly #stop: StopAt;
  /** Sites, as tokens name them, that could not be asked, and the time until which they are not asked again (O4). */
  #missing: Map<number, number> | null = null;
  /** Number of the last effect that was applied as an old one (O6). */
  #oldThrough = 0;
  /**
   * Token of what the log says was seen, where marks may be missing; null: all that there are are here, or known as
   * missing (O5).
   */
  #marksOf: TokenState | null = null;

  private constructor(
    services: OwnStoreServices,
    name: NamedBirth,
    session: AttachedSession,
    stop: StopAt,
  ) {
    this.#stop = stop;
    this.#services = services;
    this.#lead = ["e", name.class, name.id, name.birth];
    this.#session = session;
    session.lane = services.lane?.() ?? null;
  }

  /**
   * Opens the store of a session.
   *
   * @param log the head of what it says last.
   * @param stop stops the home before, at its site (O5).
   * @throws StoreUnavailable
   */
  static async open(
    services: OwnStoreServices,
    name: NamedBirth,
    { seen, marks }: Pick<PieceHead, "seen" | "marks">,
    stop: StopAt,
  ): Promise<OwnStore> {
    const { replica } = services;
    if (seen === null) return new OwnStore(services, name, await replica.attach(null), stop);
    const { token, isWhole } = seen;
    try {
      const came: TokenState = isWhole ? { ...token, open: false } : { ...token, open: true, lags: true };
      const store = new OwnStore(services, name, await replica.attach(came), stop);
      if (isWhole && marks) store.#marksOf = token;
      return store;
    } catch (error) {
      const why = orMissing(services)(error);
      const store = new OwnStore(services, name, await replica.attach(null), stop);
      store.#misses(token, why);
      store.#marksOf = token; // of all that it writes again
      return store;
    }
  }

  /**
   * Finds out which writes homes before have made (O5).
   *
   * @param left what the log leaves to be done.
   * @throws StoreUnavailable where that is not known yet.
   */
  async knowMarks(left: Pick<OpenedProgram, "effects" | "calls">): Promise<void> {
    if (this.#marksOf === null) return;
    const marks = this.#marksFor(left);
    const isKnown = await this.#areThere(marks) || await this.#seeWhole(this.#marksOf);
    if (!isKnown) { for (const mark of marks) await this.#renounce(mark); }
    this.#marksOf = null;
  }

  /**
   * Sees the whole of a token. Returns false where nobody can tell; where hosts hold the log nobody is waited for (O4).
   * @throws StoreUnavailable
   */
  #seeWhole(token: TokenState): Promise<boolean> {
    return this.#session.seeWhole(token, this.#stop).catch((error) => {
      orMissing(this.#services)(error);
      return false;
    });
  }

  /** True once all that homes before may have made is known. */
  get knowsMarks(): boolean {
    return this.#marksOf === null;
  }

  #marksFor({ effects, calls }: Pick<OpenedProgram, "effects" | "calls">): Mark[] {
    const merges = effects.flatMap(({ effect, mutations }): Mark[] => {
      const kinds = mutations.filter(isMergeEffect).map(({ kind }) => kind);
      const what = `${kinds.length} rows were merged into (${[...new Set(kinds)].join(", ")})`;
      const text = `whether ${what} is not known, and they are not: ${LOST}`;
      const isSet = (stands: number) => stands >= effect;
      return kinds.length === 0 ? [] : [{ key: this.#mergesKey, text, isSet, without: effect }];
    });
    const writes = calls.flatMap(({ call, kind }): Mark[] => {
      const text = `${UNKNOWN}; its handler is told so`;
      const isSet = (stands: number) => Math.abs(stands) === call;
      return kind === "commit" ? [{ key: this.#callKey(call), text, isSet, without: -call }] : [];
    });
    return [...merges, ...writes];
  }

  async #areThere(marks: readonly Mark[]): Promise<boolean> {
    for (const { key, isSet } of marks) if (!isSet((await this.#mark(key)).number)) return false;
    return true;
  }

  /** Sets the mark of a write of which nobody can tell whether it was made: the write is not made. */
  async #renounce({ key, text, isSet, without }: Mark): Promise<void> {
    for (;;) {
      const { number, check } = await this.#mark(key);
      if (isSet(number)) return;
      const value = encodeSystem(without);
      const written = await this.#store().commit([check], [{ kind: "set", key, value }]);
      if (written.ok) return this.#leaveOut(text);
    }
  }

  /** Key of the mark of the last merge. */
  get #mergesKey(): Key {
    return packKey([...this.#lead, "s"]);
  }

  /** Key of the mark of a write with checks. */
  #callKey(call: number): Key {
    return packKey([...this.#lead, "c", call % MARKS]);
  }

  /**
   * Closes the store: the session's run is over. What only a mark tells to be written is not written by it any more
   * (O5).
   */
  close(): void {
    this.#session.close();
  }

  /** True where the session goes on without what its log says to be applied (O4). */
  get isMissing(): boolean {
    return this.#missing !== null;
  }

  /** Has the session see what a token names. @throws StoreUnavailable */
  see(token: TokenState): Promise<void> {
    return this.#session.see(token);
  }

  /**
   * Has the session see what its attached peers have seen, one token each; see {@link see} (O4). @throws
   * StoreUnavailable
   */
  async seeAll(tokens: readonly TokenState[]): Promise<void> {
    for (const token of tokens) {
      if ((this.#missing?.get(token.replica) ?? 0) > this.#services.nowMs()) continue;
      try {
        await this.see(token);
      } catch (error) {
        this.#misses(token, orUnseen(this.#services)(error));
      }
    }
  }

  /** Notes that a site can't be asked (O4). */
  #misses({ replica }: TokenState, why: StoreUnavailable): void {
    const { nowMs, missed } = this.#services;
    (this.#missing ??= new Map()).set(replica, nowMs() + MISSING_MS);
    missed?.(why);
  }

  /** Draws a clock value for an event: the version of the rows that its turn writes. */
  tick(): number {
    return this.#session.tick();
  }

  /** Returns what the session has seen by now; it may leave when that is on disk (O3). */
  seen(): TokenState {
    return this.#session.token(false);
  }

  /** Count of what the session touches: `seen` says no more than before where the count is as it was. */
  get touches(): number {
    return this.#session.touches;
  }

  /** True where what the session has seen by now is on disk. */
  get isDurable(): boolean {
    return this.#session.isDurable;
  }

  /** Resolves when what the session has seen by now is on disk. @throws StoreUnavailable */
  durable(): Promise<void> {
    return this.#session.durable();
  }

  /** Returns what the session has seen, when all of that is on disk (O3). */
  async token(): Promise<TokenState> {
    const token = this.seen();
    await this.durable();
    return token;
  }

  /** Resolves when what was applied is on disk: from then on the session has seen that. @throws StoreUnavailable */
  settle(): Promise<void> {
    return this.#session.settle();
  }

  async get(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]> {
    const rows: (StoredRow | null)[] = [];
    while (rows.length < keys.length) {
      const next = await this.#store().get(keys.slice(rows.length), level);
      if (next.length === 0) break;
      rows.push(...next);
    }
    return rows;
  }

  list(request: ListRequest): Promise<RowPage> {
    return this.#store().list(request);
  }

  /**
   * Makes a write with checks, which call `number` asked for (O2).
   *
   * @throws StoreUnavailable `source_lost` where nobody can know whether it was made (O5).
   */
  async commit(
    number: number,
    checks: readonly Check[],
    mutations: readonly Mutation[],
  ): Promise<CommitResult> {
    const key = this.#callKey(number);
    let before: string | null | undefined;
    for (;;) {
      const { row, number: stands, check } = await this.#mark(key);
      if (row && stands === number) return { ok: true, versionstamp: row.versionstamp };
      if (stands === -number) throw new StoreUnavailable("source_lost", UNKNOWN);
      // The mark is as it was: what the write itself is conditional on has refused it.
      if (check.versionstamp === before) return { ok: false };
      const written = await this.#marked([...checks, check], [...mutations, {
        kind: "set",
        key,
        value: encodeSystem(number),
      }]);
      if (written.ok) return written;
      before = check.versionstamp;
    }
  }

  /** Reads a mark. `check`: that it is as it was found (O7); `number`: what it names, 0 where there is none. */
  async #mark(key: Key): Promise<{
    readonly row: StoredRow | null;
    readonly number: number;
    readonly check: Check;
  }> {
    const [row = null] = await this.#store().get([key], "session");
    const number = row === null ? 0 : Number(decodeSystem(row.value));
    return { row, number, check: { key, versionstamp: row?.versionstamp ?? null } };
  }

  /** Writes what has a mark, with the mark (O2). */
  async #marked(checks: readonly Check[], mutations: readonly Mutation[]): Promise<CommitResult> {
    this.#assertKnowsMarks();
    return await this.#store().commit(checks, mutations);
  }

  #assertKnowsMarks(): void {
    if (this.#marksOf !== null) throw new Error("it is not known whether it was made before (O5)");
  }

  /** Applies what a turn wrote (O1). */
  async apply(effect: Effect): Promise<void> {
    const { mutations, version } = this.#datedOf(effect);
    if (mutations.length > 0 && effect.effect > this.#oldThrough) {
      const isWritten = await this.#tracked(this.#session.writeAs(mutations, version));
      if (!isWritten) await this.applyOld([effect]);
    }
    const merges = effect.mutations.filter(isMergeEffect);
    if (merges.length > 0) await this.#merge(effect.effect, merges);
  }

  /** Applies the first of these effects, those that are too old to be applied one by one (O6). */
  async applyOld(effects: readonly Effect[]): Promise<void> {
    const dated = effects.map((effect) => this.#datedOf(effect));
    const fresh = dated.findIndex(({ version }) => !this.#session.isOld(version));
    const old = fresh < 0 ? dated : dated.slice(0, fresh), last = effects[old.length - 1];
    if (last === undefined) return;
    for (;;) {
      const merges = await this.#oldMerges(effects.slice(0, old.length));
      const written = await this.#tracked(this.#session.writeOld(old, merges));
      if (!written.ok) continue; // O7
      this.#oldThrough = last.effect;
      for (const error of written.refused) {
        this.#leaveOut(`a write of a stateful session is refused: ${error}`);
      }
      return this.#leftOut(written.left, old);
    }
  }

  /** Returns the merges of effects that no mark says to be made, with their mark (O2). */
  async #oldMerges(effects: readonly Effect[]): Promise<OldMerges> {
    const none = { checks: [], batches: [] };
    if (!effects.some(({ mutations }) => mutations.some(isMergeEffect))) return none;
    this.#assertKnowsMarks();
    const key = this.#mergesKey, { number, check } = await this.#mark(key);
    const batches: StoreMutation[][] = [];
    let last = 0;
    for (const { effect, mutations, atMs } of effects) {
      const merges = mutations.filter(isMergeEffect);
      if (merges.length === 0 || effect <= number) continue;
      batches.push(this.#absolute(merges, atMs));
      last = effect;
    }
    if (last === 0) return none;
    const mark = this.#absolute([{ kind: "set", key, value: encodeSystem(last) }], this.#services.nowMs());
    const version = check.versionstamp === null ? null : parseVersionstamp(check.versionstamp);
    return { checks: mark.map(({ key }) => ({ key, version })), batches: [...batches, mark] };
  }

  /** Says which rows are not written, since nobody can tell whether they were (O6). */
  #leftOut(left: readonly Key[], old: readonly DatedWrite[]): void {
    if (left.length === 0) return;
    const sinceMs = unixMs(old[0]?.version.clock ?? 0);
    this.#leaveOut(
      `whether it wrote ${left.length} rows since ${
        new Date(sinceMs).toISOString()
      } is not known, and it does not ` +
        `write them: none of them is there, and deletions as old as that are forgotten`,
    );
  }

  #datedOf(
    { mutations, clock, replica, atMs }: Effect,
  ): { readonly mutations: readonly PlainMutation[]; readonly version: Version } {
    const last = new Map(mutations.map((mutation) => [mutation.key, mutation]));
    const rows = this.#absolute([...last.values()].filter((m) => !isMergeEffect(m)), atMs);
    return { mutations: rows as PlainMutation[], version: { clock, replica } };
  }

  #tracked<T>(written: Promise<T>): Promise<T> {
    return this.#services.track?.(written) ?? written;
  }

  /** Merges with a mark (O2). */
  async #merge(effect: number, merges: readonly EffectMutation[]): Promise<void> {
    const key = this.#mergesKey;
    for (let isWritten = false; !isWritten;) {
      const { number, check } = await this.#mark(key);
      if (number >= effect) return;
      const written = await this.#marked([check], [
        ...merges as readonly Mutation[],
        { kind: "set", key, value: encodeSystem(effect) },
      ]);
      isWritten = written.ok;
    }
  }

  #leaveOut(text: string): void {
    const [, className, id] = this.#lead;
    this.#services.leftOut({ class: className, id }, text);
  }

  /** Removes the marks: the stateful session has ended. */
  async forget(): Promise<void> {
    const range = prefixRange(packKey([...this.#lead]));
    for (;;) {
      const { rows, more } = await this.#store().list({
        ...range,
        limit: MARKS,
        reverse: false,
        level: "session",
      });
      if (rows.length > 0) {
        await this.#store().commit([], rows.map(({ key }) => ({ kind: "delete", key })));
      }
      if (!more) return;
    }
  }

  #absolute(mutations: readonly EffectMutation[], atMs: number): StoreMutation[] {
    return this.#services.rows(this.#session, () => atMs).absolute(mutations as readonly Mutation[]);
  }

  #store(): SessionRows {
    return this.#services.rows(this.#session, this.#services.nowMs);
  }
}

/**
 * Returns a handler that throws errors again, but for those of a site that can't be asked (O4). What is dated ahead is of
 * none: later writes would be earlier than that.
 */
const orMissing = (services: OwnStoreServices) => (error: unknown): StoreUnavailable => {
  if (error instanceof ClockAhead) throw error;
  return orUnseen(services)(error);
};

/** Returns a handler that throws errors again, but for those over what a peer had seen that is not to be had (O4). */
const orUnseen = ({ missed }: OwnStoreServices) => (error: unknown): StoreUnavailable => {
  if (missed === undefined || !(error instanceof StoreUnavailable) || !MISSING.has(error.code)) throw error;
  return error;
};
