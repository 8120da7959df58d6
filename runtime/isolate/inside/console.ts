/** The app's console: what it prints goes to the site's log of the request that printed it. */

/** A line longer than this is cut: a log is no way to move data. */
const TEXT_MAX = 16 * 1024;

/** Replaces the console's methods. */
export function captureConsole(log: (level: string, text: string) => void): void {
  const internal = (Deno as unknown as Record<symbol, { Console: new (print: Print) => Console }>)[
    (Deno as unknown as { internal: symbol }).internal
  ];
  if (internal === undefined) throw new Error("this Deno has no Console to build on");
  const levels = ["debug", "info", "warn", "error"];
  globalThis.console = new internal.Console((text, level) => {
    log(levels[level] ?? "info", text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text.trimEnd());
  });
}

type Print = (text: string, level: number) => void;
