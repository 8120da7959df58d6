/**
 * The production code of keepers and of the arbiter as a function: what is on a disk, an ask → its reply, what is on the
 * disk then. So each is explored as the state machine that it is.
 */
import { Arbiter, type ArbiterAnswer } from "../../../functions/sessions/home/arbiter.ts";
import type {
  ArbiterAsk,
  HomeWord,
  KeeperAsk,
  LogPiece,
  LogState,
  Reply,
  RowState,
} from "../../../functions/sessions/log/asks.ts";
import { GroupCommit } from "../../../functions/sessions/log/group_commit.ts";
import { Keepers, loadDisk } from "../../../functions/sessions/log/keepers.ts";
import type { StatefulName } from "../../../functions/sessions/home/mod.ts";
import type { Word } from "../../../functions/sessions/home/rebuild.ts";
import { MemoryRows, MemoryStorage } from "../../../runtime/storage/memory.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import type { Clock, SiteId } from "../../../store/model/ports.ts";
import { WHOLE } from "../../../store/model/range.ts";

/** Rows by key, as text, and the number of that text: equal disks are equal numbers. */
export type Disk = number;
const texts: string[] = [];
const numbers = new Map<string, Disk>();

function diskWith(text: string): Disk {
  const known = numbers.get(text);
  if (known !== undefined) return known;
  numbers.set(text, texts.length);
  texts.push(text);
  return texts.length - 1;
}

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

/** Rows before it are doubted by an arbiter: of where rows stand on a disk nothing else matters. */
const BEHIND = packKey(["f", "behind"]);
type StoredRow = readonly [key: string, value: readonly number[], isAfter: 0 | 1];

function storageOf(disk: Disk): MemoryStorage {
  const rows = new MemoryRows();
  const stored = JSON.parse(texts[disk] ?? "[]") as StoredRow[];
  const place = ([key, , isAfter]: StoredRow) => key === BEHIND ? 1 : 2 * isAfter;
  stored.toSorted((a, b) => place(a) - place(b)).forEach(([key, value], i) =>
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
  const behind = rows.find(({ key }) => key === BEHIND)?.position ?? Infinity;
  return diskWith(
    JSON.stringify(
      rows.map(({ key, value, position }) => [key, [...value ?? []], position > behind ? 1 : 0]),
    ),
  );
}

export interface Done {
  readonly reply: Reply;
  readonly disk: Disk;
}

/** What was asked of a disk once is known. */
function remembered<T>(): (key: string, make: () => Promise<T>) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (key, make) => {
    const made = known.get(key) ?? make();
    known.set(key, made);
    return made;
  };
}

const once = remembered<Done>();
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

/** Asks of one site that arrive together, with a position of the arbiter. The reply is that of the last one. */
export function keeper(
  disk: Disk,
  number: number,
  from: SiteId,
  asks: readonly KeeperAsk[],
  position: number,
): Promise<Done> {
  return once(`k ${number} ${position} ${keyOf(disk, from, asks)}`, async () => {
    const { storage, keepers } = await keepersOf(disk, number);
    keepers.recollection.hear(position);
    const replies = await Promise.all(asks.map((ask) => keepers.handle(from, ask)));
    const reply = replies.find((one) => one.kind === "refused") ?? replies.at(-1);
    return { reply: reply ?? { kind: "nobody" }, disk: await diskOf(storage) };
  });
}

const onceDisk = remembered<Disk>();

/** A disk that went back, as it is when that is known. */
export const wentBack = (disk: Disk, number: number): Promise<Disk> =>
  onceDisk(`back ${disk} ${number}`, async () => {
    const { storage, keepers } = await keepersOf(disk, 0);
    await keepers.wentBack(number);
    return await diskOf(storage);
  });

const onceWitness = remembered<number>(), onceWord = remembered<Word>(), onceLog = remembered<Log>();

/** The highest position of the arbiter that a disk has. */
export const witnessOf = (disk: Disk, number: number): Promise<number> =>
  onceWitness(`${disk}`, async () => (await keepersOf(disk, number)).keepers.recollection.position);

