/**
 * The state of a message so far, as the note of its tuple: up to 64 bytes that go with the tuple from owner to owner
 * (store/owners/tuples.ts O7). Bytes: docs/protocol/queues.md.
 *
 * NT1 Each state has one form: "" for a message that has never been tried and does not expire.
 */
import { CodecError } from "../../store/model/codec.ts";
import { ERROR_BYTES_MAX } from "./limits.ts";

/** Reason for which a message is given up. */
export type DeathCause = "attempts" | "expired" | "rejected";

export interface MessageNote {
  /** Number of deliveries that are known to have begun. */
  readonly attempts: number;
  /** Time at which the message expires, by the wall clock; 0: never. */
  readonly expiresAtMs: number;
  /** Reason for which the message was given up, after which it waits for an operator; null: it is not given up. */
  readonly death: { readonly cause: DeathCause; readonly error: string } | null;
}

export const FRESH_NOTE: MessageNote = { attempts: 0, expiresAtMs: 0, death: null };

const LETTERS: Readonly<Record<DeathCause, string>> = { attempts: "a", expired: "e", rejected: "r" };
const CAUSES: readonly DeathCause[] = ["attempts", "expired", "rejected"];

export function encodeNote({ attempts, expiresAtMs, death }: MessageNote): string {
  const parts = [
    attempts === 0 ? "" : attempts.toString(36),
    expiresAtMs === 0 ? "" : expiresAtMs.toString(36),
  ];
  if (death !== null) parts.push(LETTERS[death.cause] + cutText(death.error, ERROR_BYTES_MAX));
  while (parts.at(-1) === "") parts.pop();
  return parts.join(",");
}

/** Decodes a note. @throws CodecError for a text that `encodeNote` does not make. */
export function decodeNote(text: string): MessageNote {
  if (text === "") return FRESH_NOTE;
  const [attempts = "", expires = "", ...rest] = text.split(",");
  const end = rest.join(",");
  const cause = CAUSES.find((one) => LETTERS[one] === end[0]);
  const note = {
    attempts: attempts === "" ? 0 : parseInt(attempts, 36),
    expiresAtMs: expires === "" ? 0 : parseInt(expires, 36),
    death: cause === undefined ? null : { cause, error: end.slice(1) },
  };
  const isWhole = [note.attempts, note.expiresAtMs].every((one) => Number.isSafeInteger(one) && one >= 0);
  if (!isWhole || encodeNote(note) !== text) throw new CodecError("a tuple's note is none of a message");
  return note;
}

const utf8 = new TextEncoder(), decoder = new TextDecoder();

/** Returns as much of a text as fits into `bytesMax` bytes of UTF-8, without cutting a character in two. */
export function cutText(text: string, bytesMax: number): string {
  const bytes = utf8.encode(text);
  let end = Math.min(bytes.length, bytesMax);
  // In UTF-8 the bytes of a letter after its first begin with 10.
  while (end < bytes.length && end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return decoder.decode(bytes.subarray(0, end));
}
