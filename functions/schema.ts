/**
 * The validation of rows by any Standard Schema (standardschema.dev): Zod 4, Valibot, ArkType, ….
 *
 * C1  The stored row is the schema's *output*; it is parsed again when read, so a schema must accept its own output. (A
 *     transform that turns a string into a number does not; a default, a trim or a coercion does.)
 */
import { AppError } from "./vocabulary/errors.ts";

/** Part of the Standard Schema interface (version 1) that is used here. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Property that the specification defines, the only one. */
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Answer of a schema. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** Reason for which a value does not match. */
export interface SchemaIssue {
  /** Text of the reason. */
  readonly message: string;
  /** Path within the value to what is wrong. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Type that a schema accepts. */
export type InputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];
/** Type that a schema gives. */
export type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

/** Reason as the app and the 422 problem have it. */
export interface RowIssue {
  readonly path: string;
  readonly message: string;
}

/**
 * Returns the schema's output for a value; a promise only where the schema is asynchronous, so that the common path
 * costs no extra turn.
 *
 * @throws AppError `row_invalid`, with `detail.issues`, where the value does not match.
 */
export function validate<S extends StandardSchema>(
  schema: S,
  value: unknown,
  what: string,
): OutputOf<S> | Promise<OutputOf<S>> {
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then((r) => unwrap(r, what)) : unwrap(result, what);
}

function unwrap<Output>(result: SchemaResult<Output>, what: string): Output {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(readable);
  const text = issues.map((i) => i.path === "" ? i.message : `${i.path}: ${i.message}`).join("; ");
  throw new AppError("row_invalid", `${what} does not match its schema: ${text}`, { issues });
}

const readable = (issue: SchemaIssue): RowIssue => ({
  path: (issue.path ?? []).map((p) => String(typeof p === "object" ? p.key : p)).join("."),
  message: issue.message,
});
