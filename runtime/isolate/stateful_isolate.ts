/**
 * An isolate of stateful sessions, as its site holds it: a process, its connection, and the sessions that are open in
 * it, each on a channel of its own (session_frames.ts).
 *
 * Stages: process started → `load` (an app version) → channels open and close → `ended`. Every stage can end.
 *
 * I1  An isolate is given one app version in its life, and stateful sessions only.
 * I2  When it ends, for whatever reason, every channel that was open is told so once, and which session ran.
 * I3  A turn that holds the event loop for more CPU time than one request may use, or memory beyond the bounds, ends
 *     the process; what it sends after it was killed is ignored.
 */
import { strict as assert } from "node:assert";
import type {
  Acknowledged,
  OpenSession,
  Promotion,
  SessionEvent,
} from "../../functions/sessions/turn/mod.ts";
import type { CoreMember } from "./app_cores.ts";
import { AppQueues, type QueueHold } from "./app_queues.ts";
import { ReadPace } from "./app_turns.ts";
import { messageOf } from "./bodies.ts";
import { receiveChannel } from "./channel.ts";
import type { ChannelSink, StatefulEnd } from "../../functions/sessions/serve/ports.ts";
import { readJson, readLogLine } from "./frame_fields.ts";
import { type Payload, readFrames } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { BUFFER_BYTES, FRAME_TO_ISOLATE_BYTES_MAX, ISOLATE_FRAME } from "./frames.ts";
import { nextTurn } from "../loop/next_turn.ts";
import { crashReason, isConnectionEnd, type LoadOutcome } from "./isolate.ts";
import type { IsolateApp } from "./call.ts";
import type { IsolateProcess } from "./process.ts";
import { writeAcknowledged, writeEvent, writeOpen, writePromotion } from "./session_frames.ts";
import { StatesComing, StateSender } from "./state_frames.ts";
import { readAppError } from "./store_frames.ts";
import { TurnWatch } from "./turn_watch.ts";

/** Milliseconds that a process may take from closing its connection to its end. */
const LAST_WORDS_MS = 200;

/** Number of sessions that are told in one turn that their isolate has ended: a millisecond or two. */
const TOLD_AT_ONCE = 64;

/** An isolate of stateful sessions; see the file's header. */
export class StatefulIsolate {
  readonly ended: Promise<StatefulEnd>;
  readonly app: IsolateApp;
  readonly #process: IsolateProcess;
  readonly #writer: FrameWriter;
  readonly #channels = new Map<number, ChannelSink>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #loaded = Promise.withResolvers<LoadOutcome>();
  readonly #watch: TurnWatch;
  readonly #states: StateSender;
  readonly #coming: StatesComing;
  readonly #hold: QueueHold;
  readonly #cores: CoreMember;
  readonly #pace = new ReadPace();
  #keptBytes = BUFFER_BYTES;
  /** Takes lines that belong to no session: module code. */
  readonly #strayLog: (level: string, text: string) => void;
  #loads = 0;
  #next = 1;
  #killed: string | undefined;
  #cause: number | undefined;
  #closing = false;
  #over = false;

