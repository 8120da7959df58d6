/**
 * Loading of a checkpoint's state into an object, where other code may have written that state.
 *
 * MG1  The code that wrote a state finds it as it was. Other code with the same shape, or without `migrate`, finds
 *      fields by their names, where their kinds fit.
 * MG2  Code with a later shape and `migrate` begins with the fields of its class, and `migrate` fills them from the old
 *      ones. It runs before any event; a replay from the same checkpoint runs it again, so nothing but the old fields
 *      may decide what it does: it sees the checkpoint's clock, and what it draws of random numbers is no draw of the
 *      session.
 * MG3  Code with an earlier shape does not read the state: log and checkpoint stay as they are, for code that does.
 */
import { AppError, codeOf } from "../../vocabulary/errors.ts";
import { SessionState } from "../../tracked/mod.ts";
import type { SessionObject } from "./handler.ts";
import type { Program, ProgramHost } from "./program.ts";
import { ParkedError } from "./replay.ts";

/** A state as a checkpoint has it, with the shape and code of the class that wrote it. */
export interface WrittenState {
  readonly segments: readonly Uint8Array[];
  readonly shape: number;
  readonly code: string;
}

/** The state of an object into which it was loaded. */
export interface LoadedState {
  readonly state: SessionState;
  /** True where `migrate` made the state: no checkpoint holds anything of it yet (MG2). */
  readonly isMigrated: boolean;
}

const SHAPE_MAX = 2 ** 31 - 1;

/**
 * Returns `static shape` of an object's class; 0 where there is none. @throws AppError for a value that is no shape.
 */
export function shapeOf(object: object | null): number {
  const { shape } = Object(object?.constructor) as { readonly shape?: unknown };
  if (shape === undefined) return 0;
  if (Number.isInteger(shape) && Number(shape) >= 0 && Number(shape) <= SHAPE_MAX) return Number(shape);
  throw new AppError(
    "value_invalid",
    `static shape is ${String(shape)}; it is an integer from 0 to ${SHAPE_MAX}`,
  );
}

/** Loads a state into the object of a program. @throws ParkedError, AppError `value_corrupt` */
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

/** Returns the state of an object that `migrate` of its class has filled from the old fields (MG2). */
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