/** What a site says of the name to an arbiter that has lost what it knew. */
export const wordOf = (
  disk: Disk,
  number: number,
  here: { readonly home: HomeWord | null; readonly granted: number },
): Promise<Word> =>
  onceWord(`${disk} ${number} ${JSON.stringify(here)}`, async () => {
    const { keepers } = await keepersOf(disk, number);
    const word = await keepers.recollection.recall(NAME, keepers.log(NAME), here);
    if (word.kind !== "recalled") throw new Error("a site says nothing");
    return word;
  });

/** Who has said how far it has heard of the arbiter since that started; null: it has not started anew. */
export type HeardSites = {
  readonly sites: readonly SiteId[];
  readonly disks: Readonly<Record<SiteId, number>>;
  /** That of the arbiter, which does not count. */
  readonly ownSite?: SiteId;
  /** It is known that the disk of that site went back: it is another one. */
  readonly isOther?: boolean;
};

export interface Asked {
  readonly answer: ArbiterAnswer;
  readonly disk: Disk;
  /** The arbiter's position then. */
  readonly position: number;
}

const onceAsked = remembered<Asked>();

/** Numbers that are drawn for a start are above all that were granted before: nothing here opens as often. */
export const LEAP = 100;

async function arbiterOf(disk: Disk, heard: HeardSites | null, leap: number) {
  const storage = storageOf(disk);
  const unheard = heard === null ? [] : heard.sites.filter((site) => heard.disks[site] === undefined);
  const arbiter = await Arbiter.open({
    ...{ site: "root", storage, clock, fatal, gone: () => "gone", perAppMax: 1, leap, jump: 1_000 },
    heard: {
      site: heard?.ownSite ?? "",
      isSure: unheard.length === 0,
      unheard,
      diskOf: (site) => heard?.disks[site],
    },
    siteWitness: 0,
    witness: () => Promise.resolve(),
    behind: () => {},
  });
  return { storage, arbiter };
}

export function arbiter(
  disk: Disk,
  from: SiteId,
  ask: ArbiterAsk,
  heard: HeardSites | null = null,
  leap = LEAP,
): Promise<Asked> {
  return onceAsked(`a ${leap} ${JSON.stringify(heard)} ${keyOf(disk, from, ask)}`, async () => {
    const made = await arbiterOf(disk, heard, leap);
    const answer = await made.arbiter.handle(from, ask);
    return { answer, disk: await diskOf(made.storage), position: made.arbiter.position };
  });
}

/** The arbiter's disk after something else than an asking. */
export function arbiterAfter(
  disk: Disk,
  what: string,
  change: (arbiter: Arbiter) => Promise<unknown>,
): Promise<Disk> {
  return onceDisk(`b ${what} ${disk}`, async () => {
    const { storage, arbiter } = await arbiterOf(disk, null, LEAP);
    await change(arbiter);
    return await diskOf(storage);
  });
}

/** Its own record of the name, where it is doubted. */
export const recordOf = (disk: Disk): Promise<RowState | null | "settled"> =>
  onceRecord(`${disk}`, async () => await (await arbiterOf(disk, null, LEAP)).arbiter.doubted(NAME));
const onceRecord = remembered<RowState | null | "settled">();

export interface Log {
  readonly id: number;
  readonly state: LogState | null;
  readonly pieces: readonly LogPiece[];
}

/** What a disk has of the log: as it would say it, and the entries themselves. */
export const logOf = (disk: Disk, number: number): Promise<Log> =>
  onceLog(`${disk} ${number}`, async () => {
    const { keepers } = await keepersOf(disk, number);
    const log = keepers.log(NAME);
    if (log === undefined) return { id: keepers.disk, state: null, pieces: [] };
    const of = { name: NAME, disk: 0, epoch: log.head.promised };
    const reply = await keepers.handle(log.head.by, { kind: "fetch", ...of, after: 0, whole: true });
    return { id: keepers.disk, state: log.state, pieces: reply.kind === "copy" ? reply.pieces : [] };
  });

export const BLANK: Disk = diskWith("[]");
