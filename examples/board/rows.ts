/** Rows as pages show them: with their table and version in JSON, with their writers' names in HTML. */
import type { Ctx } from "./page.ts";
import type { Comment, Story, User } from "./resources.ts";

/** A row of some table. */
export interface Entry<Row> {
  readonly key: readonly unknown[];
  readonly value: Row;
  readonly versionstamp: string;
}

/** A row as JSON shows it. */
export interface NamedEntry<Row> extends Entry<Row> {
  readonly table: string;
}

export type StoryEntry = NamedEntry<Story>;
export type CommentEntry = NamedEntry<Comment>;

/** Puts the table's name to a row. */
export const named = <Row>(table: string, { key, value, versionstamp }: Entry<Row>): NamedEntry<Row> => ({
  table,
  key,
  value,
  versionstamp,
});

/** The writers of some rows. */
export class Writers {
  readonly #users: ReadonlyMap<string, NamedEntry<User>>;

  private constructor(users: ReadonlyMap<string, NamedEntry<User>>) {
    this.#users = users;
  }

  /** Reads them, each once. */
  static async of(c: Ctx, rows: readonly Entry<{ readonly writer: string }>[]): Promise<Writers> {
    const ids = [...new Set(rows.map((row) => row.value.writer))].filter((id) => id !== "");
    const users = new Map<string, NamedEntry<User>>();
    for (const user of await c.env.tables.users.getMany(ids.map((id) => [id] as const))) {
      if (user !== null) users.set(user.value.id, named("users", user));
    }
    return new Writers(users);
  }

  /** For JSON. */
  get entries(): NamedEntry<User>[] {
    return [...this.#users.values()];
  }

  /** What to call a writer. */
  nameOf(row: { readonly writer: string }): string {
    return row.writer === ""
      ? "Somebody"
      : this.#users.get(row.writer)?.value.nickname ?? "Somebody who left";
  }
}
