/**
 * `--out FILE`: the output of a command, in a file instead of on stdout. Opened with the first line, so that a command
 * which fails before it has anything to say leaves a file of that name as it was.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { AdminError } from "../deploy/admin_api.ts";

/** A file in stdout's place. */
export class OutFile {
  readonly #path: string;
  #file: number | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the same shell, with its lines in the file; it draws on no terminal. */
  shell<S extends { out(line: string): void; readonly terminal?: unknown }>(shell: S): S {
    return { ...shell, out: (line: string) => this.#write(line + "\n"), terminal: undefined };
  }

  /** Closes the file. */
  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #write(text: string): void {
    try {
      this.#file ??= openSync(this.#path, "w");
      writeSync(this.#file, text);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new AdminError("file_not_written", `${this.#path} cannot be written: ${why}`);
    }
  }
}
