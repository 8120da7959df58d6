/**
 * Owner of a log, as its home sees it; the home's own disk is one, too.
 *
 * Life: `asking` (promise the epoch, say what you have) → aligned or installed → `joined`: everything appended is sent,
 * and `acked` is how far its disk has it → `lost`: it is not that disk any more, or has no room.
 *
 * The rules are those of live_home.ts.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { StatefulName } from "./api.ts";
import {
  type Base,
  commonUpTo,
  lastOf,
  type LogPiece,
  type LogState,
  type Reply,
  type SiteAsk,
} from "./asks.ts";
import { installBase, type PartialAsk, sendBase, type TransferPorts } from "./base_transfer.ts";
import type { Asking } from "./exchange.ts";
import { NO_STATE, type StateMark } from "./state_parts.ts";

/** Answer of an owner to the request for its promise. */
export interface Promised {
  readonly disk: number;
  readonly aligned: boolean;
  readonly log: LogState | null;
}

/** Home, as a follower needs it. */
export interface FollowerHome {
  readonly name: StatefulName;
  readonly epoch: number;
  readonly seed: Uint8Array;
  readonly version: string;
  /** Last entry appended. */
  readonly last: number;
  readonly baseAt: number;
  /** Entry after which the log goes only to owners that have a base up to it (live_home.ts, H16). */
  readonly from: number;
  /** Returns the home's own log as it is now. */
  state(): LogState;
  ask(to: SiteId, ask: SiteAsk): Asking;
  /** Returns pieces after an entry, as many as go at once; some of them may be on disk only. */
  pieces(after: number): readonly LogPiece[] | Promise<readonly LogPiece[]>;
  base(): Promise<Base | null>;
  /** Reports whether the state of the home's base begins with what a mark names. */
  hasState(mark: StateMark): boolean;
  /**
   * Returns parts of the state of the base at an entry, as many as go at once; null where the home has another base by
   * now.
   */
  parts(at: number, first: number): Promise<readonly Uint8Array[] | null>;
  /** Notes that the owner's disk has more than before. */
  advanced(): void;
  /** Notes that the owner has promised a later epoch. */
  superseded(epoch: number): void;
  /** Has the arbiter asked about an owner on record that does not know the log: only the arbiter can tell. */
  doubt(follower: Follower): Promise<void>;
  /** Resolves a moment later, and at once where the home is over. */
  nextTick(): Promise<void>;
}

/** Owner that a home follows with its log; see the fields of the same names. */
export interface Following {
  readonly site: SiteId;
  readonly turn: number;
  readonly disk?: number;
  readonly isOwn?: boolean;
  readonly mayInstall: boolean;
}

/** Appends under way to one owner: those of a round trip at a few hundred commits a second. */
const ASKS_MAX = 16;

const NOTHING = () => {};

export class Follower {
  readonly #home: FollowerHome;
  readonly site: SiteId;
  readonly isOwn: boolean;
  /**
   * True where the arbiter can't have the owner on record. One that is on record has the log already, or none is begun
   * there.
   */
  mayInstall: boolean;
  /** Number of the owner's disk; 0: not known yet. */
  disk: number;
  /** Number of this follower among those of its home, from 0 on. */
  readonly turn: number;
  isJoined = false;
  /**
   * Reason why nothing is to be expected of the owner; a site whose disk was lost may be chosen again, as another
   * owner.
   */
  lostBy: "disk" | "full" | "unknown" | null = null;
  /** Last entry that the owner's disk has; −1 before it has joined. */
  acked = -1;
  #baseAt = 0;
  /** State of that base, as far as the owner is known to have it. */
  #state = NO_STATE;
  /** Ends the watch over the owner's site. */
  unwatch: () => void = NOTHING;
  #sent = 0;
  #isClosed = false;
  #isJoining = false;
  #isPumping = false;
  #isWanted = false;
  #isRebasing = false;
  /** Appends that are under way. */
  #appending = 0;
  /** True where something that the owner was sent has not come there. */
  #isBehind = false;
  readonly #asks: Asking[] = [];

