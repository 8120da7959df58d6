/**
 * Reads a secret's value: all of standard input, or, where that is a terminal, one line that is not shown.
 *
 * I1  A value is never shown, and never an argument: arguments are in histories and in every list of processes.
 * I2  Whatever happens, the terminal afterwards shows typed characters again.
 */
import { UsageError, type ValueInput } from "./command.ts";

/**
 * Bytes of the longest input: nobody types, and no pipe holds, more than this by intent; the cluster refuses far less.
 */
const INPUT_BYTES_MAX = 1024 * 1024;
const CHUNK_BYTES = 4096;

const KEY = {
  interrupt: 0x03,
  end: 0x04,
  backspace: 0x08,
  newline: 0x0a,
  enter: 0x0d,
  escape: 0x1b,
  erase: 0x7f,
};

/**
 * Returns the value, without the line break at its end.
 *
 * @param prompt shown on a terminal.
 * @returns null where the person at the terminal gave up.
 * @throws UsageError where it is no text, or has no end in sight.
 */
export async function readValue(
  input: ValueInput,
  prompt: string,
  show: (text: string) => void,
): Promise<string | null> {
  const bytes = input.isTerminal() ? await typed(input, prompt, show) : await piped(input);
  if (bytes === null) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, "");
  } catch {
    throw new UsageError("the value on standard input is not UTF-8 text");
  }
}

async function piped(input: ValueInput): Promise<Uint8Array> {
  const parts: number[] = [];
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (let read = await input.read(buffer); read !== null; read = await input.read(buffer)) {
    if (parts.length + read > INPUT_BYTES_MAX) throw new UsageError("standard input is too long for a value");
    for (let i = 0; i < read; i++) parts.push(buffer[i] ?? 0);
  }
  return Uint8Array.from(parts);
}

async function typed(
  input: ValueInput,
  prompt: string,
  show: (text: string) => void,
): Promise<Uint8Array | null> {
  input.setRaw(true); // before anyone is asked: characters typed at once would show
  try {
    show(prompt);
    return await line(input);
  } finally {
    input.setRaw(false); // I2
    show("\n");
  }
}

/** Reads one line in raw mode; null for Ctrl-C, or Ctrl-D with nothing typed. */
async function line(input: ValueInput): Promise<Uint8Array | null> {
  const out: number[] = [];
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (;;) {
    const read = await input.read(buffer);
    if (read === null) return out.length === 0 ? null : Uint8Array.from(out);
    // An arrow key comes as a sequence of its own, and is no part of a value.
    if (buffer[0] === KEY.escape) continue;
    for (let i = 0; i < read; i++) {
      const byte = buffer[i] ?? 0;
      if (byte === KEY.interrupt || (byte === KEY.end && out.length === 0)) return null;
      if (byte === KEY.enter || byte === KEY.newline || byte === KEY.end) return Uint8Array.from(out);
      if (byte === KEY.erase || byte === KEY.backspace) dropCharacter(out);
      else out.push(byte);
    }
  }
}

/** Removes the last character, with all bytes of its UTF-8. */
function dropCharacter(bytes: number[]): void {
  while (((bytes.at(-1) ?? 0) & 0xc0) === 0x80) bytes.pop();
  bytes.pop();
}
