/**
 * What was observed in a run: by clients, and on the disks of sites. Checkers read nothing else.
 *
 * A *write* has a number, unique in the run, that its value carries; a *stamp* is the version a client is shown
 * with a row (a versionstamp, which sorts as text; "" stands for "never written"). An *issue* is a token that
 * left with an answer: what a request presents are the issues of earlier answers, and that is all checkers know
 * of tokens. Behind an open one more of the answer may leave, in *chunks*, which no token names. Keys are numbers; a *sum key* takes `sum` writes only, and a read of it shows which of them are in.
 */
import type { SiteId } from "../../store/model/ports.ts";

/** The site of a request that is known by what it left behind only (tests/sites/acts.ts). */
export const NOWHERE: SiteId = "";

/** A version as clients see it; "" is below all. */
export type Stamp = string;

/** One key as seen by a read. `write` null: absent. */
export interface Seen {
  readonly key: number;
  readonly write: number | null;
  readonly stamp: Stamp;
  /** Of a sum key: which writes are in, by number; twice where counted twice. */
  readonly sums?: readonly number[];
}

/** One row of an atomic write. */
export interface Written {
  readonly write: number;
  readonly key: number;
  /** `expiring`: set for a while, after which it reads as absent by the clock of whoever looks. */
  readonly what: "set" | "expiring" | "delete" | "sum";
  /** When that is over, in Unix milliseconds. */
  readonly expiresAtMs?: number;
}

/** A row on a site's disk. `write` null: a tombstone. */
export type Held = Seen;

/** What a disk holds of another site's rows, so that they outlive that site's own disk; null: no more. */
export interface Ward {
  /** The incarnation that the row is held for. */
  readonly of: number;
  readonly key: number;
  readonly row: Held | null;
}

