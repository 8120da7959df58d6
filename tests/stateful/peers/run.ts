/** One run: devices, homes and faults drawn from the seed, then peace, then what is wrong. */
import { Draws } from "../../sim/random.ts";
import { check } from "./checker.ts";
import type { Op } from "./room.ts";
import { type HomeBreaks, type HomePlan, OwnersLog, SimHome } from "./sim_home.ts";
import { type Net, SimHost } from "./sim_host.ts";
import { type Meddle, Wire, type WirePlan, World } from "./world.ts";

/** What is drawn of a run, and may be biased. */
export interface Plan extends HomePlan, WirePlan {
  readonly hosts: number;
  readonly messages: number;
  readonly spanMs: number;
  /** Between two faults of the kind, on average; 0: none. */
  readonly crashMs: number;
  readonly killMs: number;
  readonly takeoverMs: number;
  readonly pauseMs: number;
  readonly jumpMs: number;
  /** A gateway dies, and with it some channels at once. */
  readonly relayMs: number;
  readonly reconnectMs: number;
  /** A second device speaks for a peer. */
  readonly cloneMs: number;
  /** A device's program ends, and another goes on with what it has kept. */
  readonly restartMs: number;
  readonly closes: number;
  /** That a device dies without a word. */
  readonly deaths: number;
  readonly ops: readonly Op[];
}

/** A run that is broken on purpose. */
export interface Breaks extends HomeBreaks {
  readonly meddle?: Meddle;
}

export interface Outcome {
  readonly wrong: readonly string[];
  readonly probes: Readonly<Record<string, number>>;
  /** Frames that were sent. */
  readonly frames: number;
  readonly commits: number;
}

const OPS: readonly Op[] = [
  "echo",
  "echo",
  "echo",
  "all",
  "all",
  "quiet",
  "slow",
  "tick",
  "big",
  "throw",
  "none",
];
/** Longer than a host waits for a welcome. */
const PEACE_MS = 13_000;
/** What timers have sent by then arrives within this. */
const LAST_MS = 1_000;

export function drawPlan(draws: Draws): Plan {
  const every = (chance: number, least: number, most: number) =>
    draws.chance(chance) ? draws.integer(least, most) : 0;
  return {
    hosts: draws.integer(1, 4),
    messages: draws.integer(0, 60),
    spanMs: 3_000,
    keepMs: draws.integer(0, 25),
    graceMs: 1_600,
    outboxBytesMax: 24_000,
    handedMax: draws.pick([1, 2, 5, 64]),
    isCheckpointing: draws.chance(0.7),
    delayMs: draws.integer(0, 25),
    breaks: draws.chance(0.6) ? draws.unit() * 0.06 : 0,
    garbles: draws.chance(0.3) ? draws.unit() * 0.05 : 0,
    stalls: draws.chance(0.3) ? draws.unit() * 0.02 : 0,
    stallMs: draws.integer(100, 900),
    crashMs: every(0.5, 300, 1_500),
    killMs: every(0.5, 200, 1_000),
    takeoverMs: every(0.5, 300, 1_500),
    pauseMs: every(0.3, 300, 1_500),
    jumpMs: every(0.3, 300, 1_500),
    relayMs: every(0.3, 300, 1_500),
    reconnectMs: every(0.4, 200, 1_000),
    cloneMs: every(0.25, 500, 2_500),
    restartMs: every(0.3, 300, 1_500),
    closes: draws.chance(0.4) ? 0.4 : 0,
    deaths: draws.chance(0.3) ? 0.3 : 0,
    ops: draws.chance(0.15) ? [...OPS, "kick"] : OPS,
  };
}

/** Where faults are put by hand: at the frame, or the commit, of that number. */
export interface Spot {
  readonly breakAtFrame?: number;
  readonly crashAtFrame?: number;
}

class Simulation implements Net {
  readonly world = new World();
  readonly log = new OwnersLog(() => this.world.nowMs());
  readonly hosts: SimHost[] = [];
  readonly probes: Record<string, number> = {};
  frames = 0;
  #homes: SimHome[] = [];
  #wires = new Set<Wire>();
  #ids = 0;
  #isCalm = false;
  readonly #draws: Draws;
  readonly #plan: Plan;
  readonly #breaks: Breaks;
  readonly #spot: Spot;

  constructor(draws: Draws, plan: Plan, breaks: Breaks, spot: Spot) {
    this.#draws = draws;
    this.#plan = plan;
    this.#breaks = breaks;
    this.#spot = spot;
  }

