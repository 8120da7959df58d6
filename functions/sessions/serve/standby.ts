/**
 * A standby: a stateful session of another site that is followed here, open in an isolate, one piece of its log behind
 * its home.
 *
 * Life: opened with what this disk has of the session's log → pieces, as they are appended here → promoted: a run goes
 * on with it, or closed: its log was cut, it could not be followed, this site keeps it no more.
 *
 * SB1  The isolate is given this disk's log, piece for piece: where the log is begun otherwise, or cut, the standby is
 *      closed.
 * SB2  Nothing leaves a standby before it is promoted.
 * SB3  A promotion that fails before the session serves fails alone: the session is opened from its log as any other.
 *      So does a promotion that the isolate never heard of, since it had ended, and nobody had been told yet.
 */
import type { FollowedLog, LogNews, OpenedSession, StatefulName } from "../home/mod.ts";
import type { OpenSession, Parked, Promotion } from "../turn/mod.ts";
import type { ChannelSink, FollowedChannel, OpenChannel, StatefulEnd } from "./ports.ts";
import { joinPieces, openPiece } from "./pieces.ts";
import { unpackState } from "./state_parts.ts";

/** Arguments with which a standby is opened. */
export interface StandbyOpening {
  /** Version of the app whose code follows the session. */
  readonly version: string;
  readonly copy: FollowedLog;
  readonly session: OpenSession;
}

/** Reason for which a standby is no more. */
export type StandbyEnd =
  /** The session's replay did otherwise than its log says, or can't be made. */
  | { readonly kind: "parked"; readonly parked: Parked }
  | { readonly kind: "killed"; readonly why: string };

/** Error of a promotion that came to nothing (SB3). */
export class StandbyFailed extends Error {
  override readonly name = "StandbyFailed";
}

/**
 * Bytes of log that are followed without a newer checkpoint: they take memory, and a handler that throws is undone by a
 * replay of them.
 */
const FOLLOWED_BYTES_MAX = 512 * 1024;

/** Returns the arguments with which an isolate opens a log that is kept here. @throws CodecError */
export async function sessionOf(
  { class: className, id }: StatefulName,
  { seed, checkpoint, log }: Pick<OpenedSession, "seed" | "checkpoint" | "log">,
): Promise<Pick<OpenSession, "class" | "id" | "seed" | "entries" | "checkpoint">> {
  const opened = checkpoint && openPiece(checkpoint.bytes);
  const state = await unpackState(checkpoint?.parts ?? []);
  return {
    ...{ class: className, id, seed },
    entries: joinPieces(null, log).bytes,
    checkpoint: checkpoint && opened && { at: checkpoint.at, bytes: opened.bytes, state },
  };
}

/** See the file's header. */
export class Standby {
  readonly version: string;
  readonly #ended: (end: StandbyEnd) => void;
  #at: FollowedChannel | null = null;
  /** Pieces that were appended while the isolate was being opened. */
  #early: { readonly first: number; readonly bytes: Uint8Array }[] = [];
  #last: number;
  #bytes: number;
  #isOver = false;
  #promoted: PromotedSink | null = null;

  constructor({ version, copy, session }: StandbyOpening, ended: (end: StandbyEnd) => void) {
    this.version = version;
    this.#ended = ended;
    this.#last = copy.last;
    this.#bytes = session.entries.length;
  }

