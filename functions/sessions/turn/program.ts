/**
 * A program: one life of a stateful session's object in this isolate, with all that it has taken from outside and
 * all that it waits for. A program knows nothing of logs: turns come in (`begin`, then the host drains the microtasks,
 * then `finish`), what it asks for and gives out collects in `products`. The same inputs from the same start make the
 * same products: recovery rests on that.
 *
 * Life: made (or made and filled from a checkpoint) → turns → given up, at a throw or at the session's close.
 *
 * PG1  Outside of a turn nothing reaches a program: the globals that an app finds act on the program whose turn runs
 *      (turn_loop.ts, `current`), and there is at most one.
 * PG2  Whatever leaves is mixed into `check` before it is collected.
 * PG3  A program whose turn failed (threw, or took what the log does not have) is never given another turn.
 */
import { AppError } from "../../vocabulary/errors.ts";
import type { Call, CallKind, Effect, EffectSend } from "./commit.ts";
import { begun, errorAnswer, type Handled, type Handler, type SessionObject } from "./handler.ts";
import { subjectOf } from "../../class/subject.ts";
import { Peers } from "./peers.ts";
import { Locals } from "./locals.ts";
import { noProducts, type Products } from "./products.ts";
import { RandomStream, STREAM } from "./random.ts";
import { RollingCheck } from "./rolling_check.ts";
import type { SessionPeer, SessionPort } from "../../class/session_slot.ts";
import { readShared, SharedCache } from "./shared_cache.ts";
import { effectSend, NOTHING_SENT, sentWith } from "./sends.ts";
import { shownCall, shownOutput, shownSend, shownTimer, shownWrite } from "./shown.ts";
import { checkTimer, TIMERS_MAX } from "./timers.ts";
import type { Trace } from "./trace.ts";
import { READS_MAX, type Rejected, type TurnEnd, type TurnInput, type TurnSource } from "./turn.ts";
import type { Failed } from "../../class/when_thrown.ts";
import type { SentMessage } from "../../vocabulary/queue_sender.ts";

/** The isolate's part that a program needs. */
export interface ProgramHost {
  /** Makes an object of a class, which finds the program as its port (session_slot.ts). */
  make(className: string, program: Program): SessionObject;
  /** Runs app code that belongs to the making of the object, and to no turn. */
  aside<T>(program: Program, work: () => T): T;
  /** Returns the env of a program. What changes from outside (secrets) stays in it as it is until `unpin`. */
  envOf(program: Program): unknown;
  /** Cache of values that the sessions of the isolate share. */
  readonly cache?: SharedCache;
  /** Lets the next env be another: no log behind this program has seen the present one. */
  unpin?(program: Program): void;
  /** Returns the place of a method of a class, as a stack frame; "" where that is not known. */
  placeOf?(className: string, method: string): string;
  /** Returns an error as people are told of it. */
  told?(error: unknown): unknown;
  /** Parks the session whose program acts while another's turn runs, or none (PG1), and returns the error for it. */
  leaked?(program: Program, what: string): Error;
}

/** A call that waits for its result. */
export interface OpenCall {
  readonly kind: CallKind | "native";
  readonly bytes: Uint8Array;
  readonly effect: number | null;
  /** Name of the call, for a message to people. */
  readonly name: string;
  /** Returns, for a native call, the text of its arguments beside the bytes: the same text for the same arguments. */
  readonly args?: () => string;
  /** Takes the result. @throws Error for bytes that are no such result. */
  done(bytes: Uint8Array): void;
  failed(code: string, message: string): void;
  /** Computes the result of a native call in this isolate. */
  readonly start?: () => Promise<Uint8Array>;
}

/** State of the turn that runs. */
interface Turn {
  readonly source: TurnSource;
  readonly clocks: number[];
  reads: number;
  storeClock: number | null;
  effect:
    | { mutations: Effect["mutations"][number][]; sends?: EffectSend[] } & Omit<Effect, "mutations" | "sends">
    | null;
}

/** Value of a variable or property of a package that a session keeps. */
export type Count = number | bigint | string;

