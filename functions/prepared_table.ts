/**
 * The declared table, prepared once per isolate: packed prefixes, and the way between app rows and stored rows.
 *
 * T1  A stored row is given to the app only if it matches the schema, if need be after `upgrade`.
 * T2  A row's key is made of its own fields; an upgrade may not change it.
 */
import { type Key, KeyError, type KeyPart, packKey } from "../store/model/key.ts";
import type { TableDefinition } from "./define.ts";
import { AppError, codeOf } from "./vocabulary/errors.ts";
import { entryValue, freshNonce, TableIndex } from "./index_entries.ts";
import { packBounded } from "./key_space.ts";
import { validate } from "./schema.ts";
import type { Mutation, ReadLevel, StoredRow } from "./vocabulary/store_client.ts";
import { decodeValue, encodeValue } from "./values/value.ts";

/** Row as the app gets it. */
export interface PlainEntry {
  readonly key: readonly KeyPart[];
  readonly value: Readonly<Record<string, unknown>>;
  readonly versionstamp: string;
}

/** Row that is about to be written. */
export interface PreparedPut {
  /** Packed key, behind the table's space. */
  readonly key: Key;
  readonly entry: Omit<PlainEntry, "versionstamp">;
  /** Mutations that write the row and its index entries, and remove entries known from before. */
  readonly mutations: readonly Mutation[];
  readonly entries: readonly Key[];
}

/** Rows whose entries an isolate remembers: enough for its hot rows, at ~200 bytes each. */
const KNOWN_MAX = 2_000;

/** Declared table, ready for use. */
export class PreparedTable {
  readonly name: string;
  readonly space: Key;
  readonly level: ReadLevel;
  readonly keyFields: readonly string[];
  readonly indexes: ReadonlyMap<string, TableIndex>;
  readonly #definition: TableDefinition;
  /** Entries that this isolate wrote or met, by row: the next put removes them in the same operation (I3 a). */
  readonly #known = new Map<Key, readonly Key[]>();
  /**
   * Source of random bytes inside a stateful session, which a replay draws again; nothing is remembered then
   * (EnvServices).
   */
  readonly #recorded: ((bytes: Uint8Array) => void) | undefined;

  constructor(name: string, definition: TableDefinition, recorded?: (bytes: Uint8Array) => void) {
    const lead = definition.at === "root" ? ["root"] : [];
    this.name = name;
    this.space = packKey([...lead, "t", name]);
    this.level = definition.consistency === "eventual" ? "eventual" : "session";
    this.keyFields = definition.key;
    this.#definition = definition;
    this.#recorded = recorded;
    this.indexes = new Map(
      Object.entries(definition.indexes).map((
        [index, fields],
      ) => [index, new TableIndex(index, fields, packKey([...lead, "i", name, index]))]),
    );
  }

  /** Packs a whole key. @throws KvTypeError `limit_key`, KeyError `key_invalid`. */
  packKey(key: readonly KeyPart[]): Key {
    if (!Array.isArray(key) || key.length !== this.keyFields.length) {
      const got = Array.isArray(key) ? `${key.length} parts` : typeof key;
      throw new KeyError(`a key of the table ${this.name} is [${this.keyFields.join(", ")}], not ${got}`);
    }
    return this.space + packBounded(key) as Key;
  }

  /** Returns the fields of a row that make its key. */
  keyOf(row: Readonly<Record<string, unknown>>): readonly KeyPart[] {
    return this.keyFields.map((field) => row[field] as KeyPart);
  }

  /**
   * Checks a row against the schema and returns what is to be written.
   *
   * @throws AppError `row_invalid`; `key_invalid` and limits.
   */
  async put(input: unknown): Promise<PreparedPut> {
    const checked = validate(this.#definition.schema, input, `a row for the table ${this.name}`);
    const row = asRow(checked instanceof Promise ? await checked : checked, this.name);
    const parts = this.keyOf(row);
    const key = this.packKey(parts);
    const rowKey = key.slice(this.space.length) as Key;
    const mutations: Mutation[] = [{ kind: "set", key, value: encodeValue(row) }];
    const entries: Key[] = [];
    if (this.indexes.size > 0) {
      const nonce = freshNonce(this.#recorded);
      const value = entryValue(rowKey);
      for (const index of this.indexes.values()) {
        const place = index.place(row, rowKey);
        if (place === null) continue;
        const entry = place + nonce as Key;
        entries.push(entry);
        mutations.push({ kind: "set", key: entry, value });
      }
      mutations.push(...this.removals(key));
    }
    return { key, entry: { key: parts, value: row }, mutations, entries };
  }

  /**
   * Returns the removals of the entries that are known of a row; they go only together with a put or delete of that
   * row.
   */
  removals(key: Key): Mutation[] {
    return (this.#known.get(key) ?? []).map((entry) => ({ kind: "delete", key: entry }));
  }

  /** Remembers the entries of a row as it is now. */
  remember(key: Key, entries: readonly Key[]): void {
    if (this.indexes.size === 0 || this.#recorded !== undefined) return;
    this.#known.delete(key);
    if (entries.length === 0) return;
    if (this.#known.size >= KNOWN_MAX) {
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest);
        break;
      }
    }
    this.#known.set(key, entries);
  }

  /**
   * Returns a stored row as the app gets it; a promise only where the schema is asynchronous.
   *
   * @throws AppError `row_invalid`, `value_corrupt`.
   */
  read(stored: StoredRow): PlainEntry | Promise<PlainEntry> {
    const raw = decodeValue(stored.value);
    try {
      const checked = validate(this.#definition.schema, raw, `a stored row of the table ${this.name}`);
      if (checked instanceof Promise) {
        return checked.then((row) => this.#entry(stored, row), (error) => this.#upgrade(stored, raw, error));
      }
      return this.#entry(stored, checked);
    } catch (error) {
      return this.#upgrade(stored, raw, error);
    }
  }

  #entry(stored: StoredRow, checked: unknown): PlainEntry {
    const value = asRow(checked, this.name);
    return { key: this.keyOf(value), value, versionstamp: stored.versionstamp };
  }

  async #upgrade(stored: StoredRow, raw: unknown, error: unknown): Promise<PlainEntry> {
    const { upgrade, schema } = this.#definition;
    if (upgrade === undefined || codeOf(error) !== "row_invalid") throw error;
    const row = await validate(
      schema,
      this.#upgraded(upgrade, raw),
      `an upgraded row of the table ${this.name}`,
    );
    const entry = this.#entry(stored, row);
    if (this.packKey(entry.key) !== stored.key) {
      throw new AppError("row_invalid", `the upgrade of a row of the table ${this.name} changed its key`, {
        key: entry.key,
      });
    }
    return entry;
  }

  /** Calls an upgrade. One that throws, as with a schema's `parse` in it, does not recognise the row. */
  #upgraded(upgrade: (old: unknown) => unknown, raw: unknown): unknown {
    try {
      return upgrade(raw);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const invalid = new AppError(
        "row_invalid",
        `the upgrade of a row of the table ${this.name} threw: ${why}`,
      );
      invalid.cause = error;
      throw invalid;
    }
  }
}

function asRow(value: unknown, table: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new AppError("row_invalid", `a row of the table ${table} is an object, not ${typeof value}`);
  }
  return value as Readonly<Record<string, unknown>>;
}
