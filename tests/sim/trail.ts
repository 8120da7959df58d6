/**
 * What a history has shown so far: all writes, what lies on which disk, what each request has seen, what each token
 * stands for, under which life of a site. The checkers look at an event beside it, before it takes the event in or after.
 *
 * T1  A request follows exactly what it presents: two requests of one session that do not present each other's issues
 *     are concurrent. An open token stands for all that its answer had told when it is presented.
 * T2  An absence is a read: what explains it is seen, and where several writes may, at least the oldest of them. Where a
 *     disk has forgotten a deletion, that or a newer one explains it.
 */
import { type Held, type History, type HistoryEvent, NOWHERE, type Seen, type Stamp } from "./history.ts";
import { Ledger } from "./ledger.ts";
import { type Life, Lives } from "./lives.ts";
import { Losses } from "./losses.ts";
import { OpenAnswers } from "./open_answers.ts";
import { Past } from "./past.ts";

/** A read that is under way: what its request had seen when it began, and what was on its site's disk. */
export interface Began {
  readonly past: Past;
  readonly disk: ReadonlyMap<number, Held>;
  /** Of deletions that this disk has forgotten, by key, their versions. */
  readonly forgotten: ReadonlyMap<number, Stamp>;
  readonly clockMs: number | undefined;
}

/** A request that is under way. */
export interface Request {
  readonly number: number;
  readonly session: number;
  readonly site: string;
  /** As what its site began it. */
  readonly life: Life;
  readonly atMs: number;
  readonly presents: readonly Issue[];
  readonly isFinal: boolean;
  readonly past: Past;
  readonly reading: Map<number, Began>;
  /** What it has written and told nobody yet. */
  readonly untold: Set<number>;
  /** What it has read so far. */
  readonly read: Set<number>;
}

/** A token that left. */
export interface Issue {
  readonly past: Past;
  /** As what its site gave it out. */
  readonly life: Life;
  readonly atMs: number;
  readonly open: boolean;
}

/** See the file's header. */
export class Trail {
  readonly history: History;
  readonly ledger: Ledger;
  readonly losses: Losses;
  readonly lives: Lives;
  readonly requests = new Map<number, Request>();
  readonly issues = new Map<number, Issue>();
  readonly #answers = new OpenAnswers();

  constructor(history: History) {
    this.history = history;
    this.ledger = new Ledger(history.keys, history.horizonMs);
    this.losses = new Losses(this.ledger, history);
    this.lives = new Lives(history);
  }

  /** A request that is under way; nothing is told of others. */
  request(number: number): Request {
    const request = this.requests.get(number);
    if (request === undefined) throw new Error(`request ${number} does something, and is not under way`);
    return request;
  }

  /** What a read began with. */
  began({ request: number, reading, clockMs }: HistoryEvent & { kind: "read" }): Began {
    const request = this.request(number);
    const began = request.reading.get(reading ?? -1);
    const { past, site } = request;
    const now = { disk: this.losses.rows(site), forgotten: this.losses.forgotten(site) };
    return began ?? { past, ...now, clockMs };
  }

  /** Takes in an event. */
  step(event: HistoryEvent): void {
    this.ledger.step(event);
    this.losses.step(event);
    this.lives.step(event);
    const told = this.#answers.step(event, (request) => this.request(request).past);
    if (told !== null) { for (const issue of told.issues) this.#issue(issue).past.join(told.past); }
    switch (event.kind) {
      case "request":
        return this.#begin(event);
      case "reading": {
        const { site, past, reading } = this.request(event.request);
        const disk = new Map(this.losses.rows(site)), forgotten = new Map(this.losses.forgotten(site));
        const began = { past: past.copy(), disk, forgotten, clockMs: event.clockMs };
        return void reading.set(event.reading, began);
      }
      case "read":
        return this.#read(event);
      case "write":
        return this.ledger.begin(event, this.request(event.request));
      case "wrote":
        return this.#wrote(event);
      case "lent":
        return this.#leaves(event, false);
      case "follows": {
        const issue = this.issues.get(event.issue);
        if (issue !== undefined) this.request(event.request).past.join(issue.past);
        return;
      }
      case "issue":
        this.#leaves(event, event.open);
        return this.request(event.request).untold.clear();
      case "chunk":
        return this.request(event.request).untold.clear();
      case "end":
        return void this.requests.delete(event.request);
    }
  }

  /** What a request has seen and done so far stands under a number from here on. */
  #leaves(
    { request, issue, atMs }: { readonly request: number; readonly issue: number; readonly atMs: number },
    open: boolean,
  ): void {
    const { site, past } = this.request(request);
    this.issues.set(issue, { past: past.copy(), life: this.lives.of(site), atMs, open });
  }

