/**
 * Logs on this site's disk: those of its own stateful sessions, and those that it keeps as an owner for others.
 *
 * Life of a log here: `install` → `append`, `checkpoint` … → (its home is lost) `promise` to another, who `fetch`es it →
 * `align`, or `install` anew → … → `forget`.
 *
 * K1  A promise to an epoch, and what its answer says of the log, are one step: on disk before the answer leaves, and
 *     nothing of an earlier epoch is taken after it.
 * K2  `held` names what is on disk. Asks that arrive together share a step of the disk.
 * K3  An ask that comes again changes nothing: a log is begun or aligned once in an epoch.
 * K4  A log that is not here is begun by nothing but `install`, not even by a promise: a promise that could be
 *     forgotten again, with its log, would fence nobody.
 * K5  Bounded: logs, bytes of one, bytes of all. Beyond that the answer is `full`; nothing is dropped for room.
 * K6  What is fetched at once is of one moment: base and pieces fit together.
 * K7  A base takes the place of the one before in one step, with the parts of its state that came last. Parts uploaded
 *     before belong to no base until then, and are dropped when another epoch is promised (kept_parts.ts).
 * K8  A disk that went back is another one from then on, under a number of its own (H7): it may have forgotten what it
 *     promised as it was. Where only the first word of other sites can tell whether it went back, it takes nothing
 *     before that word (arbitration.ts).
 */
import type { Random, SiteId, Storage } from "../../../store/model/ports.ts";
import { keyAfter, prefixRange } from "../../../store/model/range.ts";
import { packKey, unpackKey } from "../../../store/model/key.ts";
import { Reader, Writer } from "../../../store/model/codec.ts";
import type { Row } from "../../../store/model/row.ts";
import type { StatefulName } from "./api.ts";
import type { AskRefusal, Base, KeeperAsk, LogPiece, Reply } from "./asks.ts";
import type { GroupCommit } from "./group_commit.ts";
import type { LogNews } from "./ports.ts";
import {
  BASES,
  decodeBase,
  decodeHead,
  decodePiece,
  encodeBase,
  encodeLogHead,
  encodePiece,
  ENDS,
  HEADS,
  KeptLog,
  logPieceKey,
  type PieceMark,
  pieceMarkOf,
  PIECES,
} from "./kept_log.ts";
import { decodeEnd, KeptPartRows } from "./kept_parts.ts";
import { KEPT_BYTES_MAX, KEPT_MAX, LOG_BYTES_MAX, LOG_PACKET_BYTES_TARGET } from "./limits.ts";
import { keyOf, sessionNameOf } from "./name.ts";
import { type HeardOf, Recollection } from "./recollection.ts";
import { lengthOfParts, NO_STATE } from "./state_parts.ts";

export interface KeepersPorts {
  readonly storage: Storage;
  readonly disk: GroupCommit;
  readonly nowMs: () => number;
  /** Notes that another site has the promise of a log: homes of earlier epochs are fenced. */
  readonly fenced: (name: StatefulName, epoch: number, by: SiteId) => void;
  /** Notes that a log has changed. */
  readonly changed: (log: KeptLog, news: LogNews) => void;
  /** Returns what a piece leaves open (ports.ts). */
  readonly openOf: (bytes: Uint8Array) => number;
  readonly keptMax?: number;
  readonly keptBytesMax?: number;
  readonly batchBytes?: number;
}

type LogAsk = Exclude<KeeperAsk, { kind: "greet" }>;

const DISK_KEY = packKey(["d", "id"]);
/** Rows read at once: a piece may have megabytes. */
const SCAN_ROWS = 64;
const DISK_BYTES = 5;

/** Contents of a disk, blank or used, at the start. */
export interface LoadedDisk {
  /** Number of the disk (H7). */
  readonly id: number;
  readonly isBlank: boolean;
  /** Position of the newest row. */
  readonly position: number;
  /** Positions of the arbiter that the disk has heard of (recollection.ts). */
  readonly heardOf: HeardOf;
  readonly logs: readonly KeptLog[];
}

/** Draws a number for a disk that no other disk has (H7). */
export const drawDisk = (random: Random): number =>
  random.bytes(DISK_BYTES).reduce((number, byte) => number * 256 + byte, 0) + 1;

/**
 * Reads what the disk has. The number of a blank disk is drawn, and is still to be written, by the Keepers made of it.
 */
