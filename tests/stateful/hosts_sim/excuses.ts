/** What the simulator of hosts that hold the log lets pass, as tests/sim/excuses.ts says. */
import type { Excuse } from "../../sim/excuses.ts";

const AHEAD = "what it was told ahead of the disks, and nobody else has, may be otherwise";
const SENT = "it is told that it can't go on, and begins anew";

export const HOSTS_EXCUSES: readonly Excuse[] = [
  { name: "told ahead, and the host lies", perHundred: 10, says: AHEAD },
  { name: "told ahead, and the host lost its log", perHundred: 10, says: AHEAD },
  { name: "told ahead, and the host went back", perHundred: 1, says: AHEAD },
  { name: "told ahead, and the host was left behind", perHundred: 10, says: AHEAD },
  { name: "sent away, and the host lies", perHundred: 40, says: SENT },
  { name: "sent away, and the host lost its log", perHundred: 10, says: SENT },
  { name: "sent away, and the host went back", perHundred: 1, says: SENT },
  { name: "sent away, and the host was left behind", perHundred: 25, says: SENT },
  {
    name: "a host alone was believed, and held back the end",
    perHundred: 1,
    says: "a host that is alone with the log can hold back its end, and is believed",
  },
  { name: "sent away, since a host alone was believed", perHundred: 1, says: SENT },
  {
    name: "waited for a host that lies, and was sent away",
    perHundred: 10,
    says: "one on record that does not come back is waited for until an operator goes on without it",
  },
  {
    name: "opened by force, and no disk was asked",
    perHundred: 1,
    says: "where an operator goes on without any disk, what only disks knew may be otherwise",
  },
  {
    name: "a message was given up, in whose handler an isolate was lost",
    perHundred: 20,
    says: "the error; 502 `isolate_killed`; 508 `cycle`; nothing has changed",
  },
  {
    name: "an answer that is not kept any more, by a clock that was set",
    perHundred: 4,
    says: "is run once, and its answer is kept for a minute",
  },
];
