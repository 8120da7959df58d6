/**
 * The real process as a command sees it: standard output and error, variables, the terminal, Ctrl-C.
 */
import { removeTempFolders } from "../bundle/temp_folder.ts";
import { EXIT, type Shell, type Terminal } from "./command.ts";

const encoder = new TextEncoder();
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Size of a terminal that does not tell its own. */
const SIZE_DEFAULT = { columns: 80, rows: 24 };

/** Writes all of a text: a terminal or a pipe may take it in parts. @throws BrokenPipe where the reader has gone. */
function writeAll(to: { writeSync(bytes: Uint8Array): number }, text: string): void {
  for (let bytes = encoder.encode(text); bytes.length > 0;) bytes = bytes.subarray(to.writeSync(bytes));
}

/** Returns the shell of this process. */
export function processShell(): Shell {
  let stop: AbortController | null = null;
  return {
    out: (line) => writeAll(Deno.stdout, line + "\n"),
    err: (line) => writeAll(Deno.stderr, line + "\n"),
    show: (text) => writeAll(Deno.stderr, text),
    env: (name) => Deno.env.get(name),
    terminal: Deno.stdout.isTerminal() ? terminal : undefined,
    interrupted: () => {
      if (stop !== null) return stop.signal;
      const controller = stop = new AbortController();
      for (const signal of SIGNALS) {
        // The second Ctrl-C ends the process: the undoing hangs.
        Deno.addSignalListener(signal, () => controller.signal.aborted ? Deno.exit(1) : controller.abort());
      }
      return controller.signal;
    },
    guard: () => {
      for (const signal of SIGNALS) {
        Deno.addSignalListener(signal, () => {
          if (stop !== null) return; // the command handles it
          removeTempFolders();
          writeAll(Deno.stderr, "interrupted\n");
          Deno.exit(EXIT.failed);
        });
      }
    },
  };
}

const terminal: Terminal = {
  columns: () => size().columns,
  rows: () => size().rows,
  write: (text) => writeAll(Deno.stdout, text),
  onResize: (changed) => {
    Deno.addSignalListener("SIGWINCH", changed);
    return () => Deno.removeSignalListener("SIGWINCH", changed);
  },
};

function size(): { columns: number; rows: number } {
  try {
    const { columns, rows } = Deno.consoleSize();
    return columns > 0 && rows > 0 ? { columns, rows } : SIZE_DEFAULT;
  } catch {
    return SIZE_DEFAULT;
  }
}
