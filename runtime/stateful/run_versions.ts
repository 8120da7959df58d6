/**
 * Under which versions one opening of a stateful session may write. They come from its isolate, in which an app can do
 * what it likes, and rows under another site's number, or ahead of its clock, would be the whole cluster's affair.
 *
 * RV1  What a commit writes is this site's, under a clock that the run was given with an event, or of the moment at which
 *      it came: nothing that has no event is later (functions/turns/live_source.ts).
 * RV2  What the log left open is of a site that wrote a piece of it, under a clock that is in the log: of those, each was
 *      checked when it was committed (RV1).
 * RV3  A handler that was begun in the log and goes on commits at its end what it wrote before: that is as RV2 says.
 */
import type { Commit, Effect, Opened } from "../../functions/turns/mod.ts";
import { readEntries } from "../../functions/turns/log_entry.ts";
import { CodecError } from "../../store/codec.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../store/row.ts";
import type { OpenPiece } from "./pieces.ts";

/** An isolate reads the same clock as its site, and counts within its milliseconds. */
const AHEAD_MS_MAX = 1_000;

/** What it needs of its run. */
export interface VersionsOf {
  /** This site's number at the store, as the isolate was told it. */
  readonly replica: number;
  readonly nowMs: () => number;
  /** The clock of this site's store. */
  readonly tick: () => number;
}

/** See the file's header. */
export class RunVersions {
  readonly #of: VersionsOf;
  /** Until it is asked what it leaves open. */
  #log: readonly OpenPiece[];
  /** The newest that the run was given, or that the log has of a handler that goes on (RV3). */
  #given = 0;
  /** RV3: who wrote the log; nobody where nothing goes on. */
  #before: ReadonlySet<number> = new Set();

  /** @param log its base and its pieces. */
  constructor(of: VersionsOf, log: readonly OpenPiece[]) {
    this.#of = of;
    this.#log = log;
  }

  /** The run gives its isolate this clock. */
  gives(clock: number): void {
    this.#given = Math.max(this.#given, clock);
  }

  /** RV1, RV3; what is wrong, null: nothing. */
  ofCommit({ effects, entries }: Pick<Commit, "effects" | "entries">): string | null {
    const { replica } = this.#of;
    const other = effects.find((effect) => effect.replica !== replica && !this.#before.has(effect.replica));
    if (other !== undefined) return `writes as ${other.replica}, and this site is ${replica}`;
    const newest = newestIn(entries, newestOf(effects));
    return newest <= this.#given || this.#isPast(newest)
      ? null
      : `writes at ${newest}, which is ahead of time`;
  }

  /** RV2; what is wrong, null: nothing. */
  ofLog({ effects, isQuiescent }: Pick<Opened, "effects" | "isQuiescent">): string | null {
    const log = this.#log;
    this.#log = [];
    if (effects.length === 0 && isQuiescent) return null;
    const replicas = new Set([this.#of.replica, ...log.flatMap(({ seen }) => seen?.token.replica ?? [])]);
    if (!isQuiescent) { // RV3
      this.#before = replicas;
      for (const { seen, bytes } of log) {
        this.#given = newestIn(bytes, Math.max(this.#given, seen?.token.clock ?? 0));
      }
    }
    const other = effects.find(({ replica }) => !replicas.has(replica));
    if (other !== undefined) return `writes as ${other.replica}, which wrote none of its log`;
    const newest = newestOf(effects);
    if (this.#isPast(newest) || log.some(({ seen, bytes }) => newest <= newestIn(bytes, seen?.token.clock))) {
      return null;
    }
    return `writes at ${newest}, which is not in its log`;
  }

  #isPast(clock: number): boolean {
    const { nowMs, tick } = this.#of;
    return clock <= (nowMs() + AHEAD_MS_MAX - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS || clock <= tick();
  }
}

const newestOf = (effects: readonly Effect[]): number =>
  effects.reduce((newest, { clock }) => Math.max(newest, clock), 0);

/** The newest version that entries say, or `least`; what can't be read is told by who replays it, and writes nothing. */
function newestIn(entries: Uint8Array, least = 0): number {
  try {
    return readEntries(entries).reduce((newest, entry) => {
      return entry.kind === "effect" ? Math.max(newest, entry.clock) : newest;
    }, least);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return least;
  }
}
