/**
 * Writes of an app's functions at this site, whichever version they are of.
 *
 * While versions with different indexes serve side by side, or one is being prepared to serve, a put by the version
 * that does not know an index writes no entry there. The site adds the entry in the same write: so versions with the
 * index find by it all rows that they see by key.
 *
 * AWR1  From the moment a site's table shows that a version serves or is being prepared, every row that is written here
 *       has its entries in that version's indexes: no write that was computed before that is still under way when
 *       `written` resolves.
 * AWR2  A function of an app that was deleted writes nothing.
 */
import { codeOf } from "../../functions/vocabulary/errors.ts";
import { entryValue, freshNonce, TableIndex } from "../../functions/index_entries.ts";
import { addedIndexes } from "../../functions/index_fill.ts";
import type { Mutation } from "../../functions/vocabulary/store_client.ts";
import { decodeValue } from "../../functions/values/value.ts";
import { type Key, packKey } from "../../store/model/key.ts";
import type { AppTable, LiveApp, LiveVersion } from "../deploy/app_table.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

/** Writes of one version's functions. */
export interface VersionWrites {
  /** Returns these mutations with the index entries that go with them. @throws Problem `app_unknown` (AWR2). */
  extended(mutations: readonly Mutation[]): readonly Mutation[];
  /** Registers a write as under way, until it settles. */
  track<T>(write: Promise<T>): Promise<T>;
}

/** A table with indexes that a version does not know. */
interface Indexed {
  readonly space: Key;
  readonly indexes: readonly TableIndex[];
}

/** The writes of all apps at a site. */
export class AppWrites {
  readonly #apps: Pick<AppTable, "get">;
  readonly #underWay = new Map<string, Set<Promise<unknown>>>();

  constructor(apps: Pick<AppTable, "get">) {
    this.#apps = apps;
  }

  /** Returns the writes of a version's functions. */
  of(version: LiveVersion): VersionWrites {
    const { app } = version;
    let seen: LiveApp | undefined;
    let tables: readonly Indexed[] = [];
    return {
      extended: (mutations) => {
        const live = this.#apps.get(app);
        if (live === undefined) throw new Problem("app_unknown", `app ${app} has been deleted`);
        if (live !== seen) {
          seen = live;
          tables = unknownIndexes(version, live);
        }
        return tables.length === 0 ? mutations : withEntries(mutations, tables);
      },
      track: (write) => this.#track(app, write),
    };
  }

  /** Resolves when the writes of an app that are under way have been applied (AWR1). */
  async written(app: string): Promise<void> {
    await Promise.allSettled([...this.#underWay.get(app) ?? []]);
  }

  #track<T>(app: string, write: Promise<T>): Promise<T> {
    let writes = this.#underWay.get(app);
    if (writes === undefined) this.#underWay.set(app, writes = new Set());
    const all = writes;
    all.add(write);
    const ended = () => void all.delete(write);
    write.then(ended, ended);
    return write;
  }
}

/** Returns the indexes that other versions of an app read by, and this one does not know. */
function unknownIndexes({ manifest, version }: LiveVersion, live: LiveApp): Indexed[] {
  const tables = new Map<string, { at: string | undefined; indexes: Map<string, readonly string[]> }>();
  for (const other of [live.current, live.rollout?.next, live.preparing]) {
    if (other === undefined || other.version === version) continue;
    for (const { table, at, indexes } of addedIndexes(manifest.tables, other.manifest.tables)) {
      const known = tables.get(table) ?? { at, indexes: new Map() };
      for (const [name, fields] of Object.entries(indexes)) {
        known.indexes.set(`${name}\0${fields.join("\0")}`, fields);
      }
      tables.set(table, known);
    }
  }
  return [...tables].map(([table, { at, indexes }]) => {
    const lead = at === "root" ? ["root"] : [];
    return {
      space: packKey([...lead, "t", table]),
      indexes: [...indexes].map(([key, fields]) => {
        const [name = ""] = key.split("\0");
        return new TableIndex(name, fields, packKey([...lead, "i", table, name]));
      }),
    };
  });
}

function withEntries(mutations: readonly Mutation[], tables: readonly Indexed[]): readonly Mutation[] {
  const entries: Mutation[] = [];
  for (const mutation of mutations) {
    if (mutation.kind !== "set") continue;
    const table = tables.find(({ space }) => mutation.key.startsWith(space));
    if (table === undefined) continue;
    const rowKey = mutation.key.slice(table.space.length) as Key;
    for (const place of placesOf(table.indexes, mutation.value, rowKey)) {
      entries.push({ kind: "set", key: place + freshNonce() as Key, value: entryValue(rowKey) });
    }
  }
  return entries.length === 0 ? mutations : [...mutations, ...entries];
}

/**
 * Returns the keys of a row's entries, one an index that has one; none where the row cannot be read, as when an index
 * is filled.
 */
function placesOf(indexes: readonly TableIndex[], value: Uint8Array, rowKey: Key): Key[] {
  try {
    const row = decodeValue(value);
    if (typeof row !== "object" || row === null) return [];
    return indexes.flatMap((index) => index.place(row as Record<string, unknown>, rowKey) ?? []);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return [];
  }
}