  /** @param queues those of the app at this site. */
  constructor(
    process: IsolateProcess,
    app: IsolateApp,
    strayLog: (level: string, text: string) => void,
    queues: AppQueues = new AppQueues(),
  ) {
    const hold = this.#hold = queues.hold("isolate", (why) => this.kill(why));
    this.#pace.turns = queues.turns;
    this.#coming = new StatesComing((bytes) => hold.add(bytes));
    this.#process = process;
    this.app = app;
    this.#strayLog = strayLog;
    this.#writer = new FrameWriter(process.connection, () => {}, (bytes) => {
      this.kill(`it does not read what it is sent: ${bytes >> 20} MiB wait`);
    }, (bytes) => {
      hold.add(bytes - this.#keptBytes);
      this.#keptBytes = bytes;
    });
    this.#states = new StateSender(this.#writer);
    const cores = this.#cores = queues.cores.join(process);
    this.#watch = new TurnWatch({
      limits: app.limits,
      usage: () => {
        const usage = process.usage();
        if (usage !== undefined) cores.looked(usage.cpuMs);
        return usage;
      },
      isHeld: () => this.#pace.isHeld,
      ping: () => this.#writer.signal(ISOLATE_FRAME.ping, 0),
      kill: (why) => this.kill(why),
    });
    this.#ready.promise.catch(() => {});
    this.ended = this.#run();
  }

  /** True once the isolate takes no more sessions. */
  get isOver(): boolean {
    return this.#over || this.#closing || this.#killed !== undefined;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Number of sessions that are open in it. */
  get size(): number {
    return this.#channels.size;
  }

  /** Gives the isolate its app (I1). */
  async load(bundle: Uint8Array, site: string, clockShare: number): Promise<LoadOutcome> {
    assert(++this.#loads === 1, "I1: an isolate is given one app version, once");
    const { app } = this;
    const timer = setTimeout(
      () => this.kill(`the bundle did not load in ${app.limits.loadMs} ms`),
      app.limits.loadMs,
    );
    try {
      await this.#ready.promise;
      const options = {
        vars: app.vars,
        secrets: app.secrets?.() ?? {},
        atRoot: app.atRoot ?? true,
        waitUntilMs: app.limits.waitUntilMs,
        name: app.app,
        evaluate: false,
        site,
        clockShare,
      };
      this.#writer.begin(ISOLATE_FRAME.load, 0).text(JSON.stringify(options)).rest(bundle).end();
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
    this.#writer.begin(ISOLATE_FRAME.secrets, 0).text(JSON.stringify(this.app.secrets())).end();
  }

  /** Has the isolate do what makes its first opening faster; a session that is opened meanwhile waits for a moment. */
  rehearse(): void {
    this.#writer.signal(ISOLATE_FRAME.rehearse, 0);
  }

  /** Opens a session; returns its channel. */
  open(session: OpenSession, sink: ChannelSink): number {
    const channel = this.#next++;
    this.#channels.set(channel, sink);
    this.#states.send(channel, session.checkpoint?.state ?? [], () => {
      writeOpen(this.#writer.begin(ISOLATE_FRAME.sessionOpen, channel), session);
      this.#writer.end();
      this.#watch.begin();
    });
    return channel;
  }

  /** Opens a session that another site runs, to follow it; of its sink only `parked` and `ended` are called. */
  follow(session: OpenSession, sink: ChannelSink): number {
    const channel = this.#next++;
    this.#channels.set(channel, sink);
    this.#followed(channel, session.checkpoint?.state ?? [], () => {
      writeOpen(this.#writer.begin(ISOLATE_FRAME.sessionFollow, channel), session);
    });
    return channel;
  }

  /** Passes on entries that were appended to the log of a session that is followed. */
  piece(channel: number, entries: Uint8Array): void {
    if (!this.#channels.has(channel)) return;
    this.#followed(channel, [], () => this.#writer.begin(ISOLATE_FRAME.sessionPiece, channel).rest(entries));
  }

  /** Has a followed session run here from now on; `sink` is told what becomes of it. */
  promote(channel: number, promotion: Promotion, sink: ChannelSink): void {
    if (!this.#channels.has(channel)) return;
    this.#channels.set(channel, sink);
    this.#followed(channel, [], () => {
      writePromotion(this.#writer.begin(ISOLATE_FRAME.sessionPromote, channel), promotion);
    });
  }

  /** Writes a frame behind the state that the session was opened with, which may be on its way still. */
  #followed(channel: number, state: readonly Uint8Array[], write: () => unknown): void {
    this.#states.send(channel, state, () => {
      write();
      this.#writer.end();
      this.#watch.begin();
    });
  }

  deliver(channel: number, event: SessionEvent): void {
    if (!this.#channels.has(channel)) return;
    writeEvent(this.#writer.begin(ISOLATE_FRAME.sessionEvent, channel), event);
    this.#writer.end();
    this.#watch.begin();
  }

  acknowledge(channel: number, acknowledged: Acknowledged): void {
    if (!this.#channels.has(channel)) return;
    writeAcknowledged(this.#writer.begin(ISOLATE_FRAME.sessionAcknowledged, channel), acknowledged);
    this.#writer.endLater();
  }

  /** Asks for a checkpoint as soon as the session is at rest. */
  checkpointNow(channel: number): void {
    if (this.#channels.has(channel)) this.#writer.signal(ISOLATE_FRAME.sessionCheckpointNow, channel);
  }

  /** Closes a session's channel: it leaves this isolate, and its sink is told nothing more. */
  closeChannel(channel: number): void {
    if (!this.#channels.delete(channel)) return;
    this.#states.drop(channel);
    this.#coming.drop(channel);
    this.#writer.signal(ISOLATE_FRAME.sessionClose, channel);
  }

  /** @param cause channel of the session that is to blame; left out: the one whose turn it is. */
  kill(why: string, cause?: number): void {
    if (this.#killed === undefined) this.#cause = cause;
    this.#killed ??= why;
    this.#process.kill();
  }

  /** Ends the process as no longer needed. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#process.kill();
    await this.ended;
  }

  async #run(): Promise<StatefulEnd> {
    void this.#process.exited.then(() => this.#pace.end());
    try {
      await readFrames(this.#process.connection, FRAME_TO_ISOLATE_BYTES_MAX, this.#receive, this.#pace);
    } catch (error) {
      // A connection that breaks is a process that ended; anything else is what it sent.
      if (!isConnectionEnd(error)) this.#killed ??= `its frames were not readable: ${messageOf(error)}`;
    }
    const late = setTimeout(() => this.#process.kill(), this.#killed === undefined ? LAST_WORDS_MS : 0);
    const { said, signal, code } = await this.#process.exited;
    clearTimeout(late);
    this.#over = true;
    this.#watch.close();
    this.#writer.close();
    this.#hold.end();
    this.#cores.leave();
    const last = this.#cause === undefined
      ? this.#process.lastTurn()
      : { channel: this.#cause, received: Infinity };
    this.#process.release();
    const why = this.#closing ? "it was closed" : this.#killed ?? crashReason(said, signal, code);
    const end: StatefulEnd = { isPlanned: this.#closing, why, ...last };
    this.#ready.reject(new Error(`the isolate ended: ${why}`));
    this.#loaded.resolve({ kind: "failed", code: "isolate_killed", message: why, stack: "" });
    await this.#tell(end);
    return end;
  }

  /**
   * Tells every channel that the isolate has ended (I2), a few in each turn of the event loop: thousands would hold up
   * everything else. The session whose turn it was is told first.
   */
  async #tell(end: StatefulEnd): Promise<void> {
    const cause = this.#channels.get(end.channel);
    this.#channels.delete(end.channel);
    const others = [...this.#channels.values()];
    this.#channels.clear();
    cause?.ended(end, true);
    for (const [i, sink] of others.entries()) {
      if (i % TOLD_AT_ONCE === TOLD_AT_ONCE - 1) await nextTurn();
      sink.ended(end, false);
    }
  }

  /**
   * Adds to the bytes from this isolate that wait at this site, among the queues of its app; less than 0 gives them
   * back.
   */
  holds(bytes: number): void {
    this.#hold.add(bytes);
  }

  #kept = (bytes: number, until: Promise<void>): void => {
    this.#hold.add(bytes);
    until.then(() => this.#hold.add(-bytes));
  };

  #receive = (type: number, id: number, payload: Payload): void => {
    if (this.#killed !== undefined) return;
    this.#watch.seen();
    switch (type) {
      case ISOLATE_FRAME.ready:
        return this.#ready.resolve();
      case ISOLATE_FRAME.pong:
        return;
      case ISOLATE_FRAME.loaded:
        return this.#loaded.resolve({ kind: "loaded", manifest: readJson(payload) });
      case ISOLATE_FRAME.loadFailed:
        return this.#loaded.resolve({ kind: "failed", ...readAppError(payload) });
    }
    const sink = this.#channels.get(id);
    if (sink !== undefined && type === ISOLATE_FRAME.sessionState) this.#coming.add(id, payload);
    else if (sink !== undefined) receiveChannel(sink, type, payload, () => this.#coming.take(id), this.#kept);
    else if (type === ISOLATE_FRAME.log) {
      const { level, text } = readLogLine(payload);
      this.#strayLog(level, text);
    }
  };
}
