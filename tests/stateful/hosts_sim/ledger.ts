/**
 * What is known of a run from outside: what any isolate ever made, what of it was released, what was written down, what
 * the arbiter has on record. Whoever is told something is held against it at once.
 */
import type { Home, HomeRow } from "../../../functions/sessions/home/mod.ts";
import type { Violation } from "./check.ts";
import type { Entry, State } from "./program.ts";

interface Made {
  readonly before: string;
  readonly entry: Entry;
  readonly number: number;
  /** The last that is written down up to there, and its number; 0: nothing is. */
  readonly writes: number;
  readonly written: string;
}

/** Digests of the entries that a client holds: to find them takes time, and most are released. */
export type Held = () => ReadonlySet<string>;

export class Ledger {
  readonly made = new Map<string, Made>();
  /** By digest: released by some home. */
  readonly #released = new Set<string>();
  /** By peer and message: the digests of entries that have it. */
  readonly #messages = new Map<string, string[]>();
  readonly #blamed = new Set<string>();
  /** Written down, by number: what was. */
  readonly written = new Map<number, Set<string>>();
  row: HomeRow | null = null;
  readonly #found: Violation[];

  constructor(found: Violation[]) {
    this.#found = found;
  }

  complain(checker: Violation["checker"], message: string): void {
    if (this.#found.length < 50) this.#found.push({ checker, message });
  }

  add(before: State, { digest, entries, writes, received }: State, entry: Entry): void {
    if (this.made.has(digest)) return;
    const written = writes > before.writes
      ? `${entries} ${digest}`
      : this.made.get(before.digest)?.written ?? "";
    this.made.set(digest, { before: before.digest, entry, number: entries, writes, written });
    if (entry.kind !== "message" && entry.kind !== "rejected") return;
    const key = `${entry.from} ${received[entry.from]}`;
    this.#messages.set(key, [...this.#messages.get(key) ?? [], digest]);
  }

  /** An isolate was lost, and a message of a peer's was to blame: it may be given up. */
  blamed(peer: string, message: number): void {
    this.#blamed.add(`${peer} ${message}`);
  }

  isBlamed(peer: string, message: number): boolean {
    return this.#blamed.has(`${peer} ${message}`);
  }

  /** Whether some home has released what made a state. */
  isReleased(digest: string): boolean {
    return this.#released.has(digest);
  }

  /** The states that a message of a peer has led to. */
  statesAfter(peer: string, message: number): readonly string[] {
    return this.#messages.get(`${peer} ${message}`) ?? [];
  }

  /** A home has released up to an entry, and its isolate stands here. */
  released(through: number, digest: string): void {
    for (let at = digest; at !== "0" && !this.#released.has(at);) {
      const made = this.made.get(at);
      if (made === undefined) return;
      if (made.number <= through) this.#released.add(at);
      at = made.before;
    }
  }

  wrote(effect: number, text: string): void {
    this.written.set(effect, (this.written.get(effect) ?? new Set()).add(text));
  }

  /** An output leaves to a peer (HO1). @param log it holds the log */
  leaves(peer: string, text: string, home: Home, isHost: boolean): void {
    const [number = 0, digest = ""] = numbered(text);
    const made = this.made.get(digest);
    if (made === undefined) return this.complain("fault", `${peer} is told ${text}, which nobody made`);
    if (made.writes > 0 && this.written.get(made.writes)?.has(made.written) !== true) {
      this.complain("contradicted", `${peer} is told ${text} before what it wrote is written down`);
    }
    if (number <= home.released) return;
    if (!isHost) return this.complain("contradicted", `${peer} holds no log, and is told ${text} ahead`);
    const { row } = this;
    if (row === null || row.epoch !== home.epoch || row.owners.some(({ site }) => site === `@${peer}`)) {
      return;
    }
    this.complain("contradicted", `${peer} is told ${text} ahead, and is not on record`);
  }

  /** A client gives out an output that it was sent. @param held its log as it is: nothing, where it holds none */
  given(peer: string, text: string, held: Held): void {
    const [, digest = ""] = numbered(text);
    if (this.#released.has(digest) || held().has(digest)) return;
    this.complain("contradicted", `${peer} gives out ${text}, which was not released, and does not hold it`);
  }

  /** A client hears that its messages up to one are in the log (HO5). */
  acknowledged(peer: string, count: number, held: Held): void {
    const digests = this.#messages.get(`${peer} ${count}`) ?? [];
    if (digests.some((one) => this.#released.has(one))) return;
    const has = held();
    if (digests.some((one) => has.has(one))) return;
    this.complain(
      "lost",
      `${peer} is told that ${count} are in the log, and that is not released nor with it`,
    );
  }
}

const numbered = (text: string): [number, string] => {
  const [number = "", digest = ""] = text.split(" ");
  return [Number(number), digest];
};
