/**
 * One stateful session in its isolate: takes events, gives its program one turn after the other, writes the log, and
 * gives out commits.
 *
 * Life: opened (program filled from the checkpoint, log replayed) → turns → closed, parked or ended.
 *
 * ST1  One handler at a time: an event that begins one waits in the inbox until none runs; results and closure timers
 *      are delivered meanwhile, each a turn.
 * ST2  Outputs, effects and timers leave at commit points only: the end of a turn with no handler. Before, only calls
 *      leave, those with an effect together with the log up to them.
 * ST3  A handler that throws leaves one entry, `rejected`: the log is cut to the last commit point, the program made
 *      again from it, and results that had come since are delivered once more. The handler's subject is then given up,
 *      tried again later, or the session parked (when_thrown.ts). While it is to be tried again no other handler is
 *      begun.
 * ST4  A turn is in the log before anything that came of it leaves.
 * ST5  Nothing is guessed: a log that can't be read or replayed, and a handler that waits for what nobody will deliver,
 *      park the session.
 * ST6  The event that began a handler is in the log, or not done (EV2): a rejected one that is tried again is delivered
 *      anew by this isolate, and by the site where the isolate is lost. An event that the log left open and whose
 *      handler throws here is in no site's hands, so its next attempt begins in the commit that voids the last.
 * ST7  What came of an event does not wait until a large state is written down: the checkpoint of such a state is a
 *      commit of its own.
 */
import {
  type Acknowledged,
  type Checkpoint,
  leavesMarks,
  type OpenedProgram,
  type Parked,
  type Rejection,
  type TimerChange,
} from "./commit.ts";
import type { BegunEvent, OpenSession, SessionEvent } from "./event.ts";
import { stackText, thrown } from "./handler.ts";
import type { Program } from "./program.ts";
import { begunOf, type DeliveredEvent, HOLD_BYTES, Inbox } from "./inbox.ts";
import { arrivalOf, inputOf } from "./inputs.ts";
import { type Leak, sharedState } from "./leak.ts";
import type { LoggedProgram } from "./logged_program.ts";
import { Outbox } from "./outbox.ts";
import { openedPeers } from "./peers.ts";
import { type Failure, handlerThrew, logFull, stateInvalid, waitsUnrecorded } from "./parking.ts";
import { parkedError } from "./recovery.ts";
import type { Runnable, SessionIsolate } from "./session_host.ts";
import { type Subject, subjectOf } from "../../class/subject.ts";
import type { Rejected, TurnInput } from "./turn.ts";
import { type Delivery, type WaitingSession, type WaitOutcome, Waits } from "./waits.ts";
import { attemptOf, policyOf, sameSubject, verdictOfThrown } from "../../class/when_thrown.ts";

/** Bytes of log at which a session that does not come to rest is parked. */
const LOG_BYTES_MAX = 4 * 1024 * 1024;
/** Number of the alarm for the next attempt; closure timers are numbered from 1. */
const RETRY_ALARM = 0;

/** See the file's header. */
export class StatefulSession implements Runnable, WaitingSession {
  readonly channel: number;
  readonly #host: SessionIsolate;
  readonly #open: Pick<OpenSession, "out" | "effectsApplied">;
  readonly #logged: LoggedProgram;
  readonly #inbox = new Inbox();
  #deliveries: Delivery[] = [];
  /** Results and closure timers that were delivered since the last commit point. */
  #held: Delivery[] = [];
  /** Event whose handler runs. */
  #handling: DeliveredEvent | null = null;
  #through = 0;
  #received = 0;
  /** Event whose handler threw, and that is tried again; null: there is none. */
  #retry: { readonly event: DeliveredEvent; isDue: boolean } | null = null;
  /** Rejection that the next commit tells. */
  #rejection: Rejection | null = null;
  readonly #waits: Waits;
  readonly #outbox: Outbox;
  #wantsCheckpoint = false;
  #isLater = false;
  #isStarted = false;
  #isOver = false;

