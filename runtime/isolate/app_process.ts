/**
 * A process that runs an app, as its site holds it: in what isolates of requests (isolate.ts) and of stateful sessions
 * (stateful_isolate.ts) are alike.
 *
 * Stages: its bootstrap runs → `load` (an app version) → frames → `ended`. Every stage can end.
 *
 * AP1  A process is given one app version in its life, and never another.
 * AP2  One that does not read what it is sent is killed before the site's memory fills; what it sends after it was
 *      killed is ignored. What waits for it counts among the queues of its app (app_queues.ts).
 */
import { strict as assert } from "node:assert";
import type { CoreMember } from "./app_cores.ts";
import { AppQueues, type QueueHold } from "./app_queues.ts";
import { ReadPace } from "./app_turns.ts";
import { messageOf } from "./bodies.ts";
import type { IsolateApp } from "./call.ts";
import { readJson } from "./frame_fields.ts";
import { type Payload, readFrames } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { BUFFER_BYTES, ISOLATE_FRAME } from "./frames.ts";
import type { IsolateProcess } from "./process.ts";
import type { ProcessUsage } from "./process_usage.ts";
import { readAppError } from "./store_frames.ts";

/** The reason why an isolate ended. */
export type IsolateEnd =
  | { readonly kind: "killed"; readonly why: string; readonly cause: KillCause }
  | { readonly kind: "crashed"; readonly why: string }
  | { readonly kind: "closed" };

/** The reason why an isolate was killed, in a word. */
export type KillCause = "cpu" | "stalled" | "memory" | "threads" | "load" | "unread" | "queues" | "frames";

/** The outcome of loading a bundle. */
export type LoadOutcome =
  | { readonly kind: "loaded"; readonly manifest: unknown }
  | { readonly kind: "failed"; readonly code: string; readonly message: string; readonly stack: string };

/** Milliseconds that a process may take from closing its connection to its end. */
const LAST_WORDS_MS = 200;

/** A process that runs an app; see the file's header. `Ended` says how it ended. */
export abstract class AppProcess<Ended> {
  readonly app: IsolateApp;
  readonly pid: number;
  readonly ended: Promise<Ended>;
  protected readonly writer: FrameWriter;
  /** What waits in it and for it, among the queues of its app. */
  protected readonly hold: QueueHold;
  readonly #process: IsolateProcess;
  readonly #cores: CoreMember;
  readonly #pace = new ReadPace();
  readonly #ready = Promise.withResolvers<void>();
  readonly #loaded = Promise.withResolvers<LoadOutcome>();
  #loads = 0;
  #keptBytes = BUFFER_BYTES;
  #killed: { readonly why: string; readonly cause: KillCause } | undefined;
  #closing = false;
  #over = false;
  /** Number of its frames so far: while it rises, its event loop turns. */
  framesSeen = 0;

