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
 */
import { Reader, Writer } from "./codec.ts";
import { GAPS_MAX, JUMP_SHARE } from "./limits.ts";
import type { Random } from "./ports.ts";
import type { ClockValue, Position } from "./row.ts";

/** What one process has left out: all between two positions, which are of this disk themselves. */
export interface Gap {
  readonly from: Position;
  readonly to: Position;
  /** Past all that was said on this disk before it. */
  readonly clock: ClockValue;
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
    return this.all.find(({ from, to }) => from < position && position < to);
  }

  /** These and another one. The oldest are forgotten: what lies in them counts as given. */
  and(gap: Gap): Gaps {
    return new Gaps([...this.all, gap].slice(-GAPS_MAX));
  }

  encode(): Uint8Array {
    const writer = new Writer(16 * this.all.length + 8);
    return writer.list(this.all, ({ from, to, clock }) => writer.uint(from).uint(to).uint(clock)).done();
  }

  /** @throws CodecError */
  static decode(value: Uint8Array): Gaps {
    const reader = new Reader(value);
    const all = reader.list((): Gap => ({ from: reader.uint(), to: reader.uint(), clock: reader.uint() }));
    reader.end();
    return new Gaps(all);
  }
}

/** Where a process goes on that finds its journal ending at a position. */
export function jumpedFrom(head: Position, random: Random): Position {
  const least = Math.floor((Number.MAX_SAFE_INTEGER - head) * JUMP_SHARE);
  return head + least + Math.floor(drawn(random) * least);
}

/** From 0 to 1, in steps finer than positions. */
export const drawn = (random: Random): number => random.bytes(6).reduce((sum, byte) => (sum + byte) / 256, 0);
