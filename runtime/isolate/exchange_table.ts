/**
 * The exchanges of one connection by their ids, which rise by one: a table of slots that is never rebuilt.
 *
 * A Map would do, and did: with an entry added and deleted for every request it is rebuilt all the time, and each
 * old table that has grown old keeps what came after it from being collected young.
 *
 * X1  A slot holds the exchange whose id ends in its number; one that finds its slot taken by an older one that
 *     lasts (a stream, a socket) goes into a Map.
 */

/**
 * Number of slots: four times as many as the exchanges that run in an isolate by default, so that few find theirs
 * taken.
 */
const SLOTS = 1024;

/** An entry of the table, named by its id. */
interface Identified {
  readonly id: number;
}

/** Table of exchanges by id. */
export class ExchangeTable<T extends Identified> {
  readonly #slots: (T | null)[] = Array.from({ length: SLOTS }, () => null);
  readonly #others = new Map<number, T>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    const found = this.#slots[id & SLOTS - 1];
    if (found?.id === id) return found;
    return this.#others.size === 0 ? undefined : this.#others.get(id);
  }

  /** Adds an exchange; its id is not here yet. */
  add(exchange: T): void {
    const slot = exchange.id & SLOTS - 1;
    if (this.#slots[slot] === null) this.#slots[slot] = exchange;
    else this.#others.set(exchange.id, exchange);
    this.#size++;
  }

  delete(id: number): void {
    const slot = id & SLOTS - 1;
    if (this.#slots[slot]?.id === id) this.#slots[slot] = null;
    else if (!this.#others.delete(id)) return;
    this.#size--;
  }

  *values(): Generator<T, undefined> {
    if (this.#size === 0) return;
    for (const exchange of this.#slots) if (exchange !== null) yield exchange;
    yield* this.#others.values();
  }

  clear(): void {
    this.#slots.fill(null);
    this.#others.clear();
    this.#size = 0;
  }
}
