/** Every storage there is, as subjects of the contract. */
import { setImmediate } from "node:timers";
import type { Clock, Storage } from "../../store/model/ports.ts";
import { openDenoKv } from "../../runtime/storage/denokv.ts";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { openSqlite } from "../../runtime/storage/sqlite.ts";
import { SimDisk } from "../sim/disk.ts";
import { Draws } from "../sim/random.ts";
import type { StorageSubject } from "./storage_contract.ts";

/** A clock whose time passes as fast as it can, events in order of time. */
function eagerClock(): Clock {
  let nowMs = 1_800_000_000_000;
  const waiting: { atMs: number; callback: (() => void) | null }[] = [];
  const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));
  const next = () => {
    waiting.sort((a, b) => a.atMs - b.atMs);
    const entry = waiting.shift();
    if (entry === undefined) return;
    nowMs = entry.atMs;
    entry.callback?.();
  };
  return {
    nowMs: () => nowMs,
    steadyMs: () => nowMs,
    after: (ms, callback) => {
      const entry: { atMs: number; callback: (() => void) | null } = { atMs: nowMs + ms, callback };
      waiting.push(entry);
      setImmediate(next);
      return () => {
        entry.callback = null;
      };
    },
    turn,
  };
}

const memory: StorageSubject = {
  name: "memory",
  valueBytesMax: 1 << 20,
  open: () => Promise.resolve({ storage: new MemoryStorage(), discard: () => Promise.resolve() }),
};

let disks = 0;
const sim: StorageSubject = {
  name: "simulated disk",
  valueBytesMax: 1 << 20,
  open: () => {
    const draws = new Draws(`contract ${disks++}`);
    const storage = new SimDisk({
      clock: eagerClock(),
      random: () => draws.unit(),
      commitDelayMs: [0.1, 5],
      earlyChance: 0.5,
    });
    const reopen = (old: Storage) => {
      if (!(old instanceof SimDisk)) throw new Error("not a simulated disk");
      return Promise.resolve(old.crash());
    };
    return Promise.resolve({ storage, reopen, discard: () => Promise.resolve() });
  },
};

/** A storage in a folder of its own, which goes when the test ends. */
function onDisk(name: string, open: (folder: string) => Promise<Storage>): StorageSubject {
  return {
    name,
    valueBytesMax: 1 << 20,
    open: async () => {
      const folder = await Deno.makeTempDir({ prefix: "sojourn-storage-" });
      let storage = await open(`${folder}/rows`);
      return {
        storage,
        reopen: async (old) => {
          await old.close();
          return storage = await open(`${folder}/rows`);
        },
        discard: async () => {
          await storage.close();
          await Deno.remove(folder, { recursive: true });
        },
      };
    },
  };
}

/** Opens an engine by name in a folder of its own. */
export const openEngine = (engine: string, folder: string): Promise<Storage> =>
  engine === "sqlite" ? Promise.resolve(openSqlite(folder)) : openDenoKv({ folder });

const sqlite = onDisk("sqlite", (folder) => openEngine("sqlite", folder));
const denokv = onDisk("denokv", (folder) => openEngine("denokv", folder));

/** All of them. */
export const storageSubjects: readonly StorageSubject[] = [memory, sim, sqlite, denokv];
