/**
 * Supervisor of a dev cluster's site: it starts the process, and starts it again when it ends.
 *
 * Life: `start` → running → (killed, crashed) → wait → running … → `stop` (asked to end) or `kill` (SIGKILL; stays
 * down until `start`).
 *
 * P1  A site ends when this process does, however it ends: it watches its standard input, whose other end is here.
 * P2  A site that ended by itself is started again after a pause that doubles with each early end.
 * P3  A `start` is not lost on a process that is ending: the next one begins when that one has ended.
 */
import { POLLED_EACH, POLLED_EACH_NAME } from "../loop/socket_polls.ts";

/** Command by which a site is started. */
export interface SiteCommand {
  readonly id: string;
  readonly file: string;
  /** Path of the file with the faults that the site begins with. */
  readonly chaosFile: string;
  /** Path of the module of the command line. */
  readonly main: string;
  /** Path of the checkout's deno.json. */
  readonly denoConfig: string;
  readonly onExit: (code: number, signal: string | null, nextMs: number | null) => void;
  /** Called when the site's process is another one, or there is none any more. */
  readonly onChange: () => void;
}

const PAUSE_MS_MIN = 100;
/**
 * Milliseconds of the longest pause: a site that cannot start (its port is taken) is tried this often, so that its log
 * stays readable.
 */
const PAUSE_MS_MAX = 5_000;
/** Milliseconds after which a site has started well: the next pause is short again. */
const RAN_WELL_MS = 5_000;
/** Milliseconds after which a site that was asked to end, and has not, is killed. */
const STOP_MS_MAX = 8_000;
/**
 * Milliseconds before an orderly end in which a start was meant for the next process. A site that was drained is
 * ending, and nobody tells its supervisor: it stops within 10 s after it has said that it is drained.
 */
const DRAINED_MS_MAX = 15_000;

/**
 * Returns a site's environment. Deno's switch turns the site's own telemetry on; left to Deno as well, it would add a
 * second span to every request, in a trace of its own, and one to each batch that is sent.
 */
function siteEnv(): Record<string, string> {
  const polled = { [POLLED_EACH_NAME]: `${POLLED_EACH}` };
  if (Deno.env.get("OTEL_DENO") !== "true") return polled;
  return { ...polled, OTEL_DENO: "false", SOJOURN_OTEL: Deno.env.get("SOJOURN_OTEL") ?? "true" };
}

/** Supervises the process of one site. */
export class SiteProcess {
  readonly #command: SiteCommand;
  #child: Deno.ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #wanted = false;
  /** True when its supervisor has asked it to end. */
  #isEnding = false;
  /** Time at which a start last found it running. */
  #startedMs = -Infinity;
  #pauseMs = PAUSE_MS_MIN;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(command: SiteCommand) {
    this.#command = command;
  }

  /** Process id; 0 while it is down. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Starts the process, if it is not running. Where it is ending, resolves when it has begun anew (P3). */
  async start(): Promise<void> {
    this.#wanted = true;
    clearTimeout(this.#timer);
    if (this.#child === null) return this.#spawn();
    this.#startedMs = performance.now();
    if (this.#isEnding) await this.#ended;
  }

  /** Asks the site to end, and waits until it has. */
  async stop(): Promise<void> {
    this.#down("SIGTERM");
    const timer = setTimeout(() => this.signal("SIGKILL"), STOP_MS_MAX);
    await this.#ended;
    clearTimeout(timer);
  }

  /** Kills the site without warning; it stays down until `start`. */
  async kill(): Promise<void> {
    this.#down("SIGKILL");
    await this.#ended;
  }

  /** Sends a signal, if the process runs. */
  signal(signal: Deno.Signal): void {
    try {
      this.#child?.kill(signal);
    } catch {
      // It has just ended.
    }
  }

  #down(signal: Deno.Signal): void {
    this.#wanted = false;
    this.#isEnding = this.#child !== null;
    clearTimeout(this.#timer);
    this.signal("SIGCONT"); // a paused process handles nothing but SIGKILL
    this.signal(signal);
  }

  #spawn(): void {
    const { file, chaosFile, main, denoConfig } = this.#command;
    const startedMs = performance.now();
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-prompt",
        "--config",
        denoConfig,
        main,
        "site",
        "--config",
        file,
        "--chaos",
        chaosFile,
        "--supervised",
      ],
      env: siteEnv(),
      stdin: "piped",
      stdout: "null",
      stderr: "inherit",
    }).spawn();
    this.#child = child;
    this.#startedMs = -Infinity;
    this.#ended = child.status.then((status) => {
      child.stdin.close().catch(() => {}); // its reader is gone already
      const nextMs = this.#over(status, performance.now() - startedMs);
      this.#command.onExit(status.code, status.signal, nextMs);
      if (this.#child === null) this.#command.onChange();
    });
    this.#command.onChange();
  }

  /** Handles an end; returns the milliseconds after which the site is started again; null: never, or it was already. */
  #over({ success }: Deno.CommandStatus, ranMs: number): number | null {
    const wasAsked = this.#isEnding;
    this.#isEnding = false;
    this.#child = null;
    const isStarted = wasAsked || performance.now() - this.#startedMs < DRAINED_MS_MAX;
    if (success && !isStarted) this.#wanted = false; // it was drained: an operator wants it down
    if (!this.#wanted) return null;
    if (!success && !wasAsked) return this.#again(ranMs);
    this.#spawn(); // P3
    return null;
  }

  /** Starts the site again after a pause, which is returned (P2). */
  #again(ranMs: number): number {
    const pauseMs = ranMs >= RAN_WELL_MS ? PAUSE_MS_MIN : this.#pauseMs;
    this.#pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
    this.#timer = setTimeout(() => this.#wanted && this.#spawn(), pauseMs);
    return pauseMs;
  }
}
