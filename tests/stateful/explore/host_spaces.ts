/** What is explored of hosts that hold a log: spaces that are seen whole, and for each rule one in which it is missed. */
import type { BrokenHosts, HostExploration } from "./hosts.ts";

const attached = (...hosts: readonly string[]): string[] =>
  hosts.flatMap((host) => [`e1 sends ${host} 0`, `e1 reaches ${host} with 0`, `e1 hears ${host} 0`]);
const recorded = (owners: string): string[] => [`e1 proposes ${owners}`, "e1 is granted", "e1 learns"];

const SMALL = { homesMax: 2, entriesMax: 1, changesMax: 1, wipes: false, statesMax: 700_000 } as const;
const ONE_DISK = [...attached("h0"), ...recorded("d0 @h0")];
const TWO_DISKS = [...attached("h0"), ...recorded("d0 d1 @h0")];
const LEFT = [
  ...[...ONE_DISK, "e1 steps", "e1 sends h0 1", "e1 reaches h0 with 1", "e1 writes 1 to d0", "e1 drops h0"],
  ...recorded("d0"),
];
/** What the first home has appended is out, and the host that is on record has it. */
const RELEASED = [
  "e1 writes 1 to d0",
  "e1 sends h0 1",
  "e1 reaches h0 with 1",
  "e1 hears h0 1",
  "e1 releases 1",
];
const TWO_HOSTS = [...attached("h0", "h1"), ...recorded("d0 @h0 @h1")];

export const WHOLE: readonly { readonly name: string; readonly what: HostExploration }[] = [
  {
    name: "one disk that may be lost, a host that may leave",
    what: { ...SMALL, hosts: 1, disks: 1, wipes: true, begin: ONE_DISK },
  },
];

/** By hand: half a million states each. */
export const LARGE: readonly { readonly name: string; readonly what: HostExploration }[] = [
  {
    name: "one disk that may be lost, a host that leaves and may come back",
    what: { ...SMALL, hosts: 1, disks: 1, changesMax: 2, wipes: true, begin: ONE_DISK },
  },
  { name: "two disks and a host", what: { ...SMALL, hosts: 1, disks: 2, begin: TWO_DISKS } },
];

/** By the rule that is missing. */
export const BROKEN: Readonly<Record<BrokenHosts, HostExploration>> = {
  "answer before fence": { ...SMALL, hosts: 1, disks: 2, begin: TWO_DISKS },
  "no fence": { ...SMALL, hosts: 1, disks: 2, begin: TWO_DISKS },
  "one host asked": { ...SMALL, hosts: 2, disks: 1, begin: TWO_HOSTS },
  "no host asked": { ...SMALL, hosts: 1, disks: 2, begin: TWO_DISKS },
  "hosts alone": { ...SMALL, hosts: 1, disks: 2, begin: TWO_DISKS },
  "shortest": { ...SMALL, hosts: 1, disks: 1, begin: ONE_DISK },
  "ahead unrecorded": { ...SMALL, hosts: 1, disks: 1, begin: attached("h0") },
  "recorded first": { ...SMALL, hosts: 1, disks: 1, wipes: true },
  "recorded after another": { ...SMALL, hosts: 2, disks: 1, changesMax: 3, begin: LEFT },
  "own word": { ...SMALL, hosts: 1, disks: 1, wipes: true, begin: ONE_DISK },
  "not both": { ...SMALL, changesMax: 2, hosts: 1, disks: 1, wipes: true, begin: ONE_DISK },
  "left early": { ...SMALL, changesMax: 2, hosts: 1, disks: 1, begin: ONE_DISK },
  "no arbiter": {
    ...{ ...SMALL, hosts: 1, disks: 1, homesMax: 3 },
    begin: [...ONE_DISK, "acquire e2", "acquire e2", "e1 steps", ...RELEASED],
  },
  "late records": { ...SMALL, hosts: 1, disks: 1, begin: ONE_DISK },
};