export async function loadDisk(
  storage: Storage,
  random: Random,
  openOf: (bytes: Uint8Array) => number,
): Promise<LoadedDisk> {
  const logs = new Map<string, KeptLog>();
  let position = 0, id = 0;
  const each = async (space: string, take: (row: Row, value: Uint8Array) => void) => {
    let { start, end } = prefixRange(packKey([space]));
    for (;;) {
      const rows = await storage.scan({ start, end }, { limit: SCAN_ROWS });
      for (const row of rows) {
        position = Math.max(position, row.position);
        if (row.value !== null) take(row, row.value);
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < SCAN_ROWS) return;
      start = keyAfter(last.key);
    }
  };
  await each("d", (_, value) => id = new Reader(value).uint());
  await each(HEADS, ({ key }, value) => {
    const name = sessionNameOf(key);
    logs.set(keyOf("", name), new KeptLog(name, decodeHead(value)));
  });
  await each(BASES, ({ key }, value) => {
    const { base, parts } = decodeBase(value);
    logs.get(keyOf("", sessionNameOf(key)))?.setBase(base, parts);
  });
  await each(ENDS, ({ key }, value) => {
    const log = logs.get(keyOf("", sessionNameOf(key)));
    if (log !== undefined) [log.partsEnd, log.hasEnd] = [Math.max(log.partsEnd, decodeEnd(value)), true];
  });
  await each(PIECES, ({ key }, value) => {
    const piece = decodePiece(Number(unpackKey(key)[4]), value);
    logs.get(keyOf("", sessionNameOf(key)))?.add(pieceMarkOf(piece, openOf(piece.bytes)));
  });
  // Parts of states are not read here; the newest row may be one of them.
  for (let rows: readonly Row[] = [];; position = rows.at(-1)?.position ?? position) {
    rows = await storage.journal(position, Number.MAX_SAFE_INTEGER, SCAN_ROWS);
    if (rows.length === 0) break;
  }
  const isBlank = id === 0;
  if (isBlank) id = drawDisk(random);
  return { id, isBlank, position, heardOf: await Recollection.load(storage), logs: [...logs.values()] };
}

/** Keepers of all logs on this site's disk (see the file's header). */
export class Keepers {
  readonly #ports: KeepersPorts;
  #disk: number;
  readonly recollection: Recollection;
  readonly #logs = new Map<string, KeptLog>();
  readonly #parts: KeptPartRows;
  readonly #keptMax: number;
  readonly #keptBytesMax: number;
  #bytes = 0;

