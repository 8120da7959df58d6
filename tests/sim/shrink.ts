/**
 * Makes a failing run small: fewer requests, faults, sites, users, shorter; kept is every change after which a
 * checker of the same name still reports something.
 *
 * The run is a function of its plan, so a smaller run is a smaller plan: requests and faults have streams of their
 * own (simulation.ts, faults.ts), and what remains of them stays as it was drawn. `--plan` takes the result.
 *
 * K1  What comes out fails, with the checker that the first run failed with.
 * K2  It ends: each round tries finitely many changes, and the next one begins only if one of them was kept.
 */
import type { Violation } from "./history.ts";
import type { Plan } from "./topology.ts";

/** What is looked at of a run. */
export interface ShrinkableRun {
  readonly violations: readonly Violation[];
  /** The names of all faults that were drawn. */
  readonly faults: readonly string[];
}

/** What is to be shrunk. */
export interface ShrinkOptions {
  /** A run of a plan, over a fresh store. */
  readonly run: (plan: Plan) => Promise<ShrinkableRun>;
  /** The plan that fails. */
  readonly plan: Plan;
  readonly runsMax?: number;
  readonly say?: (text: string) => void;
}

/** What came of it. */
export interface Shrunk {
  readonly plan: Plan;
  readonly violation: Violation;
  readonly runs: number;
}

/** Some minutes of small runs; what is left to gain after that is little. */
const RUNS_MAX = 1_500;

/** Shrinks a failing run; null where it does not fail. */
export async function shrink(options: ShrinkOptions): Promise<Shrunk | null> {
  return await new Shrinking(options).run();
}

/** What differs between the plan that a seed draws and another, as `--plan` takes it. */
export function planChanges(from: Plan, to: Plan): string {
  const changed = Object.entries(to).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(from[name as keyof Plan])
  );
  return JSON.stringify(Object.fromEntries(changed), (_, value) => value === Infinity ? "Infinity" : value);
}

/** The inverse of {@link planChanges}. */
export function changedPlan(plan: Plan, changes: string): Plan {
  const parsed: unknown = JSON.parse(changes, (_, value) => value === "Infinity" ? Infinity : value);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new Error(`--plan needs an object with fields of a plan, not ${changes}`);
  }
  const strange = Object.keys(parsed).find((name) => name !== "only" && !(name in plan));
  if (strange !== undefined) {
    throw new Error(`--plan: a plan has no '${strange}', but ${Object.keys(plan).join(", ")}`);
  }
  return { ...plan, ...parsed };
}

class Shrinking {
  readonly #options: ShrinkOptions;
  #plan: Plan;
  #violation: Violation | null = null;
  #runs = 0;

  constructor(options: ShrinkOptions) {
    this.#options = options;
    this.#plan = options.plan;
  }

