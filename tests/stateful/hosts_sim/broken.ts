/** Sessions whose hosts hold the log, broken on purpose, each in one rule. */
import { HostOwners } from "../../../functions/sessions/log/host_owners.ts";
import { HomePeer } from "../../../functions/sessions/attach/home_peer.ts";
import { type Appended, HomeSide } from "../../../functions/sessions/attach/mod.ts";
import { Lobby } from "../../../functions/sessions/attach/lobby.ts";
import { Reach } from "../../../functions/sessions/attach/reach.ts";
import { peerKeys } from "../../../functions/sessions/serve/host_logs.ts";
import type { Violation } from "./check.ts";
import { contested, forced, forcedAndLost, wiped } from "./hard.ts";
import type { HostsPlan } from "./plan.ts";
import { NAME } from "./session_at.ts";
import { type HostsOptions, SECRET } from "./simulation.ts";

export interface Variant {
  readonly name: string;
  readonly wrongs?: HostsOptions["wrongs"];
  /** Makes the production code wrong, until the result is called. */
  readonly patch?: () => () => void;
  readonly change: (plan: HostsPlan) => HostsPlan;
  /** Where few seeds catch it: the first that is tried. */
  readonly first?: number;
  readonly caughtBy: readonly Violation["checker"][];
}

/** Another member in place of one of a class, until the result is called. */
function replaced(of: object, member: string, other: (own: PropertyDescriptor) => PropertyDescriptor) {
  const own = Object.getOwnPropertyDescriptor(of, member);
  if (own === undefined) throw new Error(`there is no ${member}`);
  Object.defineProperty(of, member, { configurable: true, ...other(own) });
  return () => void Object.defineProperty(of, member, own);
}

const { drop } = HostOwners.prototype;
const { flush } = HomePeer.prototype;
const { wait } = Lobby.prototype;

export const VARIANTS: readonly Variant[] = [
  {
    name: "unacknowledged outputs are missing from a checkpoint",
    first: 58,
    wrongs: { forgetsKept: true },
    change: (plan) => ({
      ...contested(plan),
      idleMs: 50,
      kills: 6,
      breaks: 40,
      messages: 20,
      commitMs: [0.1, 0.4],
    }),
    caughtBy: ["fault", "liveness"],
  },
  {
    name: "outputs leave before the log that made them",
    patch: () =>
      replaced(HomePeer.prototype, "flush", () => ({
        value(this: HomePeer, reach: number, records: readonly Uint8Array[] = []) {
          flush.call(this, reach, []);
          flush.call(this, reach, records);
        },
      })),
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "a host is told ahead while its records wait",
    patch: () =>
      replaced(HomePeer.prototype, "flush", () => ({
        value(this: HomePeer, reach: number, records?: readonly Uint8Array[]) {
          flush.call(this, reach, this.hasDue(reach) ? [] : records);
        },
      })),
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "hosts are not asked",
    first: 30,
    wrongs: { asksNobody: true },
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "one host that answers is enough",
    first: 25,
    wrongs: { asksOne: true },
    change: forcedAndLost,
    caughtBy: ["contradicted"],
  },
  {
    name: "of a host's log the end is left out",
    first: 30,
    wrongs: { givesLess: true },
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "a host drops what it holds when another home begins",
    wrongs: { cutsEarly: true },
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "a host gives out what comes with a record before it holds that",
    wrongs: { holdsLater: true },
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "a host is told ahead before it is on record",
    patch: () => replaced(HostOwners.prototype, "isAhead", () => ({ value: () => true })),
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "who holds no log is told what is appended",
    patch: () =>
      replaced(HomePeer.prototype, "flush", () => ({
        value(this: HomePeer, _: number, records?: readonly Uint8Array[]) {
          flush.call(this, Infinity, records);
        },
      })),
    change: (plan) => ({ ...contested(plan), clients: 3, plain: 1 }),
    caughtBy: ["contradicted"],
  },
  {
    name: "a message counts as in the log when the session has it",
    patch: () =>
      replaced(HomePeer.prototype, "received", () => ({
        get(this: HomePeer) {
          return this.taken - this.waiting.filter(({ event }) => event.kind === "message").length +
            Math.min(this.handed, this.waiting.length);
        },
      })),
    change: contested,
    caughtBy: ["lost", "fault"],
  },
  {
    name: "an output is told ahead though its turn wrote",
    wrongs: { hidesWrites: true },
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "others are told before anybody has the log",
    wrongs: { tellsAtOnce: true },
    change: (plan) => ({ ...contested(plan), requests: 60 }),
    caughtBy: ["contradicted"],
  },
  {
    name: "others do not wait for hosts where hosts are enough",
    first: 30,
    patch: () => replaced(HostOwners.prototype, "held", () => ({ get: () => Infinity })),
    change: (plan) => ({ ...wiped(plan), commitMs: [0.1, 0.4] }),
    caughtBy: ["contradicted", "lost"],
  },
  {
    name: "a home drops a host from the record by itself",
    first: 207,
    patch: () =>
      replaced(HostOwners.prototype, "drop", () => ({
        value(this: HostOwners, host: string) {
          drop.call(this, host);
          this.recorded([]);
        },
      })),
    change: (plan) => ({ ...wiped(plan), crashes: 12, wipes: 12, breaks: 40 }),
    caughtBy: ["contradicted", "lost"],
  },
  {
    name: "who has no valid key counts as the host that it says to be",
    first: 157,
    patch: () =>
      replaced(Lobby.prototype, "wait", () => ({
        value(this: Lobby, line: Parameters<typeof wait>[0], hello: Parameters<typeof wait>[1]) {
          const { identity } = hello;
          const [key] = identity === null ? [] : peerKeys([SECRET], NAME)(identity.id);
          wait.call(
            this,
            line,
            key === undefined || identity === null ? hello : {
              ...hello,
              identity: { ...identity, key },
            },
          );
        },
      })),
    change: (plan) => ({ ...contested(plan), strangers: 60, aways: 8 }),
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "who has closed is told so while it is on record",
    patch: () =>
      replaced(Reach.prototype, "whenFree", () => ({ value: (_: string, run: () => void) => run() })),
    change: (plan) => ({ ...contested(plan), clients: 3, leaves: 2 }),
    caughtBy: ["liveness"],
  },
  {
    name: "what is not told ahead is not sent to hosts, though others wait for them",
    patch: () =>
      replaced(HomeSide.prototype, "appended", ({ value }) => ({
        value(this: HomeSide, appended: Appended) {
          if (appended.outputs.length > 0) value.call(this, appended);
        },
      })),
    change: (plan) => ({ ...contested(plan), crashes: 0, partitions: 0, breaks: 0 }),
    caughtBy: ["liveness"],
  },
  {
    name: "who was left behind is a peer all the same",
    first: 68,
    wrongs: { keepsLeftBehind: true },
    change: forced,
    caughtBy: ["contradicted", "fault"],
  },
];
