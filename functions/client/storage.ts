/**
 * The storages of clients that are in memory, or a part of another storage.
 *
 *   at/PATH/NAME   the entry NAME of a client of an app below that path; at a host of the app's own just NAME
 */
import type { ClientStorage, StorageChange } from "./ports.ts";

/** Storage in memory only: it is gone with the program or page, and until then works as one on disk. */
export class MemoryClientStorage implements ClientStorage {
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

/**
 * Returns the part of a storage that is one app's: apps below one address are of one origin to a browser, and their
 * pages find the same storage.
 *
 * @param own the app's address.
 */
export function storageOf(own: string, storage: ClientStorage): ClientStorage {
  const path = new URL(own).pathname.replace(/(?<!\/)\/+$/, "");
  if (path === "") return storage;
  const prefix = `at${path}/`;
  return {
    list: async (wanted) =>
      (await storage.list(prefix + wanted)).map(([name, bytes]) =>
        [name.slice(prefix.length), bytes] as const
      ),
    commit: (changes) => storage.commit(changes.map(([name, bytes]) => [prefix + name, bytes] as const)),
    claim: (name, isPatient) => storage.claim(prefix + name, isPatient),
    close: () => storage.close(),
  };
}
