/**
 * An isolate, as its site holds it: a process, its connection, and the exchanges that run in it.
 *
 * Stages: `spare` (bootstrap waiting) → `loading` (bundle on its way) → `serving` → `ended`. Every stage can end.
 *
 * I1  An isolate is given one app version in its life, and never another.
 * I2  When it ends, for whatever reason, every exchange in it is handed back exactly once.
 * I3  An isolate that does not read what it asks for is killed before the site's memory fills; what it sends after
 *     it was killed is ignored. What waits for it counts among the queues of its app (app_queues.ts).
 */
import { strict as assert } from "node:assert";
import type { CoreMember } from "./app_cores.ts";
import { AppQueues } from "./app_queues.ts";
import { ReadPace } from "./app_turns.ts";
import { messageOf } from "./bodies.ts";
import { UNREAD_BYTES_MAX } from "./call_slots.ts";
import type { IsolateApp, IsolateCall, PendingCall } from "./call.ts";
import { ExchangeTable } from "./exchange_table.ts";
import { readEnd, readJson, readLogLine } from "./frame_fields.ts";
import { type Payload, readFrames } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { LoopRoom } from "./loop_room.ts";
import { BUFFER_BYTES, FETCH_ID_BASE, FrameError, ISOLATE_FRAME, ISOLATE_FRAME_BYTES_MAX } from "./frames.ts";
import { type ExchangeQueues, HostExchange } from "./host_exchange.ts";
import type { IsolateProcess } from "./process.ts";
import type { ProcessUsage } from "./process_usage.ts";
import { readAppError } from "./store_frames.ts";
import type { Egress } from "./egress.ts";

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

/** The part of a site that is told of an isolate's life. */
export interface IsolateOwner {
  /** Called when a place has become free. */
  freed(isolate: Isolate): void;
  ended(isolate: Isolate, end: IsolateEnd, left: LeftOver): void;
}

/** The exchanges that were in an isolate when it ended. */
export interface LeftOver {
  readonly cut: readonly HostExchange[];
  /** Highest id of the exchanges that had started; the one with it is the likeliest to have ended the isolate. */
  readonly lastStarted: number;
}

/** A bundle and how to run it. */
export interface LoadRequest {
  readonly app: IsolateApp;
  readonly bundle: Uint8Array;
  readonly evaluate: boolean;
  /** Queues of the app at this site; left out, the isolate has its own. */
  readonly queues?: AppQueues;
}

/** Milliseconds that a process may take from closing its connection to its end. */
const LAST_WORDS_MS = 200;
/** Id of the ping of loop_room.ts; the watchdog's is 0. */
const ROOM_PING = 1;

/** An isolate in a process of its own. */
export class Isolate {
  readonly pid: number;
  readonly exchanges = new ExchangeTable<HostExchange>();
  /** Resolves when the bootstrap waits for a bundle; rejects when the process ends before. */
  readonly ready: Promise<void>;
  readonly ended: Promise<IsolateEnd>;
  readonly #process: IsolateProcess;
  #cores: CoreMember | undefined;
  readonly #writer: FrameWriter;
  readonly #ready = Promise.withResolvers<void>();
  #loaded: PromiseWithResolvers<LoadOutcome> | undefined;
  #owner: IsolateOwner | undefined;
  #app: IsolateApp | undefined;
  #egress: Egress | undefined;
  #queues: ExchangeQueues | undefined;
  readonly #pace = new ReadPace();
  #keptBytes = BUFFER_BYTES;
  #killed: { readonly why: string; readonly cause: KillCause } | undefined;
  #closing = false;
  #over = false;
  #nextId = 1;
  /** Takes lines that belong to no open request: they are still the app's. */
  #strayLog: IsolateCall["strayLog"];
  #room: LoopRoom | undefined;
  /** Number of frames of this isolate so far: while it rises, the isolate's event loop turns. */
  framesSeen = 0;
  /** True while the event loop does not turn, as the watchdog found: nothing new is sent there. */
  isStuck = false;

  constructor(process: IsolateProcess) {
    this.#process = process;
    this.pid = process.pid;
    // Reading ends then too, and tells the reason better.
    this.#writer = new FrameWriter(process.connection, () => {}, this.#unread, this.#kept);
    this.ready = this.#ready.promise;
    this.ready.catch(() => {});
    this.ended = this.#run();
  }

  /** True once the isolate takes no more requests. */
  get isOver(): boolean {
    return this.#over || this.#closing || this.#killed !== undefined;
  }

