/**
 * An isolate's process: started with the right to its own socket path only, and a connection to it.
 *
 * Life cycle: `startProcess` (listen, spawn, accept, unlink) → frames → `kill` or an exit of its own → `exited`.
 *
 * P1  The environment is empty, nothing is read from a configuration, nothing is fetched, nobody is prompted.
 * P2  The paths of socket and mark are gone as soon as the process has connected: nobody else can open them.
 * P3  The mark of an isolate of requests tells, after any death, which requests had started: the largest id in it.
 *     Appending four bytes to a file without a name (0.6 µs) is the cheapest thing a process can do that outlives it.
 * P4  The mark of an isolate of stateful sessions tells whose turn began last, and which of its events had come by then
 *     (turn_mark.ts).
 * P5  The process is in a session of its own: where the kernel shares its cores among sessions (autogroup), thirty
 *     threads of an app get as much as the one of the site. Where the operator has lent a cgroup it is bounded there
 *     (cgroups.ts).
 * P7  Where its app gives way (app_cores.ts) the process has a niceness of 10, with all its threads, and so has its
 *     session where the kernel shares its cores among sessions: there a thread's own niceness counts among those of its
 *     session only. The session's comes back to 0, and that of threads only where the site may do that; so an app in a
 *     container without that right gives way until its process is another.
 * P6  The time zone is UTC wherever it runs: a replay at another site makes the same dates.
 */
import { setPriority } from "node:os";
import { dirname } from "node:path";
import type { IsolateCgroups } from "./cgroups.ts";
import type { IsolateConnection } from "./frames.ts";
import { ADDRESS_MIB_MAX } from "./process_bounds.ts";
import { type ProcessUsage, UsageReader } from "./process_usage.ts";
import { type LastTurn, readTurnMark } from "./turn_mark.ts";

export interface ProcessOptions {
  /** Path of the bootstrap file. */
  readonly bootstrap: string;
  /** Path of a private folder for sockets. */
  readonly folder: string;
  readonly heapMib: number;
  readonly buffersMib: number;
  /** Groups that bound each process, where the operator has lent a cgroup. */
  readonly cgroups?: IsolateCgroups | undefined;
  /** True where the process gives way from its start (P7). */
  readonly givesWay?: boolean;
}

export interface IsolateProcess {
  readonly pid: number;
  readonly connection: IsolateConnection;
  /** Returns the id of the last request whose handler was begun (P3). */
  lastStarted(): number;
  /** Returns the turn of a stateful session that began last (P4). */
  lastTurn(): LastTurn;
  /** Returns what the process uses, all its threads together; undefined where the system does not say. */
  usage(): ProcessUsage | undefined;
  /**
   * Has the process give way from now on, or no more (P7). Returns false where that is not done yet: the kernel takes
   * only so many such orders a second.
   */
  giveWay(does: boolean): boolean;
  /** True where the process has given way since its start. */
  readonly startedGivingWay: boolean;
  /** Resolves when the process has ended: to how it did, and the last that it wrote to stderr. */
  readonly exited: Promise<{ readonly signal: string | null; readonly code: number; readonly said: string }>;
  /** True once the process has ended. */
  readonly hasEnded: boolean;
  /** Ends the process at once. */
  kill(): void;
  /** Gives back what this side holds, once the process has ended. */
  release(): void;
}

/** Ends a process that has no isolate. */
export async function endProcess(process: IsolateProcess): Promise<void> {
  process.kill();
  await process.exited;
  process.release();
}

/** MiB of address space that Deno and V8 take before an app has one byte; found by trying. */
const BASE_ADDRESS_MIB = 570;
/**
 * MiB of V8's semi-spaces, half of V8's own choice: a busy isolate holds 40 MiB less and uses no more CPU; at 4 it
 * begins to.
 */
const SEMI_SPACE_MIB = 8;
/** Milliseconds in which a process has to connect: one starts in 30 ms; ten seconds means that it never will. */
const CONNECT_MS_MAX = 10_000;
const STDERR_KEPT = 2_048;
/** Niceness of a process that gives way: it gets a tenth of what a process without it gets. */
const NICE = 10;
/** Command that has the command after it give way, and the session that it is in (P7). */
const GIVE_WAY = [
  "/bin/sh",
  "-c",
  `echo ${NICE} 2>/dev/null >/proc/self/autogroup; exec nice -n ${NICE} "$@"`,
  "sh",
];

let nextSocket = 0;

/**
 * Starts a process and waits for its connection.
 *
 * @throws Error when it ends, or does not connect in time.
 */
