/**
 * The kept part of a session's log that a WebSocket's host side holds (functions/sessions/sealed), beside its head
 * (kept_peer.ts), and in the same commits.
 *
 *   ws/NAME/log        varint: the epoch that was promised
 *   ws/NAME/r/NUMBER   a record, sealed; numbers go on, and the first is that of a whole one
 *
 * KL1  Whatever the log says it holds or has promised is among the changes of the next commit before it says so: with
 *      K1 it is kept before the home hears of it.
 * KL2  A whole record, and the removal of those that it replaces, are changes of one moment, and so of one commit.
 * KL3  Records that do not restore whole are no log, and then there is no head either: the peer begins anew.
 */
import type { HeldLog } from "../sessions/attach/mod.ts";
import { HostLog } from "../sessions/sealed/host_log.ts";
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";

/** Digits of a record's number: padded numbers sort as texts. */
const DIGITS = 16;

/** Log of a session that a client holds, and keeps in its storage. */
export class ClientLog implements HeldLog {
  readonly #name: string;
  readonly #put: (name: string, bytes: Uint8Array | null) => void;
  readonly #log: HostLog;
  /** Numbers of records that are kept: from the first to before the end. */
  #first: number;
  #end: number;

  /**
   * @param kept all that is kept below the name.
   * @throws CodecError for records that no log ever had (KL3).
   */
  constructor(
    name: string,
    kept: readonly (readonly [name: string, bytes: Uint8Array])[],
    put: (name: string, bytes: Uint8Array | null) => void,
  ) {
    this.#name = name;
    this.#put = put;
    const records = kept.filter(([each]) => each.startsWith(`${name}r/`));
    this.#first = Number(records[0]?.[0].slice(-DIGITS) ?? 0);
    this.#end = this.#first + records.length;
    if (records.at(-1)?.[0] !== (records.length === 0 ? undefined : this.#record(this.#end - 1))) {
      throw new CodecError("a record of a kept log is missing");
    }
    const promised = kept.find(([each]) => each === `${name}log`)?.[1];
    this.#log = HostLog.restore(promisedIn(promised), records.map(([, bytes]) => bytes));
  }

  /** Newest epoch that was promised, also by what is held; 0: this log stands for nothing. */
  get promised(): number {
    return this.#log.promised;
  }

  summary(): Uint8Array {
    return this.#log.summary();
  }

  promise(epoch: number): readonly Uint8Array[] | null {
    const before = this.#log.promised;
    const records = this.#log.promise(epoch);
    this.#promised(before);
    return records;
  }

  take(epoch: number, record: Uint8Array): "held" | "stale" | "invalid" {
    const before = this.#log.promised;
    const taken = this.#log.take(epoch, record);
    if (taken !== "held") return taken;
    if (this.#log.length === 1) this.#clear(); // KL2
    this.#put(this.#record(this.#end++), this.#log.last ?? record);
    this.#promised(before);
    return taken;
  }

  drop(): void {
    this.#log.drop();
    this.#clear();
    this.#put(`${this.#name}log`, null);
  }

  #promised(before: number): void {
    const { promised } = this.#log;
    if (promised !== before) this.#put(`${this.#name}log`, new Writer(8).uint(promised).done());
  }

  #clear(): void {
    for (; this.#first < this.#end; this.#first++) this.#put(this.#record(this.#first), null);
  }

  #record(number: number): string {
    return `${this.#name}r/${String(number).padStart(DIGITS, "0")}`;
  }
}

function promisedIn(bytes: Uint8Array | undefined): number {
  if (bytes === undefined) return 0;
  const reader = new Reader(bytes);
  const promised = reader.uint();
  reader.end();
  return promised;
}
