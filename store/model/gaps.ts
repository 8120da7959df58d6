/**
 * Positions of a journal that were never given: each process goes on from beyond a number that it draws.
 *
 * A copy of a disk that is put back does not know what that disk has had since. As soon as its site has written as much
 * it would give the same positions to other rows, and whoever has seen the first ones would be taken for somebody who has
 * seen these. Since it jumps at its start, what was written after the copy lies in what it leaves out, and stays there
 * whatever comes later; where that journal had jumped as well before it went back, two random places of it would have to
 * be the same.
 *
 * JG1  No position inside a gap is of this disk. Whoever names one has it from a time that a copy has taken back.
 * JG2  A gap is on disk before anything is told of a position beyond it.
 * JG3  Of more than are remembered, one is forgotten that its process made shortly after the one before: a copy that was
 *      put back in between was put back within that time. A site that starts again and again, over a copy that is older,
 *      still knows of the first of these starts. What lies in a gap that is forgotten counts as given.
 * JG4  No jump goes beyond the half of all positions: there is always one for the next row, however often a site starts.
 */
import { Reader, Writer } from "./codec.ts";
import { GAPS_MAX, JUMP_SHARE } from "./limits.ts";
import type { Random } from "./ports.ts";
import type { ClockValue, Position } from "./row.ts";

/** What one process has left out: all between two positions, which are of this disk themselves. */
export interface Gap {
  readonly from: Position;
  readonly to: Position;
  /** Past all that was said on this disk before it, and no later than the process that made it. */
  readonly clock: ClockValue;
  /** When that was, by a wall clock that may be wrong. */
  readonly atMs: number;
}

/** The gaps of one journal, oldest first, as far as they are remembered. */
export class Gaps {
  readonly all: readonly Gap[];

  constructor(all: readonly Gap[] = []) {
    this.all = all;
  }

  get last(): Gap | undefined {
    return this.all.at(-1);
  }

  /** The gap that a position lies in. */
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

  /** These and another one (JG3). */
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

  /** @throws CodecError */
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

/** The index of the gap that was made soonest after the one before. */
function soonest(gaps: readonly Gap[]): number {
  const waited = gaps.map(({ atMs }, i) => Math.abs(atMs - (gaps[i - 1]?.atMs ?? -Infinity)));
  return waited.indexOf(Math.min(...waited));
}

/** Where a process goes on that finds its journal ending at a position. */
export function jumpedFrom(head: Position, random: Random): Position {
  const least = Math.max(0, Math.floor((JUMPS_END - head) * JUMP_SHARE)); // JG4
  return head + least + Math.floor(drawn(random) * least);
}

/** JG4 */
const JUMPS_END = 2 ** 52;

/** From 0 to 1, in steps finer than positions. */
export const drawn = (random: Random): number => random.bytes(6).reduce((sum, byte) => (sum + byte) / 256, 0);
