/**
 * Replay: a program is given the turns of its log again, and must do what the log says.
 *
 * RP1  Entries that a later `rejected` voids are not run.
 * RP2  Each turn's rolling check is compared. The first that differs ends the replay: nothing is guessed.
 */
import { decodeCall } from "../../calls/call.ts";
import type { ReadEntry } from "./log_entry.ts";
import type { Parked } from "./commit.ts";
import type { Program } from "./program.ts";
import { checkText, type EntryCheck } from "./rolling_check.ts";
import type { Trace } from "./trace.ts";
import type { TurnEnd, TurnInput, TurnSource } from "./turn.ts";

/** Error for a session that can't go on. */
export class ParkedError extends Error {
  override readonly name = "ParkedError";
  constructor(
    readonly code: Parked["code"],
    message: string,
    readonly detail: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** Function that runs one turn to its end: the host drains the microtasks in it. */
export type RunTurn = (program: Program, input: TurnInput, source: TurnSource) => TurnEnd;

/** Trace of turns, from the entry of the number `from` on. */
export interface Tracing {
  readonly from: number;
  readonly to: Trace;
}

/** A place in a log: behind the entry of that number, which is so many bytes from the log's begin. */
export interface LogMark {
  readonly sequence: number;
  readonly bytes: number;
}

/** One turn of a log with the entries that stand behind it. */
export interface LoggedTurn {
  readonly sequence: number;
  /** Place where the turn ends, with the entries behind it: number of the last of them, and bytes. */
  end: LogMark;
  readonly input: TurnInput;
  readonly check: EntryCheck;
  /** Times of the readings of the clock, in order: each is `dt`, from the reading before. */
  readonly dts: number[];
  storeClock: number | null;
  /** True where a checkpoint was taken after the turn. */
  isCheckpoint: boolean;
}

/** Returns the turns of a log that count (RP1). `first` is the number of the first entry. */
export function turnsOf(entries: readonly ReadEntry[], first: number): LoggedTurn[] {
  const kept: ReadEntry[] = [], sequences: number[] = [];
  let sequence = first;
  for (const entry of entries) {
    if (entry.kind === "turn" && entry.input.kind === "rejected" && entry.input.voids > 0) {
      const { voids } = entry.input;
      if (voids > kept.length) {
        throw new ParkedError(
          "log_corrupt",
          `entry ${sequence} voids ${voids} entries, and there are ${kept.length}`,
          {
            sequence,
          },
        );
      }
      kept.length = sequences.length -= voids;
    }
    kept.push(entry);
    sequences.push(sequence++);
  }
  const turns: LoggedTurn[] = [];
  for (const [i, entry] of kept.entries()) {
    const sequence = sequences[i] ?? first;
    const end = { sequence, bytes: entry.end };
    if (entry.kind === "turn") {
      const { input, check, dt } = entry;
      turns.push({
        sequence,
        end,
        input,
        check,
        dts: dt === null ? [] : [dt],
        storeClock: null,
        isCheckpoint: false,
      });
      continue;
    }
    const turn = turns.at(-1);
    if (turn === undefined) continue;
    turn.end = end;
    if (entry.kind === "clock") turn.dts.push(entry.dt);
    else if (entry.kind === "effect") turn.storeClock = entry.clock;
    else turn.isCheckpoint = true;
  }
  return turns;
}

/**
 * Gives a program the turns of its log, and calls `over` with each when it is over.
 *
 * @throws ParkedError `diverged` (RP2)
 */
export function replay(
  program: Program,
  turns: readonly LoggedTurn[],
  run: RunTurn,
  over: (turn: LoggedTurn) => void,
  trace: Tracing | null = null,
): void {
  for (const turn of turns) {
    const source = new LoggedSource(turn);
    requireForm(program, turn);
    if (trace !== null && turn.sequence >= trace.from) program.trace = trace.to;
    // The acts of one handler are enough.
    if (trace?.to.shows === true && program.handler === null) trace.to.clear();
    run(program, turn.input, source);
    const diverged = threw(program) ?? source.difference() ?? checkDiffers(program, turn);
    if (diverged !== null) {
      throw new ParkedError(
        "diverged",
        `the replay of entry ${turn.sequence} (${turn.input.kind}) ${diverged}`,
        {
          sequence: turn.sequence,
          logged: describe(turn),
          replayed: {
            ...{ kind: turn.input.kind, check: checkText(program.check.mark()) },
            ...{ clocks: source.reads, wrote: source.wrote },
          },
        },
      );
    }
    over(turn);
  }
}

const threw = ({ failure }: Program): string | null =>
  failure === null ? null : `threw: ${String(failure.error)}`;

const checkDiffers = ({ check }: Program, turn: LoggedTurn): string | null =>
  check.matches(turn.check)
    ? null
    : `did other things: its check is ${checkText(check.mark())}, the log's ${checkText(turn.check)}`;

/** Refuses an entry with the check of before behind one that has all of it. @throws ParkedError `log_corrupt` */
function requireForm({ check }: Program, turn: LoggedTurn): void {
  if (typeof turn.check !== "number" || !check.isWhole) return;
  const { sequence } = turn;
  const message = `entry ${sequence} has the check of before, behind one that has all of it`;
  throw new ParkedError("log_corrupt", message, { sequence });
}

/** Returns a turn for a report. Bytes are told by their number only, since they may be somebody's secret. */
function describe(turn: LoggedTurn): Record<string, unknown> {
  const input = Object.fromEntries(
    Object.entries(turn.input).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? `${value.length} bytes` : value,
    ]),
  );
  const handler = turn.input.kind === "request" ? { handler: calledName(turn.input.bytes) } : {};
  return {
    ...input,
    ...handler,
    check: checkText(turn.check),
    clocks: turn.dts.length,
    wrote: turn.storeClock !== null,
  };
}

/** Returns the name of what a request calls. */
function calledName(bytes: Uint8Array): string {
  try {
    const call = decodeCall(bytes);
    return call.kind === "rpc" ? call.method : "fetch";
  } catch {
    return "nothing that can be read";
  }
}

/** Source of a turn whose clocks are those of the log. */
class LoggedSource implements TurnSource {
  readonly isReplay = true;
  readonly isWhole: boolean;
  readonly #turn: LoggedTurn;
  #missing: string | null = null;
  reads = 0;
  wrote = false;

  constructor(turn: LoggedTurn) {
    this.#turn = turn;
    this.isWhole = typeof turn.check !== "number";
  }

  clock(index: number, lastMs: number): number {
    this.reads++;
    const dt = this.#turn.dts[index];
    if (dt === undefined) this.#missing ??= "read the clock more often than the log has it";
    return lastMs + (dt ?? 0);
  }

  storeClock(last: number): number {
    this.wrote = true;
    if (this.#turn.storeClock === null) this.#missing ??= "wrote to the store, and the log has no version";
    return this.#turn.storeClock ?? last + 1;
  }

  /** Returns what the program took beyond the log, or left of it; null: it did as the log says. */
  difference(): string | null {
    if (this.#missing !== null) return this.#missing;
    if (this.reads < this.#turn.dts.length) return "read the clock less often than the log has it";
    if (!this.wrote && this.#turn.storeClock !== null) {
      return "did not write to the store, and the log has a version";
    }
    return null;
  }
}
