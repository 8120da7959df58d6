/** What a simulator is to mutants: trials by name, each of which finds something or nothing. */

/** What a trial found: the name of the checker, and its words. */
export interface Finding {
  readonly checker: string;
  readonly message: string;
}

/** A simulator. */
export interface Simulator {
  /** Names of its trials: `seed 12`, or of a hard plan with the seed behind it. */
  readonly trials: readonly string[];
  /** The first thing that is wrong, or null. */
  readonly run: (trial: string) => Promise<Finding | null>;
}

/** Plans by name; each is run with a few seeds. */
export interface Plans<Change> {
  /** Seeds of the plan as it is drawn. */
  readonly seeds: number;
  readonly hard: ReadonlyMap<string, Change>;
  /** Seeds of each hard plan. */
  readonly hardSeeds: number;
}

/** A simulator of seeds with plans. */
export function seeded<Change>(
  { seeds, hard, hardSeeds }: Plans<Change>,
  run: (seed: number, change: Change | null) => Promise<Finding | null>,
): Simulator {
  const trials = [
    ...Array.from({ length: seeds }, (_, seed) => `seed ${seed}`),
    ...[...hard.keys()].flatMap((name) =>
      Array.from({ length: hardSeeds }, (_, seed) => `${name}: seed ${seed}`)
    ),
  ];
  return {
    trials,
    run: (trial) => {
      const [, name, seed] = /^(?:(.*): )?seed (\d+)$/.exec(trial) ?? [];
      const change = name === undefined ? null : hard.get(name);
      if (seed === undefined || change === undefined) throw new Error(`there is no trial '${trial}'`);
      return run(Number(seed), change);
    },
  };
}

/** The first of what checkers report. */
export const firstOf = (violations: readonly Finding[]): Finding | null => {
  const [first] = violations;
  return first === undefined ? null : { checker: first.checker, message: first.message };
};

/** The first of what a checker without a name says. */
export const firstText = (wrong: readonly string[], checker: string): Finding | null =>
  wrong[0] === undefined ? null : { checker, message: wrong[0] };
