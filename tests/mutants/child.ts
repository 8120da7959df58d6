/**
 * One child process: its lines as they come, and limits on the time that its processor works for it, which is the same
 * however busy the machine is.
 *
 * CH1  It is ended once it has worked for longer than it may since it was given time last, or has done next to nothing
 *      for a while: a timer that looks now and then for what never comes is no work.
 * CH2  It has a low priority, and dies with its memory rather than fill the machine's.
 */

export interface ChildOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Time of the processor until `more` is called first. */
  readonly cpuMsMax: number;
  readonly onLine: (line: string, more: (cpuMsMax: number) => void) => void;
}

/** How a child ended. */
export interface Ended {
  readonly how: "exited" | "hung" | "out of memory";
  readonly code: number;
  readonly cpuMs: number;
  /** The last of what it wrote to stderr. */
  readonly errors: string;
}

/** Between two looks at its time. */
const LOOK_MS = 100;
/** With less work than this in that time: what it waits for does not come. A busy machine leaves it more. */
const IDLE_MS = 15_000;
const WORK_MS_MIN = 150;
const HEAP_MB = 1_500;
const ERRORS_CHARS = 4_000;
/** Ticks of the kernel in a second, as `/proc` counts them on every machine there is. */
const TICKS_PER_SECOND = 100;

/** Runs `deno` with arguments. */
export async function runChild({ args, cwd, env = {}, cpuMsMax, onLine }: ChildOptions): Promise<Ended> {
  const [first = "", ...rest] = args;
  const child = new Deno.Command("nice", {
    args: ["-n", "5", Deno.execPath(), first, `--v8-flags=--max-old-space-size=${HEAP_MB}`, ...rest],
    cwd,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let limitMs = cpuMsMax, isHung = false, cpuMs = 0;
  let moved = { cpuMs: 0, atMs: performance.now() };
  const look = () => {
    const now = cpuOf(child.pid);
    if (now === null) return;
    cpuMs = now;
    if (cpuMs >= moved.cpuMs + WORK_MS_MIN) moved = { cpuMs, atMs: performance.now() };
    if (cpuMs <= limitMs && performance.now() - moved.atMs <= IDLE_MS) return; // CH1
    isHung = true;
    kill(child);
  };
  const timer = setInterval(look, LOOK_MS);
  const errors = tail(child.stderr);
  try {
    const more = (ms: number) => {
      look();
      limitMs = cpuMs + ms;
    };
    for await (const line of linesOf(child.stdout)) onLine(line, more);
    const { code } = await child.status;
    const text = await errors;
    const isFull = /heap out of memory|Reached heap limit/i.test(text);
    return { how: isHung ? "hung" : isFull ? "out of memory" : "exited", code, cpuMs, errors: text };
  } finally {
    clearInterval(timer);
  }
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** Time of the processor that a process has used, by the kernel; null where it is over. */
function cpuOf(pid: number): number | null {
  try {
    const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).replace(/^.*\) /s, "").split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 1_000 / TICKS_PER_SECOND;
  } catch {
    return null;
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

async function tail(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    text = (text + chunk).slice(-ERRORS_CHARS);
  }
  return text;
}
