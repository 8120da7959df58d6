/**
 * A tracked structure as its holder sees it: what changed since the last checkpoint is asked of it as bytes, and it
 * is made again from such bytes. The holder is the state of a stateful session (state.ts), or another structure.
 *
 * An app's bundle holds its own copy of the structures and the trusted side another of the state, so they know
 * each other by registered symbols, never by `instanceof`. Nothing here reaches node: or npm: imports.
 *
 * Life of a structure: made (unattached, all of it new) → attached to one holder → written and changed in turn →
 * detached, when its holder lets it go; then it may be attached again, as new.
 *
 * T1  What is loaded from a whole segment and the changes after it equals the structure that wrote them, with the order
 *     of iteration, and writes the same bytes next after the same changes.
 * T2  A structure has at most one holder: two would each make one of their own of it when they are loaded.
 * T3  No structure shares memory with what an app handed in or was given (owned.ts), so nothing changes unseen.
 * T4  Reading bytes throws `value_corrupt` for what is no such segment, and allocates no more than the limits allow.
 */
import { AppError } from "../vocabulary/errors.ts";

/** Under which a structure answers with its kind: how it is recognised. */
export const KIND: unique symbol = Symbol.for("sojourn.tracked.kind") as never;
/** Under which a structure takes a holder. */
export const ATTACH: unique symbol = Symbol.for("sojourn.tracked.attach") as never;
/** Under which a structure is let go. */
export const DETACH: unique symbol = Symbol.for("sojourn.tracked.detach") as never;
/** Under which a structure writes a segment. */
export const WRITE: unique symbol = Symbol.for("sojourn.tracked.write") as never;
/** Under which a structure reads a segment. */
export const READ: unique symbol = Symbol.for("sojourn.tracked.read") as never;
/** Under which a structure answers whether anything changed. */
export const CHANGED: unique symbol = Symbol.for("sojourn.tracked.changed") as never;
/** Under which a holder is told of changes. */
export const PART_CHANGED: unique symbol = Symbol.for("sojourn.tracked.part_changed") as never;
/** Under which a holder says where a part is. */
export const PATH_OF: unique symbol = Symbol.for("sojourn.tracked.path_of") as never;
/** Under which a holder says what all lies in. */
export const TOP: unique symbol = Symbol.for("sojourn.tracked.top") as never;

const KINDS: unique symbol = Symbol.for("sojourn.tracked.kinds") as never;

/** The kinds of structures. */
export type Kind = "value" | "map" | "list" | "bytes" | "grid" | "nested";

/** The kinds, by the byte that stands for them in segments. */
export const KIND_BYTE: Readonly<Record<Kind, number>> = {
  value: 1,
  map: 2,
  list: 3,
  bytes: 4,
  grid: 5,
  nested: 6,
};

/** Who a structure belongs to. */
export interface StructureHolder {
  /** The first change since the part was written last. */
  [PART_CHANGED](part: Part): void;
  /** Where a part is, as an app would write it: `cart.items[3]`. */
  [PATH_OF](part: Part): string;
  /** What all lies in, at last. */
  readonly [TOP]: unknown;
}

/** What every tracked structure is. */
export interface Tracked {
  /** Tells it from other objects. */
  readonly [Symbol.toStringTag]: "Tracked";
}

/** What all structures have towards their holder. */
export interface Part extends Tracked {
  readonly [KIND]: Kind;
  /** Whether a change was made since the last write. */
  readonly [CHANGED]: boolean;
  /** What it lies in, at last; itself while nobody holds it; not said by one of an older bundle. */
  readonly [TOP]?: unknown;
  /** @throws AppError `value_invalid` where it has a holder already (T2). */
  [ATTACH](holder: StructureHolder): void;
  [DETACH](): void;
  /** The changes since the last write, or all of it; from then on it counts as written. */
  [WRITE](isWhole: boolean): Uint8Array;
  /** Applies a segment, the first of which has to be a whole one. @throws AppError `value_corrupt`. */
  [READ](segment: Uint8Array): void;
}

/** Whether a value is a structure, whichever copy of this module made it. */
export const isPart = (value: unknown): value is Part =>
  typeof value === "object" && value !== null && KIND in value;

/**
 * Keeps a structure from having properties of its own: no checkpoint would have them.
 *
 * @throws AppError `value_invalid` where it has some
 */
export function lock(part: Part, path: string): void {
  if (!Object.isExtensible(part)) return;
  for (const name of Reflect.ownKeys(part)) {
    const found = Reflect.getOwnPropertyDescriptor(part, name);
    // What nested ones have under names.
    if (found?.writable === false && isPart(found.value)) continue;
    throw new AppError(
      "value_invalid",
      `can't keep ${path}: a tracked ${part[KIND]} with a property of its own, ${
        String(name)
      }, which no checkpoint has`,
      { path },
    );
  }
  Object.preventExtensions(part);
}

/** The part of life that all structures share. */
export abstract class TrackedPart implements Part {
  abstract readonly [KIND]: Kind;
  #holder: StructureHolder | undefined;
  #isChanged = true;

  get [Symbol.toStringTag](): "Tracked" {
    return "Tracked";
  }

  get [CHANGED](): boolean {
    return this.#isChanged;
  }

  /** See {@link StructureHolder}. */
  get [TOP](): unknown {
    return this.#holder === undefined ? this.self : this.#holder[TOP];
  }

  /** What an app has of it: itself, but for nested ones. */
  protected get self(): Part {
    return this;
  }

  [ATTACH](holder: StructureHolder): void {
    if (this.#holder !== undefined) {
      throw new AppError(
        "value_invalid",
        `a tracked ${this[KIND]} can be in one place only, and this one is at ${this.path}: make another`,
        { path: this.path },
      );
    }
    lock(this.self, this.path);
    this.#holder = holder;
  }

  [DETACH](): void {
    this.#holder = undefined;
    this.#isChanged = true;
  }

  [WRITE](isWhole: boolean): Uint8Array {
    const segment = this.write(isWhole);
    this.#isChanged = false;
    return segment;
  }

  [READ](segment: Uint8Array): void {
    try {
      this.read(segment);
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw corrupt(error instanceof Error ? error.message : String(error));
    }
    this.#isChanged = false;
  }

  /** Where this is; its kind while nobody holds it. */
  protected get path(): string {
    return this.#holder?.[PATH_OF](this.self) ?? this[KIND];
  }

  /** To be called by every change. */
  protected touch(): void {
    if (this.#isChanged) return;
    this.#isChanged = true;
    this.#holder?.[PART_CHANGED](this.self);
  }

  protected abstract write(isWhole: boolean): Uint8Array;
  protected abstract read(segment: Uint8Array): void;
}

type Registry = Map<Kind, () => Part>;

function registry(): Registry {
  const slots = globalThis as { [KINDS]?: Registry };
  if (slots[KINDS] === undefined) {
    Object.defineProperty(globalThis, KINDS, { value: new Map() });
  }
  return slots[KINDS] ?? new Map();
}

/** Says how a kind is made empty; the copy that an app's bundle holds comes last and stays. */
export function register(kind: Kind, make: () => Part): void {
  registry().set(kind, make);
}

/** An empty structure of the kind that a byte stands for. @throws AppError `value_corrupt`. */
export function partOfByte(byte: number): Part {
  for (const [kind, make] of registry()) if (KIND_BYTE[kind] === byte) return make();
  throw corrupt(`${byte} stands for no kind of tracked structure`);
}

/** The error for bytes that no structure wrote. */
export const corrupt = (why: string): AppError =>
  new AppError("value_corrupt", `a checkpoint can't be read: ${why}`);
