/** What is kept in memory only: it is gone with the program or page, and until then the same as on disk. */
import type { ClientStorage, StorageChange } from "./ports.ts";

/** See the file's header. */
export class MemoryStorage implements ClientStorage {
  readonly #kept: Map<string, Uint8Array>;
  readonly #claimed = new Set<string>();

  constructor(kept: Iterable<readonly [string, Uint8Array]> = []) {
    this.#kept = new Map(kept);
  }

  list(prefix: string): Promise<(readonly [string, Uint8Array])[]> {
    const found = [...this.#kept].filter(([name]) => name.startsWith(prefix));
    return Promise.resolve(found.sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0));
  }

  commit(changes: readonly StorageChange[]): Promise<void> {
    for (const [name, bytes] of changes) {
      if (bytes === null) this.#kept.delete(name);
      else this.#kept.set(name, bytes);
    }
    return Promise.resolve();
  }

  claim(name: string): Promise<(() => void) | null> {
    if (this.#claimed.has(name)) return Promise.resolve(null);
    this.#claimed.add(name);
    return Promise.resolve(() => void this.#claimed.delete(name));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
