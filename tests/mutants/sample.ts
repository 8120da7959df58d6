/**
 * A few mutants of each rule, for a run that can't try all: as different from each other as there are.
 *
 * SA1  The choice depends on the mutants alone: a run that goes on where another was ended chooses the same.
 */
import type { Mutant } from "./mutant.ts";
import type { OperatorName } from "./operators.ts";

/** The kinds that break a rule most plainly come first. */
const FIRST: readonly OperatorName[] = [
  "guard never",
  "left out",
  "swapped",
  "guard always",
  "off by one",
  "boundary",
  "half a guard",
  "max or min",
  "not awaited",
];

const rankOf = ({ operator }: Mutant): number => {
  const at = FIRST.indexOf(operator);
  return at < 0 ? FIRST.length : at;
};

/** Of each rule at most so many, of different kinds first; what belongs to no rule, or need not be run, is left out. */
export function sampled(mutants: readonly Mutant[], each: number): Mutant[] {
  const byRule = new Map<string, Mutant[]>();
  for (const mutant of mutants) {
    if (mutant.harmless !== null) continue;
    for (const rule of mutant.rules) byRule.set(rule, [...byRule.get(rule) ?? [], mutant]);
  }
  const chosen = new Set<Mutant>();
  for (const all of byRule.values()) for (const mutant of kindsInTurn(all).slice(0, each)) chosen.add(mutant);
  return mutants.filter((mutant) => chosen.has(mutant));
}

/** The first of each kind, then the second of each, and so on. */
function kindsInTurn(mutants: readonly Mutant[]): Mutant[] {
  const kinds = [...Map.groupBy(mutants, ({ operator }) => operator).values()]
    .map((each) => each.toSorted((a, b) => a.id < b.id ? -1 : 1));
  return kinds.flatMap((kind) => kind.map((mutant, turn) => ({ mutant, turn })))
    .sort((a, b) => a.turn - b.turn || rankOf(a.mutant) - rankOf(b.mutant))
    .map(({ mutant }) => mutant);
}
