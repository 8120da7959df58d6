/**
 * The base class of structures that hold values or other structures: it takes cells in and lets them go, and knows
 * which of the structures inside changed.
 */
import { takeIn, unfit } from "./owned.ts";
import { type Cell, PagedValue, read } from "./pages.ts";
import {
  ATTACH,
  DETACH,
  isPart,
  type Part,
  PART_CHANGED,
  PATH_OF,
  type StructureHolder,
  TOP,
  TrackedPart,
} from "./part.ts";

export abstract class Container extends TrackedPart implements StructureHolder {
  #changedParts: Set<Part> | undefined;

  [PART_CHANGED](part: Part): void {
    (this.#changedParts ??= new Set()).add(part);
    this.touch();
  }

  abstract [PATH_OF](part: Part): string;

  /** Returns the cell for what an app puts in. @throws AppError `value_invalid`. */
  protected admit(value: unknown, pathOf: () => string): Cell {
    if (!isPart(value)) return takeIn(value, pathOf);
    if (value === this[TOP]) throw unfit(pathOf(), "a tracked structure that this one lies in");
    value[ATTACH](this);
    return value;
  }

  /** Lets a cell go; to be called for each that leaves. */
  protected release(cell: Cell): void {
    if (!isPart(cell)) return;
    cell[DETACH]();
    this.#changedParts?.delete(cell);
  }

  /** Takes in a cell that was loaded: the structure that reads it holds it from now on. */
  protected adopt(cell: Cell): Cell {
    if (isPart(cell)) cell[ATTACH](this);
    return cell;
  }

  /** Structures inside that changed by themselves since the last write. */
  protected get changedParts(): ReadonlySet<Part> {
    return this.#changedParts ?? NONE;
  }

  /** Forgets which structures inside changed; to be called after a write, which had all of them. */
  protected allWritten(): void {
    this.#changedParts = undefined;
  }
}

const NONE: ReadonlySet<Part> = new Set();

/** Returns what an app is given for a cell that may still be in its page; `put` keeps what was decoded. */
export function readThrough(cell: Cell, put: (cell: Cell) => void): unknown {
  if (!(cell instanceof PagedValue)) return read(cell);
  const taken = cell.take();
  put(taken);
  return read(taken);
}
