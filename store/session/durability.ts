/**
 * The output gate: what leaves the site waits here until a position of this site's journal is safe.
 *
 * B1  A position on disk here is not enough where the site has owners: what leaves waits for their disks too (PROTOCOL
 *     O2). What the replica itself must have on disk before it goes on waits for its own disk only.
 * B2  What children are fed waits for owners, too, but not for ever: a branch goes on where its core's owners are
 *     silent, and what it was fed meanwhile is lost to its sessions if the core is.
 * B3  A caller that waits for owners in vain is told so (O6): what it wrote stands in the journal, as after a lost
 *     answer.
 */
import { StoreUnavailable } from "../api/api.ts";
import type { Core } from "../core/core.ts";
import { FEED_WAIT_MS, OWNERS_WAIT_MS } from "../model/limits.ts";
import type { Position } from "../model/row.ts";
import type { WardSource } from "../wards/source.ts";

interface Waiter {
  readonly position: Position;
  /** True where an answer that waits leaves the site. */
  readonly isOutside: boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  cancel: () => void;
}

export class Durability {
  readonly #core: Core;
  readonly #source: WardSource;
  #waiting: Waiter[] = [];
  #recorded: (() => void)[] = [];
  #failure: Error | null = null;

  constructor(core: Core, source: WardSource) {
    this.#core = core;
    this.#source = source;
  }

  /** Reports whether an answer that depends on a position may leave. */
  isSafe(position: Position): boolean {
    if (this.#failure !== null || position > this.#core.rows.committedHead) return false;
    return this.#source.allows(position);
  }

  /** Resolves when an answer that depends on a position may leave. @throws StoreUnavailable `owners_unreachable` */
  safe(position: Position): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return this.isSafe(position) ? Promise.resolve() : this.#wait(position, true);
  }

  /** Resolves when children may be fed up to a position (B2). */
  fed(position: Position): Promise<void> {
    const { resolve, promise } = Promise.withResolvers<void>();
    const cancel = this.#core.ports.clock.after(FEED_WAIT_MS, () => {
      this.#core.count("fed_early");
      resolve();
    });
    // The limit of `safe` is the longer one, and an error of it says no more than this limit does.
    this.safe(position).then(resolve, resolve);
    return promise.finally(cancel);
  }

  /** Resolves when a position is on this site's disk. */
  onDisk(position: Position): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return position <= this.#core.rows.committedHead ? Promise.resolve() : this.#wait(position, false);
  }

  #wait(position: Position, isOutside: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { position, isOutside, resolve, reject, cancel: () => {} };
      if (isOutside && !this.#source.isIdle) { // B1
        this.#source.want(position);
        this.#limit(waiter);
      }
      this.#waiting.push(waiter);
      this.#core.wake();
    });
  }

  /** Refuses a waiter whose owners are silent for too long (B3). */
  #limit(waiter: Waiter): void {
    waiter.cancel = this.#core.ports.clock.after(OWNERS_WAIT_MS, () => {
      // A slow disk is no fault of the owners.
      if (waiter.position > this.#core.rows.committedHead) return this.#limit(waiter);
      if (this.#source.goesOnAlone(waiter.position)) return this.tell();
      this.#waiting = this.#waiting.filter((other) => other !== waiter);
      this.#core.count("owners_unreachable");
      waiter.reject(
        new StoreUnavailable(
          "owners_unreachable",
          `what this answer depends on is on the disk of ${this.#core.config.site}, but not on those of its owners ` +
            `within ${OWNERS_WAIT_MS} ms: it is kept, and will be lost if the site is lost before they have it`,
        ),
      );
    });
  }

  /** Resolves when what was recorded before the call is on this site's disk. */
  recorded(): Promise<void> {
    return new Promise((resolve) => this.#recorded.push(resolve));
  }

  /**
   * Takes over, at a freeze, the callers that wait for records: later ones wait for the next commit. The result is
   * called when this commit is on disk.
   */
  freeze(): () => void {
    const recorded = this.#recorded;
    this.#recorded = [];
    return () => {
      for (const resolve of recorded) resolve();
    };
  }

  /** Resolves waiters whose positions are safe by now. */
  tell(): void {
    const head = this.#core.rows.committedHead;
    const told: Waiter[] = [], waiting: Waiter[] = [];
    for (const waiter of this.#waiting) {
      const { position, isOutside } = waiter;
      const isTold = isOutside ? this.isSafe(position) : position <= head; // B1
      (isTold ? told : waiting).push(waiter);
    }
    this.#waiting = waiting;
    for (const waiter of told) {
      waiter.cancel();
      waiter.resolve();
    }
  }

  /** Rejects all waiters: nothing becomes safe any more. */
  end(error: Error): void {
    this.#failure ??= error;
    for (const waiter of this.#waiting.splice(0)) {
      waiter.cancel();
      waiter.reject(error);
    }
  }
}
