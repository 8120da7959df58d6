/**
 * A short while in which nothing that other sites say is taken: so that copies of several sites' disks, made at moments of
 * their own, fit together (docs/protocol/backups.md).
 *
 * Life: `begin` → what comes waits → `end`, or the time is over: it goes on, in the order in which it came.
 *
 * HO1  What came while it lasted is taken after its end, and nothing of it before.
 * HO2  It ends by itself, before other sites take this one for dead; whoever ends it is told whether it had.
 */

/** Half of what it takes until a silent site is suspected (store/owners), and some round trips around the world. */
export const HOLD_MS = 1_000;

/** See the file's header. */
export class Hold {
  #over: PromiseWithResolvers<void> | null = null;
  #name = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins it, or makes it last anew. @param name whose it is. */
  begin(name: string): void {
    this.#name = name;
    this.#over ??= Promise.withResolvers();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), HOLD_MS);
  }

  /** Ends it. @returns whether it lasted until now, under that name (HO2). */
  end(name: string): boolean {
    if (!this.lasts(name)) return false;
    this.#end();
    return true;
  }

  /** Whether it lasts, under that name. */
  lasts(name: string): boolean {
    return this.#over !== null && this.#name === name;
  }

  /** Resolves at its end; null while there is none. */
  passed(): Promise<void> | null {
    return this.#over?.promise ?? null;
  }

  /** Ends it for good. */
  close(): void {
    this.#end();
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#over?.resolve();
    this.#over = null;
  }
}
