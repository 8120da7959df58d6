/**
 * Logs of stateful sessions that have ended, on the disk of the site where each ended: for operators to read (`sojourn
 * sessions log`), and for nothing else. A session that begins anew has nothing of them.
 *
 * Life of a log: kept when its session ends → read → dropped: its time is up, others need its room, a session of its
 * name ends again, its app or the log itself is deleted.
 *
 * EL1  The end of a session never waits for its log to be kept: a log that can't be is noted, and gone.
 * EL2  All of them together are bounded, by number and bytes: the oldest go first.
 */
import type { StatefulName } from "../home/mod.ts";
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { type Key, packKey, unpackKey } from "../../../store/model/key.ts";
import type { Storage } from "../../../store/model/ports.ts";
import { prefixRange } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";
import type { ShownCopy } from "./log_view.ts";

/** The site's part that the kept logs need. */
export interface EndedLogsServices {
  readonly storage: Storage;
  /** Reads the wall clock: a log that is kept outlives the process. */
  readonly nowMs: () => number;
  /** Milliseconds for which any log is kept, at most; a class may say less. */
  readonly keptMsMax: number;
  /** Reports whether an app is there. */
  readonly isApp: (app: string) => boolean;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
  readonly bytesMax?: number;
}

/** A log that was kept. */
export interface EndedLog extends ShownCopy {
  readonly endedMs: number;
}

interface Head {
  readonly endedMs: number;
  readonly untilMs: number;
  readonly bytes: number;
}

/**
 * Bytes of one log: 64 KiB are the default at which a checkpoint is due, and 4 MiB the most that a log has before its
 * session stands still.
 */
const LOG_BYTES_MAX = 8 << 20;
const BYTES_MAX = 256 << 20;
/** Number of logs: each costs some 300 bytes of memory. */
const LOGS_MAX = 20_000;
const FORMAT = 1;

const HEADS = "i", LOGS = "l";

/** See the file's header. */
export class EndedLogs {
  readonly #services: EndedLogsServices;
  /** Heads of the logs, by key, in the order in which their sessions ended. */
  readonly #heads = new Map<string, Head & { readonly app: string }>();
  #bytes = 0;
  #position = 0;
  #tail: Promise<unknown> = Promise.resolve();

  private constructor(services: EndedLogsServices) {
    this.#services = services;
  }

  /** Opens the logs that an earlier process has kept. */
  static async open(services: EndedLogsServices): Promise<EndedLogs> {
    const ended = new EndedLogs(services);
    const found: [string, Head][] = [];
    for (const { key, value, position } of await services.storage.scan(prefixRange(packKey([HEADS])))) {
      ended.#position = Math.max(ended.#position, position + 1); // the row of its log has the next position
      if (value !== null) found.push([textOf(key), decodeHead(value)]);
    }
    for (const [key, head] of found.sort(([, a], [, b]) => a.endedMs - b.endedMs)) ended.#add(key, head);
    return ended;
  }

  /** Resolves when all that was asked for so far is on the disk. */
  async settled(): Promise<void> {
    await this.#tail;
  }

  get size(): number {
    return this.#heads.size;
  }

  /**
   * Keeps the log of a session that is about to end.
   *
   * @param wantedMs how long its class wants its log kept; undefined: as long as any is.
   */
  async keep(
    name: StatefulName,
    wantedMs: number | undefined,
    read: () => Promise<ShownCopy | null>,
  ): Promise<void> {
    const { keptMsMax, nowMs, note } = this.#services;
    const keptMs = Math.min(keptMsMax, wantedMs ?? keptMsMax);
    try {
      const copy = keptMs > 0 ? await read() : null;
      if (copy === null) return;
      const endedMs = nowMs();
      const log = encodeLog({ ...copy, endedMs });
      // EL1
      if (log.length > LOG_BYTES_MAX) {
        return note("ended_log_unkept", { ...name, why: `it has ${log.length} bytes` });
      }
      const head = { endedMs, untilMs: endedMs + keptMs, bytes: log.length };
      const drop = this.#makeRoom(log.length);
      this.#add(textOf(keyOf(HEADS, name)), head);
      await this.#commit(
        [this.#row(keyOf(HEADS, name), encodeHead(head)), this.#row(keyOf(LOGS, name), log)],
        drop,
      );
    } catch (error) {
      note("ended_log_unkept", { ...name, why: String(error) }); // EL1
    }
  }

