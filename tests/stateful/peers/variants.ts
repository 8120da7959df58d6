/**
 * Ways to break what goes on between a home and its peers: wrappers around what either side is given and gives out.
 * Production code is left as it is. Each is to be caught by a checker that sees devices and the log only.
 */
import {
  decodeToHome,
  decodeToHost,
  encodeToHome,
  encodeToHost,
} from "../../../functions/sessions/attach/mod.ts";
import type { PeerInput, ToHome, ToHost } from "../../../functions/sessions/attach/mod.ts";
import { decodeCheckpoint, encodeCheckpoint } from "../../../functions/sessions/turn/checkpoint.ts";
import { Program } from "../../../functions/sessions/turn/program.ts";
import type { Breaks, Plan } from "./run.ts";
import type { SimHome } from "./sim_home.ts";
import type { Meddle, Wire } from "./world.ts";

/** A variant. */
export interface Variant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly rule: string;
  /** Fresh for each run. */
  readonly make: () => Breaks;
  readonly bias: Partial<Plan>;
}

const crashing: Partial<Plan> = {
  crashMs: 250,
  keepMs: 25,
  messages: 60,
  breaks: 0.01,
  garbles: 0,
  closes: 0,
  deaths: 0,
};
const resuming: Partial<Plan> = { ...crashing, crashMs: 0, breaks: 0.05, keepMs: 25 };

/** Changes frames to a home; null is not sent. */
const toHome = (change: (wire: Wire, frame: ToHome) => ToHome | null): Meddle => (wire, to, bytes) => {
  if (to !== "home") return bytes;
  const frame = change(wire, decodeToHome(bytes));
  return frame === null ? null : encodeToHome(frame);
};

/** Changes frames to a host. */
const toHost = (change: (wire: Wire, frame: ToHost) => ToHost): Meddle => (wire, to, bytes) =>
  to === "host" ? encodeToHost(change(wire, decodeToHost(bytes))) : bytes;

const both = (first: Meddle, second: Meddle): Meddle => (wire, to, bytes) => {
  const changed = first(wire, to, bytes);
  return changed === null ? null : second(wire, to, changed);
};

/** Changes what a checkpoint holds. */
const checkpoints = (
  change: (program: Program, parts: ReturnType<typeof decodeCheckpoint>) => typeof parts,
) =>
(): Breaks => ({
  checkpoint: (checkpoint) => {
    const host = { make: () => ({}), envOf: () => null, aside: <T>(_: Program, work: () => T): T => work() };
    const program = new Program(host, "room", "r");
    const parts = decodeCheckpoint(checkpoint.bytes, program);
    return { ...checkpoint, bytes: encodeCheckpoint(program, change(program, parts)) };
  },
});

const textOf = (message: string | Uint8Array): string =>
  typeof message === "string" ? message : new TextDecoder().decode(message);

/** How many messages of each peer a home has handed to the session, with those in the log before. */
function counting() {
  const taken = new Map<string, number>();
  const key = ({ epoch }: SimHome, peer: string) => `${epoch} ${peer}`;
  const breaks: Breaks = {
    opened: (home, opened) => {
      for (const { id, received } of opened.peers) {
        if (!taken.has(key(home, id))) taken.set(key(home, id), received);
      }
      return opened;
    },
    deliver: (home, event) => {
      if (event.kind === "message") {
        taken.set(key(home, event.peer), (taken.get(key(home, event.peer)) ?? 0) + 1);
      }
      return [event];
    },
  };
  return { breaks, of: (epoch: number, peer: string) => taken.get(`${epoch} ${peer}`) };
}

/** A message that a home was sent before goes to the session again. */
function twice(): Breaks {
  const homes = new Map<string, { readonly home: SimHome; readonly event: PeerInput }>();
  return {
    deliver: (home, event) => {
      if (event.kind === "message") homes.set(textOf(event.message), { home, event });
      return [event];
    },
    meddle: toHome((_, frame) => {
      const known = frame.kind === "message" ? homes.get(textOf(frame.payload)) : undefined;
      if (known !== undefined) known.home.at(10, () => known.home.hand({ ...known.event }, false));
      return frame;
    }),
  };
}

