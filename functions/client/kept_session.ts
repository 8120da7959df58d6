/**
 * The kept tokens of a client's session, so that the next program or page goes on in it.
 *
 *   session/NUMBER   tokens, one a line
 *
 * N1  Two pages that are open at once each have a number of their own: neither writes over what the other was told.
 * N2  A page that begins takes over the tokens of all pages that are gone; what these kept is removed with the page's
 *     own first change.
 */
import type { ClientStorage, StorageChange } from "./ports.ts";

const PREFIX = "session/";
/** Pages that are open at once and kept; more are as if there were no storage. */
const NUMBERS_MAX = 16;
const utf8 = new TextEncoder();
const utf8Decoder = new TextDecoder();

/** Tokens of a session, as they are kept in a storage. */
export class KeptSession {
  readonly #storage: ClientStorage;
  readonly #name: string | null;
  readonly #release: () => void;
  #spent: readonly string[];
  #last: Promise<unknown> = Promise.resolve();
  /** Tokens that the session goes on with. */
  readonly tokens: readonly string[];

  private constructor(
    storage: ClientStorage,
    own: { readonly name: string; readonly release: () => void } | null,
    found: ReadonlyMap<string, readonly string[]>,
  ) {
    this.#storage = storage;
    this.#name = own?.name ?? null;
    this.#release = own?.release ?? (() => {});
    this.#spent = [...found.keys()].filter((name) => name !== own?.name);
    this.tokens = [...new Set([...found.values()].flat())];
  }

  static async open(storage: ClientStorage): Promise<KeptSession> {
    const kept = new Map(await storage.list(PREFIX));
    const found = new Map<string, readonly string[]>();
    let own: { readonly name: string; readonly release: () => void } | null = null;
    for (let number = 0; number < NUMBERS_MAX; number++) {
      const name = `${PREFIX}${number}`;
      const bytes = kept.get(name);
      if (bytes === undefined && own !== null) continue;
      const release = await storage.claim(name, own === null);
      if (release === null) continue;
      if (bytes !== undefined) {
        found.set(
          name,
          utf8Decoder.decode(bytes).split("\n").filter((token) => token !== ""),
        );
      }
      if (own === null) own = { name, release };
      else release();
    }
    return new KeptSession(storage, own, found);
  }

  /** Keeps the session's tokens. Those that can't be kept are in memory all the same. */
  keep(tokens: readonly string[]): void {
    if (this.#name === null) return;
    const bytes = tokens.length === 0 ? null : utf8.encode(tokens.join("\n"));
    const changes: StorageChange[] = [
      [this.#name, bytes],
      ...this.#spent.map((name) => [name, null] as const),
    ];
    this.#spent = [];
    this.#last = this.#storage.commit(changes).catch(() => {});
  }

  /** Promise that resolves when all so far is kept. */
  get kept(): Promise<unknown> {
    return this.#last;
  }

  /** Lets the number go: the client ends, and the next one goes on with its tokens. */
  async leave(): Promise<void> {
    await this.#last;
    this.#release();
  }
}
