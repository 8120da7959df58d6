/**
 * What goes wrong in a round of the soak: drawn from a seed, done and undone through the chaos surface.
 *
 * F1  No fault takes a disk away: whatever was acknowledged must be there in the end.
 * F2  What is done is undone in the same round.
 */
import type { ChaosAction } from "../../runtime/chaos/actions.ts";
import type { Random } from "../examples/board/random.ts";

/** One round's fault. */
export interface Fault {
  /** For the report: `kill`, `kill 3`, `pause`, `partition`, `restart`, `kill + partition`. */
  readonly kind: string;
  readonly begin: readonly ChaosAction[];
  readonly end: readonly ChaosAction[];
  readonly awayMs: number;
  /** Whether the next round waits until the tree is whole, or comes while sites still find each other. */
  readonly calm: boolean;
}

const AWAY_MS_MIN = 200;
const AWAY_MS_MAX = 1_800;

/** Draws a round's fault. */
export function drawFault(sites: readonly string[], random: Random): Fault {
  const roll = random.below(100);
  const one = random.pick(sites);
  const other = random.pick(sites.filter((site) => site !== one));
  const common = {
    awayMs: AWAY_MS_MIN + random.below(AWAY_MS_MAX - AWAY_MS_MIN),
    calm: random.unit() < 0.6,
  };
  if (roll < 30) return { kind: "kill", ...killed([one]), ...common };
  if (roll < 44) {
    const some = several(sites, 2 + random.below(sites.length - 2), random);
    return { kind: `kill ${some.length}`, ...killed(some), ...common };
  }
  if (roll < 47) return { kind: "kill all", ...killed(sites), ...common };
  if (roll < 57) return { kind: "restart", begin: [{ action: "restart", site: one }], end: [], ...common };
  if (roll < 72) return { kind: "pause", ...paused([one]), ...common };
  if (roll < 76) return { kind: "pause 2", ...paused([one, other]), ...common };
  if (roll < 84) return { kind: "partition one", ...parted([one]), ...common };
  if (roll < 91) return { kind: "partition pair", ...parted([one], [other]), ...common };
  if (roll < 94) {
    return { kind: "partition group", ...parted(several(sites, 2 + random.below(2), random)), ...common };
  }
  const cut = parted([one]);
  const dead = random.unit() < 0.5 ? killed([one]) : killed([other]);
  return {
    kind: "partition + kill",
    begin: [...cut.begin, ...dead.begin],
    end: [...dead.end, ...cut.end],
    ...common,
  };
}

type Steps = Pick<Fault, "begin" | "end">;

const killed = (sites: readonly string[]): Steps => ({
  begin: sites.map((site) => ({ action: "kill", site })),
  end: sites.map((site) => ({ action: "restart", site })),
});

const paused = (sites: readonly string[]): Steps => ({
  begin: sites.map((site) => ({ action: "pause", site })),
  end: sites.map((site) => ({ action: "resume", site })),
});

const parted = (a: readonly string[], b?: readonly string[]): Steps => ({
  begin: [{ action: "partition", a: [...a], ...b === undefined ? {} : { b: [...b] } }],
  end: [{ action: "heal" }],
});

function several(sites: readonly string[], count: number, random: Random): string[] {
  const left = [...sites];
  return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0] ?? "");
}
