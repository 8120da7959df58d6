/** A turn loop with one class and no site: what comes out is collected, what goes in is the test's. In a macrotask. */
import { SESSION_SLOT, type SessionSlot } from "../../../../functions/class/session_slot.ts";
import { ChainedCaller } from "../../../../functions/sessions/turn/session_calls.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import type {
  Call,
  Checkpoint,
  Commit,
  HandledEvent,
  OpenedProgram,
  OpenSession,
  Parked,
} from "../../../../functions/sessions/turn/mod.ts";
import type { Program } from "../../../../functions/sessions/turn/program.ts";
import { ProgramStore } from "../../../../functions/sessions/turn/session_store.ts";
import { TurnLoop } from "../../../../functions/sessions/turn/turn_loop.ts";
import { stage } from "./robot.ts";
import { joined } from "./entries.ts";
import { drain } from "./drain.ts";

/** What a test's sessions find as their env. */
export interface SoloEnv {
  readonly store: ProgramStore;
  readonly sessions: ChainedCaller;
}

const soloEnv = (program: Program): SoloEnv => ({
  store: new ProgramStore(program),
  sessions: new ChainedCaller(program),
});

const SEED = Uint8Array.from({ length: 32 }, (_, i) => i);

/** See the file's header. */
export class Solo {
  readonly loop: TurnLoop;
  readonly commits: Commit[] = [];
  readonly calls: Call[] = [];
  readonly checkpoints: Checkpoint[] = [];
  readonly timersDue: (() => void)[] = [];
  /** All times for which something was to wait. */
  readonly delays: number[] = [];
  opened: OpenedProgram | null = null;
  parked: Parked | null = null;
  object: SessionObject | null = null;
  nowMs = 1_000_000;
  #queue: (() => void)[] = [];
  #number = 0;
  #clock = 0;

  constructor(Class: new () => SessionObject, envOf: (program: Program) => unknown = soloEnv) {
    this.loop = new TurnLoop({
      sink: {
        opened: (_, opened) => this.opened = opened,
        commit: (_, commit) => this.commits.push(commit),
        call: (_, call) => this.calls.push(call),
        dropped: () => {},
        checkpoint: (_, checkpoint) => this.checkpoints.push(checkpoint),
        parked: (_, parked) => this.parked = parked,
        log: () => {},
      },
      nowMs: () => this.nowMs,
      storeClock: (least) => this.#clock = Math.max(least, this.#clock) + 16,
      drain,
      schedule: (run) => void this.#queue.push(run),
      after: (ms, run) => {
        this.delays.push(ms);
        this.timersDue.push(run);
        return () => this.timersDue.splice(this.timersDue.indexOf(run), 1);
      },
      mark: () => {},
      make: (_, program) => {
        const slot: SessionSlot = { making: program };
        (globalThis as { [SESSION_SLOT]?: SessionSlot })[SESSION_SLOT] = slot;
        return this.object = new Class();
      },
      envOf,
    });
  }

  open(options: Partial<OpenSession> = {}, channel = 1): this {
    this.loop.open(channel, {
      ...{ class: "solo", id: "s", epoch: 1, replica: 1, code: "code", seed: SEED },
      ...{ checkpoint: null, entries: new Uint8Array(0), out: {}, effectsApplied: 0 },
      ...options,
    });
    return this.run();
  }

  /** What all commits so far have written. */
  get entries(): Uint8Array {
    return joined(this.commits);
  }

  deliver(event: HandledEvent, channel = 1): this {
    this.loop.deliver(channel, { ...event, number: ++this.#number, storeClock: this.#clock += 16 });
    return this.run();
  }

  result(call: number, bytes: Uint8Array): this {
    this.loop.deliver(1, {
      kind: "result",
      call,
      storeClock: this.#clock += 16,
      outcome: { ok: true, bytes },
    });
    return this.run();
  }

  /** Runs what is due. */
  run(): this {
    stage.loop = this.loop;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) next();
    stage.loop = undefined;
    return this;
  }
}