  constructor(ports: KeepersPorts, { id, isBlank, heardOf, logs }: LoadedDisk) {
    this.#ports = ports;
    this.recollection = new Recollection({ ...ports, number: () => this.#disk }, heardOf);
    this.#parts = new KeptPartRows(ports.disk, ports.storage, ports.batchBytes ?? LOG_PACKET_BYTES_TARGET);
    this.#disk = id;
    this.#keptMax = ports.keptMax ?? KEPT_MAX;
    this.#keptBytesMax = ports.keptBytesMax ?? KEPT_BYTES_MAX;
    if (isBlank) this.#putDisk();
    for (const log of logs) {
      this.#logs.set(keyOf("", log.name), log);
      this.#bytes += log.bytes;
      log.writtenMs = ports.nowMs();
    }
  }

  /** Number of the disk (H7). */
  get disk(): number {
    return this.#disk;
  }

  /**
   * Gives the disk, which went back to what it had before, another number (K8); resolves when that is on disk. The logs
   * on it stay: an earlier part of logs that went on elsewhere, or all that is left of them.
   */
  async wentBack(disk: number): Promise<void> {
    this.#disk = disk;
    this.#putDisk();
    await this.#ports.disk.durable();
  }

  #putDisk(): void {
    this.#ports.disk.put(DISK_KEY, new Writer(8).uint(this.#disk).done());
  }

  get size(): number {
    return this.#logs.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  all(): MapIterator<KeptLog> {
    return this.#logs.values();
  }

  log(name: StatefulName): KeptLog | undefined {
    return this.#logs.get(keyOf("", name));
  }

  /** Returns the base of a log, as it is on disk. */
  async base(name: StatefulName): Promise<Base | null> {
    await this.#ports.disk.durable();
    const row = await this.#ports.storage.get(keyOf(BASES, name));
    return row?.value ? decodeBase(row.value).base : null;
  }

  /** Writes what has gathered, and stops: nothing is taken or answered any more. */
  close(): Promise<void> {
    return this.#ports.disk.close();
  }

  /** Does what is asked, and answers when it is on disk. @throws what the disk said. */
  async handle(from: SiteId, ask: KeeperAsk): Promise<Reply> {
    if (ask.kind === "greet") {
      await this.#ports.disk.durable();
      return { kind: "promised", disk: this.disk, aligned: false, log: null };
    }
    const log = this.log(ask.name);
    const before = log?.bytes ?? 0;
    const reply = this.#reply(from, ask, log);
    const after = this.log(ask.name);
    this.#bytes += (after?.bytes ?? 0) - before;
    if (after !== undefined) after.writtenMs = this.#ports.nowMs();
    await this.#ports.disk.durable(); // K2
    return reply ?? await this.#read(from, ask);
  }

  /** Returns the reply to an ask; null where it is to be read from the disk. */
  #reply(from: SiteId, ask: LogAsk, log: KeptLog | undefined): Reply | null {
    if (ask.disk !== 0 && ask.disk !== this.disk) return refused("disk", log);
    if (log !== undefined && isFenced(log, from, ask.epoch)) return refused("superseded", log);
    if (ask.kind === "install") return this.#install(from, ask, log);
    if (log === undefined) return this.#unknown(ask);
    switch (ask.kind) {
      case "promise":
        return this.#promise(from, ask.epoch, log);
      case "forget":
        // A `forget` that was sent before this log was begun again (K3).
        if (log.head.promised === ask.epoch && log.head.turn !== ask.turn) return held(log);
        return this.#forget(log);
    }
    if (log.head.promised !== ask.epoch) return refused("unknown", log);
    switch (ask.kind) {
      case "fetch":
      case "parts":
        return null;
      case "align":
        return this.#align(ask, log);
      case "upload":
        if (!this.#hasRoom(lengthOfParts(ask.parts), false)) return refused("full", log);
        return this.#parts.upload(log, ask) ? held(log) : refused("gap", log);
    }
    if (log.head.aligned !== ask.epoch) return refused("unknown", log);
    switch (ask.kind) {
      case "append":
        return this.#append(ask.pieces, log);
      case "checkpoint":
        return this.#checkpoint(ask, log);
      case "recorded":
        if (ask.config > log.recorded) this.recollection.recorded(log.name, ask);
        log.recorded = Math.max(log.recorded, ask.config);
        return held(log);
    }
  }

  /** Answers an ask about a log that is not here (K4). */
  #unknown(ask: LogAsk): Reply {
    if (ask.kind === "promise") return { kind: "promised", disk: this.disk, aligned: false, log: null };
    return ask.kind === "forget" ? { kind: "held", through: 0 } : refused("unknown", undefined);
  }

