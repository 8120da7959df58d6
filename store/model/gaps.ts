/**
 * The gaps of a journal, that is positions which were never given: each process goes on from beyond a number that it
 * draws.
 *
 * A copy of a disk that is put back does not know what that disk has had since. As soon as its site has written as much
 * again it would give the same positions to other rows, and a site or session that has seen the first rows would be
 * taken for one that has seen these. Since a journal jumps at each start, the positions given after the copy was made
 * lie in the gap, and stay there whatever comes later; where the journal had jumped as well before it went back, two
 * random places of it would have to be the same.
 *
 * JG1  No position inside a gap is of this disk. A site or token that names one has it from a time that a copy has
 *      taken back.
 * JG2  A gap is on disk before anything is told of a position beyond it.
 * JG3  Where there are more gaps than are remembered, one is forgotten that its process made shortly after the gap
 *      before: a copy that was put back in between was put back within that time. A site that starts again and again,
 *      over a copy that is older, still knows of the first of these starts. Positions in a gap that is forgotten count
 *      as given.
 * JG4  No jump goes beyond the half of all positions: there is always one for the next row, however often a site starts.
 */
import { Reader, Writer } from "./codec.ts";
import { GAPS_MAX, JUMP_SHARE } from "./limits.ts";
import type { Random } from "./ports.ts";
import type { ClockValue, Position } from "./row.ts";

/** Gap of one process: the positions between two that are of this disk themselves. */
export interface Gap {
  readonly from: Position;
  readonly to: Position;
  /** Clock value past all that was said on this disk before the gap, and no later than the process that made it. */
  readonly clock: ClockValue;
  /** Time at which the gap was made, by a wall clock that may be wrong. */
  readonly atMs: number;
}

/** Gaps of one journal, oldest first, as far as they are remembered. */
export class Gaps {
  readonly all: readonly Gap[];

  constructor(all: readonly Gap[] = []) {
    this.all = all;
  }

  get last(): Gap | undefined {
    return this.all.at(-1);
  }

  /** Returns the gap that a position lies in. */
  around(position: Position): Gap | undefined {
    let low = 0, high = this.all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.all[middle]?.to ?? Infinity) > position) high = middle;
      else low = middle + 1;
    }
    const gap = this.all[low];
    return gap !== undefined && gap.from < position ? gap : undefined;
  }

  /** Returns these gaps and another one (JG3). */
  and(gap: Gap): Gaps {
    const all = [...this.all, gap];
    while (all.length > GAPS_MAX) all.splice(soonest(all.slice(0, all.length >> 1)), 1);
    return new Gaps(all);
  }

  encode(): Uint8Array {
    const writer = new Writer(32 * this.all.length + 8);
    const one = ({ from, to, clock, atMs }: Gap) => writer.uint(from).uint(to).uint(clock).uint(atMs);
    return writer.list(this.all, one).done();
  }

  /** Decodes gaps. @throws CodecError */
  static decode(value: Uint8Array): Gaps {
    const reader = new Reader(value);
    const gap = (): Gap => ({
      from: reader.uint(),
      to: reader.uint(),
      clock: reader.uint(),
      atMs: reader.uint(),
    });
    const all = reader.list(gap);
    reader.end();
    return new Gaps(all);
  }
}

/** Returns the index of the gap that was made soonest after the one before. */
function soonest(gaps: readonly Gap[]): number {
  const waited = gaps.map(({ atMs }, i) => Math.abs(atMs - (gaps[i - 1]?.atMs ?? -Infinity)));
  return waited.indexOf(Math.min(...waited));
}

/** Returns the position from which a process goes on that finds its journal ending at `head`. */
export function jumpedFrom(head: Position, random: Random): Position {
  const least = Math.max(0, Math.floor((JUMPS_END - head) * JUMP_SHARE)); // JG4
  return head + least + Math.floor(drawn(random) * least);
}

/** Position beyond which no jump goes: half of all (JG4). */
const JUMPS_END = 2 ** 52;

/** Draws a number from 0 to 1, in steps finer than positions. */
export const drawn = (random: Random): number => random.bytes(6).reduce((sum, byte) => (sum + byte) / 256, 0);
