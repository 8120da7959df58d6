/**
 * View of system rows that is kept up to date: a watch on the rows marks it stale, and it is read again, one pass at a
 * time; changes that come during a pass share the next one.
 *
 * Life: `follow` watches, reads, and resolves → each change reads again → `close` ends the watch; a pass that runs
 * then may end, and none begins.
 *
 * LV1  Passes never overlap, and one begins after each change: what the last pass read includes every change before
 *      that pass.
 * LV2  A failed pass is reported, unless a change came meanwhile and the pass after that succeeds; the next change or
 *      refresh tries again.
 */
import type { Range } from "../../store/model/range.ts";
import type { SystemStore } from "./system_store.ts";

/** Callbacks that read the rows, and hear of a failure. */
export interface LiveViewOptions {
  readonly read: () => Promise<void>;
  readonly failed: (error: unknown) => void;
}

/** System rows that are read again whenever they change. */
export class LiveView {
  readonly #options: LiveViewOptions;
  #unwatch = () => {};
  #stale = false;
  #pass: Promise<void> | null = null;
  #closed = false;

  constructor(options: LiveViewOptions) {
    this.#options = options;
  }

  /** True once it was closed: what a pass has read since is of no use. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Watches the ranges, and reads for the first time. Call once, when the replica is ready. */
  async follow(system: SystemStore, ranges: readonly Range[]): Promise<void> {
    this.#unwatch = system.watch(ranges, () => this.#changed());
    await this.refresh();
  }

  /** Resolves when the view has every change that the replica had applied when it was called. */
  async refresh(): Promise<void> {
    this.#stale = true;
    while (this.#stale && !this.#closed) {
      this.#pass ??= this.#drain().finally(() => this.#pass = null);
      await this.#pass;
    }
  }

  /** Ends the watch. */
  close(): void {
    this.#closed = true;
    this.#unwatch();
  }

  #changed(): void {
    if (!this.#closed) this.refresh().catch(this.#options.failed);
  }

  async #drain(): Promise<void> {
    while (this.#stale && !this.#closed) {
      this.#stale = false;
      try {
        await this.#options.read();
      } catch (error) {
        if (!this.#stale) throw error; // a change came meanwhile: the pass after it may succeed
      }
    }
  }
}