  async run(): Promise<Shrunk | null> {
    const first = await this.#simulate(this.#plan);
    this.#violation = first.violations[0] ?? null;
    if (this.#violation === null) return null;
    const requests = Array.from({ length: this.#plan.requests }, (_, i) => i);
    this.#plan = {
      ...this.#plan,
      only: {
        requests: this.#plan.only?.requests ?? requests,
        faults: this.#plan.only?.faults ?? first.faults,
      },
    };
    for (let isSmaller = true; isSmaller && this.#hasTime;) {
      isSmaller = await this.#round();
      const { sites, only, safetyMs } = this.#plan;
      this.#options.say?.(
        `${this.#runs} runs: ${only?.requests?.length} requests, ${only?.faults?.length} faults, ` +
          `${sites.length} sites, ${safetyMs} ms: ${this.#violation.message}`,
      );
    }
    return { plan: this.#plan, violation: this.#violation, runs: this.#runs };
  }

  get #hasTime(): boolean {
    return this.#runs < (this.#options.runsMax ?? RUNS_MAX);
  }

  /** Tries everything once; whether anything was kept. */
  async #round(): Promise<boolean> {
    const { only } = this.#plan;
    let isSmaller = await this.#cutEnd();
    const dropped = [
      await this.#drop(only?.faults ?? [], (faults) => ({ only: { ...this.#plan.only, faults } })),
      await this.#drop(this.#plan.only?.requests ?? [], (requests) => ({
        only: { ...this.#plan.only, requests },
      })),
      await this.#dropSites(),
      await this.#simplify(),
    ];
    isSmaller ||= dropped.includes(true);
    return isSmaller;
  }

  /** Nothing after the violation has caused it: a tenth of the safety phase less, as long as it fails. */
  async #cutEnd(): Promise<boolean> {
    let isSmaller = false;
    for (;;) {
      // Times are drawn within the phase, so that a shorter one is another run: what counts is when it ends.
      const requests = this.#plan.only?.requests ?? [];
      const fewer = requests.slice(0, Math.floor(requests.length * 0.8));
      if (fewer.length === requests.length) return isSmaller;
      if (!await this.#keeps({ only: { ...this.#plan.only, requests: fewer } })) return isSmaller;
      isSmaller = true;
    }
  }

  /** Delta debugging: halves, quarters, … single ones are left out. */
  async #drop<T>(list: readonly T[], change: (left: readonly T[]) => Partial<Plan>): Promise<boolean> {
    let left = [...list];
    for (let size = Math.ceil(left.length / 2); size >= 1 && left.length > 0;) {
      let isSmaller = false;
      for (let at = 0; at < left.length && this.#hasTime;) {
        const without = [...left.slice(0, at), ...left.slice(at + size)];
        if (await this.#keeps(change(without))) {
          left = without;
          isSmaller = true;
        } else at += size;
      }
      if (!this.#hasTime) break;
      if (size === 1 && !isSmaller) break;
      size = size === 1 ? 1 : Math.floor(size / 2);
    }
    return left.length < list.length;
  }

  /** Leaves go one by one, until nobody is left who can. */
  async #dropSites(): Promise<boolean> {
    let isSmaller = false;
    for (const { id } of [...this.#plan.sites].reverse()) {
      const { sites } = this.#plan;
      if (sites.length <= 2 || sites.some(({ parent }) => parent === id) || id === sites[0]?.id) continue;
      const left = sites.filter((site) => site.id !== id);
      const parents = new Set(left.map(({ parent }) => parent));
      const changed = left.map((site) =>
        site.tier === "core" && !parents.has(site.id) ? { ...site, tier: "edge" as const } : site
      );
      const watch = this.#plan.watch?.site === id ? null : this.#plan.watch;
      if (await this.#keeps({ sites: changed, watch })) isSmaller = true;
    }
    return isSmaller;
  }

  /** What makes a run hard to read, turned off where it is not needed. */
  async #simplify(): Promise<boolean> {
    const plan = this.#plan;
    const simpler: Partial<Plan>[] = [
      { watch: null },
      { systemWrites: 0 },
      { valueBytes: 0 },
      { parallelChance: 0 },
      { openChance: 0 },
      { oldTokenChance: 0 },
      { mergeShare: 0 },
      { sumKeys: 0 },
      { thinkMs: 0 },
      { lateChance: 0 },
      { crashes: [] },
      { sessions: Math.max(1, plan.sessions - 1) },
      { groups: Math.max(1, plan.groups - 1) },
      { keysPerGroup: Math.max(1, plan.keysPerGroup - 1) },
      { sites: plan.sites.map((site) => ({ ...site, skewMs: 0, drift: 0, readMs: null })) },
      { sites: plan.sites.map((site) => ({ ...site, linkLoss: 0, linkBytesPerMs: Infinity })) },
    ];
    let isSmaller = false;
    for (const change of simpler) {
      const isNew = Object.entries(change).some(([name, value]) =>
        JSON.stringify(value) !== JSON.stringify(this.#plan[name as keyof Plan])
      );
      if (isNew && this.#hasTime && await this.#keeps(change)) isSmaller = true;
    }
    return isSmaller;
  }

  async #keeps(change: Partial<Plan>): Promise<boolean> {
    const plan = { ...this.#plan, ...change };
    const { violations } = await this.#simulate(plan);
    const same = violations.find(({ checker }) => checker === this.#violation?.checker);
    if (same === undefined) return false;
    this.#plan = plan;
    this.#violation = same;
    return true;
  }

  #simulate(plan: Plan): Promise<ShrinkableRun> {
    this.#runs++;
    return this.#options.run(plan);
  }
}