  run(): Outcome {
    const plan = this.#plan;
    this.#openHome();
    for (let i = 0; i < plan.hosts; i++) this.#newHost(`h${i}`, this.#draws.integer(0, 500));
    this.#faults();
    this.world.at(plan.spanMs, () => this.#calm());
    this.world.runUntil(plan.spanMs + PEACE_MS);
    // A clock that was set may have left a timer for any time: what that says is not to be cut off by the end of the run.
    for (const home of this.#homes) home.stopTimers();
    this.world.runUntil(plan.spanMs + PEACE_MS + LAST_MS);
    const { graceMs, outboxBytesMax } = plan;
    const { ledger, length, probes, commits } = this.log;
    const wrong = check({ ledger, hosts: this.hosts, logged: length, graceMs, outboxBytesMax });
    return { wrong, probes: { ...this.probes, ...probes }, frames: this.frames, commits: commits.length };
  }

  // ── Net ──

  get #current(): SimHome | undefined {
    return this.#homes.at(-1);
  }

  route(): SimHome | null {
    const living = this.#homes.filter(({ isDead }) => !isDead);
    // Routes that are out of date lead to an old home.
    if (!this.#isCalm && living.length > 0 && this.#draws.chance(0.2)) return this.#draws.pick(living);
    return living.at(-1) ?? null;
  }

  wire(host: SimHost): Wire {
    const { delayMs, stallMs, breaks, garbles, stalls } = this.#plan;
    const calm = { delayMs, stallMs, breaks: 0, garbles: 0, stalls: 0 };
    const meddle: Meddle = this.#breaks.meddle ?? ((_, __, frame) => frame);
    const plan = this.#isCalm ? calm : { delayMs, stallMs, breaks, garbles, stalls };
    const wire = new Wire(this.world, this.#draws, plan, meddle, () => this.#counted());
    this.#wires.add(wire);
    this.note(host.side.identity === null ? "hello" : "hello again");
    return wire;
  }

  #counted(): boolean {
    this.frames++;
    if (this.frames === this.#spot.crashAtFrame) this.world.at(0, () => this.#crash());
    return this.frames === this.#spot.breakAtFrame;
  }

  logLength(): number {
    return this.log.length;
  }

  readonly note = (name: string): void => {
    this.probes[name] = (this.probes[name] ?? 0) + 1;
  };

  // ── Homes ──

  #openHome(): void {
    this.#homes.push(
      new SimHome(this.world, this.#draws, this.log, this.#plan, this.#breaks, () => `p${++this.#ids}`),
    );
  }

  /** Its process dies; it is missed, and another site opens the session. */
  #crash(): void {
    const home = this.#current;
    if (home === undefined || home.isDead) return;
    this.note("crash");
    home.die();
    for (const wire of this.#wires) if (this.#draws.chance(0.95)) wire.break();
    this.world.at(this.#draws.integer(20, 300), () => {
      if (this.#current === home) this.#openHome();
    });
  }

  /** Another site opens the session while its home lives on, and finds out later. */
  #takeover(): void {
    const home = this.#current;
    if (home === undefined || home.isDead) return;
    this.note("takeover");
    this.#openHome();
    home.outlived(this.#draws.integer(0, 500));
  }

  // ── Devices ──

  #newHost(name: string, ms: number): void {
    const host = new SimHost(name, this, this.#draws.fork(name));
    this.hosts.push(host);
    this.world.at(ms, () => host.start());
    const { messages, spanMs, closes, deaths, ops } = this.#plan;
    const draws = this.#draws.fork(`${name} says`);
    for (let i = draws.integer(0, messages); i > 0; i--) {
      const said = Array.from({ length: draws.integer(1, 2) }, () => draws.pick(ops));
      this.world.at(ms + draws.integer(0, spanMs), () => host.send(said));
    }
    if (draws.chance(deaths)) this.world.at(ms + draws.integer(100, spanMs), () => host.die());
    if (draws.chance(closes)) this.world.at(ms + draws.integer(100, spanMs), () => host.close());
  }

  /** Another device goes on from what one has saved, which lives on, or does not. */
  #clone(isRestart: boolean): void {
    const host = this.#draws.pick(this.hosts);
    const state = host.side.save();
    if (state === null || host.side.stage === "closed" || host.isClosing || host.isDead) return;
    this.note(isRestart ? "restart" : "clone");
    if (isRestart) host.die();
    else host.isContested = true;
    const name = `${host.name}'`;
    const second = new SimHost(name, this, this.#draws.fork(`${name}${this.hosts.length}`), {
      state,
      of: host,
    });
    second.isContested = host.isContested;
    this.hosts.push(second);
    this.world.at(this.#draws.integer(0, 300), () => {
      second.start();
      second.send(["all"]);
      this.world.at(200, () => second.send(["echo"]));
    });
  }

  // ── Faults ──

  #every(ms: number, what: () => void): void {
    if (ms === 0) return;
    this.world.at(this.#draws.integer(1, ms * 2), () => {
      if (this.#isCalm) return;
      what();
      this.#every(ms, what);
    });
  }

  #faults(): void {
    const plan = this.#plan;
    this.#every(plan.crashMs, () => this.#crash());
    this.#every(plan.takeoverMs, () => this.#takeover());
    this.#every(plan.killMs, () => {
      this.note("kill");
      this.#current?.killIsolate(this.#draws.chance(0.5));
    });
    this.#every(plan.pauseMs, () => this.#current?.pause(this.#draws.integer(10, 700)));
    this.#every(plan.jumpMs, () => this.#current?.jump(this.#draws.integer(-60_000, 60_000)));
    this.#every(plan.relayMs, () => {
      for (const wire of this.#wires) if (this.#draws.chance(0.5)) wire.break();
    });
    this.#every(plan.reconnectMs, () => this.#draws.pick(this.hosts).reconnect());
    this.#every(plan.cloneMs, () => this.#clone(false));
    this.#every(plan.restartMs, () => this.#clone(true));
  }

  #calm(): void {
    this.#isCalm = true;
    for (const wire of this.#wires) wire.calm();
    if (this.#current?.isDead !== false) this.#openHome();
  }
}

/** Runs a seed. In a macrotask: microtasks are drained by hand. */
export function runSeed(
  seed: string,
  breaks: Breaks = {},
  bias: Partial<Plan> = {},
  spot: Spot = {},
): Outcome {
  const draws = new Draws(`peers ${seed}`);
  const plan = { ...drawPlan(draws.fork("plan")), ...bias };
  return new Simulation(draws.fork("run"), plan, breaks, spot).run();
}
