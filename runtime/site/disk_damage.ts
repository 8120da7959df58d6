/**
 * Damage that a site's disk has done by itself (store/model/ports.ts S4), outside the rows of the store, which mend
 * themselves (store/core/damage.ts): damage found on opening, rows of stateful sessions' folders, which are refused,
 * and whole folders that were set aside (lost_folder.ts).
 */
import { shownKey } from "../../store/core/damage.ts";
import { StoreUnavailable } from "../../store/api/api.ts";
import { DamagedRows, type Storage } from "../../store/model/ports.ts";
import type { DiskReport } from "../storage/disk_report.ts";
import { type LostFolder, LostFolders } from "./lost_folder.ts";
import type { SiteLog } from "./log.ts";

/** Rows of one folder that were found damaged. */
export interface DamagedFolder {
  readonly folder: string;
  readonly rows: number;
}

/** Rows that an error names. */
const NAMED_MAX = 3;

/** Record of the damage of a site's disk. */
export class DiskDamage {
  readonly #log: Pick<SiteLog, "line">;
  /** Damaged rows that reads have met, by folder. */
  readonly #rows = new Map<string, Set<string>>();
  readonly #lost: LostFolders;

  /** @param data the site's data folder. */
  constructor(log: Pick<SiteLog, "line">, data: string) {
    this.#log = log;
    this.#lost = new LostFolders(data);
  }

  /** Folders that were set aside, at this start or before, and lie there. */
  get lostFolders(): readonly LostFolder[] {
    return this.#lost.all();
  }

  /** Logs that a folder was set aside; `aside` is where it lies. */
  readonly lost = (folder: string, why: string, aside: string): void =>
    this.#log.line("error", "disk_lost", {
      folder,
      why,
      says: `the site goes on as after the loss of that disk; what was there lies in ${aside}`,
    });

  /** Logs that the file with the disk's name was written anew. */
  readonly renamed = (file: string): void =>
    this.#log.line("warn", "disk_name_restored", {
      file,
      says: "it was missing, or held another name than the rows beside it say",
    });

  /** Folders other than the store's in which rows are damaged. */
  get folders(): DamagedFolder[] {
    return [...this.#rows].map(([folder, rows]) => ({ folder, rows: rows.size }));
  }

  /** Returns the function that logs damage found by opening a folder. */
  found(folder: string): NonNullable<DiskReport["damaged"]> {
    return ({ damaged, isReindexed }) =>
      this.#log.line("warn", "disk_damaged", {
        folder,
        rows: damaged,
        indexes: isReindexed ? "built anew" : "whole",
      });
  }

  /** Returns the same storage; a read that meets damaged rows fails with their names. */
  guarded(folder: string, storage: Storage): Storage {
    const read = async <T>(look: Promise<T>): Promise<T> => {
      try {
        return await look;
      } catch (error) {
        throw error instanceof DamagedRows ? this.#refused(folder, error) : error;
      }
    };
    return {
      load: () => storage.load(),
      get: (key) => read(storage.get(key)),
      getMany: (keys, bytesMax) => read(storage.getMany(keys, bytesMax)),
      scan: (range, options) => read(storage.scan(range, options)),
      journal: (after, upTo, limit, bytesMax) => read(storage.journal(after, upTo, limit, bytesMax)),
      bytes: () => storage.bytes(),
      close: () => storage.close(),
      commit: (commit) => storage.commit(commit),
    };
  }

  /** Returns a storage for a scrub, which goes on behind damaged rows; they are recorded. */
  noted(folder: string, storage: Storage): Pick<Storage, "scan"> {
    return {
      scan: async (range, options) => {
        try {
          return await storage.scan(range, options);
        } catch (error) {
          if (error instanceof DamagedRows) this.#refused(folder, error);
          throw error;
        }
      },
    };
  }

  #refused(folder: string, { keys }: DamagedRows): StoreUnavailable {
    const known = this.#rows.get(folder) ?? new Set();
    const names = keys.map(shownKey), news = names.filter((name) => !known.has(name));
    this.#rows.set(folder, known.union(new Set(names)));
    for (const row of news) this.#log.line("error", "row_damaged", { folder, row, became: "refused" });
    const named = names.slice(0, NAMED_MAX).join(", ") + (names.length > NAMED_MAX ? ", …" : "");
    return new StoreUnavailable("row_damaged", `rows in the folder ${folder} are damaged on disk: ${named}`, {
      folder,
      rows: names.slice(0, NAMED_MAX),
    });
  }
}