  /**
   * @param frameBytesMax bound of a frame that it sends.
   * @param queues those of the app at this site; left out, it has its own.
   */
  constructor(process: IsolateProcess, app: IsolateApp, frameBytesMax: number, queues = new AppQueues()) {
    this.app = app;
    this.pid = process.pid;
    this.#process = process;
    this.hold = queues.hold("isolate", (why) => this.kill(why, "queues"));
    // Reading ends too where the connection breaks, and tells the reason better.
    this.writer = new FrameWriter(process.connection, () => {}, this.#unread, this.#kept);
    this.#cores = queues.cores.join(process);
    this.#pace.turns = queues.turns;
    this.#ready.promise.catch(() => {});
    this.ended = this.#run(frameBytesMax);
  }

  /** Takes a frame that it sent. @throws FrameError for what no bootstrap sends. */
  protected abstract receive(type: number, id: number, payload: Payload): void;

  /** Hands back what was in it when it ended; `process` tells by its mark what had begun. */
  protected abstract handBack(end: IsolateEnd, process: IsolateProcess): Ended | Promise<Ended>;

  /** True once nothing new is begun in it. */
  get isOver(): boolean {
    return this.#over || this.#closing || this.#killed !== undefined;
  }

  /** True once the process is gone, and what was in it is handed back. */
  get hasEnded(): boolean {
    return this.#over;
  }

  /** True while its frames are not read (app_turns.ts). */
  get isHeld(): boolean {
    return this.#pace.isHeld;
  }

  /**
   * Gives the process its app (AP1); where that takes too long it is killed.
   *
   * @param more what its bootstrap is told beside what all are.
   */
  async load(bundle: Uint8Array, more: Readonly<Record<string, unknown>> = {}): Promise<LoadOutcome> {
    assert(++this.#loads === 1, "AP1: a process is given one app version, once");
    const { app: name, vars, limits: { loadMs, waitUntilMs } } = this.app;
    const late = () => this.kill(`the bundle did not load in ${loadMs} ms`, "load");
    let timer = setTimeout(late, loadMs);
    try {
      await this.#ready.promise;
      clearTimeout(timer);
      timer = setTimeout(late, loadMs);
      const { secrets, atRoot = true } = this.app;
      const options = { vars, secrets: secrets?.() ?? {}, atRoot, waitUntilMs, name, ...more };
      this.writer.begin(ISOLATE_FRAME.load, 0).text(JSON.stringify(options)).rest(bundle).end();
      return await this.#loaded.promise;
    } catch (error) {
      return { kind: "failed", code: "load_failed", message: messageOf(error), stack: "" };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Tells the isolate the present values of its app's secrets. */
  refreshSecrets(): void {
    if (this.app.secrets === undefined || this.isOver) return;
    this.writer.begin(ISOLATE_FRAME.secrets, 0).text(JSON.stringify(this.app.secrets())).end();
  }

  /** Returns what the process uses, all of its threads together. */
  usage(): ProcessUsage | undefined {
    const usage = this.#process.usage();
    if (usage !== undefined) this.#cores.looked(usage.cpuMs);
    return usage;
  }

  /** Asks for a sign of life. */
  ping(): void {
    this.writer.signal(ISOLATE_FRAME.ping, 0);
  }

  /** Ends the process at once. */
  kill(why: string, cause: KillCause): void {
    this.usage(); // a last look at what it has used
    this.#killed ??= { why, cause };
    this.#process.kill();
  }

  /** Ends the process as no longer needed. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#process.kill();
    await this.ended;
  }

  async #run(frameBytesMax: number): Promise<Ended> {
    const { connection, exited } = this.#process;
    void exited.then(() => this.#pace.end());
    try {
      await readFrames(connection, frameBytesMax, this.#receive, this.#pace);
    } catch (error) {
      // A connection that breaks is a process that ended; anything else is what it sent.
      if (!isConnectionEnd(error)) {
        this.#killed ??= { why: `its frames were not readable: ${messageOf(error)}`, cause: "frames" };
      }
    }
    // A process that closed its connection by itself is about to end, and says why on its way.
    const late = setTimeout(() => this.#process.kill(), this.#killed === undefined ? LAST_WORDS_MS : 0);
    const { said, signal, code } = await exited;
    clearTimeout(late);
    this.#over = true;
    this.writer.close();
    this.hold.end();
    this.#cores.leave();
    const end: IsolateEnd = this.#closing
      ? { kind: "closed" }
      : this.#killed !== undefined
      ? { kind: "killed", ...this.#killed }
      : { kind: "crashed", why: crashReason(said, signal, code) };
    const why = endText(end);
    this.#ready.reject(new Error(why));
    this.#loaded.resolve({ kind: "failed", code: "isolate_killed", message: why, stack: "" });
    const handed = this.handBack(end, this.#process);
    this.#process.release();
    return await handed;
  }

  #unread = (bytes: number): void =>
    this.kill(`it does not read what it is sent: ${bytes >> 20} MiB wait`, "unread");

  #kept = (bytes: number): void => {
    this.hold.add(bytes - this.#keptBytes);
    this.#keptBytes = bytes;
  };

  #receive = (type: number, id: number, payload: Payload): void => {
    if (this.#killed !== undefined) return;
    this.framesSeen++;
    switch (type) {
      case ISOLATE_FRAME.ready:
        return this.#ready.resolve();
      case ISOLATE_FRAME.loaded:
        return this.#loaded.resolve({ kind: "loaded", manifest: readJson(payload) });
      case ISOLATE_FRAME.loadFailed:
        return this.#loaded.resolve({ kind: "failed", ...readAppError(payload) });
      default:
        return this.receive(type, id, payload);
    }
  };
}

/** Returns an end as those are told whose requests were in it. */
export const endText = (end: IsolateEnd): string =>
  end.kind === "closed" ? "the isolate was closed" : `the isolate ended: ${end.why}`;

/**
 * Codes of the errors with which a connection ends whose process is gone: Deno has no class for some of these on Unix
 * sockets.
 */
const END_CODES: ReadonlySet<unknown> = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "ENOTCONN"]);

function isConnectionEnd(error: unknown): boolean {
  if (error instanceof Error && END_CODES.has((error as { code?: unknown }).code)) return true;
  const { ConnectionReset, BrokenPipe, Interrupted, BadResource, UnexpectedEof } = Deno.errors;
  return [ConnectionReset, BrokenPipe, Interrupted, BadResource, UnexpectedEof].some((kind) =>
    error instanceof kind
  );
}

/** Returns why a process died of itself, from what it printed and how it ended. */
function crashReason(said: string, signal: string | null, code: number): string {
  if (/out of memory|OOM|allocation failed/i.test(said)) return "it ran out of memory";
  const last = said.split("\n").find((line) => line.trim() !== "") ?? "";
  const how = signal === null ? `exit code ${code}` : signal;
  return last === "" ? `it crashed (${how})` : `it crashed (${how}): ${last.slice(0, 200)}`;
}
