/**
 * How long a site's one thread does one thing, in time of the processor: what other programs of the machine do is not in
 * it, but for their caches. While it does, every app of the site waits.
 *
 * Life: `probeStretches` in the site's process → a line of JSON in a file each LINE_MS → the end of the process.
 *
 * SP1  A timer of a millisecond runs between each two things that take longer. Between two of its calls there is one such
 *      thing, and little beside it.
 */

/** A quarter of a second of one thread. */
export interface StretchLine {
  readonly atMs: number;
  readonly wallMs: number;
  /** What the thread used of its processor. */
  readonly cpuMs: number;
  /** Stretches of more than LONG_MS. */
  readonly longMs: readonly number[];
}

const LINE_MS = 250;
/** Shorter ones nobody notices. */
const LONG_MS = 3;
const THREAD_CPU_CLOCK = 3;

/** Linux, with glibc: Deno tells the time of a thread in ticks of ten milliseconds. */
function threadClock(): () => number {
  const { symbols } = Deno.dlopen("libc.so.6", {
    clock_gettime: { parameters: ["i32", "buffer"], result: "i32" },
  });
  const time = new BigInt64Array(2);
  return () => {
    symbols.clock_gettime(THREAD_CPU_CLOCK, time);
    return Number(time[0]) * 1_000 + Number(time[1]) / 1e6;
  };
}

/** From now on, to the end of the process. */
export function probeStretches(path: string): void {
  const cpuMs = threadClock(), file = Deno.openSync(path, { create: true, append: true });
  const utf8 = new TextEncoder();
  let last = cpuMs(), begun = last, sinceMs = performance.now(), longMs: number[] = [];
  setInterval(() => {
    const now = cpuMs(), nowMs = performance.now(), took = now - last;
    if (took > LONG_MS) longMs.push(Math.round(took * 10) / 10);
    last = now;
    if (nowMs - sinceMs < LINE_MS) return;
    const line: StretchLine = { atMs: Date.now(), wallMs: nowMs - sinceMs, cpuMs: now - begun, longMs };
    file.writeSync(utf8.encode(JSON.stringify(line) + "\n"));
    sinceMs = nowMs;
    longMs = [];
    last = begun = cpuMs();
  }, 1);
}

/** What the lines of a time say together. */
export interface Stretches {
  /** Of each second of that time. */
  readonly cpuMsPerSecond: number;
  readonly longestMs: number;
  /** Of a hundred moments, in how many the thread was in a stretch of more than ten milliseconds. */
  readonly percentIn10Ms: number;
}

/** @param from, until by `Date.now()`. */
export function stretchesOf(path: string, fromMs: number, untilMs: number): Stretches {
  const lines = Deno.readTextFileSync(path).trim().split("\n").map((line) => JSON.parse(line) as StretchLine)
    .filter(({ atMs }) => atMs > fromMs && atMs <= untilMs);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const wallMs = Math.max(1, sum(lines.map(({ wallMs }) => wallMs)));
  const long = lines.flatMap(({ longMs }) => longMs);
  return {
    cpuMsPerSecond: Math.round(sum(lines.map(({ cpuMs }) => cpuMs)) / wallMs * 1_000),
    longestMs: Math.max(0, ...long),
    percentIn10Ms: Math.round(sum(long.filter((ms) => ms > 10)) / wallMs * 10_000) / 100,
  };
}
