/**
 * A tracked grid of numbers: a checkpoint holds the words in which cells were written.
 *
 * A segment: varints width and height; byte: the type's place in {@link TYPES}; then the segment of its memory
 * (memory.ts). Numbers are little endian, row after row.
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import { AppError } from "../vocabulary/errors.ts";
import type { CellType, GridRow, TrackedGrid } from "./structures.ts";
import { TrackedMemory } from "./memory.ts";
import { corrupt, KIND, register, TrackedPart } from "./part.ts";

const ARRAYS = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float32: Float32Array,
  float64: Float64Array,
} as const satisfies Record<CellType, unknown>;

/** Types of cells; the type's byte in a segment is a place in this array. */
const TYPES = Object.keys(ARRAYS) as CellType[];

/** Tracked grid, as its holder and an app see it. */
export class GridPart extends TrackedPart implements TrackedGrid {
  override get [KIND](): "grid" {
    return "grid";
  }
  #width: number;
  #height: number;
  #type: CellType;
  #memory: TrackedMemory;
  /** View of all of the memory as cells. */
  #cells: GridRow;

  constructor(width: number, height: number, type: CellType) {
    super();
    const array = ARRAYS[type];
    if (![width, height].every((each) => Number.isInteger(each) && each >= 0) || array === undefined) {
      throw new AppError(
        "value_invalid",
        `there is no grid of ${width} × ${height} ${type}: expected whole numbers and one of ${
          TYPES.join(", ")
        }`,
      );
    }
    [this.#width, this.#height, this.#type] = [width, height, type];
    this.#memory = new TrackedMemory(width * height * array.BYTES_PER_ELEMENT);
    this.#cells = this.#view();
  }

  #view(): GridRow {
    return new ARRAYS[this.#type](this.#memory.bytes.buffer, 0, this.#width * this.#height);
  }

  get width(): number {
    return this.#width;
  }

  get height(): number {
    return this.#height;
  }

  get type(): CellType {
    return this.#type;
  }

  get(x: number, y: number): number {
    return this.#cells[this.#place(x, y)] ?? 0;
  }

  set(x: number, y: number, value: number): void {
    const place = this.#place(x, y);
    this.#memory.markWord(place * this.#cells.BYTES_PER_ELEMENT);
    this.#cells[place] = value;
    this.touch();
  }

  fill(value: number): this {
    this.#mark(0, this.#cells.length);
    this.#cells.fill(value);
    return this;
  }

  row(y: number): GridRow {
    const from = this.#rowAt(y);
    return this.#cells.slice(from, from + this.#width);
  }

  setRow(y: number, values: ArrayLike<number>, x = 0): void {
    const from = this.#rowAt(y) + x;
    if (!(Number.isInteger(x) && x >= 0 && x + values.length <= this.#width)) {
      throw new RangeError(
        `a row of ${this.path} has ${this.#width} cells: can't set ${values.length} from ${x} on`,
      );
    }
    this.#mark(from, from + values.length);
    this.#cells.set(values, from);
  }

  edit(fromRow: number, toRow: number, change: (rows: GridRow) => void): void {
    const from = fromRow === this.#height ? this.#cells.length : this.#rowAt(fromRow);
    const to = toRow === this.#height ? this.#cells.length : this.#rowAt(toRow);
    this.#mark(from, to);
    change(this.#cells.subarray(from, Math.max(from, to)));
  }

  #mark(from: number, to: number): void {
    const size = this.#cells.BYTES_PER_ELEMENT;
    this.#memory.mark(from * size, to * size);
    if (from < to) this.touch();
  }

  #place(x: number, y: number): number {
    if (!(Number.isInteger(x) && x >= 0 && x < this.#width)) this.#outside(x, y);
    return this.#rowAt(y, x) + x;
  }

  #rowAt(y: number, x?: number): number {
    if (!(Number.isInteger(y) && y >= 0 && y < this.#height)) this.#outside(x, y);
    return y * this.#width;
  }

  #outside(x: number | undefined, y: number): never {
    const asked = x === undefined ? `row ${y}` : `cell ${x}, ${y}`;
    throw new RangeError(`${this.path} has ${this.#width} × ${this.#height} cells: there is no ${asked}`);
  }

  protected override write(isWhole: boolean): Uint8Array {
    const w = new Writer(16).uint(this.#width).uint(this.#height).byte(TYPES.indexOf(this.#type));
    return joined(w.done(), this.#memory.write(isWhole));
  }

  protected override read(segment: Uint8Array): void {
    const r = new Reader(segment.subarray(0, HEAD_BYTES_MAX));
    const [width, height, type] = [r.uint(), r.uint(), TYPES[r.byte()]];
    if (type === undefined) throw corrupt("a grid is of no type");
    const head = new Writer(16).uint(width).uint(height).byte(0).done().length;
    const memory = segment[head] === 1 ? new TrackedMemory(0) : this.#memory;
    memory.read(segment.subarray(head));
    if (memory.length !== width * height * ARRAYS[type].BYTES_PER_ELEMENT) {
      throw corrupt(`a grid of ${width} × ${height} ${type} has ${memory.length} bytes`);
    }
    [this.#width, this.#height, this.#type, this.#memory] = [width, height, type, memory];
    this.#cells = this.#view();
  }
}

/** Longest head of a segment: two numbers and a byte. */
const HEAD_BYTES_MAX = 17;

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

register("grid", () => new GridPart(0, 0, "uint8"));

/**
 * Declares a tracked grid as a field of a Session class; its cells are 0.
 *
 * ```ts
 * import { grid } from "sojourn";
 *
 * const board = grid({ width: 15, height: 15, type: "uint8" });
 * board.set(7, 7, 1);
 * ```
 *
 * @throws AppError `value_invalid` for a size or type that no grid can have; `limit_value` where its cells take more
 *     bytes than a structure may hold (256 MiB).
 */
export function grid(
  { width, height, type = "float64" }: {
    readonly width: number;
    readonly height: number;
    readonly type?: CellType;
  },
): TrackedGrid {
  return new GridPart(width, height, type);
}
