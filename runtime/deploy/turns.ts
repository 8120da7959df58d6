/**
 * Turns of the control plane's changes at the root. A change holds its app from its beginning to its end, and the rows
 * that all apps share (versions, blobs, hosts: anything that a sweep may remove) except while it works `aside`.
 *
 * TN1  An app has one change at a time.
 * TN2  At most one change at a time is not aside; so a sweep in its turn finds no half-written change, only what the
 *      changes that are aside have written down.
 * TN3  Turns are taken in the order in which they were asked for, as far as TN1 leaves one.
 */

/** Turn of a change. */
export interface Turn {
  /** Does work that may take long: changes of other apps, and sweeps, go on meanwhile. */
  aside<T>(work: () => Promise<T>): Promise<T>;
}

/** Gives turns to changes. */
export class Turns {
  /** End of the last turn that each app has or waits for. */
  readonly #apps = new Map<string, Promise<void>>();
  #shared: Promise<void> = Promise.resolve();

  /** Takes a turn: of an app, or of what all apps share (null). */
  take<T>(app: string | null, step: (turn: Turn) => Promise<T>): Promise<T> {
    if (app === null) return this.#holding(step);
    const turn = (this.#apps.get(app) ?? Promise.resolve()).then(() => this.#holding(step));
    const ended = turn.then(() => {}, () => {}).then(() => {
      if (this.#apps.get(app) === ended) this.#apps.delete(app);
    });
    this.#apps.set(app, ended);
    return turn;
  }

  async #holding<T>(step: (turn: Turn) => Promise<T>): Promise<T> {
    let giveBack = await this.#takeShared();
    try {
      return await step({
        aside: async (work) => {
          giveBack();
          try {
            return await work();
          } finally {
            giveBack = await this.#takeShared();
          }
        },
      });
    } finally {
      giveBack();
    }
  }

  async #takeShared(): Promise<() => void> {
    const before = this.#shared;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#shared = promise;
    await before;
    return resolve;
  }
}
