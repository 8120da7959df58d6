/**
 * A site in virtual time for one stateful session: its isolates (turn loops, one alive), the keepers of its log, its
 * clients, a store, and a server outside. Everything takes a time drawn from the seed; an isolate, and a home with what
 * was on its way to the keepers, is lost at any moment.
 *
 * All of it runs within one macrotask: the microtasks of the program under test are drained by hand.
 */
import { decodeAnswer, encodeCall, type SessionAnswer } from "../../../../functions/calls/call.ts";
import { SESSION_SLOT, type SessionSlot } from "../../../../functions/class/session_slot.ts";
import type {
  BegunEvent,
  Call,
  Checkpoint,
  Commit,
  Effect,
  HandledEvent,
  KeptCheckpoint,
  OpenedProgram,
  OpenSession,
  Output,
  Parked,
  Rejection,
  SessionSink,
} from "../../../../functions/sessions/turn/mod.ts";
import { ProgramStore } from "../../../../functions/sessions/turn/session_store.ts";
import { type LoopHost, TurnLoop } from "../../../../functions/sessions/turn/turn_loop.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import type { Draws } from "../../../sim/random.ts";
import { keptAfter } from "./kept_checkpoint.ts";
import { drain } from "./drain.ts";
import { joined } from "./entries.ts";
import { Outside } from "./outside.ts";
import { Robot, stage, type Step } from "./robot.ts";
import { isOfSitter, Sitters } from "./sitters.ts";
import type { Plan, Received, Seen } from "./seen.ts";

/** What broken variants put their hands on; each part is optional. */
export interface Breaks {
  readonly host?: (host: LoopHost, site: Site) => LoopHost;
  readonly sink?: (sink: SessionSink, site: Site) => SessionSink;
  readonly open?: (open: OpenSession, site: Site) => OpenSession;
  /** Lets outputs out, or applies effects, before the commit is kept. */
  readonly hasty?: "outputs" | "effects";
}

interface Durable {
  at: number;
  checkpoint: KeptCheckpoint | null;
  /** Increments after the checkpoint. */
  commits: Commit[];
}

const none = new Uint8Array(0);
const SEED = Uint8Array.from({ length: 32 }, (_, i) => i * 7 + 1);
export const BEGIN_MS = Date.UTC(2026, 0, 1);

export class Site {
  readonly received: Received[] = [];
  readonly outside: Outside;
  readonly asked = new Map<string, { readonly script: readonly Step[]; readonly throws: boolean }>();
  readonly answers = new Map<string, SessionAnswer>();
  /** Requests that took their isolate with them. */
  readonly killed = new Set<string>();
  /** The state of the object at each commit point, by the number of its last entry. */
  readonly states = new Map<number, string>();
  readonly durable: Durable = { at: 0, checkpoint: null, commits: [] };
  readonly probes = {
    parked: 0,
    again: 0,
    killed: 0,
    losses: 0,
    midHandler: 0,
    rejected: 0,
    checkpoints: 0,
    replayed: 0,
  };
  parked: Parked | null = null;
  nowMs = BEGIN_MS;
  readonly #draws: Draws;
  readonly #breaks: Breaks;
  readonly plan: Plan;
  #events: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];
  #order = 0;
  /** Grows with each isolate: what was for an earlier one is for nobody. */
  #life = 0;
  epoch = 1;
  #loop: TurnLoop | undefined;
  object: Robot | undefined;
  /** Grows with each home: what was on its way from an earlier one is lost. */
  #home = 0;
  #arrivalMs = 0;
  #onTheirWay = 0;
  #isOpen = false;
  #number = 0;
  /** Events of this isolate that are not done. */
  readonly #undone = new Map<number, HandledEvent>();
  /** The timer in whose handler the last one was lost. */
  #killer: BegunEvent | null = null;
  /** What was rejected, by the number of its entry. */
  readonly rejections: Rejection[] = [];
  /** Requests that were delivered to this isolate. */
  #delivered = new Set<string>();
  #pending: { readonly commit: Commit; readonly done: readonly HandledEvent[] }[] = [];
  readonly sitters: Sitters;
  readonly #out = new Map<string, number>();
  readonly #seenOutputs = new Set<string>();
  #effectsApplied = 0;
  readonly #timers = new Map<string, number>();
  #storeClock = 1000;

