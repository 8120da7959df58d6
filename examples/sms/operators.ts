/** The operators whose networks the gateway reaches, known by the beginnings of their numbers. */

/** Operator, as its contract with the gateway has it. */
export interface Contract {
  readonly name: string;
  /** Beginning of the numbers that are its own; +999 belongs to no country. */
  readonly prefix: string;
  /** Messages that it takes a second. */
  readonly perSecond: number;
}

/** All operators. */
export const CONTRACTS: readonly Contract[] = [
  { name: "aurora", prefix: "+99910", perSecond: 40 },
  { name: "borealis", prefix: "+99920", perSecond: 20 },
  { name: "cirrus", prefix: "+99930", perSecond: 5 },
];

/** Stands in for an operator where a number belongs to none: it takes nothing. */
export const NOBODY: Contract = { name: "nobody", prefix: "", perSecond: 1 };

/** Returns the operator that a number belongs to, {@link NOBODY} where there is none. */
export const contractFor = (number: string): Contract =>
  CONTRACTS.find(({ prefix }) => number.startsWith(prefix)) ?? NOBODY;

/** Returns the operator of a name. */
export const contractOf = (name: string): Contract | undefined =>
  [...CONTRACTS, NOBODY].find((each) => each.name === name);