  /** @param logged new, or followed so far (following_session.ts). */
  constructor(
    host: SessionIsolate,
    channel: number,
    open: Pick<OpenSession, "out" | "effectsApplied">,
    logged: LoggedProgram,
  ) {
    this.#host = host;
    this.channel = channel;
    const { out, effectsApplied } = open;
    this.#open = { out, effectsApplied };
    this.#logged = logged;
    this.#waits = new Waits(host, this);
    this.#outbox = new Outbox(logged);
  }

  /** Program that runs now. */
  get program(): Program {
    return this.#logged.program;
  }

  get received(): number {
    return this.#received;
  }

  // From the site

  /** Recovers what the log says, and tells the site what comes of it. */
  #start(): void {
    this.#isStarted = true;
    let timers: readonly TimerChange[];
    try {
      timers = this.#recover();
    } catch (error) {
      return this.#parkFor(error);
    }
    const { program } = this;
    const { sequence } = this.#logged.log;
    const opened: OpenedProgram = {
      sequence,
      peers: openedPeers(program.peers.values(), this.#outbox.made),
      outputs: [...this.#outbox.kept.outputs],
      effects: [...this.#outbox.kept.effects],
      timers,
      calls: program.callsOf(program.calls.keys()),
      handling: program.handler?.request ?? null,
      isQuiescent: program.isQuiescent,
      isEnded: program.isEnded,
    };
    this.#host.sink.opened(this.channel, opened);
    const isMarked = leavesMarks(opened), { isTakenOver } = this.#logged;
    if (!program.isEnded) this.#waits.resume(program, []);
    if (!program.isEnded || isMarked) this.#beginEpoch();
    if (isMarked && !this.#isOver) this.#give(program.handler === null); // CM5
    if (program.isEnded) return this.close();
    if (isTakenOver && program.isQuiescent) this.#wantsCheckpoint = true;
  }

  deliver(event: SessionEvent): void {
    if (this.#isOver) return;
    if (event.kind !== "result") {
      if (this.#isHeld && this.#inbox.hasWaitedLong(this.#host.nowMs())) return this.#parkFull();
      this.#received = event.number;
      this.#inbox.push(event);
      this.#host.wake(this);
    } else {
      this.#comes({ input: arrivalOf(event), storeClock: event.storeClock });
    }
  }

  /** Takes the outcome of a wait inside the isolate. */
  came(input: WaitOutcome): void {
    this.#comes({ input, storeClock: 0 });
  }

  #comes(delivery: Delivery): void {
    if (this.#isOver) return;
    this.#deliveries.push(delivery);
    this.#host.wake(this);
  }

  acknowledge(acknowledged: Acknowledged): void {
    this.#outbox.acknowledge(acknowledged);
  }

  /** Takes a checkpoint as soon as the session is at rest. */
  checkpointNow(): void {
    if (this.#isOver) return;
    this.#wantsCheckpoint = true;
    this.#host.wake(this);
  }

  /** Notes that the env has changed outside: the session sees that from its next checkpoint on, as a replay does. */
  renew(): void {
    if (this.#isOver) return;
    if (this.#isStarted && this.#logged.currentCheckpoint === null) this.checkpointNow();
    else this.program.renew();
  }

  /** Ends the session here: nothing is heard of it any more. */
  close(): void {
    this.#isOver = true;
    this.program.renew();
    this.#waits.close();
    if (this.#retry !== null) this.#host.disarm(this, RETRY_ALARM);
    this.#retry = null;
    this.#inbox.clear();
    this.#deliveries = [];
  }

  /** Runs a closure timer, or the next attempt, that is due. */
  localDue(local: number): void {
    if (this.#isOver) return;
    if (local !== RETRY_ALARM) return this.#waits.due(local);
    if (this.#retry !== null) this.#retry.isDue = true;
    this.#host.wake(this);
  }

  // Turns

  /** True while there is something to do. */
  get hasWork(): boolean {
    if (this.#isOver) return false;
    if (!this.#isStarted || this.#deliveries.length > 0) return true;
    if (this.program.handler !== null) return this.#isStopped;
    if (this.#retry !== null) return this.#retry.isDue;
    return (this.#inbox.first !== undefined && !this.#isHeld) ||
      (this.#wantsCheckpoint && !this.#isLater && this.program.isQuiescent);
  }

  /** True while the log is near its limit and the session not at rest: no new handlers begin until it is. */
  get #isHeld(): boolean {
    return this.#logged.log.lengthBytes >= HOLD_BYTES && !this.program.isQuiescent;
  }

  /** True where the handler that runs was begun in an isolate that it took with it: it is not to go on here. */
  get #isStopped(): boolean {
    const { first } = this.#inbox;
    const { handler } = this.program;
    return first?.kind === "reject" && first.of !== null && this.#handling === null && handler !== null &&
      sameSubject(handler.subject, subjectOf(first.of));
  }

  /** Does one thing: recovers, runs a turn, or takes a checkpoint. */
  step(): void {
    if (!this.#isStarted) return this.#start();
    const stop = this.#isStopped ? this.#inbox.take() : undefined;
    if (stop !== undefined) return this.#handle(stop);
    const delivery = this.#deliveries.shift(); // event.ts EV1
    if (delivery !== undefined) return this.#deliver(delivery);
    if (this.program.handler !== null) return; // ST1
    if (this.#retry !== null) return this.#tryAgain();
    if (this.#wantsCheckpoint && this.program.isQuiescent) return this.#commitPoint(); // checkpoint.ts CP1
    const event = this.#isHeld ? undefined : this.#inbox.take();
    if (event !== undefined) this.#handle(event);
  }

  #deliver(delivery: Delivery): void {
    const { input, storeClock } = delivery;
    const isOpen = input.kind === "local"
      ? this.program.locals.has(input.local)
      : this.program.calls.has(input.call);
    if (!isOpen) return;
    this.#held.push(delivery);
    this.#turn(input, storeClock);
  }

  #handle(event: DeliveredEvent): void {
    this.#handling = event;
    if (event.kind === "reject") {
      const { of } = event, { handler } = this.program;
      // The handler that the log left running is of another message of that peer: this message was not begun, and is
      // next.
      if (handler !== null && of?.kind === "message" && !isOf(handler.input, of)) {
        this.#inbox.putBack({ ...of, number: event.number, storeClock: event.storeClock });
        this.#handling = { ...event, number: event.number - 1 };
      }
      // The event may have become void meanwhile, as one that is delivered may have.
      const isDone = of !== null && (this.#outbox.hasAnswered(of) || inputOf(this.program, of) === null);
      if (isDone && this.program.handler === null) return this.#commitPoint();
      const subject = of && subjectOf(of);
      return this.#undo({ ...event, stack: event.message }, subject, subject === null ? "all" : "none");
    }
    const input = inputOf(this.program, event);
    if (input === null) this.#commitPoint();
    else this.#turn(input, event.storeClock);
  }

  /** Runs a turn and records it; what came of it leaves where it may. */
  #turn(input: TurnInput, storeClock: number): void {
    const { program } = this;
    if (!this.#logged.record(input, storeClock)) return this.#threw(input, program.failure?.error); // ST4
    this.#collect();
    if (program.handler === null) return this.#commitPoint(); // ST2
    if (this.#outbox.hasIntents) this.#give(false);
    if (this.#logged.log.lengthBytes > LOG_BYTES_MAX) return this.#parkFull();
    if (program.calls.size === 0 && program.locals.size === 0) { // ST5
      this.#park(waitsUnrecorded(program, this.#logged.acts()));
    }
  }

  /** Takes what the program made in its turn: calls are made, timers armed, the rest waits for the commit point. */
  #collect(): void {
    const { program } = this;
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
    const open = this.program.calls.get(number);
    if (open === undefined) return;
    if (open.start !== undefined) return this.#waits.compute(number, open.start);
    for (const call of this.program.callsOf([number])) {
      if (call.effect === null) this.#host.sink.call(this.channel, call);
      else this.#outbox.addIntent(call);
    }
  }

  // Commits

  #commitPoint(): void {
    const { program } = this;
    if (this.#handling !== null) this.#through = this.#handling.number; // event.ts EV2
    this.#handling = null;
    if (this.#held.length > 0) this.#held = [];
    this.#logged.log.point();
    this.#outbox.keep();
    const isDue = this.#wantsCheckpoint || this.#logged.isCheckpointDue;
    if (!isDue || !this.#isAtRest || program.isEnded) this.#give(true); // checkpoint.ts CP1
    else if (this.#logged.isLarge && this.#logged.log.hasMore) this.#checkpointLater();
    else this.#takeCheckpoint();
    if (program.isEnded) this.close();
    else if (this.#logged.log.lengthBytes > LOG_BYTES_MAX) this.#parkFull();
  }

  #give(isPoint: boolean): void {
    const { first, count, entries } = this.#logged.log.give();
    const { outputs, effects, timers } = this.#outbox.take(isPoint);
    this.#host.sink.commit(this.channel, {
      first, // one by one: spread, they cost three times as much
      count,
      entries,
      through: this.#through,
      isPoint,
      outputs,
      effects,
      timers,
      calls: this.#outbox.takeIntents(),
      rejected: this.#rejection,
      isQuiescent: this.#isAtRest,
      isEnded: this.program.isEnded,
    });
    this.#rejection = null;
  }

  /**
   * True at rest with no attempt due. A checkpoint would lose how often something was tried, which is in the log only.
   */
  get #isAtRest(): boolean {
    return this.program.isQuiescent && this.#retry === null;
  }

  /** Lets a commit leave, and takes the checkpoint of a large state behind it (ST7). */
  #checkpointLater(): void {
    this.#give(true);
    this.#wantsCheckpoint = this.#isLater = true;
    this.#host.later(() => {
      this.#isLater = false;
      this.#host.wake(this);
    });
  }

  #takeCheckpoint(): void {
    this.#wantsCheckpoint = false;
    const current = this.#logged.currentCheckpoint;
    if (current !== null) {
      this.#give(true);
      return this.#host.sink.checkpoint(this.channel, current);
    }
    let checkpoint: Checkpoint;
    try {
      checkpoint = this.#logged.writeCheckpoint(this.#outbox.kept);
    } catch (error) {
      this.#give(true);
      return this.#park(stateInvalid(error));
    }
    this.#give(true);
    this.#logged.restart();
    this.#host.sink.checkpoint(this.channel, checkpoint);
  }

  // Undoing

  /** Undoes the handler after something was thrown in the turn of this input (ST3). */
  #threw(input: TurnInput, error: unknown): void {
    const stack = stackText(error);
    this.#host.sink.log(this.channel, "error", stack);
    const subject = this.program.handler?.subject ?? null;
    this.#undo({ ...thrown(error), stack }, subject, input.kind === "local" ? input.local : "none");
  }

  /** Undoes the handler, and gives its subject up, tries it again or parks the session (ST3, ST6). */
  #undo(failure: Failure, subject: Subject | null, drops: Rejected["drops"]): void {
    const { handler, failed, object } = this.program;
    const verdict = verdictOfThrown(policyOf(object), subject, failed);
    const event = this.#handling;
    // Where the log left the handler open, there is no event to go back to.
    const isOfLog = handler !== null && (event === null || event.kind === "reject");
    const isKilled = event?.kind === "reject";
    const wasOpen = isOfLog && verdict.kind !== "reject" ? handler.input : null;
    if (wasOpen !== null && (verdict.kind === "park" || isKilled)) {
      return this.#park(handlerThrew(failure, subject, 1));
    }
    if (!this.#rejected({ ...failure, subject, attempt: attemptOf(verdict) }, drops)) return;
    if (verdict.kind === "reject") return this.#commitPoint();
    if (wasOpen !== null) {
      this.#logged.log.point();
      return this.#turn(wasOpen, 0);
    }
    this.#handling = null;
    const again = event?.kind === "reject" ? begunOf(event) : event;
    if (verdict.kind === "park" || again === null) {
      this.#wantsCheckpoint = true; // other code can go on from a checkpoint
      this.#commitPoint();
      return this.#park(handlerThrew(failure, subject, attemptOf(verdict)));
    }
    this.#retry = { event: again, isDue: false };
    this.#host.arm(this, RETRY_ALARM, verdict.afterMs);
    this.#commitPoint();
  }

  #tryAgain(): void {
    const event = this.#retry?.event;
    if (event === undefined || !this.#retry?.isDue) return;
    this.#retry = null;
    this.#handle(event);
  }

  /** Makes the program again as it was, and records why. Returns false where that parked the session. */
  #rejected({ subject, attempt, code, message }: Rejection, drops: Rejected["drops"]): boolean {
    const { nextCall, nextLocal, nextEffect, calls: before } = this.program;
    const held = this.#held;
    this.#held = [];
    this.#outbox.drop();
    let voids: number;
    try {
      voids = this.#logged.takeBack();
    } catch (error) {
      this.#parkFor(error);
      return false;
    }
    // Delivered again: results for what was open at the commit point. The others belong to nobody now.
    this.#deliveries.unshift(...held);
    const input = {
      kind: "rejected",
      voids,
      subject,
      attempt,
      code,
      message,
      drops,
      nextCall,
      nextLocal,
      nextEffect,
    } as const;
    if (!this.#logged.record(input, 0)) {
      this.#parkFor(this.program.failure?.error);
      return false;
    }
    // Where the handler was begun in an earlier epoch, the entry of this one was cut with it.
    this.#beginEpoch();
    this.#collect();
    this.#waits.resume(this.program, held.map(({ input }) => input));
    // Another session need not begin what nobody waits for. Numbers are not given twice (T5).
    for (const [number, { kind }] of before) {
      if (kind === "session" && !this.program.calls.has(number)) {
        this.#host.sink.dropped(this.channel, number);
      }
    }
    this.#rejection = { subject, attempt, code, message };
    return true;
  }

  // Recovery

  /** Returns the timers that were set at the last commit point. @throws ParkedError */
  #recover(): readonly TimerChange[] {
    const recovered = this.#logged.recover();
    this.#outbox.recovered(recovered, this.#open);
    return recovered.timers;
  }

  #beginEpoch(): void {
    if (!this.#logged.beginEpoch()) this.#parkFor(this.program.failure?.error);
  }

  // Parking

  /** Parks the session after the executor itself failed: nothing that comes of it is to be trusted. */
  broke(error: unknown): void {
    this.#park({
      code: "internal",
      message: `the session could not be run: ${stackText(error)}`,
      detail: {},
    });
  }

  /** Parks the session whose code ran in the turn of another: what they share is in no log. */
  leaked(leak: Leak): void {
    this.#park(sharedState(leak));
  }

  #parkFor(error: unknown): void {
    const { code, message, detail } = parkedError(error);
    this.#park({ code, message, detail });
  }

  #parkFull(): void {
    this.#park(logFull(this.program, this.#logged.log.lengthBytes));
  }

  #park(parked: Parked): void {
    if (this.#isOver) return;
    this.close(); // program.ts PG3
    this.#host.sink.parked(this.channel, parked);
  }
}

/** Reports whether a handler was begun by this message. Two that say the same can't be told apart. */
function isOf(input: TurnInput, { message }: Extract<BegunEvent, { readonly kind: "message" }>): boolean {
  if (input.kind !== "message") return false;
  const { message: begun } = input;
  if (typeof begun === "string" || typeof message === "string") return begun === message;
  return begun.length === message.length && begun.every((byte, i) => byte === message[i]);
}
