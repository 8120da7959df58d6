/**
 * How the state of a checkpoint comes into an object, which other code may have written it.
 *
 * MG1  The code that wrote it finds it as it was. Other code with the same shape, or without `migrate`, finds fields by
 *      their names, where their kinds fit.
 * MG2  Code with a later shape and `migrate` begins with the fields of its class, and `migrate` fills them from the old
 *      ones. It runs before any event; a replay from the same checkpoint runs it again, so that nothing but the old
 *      fields may tell what it does: it sees the checkpoint's clock, and its dice are no dice of the session.
 * MG3  Code with an earlier shape does not read it: log and checkpoint stay as they are, for code that does.
 */
import { AppError, codeOf } from "../../vocabulary/errors.ts";
import { SessionState } from "../../tracked/mod.ts";
import type { SessionObject } from "./handler.ts";
import type { Program, ProgramHost } from "./program.ts";
import { ParkedError } from "./replay.ts";

/** A state as a checkpoint has it. */
export interface WrittenState {
  readonly segments: readonly Uint8Array[];
  /** Of the class that wrote it, and the code. */
  readonly shape: number;
  readonly code: string;
}

/** An object with its state. */
export interface LoadedState {
  readonly state: SessionState;
  /** MG2: nothing of it is written yet. */
  readonly isMigrated: boolean;
}

const SHAPE_MAX = 2 ** 31 - 1;

/** `static shape` of an object's class. @throws AppError for what is none. */
export function shapeOf(object: object | null): number {
  const { shape } = Object(object?.constructor) as { readonly shape?: unknown };
  if (shape === undefined) return 0;
  if (Number.isInteger(shape) && Number(shape) >= 0 && Number(shape) <= SHAPE_MAX) return Number(shape);
  throw new AppError(
    "value_invalid",
    `static shape is ${String(shape)}; it is an integer from 0 to ${SHAPE_MAX}`,
  );
}

/** Puts a state into the object of a program. @throws ParkedError, AppError `value_corrupt` */
export function loadProgramState(
  host: ProgramHost,
  program: Program,
  written: WrittenState,
  code: string,
): LoadedState | null {
  const { object } = program;
  if (object === null) return null;
  const shape = shapeOf(object), { segments } = written;
  if (written.shape > shape) throw newer(written, shape); // MG3
  if (written.code !== code && written.shape < shape && typeof object.migrate === "function") {
    return { state: migrated(host, program, object, written), isMigrated: true };
  }
  const state = new SessionState(object);
  if (written.code === code) state.load(...segments); // MG1
  else loadByName(state, written, shape);
  return { state, isMigrated: false };
}

function loadByName(state: SessionState, { segments, code, shape: old }: WrittenState, shape: number): void {
  try {
    state.loadOfOther(...segments);
  } catch (error) {
    if (codeOf(error) !== "value_invalid" || !(error instanceof Error)) throw error;
    throw new ParkedError(
      "state_invalid",
      `${error.message}. Deploy a version whose class has a higher static shape than ${
        Math.max(old, shape)
      } and a ` +
        `migrate(old, shape), or the one that wrote it (${code})`,
      { wrote: code, shape: old },
    );
  }
}

const newer = ({ shape, code }: WrittenState, own: number): ParkedError =>
  new ParkedError(
    "shape_newer",
    `its state was written with shape ${shape}, by ${code}, and this version of the class has shape ${own}: deploy a ` +
      `version with shape ${shape} or more; it goes on from there`,
    { wrote: code, shape, own },
  );

/** MG2 */
function migrated(
  host: ProgramHost,
  program: Program,
  object: SessionObject,
  { segments, shape, code }: WrittenState,
): SessionState {
  const old: Record<string, unknown> = {};
  const before = new SessionState(old);
  before.load(...segments);
  const state = new SessionState(object);
  const drawn = { math: program.math.position, crypto: program.crypto.position };
  const counts = [...program.counts];
  let result: unknown;
  program.whileMaking(() => host.aside(program, () => result = object.migrate?.(old, shape)));
  [program.math.position, program.crypto.position] = [drawn.math, drawn.crypto];
  program.counts.clear();
  for (const [name, value] of counts) program.counts.set(name, value);
  const why = program.failure !== null
    ? `threw: ${messageOf(program.failure.error)}`
    : result instanceof Promise
    ? "returned a promise: it has to be done when it returns"
    : null;
  if (why !== null) {
    throw new ParkedError("migrate_failed", `migrate of the state of shape ${shape}, by ${code}, ${why}`, {
      wrote: code,
      shape,
    });
  }
  before.release();
  return state;
}

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error);