  #issue(number: number): Issue {
    const issue = this.issues.get(number);
    if (issue === undefined) throw new Error(`token ${number} is presented, and never left`);
    return issue;
  }

  #begin(event: HistoryEvent & { kind: "request" }): void {
    const { request: number, session, site, atMs, final = false } = event;
    // Whose caller's log is lost follows somebody of whom nothing is known.
    const presents = event.presents.flatMap((issue) =>
      site === NOWHERE ? this.issues.get(issue) ?? [] : [this.#issue(issue)]
    );
    const past = new Past(this.history.keys);
    for (const issue of presents) past.join(issue.past);
    this.requests.set(number, {
      number,
      session,
      site,
      atMs,
      presents,
      isFinal: final,
      life: this.lives.of(site),
      past,
      reading: new Map(),
      untold: new Set(),
      read: new Set(),
    });
  }

  #read(event: HistoryEvent & { kind: "read" }): void {
    const request = this.request(event.request), began = this.began(event);
    for (const { write, sums = [] } of event.rows) {
      for (const each of write === null ? sums : [write]) request.read.add(each);
    }
    for (const row of event.rows) this.#learn(request, began, row, shownAt(began, event));
    if (event.reading !== undefined) request.reading.delete(event.reading);
  }

  /** What a read adds to what those who saw it have seen. */
  #learn({ past, site }: Request, began: Began, row: Seen, clockMs: number): void {
    const { ledger } = this;
    if (row.sums !== undefined) {
      const bits = ledger.sumBits(row.sums);
      past.noteSums("seen", bits);
      for (const record of ledger.sumsOf(bits)) past.joinWriter(record.past);
      return;
    }
    if (row.write !== null) {
      past.note("seen", row.key, row.stamp);
      const record = ledger.seen(row);
      if (record !== undefined) past.joinWriter(record.past);
      return;
    }
    // T2
    const least = leastOf(row.key, began);
    if (least === "") return;
    const explained = ledger.explains(row.key, least, { site, clockMs });
    const stamps = explained.map(({ stamp }) => stamp ?? least).sort();
    past.note("seen", row.key, stamps[0] ?? "");
    const [only] = explained;
    if (explained.length === 1 && only?.record !== undefined) past.joinWriter(only.record.past);
  }

  #wrote(event: HistoryEvent & { kind: "wrote" }): void {
    this.ledger.end(event);
    if (event.stamp === null) return;
    const { past, untold } = this.request(event.request);
    for (const { write, key, what } of event.writes) {
      untold.add(write);
      if (what === "sum") past.noteSums("own", this.ledger.writes.get(write)?.bit ?? 0n);
      else past.note("own", key, event.stamp);
    }
  }
}

/** The version that a read has to show at least: by what was seen before, and by what lay on the disk of its site. */
export function leastOf(key: number, began: Began): Stamp {
  const seen = began.past.need(key).stamp, there = onDiskOf(key, began);
  return seen > there ? seen : there;
}

/** The version that lay on the disk, be it of a deletion that is forgotten there. */
export function onDiskOf(key: number, { disk, forgotten }: Began): Stamp {
  const row = disk.get(key)?.stamp ?? "", deletion = forgotten.get(key) ?? "";
  return row > deletion ? row : deletion;
}

/** The latest that its site's clock may have shown during a read: where nobody knows it, anything. */
export function shownAt(began: Began, { clockMs }: { readonly clockMs?: number }): number {
  return clockMs === undefined ? Infinity : Math.max(began.clockMs ?? clockMs, clockMs);
}
