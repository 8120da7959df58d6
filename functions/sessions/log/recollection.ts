/**
 * Recollection of the arbiter on a site's disk: the highest position of the arbiter that the site has heard of, and,
 * where the arbiter has lost what it knew, what is known here of a name.
 *
 * On disk: ["w"] the position, ["j"] the last positions before it jumped, ["r", …name] the newest configuration that a
 * log's home has said to be on record, ["e", …name] the epoch in which a stateful session ended here, and when.
 *
 * RE1  A position that was heard is on disk with the first step that is written after it: so with whatever was asked in
 *      the packet that brought it, and before anything is answered that was asked after it.
 * RE3  An arbiter that may have lost steps leaves positions out (arbiter.ts, A7). The last one that was heard before such a
 *      jump is kept: it may be of a step that this arbiter has lost, and hearing of it anew must not hide that.
 * RE2  That a session ended is known here as long as the arbiter knows it (ENDED_MS). It says nothing of later epochs.
 */
import { Reader, Writer } from "../../../store/model/codec.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import type { Storage } from "../../../store/model/ports.ts";
import { keyAfter, prefixRange } from "../../../store/model/range.ts";
import type { Owner, StatefulName } from "./api.ts";
import type { HomeWord, Reply } from "./asks.ts";
import type { GroupCommit } from "./group_commit.ts";
import { HEADS, type KeptLog, RECORDED } from "./kept_log.ts";
import { NAMES_AT_ONCE } from "./limits.ts";
import { keyOf, sessionNameOf } from "./name.ts";
import { readOwners, writeOwners } from "./packet.ts";

const WITNESS_KEY = packKey(["w"]), JUMPS_KEY = packKey(["j"]);
/**
 * Distance above which a rise of the position is a jump (RE3): the arbiter jumps by more, and never makes so many steps
 * between two packets that are heard.
 */
export const JUMP_MIN = 2 ** 31;
/** Positions before jumps that are kept (RE3): as many as the arbiter keeps gaps. */
const JUMPS_MAX = 100;
const ENDED = "e";

export interface RecollectionPorts {
  readonly disk: GroupCommit;
  readonly storage: Storage;
  /** Returns the number of this disk. */
  readonly number: () => number;
}

/** Positions of the arbiter that a disk has heard of. */
export interface HeardOf {
  readonly position: number;
  /** Last positions before jumps, the oldest first (RE3). */
  readonly jumps: readonly number[];
}

/** Configuration of a log, as its home has said it. */
interface Recorded {
  readonly config: number;
  readonly owners: readonly Owner[];
}

/** Record of what this disk has heard of the arbiter (see the file's header). */
export class Recollection {
  readonly #ports: RecollectionPorts;
  #position: number;
  #jumps: readonly number[];

  constructor(ports: RecollectionPorts, { position, jumps }: HeardOf) {
    this.#ports = ports;
    this.#position = position;
    this.#jumps = jumps;
  }

  static async load(storage: Storage): Promise<HeardOf> {
    const [heard, jumped] = await storage.getMany([WITNESS_KEY, JUMPS_KEY]);
    return {
      position: heard?.value ? new Reader(heard.value).uint() : 0,
      jumps: jumped?.value ? readJumps(new Reader(jumped.value)) : [],
    };
  }

  /** Highest position that was heard. */
  get position(): number {
    return this.#position;
  }

  /** Notes a position of the arbiter (RE1). */
  hear(position: number): void {
    const before = this.#position;
    if (position <= before) return;
    this.#position = position;
    // RE3
    if (before > 0 && position > before + JUMP_MIN) {
      this.#jumps = [...this.#jumps, before].slice(-JUMPS_MAX);
      this.#ports.disk.putLater(JUMPS_KEY, writeJumps(this.#jumps));
    }
    this.#ports.disk.putLater(WITNESS_KEY, new Writer(8).uint(position).done());
  }

  /** Notes a position of the arbiter; resolves when it is on disk. */
  async heard(position: number): Promise<void> {
    this.hear(position);
    await this.#ports.disk.durable();
  }

