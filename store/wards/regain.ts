/**
 * Rows that are pending here and that this site's own disk has damaged (damage.ts) come back from its owners.
 *
 * Life: `begin` → the owners are asked, in the way in which they are asked to stand in for this site, until nothing is
 * lost any more → a row that one of them has is applied as it was, and is pending here anew.
 *
 * RG1  Only an owner whose ward reaches the place where a row stood here has it as it was: the row that it holds of
 *      that key is the newest that there was.
 */
import type { Core } from "../core/core.ts";
import { REGAIN_EVERY_MS } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { StandIn, StoodIn } from "../wire/ward_message.ts";

interface Host {
  /** Asks an owner for what it holds; null: no answer in time. */
  ask(owner: SiteId, wanted: Pick<StandIn, "replica" | "depth" | "position">): Promise<StoodIn | null>;
  /** Returns the owners of this site in the configuration in effect. */
  owners(): readonly SiteId[];
  fail(error: unknown): void;
}

/** Return of a site's damaged rows from its owners. */
export class Regain {
  readonly #core: Core;
  readonly #host: Host;
  #isRunning = false;

  constructor(core: Core, host: Host) {
    this.#core = core;
    this.#host = host;
  }

  begin(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#run().catch((error) => this.#host.fail(error)).finally(() => this.#isRunning = false);
  }

  async #run(): Promise<void> {
    const core = this.#core;
    while (!core.closed && core.damage.isPending) {
      for (const owner of this.#host.owners()) await this.#from(owner);
      if (core.closed || !core.damage.isPending) return;
      await new Promise<void>((resolve) => core.ports.clock.after(REGAIN_EVERY_MS, resolve));
    }
  }

  async #from(owner: SiteId): Promise<void> {
    const core = this.#core, { replica } = core;
    const position = Math.min(...core.damage.pending.map((lost) => lost.position));
    if (core.closed || position === Infinity) return;
    const part = await this.#host.ask(owner, { replica, depth: core.depth - 1, position });
    if (part?.outcome !== "rows") return;
    await core.rows.lock.run(async () => {
      const lost = core.damage.pending.filter((each) => each.position <= part.position); // RG1
      const found = await core.rows.lookup(lost.map(({ key }) => key));
      if (core.closed || core.replica !== replica) return;
      lost.forEach(({ key }, i) => {
        const row = part.rows.find((each) => each.key === key);
        if (row === undefined) return;
        core.rows.apply(found[i], { ...row, known: core.depth });
        core.damage.recovered(key);
        core.count("rows_regained");
      });
    });
    core.wake();
  }
}
