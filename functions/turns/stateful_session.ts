/**
 * One stateful session in its isolate: takes events, gives its program one turn after the other, writes the log, and
 * gives out commits.
 *
 * Life: opened (program filled from the checkpoint, log replayed) → turns → closed, parked or ended.
 *
 * ST1  One handler at a time: what begins one waits in the inbox until none runs; results and closure timers are
 *      delivered meanwhile, each a turn.
 * ST2  Outputs, effects and timers leave at commit points only: the end of a turn with no handler. Before, only calls
 *      leave, those with an effect together with the log up to them.
 * ST3  A handler that throws leaves one entry, `rejected`: the log is cut to the last commit point, the program made
 *      again from it, and results that had come since are delivered once more.
 * ST4  A turn is in the log before anything that came of it leaves.
 * ST5  Nothing is guessed: a log that can't be read or replayed, and a handler that waits for what nobody will
 *      deliver, park the session.
 */
import { Writer } from "../../store/codec.ts";
import { codeOf } from "../errors.ts";
import type { SessionState } from "../tracked/mod.ts";
import { digestOf, encodeCheckpoint } from "./checkpoint.ts";
import type { Acknowledged, Checkpoint, Parked, TimerChange } from "./commit.ts";
import type { OpenSession, SessionEvent } from "./event.ts";
import { stackText, thrown } from "./handler.ts";
import { writeCheckpointEntry, writeTurn } from "./log_entry.ts";
import { Program, type ProgramHost } from "./program.ts";
import { HOLD_BYTES, Inbox, type Numbered } from "./inbox.ts";
import { inputOf } from "./inputs.ts";
import { LiveSource } from "./live_source.ts";
import { type Made, Outbox } from "./outbox.ts";
import { parkedError, recover, requireCode, stateOf, wholeState } from "./recovery.ts";
import type { RunTurn } from "./replay.ts";
import { SessionLog } from "./session_log.ts";
import type { SessionSink } from "./sink.ts";
import type { TurnInput } from "./turn.ts";
import { type Delivery, Waits } from "./waits.ts";

/** What a session needs of the isolate. */
export interface SessionHost extends ProgramHost {
  readonly sink: SessionSink;
  nowMs(): number;
  /** A value for the version of what a turn writes that no event of the site began, not before the last one. */
  storeClock(): number;
  /** Runs a turn: begins it, drains the microtasks, finishes it. */
  readonly run: RunTurn;
  /** Calls `localDue` after so many milliseconds. */
  arm(session: StatefulSession, local: number, ms: number): void;
  disarm(session: StatefulSession, local: number): void;
  /** It has something to do. */
  wake(session: StatefulSession): void;
}

/** A checkpoint is taken after so many turns or bytes: so much, at most, is replayed when a handler throws. */
const CHECKPOINT_TURNS = 256;
const CHECKPOINT_BYTES = 64 * 1024;
/** And after so much time in turns: a replay takes as long, and is one turn to who watches the isolate's CPU time. */
const CHECKPOINT_MS = 100;
/** A session that does not rest is parked at so many. */
const LOG_BYTES_MAX = 4 * 1024 * 1024;
const NOTHING: Made = { outputs: [], effects: [], timers: [] };

/** The entries of a turn on their way into a log. */
const entries = new Writer(4096);

/** See the file's header. */
export class StatefulSession {
  readonly channel: number;
  readonly #host: SessionHost;
  readonly #open: OpenSession;
  #program: Program;
  #state: SessionState | null = null;
  #log = new SessionLog(0, new Uint8Array(0), 0);
  /** The newest checkpoint, and the state as it has it. */
  #checkpoint: Checkpoint | null = null;
  #stateBytes: Uint8Array | null = null;
  readonly #inbox = new Inbox();
  #deliveries: Delivery[] = [];
  /** Deliveries since the last commit point. */
  #held: Delivery[] = [];
  /** The event whose handler runs. */
  #handling: Numbered | null = null;
  #through = 0;
  readonly #waits: Waits;
  readonly #outbox = new Outbox();
  #wantsCheckpoint = false;
  /** Time in turns since the newest checkpoint. */
  #turnsMs = 0;
  #isStarted = false;
  #isOver = false;

