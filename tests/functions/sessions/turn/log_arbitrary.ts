/** Turns and checkpoints of all kinds, for tests and fuzzing. */
import fc from "fast-check";
import type { CheckpointParts } from "../../../../functions/sessions/turn/checkpoint.ts";
import type { Effect, EffectSend } from "../../../../functions/sessions/turn/commit.ts";
import type { Count, Program } from "../../../../functions/sessions/turn/program.ts";
import type { CheckMark } from "../../../../functions/sessions/turn/rolling_check.ts";
import type { Subject } from "../../../../functions/class/subject.ts";
import type { TurnEnd, TurnInput } from "../../../../functions/sessions/turn/turn.ts";

const uint = fc.oneof(fc.nat(300), fc.nat(Number.MAX_SAFE_INTEGER));
const word = fc.integer();
/** All of a check. */
const mark = fc.record({ high: word, low: word });
const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const bytes = fc.uint8Array({ maxLength: 20 });
const seed = fc.uint8Array({ minLength: 32, maxLength: 32 });
const kind = fc.constantFrom("client" as const, "origin" as const);
const peer = fc.record({ kind, id: name });

const SUBJECTS = ["request", "message", "attach", "detach", "timer"] as const;

const input: fc.Arbitrary<TurnInput> = fc.oneof<fc.Arbitrary<TurnInput>[]>(
  fc.record({ kind: fc.constant("request"), request: name, chain: fc.array(name, { maxLength: 3 }), bytes }),
  fc.record({ kind: fc.constant("message"), peer: name, message: fc.oneof(name, bytes) }),
  fc.record({ kind: fc.constant("attach"), peer }),
  fc.record({ kind: fc.constant("detach"), peer: name }),
  fc.record({ kind: fc.constant("timer"), name }),
  fc.record({ kind: fc.constant("local"), local: uint }),
  fc.record({ kind: fc.constant("result"), call: uint, bytes }),
  fc.record({ kind: fc.constant("error"), call: uint, code: name, message: name }),
  fc.record({
    kind: fc.constant("rejected"),
    voids: uint,
    subject: fc.option<Subject>(fc.record({ kind: fc.constantFrom(...SUBJECTS), id: name })),
    attempt: fc.nat(5),
    code: name,
    message: name,
    drops: fc.oneof(fc.constantFrom("none" as const, "all" as const), fc.integer({ min: 1, max: 1_000 })),
    nextCall: uint,
    nextLocal: uint,
    nextEffect: uint,
  }),
  fc.record({ kind: fc.constant("epoch"), epoch: uint, replica: uint, code: name }),
  fc.record({ kind: fc.constant("birth"), seed }),
);

const end: fc.Arbitrary<TurnEnd> = fc.record({
  clocks: fc.array(fc.nat(100_000), { maxLength: 3 }).map((clocks) => clocks.toSorted((a, b) => a - b)),
  storeClock: fc.option(uint),
  check: fc.oneof(mark, fc.nat(255)),
});

/** A turn, and what its entries say of its end; clocks are counted from 0. */
export const anyTurn: fc.Arbitrary<{ readonly input: TurnInput; readonly end: TurnEnd }> = fc.record({
  input,
  end,
});

const key = fc.uint8Array({ maxLength: 6 }).map((units) => String.fromCharCode(...units));
const mutation = fc.oneof<fc.Arbitrary<Effect["mutations"][number]>[]>(
  fc.record({ kind: fc.constant("set"), key, value: bytes }),
  fc.record({ kind: fc.constant("set"), key, value: bytes, expireInMs: fc.integer({ min: 1, max: 1e9 }) }),
  fc.record({ kind: fc.constant("delete"), key }),
  fc.record({ kind: fc.constantFrom("sum", "min", "max"), key, value: bytes }),
);

const positive = fc.integer({ min: 1, max: 1e9 });
const send: fc.Arbitrary<EffectSend> = fc.record(
  { queue: name, body: bytes, id: name.filter((id) => id !== ""), delayMs: positive, ttlMs: positive },
  { requiredKeys: ["queue", "body"] },
);

/** What a checkpoint holds. */
export type AnyParts = Pick<CheckpointParts, "shape" | "outputs" | "effects"> & {
  readonly numbers: Pick<
    Program,
    | "epoch"
    | "replica"
    | "code"
    | "originMs"
    | "clockMs"
    | "storeClock"
    | "nextCall"
    | "nextLocal"
    | "nextEffect"
  >;
  readonly check: CheckMark;
  readonly seed: Uint8Array;
  readonly drawn: readonly [math: number, crypto: number];
  readonly timers: readonly (readonly [string, number])[];
  readonly peers: readonly {
    readonly kind: "client" | "origin";
    readonly id: string;
    readonly sent: number;
    readonly received: number;
    readonly isClosed: boolean;
  }[];
  readonly counts: readonly (readonly [name: string, value: Count])[];
};

export const anyParts: fc.Arbitrary<AnyParts> = fc.record({
  numbers: fc.record({
    epoch: uint,
    replica: uint,
    code: name,
    originMs: uint,
    clockMs: uint,
    storeClock: uint,
    nextCall: uint,
    nextLocal: uint,
    nextEffect: uint,
  }),
  check: mark,
  seed,
  drawn: fc.tuple(fc.nat(1e9), fc.nat(1e9)),
  timers: fc.uniqueArray(fc.tuple(name, uint), { maxLength: 3, selector: ([name]) => name }),
  peers: fc.uniqueArray(fc.record({ kind, id: name, sent: uint, received: uint, isClosed: fc.boolean() }), {
    maxLength: 3,
    selector: ({ id }) => id,
  }),
  outputs: fc.array(fc.record({ to: name, sequence: uint, bytes }), { maxLength: 3 }),
  effects: fc.array(
    fc.record({
      effect: uint,
      clock: uint,
      replica: uint,
      atMs: uint,
      mutations: fc.array(mutation, { maxLength: 3 }),
      sends: fc.array(send, { minLength: 1, maxLength: 2 }),
    }, { requiredKeys: ["effect", "clock", "replica", "atMs", "mutations"] }),
    { maxLength: 2 },
  ),
  shape: fc.nat(1_000),
  counts: fc.uniqueArray(fc.tuple(name, fc.oneof<fc.Arbitrary<Count>[]>(fc.double(), fc.bigInt(), name)), {
    maxLength: 3,
    selector: ([name]) => name,
  }),
});

/** Puts them into a program. */
export function filled(
  program: Program,
  { numbers, check, seed, drawn, timers, peers, counts }: AnyParts,
): Program {
  program.sow(seed);
  program.check.restore(check);
  Object.assign(program, numbers);
  [program.math.position, program.crypto.position] = drawn;
  for (const [name, dueMs] of timers) program.timers.set(name, dueMs);
  for (const { kind, id, ...state } of peers) program.peers.restore({ peer: { kind, id }, ...state });
  for (const [name, value] of counts) program.counts.set(name, value);
  return program;
}
