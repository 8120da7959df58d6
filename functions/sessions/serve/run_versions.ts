/**
 * Versions under which one opening of a stateful session may write. They come from its isolate, in which an app can do
 * what it likes, and rows under another site's number, or ahead of its clock, would do harm in the whole cluster.
 *
 * RV1  A turn writes under this site's number, and under a clock that the run was given with an event, or of the moment
 *      at which its commit came, or somewhat after all of these: a handler that goes on writes after its earlier
 *      writes, also where the store's clock is ahead of this site's (functions/sessions/turn/live_source.ts). In that
 *      way isolates lead the store's clock on no faster than time passes: a clock that is ahead does not come to be
 *      more so.
 * RV2  Writes that the log left open are of a site that wrote a piece of it, under a clock that is in the log: each was
 *      checked when it was committed (RV1). Of an epoch that began before the log's base, the base tells the writer.
 *      Such writes leave when the log is opened, or, where a handler goes on that made them, with the first commit that
 *      ends at a commit point. After that nothing of the log leaves.
 * RV3  A commit begins an epoch under this site's number only: so what a log says of its writers was checked, too.
 */
import { readEntries, type ReadEntry } from "../turn/log_entry.ts";
import type { Commit, Effect, OpenedProgram } from "../turn/mod.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import type { OpenPiece } from "./pieces.ts";

/**
 * Milliseconds that a clock may be ahead of the site's: an isolate reads the same clock, and counts within its
 * milliseconds.
 */
const AHEAD_MS_MAX = 1_000;
/**
 * Milliseconds that isolates may lead at once, after a while in which none did: eight writes of an isolate are a
 * millisecond (store/model/clock_share.ts).
 */
const LEAD_MS_MAX = 1_000;

/** The run's part that the check of versions needs. */
export interface VersionsOf {
  /** This site's number at the store, as the isolate was told it. */
  readonly replica: number;
  readonly nowMs: () => number;
  /** Reads the clock of this site's store. */
  readonly tick: () => number;
  /** Lead that this site's isolates have left. */
  readonly lead: ClockLead;
}

/** Bound on how far the isolates of a site may lead its store's clock on. */
export class ClockLead {
  readonly #nowMs: () => number;
  #left = LEAD_MS_MAX * CLOCK_TICKS_PER_MS;
  #countedMs: number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#countedMs = nowMs();
  }

  /** Takes a lead of so many ticks. Returns false where that would be too much now (RV1). */
  takes(ticks: number): boolean {
    const nowMs = this.#nowMs(), passedMs = Math.max(0, nowMs - this.#countedMs);
    this.#countedMs = nowMs;
    this.#left = Math.min(LEAD_MS_MAX, this.#left / CLOCK_TICKS_PER_MS + passedMs) * CLOCK_TICKS_PER_MS;
    if (ticks > this.#left) return false;
    this.#left -= ticks;
    return true;
  }
}

/** Writers of a log: their replica numbers, and the newest clock among its writes. */
interface Writers {
  readonly replicas: ReadonlySet<number>;
  readonly newest: number;
}

/** See the file's header. */
export class RunVersions {
  readonly #of: VersionsOf;
  /** Pieces of the log that was opened, until nothing of it is open (RV2). */
  #log: readonly OpenPiece[];
  #writers: Writers | null = null;
  /** Newest clock that the run was given. */
  #given = 0;
  /** Newest clock that the run has written under. */
  #newest = 0;

  /** @param log the base and the pieces of the log that was opened. */
  constructor(of: VersionsOf, log: readonly OpenPiece[]) {
    this.#of = of;
    this.#log = log;
  }

  /** Replica number under which this opening writes. */
  get writer(): number {
    return this.#of.replica;
  }

  /** Notes a clock that the run gives its isolate. */
  gives(clock: number): void {
    this.#given = Math.max(this.#given, clock);
  }

  /** Returns what is wrong with a commit; null: nothing. */
  ofCommit({ effects, entries, isPoint }: Pick<Commit, "effects" | "entries" | "isPoint">): string | null {
    const { replica } = this.#of;
    for (const entry of entriesOf(entries)) {
      if (entry.kind === "turn" && entry.input.kind === "epoch" && entry.input.replica !== replica) { // RV3
        return `begins an epoch as ${entry.input.replica}, and this site is ${replica}`;
      }
      if (entry.kind !== "effect") continue;
      if (!this.#isOwn(entry.clock)) return `writes at ${entry.clock}, which is ahead of time`; // RV1
      this.#newest = Math.max(this.#newest, entry.clock);
    }
    for (const effect of effects) {
      const wrong = this.#wrongOf(effect);
      if (wrong !== null) return wrong;
      this.#newest = Math.max(this.#newest, effect.clock);
    }
    if (isPoint) this.#forget();
    return null;
  }

  /** Returns what is wrong with what the log left open; null: nothing. */
  ofLog({ effects, isQuiescent }: Pick<OpenedProgram, "effects" | "isQuiescent">): string | null {
    for (const effect of effects) {
      const wrong = this.#wrongOf(effect);
      if (wrong !== null) return wrong;
    }
    if (isQuiescent) this.#forget();
    return null;
  }

  /** Forgets the log, of which nothing is open any more (RV2). */
  #forget(): void {
    this.#log = [];
    this.#writers = null;
  }

  #wrongOf({ replica, clock }: Effect): string | null {
    if (replica !== this.#of.replica && !this.#ofLog.replicas.has(replica)) {
      return `writes as ${replica}, and this site is ${this.#of.replica}`;
    }
    const isKnown = replica === this.#of.replica ? this.#isOwn(clock) : clock <= this.#newestFor(clock);
    return isKnown ? null : `writes at ${clock}, which is ahead of time`;
  }

  /** Reports whether a clock may be of this opening (RV1). */
  #isOwn(clock: number): boolean {
    const newest = this.#newestFor(clock);
    return clock <= newest || this.#of.lead.takes(clock - newest);
  }

  /** Returns the newest known clock, or one that is as new as this: the cheapest source is asked first. */
  #newestFor(clock: number): number {
    const { nowMs, tick } = this.#of;
    let newest = Math.max(this.#given, this.#newest);
    if (clock <= newest) return newest;
    newest = Math.max(newest, (nowMs() + AHEAD_MS_MAX - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS);
    if (clock <= newest) return newest;
    return Math.max(newest, tick(), this.#ofLog.newest);
  }

  get #ofLog(): Writers {
    return this.#writers ??= writersOf(this.#log);
  }
}

/**
 * Collects the writers of a log from each piece's head and entries: a base has no entries, and a log of before may have
 * no token.
 */
function writersOf(log: readonly OpenPiece[]): Writers {
  const replicas = new Set<number>();
  let newest = 0;
  for (const { seen, writer, bytes } of log) {
    if (seen !== null) {
      replicas.add(seen.token.replica);
      newest = Math.max(newest, seen.token.clock);
    }
    if (writer !== undefined) replicas.add(writer);
    for (const entry of entriesOf(bytes)) {
      if (entry.kind === "effect") newest = Math.max(newest, entry.clock);
      if (entry.kind === "turn" && entry.input.kind === "epoch") replicas.add(entry.input.replica);
    }
  }
  return { replicas, newest };
}

/** Reads entries. Entries that can't be read write nothing, and are reported by whoever replays them. */
function entriesOf(bytes: Uint8Array): readonly ReadEntry[] {
  try {
    return readEntries(bytes);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return [];
  }
}
