/**
 * The store that all sites of a run share: what a replica is to stateful sessions, without the replication, which has
 * simulators of its own. It notes what was written, and under which version.
 */
import type { AttachedSession, Replica, StoreMutation, TokenState } from "../../../store/api.ts";
import type { Key } from "../../../store/key.ts";
import { type Row, type Version, versionstamp } from "../../../store/row.ts";

/** A row as somebody wrote it. */
export interface Written {
  readonly key: Key;
  readonly value: string;
  readonly version: string;
  /** By a write with checks, which is done when it is called. */
  readonly isChecked: boolean;
}

/** What a process is to the store. */
export interface RowsProcess {
  readonly isAlive: () => boolean;
  readonly pause: (ms: number) => Promise<void>;
  readonly wallMs: () => number;
  readonly draw: () => number;
  readonly replica: number;
}

const text = new TextDecoder();
const EPOCH_MS = Date.UTC(2025, 0, 1), TICKS = 4096;
const NOBODY = new Uint8Array(16);

/** See the file's header. */
export class Rows {
  readonly written: Written[] = [];
  readonly #rows = new Map<Key, Row>();
  #position = 0;
  #clock = 0;
  readonly #watchers = new Set<() => void>();

  /** A value that no other write has. */
  tick(wallMs: number): number {
    return this.#clock = Math.max(this.#clock + 1, Math.floor((wallMs - EPOCH_MS) * TICKS));
  }

  get(key: Key): Row | undefined {
    const row = this.#rows.get(key);
    return row?.value === null ? undefined : row;
  }

  list(start: Key, end: Key): Row[] {
    return [...this.#rows.values()].filter(({ key, value }) => key >= start && key < end && value !== null)
      .sort((a, b) => a.key < b.key ? -1 : 1);
  }

  watch(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  }

  apply(mutations: readonly StoreMutation[], version: Version, isChecked: boolean): void {
    for (const mutation of mutations) {
      const { key } = mutation;
      const value = mutation.kind === "delete" ? null : mutation.value;
      if (value !== null) {
        this.written.push({
          ...{ key, value: text.decode(value), isChecked },
          version: versionstamp(version),
        });
      }
      const old = this.#rows.get(key);
      if (old !== undefined && versionstamp(old) > versionstamp(version)) continue;
      this.#rows.set(key, {
        ...{ key, value, ...version, position: ++this.#position, known: 0, expiresAtMs: 0 },
      });
    }
    for (const changed of [...this.#watchers]) changed();
  }

  /** As a process of a site sees it. */
  replica(process: RowsProcess): Pick<Replica, "attach" | "attachAll" | "durable" | "status" | "system"> {
    const session = new Attached(this, process);
    return {
      attach: () => Promise.resolve(session),
      attachAll: () => Promise.resolve(session),
      durable: () => process.pause(process.draw() * 2),
      status: () => ({ replica: process.replica }) as ReturnType<Replica["status"]>,
      system: session,
    };
  }
}

class Attached implements AttachedSession {
  readonly id = NOBODY;
  readonly how = "new";
  readonly carried = { rows: 0, bytes: 0 };
  readonly highest = 0;
  readonly #rows: Rows;
  readonly #process: RowsProcess;

  constructor(rows: Rows, process: RowsProcess) {
    this.#rows = rows;
    this.#process = process;
  }

  async get(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    await this.#way();
    return keys.map((key) => this.#rows.get(key));
  }

  async list({ start, end }: { readonly start: Key; readonly end: Key }): Promise<Row[]> {
    await this.#way();
    return this.#rows.list(start, end);
  }

  async write(
    mutations: readonly StoreMutation[],
    checks: Parameters<AttachedSession["write"]>[1] = [],
  ): ReturnType<AttachedSession["write"]> {
    await this.#way();
    const holds = checks.every(({ key, version }) => {
      const row = this.#rows.get(key);
      return (row === undefined ? null : versionstamp(row)) === (version && versionstamp(version));
    });
    if (!holds) return { ok: false };
    const version = { clock: this.tick(), replica: this.#process.replica };
    this.#rows.apply(mutations, version, true);
    await this.#way();
    return { ok: true, version };
  }

  async writeAs(mutations: readonly StoreMutation[], version: Version): Promise<void> {
    await this.#way();
    this.#rows.apply(mutations, version, false);
    await this.#way();
  }

  tick(): number {
    return this.#rows.tick(this.#process.wallMs());
  }

  watch(_: unknown, changed: () => void): () => void {
    return this.#rows.watch(changed);
  }

  durable(): Promise<void> {
    return this.#way();
  }

  token(): TokenState {
    return { session: NOBODY, sequence: 0, replica: 1, clock: 0, open: false, path: [0] };
  }

  /** Resolves a while later, unless the process dies. */
  async #way(): Promise<void> {
    await this.#process.pause(this.#process.draw());
    if (!this.#process.isAlive()) await new Promise(() => {});
  }
}
