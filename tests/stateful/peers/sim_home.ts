/**
 * The log of a session at its owners, and homes of it: each with the real home side of its peers and the real executor,
 * a disk of others that takes its time, an isolate that is killed, a clock that jumps, pauses, and an end.
 */
import { HomeSide, type PeerInput, type Released } from "../../../functions/sessions/attach/mod.ts";
import { SESSION_SLOT, type SessionSlot } from "../../../functions/class/session_slot.ts";
import { readEntries } from "../../../functions/sessions/turn/log_entry.ts";
import type {
  Checkpoint,
  Commit,
  HandledEvent,
  KeptCheckpoint,
  OpenedProgram,
  OpenSession,
  SessionSink,
} from "../../../functions/sessions/turn/mod.ts";
import { type LoopHost, TurnLoop } from "../../../functions/sessions/turn/turn_loop.ts";
import type { Program } from "../../../functions/sessions/turn/program.ts";
import type { Draws } from "../../sim/random.ts";
import { keptAfter } from "../../functions/sessions/turn/kept_checkpoint.ts";
import { joined } from "../../functions/sessions/turn/entries.ts";
import { drain } from "../../functions/sessions/turn/drain.ts";
import { type Committed, Ledger, Room, stage } from "./room.ts";
import type { World } from "./world.ts";

/** What the owners have: with the promise of an epoch goes what they have, in one step. */
export class OwnersLog {
  epoch = 0;
  length = 0;
  checkpoint: KeptCheckpoint | null = null;
  commits: Commit[] = [];
  /** All that was ever committed, as it would be without checkpoints. */
  readonly ledger = new Ledger();
  readonly probes = { checkpoints: 0, rejections: 0 };

  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  append(commit: Commit): void {
    if (commit.count > 0 && commit.first !== this.length + 1) {
      throw new Error(`a commit of ${commit.first} has no place in a log up to ${this.length}`);
    }
    this.length += commit.count;
    this.commits.push(commit);
    for (const entry of readEntries(commit.entries)) {
      if (entry.kind === "turn") this.#account(entry.input);
    }
  }

  cut(checkpoint: Checkpoint): void {
    if ((this.checkpoint?.at ?? 0) >= checkpoint.at) return;
    this.probes.checkpoints++;
    this.checkpoint = keptAfter(this.checkpoint, checkpoint);
    this.commits = this.commits.filter(({ first }) => first > checkpoint.at);
  }

  #account(input: Extract<ReturnType<typeof readEntries>[number], { kind: "turn" }>["input"]): void {
    switch (input.kind) {
      case "attach":
        return this.#take({ kind: "attach", peer: input.peer.id });
      case "detach":
        return this.#take({ kind: "detach", peer: input.peer });
      case "timer":
        return this.#take({ kind: "timer", name: input.name });
      case "message": {
        const { peer, message } = input;
        const text = typeof message === "string" ? message : new TextDecoder().decode(message);
        return this.#take({ kind: "message", peer, text });
      }
      case "rejected":
        this.probes.rejections++;
        if (input.attempt === 0 && input.subject?.kind === "message") {
          this.#take({ kind: "message", peer: input.subject.id, text: null });
        }
    }
  }

  #take(input: Committed): void {
    this.ledger.take(input, this.length, this.#nowMs());
  }
}

export interface HomePlan {
  /** Milliseconds until a commit is with the owners, and until that is known, at most. */
  readonly keepMs: number;
  readonly graceMs: number;
  readonly outboxBytesMax: number;
  /** Of one peer's messages with the session at a time. */
  readonly handedMax: number;
  readonly isCheckpointing: boolean;
}

