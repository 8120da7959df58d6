/**
 * A short hold during which no message of other sites is taken: so that copies of several sites' disks, made at moments
 * of their own, fit together (docs/protocol/backups.md).
 *
 * Life: `begin` → messages that come wait → `end`, or the time is over: they go on, in the order in which they came.
 *
 * LH1  Messages that came during a hold are taken after its end, and none of them before.
 * LH2  A hold ends by itself, before other sites take this one for dead; `end` tells whether it had.
 */

/**
 * Milliseconds of a hold: half of what it takes until a silent site is suspected (store/owners), and some round trips
 * around the world.
 */
export const HOLD_MS = 1_000;

/** The hold of one site's links. */
export class Hold {
  #over: PromiseWithResolvers<void> | null = null;
  #name = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins a hold, or makes it last anew. @param name of its owner. */
  begin(name: string): void {
    this.#name = name;
    this.#over ??= Promise.withResolvers();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), HOLD_MS);
  }

  /** Ends the hold. @returns whether it lasted until now, under that name (LH2). */
  end(name: string): boolean {
    if (!this.lasts(name)) return false;
    this.#end();
    return true;
  }

  /** Reports whether the hold lasts, under that name. */
  lasts(name: string): boolean {
    return this.#over !== null && this.#name === name;
  }

  /** Resolves at the hold's end; null while there is none. */
  passed(): Promise<void> | null {
    return this.#over?.promise ?? null;
  }

  /** Ends the hold, as the site stops. */
  close(): void {
    this.#end();
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#over?.resolve();
    this.#over = null;
  }
}
