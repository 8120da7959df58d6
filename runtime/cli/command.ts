/**
 * Commands, and the running of one: arguments → usage error (exit 2), help, or the command's own exit code.
 *
 * C1  With `--json`, stdout gets JSON and nothing else; messages for people go to stderr.
 * C2  Exit codes: 0 done, 1 refused or failed, 2 usage, 3 partly done; 70 (EX_SOFTWARE of sysexits.h): a process that serves
 *     ended by a bug of its own.
 */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { z } from "zod";
import { AdminError } from "../deploy/admin_api.ts";
import { nearestWord } from "./nearest.ts";
import { OutFile } from "./out_file.ts";
import { visible } from "../observe/visible.ts";

/** Exit codes of every command (C2). */
export const EXIT = { done: 0, failed: 1, usage: 2, partly: 3, broken: 70 } as const;
/** Exit code: one of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The process around a command; tests replace it. */
export interface Shell {
  /** Writes one line to stdout. */
  out(line: string): void;
  /** Writes one line to stderr. */
  err(line: string): void;
  env(name: string): string | undefined;
  /** Terminal of stdout, where that is one. */
  readonly terminal?: Terminal | undefined;
  /** Returns a signal that aborts at Ctrl-C, from the first call on; without it the process ends at once. */
  interrupted?(): AbortSignal;
  /** Makes Ctrl-C, where no command asked for it, leave nothing behind and say that it came. */
  guard?(): void;
  /** Shows a text on stderr as it is, without a line's end: a prompt. */
  show?(text: string): void;
  /** Standard input, for the value of a secret; the process's own by default. */
  readonly input?: ValueInput;
}

/** A terminal that a command draws on. */
export interface Terminal {
  columns(): number;
  rows(): number;
  write(text: string): void;
  /** Adds a callback for changes of the size; the result removes it. */
  onResize(changed: () => void): () => void;
}

/** The part of `Deno.stdin` that reading a value needs. */
export interface ValueInput {
  isTerminal(): boolean;
  setRaw(raw: boolean): void;
  read(into: Uint8Array): Promise<number | null>;
}

/** An option of a command, with its text in `--help`. */
export interface OptionSpec {
  readonly type: "string" | "boolean";
  /** Word for the option's value in `--help`: `--app NAME`. */
  readonly value?: string;
  readonly says: string;
}

/** Arguments after parsing. */
export interface Parsed {
  readonly words: readonly string[];
  /** Returns the value of a string option. */
  text(name: string): string | undefined;
  /** Reports whether a boolean option was given. */
  flag(name: string): boolean;
  readonly json: boolean;
}

/** A command of the CLI. */
export interface Command {
  readonly name: string;
  /** Words and options after the name: `MODULE [--app NAME]`. */
  readonly usage: string;
  readonly summary: string;
  /** Further lines of `--help`. */
  readonly details?: readonly string[];
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** Verbs of the command, and which word after the name they are: for completion. */
  readonly verbs?: { readonly at: number; readonly names: readonly string[] };
  /** Fewest and most words after the name. */
  readonly words: readonly [number, number];
  run(args: Parsed, shell: Shell): Promise<ExitCode>;
}

/** Error for arguments that a command does not take. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Code by which `--json` tells of an invalid command line. */
export const USAGE_CODE = "usage";

/** Options that every command has. */
export const COMMON: Readonly<Record<string, OptionSpec>> = {
  json: { type: "boolean", says: "JSON on stdout and nothing else" },
  out: { type: "string", value: "FILE", says: "write to FILE what would go to stdout" },
  help: { type: "boolean", says: "this text" },
};

/** Runs a command that writes for a reader who may have read enough before its end, such as `head`. */
export async function readEnough(run: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) return EXIT.done;
    throw error;
  }
}

/** Runs one command with its arguments. */
export async function runCommand(command: Command, args: readonly string[], shell: Shell): Promise<ExitCode> {
  if (args.includes("--help") || args.includes("-h")) {
    shell.out(helpOf(command));
    return EXIT.done;
  }
  const json = args.includes("--json");
  let file: OutFile | null = null;
  try {
    const parsed = parse(command, args);
    const path = parsed.text("out");
    if (path === undefined) return await command.run(parsed, shell);
    file = new OutFile(path);
    return await command.run(parsed, file.shell(shell));
  } catch (error) {
    if (error instanceof UsageError) {
      if (json) shell.out(JSON.stringify({ error: { code: USAGE_CODE, message: error.message } }));
      shell.err(`${command.name}: ${error.message}`);
      shell.err(`usage: sojourn ${command.name} ${command.usage}`.trimEnd());
      return EXIT.usage;
    }
    if (error instanceof AdminError) return failed(error, json, shell);
    if (error instanceof z.ZodError) {
      // Commands check only answers of a site so; arguments have messages of their own.
      const why = z.prettifyError(error).split("\n").slice(0, 3).join(" ");
      const message = `what answered is no site of a cluster, or one of another version: ${why}`;
      return failed(new AdminError("answer_invalid", message), json, shell);
    }
    throw error;
  } finally {
    file?.close();
  }
}

