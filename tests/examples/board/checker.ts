/**
 * Checks the clients' records against the session guarantees. It shares no code with the store, knows no tokens
 * and no positions, and looks at nothing but what clients were told.
 *
 * What a session *knows*: its own operations, and, once it has read a version that another session wrote, all
 * that the other one had seen and written when it wrote it, transitively. This is kept as a vector of operation
 * counts, one entry per session. A read is held against what its session knew *before* the request:
 *
 * G1  read your writes: a row it wrote earlier has at least that version.
 * G2  monotonic reads: a row it read earlier has at least that version.
 * G3  monotonic writes: after reading a write of another session, it sees that session's earlier writes.
 * G4  writes follow reads: … and what that session had read before that write.
 * G5  causality: the same through a chain of sessions.
 * G6  one version of a row has one content, everywhere.
 *
 * An absent row satisfies a known version only where somebody deleted it at a later one, or may have. Rows that
 * a list should have shown count as read and absent. Counters that only grow are held against the session's own
 * last reading and its own additions since (G1, G2).
 */
import type { History, Operation, RowName, Seen, SeenList } from "./history.ts";

/** The promises that can be broken. */
export type Guarantee =
  | "read-your-writes"
  | "monotonic-reads"
  | "monotonic-writes"
  | "writes-follow-reads"
  | "causality"
  | "one-content-per-version";

export interface Violation {
  readonly guarantee: Guarantee;
  readonly session: number;
  readonly operation: number;
  readonly message: string;
}

export interface Verdict {
  readonly violations: readonly Violation[];
  /** Reads of rows that were held against something: absent ones only where the session knew the row. */
  readonly checked: number;
  readonly operations: number;
}

/** The newest version a session had touched of a row, as of one of its operations. */
interface Touch {
  readonly operation: number;
  readonly version: string;
  readonly wrote: boolean;
}

interface Write {
  readonly session: number;
  readonly operation: number;
  /** What the writer's session knew when it wrote, itself included: operation counts by session. */
  knows: Int32Array | null;
}

/** Checks a history. */
export function check(history: History): Verdict {
  return new Checker(history).run();
}

class Checker {
  readonly #history: History;
  readonly #violations: Violation[] = [];
  /** By row, by session: touches in the order of operations, versions rising. */
  readonly #touches = new Map<RowName, Map<number, Touch[]>>();
  /** The highest version that anybody ever saw of a row: a read of it can't be wrong. */
  readonly #highest = new Map<RowName, string>();
  readonly #writes = new Map<string, Write>();
  readonly #deletes = new Map<RowName, { newest: string; perhaps: boolean }>();
  /** By group: rows by place. */
  readonly #groups = new Map<string, { row: RowName; place: string }[]>();
  readonly #contents = new Map<string, string>();
  readonly #knows: Int32Array[];
  /** Up to which operation a session knows another by having read its writes itself. */
  readonly #direct: Int32Array[];
  #checked = 0;
  #operations = 0;

  constructor(history: History) {
    this.#history = history;
    const count = history.sessions.length;
    this.#knows = history.sessions.map(() => new Int32Array(count));
    this.#direct = history.sessions.map(() => new Int32Array(count));
  }

  run(): Verdict {
    for (const [session, operations] of this.#history.sessions.entries()) {
      for (const [index, operation] of operations.entries()) this.#index(session, index, operation);
    }
    this.#indexGroups();
    this.#inCausalOrder();
    this.#history.sessions.forEach((operations, session) => this.#counters(session, operations));
    return { violations: this.#violations, checked: this.#checked, operations: this.#operations };
  }

  #index(session: number, index: number, operation: Operation): void {
    this.#operations++;
    for (const seen of operation.seen) {
      if (seen.version === null) continue;
      this.#touch(session, { operation: index, version: seen.version, wrote: false }, seen.row);
      this.#sameContent(session, index, seen.row, seen.version, seen.hash);
    }
    for (const written of operation.written) {
      if (written.hash === null) this.#deleted(written.row, written.version);
      if (written.version === null || operation.outcome !== "acknowledged") continue;
      this.#touch(session, { operation: index, version: written.version, wrote: true }, written.row);
      this.#writes.set(`${written.row}@${written.version}`, { session, operation: index, knows: null });
      if (written.hash !== null) {
        this.#sameContent(session, index, written.row, written.version, written.hash);
      }
    }
  }

