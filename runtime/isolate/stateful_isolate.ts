/**
 * An isolate of stateful sessions, as its site holds it: a process with an app (app_process.ts), and the sessions that
 * are open in it, each on a channel of its own (session_frames.ts).
 *
 * I2  When it ends, for whatever reason, every channel that was open is told so once, and which session ran.
 * I3  A turn that holds the event loop for more CPU time than one request may use, or memory beyond the bounds, ends
 *     the process.
 */
import type {
  Acknowledged,
  OpenSession,
  Promotion,
  SessionEvent,
} from "../../functions/sessions/turn/mod.ts";
import { AppProcess, type IsolateEnd } from "./app_process.ts";
import type { AppQueues } from "./app_queues.ts";
import { receiveChannel } from "./channel.ts";
import type { ChannelSink, StatefulEnd } from "../../functions/sessions/serve/ports.ts";
import { readLogLine } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import { FRAME_TO_ISOLATE_BYTES_MAX, ISOLATE_FRAME } from "./frames.ts";
import { nextTurn } from "../loop/next_turn.ts";
import type { IsolateApp } from "./call.ts";
import type { IsolateProcess } from "./process.ts";
import { writeAcknowledged, writeEvent, writeOpen, writePromotion } from "./session_frames.ts";
import { StatesComing, StateSender } from "./state_frames.ts";
import { TurnWatch } from "./turn_watch.ts";

/** Number of sessions that are told in one turn that their isolate has ended: a millisecond or two. */
const TOLD_AT_ONCE = 64;

/** Takes lines that belong to no session: module code. */
export type StrayLog = (level: string, text: string) => void;

/** An isolate of stateful sessions; see the file's header. */
export class StatefulIsolate extends AppProcess<StatefulEnd> {
  readonly #channels = new Map<number, ChannelSink>();
  readonly #watch: TurnWatch;
  readonly #states: StateSender;
  readonly #coming: StatesComing;
  readonly #strayLog: StrayLog;
  #next = 1;
  /** Channel of the session that is to blame, where one is. */
  #blamed: number | undefined;

  /** @param queues those of the app at this site. */
  constructor(process: IsolateProcess, app: IsolateApp, strayLog: StrayLog, queues?: AppQueues) {
    super(process, app, FRAME_TO_ISOLATE_BYTES_MAX, queues);
    this.#coming = new StatesComing((bytes) => this.hold.add(bytes));
    this.#strayLog = strayLog;
    this.#states = new StateSender(this.writer);
    this.#watch = new TurnWatch(this);
  }

  /** Number of sessions that are open in it. */
  get size(): number {
    return this.#channels.size;
  }

  /** Has the isolate do what makes its first opening faster; a session that is opened meanwhile waits for a moment. */
  rehearse(): void {
    this.writer.signal(ISOLATE_FRAME.rehearse, 0);
  }

  /** Opens a session; returns its channel. */
  open(session: OpenSession, sink: ChannelSink): number {
    return this.#open(ISOLATE_FRAME.sessionOpen, session, sink);
  }

  /** Opens a session that another site runs, to follow it; of its sink only `parked` and `ended` are called. */
  follow(session: OpenSession, sink: ChannelSink): number {
    return this.#open(ISOLATE_FRAME.sessionFollow, session, sink);
  }

  #open(frame: number, session: OpenSession, sink: ChannelSink): number {
    const channel = this.#next++;
    this.#channels.set(channel, sink);
    this.#behindState(channel, session.checkpoint?.state ?? [], () => {
      writeOpen(this.writer.begin(frame, channel), session);
    });
    return channel;
  }

  /** Passes on entries that were appended to the log of a session that is followed. */
  piece(channel: number, entries: Uint8Array): void {
    if (!this.#channels.has(channel)) return;
    this.#behindState(
      channel,
      [],
      () => this.writer.begin(ISOLATE_FRAME.sessionPiece, channel).rest(entries),
    );
  }

  /** Has a followed session run here from now on; `sink` is told what becomes of it. */
  promote(channel: number, promotion: Promotion, sink: ChannelSink): void {
    if (!this.#channels.has(channel)) return;
    this.#channels.set(channel, sink);
    this.#behindState(channel, [], () => {
      writePromotion(this.writer.begin(ISOLATE_FRAME.sessionPromote, channel), promotion);
    });
  }

  /** Writes a frame behind the state that the session was opened with, which may be on its way still. */
  #behindState(channel: number, state: readonly Uint8Array[], write: () => unknown): void {
    this.#states.send(channel, state, () => {
      write();
      this.writer.end();
      this.#watch.begin();
    });
  }

  deliver(channel: number, event: SessionEvent): void {
    if (!this.#channels.has(channel)) return;
    writeEvent(this.writer.begin(ISOLATE_FRAME.sessionEvent, channel), event);
    this.writer.end();
    this.#watch.begin();
  }

  acknowledge(channel: number, acknowledged: Acknowledged): void {
    if (!this.#channels.has(channel)) return;
    writeAcknowledged(this.writer.begin(ISOLATE_FRAME.sessionAcknowledged, channel), acknowledged);
    this.writer.endLater();
  }

  /** Asks for a checkpoint as soon as the session is at rest. */
  checkpointNow(channel: number): void {
    if (this.#channels.has(channel)) this.writer.signal(ISOLATE_FRAME.sessionCheckpointNow, channel);
  }

  /** Closes a session's channel: it leaves this isolate, and its sink is told nothing more. */
  closeChannel(channel: number): void {
    if (!this.#channels.delete(channel)) return;
    this.#states.drop(channel);
    this.#coming.drop(channel);
    this.writer.signal(ISOLATE_FRAME.sessionClose, channel);
  }

  /** Ends the process at once for what the session of a channel did. */
  killFor(channel: number, why: string): void {
    if (!this.isOver) this.#blamed = channel;
    this.kill(why, "frames");
  }

  protected override async handBack(end: IsolateEnd, process: IsolateProcess): Promise<StatefulEnd> {
    this.#watch.close();
    const last = this.#blamed === undefined
      ? process.lastTurn()
      : { channel: this.#blamed, received: Infinity };
    const isPlanned = end.kind === "closed", why = isPlanned ? "it was closed" : end.why;
    const told: StatefulEnd = { isPlanned, why, ...last };
    await this.#tell(told);
    return told;
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
    this.hold.add(bytes);
  }

  #kept = (bytes: number, until: Promise<void>): void => {
    this.hold.add(bytes);
    until.then(() => this.hold.add(-bytes));
  };

  protected override receive(type: number, id: number, payload: Payload): void {
    const sink = this.#channels.get(id);
    if (sink !== undefined && type === ISOLATE_FRAME.sessionState) this.#coming.add(id, payload);
    else if (sink !== undefined) receiveChannel(sink, type, payload, () => this.#coming.take(id), this.#kept);
    else if (type === ISOLATE_FRAME.log) {
      const { level, text } = readLogLine(payload);
      this.#strayLog(level, text);
    }
  }
}
