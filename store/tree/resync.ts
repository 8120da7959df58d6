/**
 * This site's side of finding out which of its stale rows (stale.ts) are as the parent has them, so that only the
 * others come over the link.
 *
 * A fetch of a range with stale rows: compare, with the digest of what is here → compared: all of it is the same, or
 * digests of its parts, of which those that are the same are covered at once and the others are fetched, each in this
 * same way → … → fetched, where a part has little in it.
 *
 * Y1  An answer is in the feed and as of its head, like any to a fetch (PROTOCOL I3): what it says is the same is
 *     covered before the next message is taken, and changes past that head come by the feed.
 * Y2  The rows here are digested again before they are covered, in the same hold of the lock: pushes, writes and
 *     arriving sessions may have changed them since the question. Each question has a number of its own: an answer to
 *     one says nothing of what is said in the next.
 * Y3  Rows that are covered so take a new place in the journal, as if they had come: nothing else knows of it.
 * Y4  At most COMPARES_MAX parts are under way at a time; a part that is not answered as it should be is fetched as a
 *     whole.
 */
import type { Core } from "../core/core.ts";
import type { Compare, Compared } from "../wire/compare_message.ts";
import { type Digest, digestOf, DigestSum, sameDigest } from "../model/digest.ts";
import type { Fetches, Fetching } from "./fetches.ts";
import {
  COMPARE_PARTS_MAX,
  COMPARE_TRIES_MAX,
  COMPARES_MAX,
  DIGEST_ROWS,
  EVICT_TO_SHARE,
  RESYNC_RANGES_MAX,
} from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { Range } from "../model/range.ts";

interface Host {
  send(message: Compare): void;
  /** Asks the parent for a fetch that was begun. */
  request(fetching: Fetching): void;
  fetch(range: Range): Promise<void>;
  nextId(): number;
}

/** Comparison of one site's stale rows with those of its parent. */
export class Resync {
  readonly #core: Core;
  readonly #fetches: Fetches;
  readonly #host: Host;
  /** Parts that wait for their turn; the last goes first, so that what was begun ends soon. */
  #queue: { readonly whole: Fetching; readonly range: Range }[] = [];
  #underWay = 0;
  /** Number that counts connections, as in uplink.ts. */
  #connection = 0;

  constructor(core: Core, fetches: Fetches, host: Host) {
    this.#core = core;
    this.#fetches = fetches;
    this.#host = host;
  }

