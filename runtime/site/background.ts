/**
 * Background work of a site for its apps: at the root, going on with changes that were cut short; at every site, giving
 * back the isolates of apps that were deleted.
 *
 * Life: constructed (looks at once) → looks again from time to time → `close`.
 */
import { type AdminServices, resumeChanges } from "../admin/mod.ts";
import type { AppTable } from "../deploy/mod.ts";
import type { IsolatePool } from "../isolate/mod.ts";

/**
 * Milliseconds between two looks: a change that waits for a site goes on so soon after the site is back; looking costs
 * two lists of the apps' rows.
 */
const LOOK_MS = 5_000;

/** Runs the background work until it is closed. */
export class Background {
  readonly #services: AdminServices;
  readonly #unlisten: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(services: AdminServices, apps: AppTable, isolates: IsolatePool) {
    this.#services = services;
    this.#unlisten = apps.onChange(() => {
      for (const { app, version } of isolates.status().apps) {
        if (apps.get(app) === undefined) void isolates.release({ app, version });
      }
    });
    if (services.deployments !== null) void this.#begin();
  }

  close(): void {
    this.#closed = true;
    this.#unlisten();
    clearTimeout(this.#timer);
  }

  async #begin(): Promise<void> {
    await this.#safely(() => this.#services.deployments?.recover());
    await this.#look();
  }

  async #look(): Promise<void> {
    await this.#safely(() => resumeChanges(this.#services));
    if (!this.#closed) this.#timer = setTimeout(() => void this.#look(), LOOK_MS);
  }

  async #safely(work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#closed) this.#services.note("apps_not_tidied", { error: String(error) });
    }
  }
}