  constructor(draws: Draws, plan: Plan, breaks: Breaks = {}) {
    this.#draws = draws;
    this.outside = new Outside(draws.fork("outside"));
    this.sitters = new Sitters({ deliver: (event) => this.#deliver(event), isOpen: () => this.#isOpen });
    this.plan = plan;
    this.#breaks = breaks;
  }

  // Time

  at(ms: number, run: () => void): void {
    this.#events.push({ atMs: this.nowMs + ms, order: this.#order++, run });
  }

  /** Runs what is due until nothing is left, or the time is over. */
  runUntil(endMs: number): void {
    for (let steps = 0;; steps++) {
      if (steps > 200_000) throw new Error("a run does not end");
      let next = 0;
      for (let i = 1; i < this.#events.length; i++) {
        const [a, b] = [this.#events[i], this.#events[next]];
        if (a && b && (a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order))) next = i;
      }
      const event = this.#events[next];
      if (event === undefined || event.atMs > endMs) return;
      this.#events.splice(next, 1);
      this.nowMs = Math.max(this.nowMs, event.atMs);
      event.run();
    }
  }

  #delay(ms: number): number {
    return this.#draws.integer(0, ms);
  }

  // Clients

  /** A request; its client asks again until it has an answer. */
  ask(id: string, script: readonly Step[]): void {
    this.asked.set(id, { script, throws: script.some(({ op }) => op === "throw") });
    this.#request(id, script);
  }

  #request(id: string, script: readonly Step[]): void {
    if (this.answers.has(id) || this.parked !== null) return;
    this.at(400, () => this.#request(id, script));
    if (!this.#isOpen || this.#delivered.has(id)) return;
    this.#delivered.add(id);
    const bytes = encodeCall({ kind: "rpc", method: "run", args: encodeValue([script]) });
    this.#deliver({ kind: "request", request: id, chain: [], bytes });
  }

  #deliver(event: HandledEvent): void {
    this.#undone.set(++this.#number, event);
    this.#loop?.deliver(1, { ...event, number: this.#number, storeClock: this.#tick() });
  }

  #tick(): number {
    return this.#storeClock += 16;
  }

  // Isolates