  constructor(host: SessionHost, channel: number, open: OpenSession) {
    this.#host = host;
    this.channel = channel;
    this.#open = open;
    this.#program = new Program(host, open.class, open.id);
    const programOf = () => this.#program;
    this.#waits = new Waits({
      nowMs: () => host.nowMs(),
      arm: (local, ms) => host.arm(this, local, ms),
      disarm: (local) => host.disarm(this, local),
      came: (input) => this.#came({ input, storeClock: 0 }),
      get program() {
        return programOf();
      },
    });
  }

  /** The program that runs now. */
  get program(): Program {
    return this.#program;
  }

  /** Parked, ended or closed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  // From the site

  /** Recovers what the log says, and tells what comes of it. */
  #start(): void {
    this.#isStarted = true;
    let timers: readonly TimerChange[];
    try {
      timers = this.#recover();
    } catch (error) {
      return this.#parkFor(error);
    }
    const program = this.#program;
    const { sequence } = this.#log;
    this.#host.sink.opened(this.channel, {
      sequence,
      outputs: [...this.#outbox.kept.outputs],
      effects: [...this.#outbox.kept.effects],
      timers,
      calls: program.callsOf(program.calls.keys()),
      handling: program.handler?.request ?? null,
      isQuiescent: program.isQuiescent,
      isEnded: program.isEnded,
    });
    if (program.isEnded) return this.close();
    this.#waits.resume(program, []);
    this.#beginEpoch();
  }

  deliver(event: SessionEvent): void {
    if (this.#isOver) return;
    if (event.kind !== "result") {
      if (this.#isHeld && this.#inbox.hasWaitedLong(this.#host.nowMs())) return this.#parkFull();
      this.#inbox.push(event);
      this.#host.wake(this);
    } else {
      const { call, outcome, storeClock } = event;
      const input = outcome.ok
        ? { kind: "result", call, bytes: outcome.bytes } as const
        : { kind: "error", call, code: outcome.code, message: outcome.message } as const;
      this.#came({ input, storeClock });
    }
  }

  #came(delivery: Delivery): void {
    if (this.#isOver) return;
    this.#deliveries.push(delivery);
    this.#host.wake(this);
  }

  acknowledge(acknowledged: Acknowledged): void {
    this.#outbox.acknowledge(acknowledged);
  }

  /** Takes a checkpoint as soon as it rests. */
  checkpointNow(): void {
    if (this.#isOver) return;
    this.#wantsCheckpoint = true;
    this.#host.wake(this);
  }

  /** Nothing is heard of it any more. */
  close(): void {
    this.#isOver = true;
    this.#waits.close();
    this.#inbox.clear();
    this.#deliveries = [];
  }

  /** A closure timer is due. */
  localDue(local: number): void {
    if (!this.#isOver) this.#waits.due(local);
  }

  // Turns

  /** There is something to do. */
  get hasWork(): boolean {
    if (this.#isOver) return false;
    if (!this.#isStarted || this.#deliveries.length > 0) return true;
    if (this.#program.handler !== null) return this.#isStopped;
    return (this.#inbox.first !== undefined && !this.#isHeld) ||
      (this.#wantsCheckpoint && this.#program.isQuiescent);
  }

  /** The log is near its limit and the session not at rest: no new handlers until it is. */
  get #isHeld(): boolean {
    return this.#log.lengthBytes >= HOLD_BYTES && !this.#program.isQuiescent;
  }

  /** The handler that runs was begun in an isolate that it took with it: it is not to go on here. */
  get #isStopped(): boolean {
    const { first } = this.#inbox;
    return first?.kind === "reject" && this.#handling === null &&
      this.#program.handler?.request === first.request;
  }

  /** Does one thing: recovers, runs a turn, or takes a checkpoint. */
  step(): void {
    if (!this.#isStarted) return this.#start();
    const stop = this.#isStopped ? this.#inbox.take() : undefined;
    if (stop !== undefined) return this.#handle(stop);
    const delivery = this.#deliveries.shift();
    if (delivery !== undefined) return this.#deliver(delivery);
    if (this.#program.handler !== null) return;
    if (this.#wantsCheckpoint && this.#program.isQuiescent) return this.#commitPoint();
    const event = this.#isHeld ? undefined : this.#inbox.take();
    if (event !== undefined) this.#handle(event);
  }

  #deliver(delivery: Delivery): void {
    const { input, storeClock } = delivery;
    const isOpen = input.kind === "local"
      ? this.#program.locals.has(input.local)
      : this.#program.calls.has(input.call);
    if (!isOpen) return;
    this.#held.push(delivery);
    this.#turn(input, storeClock);
  }

  #handle(event: Numbered): void {
    this.#handling = event;
    if (event.kind === "reject") return this.#rejected(event, event.isBackground ? "all" : "none");
    const input = inputOf(this.#program, event);
    if (input === null) this.#commitPoint();
    else this.#turn(input, event.storeClock);
  }

  /** Runs a turn and records it; what came of it leaves where it may. */
  #turn(input: TurnInput, storeClock: number): void {
    const program = this.#program;
    if (!this.#record(input, storeClock)) return this.#threw(input, program.failure?.error);
    this.#collect();
    if (program.handler === null) return this.#commitPoint();
    if (this.#outbox.hasIntents) this.#give(false);
    if (this.#log.lengthBytes > LOG_BYTES_MAX) return this.#parkFull();
    if (program.calls.size === 0 && program.locals.size === 0) this.#parkWaiting();
  }

  /** One turn, and its entries in the log; false where it threw. */
  #record(input: TurnInput, storeClock: number): boolean {
    const program = this.#program;
    const beforeMs = program.clockMs;
    const begunMs = this.#host.nowMs();
    const end = this.#host.run(program, input, new LiveSource(this.#host, storeClock));
    this.#turnsMs += this.#host.nowMs() - begunMs;
    if (program.failure !== null) return false;
    entries.clear();
    this.#log.append(entries, writeTurn(entries, input, end, beforeMs));
    return true;
  }

  /** Takes what the program made in its turn: calls are made, timers armed, the rest waits for the commit point. */
  #collect(): void {
    const program = this.#program;
    const products = program.take();
    this.#outbox.add(products);
    for (const number of products.calls) this.#makeCall(number);
    for (const number of products.dropped) this.#host.sink.dropped(this.channel, number);
    for (const number of products.armed) {
      const local = program.locals.get(number);
      if (local !== undefined) this.#waits.arm(number, local.ms);
    }
    for (const number of products.disarmed) this.#waits.disarm(number);
  }

  #makeCall(number: number): void {
    const open = this.#program.calls.get(number);
    if (open === undefined) return;
    if (open.start !== undefined) return this.#waits.compute(number, open.start);
    for (const call of this.#program.callsOf([number])) {
      if (call.effect === null) this.#host.sink.call(this.channel, call);
      else this.#outbox.addIntent(call);
    }
  }

  // Commits

  #commitPoint(): void {
    const program = this.#program;
    if (this.#handling !== null) this.#through = this.#handling.number;
    this.#handling = null;
    this.#held = [];
    this.#log.point();
    this.#outbox.keep();
    const isDue = this.#wantsCheckpoint || this.#log.length >= CHECKPOINT_TURNS ||
      this.#log.lengthBytes >= CHECKPOINT_BYTES || this.#turnsMs >= CHECKPOINT_MS;
    if (!isDue || !program.isQuiescent || program.isEnded) this.#give(true);
    else this.#takeCheckpoint();
    if (program.isEnded) this.close();
    else if (this.#log.lengthBytes > LOG_BYTES_MAX) this.#parkFull();
  }

  #give(isPoint: boolean): void {
    const program = this.#program;
    this.#host.sink.commit(this.channel, {
      ...this.#log.give(),
      through: this.#through,
      isPoint,
      ...isPoint ? this.#outbox.take() : NOTHING,
      calls: this.#outbox.takeIntents(),
      isQuiescent: program.isQuiescent,
      check: program.check,
      isEnded: program.isEnded,
    });
  }

  #takeCheckpoint(): void {
    this.#wantsCheckpoint = false;
    this.#turnsMs = 0;
    if (this.#checkpoint !== null && this.#log.length === 0) {
      this.#give(true);
      return this.#host.sink.checkpoint(this.channel, this.#checkpoint);
    }
    let bytes: Uint8Array;
    let state: Uint8Array;
    try {
      state = wholeState(this.#stateBytes, this.#state?.checkpoint() ?? new Uint8Array(0));
      bytes = encodeCheckpoint(this.#program, { state, ...this.#outbox.kept });
    } catch (error) {
      this.#give(true);
      return this.#park("state_invalid", thrown(error).message, { code: codeOf(error) ?? null });
    }
    writeCheckpointEntry(entries.clear(), digestOf(bytes));
    this.#log.append(entries, 1);
    this.#log.point();
    const at = this.#log.sequence;
    this.#checkpoint = { at, bytes };
    this.#stateBytes = state;
    this.#give(true);
    this.#log.restart();
    this.#program.math.rest();
    this.#program.crypto.rest();
    this.#host.sink.checkpoint(this.channel, { at, bytes });
  }

  // Undoing

  /** ST3: something was thrown in the turn of this input. */
  #threw(input: TurnInput, error: unknown): void {
    const { code, message } = thrown(error);
    this.#host.sink.log(this.channel, "error", stackText(error));
    const request = this.#program.handler?.request ?? null;
    this.#rejected({ request, code, message }, input.kind === "local" ? input.local : "none");
  }

  #rejected(
    { request, code, message }: {
      readonly request: string | null;
      readonly code: string;
      readonly message: string;
    },
    drops: "none" | "all" | number,
  ): void {
    const { nextCall, nextLocal, nextEffect } = this.#program;
    const voids = this.#log.cut();
    const held = this.#held;
    this.#held = [];
    this.#outbox.drop();
    try {
      this.#reload();
    } catch (error) {
      return this.#parkFor(error);
    }
    // Again those that had come for what was open at the commit point: the others belong to nobody now.
    this.#deliveries.unshift(...held);
    const input = {
      kind: "rejected",
      voids,
      request,
      code,
      message,
      drops,
      nextCall,
      nextLocal,
      nextEffect,
    } as const;
    if (!this.#record(input, 0)) return this.#parkFor(this.#program.failure?.error);
    // Where the handler was begun in an earlier epoch, the entry of this one was cut with it.
    this.#beginEpoch();
    this.#collect();
    this.#waits.resume(this.#program, held.map(({ input }) => input));
    this.#commitPoint();
  }

  /** Makes the program again as it was at the last commit point. */
  #reload(): void {
    const { program, state, stateBytes } = recover(this.#host, {
      ...this.#recorded,
      checkpoint: this.#checkpoint,
      entries: this.#log.upToPoint(),
    });
    this.#program = program;
    this.#state = state;
    this.#stateBytes = stateBytes;
  }

  // Recovery

  get #recorded(): { readonly className: string; readonly id: string } {
    return { className: this.#open.class, id: this.#open.id };
  }

  /** The timers that were set at the last commit point. @throws ParkedError */
  #recover(): readonly TimerChange[] {
    const { checkpoint, entries, out, effectsApplied } = this.#open;
    requireCode(this.#open);
    const recovered = recover(this.#host, { ...this.#recorded, checkpoint, entries });
    const { program, parts, given, pending, point } = recovered;
    this.#program = program;
    this.#state = recovered.state;
    this.#stateBytes = recovered.stateBytes;
    this.#checkpoint = checkpoint;
    this.#log = new SessionLog(checkpoint?.at ?? 0, entries, recovered.count);
    this.#log.point(point);
    this.#outbox.keepAll([...parts?.outputs ?? [], ...given.outputs], [
      ...parts?.effects ?? [],
      ...given.effects,
    ]);
    this.#outbox.acknowledge({ outputs: out, effects: effectsApplied });
    this.#outbox.add(pending);
    // What an open handler did to timers has not left.
    const { timers } = program.handler === null ? program : recover(this.#host, {
      ...this.#recorded,
      checkpoint,
      entries: entries.subarray(0, point.bytes),
    }).program;
    return [...timers].map(([name, dueMs]) => ({ name, dueMs }));
  }

  /** A session is born, or goes on in another epoch or with other code. It leaves with the next commit. */
  #beginEpoch(): void {
    const program = this.#program;
    const { epoch, replica, code, seed } = this.#open;
    const isPoint = program.handler === null;
    if (program.epoch !== epoch || program.code !== code) {
      this.#record({ kind: "epoch", epoch, replica, code }, 0);
    }
    if (program.object === null && !this.#record({ kind: "birth", seed: seed.slice() }, 0)) {
      return this.#parkFor(program.failure?.error);
    }
    this.#state ??= stateOf(program);
    if (isPoint) this.#log.point();
  }

  // Parking

  /** The executor itself failed: nothing that comes of it is to be trusted. */
  broke(error: unknown): void {
    this.#park("internal", `the session could not be run: ${stackText(error)}`, {});
  }

  #parkFor(error: unknown): void {
    const { code, message, detail } = parkedError(error);
    this.#park(code, message, detail);
  }

  #parkFull(): void {
    this.#park(
      "log_full",
      `its log has ${this.#log.lengthBytes} bytes, and it never rests: ${this.#program.openWork()}`,
      {
        bytes: this.#log.lengthBytes,
      },
    );
  }

  #parkWaiting(): void {
    const name = this.#program.handler?.name ?? "";
    this.#park(
      "waits_unrecorded",
      `${name} waits for something that is no event: a promise that nothing here will ever settle`,
      { handler: name },
    );
  }

  #park(code: Parked["code"], message: string, detail: Readonly<Record<string, unknown>>): void {
    this.close();
    this.#host.sink.parked(this.channel, { code, message, detail });
  }
}