  constructor(home: FollowerHome, { site, turn, disk = 0, isOwn = false, mayInstall }: Following) {
    this.#home = home;
    this.site = site;
    this.turn = turn;
    this.disk = disk;
    this.isOwn = isOwn;
    this.mayInstall = mayInstall;
  }

  /** Entry that the owner's base stands for. */
  get baseAt(): number {
    return this.isOwn ? this.#home.baseAt : this.#baseAt;
  }

  /** Brings the owner up to the home's log. @param promised the owner's answer, where it was asked already. */
  join(promised: Promised | null = null): void {
    if (this.#isJoining || this.isJoined || this.isLost || this.#isClosed) return;
    this.#isJoining = true;
    void this.#join(promised).finally(() => this.#isJoining = false);
  }

  /** Sends the owner what it has not been sent. */
  pump(): void {
    this.#isWanted = true;
    if (!this.isJoined || this.#isPumping) return;
    this.#isPumping = true;
    void this.#pumpOn();
  }

  close(): void {
    this.#isClosed = true;
    this.unwatch();
    for (const asking of this.#asks.splice(0)) asking.cancel();
  }

  async #join(promised: Promised | null): Promise<void> {
    const of = () => ({ name: this.#home.name, disk: this.disk, epoch: this.#home.epoch });
    if (promised === null) {
      const reply = await this.#ask({ kind: "promise", ...of() });
      if (reply?.kind !== "promised") return;
      promised = reply;
    }
    this.disk = promised.disk;
    if (promised.log === null && !this.mayInstall) return this.#doubt();
    const keep = this.#keep(promised);
    if (promised.aligned) this.#has(promised.log);
    else if (keep !== null) {
      const reply = await this.#ask({ kind: "align", turn: this.turn, keep, ...of() });
      if (reply?.kind !== "held") return;
      this.#has(promised.log);
      this.acked = reply.through;
    } else if (!await this.#install(promised.log === null)) return;
    if (this.#isClosed || this.isLost) return;
    this.#sent = this.acked;
    this.isJoined = true;
    this.#home.advanced();
    this.pump();
  }

  #has(log: LogState | null): void {
    this.acked = log === null ? 0 : lastOf(log);
    this.#baseAt = log?.base.at ?? 0;
    this.#state = log?.base.state ?? NO_STATE;
  }

  async #install(isBlank: boolean): Promise<boolean> {
    const { seed, version } = this.#home, { turn } = this;
    for (;;) {
      const installed = await installBase(this.#transfer(), { turn, seed, version }, isBlank);
      if (installed === "over" || this.#isClosed) return false;
      if (installed === "again" || installed === "lacks") {
        await this.#home.nextTick();
        continue;
      }
      this.acked = installed.through;
      this.#baseAt = installed.base?.at ?? 0;
      this.#state = installed.base?.state ?? NO_STATE;
      return true;
    }
  }

  #transfer(): TransferPorts {
    const home = this.#home;
    return {
      base: () => home.base(),
      hasState: (mark) => home.hasState(mark),
      parts: (at, first) => home.parts(at, first),
      ask: (ask: PartialAsk) =>
        this.#ask({ ...ask, name: home.name, disk: this.disk, epoch: home.epoch } as SiteAsk),
    };
  }

  /**
   * Returns the entry up to which the owner's log is the home's, where the home can send what follows. Null: begin
   * anew; also where they share nothing: the owner's log may be of another birth, of a home that died before anybody
   * knew of it.
   */
  #keep({ log }: Promised): number | null {
    if (log === null) return null;
    const keep = commonUpTo(this.#home.state(), log);
    return keep !== null && keep > 0 && keep >= this.#home.baseAt ? keep : null;
  }

  async #pumpOn(): Promise<void> {
    while (this.#isWanted && !this.#isClosed && !this.isLost) {
      this.#isWanted = false;
      await this.#pump();
    }
    this.#isPumping = false;
  }

  async #pump(): Promise<void> {
    const home = this.#home;
    while (!this.#isClosed && !this.isLost && this.#appending < ASKS_MAX) {
      if (this.#isBehind) {
        // Pieces that were lost on the way are sent again when all the others were answered.
        if (this.#appending > 0) return;
        this.#isBehind = false;
        this.#sent = this.acked;
      }
      if (this.baseAt < home.baseAt) this.#rebaseSoon();
      const end = this.baseAt < home.from ? home.from : home.last; // H16
      if (this.#sent >= end) return;
      const found = home.pieces(this.#sent);
      const all = found instanceof Promise ? await found : found;
      const pieces = all.filter(({ first, count }) => first + count - 1 <= end);
      const last = pieces.at(-1);
      if (last === undefined || pieces[0]?.first !== this.#sent + 1) {
        // The log was cut meanwhile: it goes on when the base is there. Otherwise the home ends.
        if (this.baseAt < home.baseAt) this.#rebaseSoon();
        return;
      }
      this.#sent = last.first + last.count - 1;
      void this.#append(pieces);
    }
  }

  async #append(pieces: readonly LogPiece[]): Promise<void> {
    const { name, epoch } = this.#home;
    this.#appending++;
    const reply = await this.#ask({ kind: "append", pieces, name, disk: this.disk, epoch });
    this.#appending--;
    if (reply?.kind === "held") this.#ack(reply.through);
    else if (reply?.kind === "refused" && reply.why === "gap") this.#isBehind = true;
    this.pump();
  }

  #rebaseSoon(): void {
    if (this.#isRebasing) return;
    this.#isRebasing = true;
    void this.#rebase().finally(() => {
      this.#isRebasing = false;
      this.pump();
    });
  }

  /** Makes the owner's base the home's, while appends go on. */
  async #rebase(): Promise<void> {
    while (!this.#isClosed && !this.isLost && this.#baseAt < this.#home.baseAt) {
      const sent = await sendBase(this.#transfer(), this.#state, this.#baseAt);
      if (sent === "over") return;
      if (sent === "again" || sent === "lacks") {
        if (sent === "lacks") this.#state = NO_STATE;
        // The own disk may have an older base than it is to have: no loop turns in place until then.
        await this.#home.nextTick();
        continue;
      }
      this.#baseAt = sent.base.at;
      this.#state = sent.base.state;
      this.#sent = Math.max(this.#sent, sent.base.at);
      this.#ack(sent.through);
    }
  }

  #ack(through: number): void {
    this.acked = Math.max(this.acked, through);
    this.#home.advanced();
  }

  /** Asks the owner; null where nothing more is to be done with it. */
  async #ask(ask: SiteAsk): Promise<Reply | null> {
    if (this.#isClosed) return null;
    const asking = this.#home.ask(this.site, ask);
    this.#asks.push(asking);
    const reply = await asking.reply;
    if (this.#isClosed) return null;
    this.#asks.splice(this.#asks.indexOf(asking), 1);
    if (reply.kind !== "refused" || reply.why === "gap" || reply.why === "parts") return reply;
    if (reply.why === "superseded") this.#home.superseded(reply.epoch);
    else if (reply.why === "unknown") this.#doubt();
    else this.#lose(reply.why);
    return null;
  }

  get isLost(): boolean {
    return this.lostBy !== null;
  }

  /** Joins again an owner that had no room: there may be some again. */
  retry(): void {
    if (this.lostBy !== "full" || this.#isClosed) return;
    this.lostBy = null;
    this.#isBehind = true;
    this.join();
    this.pump();
  }

  #lose(by: "disk" | "full" | "unknown"): void {
    this.lostBy = by;
    this.#home.advanced();
  }

  #doubt(): void {
    if (!this.mayInstall) void this.#home.doubt(this);
    this.#lose("unknown");
  }
}
