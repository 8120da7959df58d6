/** The spaces that are explored: whole ones over the rules, and for each rule one in which it is missed. */
import type { Broken, Exploration } from "./state.ts";

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

/** The home of a released entry is known to its own disk to have these owners on record; the arbiter has a position. */
const RECORDED = [...HELD.slice(0, -1), "known 0 e1", "goes by e1", "release e1 1"];
/** The same, with 0 and 1 for each other, and 0 has a part only of what is released: disk 2 has taken its place. */
const LEFT = [
  ...["acquire 1 e1", "open e1 with 0", "step e1", "append 1 e1 1", "join 0 e1", "append 0 e1 1"],
  ...["propose e1 0", "learned e1", "known 1 e1", "goes by e1", "release e1 1"],
  ...["join 2 e1", "append 2 e1 1", "propose e1 2", "learned e1", "known 1 e1", "goes by e1"],
  ...["step e1", "append 1 e1 2", "append 2 e1 2", "release e1 2"],
];
/** Disk 2 has taken the place of disk 1 since the copy was made, and more was released. */
const MOVED = [
  ...["copy", "join 2 e1", "append 2 e1 1", "propose e1 2", "learned e1", "known 0 e1", "goes by e1"],
  ...["step e1", "append 0 e1 2", "append 2 e1 2", "release e1 2", "restore"],
];
/** Disk 2 is the arbiter's own site's; with it another has taken the session over since the copy was made. */
const TAKEN = [
  ...RECORDED.map((step) => step.replace(/^(join|append) 1/, "$1 2").replace("propose e1 1", "propose e1 2")),
  ...["copy", "acquire 1 e2", "promise 2 e2", "open e2 with 1", "join 2 e2", "propose e2 2", "learned e2"],
  ...["known 1 e2", "goes by e2", "step e2", "append 1 e2 2", "append 2 e2 2", "release e2 2", "restore"],
];
const restored: Exploration = { ...SMALL, sites: 3, entriesMax: 2, restoresMax: 1, statesMax: 60_000 };
const lost: Exploration = { ...SMALL, restoresMax: 1, isLost: true };
const moved: Exploration = { ...restored, begin: [...RECORDED, ...MOVED] };

const taken: Exploration = { ...restored, homesMax: 3, isRootBack: true, begin: TAKEN };

/** Seen whole, without a violation. In seconds. */
export const WHOLE: readonly Space[] = [
  { name: "two homes, one entry each", what: SMALL },
  {
    name: "the arbiter's disk is blank after an entry was released",
    what: { ...lost, begin: [...RECORDED, "lose"] },
  },
  {
    name: "the arbiter's disk is blank while a home has not recorded its owners",
    what: { ...lost, begin: ["acquire 0 e1", "open e1 with 0", "join 1 e1", "lose"] },
  },
];

/** The same; in minutes. Of the first one so many states are seen, and not all. */
export const LARGE: readonly Space[] = [
  { name: "a copy of all of the root's disks is put back", what: { ...taken, statesMax: 250_000 } },
  { name: "two homes after one that died with an entry on one disk", what: ahead },
  { name: "two homes, two entries each", what: { ...SMALL, entriesMax: 2 } },
  { name: "two homes, one entry each, a lost disk", what: { ...SMALL, wipesMax: 1 } },
];

/** By the rule that is missing. */
export const BROKEN: Readonly<Partial<Record<Broken, Exploration>>> = {
  "no fence": SMALL,
  "nobody asked": SMALL,
  "own disk alone": SMALL,
  "own word": SMALL,
  "not cut": ahead,
  "not both": { ...SMALL, sites: 3, entriesMax: 2, begin: HELD },
  "not asked": moved,
  "no witness": moved,
  "same disk": taken,
  "not held": taken,
  "any home": { ...moved, isRootBack: true },
  "some heard": { ...moved, isRootBack: true },
  "any log": { ...restored, isLost: true, begin: [...LEFT, "lose"] },
  "recorded first": {
    ...SMALL,
    sites: 3,
    homesMax: 3,
    entriesMax: 0,
    begin: [...HELD, "acquire 0 e2", "promise 0 e2", "open e2 with 1"],
    isFirstDead: true,
  },
};