/** Cache of hosts that have none: nothing is shared. */
const NO_CACHE = new SharedCache(() => 0, 0);
/** Number of calls of one program that may wait at one time. */
export const PROGRAM_CALLS_MAX = 1_000;
/** Milliseconds of the longest closure timer that a browser takes. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** One life of a stateful session's object. */
export class Program implements SessionPort {
  readonly className: string;
  readonly id: string;
  readonly #host: ProgramHost;
  epoch = 0;
  replica = 0;
  code = "";
  seed: Uint8Array = new Uint8Array(32);
  math = new RandomStream(this.seed, STREAM.math);
  crypto = new RandomStream(this.seed, STREAM.crypto);
  /** Clock as it was read last, and at birth. */
  clockMs = 0;
  originMs = 0;
  /** Store clock of the last write to the store. */
  storeClock = 0;
  readonly check = new RollingCheck();
  nextCall = 1;
  nextLocal = 1;
  nextEffect = 1;
  isEnded = false;
  /**
   * Values that counts in packages have come to for this session, by the names of their places; a checkpoint has them.
   */
  readonly counts = new Map<string, Count>();
  /** Trace of what the program does; null: nobody wants to know. */
  trace: Trace | null = null;
  /** Called at each commit point: what was kept for the running handler only can go. */
  atCommit: (() => void) | null = null;
  object: SessionObject | null = null;
  handler: Handler | null = null;
  /** Handler that came to its end in the turn that runs, or ran last. */
  #done: Handler | null = null;
  /** Subject and attempts of what was rejected last and is to be tried again; null: nothing is. */
  failed: Failed | null = null;
  readonly calls = new Map<number, OpenCall>();
  readonly locals = new Locals();
  readonly timers = new Map<string, number>();
  readonly peers = new Peers({
    mayAct: (what) => this.#mayAct(what),
    give: (to, sequence, bytes) => this.#give(to, sequence, bytes),
  });
  #env: unknown;
  #turn: Turn | null = null;
  #failure: { readonly error: unknown } | null = null;
  #isMaking = false;
  #made: Products | null = null;
  /** Messages to queues since the last commit point. */
  #sent = NOTHING_SENT;

  constructor(host: ProgramHost, className: string, id: string) {
    this.#host = host;
    this.className = className;
    this.id = id;
  }

