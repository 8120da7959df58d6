/**
 * Ways to break the executor: wrappers around what it is given and what it gives out. Production code is left as it is.
 * Each is to be caught by a checker that sees outputs only.
 */
import { decodeCheckpoint, encodeCheckpoint } from "../../../../functions/sessions/turn/checkpoint.ts";
import { readEntries, type ReadEntry } from "../../../../functions/sessions/turn/log_entry.ts";
import { Program } from "../../../../functions/sessions/turn/program.ts";
import type { TurnInput } from "../../../../functions/sessions/turn/turn.ts";
import type { LoopHost } from "../../../../functions/sessions/turn/turn_loop.ts";
import type { Bias } from "./run.ts";
import type { Breaks, Site } from "./site.ts";

/** A variant. */
export interface Variant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly rule: string;
  /** Fresh for each run. */
  readonly make: () => Breaks;
  readonly bias?: Bias;
}

/** Changes each program of an isolate when its object is made. */
const programs = (change: (program: Program, site: Site) => void): () => Breaks => () => ({
  host: (host: LoopHost, site: Site): LoopHost => ({
    ...host,
    make: (className, program) => {
      change(program, site);
      return host.make(className, program);
    },
  }),
});

/** Changes the inputs of turns. */
const inputs = (change: (input: TurnInput, program: Program) => TurnInput): () => Breaks =>
  programs((program) => {
    const begin = program.begin.bind(program);
    program.begin = (input, source) => begin(change(input, program), source);
  });

/** Changes the order of the entries of a log. */
const logs =
  (change: (entries: { readonly entry: ReadEntry; readonly bytes: Uint8Array }[]) => void): () => Breaks =>
  () => ({
    open: (open) => {
      let begin = 0;
      const entries = readEntries(open.entries).map((entry) => {
        const bytes = open.entries.subarray(begin, entry.end);
        begin = entry.end;
        return { entry, bytes };
      });
      change(entries);
      const joined = new Uint8Array(entries.reduce((sum, { bytes }) => sum + bytes.length, 0));
      let at = 0;
      for (const { bytes } of entries) {
        joined.set(bytes, at);
        at += bytes.length;
      }
      return { ...open, entries: joined };
    },
  });

/** Changes what a checkpoint holds. */
const checkpoints =
  (change: (program: Program, parts: ReturnType<typeof decodeCheckpoint>) => typeof parts) => (): Breaks => ({
    sink: (sink) => ({
      ...sink,
      checkpoint: (channel, checkpoint) => {
        const host = {
          make: () => ({}),
          envOf: () => null,
          aside: <T>(_: Program, work: () => T): T => work(),
        };
        const program = new Program(host, "robot", "r");
        const parts = decodeCheckpoint(checkpoint.bytes, program);
        sink.checkpoint(channel, { ...checkpoint, bytes: encodeCheckpoint(program, change(program, parts)) });
      },
    }),
  });

const isResult = (entry: ReadEntry): boolean => entry.kind === "turn" && entry.input.kind === "result";

