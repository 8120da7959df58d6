/** The app's console: a line that it prints goes to the site's log of the request that printed it. */

/** Characters of a line that are sent; the site keeps half of them, once it has taken secrets out. */
const TEXT_MAX = 32 * 1024;
/**
 * Characters that one isolate may print a second, while nobody bends it (the site's own bound:
 * runtime/observe/app_log_budget.ts); a loop that logs would otherwise keep the site busy.
 */
const CHARACTERS_A_SECOND = 256 * 1024;

/** Replaces the console by one that gives its lines to `log`. */
export function captureConsole(log: (level: string, text: string) => void): void {
  const internal = (Deno as unknown as Record<symbol, { Console: new (print: Print) => Console }>)[
    (Deno as unknown as { internal: symbol }).internal
  ];
  if (internal === undefined) throw new Error("this Deno has no Console to build on");
  const levels = ["debug", "info", "warn", "error"];
  const budget = new Budget();
  globalThis.console = new internal.Console((text, level) => {
    const line = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text.trimEnd();
    const dropped = budget.take(line.length);
    if (dropped === undefined) return;
    if (dropped > 0) log("warn", `${dropped} lines were dropped: an isolate may log 256 KiB a second`);
    log(levels[level] ?? "info", line);
  });
}

type Print = (text: string, level: number) => void;

// The clock of the process: in an isolate of stateful sessions the global is the app's, and recorded.
const processMs = performance.now.bind(performance);

/** Characters that may be printed in this second. */
class Budget {
  #second = -1;
  #left = 0;
  #dropped = 0;

  /**
   * Takes a line's characters. Returns the number of lines that were dropped since the last one that was not; undefined
   * where this one is too.
   */
  take(length: number): number | undefined {
    const second = Math.floor(processMs() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#left = CHARACTERS_A_SECOND;
    }
    if (length > this.#left) {
      this.#dropped++;
      return undefined;
    }
    this.#left -= length;
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }
}
