/**
 * Reads what a process uses of its machine: all its threads, also those that are not JavaScript's (key derivation,
 * compression, garbage collection), and those that have ended.
 *
 * Linux says it in one line, /proc/PID/stat. Held open it costs 20 µs a look, and is never another process's.
 */

/** The resources that a process has used, and holds. */
export interface ProcessUsage {
  /** Milliseconds of CPU time of all its threads, since the process started; in steps of 10 ms. */
  readonly cpuMs: number;
  readonly threads: number;
  /** MiB of address space: mostly reserved, and no memory. */
  readonly addressMib: number;
  /** MiB of memory. */
  readonly residentMib: number;
}

/** Milliseconds of a tick in which Linux counts for programs, on every machine. */
const TICK_MS = 10;
/** Number of pages in a MiB: they have 4 KiB on every machine that Deno runs on. */
const PAGES_A_MIB = 256;
/**
 * Indices of fields after the name, which may hold anything but ends with the last bracket: numbers of proc(5) less 3.
 */
const FIELD = { utime: 11, stime: 12, threads: 17, addressBytes: 20, residentPages: 21 } as const;

/** Reads what one process uses. */
export class UsageReader {
  readonly #file: Deno.FsFile | null;
  readonly #line = new Uint8Array(1024);

  constructor(pid: number) {
    this.#file = openOr(`/proc/${pid}/stat`);
  }

  /** Reads what the process uses; undefined where the system does not say, or the process has ended. */
  read(): ProcessUsage | undefined {
    if (this.#file === null) return undefined;
    try {
      this.#file.seekSync(0, 0);
      const length = this.#file.readSync(this.#line) ?? 0;
      return usageOf(new TextDecoder().decode(this.#line.subarray(0, length)));
    } catch {
      return undefined;
    }
  }

  close(): void {
    this.#file?.close();
  }
}

/** Parses a line of /proc/PID/stat; undefined where it is none. */
export function usageOf(line: string): ProcessUsage | undefined {
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const of = (field: number) => Number(fields[field] ?? NaN);
  const usage = {
    cpuMs: (of(FIELD.utime) + of(FIELD.stime)) * TICK_MS,
    threads: of(FIELD.threads),
    addressMib: of(FIELD.addressBytes) / 2 ** 20,
    residentMib: of(FIELD.residentPages) / PAGES_A_MIB,
  };
  return Number.isNaN(usage.cpuMs + usage.residentMib) ? undefined : usage;
}

function openOr(path: string): Deno.FsFile | null {
  try {
    return Deno.openSync(path, { read: true });
  } catch {
    return null;
  }
}