  #touch(session: number, touch: Touch, row: RowName): void {
    if (touch.version > (this.#highest.get(row) ?? "")) this.#highest.set(row, touch.version);
    let bySession = this.#touches.get(row);
    if (bySession === undefined) this.#touches.set(row, bySession = new Map());
    const touches = bySession.get(session);
    if (touches === undefined) bySession.set(session, [touch]);
    else if (touch.version > (touches.at(-1)?.version ?? "")) touches.push(touch);
  }

  #deleted(row: RowName, version: string | null): void {
    const before = this.#deletes.get(row) ?? { newest: "", perhaps: false };
    this.#deletes.set(row, {
      newest: version !== null && version > before.newest ? version : before.newest,
      perhaps: before.perhaps || version === null,
    });
  }

  /** G6. */
  #sameContent(session: number, index: number, row: RowName, version: string, hash: string | null): void {
    if (hash === null) return;
    const name = `${row}@${version}`;
    const before = this.#contents.get(name);
    if (before === undefined) this.#contents.set(name, hash);
    else if (before !== hash) {
      this.#violate("one-content-per-version", session, index, `${name} was ${before} and is ${hash}`);
    }
  }

  #indexGroups(): void {
    for (const row of this.#touches.keys()) {
      for (const { group, place } of this.#history.placements.get(row) ?? []) {
        const rows = this.#groups.get(group);
        if (rows === undefined) this.#groups.set(group, [{ row, place }]);
        else rows.push({ row, place });
      }
    }
    for (const rows of this.#groups.values()) rows.sort((a, b) => a.place < b.place ? -1 : 1);
  }

  /** Every operation after those whose writes it read; where records contradict that, by session. */
  #inCausalOrder(): void {
    const next = this.#history.sessions.map(() => 0);
    for (let stuck = false;;) {
      let moved = false;
      let left = false;
      for (const [session, operations] of this.#history.sessions.entries()) {
        for (;;) {
          const operation = operations[next[session] ?? 0];
          if (operation === undefined) break;
          if (!stuck && !this.#readable(session, operation)) {
            left = true;
            break;
          }
          this.#operation(session, next[session] ?? 0, operation);
          next[session] = (next[session] ?? 0) + 1;
          moved = true;
          if (stuck) {
            left = true;
            stuck = false;
          }
        }
      }
      if (!left) return;
      stuck = !moved;
    }
  }

  #readable(session: number, operation: Operation): boolean {
    return operation.seen.every((seen) => {
      const write = this.#writes.get(`${seen.row}@${seen.version}`);
      return write === undefined || write.knows !== null || write.session === session;
    });
  }

  #operation(session: number, index: number, operation: Operation): void {
    const shown = new Set<RowName>();
    for (const seen of operation.seen) {
      this.#read(session, index, seen);
      shown.add(seen.row);
    }
    for (const list of operation.lists) {
      for (const row of this.#listed(list)) {
        if (!shown.has(row)) this.#read(session, index, { row, version: null, hash: null });
      }
    }
    this.#learn(session, index, operation);
  }

  *#listed(list: SeenList): Iterable<RowName> {
    const rows = this.#groups.get(list.group) ?? [];
    let low = 0;
    for (let high = rows.length; low < high;) {
      const middle = (low + high) >> 1;
      if ((rows[middle]?.place ?? "") < list.from) low = middle + 1;
      else high = middle;
    }
    for (let i = low; i < rows.length; i++) {
      const entry = rows[i];
      if (entry === undefined || list.to !== null && entry.place >= list.to) return;
      yield entry.row;
    }
  }

  /** G1 to G5 for one row. */
  #read(session: number, index: number, seen: Seen): void {
    if (seen.version !== null && seen.version >= (this.#highest.get(seen.row) ?? "")) {
      this.#checked++;
      return;
    }
    const known = this.#known(session, seen.row);
    if (known === null) return;
    this.#checked++;
    if (
      seen.version !== null ? seen.version >= known.touch.version : this.#mayBeGone(seen.row, known.touch)
    ) return;
    const how = known.touch.wrote ? "wrote" : "read";
    const message = `${seen.row} was ${seen.version ?? "absent"}, but session ${known.by} ${how} ` +
      `${known.touch.version} in its operation ${known.touch.operation}`;
    this.#violate(this.#guarantee(session, known), session, index, message);
  }

  #mayBeGone(row: RowName, known: Touch): boolean {
    const deleted = this.#deletes.get(row);
    return deleted !== undefined && (deleted.perhaps || deleted.newest >= known.version);
  }

  /** The newest version of a row that a session knows of, and through whom, the nearest one first. */
  #known(session: number, row: RowName): { by: number; touch: Touch } | null {
    let best: { by: number; touch: Touch } | null = null;
    const knows = this.#knows[session];
    for (const [by, touches] of this.#touches.get(row) ?? []) {
      const upTo = knows?.[by] ?? 0;
      const touch = touches.findLast((candidate) => candidate.operation < upTo);
      if (touch === undefined) continue;
      const newer = best === null || touch.version > best.touch.version;
      const nearer = best !== null && touch.version === best.touch.version &&
        this.#distance(session, by, touch) < this.#distance(session, best.by, best.touch);
      if (newer || nearer) best = { by, touch };
    }
    return best;
  }

  /** 0: its own touch; 1: that of a session whose later write it read itself; 2: known through others. */
  #distance(session: number, by: number, touch: Touch): 0 | 1 | 2 {
    if (by === session) return 0;
    return touch.operation < (this.#direct[session]?.[by] ?? 0) ? 1 : 2;
  }

  #guarantee(session: number, known: { by: number; touch: Touch }): Guarantee {
    const distance = this.#distance(session, known.by, known.touch);
    if (distance === 0) return known.touch.wrote ? "read-your-writes" : "monotonic-reads";
    if (distance === 2) return "causality";
    return known.touch.wrote ? "monotonic-writes" : "writes-follow-reads";
  }

  #learn(session: number, index: number, operation: Operation): void {
    const knows = this.#knows[session];
    const direct = this.#direct[session];
    if (knows === undefined || direct === undefined) return;
    for (const seen of operation.seen) {
      const write = this.#writes.get(`${seen.row}@${seen.version}`);
      if (write === undefined || write.session === session) continue;
      direct[write.session] = Math.max(direct[write.session] ?? 0, write.operation + 1);
      write.knows?.forEach((count, other) => knows[other] = Math.max(knows[other] ?? 0, count));
    }
    knows[session] = index + 1;
    if (operation.outcome !== "acknowledged" || operation.written.length === 0) return;
    const snapshot = knows.slice();
    for (const written of operation.written) {
      const write = this.#writes.get(`${written.row}@${written.version}`);
      if (write !== undefined) write.knows = snapshot;
    }
  }

  /** G1 and G2 for counters that only grow. */
  #counters(session: number, operations: readonly Operation[]): void {
    const least = new Map<string, { value: number; wrote: boolean }>();
    for (const [index, operation] of operations.entries()) {
      for (const { counter, value } of operation.counted) {
        const before = least.get(counter);
        if (before !== undefined) this.#checked++;
        if (before !== undefined && value < before.value) {
          const guarantee = before.wrote ? "read-your-writes" : "monotonic-reads";
          this.#violate(guarantee, session, index, `${counter} was ${value}, not at least ${before.value}`);
        }
        least.set(counter, { value: Math.max(value, before?.value ?? 0), wrote: false });
      }
      if (operation.outcome !== "acknowledged") continue;
      for (const { counter, by } of operation.added) {
        least.set(counter, { value: (least.get(counter)?.value ?? 0) + by, wrote: true });
      }
    }
  }

  #violate(guarantee: Guarantee, session: number, operation: number, message: string): void {
    this.#violations.push({ guarantee, session, operation, message });
  }
}
