/**
 * An isolate of requests, as its site holds it: a process with an app (app_process.ts), and the exchanges that run in it.
 *
 * I2  When it ends, for whatever reason, every exchange in it is handed back exactly once.
 */
import type { AppQueues } from "./app_queues.ts";
import { AppProcess, endText, type IsolateEnd } from "./app_process.ts";
import { UNREAD_BYTES_MAX } from "./call_slots.ts";
import type { IsolateApp, IsolateCall, PendingCall } from "./call.ts";
import { ExchangeTable } from "./exchange_table.ts";
import { readEnd, readLogLine } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import { LoopRoom } from "./loop_room.ts";
import { FETCH_ID_BASE, FrameError, ISOLATE_FRAME, ISOLATE_FRAME_BYTES_MAX } from "./frames.ts";
import { HostExchange } from "./host_exchange.ts";
import type { IsolateProcess } from "./process.ts";
import type { HostEgress } from "./egress.ts";

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

/** The app of an isolate, and what it needs of its site. */
export interface IsolateParts {
  readonly app: IsolateApp;
  readonly owner: IsolateOwner;
  /** Makes its outgoing fetches; left out, it has none. */
  readonly egress?: HostEgress;
  /** Queues of the app at this site; left out, the isolate has its own. */
  readonly queues?: AppQueues;
}

/** Id of the ping of loop_room.ts; the watchdog's is 0. */
const ROOM_PING = 1;

/** An isolate of requests in a process of its own. */
export class Isolate extends AppProcess<IsolateEnd> {
  readonly exchanges = new ExchangeTable<HostExchange>();
  readonly #owner: IsolateOwner;
  readonly #egress: HostEgress | undefined;
  readonly #room: LoopRoom;
  #nextId = 1;
  /** Takes lines that belong to no open request: they are still the app's. */
  #strayLog: IsolateCall["strayLog"];
  /** True while the event loop does not turn, as the watchdog found: nothing new is sent there. */
  isStuck = false;

  constructor(process: IsolateProcess, { app, owner, egress, queues }: IsolateParts) {
    super(process, app, ISOLATE_FRAME_BYTES_MAX, queues);
    this.#owner = owner;
    this.#egress = egress;
    this.#room = new LoopRoom(app.limits.requestsMax);
  }

  /** Begins an attempt of a call. */
  start(pending: PendingCall, nowMs: number): void {
    pending.placements++;
    const id = this.#nextId++;
    const { call } = pending;
    this.#strayLog = call.strayLog ?? this.#strayLog;
    call.span?.set("faas.coldstart", id === 1).set("faas.instance", String(this.pid));
    const exchange = new HostExchange(this.writer, id, pending, {
      dueMs: nowMs + pending.wallMs,
      closed: this.#exchangeClosed,
      hold: this.hold,
    });
    this.exchanges.add(exchange);
    exchange.begin();
  }

  /** True where the isolate may be given one more request now. */
  get hasRoom(): boolean {
    return !this.isOver && !this.isStuck && this.#room.isFor(this.exchanges.size);
  }

  /** True where another isolate would sooner do the requests that this one is not given. */
  get isFull(): boolean {
    return this.isOver || this.isStuck || this.#room.isFull;
  }

  /** Notes that more requests wait: where the isolate has time for them, its owner is told soon that it has room. */
  want(nowMs: number): void {
    if (this.isOver || !this.#room.wanted(this.exchanges.size, nowMs)) return;
    this.writer.signal(ISOLATE_FRAME.ping, ROOM_PING);
  }

  /** Number of requests begun here so far. */
  get begun(): number {
    return this.#nextId - 1;
  }

  /** True while its frames are not read (app_turns.ts), unless it leaves its answers unread. */
  override get isHeld(): boolean {
    return super.isHeld && this.writer.backlogBytes <= UNREAD_BYTES_MAX;
  }

  #exchangeClosed = (exchange: HostExchange): void => {
    this.exchanges.delete(exchange.id);
    this.#owner.freed(this);
  };

  protected override handBack(end: IsolateEnd, process: IsolateProcess): IsolateEnd {
    this.#egress?.close();
    const lastStarted = process.lastStarted();
    const cut = [...this.exchanges.values()];
    this.exchanges.clear();
    const why = endText(end);
    for (const exchange of cut) exchange.end(why);
    this.#owner.ended(this, end, { cut, lastStarted });
    return end;
  }

  protected override receive(type: number, id: number, payload: Payload): void {
    switch (type) {
      case ISOLATE_FRAME.pong:
        if (id !== ROOM_PING) return;
        this.#room.answered(performance.now());
        return this.#owner.freed(this);
      case ISOLATE_FRAME.log:
        return this.#log(id, payload);
      case ISOLATE_FRAME.fetchStart: {
        if (id < FETCH_ID_BASE) throw new FrameError(`${id} is no channel of a fetch`);
        const owner = this.exchanges.get(payload.u32());
        return this.#egress?.start(this.writer, id, payload, owner, this.hold.queues);
      }
      default:
        if (id >= FETCH_ID_BASE) this.#egress?.receive(type, id, payload);
        else this.exchanges.get(id)?.receive(type, payload);
    }
  }

  #log(id: number, payload: Payload): void {
    const line = readLogLine(payload);
    readEnd(payload);
    const call = this.exchanges.get(id)?.pending.call;
    if (call !== undefined) call.log(line);
    else this.#strayLog?.(line);
  }
}
