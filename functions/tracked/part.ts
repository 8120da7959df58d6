/**
 * The tracked structure as its holder sees it: it writes what changed since the last checkpoint as bytes, and is made
 * again from such bytes. The holder is the state of a stateful session (state.ts), or another structure.
 *
 * An app's bundle holds its own copy of the structures and the trusted side another of the state, so they know
 * each other by registered symbols, never by `instanceof`. Nothing here reaches node: or npm: imports.
 *
 * Life of a structure: made (unattached, all of it new) → attached to one holder → written and changed in turn →
 * detached, when its holder lets it go; then it may be attached again, as new.
 *
 * T1  A structure that is loaded from a whole segment and the changes after it equals the one that wrote them, with the
 *     order of iteration, and writes the same bytes next after the same changes.
 * T2  A structure has at most one holder: two would each make one of their own of it when they are loaded.
 * T3  No structure shares memory with what an app handed in or was given (owned.ts), so nothing changes unseen.
 * T4  Reading bytes throws `value_corrupt` for what is no such segment, and allocates no more than the limits allow.
 */
import { AppError } from "../vocabulary/errors.ts";

/** Symbol under which a structure answers with its kind, by which it is recognised. */
export const KIND: unique symbol = Symbol.for("sojourn.tracked.kind") as never;
/** Symbol under which a structure takes a holder. */
export const ATTACH: unique symbol = Symbol.for("sojourn.tracked.attach") as never;
/** Symbol under which a structure is let go. */
export const DETACH: unique symbol = Symbol.for("sojourn.tracked.detach") as never;
/** Symbol under which a structure writes a segment. */
export const WRITE: unique symbol = Symbol.for("sojourn.tracked.write") as never;
/** Symbol under which a structure reads a segment. */
export const READ: unique symbol = Symbol.for("sojourn.tracked.read") as never;
/** Symbol under which a structure answers whether anything changed. */
export const CHANGED: unique symbol = Symbol.for("sojourn.tracked.changed") as never;
/** Symbol under which a holder is told of changes. */
export const PART_CHANGED: unique symbol = Symbol.for("sojourn.tracked.part_changed") as never;
/** Symbol under which a holder answers with a part's path. */
export const PATH_OF: unique symbol = Symbol.for("sojourn.tracked.path_of") as never;
/** Symbol under which a structure or a holder answers with the outermost one that it lies in. */
export const TOP: unique symbol = Symbol.for("sojourn.tracked.top") as never;

const KINDS: unique symbol = Symbol.for("sojourn.tracked.kinds") as never;

/** Kind of a structure. */
export type Kind = "value" | "map" | "list" | "bytes" | "grid" | "nested";

/** Byte that stands for each kind in segments. */
export const KIND_BYTE: Readonly<Record<Kind, number>> = {
  value: 1,
  map: 2,
  list: 3,
  bytes: 4,
  grid: 5,
  nested: 6,
};

/** Holder of structures: the state of a session, or another structure. */
export interface StructureHolder {
  /** Notes the first change since the part was written last. */
  [PART_CHANGED](part: Part): void;
  /** Returns the path of a part as an app would write it: `cart.items[3]`. */
  [PATH_OF](part: Part): string;
  /** Outermost holder that this one lies in. */
  readonly [TOP]: unknown;
}

/** Any tracked structure. */
export interface Tracked {
  /** Tag that tells a tracked structure from other objects. */
  readonly [Symbol.toStringTag]: "Tracked";
}

/** Tracked structure as its holder uses it. */
export interface Part extends Tracked {
  readonly [KIND]: Kind;
  /** True where a change was made since the last write. */
  readonly [CHANGED]: boolean;
  /** Outermost holder that the structure lies in; itself while it has no holder; absent in one of an older bundle. */
  readonly [TOP]?: unknown;
  /** Takes a holder. @throws AppError `value_invalid` where it has one already (T2). */
  [ATTACH](holder: StructureHolder): void;
  [DETACH](): void;
  /** Returns the changes since the last write, or all of the structure; from then on it counts as written. */
  [WRITE](isWhole: boolean): Uint8Array;
  /** Applies a segment, the first of which has to be a whole one. @throws AppError `value_corrupt`. */
  [READ](segment: Uint8Array): void;
}

/** Reports whether a value is a structure, whichever copy of this module made it. */
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
    // Members of a nested structure are such properties.
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

/** Base class of all structures, with their life cycle. */
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

  /** Outermost holder (see {@link Part}). */
  get [TOP](): unknown {
    return this.#holder === undefined ? this.self : this.#holder[TOP];
  }

  /** Structure as an app has it: this object, but for nested ones. */
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

  /** Path of this structure; its kind while it has no holder. */
  protected get path(): string {
    return this.#holder?.[PATH_OF](this.self) ?? this[KIND];
  }

  /** Notes a change; to be called by every one. */
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

/** Registers how an empty structure of a kind is made; the copy that an app's bundle holds comes last and stays. */
export function register(kind: Kind, make: () => Part): void {
  registry().set(kind, make);
}

/** Returns an empty structure of the kind that a byte stands for. @throws AppError `value_corrupt`. */
export function partOfByte(byte: number): Part {
  for (const [kind, make] of registry()) if (KIND_BYTE[kind] === byte) return make();
  throw corrupt(`${byte} stands for no kind of tracked structure`);
}

/** Makes the error for bytes that no structure wrote. */
export const corrupt = (why: string): AppError =>
  new AppError("value_corrupt", `a checkpoint can't be read: ${why}`);