/** What broken variants put their hands on; each part is optional. */
export interface HomeBreaks {
  /** Lets outputs out, or says that messages are in the log, before the commit is kept. */
  readonly hasty?: "outputs" | "done";
  /** Owners take what a home says that they have promised to nobody any more. */
  readonly unfenced?: boolean;
  /** Before an event goes to the session; what is returned goes. */
  readonly deliver?: (home: SimHome, event: PeerInput) => readonly PeerInput[];
  readonly checkpoint?: (checkpoint: Checkpoint) => Checkpoint;
  readonly program?: (program: Program) => void;
  readonly opened?: (home: SimHome, opened: OpenedProgram) => OpenedProgram;
  readonly graceMs?: number;
  /** What peers have, as the isolate is told. */
  readonly acknowledge?: (
    home: SimHome,
    outputs: Readonly<Record<string, number>>,
  ) => Readonly<Record<string, number>>;
}

const SEED = Uint8Array.from({ length: 32 }, (_, i) => i * 5 + 3);
const BEGIN_MS = Date.UTC(2026, 0, 1);

interface Pending {
  readonly commit: Commit;
  readonly done: readonly PeerInput[];
}

/** One home: a site's process, for one epoch. */
export class SimHome {
  readonly epoch: number;
  readonly side: HomeSide;
  isDead = false;
  isOver = false;
  readonly #world: World;
  readonly #draws: Draws;
  readonly #log: OwnersLog;
  readonly #plan: HomePlan;
  readonly #breaks: HomeBreaks;
  #loop: TurnLoop | undefined;
  #life = 0;
  #isOpen = false;
  #number = 0;
  #undone = new Map<number, PeerInput | null>();
  /** Appended, and not released. */
  #pending: Pending[] = [];
  #appendMs = 0;
  #releaseMs = 0;
  #isPaused = false;
  /** What came meanwhile, in order. */
  readonly #backlog: (() => void)[] = [];
  #skewMs = 0;
  readonly #timers = new Map<string, number>();
  #isTimeless = false;
  /** In whose handler the isolate was killed. */
  #culprit: PeerInput | null = null;

  constructor(
    world: World,
    draws: Draws,
    log: OwnersLog,
    plan: HomePlan,
    breaks: HomeBreaks,
    newId: () => string,
  ) {
    this.#world = world;
    this.#draws = draws;
    this.#log = log;
    this.#plan = plan;
    this.#breaks = breaks;
    this.epoch = ++log.epoch;
    this.side = new HomeSide({
      clock: {
        nowMs: () => world.nowMs(),
        after: (ms, run) => {
          let isOff = false;
          this.at(ms, () => {
            if (!isOff) run();
          });
          return () => {
            isOff = true;
          };
        },
      },
      deliver: (event) => {
        for (const each of breaks.deliver?.(this, event) ?? [event]) this.hand(each);
      },
      acknowledge: (outputs) => {
        const told = breaks.acknowledge?.(this, outputs) ?? outputs;
        this.#loop?.acknowledge(1, { outputs: told, effects: 0 });
      },
      newId,
      keysOf: (id) => [keyOf(id)],
      outrun: () => this.at(draws.integer(0, 50), () => this.#fence()),
      graceMs: breaks.graceMs ?? plan.graceMs,
      outboxBytesMax: plan.outboxBytesMax,
      handedMax: plan.handedMax,
    });
    this.#openIsolate();
  }

  /** Calls back in this process: later where it is paused, never where it is dead. */
  at(ms: number, run: () => void): void {
    this.#world.at(ms, () => this.now(run));
  }

  now(run: () => void): void {
    if (this.isDead) return;
    if (this.#isPaused) this.#backlog.push(run);
    else run();
  }

  // ── Faults ──

  die(): void {
    this.isDead = true;
    this.#loop = undefined;
  }

  pause(ms: number): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#world.at(ms, () => {
      this.#isPaused = false;
      for (const run of this.#backlog.splice(0)) this.now(run);
    });
  }

  jump(ms: number): void {
    this.#skewMs += ms;
  }