export type HistoryEvent =
  /** `site` {@link NOWHERE}: what ran it is told by what it left behind, and where it ran nobody knows. */
  | {
    readonly kind: "request";
    readonly atMs: number;
    readonly request: number;
    readonly session: number;
    readonly site: SiteId;
    readonly presents: readonly number[];
    /** Nothing fails any more, and nothing is on its way. */
    readonly final?: boolean;
  }
  /** Done by the handler, in its order; it sees a result at once, its client only with an issue. */
  | {
    readonly kind: "read";
    readonly atMs: number;
    readonly request: number;
    readonly rows: readonly Seen[];
    /** The "reading" event that it answers; without one nothing else ran meanwhile. */
    readonly reading?: number;
    /** What the site took for the time when it was over. */
    readonly clockMs?: number;
    /** How far that was ahead of the right one. */
    readonly aheadMs?: number;
  }
  /** A read begins: it is bound to what was seen before, and to what lay on its site's disk. */
  | {
    readonly kind: "reading";
    readonly atMs: number;
    readonly request: number;
    readonly reading: number;
    /** What the site took for the time. */
    readonly clockMs?: number;
  }
  | {
    readonly kind: "write";
    readonly atMs: number;
    readonly request: number;
    readonly writes: readonly Written[];
    /** Rows that the write is conditional on, as read before. */
    readonly checks: readonly Seen[];
  }
  /** The version that all rows of the write got; null where a check failed. */
  | {
    readonly kind: "wrote";
    readonly atMs: number;
    readonly request: number;
    readonly writes: readonly Written[];
    readonly stamp: Stamp | null;
  }
  /** A token for all that the request did so far has left the site. */
  | {
    readonly kind: "issue";
    readonly atMs: number;
    readonly request: number;
    readonly issue: number;
    readonly open: boolean;
  }
  /** The request asks something above the replicas: that follows all that the request did so far, under this number. */
  | {
    readonly kind: "lent";
    readonly atMs: number;
    readonly request: number;
    readonly issue: number;
    readonly once: string;
  }
  /** It was answered. */
  | { readonly kind: "answered"; readonly atMs: number; readonly request: number; readonly once: string }
  /** From here on the request follows another, too: of whoever answered it. */
  | { readonly kind: "follows"; readonly atMs: number; readonly request: number; readonly issue: number }
  /** After an open token has left, more of the answer does: all that the request did so far. */
  | { readonly kind: "chunk"; readonly atMs: number; readonly request: number; readonly chunk: number }
  /** The client has that part: whatever it presents of this request's from now on stands for it, too. */
  | { readonly kind: "told"; readonly atMs: number; readonly request: number; readonly chunk: number }
  | {
    readonly kind: "end";
    readonly atMs: number;
    readonly request: number;
    /** "ok", a code of StoreUnavailable, "crashed", or "fault: …" for an error nobody expects. */
    readonly outcome: string;
    readonly final: boolean;
  }
  /** A commit is on a disk: what changed there. `covers`: changes of coverage, as key → covered. */
  | {
    readonly kind: "commit";
    readonly atMs: number;
    readonly site: SiteId;
    readonly rows: readonly Held[];
    readonly gone: readonly number[];
    readonly covers: readonly (readonly [key: number, covered: boolean])[];
    readonly wards?: readonly Ward[];
    /** The incarnation of the site, where its owners have all of it from now on. */
    readonly owned?: readonly number[];
    /** What the site took for the time. */
    readonly clockMs?: number;
  }
  /** A process starts over the disk's rows; `blank`: on a disk that never had any. */
  | { readonly kind: "start"; readonly atMs: number; readonly site: SiteId; readonly blank: boolean }
  /**
   * A site's disk is lost, and with it the incarnation. `isForGood`: an operator takes the site off the tree. `isAside`:
   * it is the older copy that was put in the place of one that was lost before, and has been found to be one.
   */
  | {
    readonly kind: "lost";
    readonly atMs: number;
    readonly site: SiteId;
    readonly isForGood: boolean;
    readonly isAside?: boolean;
  }
  /**
   * A site's disk has the word that the site is about to be away, as planned (store/change/members.ts), since the last
   * commit; `behind`: the keys whose rows stand behind that word in its journal.
   */
  | {
    readonly kind: "leaves";
    readonly atMs: number;
    readonly site: SiteId;
    readonly behind: readonly number[];
  }
  /**
   * The disk of one that was drained is emptied: it had said that the root has all that stood before its word. No
   * incarnation ends by it.
   */
  | { readonly kind: "emptied"; readonly atMs: number; readonly site: SiteId }
  /** An operator has taken a site off the tree, as the root says. */
  | { readonly kind: "removed"; readonly atMs: number; readonly site: SiteId }
  /** What its disk goes by from now on. */
  | { readonly kind: "numbered"; readonly atMs: number; readonly site: SiteId; readonly number: number }
  /** A site goes on under another number, which this parent gave it. */
  | { readonly kind: "reborn"; readonly atMs: number; readonly site: SiteId; readonly parent: SiteId | null }
  /** What a watcher at a site read after it was told of a change: all that is live of these keys. */
  | {
    readonly kind: "watched";
    readonly atMs: number;
    readonly site: SiteId;
    readonly keys: readonly number[];
    readonly rows: readonly Seen[];
  }
  /** The system rows that a site shows in the end. */
  | {
    readonly kind: "system";
    readonly atMs: number;
    readonly site: SiteId;
    readonly rows: readonly string[];
  }
  | { readonly kind: "fault"; readonly atMs: number; readonly text: string }
  /** After the liveness phase: all that a site holds in its own journal. */
  | {
    readonly kind: "final";
    readonly atMs: number;
    readonly site: SiteId;
    readonly rows: readonly Held[];
    readonly covers: readonly number[];
    readonly pending: number;
    /** How far what it takes for the time is ahead of the right one. */
    readonly aheadMs?: number;
  };

/** All of one run. */
export interface History {
  readonly keys: number;
  readonly root: SiteId;
  /** The tree: by site, its parent; the root has none. */
  readonly parents?: ReadonlyMap<SiteId, SiteId | null>;
  /** By site, at how many others what it has acknowledged is held as long as the root does not have it. */
  readonly owners?: ReadonlyMap<SiteId, number>;
  /** For how long a deletion is kept, and a row that has expired. */
  readonly horizonMs?: number;
  /** Some clock is wrong for as long as it likes. */
  readonly hasWrongClocks?: boolean;
  /** Milliseconds between the machines' clocks that are furthest apart, at the start. */
  readonly clocksApartMs?: number;
  /** A site whose watcher reads these keys again with each change. */
  readonly watch?: { readonly site: SiteId; readonly keys: readonly number[] };
  readonly events: readonly HistoryEvent[];
}

/** A guarantee that a history breaks. */
export interface Violation {
  readonly checker: string;
  readonly message: string;
  readonly atMs: number;
}