  /** Begins with an isolate. */
  start(): void {
    this.#openIsolate();
    if (this.plan.lossEveryMs > 0) this.at(this.#delay(this.plan.lossEveryMs * 2), this.#lose);
  }

  /** No isolate is lost any more. */
  calm(): void {
    this.#isCalm = true;
  }
  #isCalm = false;

  #lose = (): void => {
    if (this.#isCalm) return;
    this.probes.losses++;
    this.loseIsolate();
    this.at(1 + this.#delay(this.plan.lossEveryMs * 2), this.#lose);
  };

  /** An isolate is gone: with its home and what was on its way to the keepers, or alone. */
  loseIsolate(): void {
    this.#life++;
    this.#isOpen = false;
    this.#loop = undefined;
    if (this.#draws.chance(0.5)) {
      this.epoch++;
      this.#home++;
      this.#onTheirWay = 0;
      // The keepers got some of what was on its way, in order; nothing of it was let out.
      const kept = this.#draws.integer(0, this.#pending.length);
      for (const { commit } of this.#pending.splice(0).slice(0, kept)) this.#keep(commit);
      // A new home asks everyone again what they have.
      if (this.#draws.chance(0.5)) this.#out.clear();
      this.#storeClock += this.#delay(500);
    } else {
      while (this.#pending.length > 0) this.#kept();
      // One that took its isolate with it is not run again.
      const [first] = [...this.#delivered].filter((request) => !this.answers.has(request));
      if (first !== undefined && this.#draws.chance(0.5)) this.killed.add(first);
      const [event] = this.#undone.values();
      const isBlamed = event?.kind === "timer" || isOfSitter(event);
      if (isBlamed && this.#draws.chance(0.5)) this.#killer = event;
    }
    this.#openIsolate();
  }

  #openIsolate(): void {
    const life = this.#life;
    this.#delivered = new Set();
    this.#undone.clear();
    const loop = new TurnLoop(this.#host(life));
    this.#loop = loop;
    const { checkpoint, commits } = this.durable;
    const open: OpenSession = {
      class: "robot",
      id: "r",
      epoch: this.epoch,
      replica: this.epoch,
      code: "code",
      seed: SEED,
      checkpoint,
      entries: joined(commits),
      out: Object.fromEntries(this.#out),
      effectsApplied: this.#effectsApplied,
    };
    loop.open(1, this.#breaks.open?.(open, this) ?? open);
  }

  #host(life: number): LoopHost {
    const alive = (run: () => void) => () => {
      if (this.#life === life) run();
    };
    const sink = this.#sink(life);
    const host: LoopHost = {
      sink: this.#breaks.sink?.(sink, this) ?? sink,
      nowMs: () => this.nowMs,
      storeClock: (least) => Math.max(least + 1, this.#tick()),
      drain,
      ...this.plan.isLarge ? { largeBytes: 0 } : {},
      schedule: (run) => this.at(0, alive(() => this.#on(run))),
      after: (ms, run) => {
        let isOff = false;
        this.at(
          ms,
          alive(() => {
            if (!isOff) this.#on(run);
          }),
        );
        return () => isOff = true;
      },
      mark: () => {},
      make: (_, program) => {
        const slot: SessionSlot = { making: program };
        (globalThis as { [SESSION_SLOT]?: SessionSlot })[SESSION_SLOT] = slot;
        try {
          return this.object = new Robot();
        } finally {
          slot.making = undefined;
        }
      },
      envOf: (program) => new ProgramStore(program),
    };
    return this.#breaks.host?.(host, this) ?? host;
  }

  /** The loop's own code runs. */
  #on(run: () => void): void {
    stage.loop = this.#loop;
    try {
      run();
    } finally {
      stage.loop = undefined;
    }
  }

  #sink(life: number): SessionSink {
    const alive = <A extends unknown[]>(take: (...args: A) => void) => (_: number, ...args: A) => {
      if (this.#life === life) take(...args);
    };
    return {
      opened: alive((opened: OpenedProgram) => this.#opened(opened)),
      commit: alive((commit: Commit) => {
        if (commit.isPoint && commit.count > 0) {
          this.states.set(commit.first + commit.count - 1, JSON.stringify(this.object?.state()));
        }
        const done = [...this.#undone].filter(([number]) => number <= commit.through);
        for (const [number] of done) this.#undone.delete(number);
        this.#pending.push({ commit, done: done.map(([, event]) => event) });
        if (this.#breaks.hasty === "outputs") { for (const output of commit.outputs) this.#receive(output); }
        if (this.#breaks.hasty === "effects") {
          for (const effect of commit.effects) this.outside.apply(effect);
        }
        this.at(this.#delay(this.plan.keepMs), () => {
          while (this.#pending.some((each) => each.commit === commit)) this.#kept();
        });
      }),
      call: alive((call: Call) => this.#call(call)),
      dropped: () => {},
      checkpoint: alive((checkpoint: Checkpoint) => {
        const store = () => {
          const { at = 0 } = this.durable.checkpoint ?? {};
          // One after the other, as they were taken.
          if (this.durable.at < checkpoint.at || (checkpoint.on ?? 0) > at) {
            return void this.at(1, alive2(store));
          }
          if (at > checkpoint.at) return;
          this.probes.checkpoints++;
          this.durable.checkpoint = keptAfter(this.durable.checkpoint, checkpoint);
          this.durable.commits = this.durable.commits.filter(({ first }) => first > checkpoint.at);
        };
        const alive2 = (run: () => void) => () => {
          if (this.#life === life) run();
        };
        this.at(this.#delay(this.plan.keepMs * 3), alive2(store));
      }),
      parked: alive((parked: Parked) => {
        if (parked.code !== "handler_threw") return void (this.parked = parked);
        // An operator has it tried again.
        this.probes.parked++;
        this.#life++;
        this.#isOpen = false;
        this.#loop = undefined;
        this.at(this.#delay(200), () => {
          if (this.#loop !== undefined) return;
          while (this.#pending.length > 0) this.#kept();
          this.#openIsolate();
        });
      }),
      log: () => {},
    };
  }

  // What leaves

  #opened(opened: OpenedProgram): void {
    this.#isOpen = true;
    if (opened.handling !== null) {
      this.probes.midHandler++;
      this.#delivered.add(opened.handling);
    }
    for (const request of this.killed) {
      if (this.answers.has(request) || opened.outputs.some(({ to }) => to === request)) continue;
      this.probes.killed++;
      this.#delivered.add(request);
      const said = { code: "isolate_killed", message: "it took its isolate with it" };
      this.#deliver({ kind: "reject", of: { kind: "request", request, chain: [], bytes: none }, ...said });
    }
    const killer = this.#killer;
    this.#killer = null;
    if (killer !== null) {
      const said = { code: "isolate_killed", message: "it took its isolate with it" };
      this.#deliver({ kind: "reject", of: killer, ...said });
    }
    if (opened.sequence > 0) this.probes.replayed++;
    // A client that stays; who is attached already is not attached again.
    this.#deliver({ kind: "attach", peer: { kind: "client", id: "p" } });
    this.sitters.opened(opened, killer);
    this.#release(opened.outputs, opened.effects);
    this.#timers.clear();
    for (const { name, dueMs } of opened.timers) this.#timer(name, dueMs);
    for (const call of opened.calls) this.#call(call);
  }

  #keep(commit: Commit): void {
    if (commit.count > 0 && commit.first !== this.durable.at + 1) {
      throw new Error(`a commit of ${commit.first} has no place in a log up to ${this.durable.at}`);
    }
    this.durable.at += commit.count;
    this.durable.commits.push(commit);
    if (commit.rejected === null) return;
    if (commit.rejected.attempt > 0) this.probes.again++;
    this.rejections.push(commit.rejected);
  }

  /** The oldest commit is kept: what came of it leaves. */
  #kept(): void {
    const kept = this.#pending.shift();
    if (kept === undefined) return;
    const { commit } = kept;
    this.#keep(commit);
    this.sitters.kept(commit, kept.done);
    this.#release(commit.outputs, commit.effects);
    for (const { name, dueMs } of commit.timers) this.#timer(name, dueMs);
    for (const call of commit.calls) this.#call(call);
    if (this.plan.isCheckpointing && this.#draws.chance(0.2)) this.#loop?.checkpointNow(1);
  }

  /** Both take a while on their way, in order, and are lost with the home. */
  #release(outputs: readonly Output[], effects: readonly Effect[]): void {
    const home = this.#home;
    this.#arrivalMs = Math.max(this.#arrivalMs, this.nowMs + this.#delay(this.plan.arriveMs));
    this.#onTheirWay += effects.length;
    this.at(this.#arrivalMs - this.nowMs, () => {
      if (this.#home !== home) return;
      for (const output of outputs) this.#receive(output);
      for (const effect of effects) {
        this.outside.apply(effect);
        this.#effectsApplied = Math.max(this.#effectsApplied, effect.effect);
      }
      this.#onTheirWay -= effects.length;
      if (this.#draws.chance(0.4)) this.#acknowledge();
    });
  }

  #acknowledge(): void {
    const life = this.#life;
    const acknowledged = { outputs: Object.fromEntries(this.#out), effects: this.#effectsApplied };
    this.at(this.#delay(20), () => {
      if (this.#life === life) this.#loop?.acknowledge(1, acknowledged);
    });
  }

  #receive(output: Output): void {
    this.received.push({ ...output, atMs: this.nowMs });
    const name = `${output.to} ${output.sequence}`;
    if (this.#seenOutputs.has(name)) return;
    this.#seenOutputs.add(name);
    this.#out.set(output.to, Math.max(this.#out.get(output.to) ?? 0, output.sequence));
    if (!this.asked.has(output.to)) return;
    const answer = decodeAnswer(output.bytes);
    if (answer.kind === "error") this.probes.rejected++;
    this.answers.set(output.to, answer);
  }

  #timer(name: string, dueMs: number | null): void {
    if (dueMs === null) {
      this.#timers.delete(name);
      return;
    }
    this.#timers.set(name, dueMs);
    const life = this.#life;
    this.at(Math.max(0, dueMs - this.nowMs), () => {
      if (this.#life === life && this.#timers.get(name) === dueMs) {
        this.#deliver({ kind: "timer", name, dueMs });
      }
    });
  }

  // Calls

  #call(call: Call): void {
    const life = this.#life;
    const answer = () => {
      if (this.#life !== life) return;
      // A session's reads come after the effects of its commits.
      const hasEffects = this.#onTheirWay > 0 ||
        this.#pending.some(({ commit }) => commit.effects.length > 0);
      if (call.kind !== "fetch" && hasEffects) {
        return void this.at(1, answer);
      }
      const bytes = this.outside.answer(call, this.#tick(), this.epoch);
      this.at(this.#delay(this.plan.callMs), () => {
        if (this.#life !== life) return;
        this.#loop?.deliver(1, {
          kind: "result",
          storeClock: this.#tick(),
          call: call.call,
          outcome: { ok: true, bytes },
        });
      });
    };
    this.at(this.#delay(this.plan.callMs), answer);
  }

  get seen(): Seen {
    const { asked, killed, received, parked, rejections, plan, nowMs, outside: { posted, applied } } = this;
    const sitters = this.sitters.all;
    const { whenThrown } = plan;
    return {
      asked,
      killed,
      received,
      parked,
      rejections,
      whenThrown,
      posted,
      applied,
      sitters,
      endMs: nowMs,
    };
  }
}
