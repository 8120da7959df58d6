/**
 * What was acknowledged to clients, kept by the test alone: of every key the values in the order in which they were
 * written, of every client what it has seen, of every stateful session the entries that were released.
 *
 * DM1  Each key has one writer, so its values have one order: whoever has seen one must never be shown an earlier one.
 * DM2  Who has seen a value has seen what its writer had seen when it wrote it.
 */
import type { TokenState } from "../../store/api/api.ts";

/** Of each key, which of its values was seen last. */
export type Seen = ReadonlyMap<string, number>;

/** One who reads and writes, with the token that it was given last. */
export class Client {
  readonly name: string;
  token: TokenState | null = null;
  seen: Seen = new Map();
  /** What it has been shown itself, without what that depends on. */
  shown: Seen = new Map();

  constructor(name: string) {
    this.name = name;
  }

  /** It was given an answer. */
  takes(token: TokenState, { seen, shown }: Pick<Client, "seen" | "shown">): void {
    this.token = token;
    this.seen = seen;
    this.shown = shown;
  }
}

interface Value {
  readonly text: string;
  /** What its writer had seen, this value among it. */
  readonly seen: Seen;
  isAcknowledged: boolean;
}

/** See the file's header. */
export class Model {
  readonly #values = new Map<string, Value[]>();
  /** By session, texts of entries in the order of the log. */
  readonly sessions = new Map<string, { readonly released: string[]; readonly asked: string[] }>();
  /** Of requests to origins, by key, what was answered and kept. */
  readonly outcomes = new Map<string, string>();
  /** Of sessions that ended, by name, what was kept of their logs. */
  readonly ended = new Map<string, string>();

  get keys(): string[] {
    return [...this.#values.keys()];
  }

  /** A value that nobody has written before, about to be written. */
  begin(client: Client, key: string, padding: number): { readonly text: string; readonly index: number } {
    const values = this.#values.get(key) ?? [];
    this.#values.set(key, values);
    const index = values.length, text = `${key} ${index} ${client.name} ${"x".repeat(padding)}`;
    values.push({ text, seen: merged(client.seen, [[key, index]]), isAcknowledged: false });
    return { text, index };
  }

  acknowledged(client: Client, key: string, index: number, token: TokenState): void {
    const value = this.#values.get(key)?.[index];
    if (value === undefined) throw new Error(`nobody has written ${key} ${index}`);
    value.isAcknowledged = true;
    client.takes(token, {
      seen: merged(client.seen, value.seen),
      shown: merged(client.shown, [[key, index]]),
    });
  }

  /** The last value that was acknowledged; -1: none was. */
  last(key: string): number {
    return this.#values.get(key)?.findLastIndex(({ isAcknowledged }) => isAcknowledged) ?? -1;
  }

  /** Which of the key's values this is; -1: there is none; null: nobody has written it. */
  indexOf(key: string, text: string | null): number | null {
    if (text === null) return -1;
    const index = this.#values.get(key)?.findIndex((value) => value.text === text) ?? -1;
    return index < 0 ? null : index;
  }

  /**
   * Shows values to whoever has seen something; what is wrong with them.
   *
   * @param isCausal false: an effect may have outlived its cause, so nothing is asked of what a client was not shown
   * itself (docs/faults.md).
   */
  shows(
    client: Pick<Client, "seen" | "shown">,
    rows: ReadonlyMap<string, string | null>,
    isCausal = true,
  ): { readonly wrong: string[] } & Pick<Client, "seen" | "shown"> {
    const wrong: string[] = [], seen = isCausal ? client.seen : client.shown;
    let now = client.seen, { shown } = client;
    for (const [key, text] of rows) {
      const index = this.indexOf(key, text), least = seen.get(key) ?? -1;
      if (index === null) wrong.push(`${key} is ${JSON.stringify(text?.slice(0, 40))}, which nobody wrote`);
      else if (index < least) wrong.push(`${key} is value ${index}, and value ${least} was seen before`);
      else if (index >= 0) {
        now = merged(now, this.#values.get(key)?.[index]?.seen ?? new Map());
        shown = merged(shown, [[key, index]]);
      }
    }
    // DM2: in one answer.
    for (const [key, text] of rows) {
      const index = this.indexOf(key, text), least = now.get(key) ?? -1;
      if (isCausal && wrong.length === 0 && index !== null && index < least) {
        wrong.push(
          `${key} is value ${index}, and beside it stands what was written after value ${least} was seen`,
        );
      }
    }
    return { wrong, seen: now, shown };
  }

  /** A copy: each damage begins with it. */
  copy(): Model {
    const copy = new Model();
    for (const [key, values] of this.#values) copy.#values.set(key, values.map((value) => ({ ...value })));
    for (const [id, { released, asked }] of this.sessions) {
      copy.sessions.set(id, { released: [...released], asked: [...asked] });
    }
    for (const [key, text] of this.outcomes) copy.outcomes.set(key, text);
    for (const [key, text] of this.ended) copy.ended.set(key, text);
    return copy;
  }
}

function merged(seen: Seen, more: Iterable<readonly [string, number]>): Seen {
  const all = new Map(seen);
  for (const [key, index] of more) all.set(key, Math.max(index, all.get(key) ?? -1));
  return all;
}
