/** One run of a random program: a site, scripts drawn from the seed, losses, then peace, then what is wrong. */
import { Draws } from "../../../sim/random.ts";
import { check } from "./checker.ts";
import { Robot, type Step } from "./robot.ts";
import type { Plan } from "./seen.ts";
import { BEGIN_MS, type Breaks, Site } from "./site.ts";

/** A run's outcome. */
export interface Outcome {
  readonly wrong: readonly string[];
  readonly site: Site;
}

const PATHS = 5;
const KEYS = 6;

function drawStep(draws: Draws): Step {
  const key = draws.integer(1, KEYS);
  switch (draws.integer(0, 16)) {
    case 0:
      return { op: "clock" };
    case 1:
      return { op: "draw" };
    case 2:
      return { op: "busy" };
    case 3:
      return { op: "microtasks" };
    case 4:
      return { op: "list" };
    case 5:
    case 6:
      return { op: "sleep", ms: draws.integer(0, 40) };
    case 7:
      return { op: "later", ms: draws.integer(0, 120) };
    case 8:
    case 9:
      return { op: "race", keys: Array.from({ length: draws.integer(1, 4) }, () => draws.integer(1, KEYS)) };
    case 10:
      return { op: "put", key };
    case 11:
      return { op: "checked", key };
    case 12:
      return { op: "ask", path: draws.integer(1, PATHS) };
    case 13:
      return { op: "post", path: draws.integer(1, PATHS) };
    case 14:
      return draws.chance(0.7)
        ? { op: "timer", name: `${draws.pick(["t", "x"])}${draws.integer(1, 3)}`, ms: draws.integer(1, 200) }
        : { op: "unset", name: `${draws.pick(["t", "x"])}${draws.integer(1, 3)}` };
    case 15:
      return { op: "stray", key };
    default:
      return draws.chance(0.5) ? { op: "throw" } : { op: "clock" };
  }
}

function drawBiased(draws: Draws, { ops }: Bias): Step {
  for (;;) {
    const step = drawStep(draws);
    if (ops === undefined || ops.includes(step.op)) return step;
  }
}

/** What makes a rule likely to be needed. */
export interface Bias {
  readonly plan?: Partial<Plan>;
  /** Scripts are made of these steps only. */
  readonly ops?: readonly Step["op"][];
  /** In which requests come: short, they wait for each other. */
  readonly spanMs?: number;
}

/** What they say: no steps that a checker counts by the scripts of requests. */
const SAYINGS: readonly Step["op"][] = [
  "clock",
  "draw",
  "sleep",
  "race",
  "put",
  "ask",
  "microtasks",
  "timer",
];

/** Clients come, say something from time to time, and some of them go. */
function drawSitters(draws: Draws, site: Site): void {
  for (let i = draws.integer(0, 4); i > 0; i--) {
    const id = `${draws.pick(["a", "a", "u", "c"] as const)}${i}`;
    const scripts = Array.from({ length: draws.integer(0, 6) }, () => {
      const steps = Array.from({ length: draws.integer(0, 3) }, () => drawBiased(draws, { ops: SAYINGS }));
      return draws.chance(0.3) ? [...steps, { op: "balk" } as const] : steps;
    });
    const comesMs = draws.integer(0, 1_000);
    site.at(comesMs, () => site.sitters.come(id, scripts));
    for (const _ of scripts) site.at(comesMs + draws.integer(0, 1_000), () => site.sitters.speak(id));
    if (draws.chance(0.5)) site.at(comesMs + draws.integer(100, 1_500), () => site.sitters.leave(id));
  }
}

/** Runs a seed. In a macrotask: microtasks are drained by hand. */
export function runSeed(seed: string, breaks?: Breaks, bias: Bias = {}): Outcome {
  const draws = new Draws(seed);
  const plan = {
    lossEveryMs: draws.chance(0.15) ? 0 : draws.integer(20, 300),
    keepMs: draws.integer(0, 20),
    callMs: draws.integer(0, 15),
    arriveMs: draws.integer(0, 20),
    isCheckpointing: draws.chance(0.7),
    isLarge: draws.fork("large").chance(0.5),
    whenThrown: draws.pick(["reject", "retry", "park"] as const),
    ...bias.plan,
  };
  Robot.whenThrown = plan.whenThrown;
  const site = new Site(draws.fork("site"), plan, breaks);
  site.start();
  const scripts = draws.fork("scripts");
  for (let i = scripts.integer(3, 25); i > 0; i--) {
    const script = Array.from({ length: scripts.integer(0, 6) }, () => drawBiased(scripts, bias));
    site.at(scripts.integer(0, bias.spanMs ?? 1500), () => site.ask(`q${i}`, script));
  }
  drawSitters(draws.fork("sitters"), site);
  site.at(2000, () => site.calm());
  // Who comes last hears who is there. What throws is tried again for ten seconds, and by operators after that.
  site.at(590_000, () => site.sitters.come("z", []));
  site.runUntil(BEGIN_MS + 600_000);
  return { wrong: [...check(site.seen), ...site.sitters.wrong], site };
}

/** Runs something in a macrotask, while what programs leave unhandled is nobody's. */
export async function inMacrotask<T>(run: () => T): Promise<T> {
  const ignore = (event: Event) => event.preventDefault();
  globalThis.addEventListener("unhandledrejection", ignore);
  try {
    return await new Promise<T>((resolve, reject) => {
      setImmediate(() => {
        try {
          resolve(run());
        } catch (error) {
          reject(error);
        }
      });
    });
  } finally {
    globalThis.removeEventListener("unhandledrejection", ignore);
  }
}
