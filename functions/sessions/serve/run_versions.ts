/**
 * Under which versions one opening of a stateful session may write. They come from its isolate, in which an app can do
 * what it likes, and rows under another site's number, or ahead of its clock, would be the whole cluster's affair.
 *
 * RV1  What a turn writes is this site's, under a clock that the run was given with an event, or of the moment at which
 *      its commit came, or somewhat after all of these: a handler that goes on writes after itself, be the store's clock
 *      ahead of this site's (functions/sessions/turn/live_source.ts). In that way isolates lead the store's clock on no
 *      faster than time passes: what is ahead of it does not come to be more so.
 * RV2  What the log left open is of a site that wrote a piece of it, under a clock that is in the log: each was checked
 *      when it was committed (RV1). Of an epoch that began before its base, the base says it. That is what leaves as it is opened, and what a handler has written that goes on from
 *      there: it leaves with the first commit that ends at a point, and nothing of the log does after that.
 * RV3  A commit names no epoch but as this site's: what a log says of who wrote it was checked, too.
 */
import { readEntries, type ReadEntry } from "../turn/log_entry.ts";
import type { Commit, Effect, OpenedProgram } from "../turn/mod.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import type { OpenPiece } from "./pieces.ts";

/** An isolate reads the same clock as its site, and counts within its milliseconds. */
const AHEAD_MS_MAX = 1_000;
/** In a while in which none led: eight writes of an isolate are a millisecond (store/model/clock_share.ts). */
const LEAD_MS_MAX = 1_000;

/** What it needs of its run. */
export interface VersionsOf {
  /** This site's number at the store, as the isolate was told it. */
  readonly replica: number;
  readonly nowMs: () => number;
  /** The clock of this site's store. */
  readonly tick: () => number;
  /** Of this site. */
  readonly lead: ClockLead;
}

/** How far the isolates of a site may lead its store's clock on. */
export class ClockLead {
  readonly #nowMs: () => number;
  #left = LEAD_MS_MAX * CLOCK_TICKS_PER_MS;
  #countedMs: number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#countedMs = nowMs();
  }

  /** Whether so many ticks may be led now (RV1). */
  takes(ticks: number): boolean {
    const nowMs = this.#nowMs(), passedMs = Math.max(0, nowMs - this.#countedMs);
    this.#countedMs = nowMs;
    this.#left = Math.min(LEAD_MS_MAX, this.#left / CLOCK_TICKS_PER_MS + passedMs) * CLOCK_TICKS_PER_MS;
    if (ticks > this.#left) return false;
    this.#left -= ticks;
    return true;
  }
}

/** What a log says of who wrote it. */
interface Writers {
  readonly replicas: ReadonlySet<number>;
  readonly newest: number;
}

/** See the file's header. */
export class RunVersions {
  readonly #of: VersionsOf;
  /** Until nothing of it is open (RV2). */
  #log: readonly OpenPiece[];
  #writers: Writers | null = null;
  /** The newest that the run was given. */
  #given = 0;
  /** The newest that the run has written under. */
  #newest = 0;

  /** @param log its base and its pieces. */
  constructor(of: VersionsOf, log: readonly OpenPiece[]) {
    this.#of = of;
    this.#log = log;
  }

  /** The number under which this opening writes. */
  get writer(): number {
    return this.#of.replica;
  }

  /** The run gives its isolate this clock. */
  gives(clock: number): void {
    this.#given = Math.max(this.#given, clock);
  }

  /** What is wrong of a commit; null: nothing. */
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

  /** What is wrong of what the log left open; null: nothing. */
  ofLog({ effects, isQuiescent }: Pick<OpenedProgram, "effects" | "isQuiescent">): string | null {
    for (const effect of effects) {
      const wrong = this.#wrongOf(effect);
      if (wrong !== null) return wrong;
    }
    if (isQuiescent) this.#forget();
    return null;
  }

  /** RV2 */
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

  /** RV1 */
  #isOwn(clock: number): boolean {
    const newest = this.#newestFor(clock);
    return clock <= newest || this.#of.lead.takes(clock - newest);
  }

  /** The newest that is known, or as new as this one: the cheapest is asked first. */
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

/** A base has no entries, and a log of before may have no token: each tells of what it has. */
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

/** What can't be read is told by who replays it, and writes nothing. */
function entriesOf(bytes: Uint8Array): readonly ReadEntry[] {
  try {
    return readEntries(bytes);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return [];
  }
}
