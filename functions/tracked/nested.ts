/**
 * The nested structure: several structures under names, as one. A map or a list has one for each of its entries where
 * these have several tracked parts.
 *
 * A segment: flag, whether it has all structures, or only those that changed; a list: text name, byte kind, sized
 * segment.
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import { AppError } from "../vocabulary/errors.ts";
import { step, unfit } from "./owned.ts";
import type { TrackedNested } from "./structures.ts";
import {
  ATTACH,
  CHANGED,
  corrupt,
  DETACH,
  isPart,
  KIND,
  KIND_BYTE,
  type Part,
  PART_CHANGED,
  partOfByte,
  PATH_OF,
  READ,
  register,
  type StructureHolder,
  TOP,
  type Tracked,
  TrackedPart,
  WRITE,
} from "./part.ts";

/** Nested structure as an app sees it: nothing but symbols beside its members, so that these can have any name. */
class NestedFace implements Part {
  readonly #inner: NestedPart;

  constructor(parts: Readonly<Record<string, Tracked>>) {
    this.#inner = new NestedPart(this);
    for (const [name, part] of Object.entries(parts)) this.#inner.add(name, part);
  }

  get [KIND](): "nested" {
    return "nested";
  }
  get [Symbol.toStringTag](): "Tracked" {
    return "Tracked";
  }
  get [CHANGED](): boolean {
    return this.#inner[CHANGED];
  }
  get [TOP](): unknown {
    return this.#inner[TOP];
  }
  [ATTACH](holder: StructureHolder): void {
    this.#inner[ATTACH](holder);
  }
  [DETACH](): void {
    this.#inner[DETACH]();
  }
  [WRITE](isWhole: boolean): Uint8Array {
    return this.#inner[WRITE](isWhole);
  }
  [READ](segment: Uint8Array): void {
    this.#inner[READ](segment);
  }
}

class NestedPart extends TrackedPart implements StructureHolder {
  override get [KIND](): "nested" {
    return "nested";
  }
  readonly #face: NestedFace;
  readonly #parts = new Map<string, Part>();

  constructor(face: NestedFace) {
    super();
    this.#face = face;
  }

  protected override get self(): Part {
    return this.#face;
  }

  add(name: string, part: Tracked): void {
    if (!isPart(part)) {
      throw unfit(`nested${step(name)}`, "no tracked structure: put plain values in value() or in a map");
    }
    if (name in this.#face) {
      throw new AppError(
        "value_invalid",
        `nested() can't name a structure ${JSON.stringify(name)}: every object has that`,
        { path: name },
      );
    }
    part[ATTACH](this);
    this.#parts.set(name, part);
    // A structure that is held has the names that its class gives it: what other code has written besides stays in the
    // state.
    if (!Object.isExtensible(this.#face)) return;
    Object.defineProperty(this.#face, name, { value: part, enumerable: true });
  }

  [PART_CHANGED](): void {
    this.touch();
  }

  [PATH_OF](part: Part): string {
    for (const [name, each] of this.#parts) if (each === part) return `${this.path}${step(name)}`;
    return this.path;
  }

  protected override write(isWhole: boolean): Uint8Array {
    const parts = [...this.#parts].filter(([, part]) => isWhole || part[CHANGED]);
    const w = new Writer(256).flag(isWhole);
    return w.list(parts, ([name, part]) => {
      w.text(name).byte(KIND_BYTE[part[KIND]]).bytes(part[WRITE](isWhole));
    }).done();
  }

  protected override read(segment: Uint8Array): void {
    const r = new Reader(segment);
    const isWhole = r.flag();
    const seen = new Set<string>();
    r.list(() => {
      const name = r.text();
      const kind = r.byte();
      const bytes = r.view();
      if (seen.has(name)) throw corrupt(`${JSON.stringify(name)} is there twice`);
      seen.add(name);
      const part = this.#parts.get(name);
      if (part !== undefined && KIND_BYTE[part[KIND]] === kind) return part[READ](bytes);
      if (part !== undefined || !isWhole) {
        throw corrupt(`${JSON.stringify(name)} is no structure of that kind`);
      }
      const made = partOfByte(kind);
      made[READ](bytes);
      this.add(name, made);
    });
    r.end();
    if (isWhole && seen.size !== this.#parts.size) {
      throw corrupt("a nested structure lacks some of its parts");
    }
  }
}

register("nested", () => new NestedFace({}));

/**
 * Declares structures under names that belong together, as a value of a map or an item of a list.
 *
 * ```ts
 * import { list, map, nested, value } from "sojourn";
 *
 * const newCart = () => nested({ lines: list<string>(), note: value("") });
 * const carts = map<string, ReturnType<typeof newCart>>();
 * carts.set("ada", newCart());
 * carts.get("ada")?.lines.push("beans");
 * ```
 *
 * @throws AppError `value_invalid` for a member that is no structure, or a name that every object has.
 */
export function nested<T extends Readonly<Record<string, Tracked>>>(parts: T): TrackedNested<T> {
  return new NestedFace(parts) as unknown as TrackedNested<T>;
}
