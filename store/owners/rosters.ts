/**
 * Rosters, the owners and topics of tuples, each kept once for all tuples that have it in common: a million tuples have
 * a few hundred.
 *
 * RO1 A roster is there as long as it is used, and has one number all that time.
 */
import type { SiteId } from "../model/ports.ts";
import type { Roster } from "./tuple.ts";

interface Used {
  readonly roster: Roster;
  readonly key: string;
  count: number;
}

export class Rosters {
  readonly #numbers = new Map<string, number>();
  readonly #used: (Used | undefined)[] = [];
  readonly #free: number[] = [];
  /** Number of the roster that was used last: thousands of tuples that follow each other have the same. */
  #last = -1;

  /** Counts one use more of a roster; returns its number. */
  use(roster: Roster): number {
    const last = this.#used[this.#last];
    if (last !== undefined && isSame(last.roster, roster)) {
      last.count++;
      return this.#last;
    }
    const number = this.#last = this.#numberOf(roster);
    const used = this.#used[number];
    if (used !== undefined) used.count++;
    return number;
  }

  #numberOf(roster: Roster): number {
    const key = keyOf(roster);
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#free.pop() ?? this.#used.length;
      const { topic, f, owners, former, unacked, gone } = roster;
      this.#used[number] = { roster: { topic, f, owners, former, unacked, gone }, key, count: 0 };
      this.#numbers.set(key, number);
    }
    return number;
  }

  /** Counts one use less of a roster. */
  release(number: number): void {
    const used = this.#used[number];
    if (used === undefined || --used.count > 0) return; // RO1
    this.#numbers.delete(used.key);
    this.#used[number] = undefined;
    this.#free.push(number);
  }

  at(number: number): Roster {
    const used = this.#used[number];
    if (used === undefined) throw new Error(`RO1: there is no roster ${number}`);
    return used.roster;
  }

  /** Lists all rosters, and how often each is used. */
  *counted(): Generator<{ readonly roster: Roster; readonly count: number }> {
    for (const used of this.#used) if (used !== undefined) yield used;
  }
}

/** Compares two rosters; cheaper than making a key. */
function isSame(a: Roster, b: Roster): boolean {
  return a.topic === b.topic && a.f === b.f && a.gone === b.gone && areSame(a.owners, b.owners) &&
    areSame(a.former, b.former) && areSame(a.unacked, b.unacked);
}

const areSame = (a: readonly SiteId[], b: readonly SiteId[]): boolean =>
  a === b || (a.length === b.length && a.every((site, i) => site === b[i]));

/** Makes a key of a roster. No site and no topic has a line break; lists are told apart by their lengths. */
function keyOf({ topic, f, owners, former, unacked, gone }: Roster): string {
  const list = (sites: readonly SiteId[]) => `${sites.length}\n${sites.join("\n")}`;
  return `${topic}\n${gone} ${f}\n${list(owners)}\n${list(former)}\n${list(unacked)}`;
}