  /** Begins on a new connection: parts are forgotten, and the fetches that they are parts of are asked for again. */
  connect(): void {
    this.#connection++;
    this.#queue = [];
    this.#underWay = 0;
    for (const fetching of [...this.#fetches.all()]) {
      fetching.parts = null;
      fetching.said = null;
      fetching.tries = 0;
      if (fetching.whole === null) continue;
      this.#fetches.end(fetching);
      fetching.done.resolve();
    }
  }

  /** Takes a failure, as fatal unless the site is closed: reads of a closed site fail, too. */
  #failed(error: Error): void {
    if (!this.#core.closed) this.#core.ports.fatal(error);
  }

  /** Begins to cover again what was covered before, a few ranges at a time; single keys wait until they are read. */
  goOn(): void {
    const ranges = this.#core.stale.wide().values();
    for (let i = 0; i < RESYNC_RANGES_MAX; i++) {
      this.#coverAgain(ranges).catch((error) => this.#failed(error));
    }
  }

  /** @param ranges one iterator, shared with other calls that do the same. */
  async #coverAgain(ranges: Iterable<Range>): Promise<void> {
    const core = this.#core, connection = this.#connection;
    for (const range of ranges) {
      const bytes = await core.ports.storage.bytes();
      if (core.closed || connection !== this.#connection) return;
      if (bytes > core.capacityBytes * EVICT_TO_SHARE) return;
      if (core.stale.touches(range)) await this.#host.fetch(range).catch(() => {});
    }
  }

  /** Reports whether a fetch goes as a comparison; it is sent then. */
  takes(fetching: Fetching): boolean {
    const { range, limit, tries } = fetching;
    if (limit > 0 || tries >= COMPARE_TRIES_MAX || !this.#core.stale.touches(range)) return false;
    fetching.tries++;
    this.#ask(fetching).catch((error) => this.#failed(error));
    return true;
  }

  async #ask(fetching: Fetching): Promise<void> {
    const { range, trace } = fetching, connection = this.#connection;
    const digest = await this.#digest(range);
    if (connection !== this.#connection || this.#fetches.get(fetching.id) !== fetching) return;
    fetching.said = digest;
    this.#fetches.renumber(fetching, this.#host.nextId());
    this.#host.send({ kind: "compare", id: fetching.id, range, digest, trace });
  }

  /** Digests the rows that are here, as of now: a hint (Y2), so others may change them between two pages. */
  async #digest(range: Range): Promise<Digest> {
    const { rows } = this.#core, sum = new DigestSum();
    for (let rest = range; rest.start < rest.end;) {
      const page = await rows.lock.run(() => rows.list(rest, DIGEST_ROWS, false));
      for (const row of page.seen) sum.add(row);
      rest = { start: page.range.end, end: range.end };
    }
    return sum.digest;
  }

  /** Takes the parent's answer to a comparison. */
  async compared(parent: SiteId, answer: Compared): Promise<void> {
    const fetching = this.#fetches.get(answer.id);
    if (fetching === undefined || fetching.said === null || fetching.parts !== null) return;
    const { said } = fetching;
    fetching.said = null;
    if (!isSound(fetching.range, answer)) {
      this.#core.refused("compare_refused", parent);
      fetching.tries = COMPARE_TRIES_MAX;
      return this.#host.request(fetching);
    }
    const connection = this.#connection;
    if (answer.parts.length === 0) {
      const isSame = await this.#adopt(fetching.range, said, connection);
      if (connection !== this.#connection) return;
      return isSame ? this.#end(fetching) : this.#host.request(fetching);
    }
    const different: Range[] = [];
    let start = answer.range.start;
    for (const { end, digest } of answer.parts) {
      const part = { start, end };
      if (!await this.#adopt(part, digest, connection)) different.push(part);
      start = end;
    }
    // This site has another connection meanwhile, and asks for the whole again.
    if (connection !== this.#connection) return;
    if (different.length === 0) return this.#end(fetching);
    fetching.parts = different.length;
    // The fetch makes room for its own parts.
    if (fetching.whole !== null) this.#underWay--;
    for (const range of different.reverse()) this.#queue.push({ whole: fetching, range });
    this.#next();
  }

  /** Covers a range where its rows have this digest (Y2, Y3). */
  #adopt(range: Range, digest: Digest, connection: number): Promise<boolean> {
    const core = this.#core;
    return core.rows.lock.run(async () => {
      // A site that moves hears the new parent while it takes in what the old one said.
      if (connection !== this.#connection) return false;
      const { seen } = await core.rows.list(range, 0, false);
      if (connection !== this.#connection) return false;
      // Stale rows here are in the root's journal up to `rootFloor`; the parent has come as far, or nothing is known of
      // it.
      if ((core.down[0] ?? 0) < core.rootFloor || !sameDigest(digestOf(seen), digest)) return false;
      const stale = seen.filter((row) => core.isStale(row));
      for (const row of stale) core.rows.replant({ ...row, known: 0 });
      core.takes(core.depth - 1);
      core.cover(range);
      core.count("same_ranges");
      core.count("same_rows", stale.length);
      core.wake();
      return true;
    });
  }

  /** Begins parts, as many as may be under way. */
  #next(): void {
    const connection = this.#connection;
    while (this.#underWay < COMPARES_MAX) { // Y4
      const next = this.#queue.pop();
      if (next === undefined) return;
      const { whole, range } = next;
      const part = this.#fetches.begin(
        { kind: "fetch", id: this.#host.nextId(), range, limit: 0, reverse: false, trace: whole.trace },
        whole,
      );
      this.#underWay++;
      const ended = (error: unknown) => {
        if (connection !== this.#connection) return;
        if (part.parts === null) this.#underWay--;
        this.#partEnded(whole, error);
        this.#next();
      };
      part.done.promise.then(() => ended(null), ended);
      this.#host.request(part);
    }
  }

  /** @param error why the part was refused, which refuses the whole; null: it was not. */
  #partEnded(whole: Fetching, error: unknown): void {
    if (whole.parts === null || this.#fetches.get(whole.id) !== whole) return;
    whole.parts--;
    if (error !== null) {
      this.#fetches.end(whole);
      whole.done.reject(error);
    } else if (whole.parts === 0) this.#end(whole);
  }

  #end(fetching: Fetching): void {
    this.#core.coverage.join(fetching.range);
    this.#fetches.end(fetching);
    fetching.done.resolve();
  }
}

/** Reports whether an answer fits its question: its parts are the range, in order. */
function isSound(range: Range, { range: answered, parts }: Compared): boolean {
  if (answered.start !== range.start || answered.end !== range.end) return false;
  if (parts.length === 0) return true;
  if (parts.length < 2 || parts.length > COMPARE_PARTS_MAX || parts.at(-1)?.end !== range.end) return false;
  return parts.every(({ end }, i) => end > (parts[i - 1]?.end ?? range.start));
}
