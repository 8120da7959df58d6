/**
 * The production code of keepers and of the arbiter as a function: what is on a disk, an ask → its reply, what is on the
 * disk then. So each is explored as the state machine that it is.
 */
import { Arbiter } from "../../../functions/homes/arbiter.ts";
import type { ArbiterAsk, KeeperAsk, LogPiece, LogState, Reply } from "../../../functions/homes/asks.ts";
import { GroupCommit } from "../../../functions/homes/group_commit.ts";
import { Keepers, loadDisk } from "../../../functions/homes/keepers.ts";
import type { StatefulName } from "../../../functions/homes/mod.ts";
import { MemoryRows, MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { Key } from "../../../store/key.ts";
import type { Clock, SiteId } from "../../../store/ports.ts";
import { WHOLE } from "../../../store/range.ts";

/** Rows by key, as text: equal disks are equal texts. */
export type Disk = string;
export const NAME: StatefulName = { app: "a", class: "C", id: "x" };

const clock: Clock = {
  nowMs: () => 0,
  steadyMs: () => 0,
  after: () => () => {},
  turn: () => Promise.resolve(),
};
const fatal = (error: Error): never => {
  throw error;
};

function storageOf(disk: Disk): MemoryStorage {
  const rows = new MemoryRows();
  (JSON.parse(disk) as [string, number[]][]).forEach(([key, value], i) =>
    rows.put({
      key: key as Key,
      value: Uint8Array.from(value),
      position: i + 1,
      clock: 0,
      replica: 0,
      known: 0,
      expiresAtMs: 0,
    })
  );
  return new MemoryStorage(rows);
}

async function diskOf(storage: MemoryStorage): Promise<Disk> {
  const rows = await storage.scan(WHOLE);
  return JSON.stringify(rows.map(({ key, value }) => [key, [...value ?? []]]));
}

export interface Done {
  readonly reply: Reply;
  readonly disk: Disk;
}

const known = new Map<string, Promise<Done>>();
const once = (key: string, make: () => Promise<Done>): Promise<Done> => {
  const made = known.get(key) ?? make();
  known.set(key, made);
  return made;
};
const keyOf = (disk: Disk, from: SiteId, asks: unknown): string =>
  `${disk} ${from} ${JSON.stringify(asks, (_, value) => value instanceof Uint8Array ? [...value] : value)}`;

async function keepersOf(disk: Disk, number: number) {
  const storage = storageOf(disk);
  const loaded = await loadDisk(storage, { bytes: (length) => new Uint8Array(length).fill(number) }, () => 0);
  const group = new GroupCommit({ storage, clock, fatal }, loaded.position);
  const keepers = new Keepers({
    storage,
    disk: group,
    nowMs: () => 0,
    fenced: () => {},
    openOf: () => 0,
    changed: () => {},
  }, loaded);
  return { storage, keepers };
}

/** Asks of one site that arrive together. The reply is that of the last one. */
export function keeper(disk: Disk, number: number, from: SiteId, asks: readonly KeeperAsk[]): Promise<Done> {
  return once(`k ${number} ${keyOf(disk, from, asks)}`, async () => {
    const { storage, keepers } = await keepersOf(disk, number);
    const replies = await Promise.all(asks.map((ask) => keepers.handle(from, ask)));
    const reply = replies.find((one) => one.kind === "refused") ?? replies.at(-1);
    return { reply: reply ?? { kind: "nobody" }, disk: await diskOf(storage) };
  });
}

export function arbiter(disk: Disk, from: SiteId, ask: ArbiterAsk): Promise<Done> {
  return once(`a ${keyOf(disk, from, ask)}`, async () => {
    const storage = storageOf(disk);
    const made = await Arbiter.open({ storage, clock, fatal, gone: () => "gone", perAppMax: 1 });
    const reply = await made.handle(from, ask);
    return { reply, disk: await diskOf(storage) };
  });
}

/** What a disk has of the log: as it would say it, and the entries themselves. */
export async function logOf(
  disk: Disk,
  number: number,
): Promise<{ readonly id: number; readonly state: LogState | null; readonly pieces: readonly LogPiece[] }> {
  const { keepers } = await keepersOf(disk, number);
  const log = keepers.log(NAME);
  if (log === undefined) return { id: keepers.disk, state: null, pieces: [] };
  const ask = {
    kind: "fetch",
    name: NAME,
    disk: 0,
    epoch: log.head.promised,
    after: 0,
    whole: true,
  } as const;
  const reply = await keepers.handle(log.head.by, ask);
  return { id: keepers.disk, state: log.state, pieces: reply.kind === "copy" ? reply.pieces : [] };
}

export const BLANK: Disk = "[]";
