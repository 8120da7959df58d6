/**
 * Forms as a stateful session sees them: the platform dates the files that it makes of parts, and draws a boundary for
 * each form that becomes a body. Here both follow from the session.
 *
 * SF1  A form that is sent or answered has the boundary of functions/sessions/turn/form_boundary.ts in the end. The one
 *      here is what the app itself reads in between, and as long.
 */
import type { Program } from "../../../functions/sessions/turn/program.ts";
import { RandomStream, STREAM } from "../../../functions/sessions/turn/random.ts";
import type { Current } from "./stateful_current.ts";

type Define = (target: object, name: string, value: unknown) => unknown;

/** Characters of a boundary: as many as the platform's has, so that lengths are what they were. */
const BOUNDARY_CHARS = 32;
const DRAWN_CHARS = 28;

/** Replaces what is dated or drawn: files and boundaries of forms. */
export function installForms(current: Current, nowMs: () => number, define: Define): void {
  const { prototype } = FormData;
  for (const method of ["append", "set"] as const) {
    const original = prototype[method] as (...args: unknown[]) => void;
    define(prototype, method, function (this: FormData, ...args: unknown[]) {
      const [name, value, filename] = args;
      const given = value instanceof Blob && (!(value instanceof File) || args.length > 2)
        ? [name, fileOf(value, args.length > 2 ? String(filename) : "blob", nowMs)]
        : args;
      return Reflect.apply(original, this, given);
    });
  }
  for (const name of ["Response", "Request"] as const) {
    const BuiltIn = globalThis[name] as unknown as new (...args: unknown[]) => Response | Request;
    installFormData(BuiltIn.prototype, nowMs, define);
    const construct = (target: typeof BuiltIn, args: unknown[], newTarget: unknown): object =>
      Reflect.construct(target, withBlob(name, args, current), newTarget as typeof BuiltIn);
    const Recorded = new Proxy(BuiltIn, { construct });
    // An accessor, as the platform's is: what it leads to is not frozen with the language (stateful_intrinsics.ts).
    Reflect.defineProperty(globalThis, name, {
      configurable: true,
      get: () => Recorded,
      set: (value) => void define(globalThis, name, value),
    });
    define(BuiltIn.prototype, "constructor", Recorded);
  }
}

const fileOf = (blob: Blob, name: string, nowMs: () => number): File =>
  new File([blob], name, {
    type: blob.type,
    lastModified: blob instanceof File ? blob.lastModified : nowMs(),
  });

/** Replaces `formData()` of a body: the files in it have the time of the turn. */
function installFormData(prototype: object, nowMs: () => number, define: Define): void {
  const { formData } = prototype as Response;
  define(prototype, "formData", function (this: Response): Promise<FormData> {
    return Reflect.apply(formData, this, []).then((form) => {
      const dated = new FormData();
      for (const [name, value] of form) {
        if (typeof value === "string") dated.append(name, value);
        else dated.append(name, new File([value], value.name, { type: value.type, lastModified: nowMs() }));
      }
      return dated;
    });
  });
}

/** Returns arguments in which a body that is a form is the bytes that the platform would make of it. */
function withBlob(name: "Response" | "Request", args: unknown[], current: Current): unknown[] {
  if (name === "Response") {
    const [body, ...more] = args;
    return body instanceof FormData ? [formBlob(body, boundaryOf(current())), ...more] : args;
  }
  const [input, init] = args;
  const body: unknown = Object(init).body;
  return body instanceof FormData
    ? [input, { ...Object(init), body: formBlob(body, boundaryOf(current())) }]
    : args;
}

/** Draws a boundary of the session's seed, which nobody outside can know. Forms of one moment may have the same. */
function boundaryOf(program: Program | undefined): string {
  const drawn = new Uint8Array(DRAWN_CHARS / 2);
  if (program !== undefined) {
    const { seed, nextCall, crypto } = program;
    new RandomStream(seed, STREAM.forms, nextCall, crypto.position).fill(drawn);
  }
  return drawn.toHex().padStart(BOUNDARY_CHARS, "-");
}

/** Encodes a form by XHR's multipart/form-data encoding algorithm, as Deno has it. */
export function formBlob(form: FormData, boundary: string): Blob {
  const chunks: (string | Blob)[] = [];
  for (const [name, value] of form) {
    const lead = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(withCrlf(name))}"`;
    if (typeof value === "string") chunks.push(`${lead}\r\n\r\n${withCrlf(value)}\r\n`);
    else {
      const type = value.type === "" ? "application/octet-stream" : value.type;
      chunks.push(
        `${lead}; filename="${escaped(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`,
        value,
        "\r\n",
      );
    }
  }
  chunks.push(`--${boundary}--`);
  return new Blob(chunks, { type: `multipart/form-data; boundary=${boundary}` });
}

const withCrlf = (text: string): string => text.replace(/\r(?!\n)|(?<!\r)\n/g, "\r\n");

const ESCAPED: Readonly<Record<string, string>> = { "\n": "%0A", "\r": "%0D", '"': "%22" };
const escaped = (text: string): string => text.replace(/[\n\r"]/g, (found) => ESCAPED[found] ?? found);