  async witness(): Promise<Reply> {
    const position = this.#position, jumps = this.#jumps;
    await this.#ports.disk.durable();
    return { kind: "witness", disk: this.#ports.number(), position, jumps };
  }

  // ── What is written as it happens ──

  recorded(name: StatefulName, { config, owners }: Recorded): void {
    this.#ports.disk.put(keyOf(RECORDED, name), writeOwners(new Writer(64).uint(config), owners).done());
  }

  forgotten(name: StatefulName): void {
    this.#ports.disk.drop(keyOf(RECORDED, name));
  }

  ended(name: StatefulName, epoch: number, nowMs: number): void {
    this.#ports.disk.put(keyOf(ENDED, name), new Writer(16).uint(epoch).uint(nowMs).done());
  }

  /** Forgets what ended before a time (RE2). @param beforeMs that time. */
  async sweep(beforeMs: number): Promise<void> {
    const { storage, disk } = this.#ports;
    let { start, end } = prefixRange(packKey([ENDED]));
    for (;;) {
      const rows = await storage.scan({ start, end }, { limit: NAMES_AT_ONCE });
      for (const { key, value } of rows) {
        if (value !== null && decodeEnded(value).endedMs < beforeMs) disk.drop(key);
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < NAMES_AT_ONCE) return;
      start = keyAfter(last.key);
    }
  }

  // ── What is told ──

  /** Returns what is known here of a name. @param here what this process does with it. */
  async recall(
    name: StatefulName,
    log: KeptLog | undefined,
    here: { readonly home: HomeWord | null; readonly granted: number },
  ): Promise<Reply> {
    const { disk, storage, number } = this.#ports;
    const head = log?.head;
    await disk.durable();
    const [recordedRow, endedRow] = await storage.getMany([keyOf(RECORDED, name), keyOf(ENDED, name)]);
    const recorded = recordedRow?.value ? decodeRecorded(recordedRow.value) : { config: 0, owners: [] };
    return {
      kind: "recalled",
      disk: number(),
      log: head === undefined
        ? null
        : { promised: head.promised, by: head.by, ...recorded, version: head.version },
      ...here,
      ended: endedRow?.value ? decodeEnded(endedRow.value).epoch : 0,
    };
  }

  /** Returns names of logs, and of what ended, in their order. */
  async names(after: StatefulName | null): Promise<Reply> {
    const { disk, storage } = this.#ports;
    await disk.durable();
    const names = new Map<Key, StatefulName>();
    let more = false;
    // Names of both spaces count up to the last one that either has come to: one behind it may be missing in the other.
    let last: Key | null = null;
    for (const space of [HEADS, ENDED]) {
      const { start, end } = prefixRange(packKey([space]));
      const from = after === null ? start : keyAfter(keyOf(space, after));
      const rows = await storage.scan({ start: from, end }, { limit: NAMES_AT_ONCE });
      for (const { key } of rows) names.set(keyOf("", sessionNameOf(key)), sessionNameOf(key));
      const ending = rows.at(-1);
      if (rows.length < NAMES_AT_ONCE || ending === undefined) continue;
      more = true;
      const key = keyOf("", sessionNameOf(ending.key));
      if (last === null || key < last) last = key;
    }
    const bound = last;
    const sorted = [...names].filter(([key]) => bound === null || key <= bound)
      .sort(([a], [b]) => a < b ? -1 : 1);
    return { kind: "names", names: sorted.map(([, name]) => name), more };
  }
}

const writeJumps = (jumps: readonly number[]): Uint8Array => {
  const w = new Writer(64);
  return w.list(jumps, (jump) => w.uint(jump)).done();
};

function readJumps(r: Reader): number[] {
  const jumps = r.list(() => r.uint());
  r.end();
  return jumps;
}

function decodeRecorded(bytes: Uint8Array): Recorded {
  const r = new Reader(bytes);
  const recorded = { config: r.uint(), owners: readOwners(r) };
  r.end();
  return recorded;
}

function decodeEnded(bytes: Uint8Array): { readonly epoch: number; readonly endedMs: number } {
  const r = new Reader(bytes);
  const ended = { epoch: r.uint(), endedMs: r.uint() };
  r.end();
  return ended;
}
