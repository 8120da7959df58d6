/**
 * Salvage of a session that can't go on from its log: the last commit point that a replay by the code that wrote the
 * log agrees with becomes a checkpoint, from which any code goes on. An operator is told before what is given up for
 * that (functions/sessions/serve/mending.ts).
 *
 * Life: opened with `salvages` → one step: the log is gone through as far as it goes, `parked` (`salvaged`) says how
 * far that is, and `checkpoint` comes behind it → nothing more. Or `parked` says why not even that can be had.
 *
 * SV1  The checkpoint has what a replay made in which every turn had the check that the log has, and no handler was
 *      under way: nothing is guessed, and no handler is there by half.
 * SV2  What is not in the checkpoint is named: the entry up to which it goes, why the replay went no further, calls and
 *      closure timers that were open, and fields that no checkpoint holds.
 * SV3  The same code on another build of Deno, or another architecture, may salvage: where it does otherwise the checks
 *      say so (SV1). Other code may not.
 */
import { codeOfCheckpoint } from "./checkpoint.ts";
import type { Checkpoint, Parked } from "./commit.ts";
import type { OpenSession } from "./event.ts";
import { stackText } from "./handler.ts";
import { LoggedProgram, type RunHost } from "./logged_program.ts";
import { Outbox } from "./outbox.ts";
import type { Program } from "./program.ts";
import { parkedError, Rerun, writerOf } from "./recovery.ts";
import { ParkedError } from "./replay.ts";
import type { Runnable, SessionIsolate } from "./session_host.ts";

/**
 * Number of replays that each differ at another place; after the last of them the log is given up, and the old
 * checkpoint kept.
 */
const TRIES_MAX = 5;
/** Number of open calls and timers that are named. */
const NAMED_MAX = 10;

/** See the file's header. */
export class SalvagedSession implements Runnable {
  readonly channel: number;
  readonly received = 0;
  readonly #host: SessionIsolate;
  readonly #open: OpenSession;
  #isOver = false;

  constructor(host: SessionIsolate, channel: number, open: OpenSession) {
    this.#host = host;
    this.channel = channel;
    this.#open = open;
  }

  get hasWork(): boolean {
    return !this.#isOver;
  }

  step(): void {
    this.close();
    const { sink } = this.#host;
    try {
      const { parked, checkpoint } = salvaged(this.#host, this.#open);
      sink.parked(this.channel, parked);
      sink.checkpoint(this.channel, checkpoint);
    } catch (error) {
      const { code, message, detail } = parkedError(error);
      sink.parked(this.channel, { code, message, detail });
    }
  }

  broke(error: unknown): void {
    const message = `the session could not be salvaged: ${stackText(error)}`;
    this.#host.sink.parked(this.channel, { code: "internal", message, detail: {} });
  }

  close(): void {
    this.#isOver = true;
  }
}

/** Returns the checkpoint, and what it lacks. @throws ParkedError, CodecError, AppError: nothing can be had */
function salvaged(host: RunHost, open: OpenSession): {
  readonly parked: Parked;
  readonly checkpoint: Checkpoint;
} {
  const { checkpoint } = open;
  const code = writerOf(checkpoint && checkpoint.bytes, [open.entries]) ?? // SV3
    (checkpoint === null ? open.code : codeOfCheckpoint(checkpoint.bytes));
  const { entries, through, why } = agreeing(host, { ...open, code });
  const logged = new LoggedProgram(host, { ...open, code, entries });
  const outbox = new Outbox(logged);
  outbox.recovered(logged.recover(), open);
  const { program } = logged;
  if (program.object === null) {
    throw new ParkedError("log_corrupt", "nothing of its log can be replayed, and it has no checkpoint");
  }
  const leftOut = logged.leaveOut();
  const message = why ?? "its log is replayed to its end";
  const detail = { through, why, open: openWork(program), leftOut };
  return { parked: { code: "salvaged", message, detail }, checkpoint: logged.writeCheckpoint(outbox.kept) };
}

/**
 * Returns the log up to the last commit point that a replay agrees with, the number of its last entry, and why the
 * replay went no further.
 */
function agreeing(host: RunHost, open: OpenSession): {
  readonly entries: Uint8Array;
  readonly through: number;
  readonly why: string | null;
} {
  const { class: className, id, code, checkpoint } = open;
  let { entries } = open;
  let why: string | null = null;
  for (let tries = 1;; tries++) {
    const rerun = new Rerun(host, { className, id, code, checkpoint });
    let differs: ParkedError | null = null;
    try {
      rerun.feed(entries);
    } catch (error) {
      differs = parkedError(error);
    }
    const { point, program } = rerun.recovered;
    if (differs === null && point.bytes === entries.length) { // SV1
      return { entries, through: point.sequence, why };
    }
    why ??= differs?.message ?? `${program.handler?.name ?? "a handler"} is not over`;
    entries = tries < TRIES_MAX ? entries.subarray(0, point.bytes) : new Uint8Array(0);
  }
}

/** Returns the names of calls and closure timers that are open (SV2). */
function openWork({ calls, locals }: Program): string[] {
  const names = [...calls.values()].map(({ name }) => name);
  const timers = [...locals.values()].map(({ ms }) => `a closure timer of ${ms} ms`);
  const all = [...names, ...timers];
  const more = all.length - NAMED_MAX;
  return more > 0 ? [...all.slice(0, NAMED_MAX), `and ${more} more`] : all;
}
