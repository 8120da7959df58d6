/** State that module_state_app.ts has in another module of its own. */

let n = 0;
export const counter = {
  next: (): number => ++n,
};

export function makeCounter(): { next(): number; keep(id: string): number } {
  let next = 0;
  const kept = new Map<string, number>();
  return {
    next: () => ++next,
    keep: (id) => kept.set(id, kept.size).size,
  };
}

export class Registry {
  #entered = 0;
  #last = "";
  readonly #rooms = new Map<string, number>();

  enter(id: string): number {
    [this.#last] = [id];
    return ++this.#entered;
  }

  room(id: string): number {
    return this.#rooms.set(id, this.#entered).size;
  }

  get size(): string {
    return `${this.#entered} ${this.#rooms.size} ${this.#last}`;
  }
}