  get #products(): Products {
    return this.#made ??= noProducts();
  }

  // Turns

  /** Begins a turn: runs the app's code up to its first wait. */
  begin(input: TurnInput, source: TurnSource): void {
    this.#turn = { source, clocks: [], reads: 0, storeClock: null, effect: null };
    this.#done = null;
    if (source.isWhole) this.check.widen();
    switch (input.kind) {
      case "birth":
        this.sow(input.seed);
        this.originMs = this.now();
        this.make();
        return;
      case "epoch":
        // An epoch does not draw again what it has drawn; logs with the check of before began the stream anew with each
        // entry.
        if (input.epoch !== this.epoch || !source.isWhole) this.crypto.restart(input.epoch);
        this.epoch = input.epoch;
        this.replica = input.replica;
        this.code = input.code;
        return;
      case "rejected":
        return this.#reject(input);
      case "local":
        return this.#runLocal(input.local);
      case "result":
        return this.#settleCall(input.call, (call) => call.done(input.bytes));
      case "error":
        return this.#settleCall(input.call, (call) => call.failed(input.code, input.message));
      case "timer":
        this.timers.delete(input.name);
        break;
      case "attach":
        this.peers.attach(input.peer);
        break;
      case "message":
        this.peers.received(input.peer);
        break;
      case "detach":
        this.peers.leaves(input.peer);
        break;
    }
    this.#handle(input);
    if (input.kind === "detach") this.#detach(input.peer);
  }

  /** Ends a turn, when the microtasks have been drained. */
  finish(): TurnEnd {
    const { clocks, reads, storeClock, effect } = this.#running();
    const { check } = this;
    if (effect !== null) {
      check.number(effect.mutations.length);
      check.alsoNumber(effect.atMs);
      if (effect.sends !== undefined) check.number(effect.sends.length);
      this.#products.effects.push(effect);
    }
    check.alsoNumber(reads);
    check.alsoNumber(this.math.position);
    check.alsoNumber(this.crypto.position);
    this.#turn = null;
    if (this.handler === null) {
      this.peers.commit();
      this.#sent = NOTHING_SENT;
      this.atCommit?.();
    }
    return { clocks, storeClock, check: check.mark() };
  }

  /** True while the turn is one of a log, or none runs: what the turn prints has been printed. */
  get isReplaying(): boolean {
    return this.#turn?.source.isReplay ?? true;
  }

  /** Error that was thrown in a turn and not caught; null: there was none. */
  get failure(): { readonly error: unknown } | null {
    return this.#failure;
  }

  /** Notes an error that ends the handler. */
  fail(error: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = { error: this.#host.told === undefined ? error : this.#host.told(error) };
  }

  /** Hands over what was made since the last time. */
  take(): Products {
    const products = this.#products;
    this.#made = null;
    return products;
  }

  /** True while no handler, call or closure timer is open. */
  get isQuiescent(): boolean {
    return this.handler === null && this.calls.size === 0 && this.locals.size === 0;
  }

  // Making the object

  /** Sets the seed of the session, from which its random streams go on. */
  sow(seed: Uint8Array): void {
    this.seed = seed;
    this.math = new RandomStream(seed, STREAM.math);
    this.crypto = new RandomStream(seed, STREAM.crypto, this.epoch);
  }

  /** Makes the object. */
  make(): void {
    this.whileMaking(() => this.object = this.#host.make(this.className, this));
  }

  /** Does what belongs to the making of the object: nothing but its fields comes of it. */
  whileMaking(work: () => void): void {
    this.#isMaking = true;
    try {
      work();
    } catch (error) {
      this.fail(error);
    } finally {
      this.#isMaking = false;
    }
  }

  #handle(input: Handled): void {
    const object = this.object;
    if (object === null) throw new Error("a handler was begun before its session was born");
    if (this.handler !== null) {
      throw new Error("a handler was begun while another runs (stateful_session.ts ST1)");
    }
    const handler: Handler = { name: "", subject: subjectOf(input), input, request: null, chain: [] };
    this.handler = handler;
    begun(object, handler, this);
  }

  /** Ends a handler, with the answer to its request where there is one. */
  ended(handler: Handler, answer: Uint8Array | null): void {
    if (this.handler !== handler) return;
    if (this.#turn === null) return void this.#host.leaked?.(this, `the end of ${handler.name}`);
    // The handler went on although its turn has failed: it fails all the same, and its request is answered so.
    if (this.#failure !== null) return;
    if (answer !== null && handler.request !== null) this.#give(handler.request, 1, answer);
    this.handler = null;
    this.#done = handler;
    this.failed = null;
  }

  /** Fails the turn that is over, and with it the handler that came to its end in it, where there is one. */
  refuse(error: unknown): void {
    this.handler ??= this.#done;
    this.fail(error);
  }

  /** Replaces a handler that was rejected: its subject is done with, unless it is tried again. */
  #reject(input: Rejected): void {
    this.nextCall = input.nextCall; // commit.ts CM3
    this.nextLocal = input.nextLocal;
    this.nextEffect = input.nextEffect; // commit.ts CM3
    for (const local of [...this.locals.keys()]) {
      if (input.drops === "all" || input.drops === local) this.clearLocal(local);
    }
    const { subject, attempt } = input;
    this.failed = subject === null || attempt === 0 ? null : { subject, attempt };
    if (subject === null || attempt > 0) return;
    if (subject.kind === "request") this.#give(subject.id, 1, errorAnswer(input.code, input.message));
    if (subject.kind === "timer") this.timers.delete(subject.id);
    // The event itself did happen: a message counts, and a peer has gone.
    if (subject.kind === "message") this.peers.received(subject.id);
    if (subject.kind === "detach") this.#detach(subject.id);
  }

  // What an app's code takes from outside

  #running(): Turn {
    if (this.#turn === null) throw new Error("a program was used outside of its turns (PG1)");
    return this.#turn;
  }

  /** Reads the clock, in milliseconds since 1970 (T1). */
  now(): number {
    const turn = this.#turn;
    // While the object is made again before a checkpoint is put into it, the clock is the checkpoint's, and nothing is
    // noted.
    if (turn === null) return this.clockMs;
    if (turn.reads % READS_MAX === 0) {
      this.clockMs = turn.source.clock(turn.reads / READS_MAX, this.clockMs);
      turn.clocks.push(this.clockMs);
      this.locals.read(this.clockMs);
      this.trace?.add("reads the clock");
    }
    turn.reads++;
    return this.clockMs;
  }

  /** Makes a call and returns its number. */
  call(call: Omit<OpenCall, "effect">, hasEffect: boolean): number {
    this.#mayAct(call.name);
    if (this.calls.size >= PROGRAM_CALLS_MAX) {
      throw new AppError(
        "limit_calls",
        `${call.name}: ${PROGRAM_CALLS_MAX} calls of this stateful session wait already`,
      );
    }
    const number = this.nextCall++;
    const effect = hasEffect ? this.nextEffect++ : null; // commit.ts CM3
    this.calls.set(number, { ...call, effect });
    this.#checkCall(number, call);
    this.#products.calls.push(number);
    this.trace?.add(
      `call ${number}: ${call.name}, ${call.bytes.length} bytes`,
      undefined,
      () =>
        call.kind === "native"
          ? `call ${number}: ${call.name} ${call.args?.() ?? ""}`
          : shownCall({ call: number, kind: call.kind, bytes: call.bytes }),
    );
    return number;
  }

  #checkCall(number: number, { kind, bytes, name, args }: Omit<OpenCall, "effect">): void {
    const { check } = this;
    check.number(number);
    check.text(kind);
    check.bytes(bytes);
    if (kind !== "native") return;
    check.alsoText(name);
    check.alsoText(args?.() ?? "");
  }

  /** Drops a call: nobody waits for it any more. */
  drop(number: number): void {
    if (!this.calls.delete(number)) return;
    this.check.number(number);
    this.#products.dropped.push(number);
    this.trace?.add(`drops call ${number}`);
  }

  /** Writes to the store, which leaves with the handler's commit. Returns the version of the write. */
  write(mutations: Effect["mutations"]): { readonly clock: number; readonly replica: number } {
    this.#mayAct("a write to the store");
    const effect = this.#effect();
    for (const mutation of mutations) {
      this.trace?.add(`writes to the store: ${mutation.kind}`, undefined, () => shownWrite(mutation));
      this.check.text(mutation.kind);
      this.check.text(mutation.key);
      if (mutation.kind !== "delete") this.check.bytes(mutation.value);
      if (mutation.kind === "set") this.check.alsoNumber(mutation.expireInMs ?? 0);
      effect.mutations.push(mutation);
    }
    return effect;
  }

  /**
   * Sends messages to a queue, which leave with the handler's commit.
   *
   * @throws AppError `limit_message` where the handler sends too much: nothing of this call is sent then.
   */
  send(queue: string, messages: readonly SentMessage[]): void {
    this.#mayAct("a send to a queue");
    this.#sent = sentWith(this.#sent, queue, messages);
    const effect = this.#effect(), sends = effect.sends ??= [];
    for (const { body, id = "", delayMs = 0, ttlMs = 0 } of messages) {
      const send = { queue, body, id, delayMs: Math.ceil(delayMs), ttlMs: Math.ceil(ttlMs) };
      this.trace?.add(`sends to the queue ${queue}`, undefined, () => shownSend(send));
      this.check.text("send");
      this.check.text(queue);
      this.check.text(id);
      this.check.number(send.delayMs);
      this.check.number(send.ttlMs);
      this.check.bytes(body);
      sends.push(effectSend(send));
    }
  }

  /** Returns the effect of the turn that runs, which has one from now on. */
  #effect(): NonNullable<Turn["effect"]> {
    const turn = this.#running();
    if (turn.effect !== null) return turn.effect;
    turn.storeClock = this.storeClock = turn.source.storeClock(this.storeClock);
    const atMs = this.now();
    const numbered = { effect: this.nextEffect++, clock: turn.storeClock, replica: this.replica, atMs };
    return turn.effect = { ...numbered, mutations: [] };
  }

  /** Draws a number from the stream of `Math.random`. */
  random(): number {
    return this.math.float();
  }

  /** Sets a closure timer and returns its number. */
  setLocal(ms: number, run: () => void): number {
    this.#mayAct("a closure timer");
    if (this.locals.size >= TIMERS_MAX) {
      throw new AppError(
        "limit_timers",
        `${TIMERS_MAX} closure timers of this stateful session wait already`,
      );
    }
    const number = this.nextLocal++;
    const delay = Number.isFinite(ms) ? Math.min(Math.max(Math.trunc(ms), 0), TIMER_MS_MAX) : 0;
    this.locals.arm(number, { ms: delay, run }, this.#running().reads > 0 ? this.clockMs : null);
    this.check.number(number);
    this.check.number(delay);
    this.#products.armed.push(number);
    this.trace?.add(`closure timer ${number}, in ${delay} ms`);
    return number;
  }

  clearLocal(number: number): void {
    if (!this.locals.delete(number)) return;
    this.check.number(number);
    this.#products.disarmed.push(number);
    this.trace?.add(`clears closure timer ${number}`);
  }

  // The port of the object

  /** Takes what has changed outside into the env. */
  renew(): void {
    this.#host.unpin?.(this);
    this.#env = undefined;
  }

  get env(): unknown {
    return this.#env ??= this.#host.envOf(this);
  }

  readCache(name: string, load: () => unknown, ttlMs?: number): Promise<unknown> {
    return readShared(this, this.#host.cache ?? NO_CACHE, { name, load, ttlMs });
  }

  attached(kind: SessionPeer["kind"]): readonly SessionPeer[] {
    return this.peers.attached(kind);
  }

  setTimer(name: string, ms: number): void {
    this.#mayAct("setTimer");
    checkTimer(name, ms, this.timers);
    this.#timer(name, this.now() + Math.ceil(ms));
  }

  clearTimer(name: string): void {
    this.#mayAct("clearTimer");
    if (this.timers.has(name)) this.#timer(name, null);
  }

  end(): void {
    this.#mayAct("end");
    for (const name of [...this.timers.keys()]) this.#timer(name, null);
    this.isEnded = true;
    this.check.alsoText("end");
  }

  // Inner parts

  #detach(peer: string): void {
    this.peers.detach(peer);
    this.#products.left.push(peer);
  }

  #mayAct(what: string): void {
    if (!this.#isMaking) {
      if (this.#turn !== null) return;
      throw this.#host.leaked?.(this, what) ?? new Error("a program acted outside of its turns");
    }
    throw new AppError(
      "no_request",
      `${what} works in a handler of a stateful session, not while its object is being made`,
    );
  }

  #timer(name: string, dueMs: number | null): void {
    if (dueMs === null) this.timers.delete(name);
    else this.timers.set(name, dueMs);
    this.check.text(name);
    this.check.number(dueMs ?? -1);
    this.#products.timers.push({ name, dueMs });
    this.trace?.add(
      `${dueMs === null ? "clears" : "sets"} the timer ${JSON.stringify(name)}`,
      undefined,
      () => shownTimer({ name, dueMs }),
    );
  }

  /** Gives out an output (PG2). */
  #give(to: string, sequence: number, bytes: Uint8Array): void {
    this.check.text(to);
    this.check.alsoNumber(sequence);
    this.check.bytes(bytes);
    this.#products.outputs.push({ to, sequence, bytes });
    this.trace?.add(
      `output ${sequence} to ${to}, ${bytes.length} bytes`,
      () => this.#host.placeOf?.(this.className, this.handler?.name ?? "") ?? "",
      () => shownOutput({ to, sequence, bytes }),
    );
  }

  #runLocal(number: number): void {
    const local = this.locals.get(number);
    this.locals.delete(number);
    try {
      local?.run();
    } catch (error) {
      this.fail(error);
    }
  }

  #settleCall(number: number, settle: (call: OpenCall) => void): void {
    const call = this.calls.get(number);
    this.calls.delete(number);
    if (call === undefined) return;
    try {
      settle(call);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Returns those calls of these numbers that a site makes. */
  callsOf(numbers: Iterable<number>): Call[] {
    const calls: Call[] = [];
    for (const call of numbers) {
      const open = this.calls.get(call);
      if (open === undefined || open.kind === "native") continue;
      calls.push({ call, kind: open.kind, bytes: open.bytes, effect: open.effect });
    }
    return calls;
  }
}
