/**
 * The answers to what a child fetches (downlinks.ts D2): those that can be given from what is covered here go with the
 * flush under way, the others are asked for above first.
 */
import type { Child, ChildFetch } from "../core/child.ts";
import type { Compare } from "../wire/compare_message.ts";
import type { Core } from "../core/core.ts";
import { type Digest, sameDigest } from "../model/digest.ts";
import { damagedRow } from "../core/damage.ts";
import type { FlushReads } from "./flush_reads.ts";
import type { Fetch, Message } from "../wire/message.ts";
import type { Key } from "../model/key.ts";
import { overlap, pointRange, type Range } from "../model/range.ts";
import { ROOT_ONLY_RANGE, SYSTEM_RANGE } from "../members/topology.ts";

interface Host {
  /** Covers a range for a child here first. */
  fetch(fetch: Fetch): Promise<void>;
  /** Feeds the child, from now on, what changes in a range. */
  subscribe(child: Child, range: Range): void;
  /** Marks the child as one with something to send at the next flush. */
  due(child: Child): void;
  /** Marks the child as one with fetches that wait. */
  asks(child: Child): void;
}

/** Answers the fetches of one site's children. */
export class Replies {
  readonly #core: Core;
  readonly #host: Host;

  constructor(core: Core, host: Host) {
    this.#core = core;
    this.#host = host;
  }

  /** Takes a child's fetch of a range, or its question that compares the range first. */
  asked(child: Child, question: Fetch | Compare): void {
    const { id, range, trace } = question;
    const fetch: Fetch = question.kind === "fetch"
      ? question
      : { kind: "fetch", id, range, trace, limit: 0, reverse: false };
    const has = question.kind === "fetch" ? null : question.digest;
    const answered = trace === "" ? undefined : this.#core.ports.traced?.(trace, "fetch");
    child.fetches.add({ ...fetch, has, part: null, asked: false, answered, damaged: null });
    this.#host.asks(child);
    this.#host.due(child);
    this.#core.wake();
  }

  /** Replies to those fetches that can be answered now; the others are asked for above (D2). */
  async to(child: Child, reads: FlushReads): Promise<Message[]> {
    const replies: Message[] = [], { connection } = child;
    for (const fetch of [...child.fetches]) {
      if (connection !== child.connection) return [];
      const answer = await this.#answer(child, fetch, reads);
      if (answer === null) continue;
      // The fetch kept its range from being evicted (PROTOCOL I3); from here on the subscription does.
      child.fetches.delete(fetch);
      fetch.answered?.();
      replies.push(...answer);
    }
    if (child.fetches.size > 0) this.#host.asks(child);
    return replies;
  }

  async #answer(child: Child, fetch: ChildFetch, reads: FlushReads): Promise<Message[] | null> {
    const { id, range, part } = fetch;
    if (overlap(range, ROOT_ONLY_RANGE)) {
      this.#core.refused("range_refused", child.id);
      return [{ kind: "fetched", id, range, rows: [], more: false, refused: true }];
    }
    // Meanwhile the children are told the system rows, and nothing else.
    if (reads.mark.partial && !overlap(range, SYSTEM_RANGE)) {
      fetch.asked = this.#core.resyncing;
      return null;
    }
    if (part === null) {
      this.#host.due(child);
      return null;
    }
    const whole = part.start <= range.start && part.end >= range.end;
    // A child that has left meanwhile covers nothing any more, nor does one that has come again cover this range.
    const { connection } = child, isGone = () => connection !== child.connection;
    const damaged = whole && fetch.limit === 0 ? this.#core.damage.within(range)[0] : undefined;
    const refused = damaged ?? fetch.damaged;
    if (refused !== null) return this.#refused(child, id, refused);
    const compared = whole && fetch.has !== null ? await this.#compare(child, fetch, fetch.has, reads) : null;
    if (compared !== null) return compared;
    if (isGone()) return null;
    const result = whole || (fetch.limit > 0 && part.start < part.end)
      ? await reads.range(part, fetch.limit, fetch.reverse)
      : null;
    if (isGone()) return null;
    if (result === null || (!whole && result.live < fetch.limit)) {
      this.#ask(child, fetch);
      return null;
    }
    const [lost] = this.#core.damage.within(result.range);
    if (lost !== undefined) return this.#refused(child, id, lost);
    this.#host.subscribe(child, result.range); // downlinks.ts D2
    return result.chunks.map((chunk) => ({
      kind: "fetched",
      id,
      range: result.range,
      refused: false,
      ...chunk,
    }));
  }

  /**
   * Makes the answer that a row is damaged here, and that this site can't get it: nobody is told that there is none
   * (damage.ts G1). Null where a newer row is on its way to the disk: the answer waits for that.
   */
  #refused(child: Child, id: number, key: Key): Message[] | null {
    if (this.#core.damage.isOver(key)) {
      this.#host.due(child);
      this.#core.wake();
      return null;
    }
    this.#core.count("fetches_damaged");
    return [{ kind: "fetched", id, range: pointRange(key), rows: [], more: false, refused: true }];
  }

  /**
   * Compares a range: which parts of it the child has as they are here; null where that is no shorter than their rows.
   */
  async #compare(
    child: Child,
    { id, range }: ChildFetch,
    has: Digest,
    reads: FlushReads,
  ): Promise<Message[] | null> {
    const { connection } = child;
    const { digest, parts, rows, bytes } = await reads.digest(range);
    if (connection !== child.connection) return null;
    // The damage was found just now: what the child has of the range is asked for again.
    if (this.#core.damage.within(range).length > 0) return null;
    const isSame = sameDigest(digest, has);
    if (!isSame && (rows < 2 || bytes <= this.#core.compareRowsBytes)) return null;
    this.#core.count(isSame ? "compared_same" : "compared_parts");
    this.#host.subscribe(child, range);
    return [{ kind: "compared", id, range, parts: isSame ? [] : parts }];
  }

  #ask(child: Child, fetch: ChildFetch): void {
    if (fetch.asked) return;
    fetch.asked = true;
    const ready = () => {
      fetch.asked = false;
      fetch.part = null;
      this.#host.due(child);
      this.#core.wake();
    };
    this.#host.fetch(fetch).then(ready, (error) => {
      fetch.damaged = damagedRow(error);
      ready();
    });
  }
}