  /** The isolate is gone: another one goes on, when what it gave out is with the owners. */
  killIsolate(isReleaseLost: boolean): void {
    if (this.#loop === undefined) return;
    const [first] = this.#undone.values();
    if (first?.kind === "message" && this.#draws.chance(0.4)) this.#culprit = first;
    this.#life++;
    this.#isOpen = false;
    this.#loop = undefined;
    this.#undone = new Map();
    if (isReleaseLost) this.#isReleaseLost = true;
    this.#reopenWhenKept();
  }
  #isReleaseLost = false;

  #reopenWhenKept(): void {
    this.at(5, () => {
      if (this.#pending.length > 0) return this.#reopenWhenKept();
      this.#isReleaseLost = false;
      if (this.isOver || this.#loop !== undefined) return;
      // Its own disk would not give it a log that another home goes on with.
      if (this.#log.epoch === this.epoch) this.#openIsolate();
      else this.#fence();
    });
  }

  /** Another home has the session. */
  #fence(): void {
    if (this.isOver || this.#log.epoch === this.epoch) return;
    this.isOver = true;
    this.#loop = undefined;
    this.side.over(null);
  }

  /** Another site has opened the session: it finds out in so long. */
  outlived(ms: number): void {
    this.at(ms, () => this.#fence());
  }

  // ── The isolate ──

  /** To the session, where it is open. @param isKnown its home side waits for it. */
  hand(event: PeerInput, isKnown = true): void {
    if (!this.#isOpen) return; // it comes again when the session is open
    const number = ++this.#number;
    this.#undone.set(number, isKnown ? event : null);
    const isCulprit = event === this.#culprit;
    if (isCulprit) this.#culprit = null;
    const handled: HandledEvent = isCulprit && event.kind === "message"
      ? {
        kind: "reject",
        of: event,
        code: "isolate_killed",
        message: "it took its isolate with it",
      }
      : event;
    this.#loop?.deliver(1, { ...handled, number, storeClock: 0 });
  }

  #openIsolate(): void {
    const life = this.#life;
    const loop = this.#loop = new TurnLoop(this.#host(life));
    const { checkpoint, commits } = this.#log;
    const open: OpenSession = {
      class: "room",
      id: "r",
      epoch: this.epoch,
      replica: this.epoch,
      code: "code",
      seed: SEED,
      checkpoint,
      entries: joined(commits),
      out: {},
      effectsApplied: 0,
    };
    loop.open(1, open);
  }

  #host(life: number): LoopHost {
    const alive = (run: () => void) => () => {
      if (this.#life === life && !this.isOver) run();
    };
    return {
      sink: this.#sink(life),
      nowMs: () => BEGIN_MS + this.#world.nowMs() + this.#skewMs,
      storeClock: (least) => least + 1,
      drain,
      schedule: (run) => this.at(0, alive(() => this.#on(run))),
      after: (ms, run) => {
        let isOff = false;
        this.at(
          ms,
          alive(() => {
            if (!isOff) this.#on(run);
          }),
        );
        return () => {
          isOff = true;
        };
      },
      mark: () => {},
      make: (_, program) => {
        this.#breaks.program?.(program);
        const slot: SessionSlot = { making: program };
        (globalThis as { [SESSION_SLOT]?: SessionSlot })[SESSION_SLOT] = slot;
        try {
          return new Room();
        } finally {
          slot.making = undefined;
        }
      },
      envOf: () => null,
    };
  }

  #on(run: () => void): void {
    stage.loop = this.#loop;
    try {
      run();
    } finally {
      stage.loop = undefined;
    }
  }

  #sink(life: number): SessionSink {
    const alive = <A>(take: (said: A) => void) => (_: number, said: A) => {
      if (this.#life === life && !this.isOver) take(said);
    };
    return {
      opened: alive((opened: OpenedProgram) => this.#opened(this.#breaks.opened?.(this, opened) ?? opened)),
      commit: alive((commit: Commit) => this.#committed(commit)),
      checkpoint: alive((checkpoint: Checkpoint) => {
        const { epoch } = this;
        const cut = () => {
          // One that is under way when its isolate ends is given up: the next goes on from what is kept.
          if (this.#log.epoch !== epoch || this.#life !== life) return;
          // One after the other, as they were taken.
          const isEarly = (checkpoint.on ?? 0) > (this.#log.checkpoint?.at ?? 0);
          if (this.#log.length < checkpoint.at || isEarly) return this.at(3, cut);
          this.#log.cut(this.#breaks.checkpoint?.(checkpoint) ?? checkpoint);
        };
        this.at(this.#draws.integer(0, this.#plan.keepMs), cut);
      }),
      parked: alive(({ code, message }) => {
        throw new Error(`the session stands still: ${code}: ${message}`);
      }),
      call: () => {},
      dropped: () => {},
      log: () => {},
    };
  }

  #opened(opened: OpenedProgram): void {
    this.#isOpen = true;
    this.side.opened({ epoch: this.epoch, peers: opened.peers, outputs: opened.outputs });
    this.#timers.clear();
    for (const { name, dueMs } of opened.timers) this.#timer(name, dueMs);
  }

  #timer(name: string, dueMs: number | null): void {
    if (this.#isTimeless) return;
    if (dueMs === null) return void this.#timers.delete(name);
    this.#timers.set(name, dueMs);
    const life = this.#life;
    this.at(Math.max(0, dueMs - BEGIN_MS - this.#skewMs - this.#world.nowMs()), () => {
      if (this.#life !== life || this.#timers.get(name) !== dueMs || !this.#isOpen) return;
      const number = ++this.#number;
      this.#undone.set(number, null);
      this.#loop?.deliver(1, { kind: "timer", name, dueMs, number, storeClock: 0 });
    });
  }

  /** None is called any more. */
  stopTimers(): void {
    this.#isTimeless = true;
    this.#timers.clear();
  }

  // ── Commits ──

  #committed(commit: Commit): void {
    const done: PeerInput[] = [];
    for (const [number, event] of this.#undone) {
      if (number > commit.through) break;
      this.#undone.delete(number);
      if (event !== null) done.push(event);
    }
    const pending = { commit, done };
    this.#pending.push(pending);
    const { hasty } = this.#breaks;
    if (hasty === "outputs") this.side.released({ done: [], outputs: commit.outputs });
    if (hasty === "done") this.#tell(pending, { done, outputs: [] });
    const nowMs = this.#world.nowMs();
    this.#appendMs = Math.max(this.#appendMs, nowMs + this.#draws.integer(0, this.#plan.keepMs));
    // A piece on its way arrives also where its home has died.
    this.#world.at(this.#appendMs - nowMs, () => this.#append(pending));
  }

  #append(pending: Pending): void {
    if (this.#log.epoch !== this.epoch && this.#breaks.unfenced !== true) {
      return this.at(this.#draws.integer(0, 100), () => this.#fence());
    }
    if (this.#log.epoch === this.epoch) this.#log.append(pending.commit);
    const nowMs = this.#world.nowMs();
    this.#releaseMs = Math.max(this.#releaseMs, nowMs + this.#draws.integer(0, this.#plan.keepMs));
    this.at(this.#releaseMs - nowMs, () => {
      this.#pending.shift();
      if (this.isOver || this.#isReleaseLost) return;
      this.#release(pending);
      for (const { name, dueMs } of pending.commit.timers) this.#timer(name, dueMs);
      if (this.#plan.isCheckpointing && this.#draws.chance(0.1)) this.#loop?.checkpointNow(1);
    });
  }

  #release(pending: Pending): void {
    const { hasty } = this.#breaks;
    this.#tell(pending, {
      done: hasty === "done" ? [] : pending.done,
      outputs: hasty === "outputs" ? [] : pending.commit.outputs,
    });
  }

  #tell(
    { commit, done: all }: Pending,
    { done, outputs }: Pick<Released, "outputs"> & Pick<Pending, "done">,
  ): void {
    const last = all.at(-1);
    this.side.released({
      done: done.map((event) => ({ event, rejected: event === last ? commit.rejected : null })),
      outputs,
    });
  }
}

/** Not a MAC: who forges keys is not simulated. */
const keyOf = (id: string): Uint8Array => new TextEncoder().encode(id.padEnd(32, "k")).subarray(0, 32);
