/**
 * A view of a stateful session's log for operators: what each entry says, and the head of the checkpoint before it.
 * Large contents are shortened; the seed, from which all randomness of the session follows, is not shown.
 */
import { decodeCall } from "../../calls/call.ts";
import { readEntries, type ReadEntry } from "../turn/log_entry.ts";
import { checkText } from "../turn/rolling_check.ts";
import { checkpointHead } from "../turn/taken_back.ts";
import type { TurnInput } from "../turn/turn.ts";
import { decodeValue } from "../../values/value.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { joinPieces, openPiece } from "./pieces.ts";

/** A log as this site's disk has it. */
export interface ShownCopy {
  readonly epoch: number;
  readonly version: string;
  readonly checkpoint: { readonly at: number; readonly bytes: Uint8Array } | null;
  readonly log: readonly { readonly bytes: Uint8Array }[];
}

/** View of one entry. */
export type EntryView = Readonly<Record<string, unknown>> & { readonly n: number; readonly kind: string };

/** View of a part of a log, as it is shown at once. */
export interface LogView {
  readonly epoch: number;
  readonly version: string;
  readonly checkpoint: Readonly<Record<string, unknown>> | null;
  readonly last: number;
  readonly entries: readonly EntryView[];
  /** Number of the first entry that is not among them; null: there are no more. */
  readonly next: number | null;
}

const ENTRIES_MAX = 500;
const TEXT_CHARS_MAX = 200;
const VALUE_BYTES_MAX = 1024 * 1024;

/**
 * Returns the view of a log from an entry on. @throws CodecError for a log that can't be read; what can be is in
 * `entries` of a {@link LogView} otherwise.
 */
export function viewLog({ epoch, version, checkpoint, log }: ShownCopy, from: number): LogView {
  const opened = checkpoint && openPiece(checkpoint.bytes);
  const head = opened && checkpointHead(opened.bytes);
  const at = checkpoint?.at ?? 0;
  const read = readEntries(joinPieces(null, log).bytes);
  const voided = voidedOf(read);
  const entries: EntryView[] = [];
  let clockMs = head?.clockMs ?? 0, next: number | null = null;
  for (const [i, entry] of read.entries()) {
    const n = at + 1 + i;
    if ("dt" in entry && entry.dt !== null) clockMs += entry.dt;
    if (n < from) continue;
    if (entries.length >= ENTRIES_MAX) {
      next = n;
      break;
    }
    entries.push({ n, ...viewOf(entry, clockMs), ...voided.has(i) ? { void: true } : {} });
  }
  return {
    ...{ epoch, version, last: at + read.length, entries, next },
    checkpoint: checkpoint && head && {
      ...{ at, bytes: checkpoint.bytes.length, epoch: head.epoch, code: head.code },
      ...{ clock: timeOf(head.clockMs), timers: head.timers, peers: head.peers },
      outputs: head.outputs.map(({ to, sequence, bytes }) => ({ to, sequence, bytes: bytes.length })),
      effects: head.effects.map(({ effect, mutations, sends = [] }) => ({
        ...{ effect, writes: mutations.length },
        ...sends.length === 0 ? {} : { sends: sends.length },
      })),
    },
  };
}

/** Returns the places of entries that a later `rejected` voids. */
function voidedOf(entries: readonly ReadEntry[]): ReadonlySet<number> {
  const voided = new Set<number>();
  let kept: number[] = [];
  for (const [i, entry] of entries.entries()) {
    if (entry.kind === "turn" && entry.input.kind === "rejected" && entry.input.voids > 0) {
      const from = Math.max(0, kept.length - entry.input.voids);
      for (const each of kept.slice(from)) voided.add(each);
      kept = kept.slice(0, from);
    }
    kept.push(i);
  }
  return voided;
}

/** Returns a time as text. Some times are no dates: a session may set its clock by nothing. */
function timeOf(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? `${ms} ms` : date.toISOString();
}

/** Returns the view of one entry, without the clock. */
export const entryView = (entry: ReadEntry): { readonly kind: string } & Record<string, unknown> =>
  entry.kind === "turn" ? inputView(entry.input) : { kind: entry.kind };

function viewOf(entry: ReadEntry, clockMs: number): { readonly kind: string } & Record<string, unknown> {
  switch (entry.kind) {
    case "clock":
      return { kind: "clock", clock: timeOf(clockMs) };
    case "effect":
      return { kind: "effect", storeClock: entry.clock };
    case "checkpoint":
      return { kind: "checkpoint", digest: entry.digest };
    case "turn": {
      const { kind, ...fields } = inputView(entry.input);
      const at = entry.dt === null ? {} : { clock: timeOf(clockMs) };
      return { kind, ...at, ...fields, check: checkText(entry.check) };
    }
  }
}

function inputView(input: TurnInput): { readonly kind: string } & Record<string, unknown> {
  switch (input.kind) {
    case "request":
      return { kind: input.kind, request: input.request, chain: input.chain, ...callView(input.bytes) };
    case "message":
      return { kind: input.kind, peer: input.peer, message: shortened(input.message) };
    case "result":
      return { kind: input.kind, call: input.call, result: shortened(input.bytes) };
    case "birth":
      return { kind: input.kind, seed: "not shown" };
    default:
      return { ...input };
  }
}

/** Shortens a text or value; of bytes only the number is told. */
function shortened(value: unknown): unknown {
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? String(value);
  if (text.length <= TEXT_CHARS_MAX) return value;
  return `${text.slice(0, TEXT_CHARS_MAX).toWellFormed()}… (${text.length} characters)`;
}

function callView(bytes: Uint8Array): Record<string, unknown> {
  try {
    const call = decodeCall(bytes);
    if (call.kind === "fetch") {
      return {
        fetch: `${call.method} ${shortened(call.url)}`,
        body: call.body === null ? null : shortened(call.body),
      };
    }
    return { method: call.method, args: argsView(call.args) };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return { call: `${bytes.length} bytes that are no call` };
  }
}

function argsView(args: Uint8Array): unknown {
  try {
    return (decodeValue(args, VALUE_BYTES_MAX) as unknown[]).map((each) => {
      try {
        return shortened(each);
      } catch {
        return `a ${typeof each}`; // no JSON: a bigint, a cycle
      }
    });
  } catch {
    return `${args.length} bytes`;
  }
}