  /** Last entry that the standby was given. */
  get last(): number {
    return this.#last;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** True where the standby would be better opened anew, from a newer checkpoint. */
  get isLong(): boolean {
    return this.#bytes > FOLLOWED_BYTES_MAX;
  }

  /** Sink of the isolate while the session is followed (SB2), or before the isolate could hear of a promotion (SB3). */
  get sink(): ChannelSink {
    const nothing = () => {};
    return {
      ...{ opened: nothing, commit: nothing, call: nothing, dropped: nothing, checkpointed: nothing },
      log: nothing,
      parked: (parked) => {
        this.#promoted?.parked(parked);
        this.#end({ kind: "parked", parked });
      },
      ended: (end, isCause) => {
        this.#promoted?.ended(end, isCause);
        this.#end({ kind: "killed", why: end.why });
      },
    };
  }

  /** Notes that the isolate is there. */
  opened(at: FollowedChannel): void {
    this.#at = at;
    if (this.#isOver) return at.isolate.closeChannel(at.channel);
    for (const { bytes } of this.#early.splice(0)) at.isolate.piece(at.channel, bytes);
  }

  /** Takes news of a log that has grown. Returns false where it goes on from another place than this standby (SB1). */
  appended({ pieces }: Extract<LogNews, { readonly kind: "appended" }>): boolean {
    for (const { first, count, bytes } of pieces) {
      if (first + count - 1 <= this.#last) continue;
      if (first !== this.#last + 1) return false;
      this.#last += count;
      const entries = openPiece(bytes).bytes;
      this.#bytes += entries.length;
      if (this.#at === null) this.#early.push({ first, bytes: entries });
      else this.#at.isolate.piece(this.#at.channel, entries);
    }
    return true;
  }

  close(): void {
    this.#isOver = true;
    this.#early = [];
    this.#at?.isolate.closeChannel(this.#at.channel);
  }

  /** Makes the standby the session's run: resolves when it serves. @throws StandbyFailed (SB3) */
  promote(promotion: Promotion, run: ChannelSink): Promise<OpenChannel> {
    const at = this.#at;
    if (at === null || this.#isOver) return Promise.reject(new StandbyFailed("it is not open"));
    this.#isOver = true;
    const sink = this.#promoted = new PromotedSink(at, run);
    at.isolate.promote(at.channel, promotion, sink);
    return sink.serving;
  }

  #end(end: StandbyEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended(end);
  }
}

/** Sink that hands everything to a run, once its isolate says that it goes on, and the run knows where (SB3). */
class PromotedSink implements ChannelSink {
  readonly #run: ChannelSink;
  readonly #at: FollowedChannel;
  readonly #serving = Promise.withResolvers<OpenChannel>();
  #waiting: (() => void)[] | null = [];
  #hasOpened = false;

  constructor(at: FollowedChannel, run: ChannelSink) {
    this.#at = at;
    this.#run = run;
  }

  get serving(): Promise<OpenChannel> {
    return this.#serving.promise;
  }

  /** Hands something on. Things that come before the isolate has said that it goes on are dropped. */
  #pass<T>(hand: () => T): T | void {
    if (this.#waiting === null) return hand();
    if (this.#hasOpened) this.#waiting.push(hand);
  }

  opened(...args: Parameters<ChannelSink["opened"]>): void {
    this.#hasOpened = true;
    this.#pass(() => this.#run.opened(...args));
    this.#serving.resolve(this.#at);
    // After the run, which waits for that too. Where the promotion has failed before, nothing is handed on.
    void this.#serving.promise.then(() => {
      const waiting = this.#waiting ?? [];
      this.#waiting = null;
      for (const hand of waiting) hand();
    }, () => {});
  }

  commit(...args: Parameters<ChannelSink["commit"]>): Promise<void> | void {
    return this.#pass(() => this.#run.commit(...args));
  }

  call(...args: Parameters<ChannelSink["call"]>): void {
    this.#pass(() => this.#run.call(...args));
  }

  dropped(call: number): void {
    this.#pass(() => this.#run.dropped(call));
  }

  checkpointed(...args: Parameters<ChannelSink["checkpointed"]>): Promise<void> | void {
    return this.#pass(() => this.#run.checkpointed(...args));
  }

  parked(parked: Parked): void {
    if (!this.#hasOpened) return this.#fail(`${parked.code}: ${parked.message}`);
    this.#pass(() => this.#run.parked(parked));
  }

  log(level: string, text: string): void {
    this.#run.log(level, text);
  }

  ended(end: StatefulEnd, isCause: boolean): void {
    if (!this.#hasOpened) return this.#fail(end.why);
    this.#pass(() => this.#run.ended(end, isCause));
  }

  #fail(why: string): void {
    this.#at.isolate.closeChannel(this.#at.channel);
    this.#serving.reject(new StandbyFailed(why));
  }
}
