/**
 * The part of a whole record before its commits: all that a session is opened with, its base and the base's state
 * included.
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import type { LogCopy } from "../log/asks.ts";
import { SEED_BYTES } from "../log/limits.ts";
import { readVersion } from "../log/packet.ts";
import { isWithin, markAfter, marksAfter, NO_STATE } from "../log/state_parts.ts";

export type LogStart = Omit<LogCopy, "pieces">;

export function writeStart(writer: Writer, { seed, version, base, parts }: LogStart): void {
  writer.raw(seed).text(version).flag(base !== null);
  if (base === null) return;
  writer.uint(base.at).uint(base.epoch).uint(base.wakeAtMs).text(base.version);
  writer.bytes(base.bytes).bytes(base.answers).list(parts, (part) => void writer.bytes(part));
}

/** Reads that part of a record. @throws CodecError */
export function readStart(reader: Reader): LogStart {
  const seed = reader.fixed(SEED_BYTES);
  const version = readVersion(reader);
  if (!reader.flag()) return { seed, version, base: null, parts: [] };
  const at = reader.uint(), epoch = reader.uint(), wakeAtMs = reader.uint();
  const base = {
    at,
    epoch,
    wakeAtMs,
    version: readVersion(reader),
    bytes: reader.bytes(),
    answers: reader.bytes(),
  };
  const parts = reader.list(() => reader.bytes());
  if (at === 0 || !isWithin(marksAfter(NO_STATE, parts))) throw new CodecError("a base is beyond its limits");
  return { seed, version, base: { ...base, state: markAfter(NO_STATE, parts) }, parts };
}