export const variants: readonly Variant[] = [
  {
    name: "outputs before the commit",
    rule: "home_side.ts, HM1",
    make: () => ({ hasty: "outputs" }),
    bias: crashing,
  },
  {
    name: "acknowledged before the commit",
    rule: "home_side.ts, HM1",
    make: () => ({ hasty: "done" }),
    bias: crashing,
  },
  {
    name: "a fenced home goes on",
    rule: "homes.md, H3",
    make: () => ({ unfenced: true }),
    bias: { ...crashing, takeoverMs: 250 },
  },
  {
    name: "a home of an old epoch is listened to",
    rule: "host_side.ts, HS3",
    make: () => ({
      meddle: both(
        toHome((_, frame) => frame.kind === "hello" ? { ...frame, epoch: 0 } : frame),
        toHost((_, frame) => frame.kind === "welcome" ? { ...frame, epoch: 2 ** 40 } : frame),
      ),
    }),
    bias: { ...crashing, crashMs: 0, takeoverMs: 200, reconnectMs: 50, keepMs: 5 },
  },
  { name: "what is sent again is taken again", rule: "home_side.ts, HM2", make: twice, bias: resuming },
  {
    name: "a welcome counts what is not in the log",
    rule: "home_side.ts, HM1",
    make: () => {
      const { breaks, of } = counting();
      const meddle = toHost((_, frame) =>
        frame.kind === "welcome"
          ? { ...frame, received: of(frame.epoch, frame.identity.id) ?? frame.received }
          : frame
      );
      return { ...breaks, meddle };
    },
    bias: { ...crashing, breaks: 0.05 },
  },
  {
    name: "a host forgets the last output that it has",
    rule: "host_side.ts, HS2",
    make: () => {
      const late = new WeakSet<Wire>();
      return {
        meddle: both(
          toHome((wire, frame) => {
            if (frame.kind !== "hello" || frame.received === 0) return frame;
            late.add(wire);
            return { ...frame, received: frame.received - 1 };
          }),
          toHost((wire, frame) =>
            frame.kind === "output" && late.has(wire)
              ? { ...frame, sequence: (frame.sequence + 1) & 31 }
              : frame
          ),
        ),
      };
    },
    bias: resuming,
  },
  {
    name: "a host's messages are numbered anew on each channel",
    rule: "host_side.ts, HS1",
    make: () => ({
      meddle: toHost((_, frame) => frame.kind === "welcome" ? { ...frame, received: 0 } : frame),
    }),
    bias: resuming,
  },
  {
    name: "what a killed isolate had not done is lost",
    rule: "home_side.ts, HM2",
    make: () => {
      const known = new WeakSet<PeerInput>();
      return {
        deliver: (_, event) => {
          if (known.has(event)) return [];
          known.add(event);
          return [event];
        },
      };
    },
    bias: { ...resuming, killMs: 150 },
  },
  {
    name: "messages received are not in the checkpoint",
    rule: "turn/peers.ts, PE3",
    make: checkpoints((program, parts) => {
      for (const state of program.peers.values()) program.peers.restore({ ...state, received: 0 });
      return parts;
    }),
    bias: { ...crashing, isCheckpointing: true },
  },
  {
    name: "numbers of outputs are not in the checkpoint",
    rule: "turn/peers.ts, PE1",
    make: checkpoints((program, parts) => {
      for (const state of program.peers.values()) program.peers.restore({ ...state, sent: 0 });
      return { ...parts, outputs: [] };
    }),
    bias: { ...crashing, isCheckpointing: true },
  },
  {
    name: "outputs that are not acknowledged are not in the checkpoint",
    rule: "turn/checkpoint.ts, CP3",
    make: checkpoints((_, parts) => ({ ...parts, outputs: [] })),
    bias: { ...crashing, isCheckpointing: true },
  },
  {
    name: "outputs are forgotten when they are sent",
    rule: "home_peer.ts, HP3",
    make: () => ({
      acknowledge: (_, outputs) => Object.fromEntries(Object.keys(outputs).map((id) => [id, 2 ** 40])),
    }),
    bias: { ...crashing, breaks: 0.05 },
  },
  {
    name: "a rejected message is not counted",
    rule: "turn/peers.ts, PE3",
    make: () => ({
      program: (program) => {
        const begin = program.begin.bind(program);
        program.begin = (input, source) =>
          begin(input.kind === "rejected" ? { ...input, subject: null } : input, source);
      },
    }),
    bias: { ...crashing, ops: ["throw", "echo", "all"] },
  },
  {
    name: "no grace",
    rule: "home_side.ts, HM4",
    make: () => ({ graceMs: 0 }),
    bias: resuming,
  },
  {
    name: "grace without an end",
    rule: "home_side.ts, HM4",
    make: () => ({ graceMs: 10 ** 7 }),
    bias: { deaths: 0.5 },
  },
  {
    name: "a leave that nobody hears",
    rule: "home_side.ts, HM4",
    make: () => ({ meddle: toHome((_, frame) => frame.kind === "leave" ? null : frame) }),
    bias: { closes: 0.8 },
  },
  {
    name: "who was taken over is not told",
    rule: "home_side.ts, HM3",
    make: () => ({
      meddle: toHome((_, frame) => frame.kind === "hello" ? { ...frame, instance: 7 } : frame),
    }),
    bias: { ...resuming, hosts: 1, cloneMs: 150 },
  },
];