export const variants: readonly Variant[] = [
  { name: "output before commit", rule: "CM1", make: () => ({ hasty: "outputs" }) },
  {
    name: "effect before commit",
    rule: "CM1",
    make: () => ({ hasty: "effects" }),
    bias: { plan: { lossEveryMs: 40, keepMs: 20 }, ops: ["put", "sleep", "clock"] },
  },
  {
    name: "event delivered before the microtasks of the last are done",
    rule: "turn_loop.ts, TL2",
    make: () => {
      let turns = 0;
      return { host: (host) => ({ ...host, drain: () => turns++ % 3 === 0 ? undefined : host.drain() }) };
    },
  },
  {
    name: "clock moves in a turn",
    rule: "turn.ts, T1",
    make: programs((program, site) => {
      let reads = 0;
      const now = program.now.bind(program);
      program.now = () => (now(), site.nowMs + reads++);
    }),
  },
  {
    name: "clock is not recorded",
    rule: "turn.ts, T1",
    make: programs((program, site) => {
      program.now = () => program.clockMs = site.nowMs;
    }),
  },
  {
    name: "random reseeded on recovery",
    rule: "random.ts, R1",
    make: () => {
      let lives = 0;
      return programs((program) => {
        const life = lives++;
        const random = program.random.bind(program);
        program.random = () => (random() + life / 7) % 1;
      })();
    },
  },
  {
    name: "position of the random stream is not in the checkpoint",
    rule: "checkpoint.ts, CP2",
    make: checkpoints((program, parts) => {
      program.math.position = 0;
      return parts;
    }),
    bias: { plan: { lossEveryMs: 60, isCheckpointing: true }, ops: ["clock", "draw"] },
  },
  {
    name: "results in the order of their calls, not of the log",
    rule: "STATEFUL, rule 1",
    make: logs((entries) => {
      for (let i = 1; i < entries.length; i++) {
        const [a, b] = [entries[i - 1], entries[i]];
        if (a && b && isResult(a.entry) && isResult(b.entry)) [entries[i - 1], entries[i]] = [b, a];
      }
    }),
  },
  {
    name: "what a rejected handler left in the log is run",
    rule: "replay.ts, RP1",
    make: logs((entries) => {
      // Its last byte but a few says how many it voids: the entry itself is taken for a void one.
      for (let i = entries.length - 1; i >= 0; i--) {
        const entry = entries[i]?.entry;
        if (entry?.kind === "turn" && entry.input.kind === "rejected") entries.splice(i, 1);
      }
    }),
  },
  {
    name: "numbers of calls given again after a rejected handler",
    rule: "turn.ts, Rejected",
    make: inputs((input, program) =>
      input.kind === "rejected" ? { ...input, nextCall: program.nextCall } : input
    ),
    bias: {
      plan: { lossEveryMs: 0, callMs: 15 },
      ops: ["stray", "race", "throw", "put"],
      spanMs: 40,
    },
  },
  {
    name: "numbers of effects given again after a rejected handler",
    rule: "turn.ts, Rejected",
    make: inputs((input, program) =>
      input.kind === "rejected" ? { ...input, nextEffect: program.nextEffect } : input
    ),
    bias: { plan: { lossEveryMs: 0 }, ops: ["post", "put", "throw", "sleep"] },
  },
  {
    name: "a timer that was given up is still set",
    rule: "program.ts, rejected",
    make: inputs((input) =>
      input.kind === "rejected" && input.subject?.kind === "timer" ? { ...input, subject: null } : input
    ),
    bias: { plan: { whenThrown: "reject", lossEveryMs: 60 }, ops: ["timer", "clock"] },
  },
  {
    name: "attempts are not counted in the log",
    rule: "when_thrown.ts, WT3",
    make: inputs((input) =>
      input.kind === "rejected" && input.attempt > 1 ? { ...input, attempt: 1 } : input
    ),
    bias: { plan: { whenThrown: "retry", lossEveryMs: 0 }, ops: ["timer", "clock"] },
  },
  {
    name: "a timer that is to be tried again is given up",
    rule: "stateful_session.ts, ST6",
    make: inputs((input) => input.kind === "rejected" ? { ...input, attempt: 0 } : input),
    bias: { plan: { whenThrown: "retry", lossEveryMs: 60 }, ops: ["timer", "clock"] },
  },
  {
    name: "what is not acknowledged is not in the checkpoint",
    rule: "checkpoint.ts, CP3",
    make: checkpoints((_, parts) => ({ ...parts, outputs: [] })),
    bias: {
      plan: { lossEveryMs: 60, keepMs: 2, arriveMs: 100, isCheckpointing: true },
      ops: ["clock", "draw"],
    },
  },
  {
    name: "writes that are not acknowledged are not in the checkpoint",
    rule: "checkpoint.ts, CP3",
    make: checkpoints((_, parts) => ({ ...parts, effects: [] })),
    bias: {
      plan: { lossEveryMs: 60, keepMs: 2, arriveMs: 100, isCheckpointing: true },
      ops: ["put", "clock"],
    },
  },
  {
    name: "named timers are not in the checkpoint",
    rule: "checkpoint.ts, CP2",
    make: checkpoints((program, parts) => {
      program.timers.clear();
      return parts;
    }),
  },
  {
    name: "numbers of outputs are not in the checkpoint",
    rule: "checkpoint.ts, CP2",
    make: checkpoints((program, parts) => {
      for (const peer of program.peers.values()) peer.sent = 0;
      return parts;
    }),
  },
  {
    name: "messages received are not in the checkpoint",
    rule: "peers.ts, PE3",
    make: checkpoints((program, parts) => {
      for (const peer of program.peers.values()) peer.received = 0;
      return parts;
    }),
  },
  {
    name: "messages received are not counted where their handlers are undone",
    rule: "peers.ts, PE3",
    make: inputs((input) =>
      input.kind === "rejected" && input.subject?.kind === "message" ? { ...input, subject: null } : input
    ),
    bias: { plan: { whenThrown: "reject" } },
  },
  {
    name: "a peer whose going is not handled stays",
    rule: "docs/protocol/turns.md",
    make: inputs((input) =>
      input.kind === "rejected" && input.subject?.kind === "detach" ? { ...input, subject: null } : input
    ),
    bias: { plan: { whenThrown: "reject" } },
  },
  {
    name: "who has gone is sent something",
    rule: "peers.ts, PE2",
    make: programs((program) => {
      program.peers.detach = () => {};
    }),
  },
  {
    name: "checkpoint while closure timers are open",
    rule: "checkpoint.ts, CP1",
    make: programs((program) => {
      Object.defineProperty(program, "isQuiescent", { get: () => program.handler === null });
    }),
  },
  {
    name: "state of a checkpoint is that of the one before",
    rule: "checkpoint.ts, CP2",
    make: () => ({
      sink: (sink) => {
        let before: readonly Uint8Array[] = [];
        return {
          ...sink,
          checkpoint: (channel, checkpoint) => {
            const state = before;
            before = checkpoint.state;
            sink.checkpoint(channel, state.length === 0 ? checkpoint : { ...checkpoint, state });
          },
        };
      },
    }),
  },
  {
    name: "what changed in a state is taken for all of it",
    rule: "logged_program.ts, LP1",
    make: () => ({
      sink: (sink) => ({
        ...sink,
        checkpoint: (channel, checkpoint) => sink.checkpoint(channel, { ...checkpoint, on: null }),
      }),
    }),
  },
  {
    name: "a checkpoint's state is put behind the one that it stands for",
    rule: "logged_program.ts, LP1",
    make: () => ({
      open: (open) =>
        open.checkpoint === null ? open : {
          ...open,
          checkpoint: {
            ...open.checkpoint,
            state: [...open.checkpoint.state, ...open.checkpoint.state.slice(0, 1)],
          },
        },
    }),
  },
  {
    name: "a handler that throws keeps what it did",
    rule: "stateful_session.ts, ST3",
    make: () => ({
      host: (host, site) => ({
        ...host,
        make: (className, program) => {
          const left = site.object;
          const object = host.make(className, program);
          // What the handler had changed is there after the program was made again.
          if (left?.chain === -1) queueMicrotask(() => Object.assign(object, { chain: left.chain }));
          return object;
        },
      }),
    }),
  },
];