export async function startProcess(options: ProcessOptions): Promise<IsolateProcess> {
  const name = `${Deno.pid}-${nextSocket++}`;
  const path = `${options.folder}/${name}.sock`;
  const markPath = `${options.folder}/${name}.mark`;
  using listener = Deno.listen({ transport: "unix", path });
  /** Resources that are given back where the process does not start, from the last to the first. */
  using begun = new DisposableStack();
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const mark = begun.use(
      await Deno.open(markPath, { read: true, write: true, createNew: true, mode: 0o600 }),
    );
    const child = spawn(options, path, markPath);
    begun.defer(() => killQuietly(child));
    const said = lastOf(child.stderr);
    let hasEnded = false;
    const exited = child.status.then(async ({ signal, code }) => {
      hasEnded = true;
      return { signal, code, said: await said };
    });
    const connection = await Promise.race([
      listener.accept(),
      exited.then(({ code, said }) => {
        throw new Error(`an isolate process ended with code ${code} before it connected: ${said}`);
      }),
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("an isolate process did not connect")), CONNECT_MS_MAX);
      }),
    ]);
    begun.defer(() => closeQuietly(connection));
    const group = await options.cgroups?.hold(child.pid, options);
    if (group !== undefined) void child.status.then(() => group.remove());
    const usage = new UsageReader(child.pid);
    begun.move(); // from here on the caller gives these back
    return {
      pid: child.pid,
      connection,
      lastStarted: () => readMark(mark),
      lastTurn: () => readTurnMark(mark),
      usage: () => usage.read(),
      startedGivingWay: options.givesWay === true,
      giveWay: (does) => giveWay(child.pid, does ? NICE : 0),
      exited,
      get hasEnded() {
        return hasEnded;
      },
      release: () => {
        mark.close();
        usage.close();
        closeQuietly(connection);
      },
      kill: () => killQuietly(child),
    };
  } finally {
    clearTimeout(timer);
    for (const gone of [path, markPath]) await Deno.remove(gone).catch(() => {});
  }
}

function spawn(options: ProcessOptions, path: string, markPath: string): Deno.ChildProcess {
  const deno = [
    "run",
    "--quiet",
    "--no-prompt",
    "--no-npm",
    "--no-remote",
    "--cached-only",
    "--no-config",
    "--no-lock",
    `--v8-flags=--max-old-space-size=${options.heapMib},--max-semi-space-size=${SEMI_SPACE_MIB}`,
    `--allow-read=${path}`,
    `--allow-write=${path},${markPath}`,
    `--allow-net=unix:${path}`,
    options.bootstrap,
    path,
    markPath,
  ];
  const addressBytes = ADDRESS_MIB_MAX * 1024 * 1024;
  const dataBytes = (BASE_ADDRESS_MIB + options.heapMib + options.buffersMib) * 1024 * 1024;
  const [command = "", ...args] = [
    ...(setsidPath === undefined ? [] : [setsidPath]),
    ...(options.givesWay === true ? GIVE_WAY : []),
    ...(setprivPath === undefined ? [] : [setprivPath, "--pdeathsig", "KILL", "--no-new-privs"]),
    ...(prlimitPath === undefined
      ? []
      : [prlimitPath, `--data=${dataBytes}`, `--as=${addressBytes}`, "--core=0"]),
    Deno.execPath(),
    ...deno,
  ];
  return new Deno.Command(command, {
    args,
    clearEnv: true,
    // Deno keeps the bootstrap's compiled code there: starting from it takes a third less.
    env: {
      DENO_DIR: `${dirname(options.bootstrap)}/deno`,
      DENO_NO_UPDATE_CHECK: "1",
      NO_COLOR: "1",
      TZ: "UTC",
    },
    cwd: options.folder,
    // P5. Deno makes a session between a fork and an exec, and such a fork copies the page tables of the whole site: with
    // 600 MiB it stands still for 25 ms, on busy cores for 60. A command that makes the session costs it 0.3.
    detached: setsidPath === undefined,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
}

/**
 * Sets the niceness of a process and its session (P7); returns false where the kernel wants to be asked again later.
 */
function giveWay(pid: number, nice: number): boolean {
  try {
    for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) setPriority(Number(name), nice);
  } catch {
    // It has ended, or may not come back.
  }
  try {
    Deno.writeTextFileSync(`/proc/${pid}/autogroup`, `${nice}`);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code !== "EAGAIN"; // it has ended, or the kernel has no such thing
  }
}

/** Path of the command that makes a session (P5), where there is one. */
const setsidPath = firstFile(["/usr/bin/setsid", "/bin/setsid"]);

/**
 * Path of util-linux's prlimit, where there is one: it bounds array buffers, which V8's own flag does not, before they
 * are there.
 */
const prlimitPath = firstFile(["/usr/bin/prlimit", "/bin/prlimit"]);
/**
 * Path of util-linux's setpriv, where there is one: a handler that loops for ever would outlive a site that is killed,
 * since only an event loop that turns can see its socket close.
 */
const setprivPath = firstFile(["/usr/bin/setpriv", "/bin/setpriv"]);

function firstFile(paths: readonly string[]): string | undefined {
  return paths.find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  });
}

/**
 * Returns the largest of the ids that were appended one after the other, in a file that begins anew when it is full.
 */
function readMark(mark: Deno.FsFile): number {
  const bytes = new Uint8Array(mark.statSync().size);
  mark.seekSync(0, Deno.SeekMode.Start);
  const length = mark.readSync(bytes) ?? 0;
  const view = new DataView(bytes.buffer);
  let last = 0;
  for (let at = 0; at + 4 <= length; at += 4) last = Math.max(last, view.getUint32(at, true));
  return last;
}

async function lastOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (
    const chunk of stream.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)
  ) {
    text = (text + chunk).slice(-STDERR_KEPT);
  }
  return text.trim();
}

function killQuietly(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch { /* it has ended */ }
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch { /* it is closed */ }
}
