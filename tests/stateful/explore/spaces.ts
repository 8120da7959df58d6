/** The spaces that are explored: whole ones over the rules, and for each rule one in which it is missed. */
import type { Broken, Exploration } from "./explore.ts";

export interface Space {
  readonly name: string;
  readonly what: Exploration;
}

const SMALL: Exploration = { sites: 2, homesMax: 2, entriesMax: 1, wipesMax: 0, statesMax: 200_000 };

/** One entry is released, and on both disks. */
const HELD = [
  ...["acquire 0 e1", "open e1 with 0", "step e1", "append 0 e1 1", "join 1 e1", "append 1 e1 1"],
  ...["propose e1 1", "learned e1", "release e1 1"],
];
/** One entry is on the other disk only. */
const AHEAD = [
  ...["acquire 0 e1", "open e1 with 0", "join 1 e1", "propose e1 1", "learned e1", "step e1"],
  "append 1 e1 1",
];
const ahead: Exploration = { ...SMALL, homesMax: 3, begin: AHEAD, isFirstDead: true };

/** Seen whole, without a violation. In seconds. */
export const WHOLE: readonly Space[] = [
  { name: "two homes, one entry each", what: SMALL },
];

/** The same; in minutes. */
export const LARGE: readonly Space[] = [
  { name: "two homes after one that died with an entry on one disk", what: ahead },
  { name: "two homes, two entries each", what: { ...SMALL, entriesMax: 2 } },
  { name: "two homes, one entry each, a lost disk", what: { ...SMALL, wipesMax: 1 } },
];

/** By the rule that is missing. */
export const BROKEN: Readonly<Record<Broken, Exploration>> = {
  "no fence": SMALL,
  "nobody asked": SMALL,
  "own disk alone": SMALL,
  "own word": SMALL,
  "not cut": ahead,
  "not both": { ...SMALL, sites: 3, entriesMax: 2, begin: HELD },
  "recorded first": {
    ...SMALL,
    sites: 3,
    homesMax: 3,
    entriesMax: 0,
    begin: [...HELD, "acquire 0 e2", "promise 0 e2", "open e2 with 1"],
    isFirstDead: true,
  },
};