/** Prints why a command failed: to people on stderr, to programs on stdout. */
function failed(error: AdminError, json: boolean, shell: Shell): ExitCode {
  const { code, message, place } = error;
  if (json) shell.out(JSON.stringify({ error: { code, message, ...place === undefined ? {} : { place } } }));
  const [says = "", ...where] = error.lines;
  shell.err(visible(says));
  for (const line of where) shell.err(line);
  return EXIT.failed;
}

function parse(command: Command, args: readonly string[]): Parsed {
  const options: NonNullable<ParseArgsConfig["options"]> = {};
  for (const [name, spec] of Object.entries({ ...command.options, ...COMMON })) {
    options[name] = { type: spec.type };
  }
  let values: Record<string, unknown>;
  let words: string[];
  try {
    ({ values, positionals: words } = parseArgs({
      args: joinNegative(args),
      options,
      allowPositionals: true,
    }));
  } catch (error) {
    throw new UsageError(explainParsing(error, args, Object.keys(options)));
  }
  const [fewest, most] = command.words;
  if (words.length < fewest) throw new UsageError("an argument is missing");
  if (words.length > most) throw new UsageError(`${JSON.stringify(words[most])} is one argument too many`);
  return {
    words,
    text: (name) => typeof values[name] === "string" ? values[name] : undefined,
    flag: (name) => values[name] === true,
    json: values.json === true,
  };
}

/** Returns Node's message on an argument that it does not take, with the option that was meant where one is near. */
function explainParsing(error: unknown, args: readonly string[], known: readonly string[]): string {
  const { code, message } = error instanceof Error
    ? error as Error & { code?: string }
    : { message: String(error) };
  if (code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION") return message;
  const unknown = args.filter((arg) => /^--?[^-\d]/.test(arg)).map((arg) => arg.split("=")[0] ?? arg)
    .find((arg) => !known.includes(arg.replace(/^--?/, ""))) ?? "";
  const meant = nearestWord(unknown.replace(/^--?/, ""), known);
  return `Unknown option '${unknown}'${meant === null ? "" : `; did you mean --${meant}?`}`;
}

/** Joins `--ms -500` to `--ms=-500`: a word that begins with a dash and a digit is a number, no option of ours. */
function joinNegative(args: readonly string[]): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const before = joined.at(-1);
    if (/^-\d/.test(arg) && before !== undefined && /^--[^=]+$/.test(before)) {
      joined.push(`${joined.pop()}=${arg}`);
    } else joined.push(arg);
  }
  return joined;
}

/** Returns the first sentence of a command's summary, as one line. */
export const briefOf = (command: Command): string =>
  (command.summary.split(/[.;:]\s|\.$/)[0] ?? "").replaceAll("\n", " ");

/** Returns the `--help` of a command. */
export function helpOf(command: Command): string {
  const options = Object.entries({ ...command.options, ...COMMON })
    .map(([name, spec]) =>
      [`--${name}${spec.value === undefined ? "" : ` ${spec.value}`}`, spec.says] as const
    );
  return [
    `sojourn ${command.name} ${command.usage}`.trimEnd(),
    "",
    command.summary,
    ...(command.details ?? []),
    "",
    ...columns(options).map((line) => `  ${line}`),
  ].join("\n");
}

/** Returns rows of cells as lines of aligned columns. Cells have no power over the terminal, and stay on their line. */
export function columns(shown: readonly (readonly string[])[]): string[] {
  const rows = shown.map((row) => row.map((cell) => visible(cell).replaceAll("\n", "\\n")));
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => widths[column] = Math.max(widths[column] ?? 0, cell.length));
  }
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
}

/**
 * Returns a whole number option within bounds.
 *
 * @throws UsageError
 */
export function numberOption(
  args: Parsed,
  name: string,
  range: { readonly min: number; readonly max: number; readonly or: number },
): number {
  const text = args.text(name);
  if (text === undefined) return range.or;
  const value = Number(text);
  if (!Number.isInteger(value) || value < range.min || value > range.max) {
    throw new UsageError(`--${name} takes a whole number from ${range.min} to ${range.max}, not ${text}`);
  }
  return value;
}
