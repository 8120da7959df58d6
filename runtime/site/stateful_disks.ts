/**
 * The disks of a site's stateful sessions, and that of its queues, beside the store's: they hold logs and messages, and
 * nothing of the tree's rows.
 *
 * SD1  A disk of logs that went back to an older state vouches for nothing that it had promised
 *      (docs/protocol/homes.md, H7): it is set aside, and the site is another owner from then on. With f ≥ 1 other
 *      owners have the logs; with f = 0 nobody has, and their sessions are out of reach until an operator decides what
 *      to do.
 */
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Clock, Storage } from "../../store/model/ports.ts";
import { Scrub } from "../../store/rows/scrub.ts";
import { MemoryStorage } from "../storage/memory.ts";
import { openSqlite } from "../storage/sqlite.ts";
import { FilesSpoiled } from "../storage/disk_report.ts";
import type { SiteConfig } from "./config.ts";
import { current, openOrSetAside } from "./data_folder.ts";
import type { DiskDamage } from "./disk_damage.ts";
import { notOpened, setAside, witnessOf } from "./lost_folder.ts";

/** Services of the site that these disks use. */
export interface StatefulDisksParts {
  readonly config: Pick<SiteConfig, "parent" | "engine" | "data">;
  readonly clock: Pick<Clock, "after">;
  readonly damage: DiskDamage;
  readonly fatal: (error: Error) => void;
}

type Name = "homes" | "arbiter" | "ended" | "outcomes" | "queues";

interface Opened {
  readonly storage: Storage;
  readonly scrub: Scrub | null;
}

/** The disks of a site's stateful sessions. */
export class StatefulDisks {
  readonly #parts: StatefulDisksParts;
  readonly #opened = new Map<Name, Opened>();

  private constructor(parts: StatefulDisksParts) {
    this.#parts = parts;
  }

  /** Opens all disks, or none. @throws StoreUnavailable `disk_failed` */
  static async open(
    parts: StatefulDisksParts,
    names: readonly Name[] = parts.config.parent === null
      ? ["homes", "arbiter", "ended", "outcomes"]
      : ["homes", "ended"],
  ): Promise<StatefulDisks> {
    const disks = new StatefulDisks(parts);
    try {
      for (const name of names) await disks.#open(name);
      return disks;
    } catch (error) {
      await disks.close();
      throw error;
    }
  }

  get homes(): Storage {
    return this.#of("homes");
  }

  /** Storage of the messages of queues. */
  get queues(): Storage {
    return this.#of("queues");
  }

  /** Storage of the arbiter, at the root; null elsewhere. */
  get arbiter(): Storage | null {
    return this.#opened.get("arbiter")?.storage ?? null;
  }

  get ended(): Storage {
    return this.#of("ended");
  }

  /** Storage of the outcomes of requests to origins, at the root; null elsewhere. */
  get outcomes(): Storage | null {
    return this.#opened.get("outcomes")?.storage ?? null;
  }

  #of(name: Name): Storage {
    const opened = this.#opened.get(name);
    if (opened === undefined) throw new Error(`the disk of ${name} is not open`);
    return opened.storage;
  }

  /**
   * Reads what is needed at the start from a disk; where rows of it are damaged it is set aside, as where it went back.
   *
   * @throws StoreUnavailable `disk_failed` for damaged rows that no other site can make up for.
   */
  async loaded<T>(load: () => Promise<T>): Promise<T> {
    try {
      return await load();
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || error.code !== "row_damaged") throw error;
      const name = String(error.detail["folder"]) as Name, opened = this.#opened.get(name);
      if (opened === undefined) throw error;
      await closed(opened);
      this.#opened.delete(name);
      const folder = this.#folder(name);
      if (isLast(name)) throw notOpened(new FilesSpoiled(folder, error.message));
      this.#parts.damage.lost(folder, error.message, await setAside(folder, error.message));
      await this.#open(name);
      return await this.loaded(load);
    }
  }

  async close(): Promise<void> {
    for (const [name, opened] of [...this.#opened]) {
      this.#opened.delete(name);
      await closed(opened);
    }
  }

  #folder(name: Name): string {
    return `${this.#parts.config.data}/${name}`;
  }

  async #open(name: Name): Promise<void> {
    const { config, clock, damage, fatal } = this.#parts;
    if (config.engine === "memory") {
      this.#opened.set(name, { storage: new MemoryStorage(), scrub: null });
      return;
    }
    const folder = this.#folder(name);
    const inner = await openOrSetAside(folder, {
      open: () => current(folder, openSqlite(folder, { damaged: damage.found(name) }, witnessOf(folder))),
      isLast: isLast(name),
      report: damage,
    });
    const scrub = new Scrub({
      storage: damage.noted(name, inner),
      clock,
      failed: (error) => fatal(error instanceof Error ? error : new Error(String(error))),
    });
    this.#opened.set(name, { storage: damage.guarded(name, inner), scrub });
  }
}

/**
 * Reports whether no other site can make up for a disk: the arbiter alone knows which site serves which session, and
 * the outcomes alone tell what was done outside once.
 */
const isLast = (name: Name): boolean => name === "arbiter" || name === "outcomes";

async function closed({ storage, scrub }: Opened): Promise<void> {
  scrub?.close();
  await storage.close();
}