  /** Promises an epoch to a site (K1). */
  #promise(from: SiteId, epoch: number, log: KeptLog): Reply {
    if (log.head.promised !== epoch) {
      log.head = { ...log.head, promised: epoch, by: from };
      log.setUpload(null);
      this.#putHead(log);
      this.#ports.fenced(log.name, epoch, from);
    }
    return { kind: "promised", disk: this.disk, aligned: log.head.aligned === epoch, log: log.state };
  }

  #install(from: SiteId, ask: LogAsk & { kind: "install" }, old: KeptLog | undefined): Reply {
    if (old?.head.aligned === ask.epoch) return held(old); // K3
    if (!this.#hasRoom(sizeOf(ask.base, ask.parts), old === undefined)) return refused("full", old);
    const { name, epoch, turn, seed, version, base } = ask;
    const head = { promised: epoch, by: from, aligned: epoch, turn, seed, version };
    const log = old ?? new KeptLog(name, head);
    const parts = base === null ? undefined : this.#parts.named(log, base, NO_STATE, ask.parts);
    if (parts === null) return refused("parts", old);
    this.#drop(log, log.cut(() => true));
    if (base === null) this.#dropBase(log);
    log.head = head;
    this.#logs.set(keyOf("", name), log);
    this.#putHead(log);
    log.setBase(base, parts);
    if (base !== null && parts !== undefined) {
      this.#ports.disk.put(keyOf(BASES, name), encodeBase(base, parts));
    }
    if (old !== undefined) this.#ports.fenced(name, epoch, from);
    this.#ports.changed(log, { kind: "begun", isSame: false });
    return held(log);
  }

  #align({ epoch, keep, turn }: LogAsk & { kind: "align" }, log: KeptLog): Reply {
    if (log.head.aligned === epoch) return held(log); // K3
    // A log that can't be cut there, or does not reach so far, is to be begun anew.
    const isEnd = keep === (log.base?.at ?? 0) || log.pieces.some((mark) => lastEntry(mark) === keep);
    if (!isEnd) return refused("gap", log);
    log.head = { ...log.head, aligned: epoch, turn };
    this.#putHead(log);
    const cut = log.cut(({ first }) => first > keep);
    this.#drop(log, cut);
    this.#ports.changed(log, { kind: "begun", isSame: cut.length === 0 });
    return held(log);
  }

  #append(pieces: readonly LogPiece[], log: KeptLog): Reply {
    const before = log.bytes;
    const appended: LogPiece[] = [];
    for (const piece of pieces) {
      if (piece.first + piece.count - 1 <= log.last) continue; // K3
      if (piece.first !== log.last + 1) return refused("gap", log); // kept_log.ts L1
      const grown = log.bytes - before + piece.bytes.length;
      if (log.pieceBytes + piece.bytes.length > LOG_BYTES_MAX || !this.#hasRoom(grown, false)) {
        return refused("full", log);
      }
      log.add(pieceMarkOf(piece, this.#ports.openOf(piece.bytes)));
      appended.push(piece);
      this.#ports.disk.put(logPieceKey(log.name, piece.first), encodePiece(piece));
    }
    this.#ports.changed(log, { kind: "appended", pieces: appended });
    return held(log);
  }

  /** Puts a base in place of the pieces up to it (L2, K7). */
  #checkpoint({ base, kept, parts }: LogAsk & { kind: "checkpoint" }, log: KeptLog): Reply {
    if (base.at <= (log.base?.at ?? 0)) return held(log); // K3
    // Beyond the last entry: all that is here is an earlier part of what the base stands for (H4).
    const isEnd = base.at > log.last || log.pieces.some((mark) => lastEntry(mark) === base.at);
    if (!isEnd) return refused("gap", log);
    if (!this.#hasRoom(sizeOf(base, parts), false)) return refused("full", log);
    const named = this.#parts.named(log, base, kept, parts);
    if (named === null) return refused("parts", log);
    this.#ports.disk.put(keyOf(BASES, log.name), encodeBase(base, named));
    log.setBase(base, named);
    this.#drop(log, log.cut((mark) => lastEntry(mark) <= base.at));
    this.#ports.changed(log, { kind: "based", at: base.at });
    return held(log);
  }

  #forget(log: KeptLog): Reply {
    this.#clear(log);
    this.#ports.disk.drop(keyOf(HEADS, log.name));
    this.recollection.forgotten(log.name);
    this.#logs.delete(keyOf("", log.name));
    this.#ports.changed(log, { kind: "gone" });
    return { kind: "held", through: 0 };
  }

  /** Drops the log of a session that its home here has ended, and in the same step notes that it ended. */
  async ended(name: StatefulName, epoch: number, nowMs: number): Promise<void> {
    const log = this.log(name);
    if (log?.head.promised === epoch) {
      this.recollection.ended(name, epoch, nowMs);
      this.#bytes -= log.bytes;
      this.#forget(log);
    }
    await this.#ports.disk.durable();
  }

  /** Drops a log of which the arbiter says that this site is no owner any more (AUDIT_MS). */
  async forgetFormer(name: StatefulName, epoch: number): Promise<void> {
    const log = this.log(name);
    if (log === undefined || log.head.promised >= epoch) return;
    this.#bytes -= log.bytes;
    this.#forget(log);
    await this.#ports.disk.durable();
  }

  /** Reads what is asked for as of one moment (K6): a checkpoint that comes meanwhile drops what it stands for. */
  async #read(from: SiteId, ask: LogAsk): Promise<Reply> {
    for (;;) {
      const log = this.log(ask.name);
      if (log === undefined) return refused("unknown", log);
      const { cuts } = log, marks = [...log.pieces];
      await this.#ports.disk.durable();
      const found = ask.kind === "fetch"
        ? await this.#copy(log, marks, ask)
        : await this.#someParts(log, ask);
      if (this.log(ask.name) !== log || log.cuts !== cuts) continue;
      if (found === null) return refused("unknown", log);
      return isFenced(log, from, ask.epoch) ? refused("superseded", log) : found;
    }
  }

  async #someParts(log: KeptLog, ask: LogAsk): Promise<Reply | null> {
    if (ask.kind !== "parts") return null;
    if (log.base?.at !== ask.at || ask.first >= log.parts.marks.length) return refused("gap", log);
    const parts = await this.#parts.read(log, ask.first);
    return parts && { kind: "parts", parts };
  }

  /** Reads part of a log. @param marks of the pieces that are on disk. */
  async #copy(
    log: KeptLog,
    marks: readonly PieceMark[],
    { name, whole, after }: LogAsk & { kind: "fetch" },
  ): Promise<Reply | null> {
    const row = log.base !== null && whole ? await this.#ports.storage.get(keyOf(BASES, name)) : undefined;
    const base = row?.value ? decodeBase(row.value).base : null;
    const parts = base === null ? [] : await this.#parts.read(log, 0);
    if (parts === null) return null;
    const start = Math.max(after, whole ? log.base?.at ?? 0 : 0);
    const left = marks.filter(({ first }) => first > start);
    const wanted = left.slice(0, fitting(left, sizeOf(base, parts)));
    const pieces = await this.#pieces(name, wanted);
    if (pieces === null) return null;
    const more = wanted.length < left.length;
    const { seed, version } = log.head;
    return { kind: "copy", seed, version, base, parts, pieces, more };
  }

  /** Reads pieces, which follow each other on the disk, too; null where they are not there any more. */
  async #pieces(name: StatefulName, marks: readonly PieceMark[]): Promise<LogPiece[] | null> {
    const [first] = marks, last = marks.at(-1);
    if (first === undefined || last === undefined) return [];
    const range = { start: logPieceKey(name, first.first), end: keyAfter(logPieceKey(name, last.first)) };
    const rows = await this.#ports.storage.scan(range, { limit: marks.length });
    const pieces: LogPiece[] = [];
    for (const [i, { first }] of marks.entries()) {
      const row = rows[i];
      if (row?.key !== logPieceKey(name, first) || row.value === null) return null;
      pieces.push(decodePiece(first, row.value));
    }
    return pieces;
  }

  #putHead(log: KeptLog): void {
    this.#ports.disk.put(keyOf(HEADS, log.name), encodeLogHead(log.head));
  }

  /** Drops base and pieces. */
  #clear(log: KeptLog): void {
    this.#drop(log, log.cut(() => true));
    this.#dropBase(log);
    log.setBase(null);
  }

  #dropBase(log: KeptLog): void {
    if (log.base !== null) this.#ports.disk.drop(keyOf(BASES, log.name));
    this.#parts.dropAll(log);
  }

  #drop(log: KeptLog, marks: readonly PieceMark[]): void {
    for (const { first } of marks) this.#ports.disk.drop(logPieceKey(log.name, first));
  }

  /** Reports whether there is room for more bytes, and for another log (K5). */
  #hasRoom(bytes: number, isNew: boolean): boolean {
    return this.#bytes + bytes <= this.#keptBytesMax && (!isNew || this.#logs.size < this.#keptMax);
  }
}

const sizeOf = (base: Base | null, parts: readonly Uint8Array[]): number =>
  base === null ? 0 : base.bytes.length + base.answers.length + lengthOfParts(parts);

/** Returns how many of these pieces go in one packet behind so many bytes; at least one. */
function fitting(marks: readonly PieceMark[], bytes: number): number {
  let count = 0;
  for (const { length } of marks) {
    if (count > 0 && bytes + length > LOG_PACKET_BYTES_TARGET) break;
    bytes += length;
    count++;
  }
  return count;
}

const lastEntry = ({ first, count }: PieceMark): number => first + count - 1;

/** Reports whether another home, or none any more, may write the log. */
const isFenced = ({ head }: KeptLog, from: SiteId, epoch: number): boolean =>
  epoch < head.promised || (epoch === head.promised && from !== head.by);

const held = (log: KeptLog): Reply => ({ kind: "held", through: log.last });

const refused = (why: AskRefusal, log: KeptLog | undefined): Reply => ({
  kind: "refused",
  why,
  epoch: log?.head.promised ?? 0,
  last: log?.last ?? 0,
});