  /** Returns the log of the last session of that name that ended here; null: there is none any more. */
  async get(name: StatefulName): Promise<EndedLog | null> {
    const head = this.#heads.get(textOf(keyOf(HEADS, name)));
    if (head === undefined || head.untilMs <= this.#services.nowMs()) return null;
    await this.#tail;
    const value = (await this.#services.storage.get(keyOf(LOGS, name)))?.value ?? null;
    return value === null ? null : decodeLog(value);
  }

  /** Drops the log of that name. Resolves to whether there was one. */
  async drop(name: StatefulName): Promise<boolean> {
    const key = textOf(keyOf(HEADS, name));
    const head = this.#heads.get(key);
    if (head === undefined) return false;
    await this.#commit([], this.#forget([key]));
    return head.untilMs > this.#services.nowMs();
  }

  /** Drops logs whose time is up, or whose app is gone. To be called as often as once a second. */
  async sweep(): Promise<void> {
    const { nowMs, isApp, note } = this.#services;
    const now = nowMs(), over: string[] = [];
    for (const [key, { untilMs, app }] of this.#heads) if (untilMs <= now || !isApp(app)) over.push(key);
    if (over.length === 0) return;
    await this.#commit([], this.#forget(over)).catch((error) =>
      note("ended_logs_undropped", { error: String(error) })
    );
  }

  /** Makes room for one more log, and returns the keys of the rows to be dropped for that (EL2). */
  #makeRoom(bytes: number): Set<Key> {
    const { bytesMax = BYTES_MAX } = this.#services;
    const over: string[] = [];
    let left = this.#bytes + bytes, count = this.#heads.size + 1;
    for (const [key, head] of this.#heads) {
      if (left <= bytesMax && count <= LOGS_MAX) break;
      over.push(key);
      left -= head.bytes;
      count--;
    }
    return this.#forget(over);
  }

  #forget(keys: readonly string[]): Set<Key> {
    const drop = new Set<Key>();
    for (const key of keys) {
      this.#bytes -= this.#heads.get(key)?.bytes ?? 0;
      this.#heads.delete(key);
      const [app = "", className = "", id = ""] = JSON.parse(key) as string[];
      for (const space of [HEADS, LOGS]) drop.add(keyOf(space, { app, class: className, id }));
    }
    return drop;
  }

  #add(key: string, head: Head): void {
    this.#bytes += head.bytes - (this.#heads.get(key)?.bytes ?? 0);
    this.#heads.delete(key); // and in again, as the newest
    const [app = ""] = JSON.parse(key) as string[];
    this.#heads.set(key, { ...head, app });
  }

  #row(key: Key, value: Uint8Array): Row {
    return { key, value, position: ++this.#position, clock: 0, replica: 0, known: 0, expiresAtMs: 0 };
  }

  /** Commits rows to the disk, one commit after the other. */
  #commit(rows: readonly Row[], drop: Set<Key>): Promise<void> {
    for (const { key } of rows) drop.delete(key);
    const done = this.#tail.then(() =>
      this.#services.storage.commit({ rows: [...rows], drop: [...drop], records: new Map() })
    );
    this.#tail = done.catch(() => {}); // the caller is told
    return done;
  }
}

const keyOf = (space: string, name: StatefulName): Key => packKey([space, name.app, name.class, name.id]);
const textOf = (key: Key): string => JSON.stringify(unpackKey(key).slice(1));

const encodeHead = ({ endedMs, untilMs, bytes }: Head): Uint8Array =>
  new Writer(24).uint(endedMs).uint(untilMs).uint(bytes).done();

function decodeHead(value: Uint8Array): Head {
  const reader = new Reader(value);
  const head = { endedMs: reader.uint(), untilMs: reader.uint(), bytes: reader.uint() };
  reader.end();
  return head;
}

function encodeLog({ endedMs, epoch, version, checkpoint, log }: EndedLog): Uint8Array {
  const writer = new Writer(1024).uint(FORMAT).uint(endedMs).uint(epoch).text(version);
  writer.flag(checkpoint !== null);
  if (checkpoint !== null) writer.uint(checkpoint.at).bytes(checkpoint.bytes);
  return writer.list(log, ({ bytes }) => writer.bytes(bytes)).done();
}

/** @throws CodecError */
function decodeLog(value: Uint8Array): EndedLog {
  const reader = new Reader(value);
  const format = reader.uint();
  if (format !== FORMAT) throw new CodecError(`a log of the format ${format} is not read here`);
  const head = { endedMs: reader.uint(), epoch: reader.uint(), version: reader.text() };
  const checkpoint = reader.flag() ? { at: reader.uint(), bytes: reader.bytes() } : null;
  const log = reader.list(() => ({ bytes: reader.bytes() }));
  reader.end();
  return { ...head, checkpoint, log };
}