  /** True once its process is gone, and its owner knows. */
  get hasEnded(): boolean {
    return this.#over;
  }

  /** Gives the isolate its app (I1). */
  async load(request: LoadRequest, owner: IsolateOwner, egress: Egress | undefined): Promise<LoadOutcome> {
    assert(this.#loaded === undefined, "I1: an isolate is given one app version, once");
    this.#owner = owner;
    this.#egress = egress;
    this.#loaded = Promise.withResolvers<LoadOutcome>();
    if (this.isOver) {
      return { kind: "failed", code: "isolate_killed", message: "the isolate ended", stack: "" };
    }
    this.#app = request.app;
    this.#room = new LoopRoom(request.app.limits.requestsMax);
    this.#queues = this.#queuesOf(request.queues);
    this.#cores = this.#queues.app.cores.join(this.#process);
    const options = {
      vars: request.app.vars,
      secrets: request.app.secrets?.() ?? {},
      atRoot: request.app.atRoot ?? true,
      waitUntilMs: request.app.limits.waitUntilMs,
      name: request.app.app,
      evaluate: request.evaluate,
    };
    this.#writer.begin(ISOLATE_FRAME.load, 0).text(JSON.stringify(options)).rest(request.bundle).end();
    return await this.#loaded.promise;
  }

  /** Tells the isolate the present values of its app's secrets, where it runs that app. */
  refreshSecrets(app: string): void {
    if (this.#app?.app !== app || this.#app.secrets === undefined || this.isOver) return;
    this.#writer.begin(ISOLATE_FRAME.secrets, 0).text(JSON.stringify(this.#app.secrets())).end();
  }

  /** Begins an attempt of a call. */
  start(pending: PendingCall, nowMs: number): void {
    pending.placements++;
    const id = this.#nextId++;
    const { call } = pending;
    this.#strayLog = call.strayLog ?? this.#strayLog;
    call.span?.set("faas.coldstart", id === 1).set("faas.instance", String(this.pid));
    const exchange = new HostExchange(this.#writer, id, pending, {
      dueMs: nowMs + pending.wallMs,
      closed: this.#exchangeClosed,
      queues: this.#queues ??= this.#queuesOf(undefined),
    });
    this.exchanges.add(exchange);
    exchange.begin();
  }

  /** True where the isolate may be given one more request now. */
  get hasRoom(): boolean {
    return !this.isOver && !this.isStuck && this.#room?.isFor(this.exchanges.size) === true;
  }

  /** True where another isolate would sooner do the requests that this one is not given. */
  get isFull(): boolean {
    return this.isOver || this.isStuck || this.#room?.isFull !== false;
  }

  /** Notes that more requests wait: where the isolate has time for them, its owner is told soon that it has room. */
  want(nowMs: number): void {
    if (this.isOver || this.#room?.wanted(this.exchanges.size, nowMs) !== true) return;
    this.#writer.signal(ISOLATE_FRAME.ping, ROOM_PING);
  }

  /** Number of requests begun here so far. */
  get begun(): number {
    return this.#nextId - 1;
  }

  /** Returns what its process uses, all of its threads together. */
  usage(): ProcessUsage | undefined {
    const usage = this.#process.usage();
    if (usage !== undefined) this.#cores?.looked(usage.cpuMs);
    return usage;
  }

  /** True while its frames are not read (app_turns.ts), unless it leaves its answers unread. */
  get isHeld(): boolean {
    return this.#pace.isHeld && this.#writer.backlogBytes <= UNREAD_BYTES_MAX;
  }

  /** Asks for a sign of life. */
  ping(): void {
    this.#writer.signal(ISOLATE_FRAME.ping, 0);
  }

  /** Ends the process at once; its exchanges go back to the owner when it is gone. */
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

  #exchangeClosed = (exchange: HostExchange): void => {
    this.exchanges.delete(exchange.id);
    this.#owner?.freed(this);
  };

  async #run(): Promise<IsolateEnd> {
    void this.#process.exited.then(() => this.#pace.end());
    try {
      await readFrames(this.#process.connection, ISOLATE_FRAME_BYTES_MAX, this.#receive, this.#pace);
    } catch (error) {
      // A connection that breaks is a process that ended; anything else is what it sent.
      if (!isConnectionEnd(error)) {
        this.#killed ??= { why: `its frames were not readable: ${messageOf(error)}`, cause: "frames" };
      }
    }
    // A process that closed its connection by itself is about to end, and says why on its way.
    const late = setTimeout(() => this.#process.kill(), this.#killed === undefined ? LAST_WORDS_MS : 0);
    const { said, signal, code } = await this.#process.exited;
    clearTimeout(late);
    this.#over = true;
    this.#writer.close();
    const lastStarted = this.#process.lastStarted();
    this.#process.release();
    const end: IsolateEnd = this.#closing
      ? { kind: "closed" }
      : this.#killed !== undefined
      ? { kind: "killed", ...this.#killed }
      : { kind: "crashed", why: crashReason(said, signal, code) };
    this.#handBack(end, lastStarted);
    return end;
  }

  #handBack(end: IsolateEnd, lastStarted: number): void {
    const why = end.kind === "closed" ? "the isolate was closed" : `the isolate ended: ${end.why}`;
    this.#ready.reject(new Error(why));
    this.#loaded?.resolve({ kind: "failed", code: "isolate_killed", message: why, stack: "" });
    this.#egress?.close();
    this.#queues?.isolate.end();
    this.#cores?.leave();
    const cut = [...this.exchanges.values()];
    this.exchanges.clear();
    for (const exchange of cut) exchange.end(why);
    this.#owner?.ended(this, end, { cut, lastStarted });
  }

  #unread = (bytes: number): void =>
    this.kill(`it does not read its answers: ${bytes >> 20} MiB wait to be sent to it`, "unread");

  #queuesOf(app: AppQueues = new AppQueues()): ExchangeQueues {
    const isolate = app.hold("isolate", (why) => this.kill(why, "queues"));
    this.#pace.turns = app.turns;
    if (this.#keptBytes > BUFFER_BYTES) isolate.add(this.#keptBytes - BUFFER_BYTES);
    return { app, isolate };
  }

  #kept = (bytes: number): void => {
    const more = bytes - this.#keptBytes;
    this.#keptBytes = bytes;
    this.#queues?.isolate.add(more);
  };

  #receive = (type: number, id: number, payload: Payload): void => {
    if (this.#killed !== undefined) return;
    this.framesSeen++;
    switch (type) {
      case ISOLATE_FRAME.ready:
        return this.#ready.resolve();
      case ISOLATE_FRAME.pong:
        if (id !== ROOM_PING) return;
        this.#room?.answered(performance.now());
        return this.#owner?.freed(this);
      case ISOLATE_FRAME.loaded:
        return this.#loaded?.resolve({ kind: "loaded", manifest: readJson(payload) });
      case ISOLATE_FRAME.loadFailed:
        return this.#loaded?.resolve({ kind: "failed", ...readAppError(payload) });
      case ISOLATE_FRAME.log:
        return this.#log(id, payload);
      case ISOLATE_FRAME.fetchStart: {
        if (id < FETCH_ID_BASE) throw new FrameError(`${id} is no channel of a fetch`);
        const owner = this.exchanges.get(payload.u32());
        const queues = this.#queues ??= this.#queuesOf(undefined);
        return this.#egress?.start(this.#writer, id, payload, owner, queues.app);
      }
      default:
        if (id >= FETCH_ID_BASE) this.#egress?.receive(type, id, payload);
        else this.exchanges.get(id)?.receive(type, payload);
    }
  };

  #log(id: number, payload: Payload): void {
    const line = readLogLine(payload);
    readEnd(payload);
    const call = this.exchanges.get(id)?.pending.call;
    if (call !== undefined) call.log(line);
    else this.#strayLog?.(line);
  }
}

/**
 * Codes of the errors with which a connection ends whose process is gone: Deno has no class for some of these on Unix
 * sockets.
 */
const END_CODES: ReadonlySet<unknown> = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "ENOTCONN"]);

export function isConnectionEnd(error: unknown): boolean {
  if (error instanceof Error && END_CODES.has((error as { code?: unknown }).code)) return true;
  const { ConnectionReset, BrokenPipe, Interrupted, BadResource, UnexpectedEof } = Deno.errors;
  return [ConnectionReset, BrokenPipe, Interrupted, BadResource, UnexpectedEof].some((kind) =>
    error instanceof kind
  );
}

/** Returns why a process died of itself, from what it printed and how it ended. */
export function crashReason(said: string, signal: string | null, code: number): string {
  if (/out of memory|OOM|allocation failed/i.test(said)) return "it ran out of memory";
  const last = said.split("\n").find((line) => line.trim() !== "") ?? "";
  const how = signal === null ? `exit code ${code}` : signal;
  return last === "" ? `it crashed (${how})` : `it crashed (${how}): ${last.slice(0, 200)}`;
}
