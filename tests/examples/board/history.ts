/**
 * What the clients saw and did, in their own words: the only thing that the checker reads.
 *
 * An operation is one request with its answer. A client has one request under way at a time, so its operations
 * are in order; nothing is said about the order of two clients' operations.
 */

/** A row's name: its table and its key, as the app's JSON gives them. */
export type RowName = string;

/** A row as an answer showed it, or as a request read it. */
export interface Seen {
  readonly row: RowName;
  /** Sorts as versions do; null: the answer said that there is no such row. */
  readonly version: string | null;
  /** Hash of the content; null with an absent row. */
  readonly hash: string | null;
}

/** A list that an answer showed: every row of `group` whose place is in [from, to) is among the rows seen. */
export interface SeenList {
  readonly group: string;
  readonly from: string;
  /** null: to the end. */
  readonly to: string | null;
}

/** A row that a request wrote; a null hash deletes it. */
export interface Written {
  readonly row: RowName;
  readonly version: string | null;
  readonly hash: string | null;
}

/** What a request added to a counter. */
export interface Added {
  readonly counter: string;
  readonly by: number;
}

/** A counter as an answer showed it; only counters that never fall are recorded as seen. */
export interface Counted {
  readonly counter: string;
  readonly value: number;
}

/** One request and its answer. */
export interface Operation {
  readonly site: string;
  readonly interaction: string;
  readonly startMs: number;
  readonly endMs: number;
  /** `unknown`: no answer came (the connection broke, the site died): its writes may or may not be there. */
  readonly outcome: "acknowledged" | "refused" | "unknown";
  readonly seen: readonly Seen[];
  readonly lists: readonly SeenList[];
  readonly written: readonly Written[];
  readonly added: readonly Added[];
  readonly counted: readonly Counted[];
}

/** Where a row stands in the lists that may show it. */
export interface Placement {
  readonly group: string;
  /** Position within the group; sorts as the list does. */
  readonly place: string;
}

/** All that one run's clients recorded. */
export class History {
  /** By session: a client that begins a new session gets a new entry. */
  readonly sessions: Operation[][] = [];
  /** The groups in which each row is listed, as the clients knew them from its content. */
  readonly placements = new Map<RowName, readonly Placement[]>();

  /** Begins a session; operations are added to the array it returns. */
  begin(): Operation[] {
    const operations: Operation[] = [];
    this.sessions.push(operations);
    return operations;
  }

  /** Notes where a row is listed. A row's groups are fixed by its content's immutable part. */
  place(row: RowName, placements: readonly Placement[]): void {
    if (placements.length > 0 && !this.placements.has(row)) this.placements.set(row, placements);
  }
}
