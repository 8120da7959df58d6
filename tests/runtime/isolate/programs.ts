/**
 * Programs of stateful sessions, made at random over a small language: fields, tracked structures, waits, timers, calls,
 * throws, state of modules, and what a program can reach of the platform (session_realm.txt). Each is run in a real
 * isolate, and replayed in another after each message; it moves, is opened again without notice, and written down as a
 * checkpoint. The judge looks at bytes: it does not ask the check that a replay makes of itself.
 *
 * PR1  A replay opens, and gives out the same bytes as the first run: all that nobody has acknowledged.
 * PR2  Where a session goes on, its state is what it was.
 * PR3  A handler that failed has left the state as it was; one that changes a module, or leaves what can't be kept,
 *      fails.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { encodeAnswer } from "../../../functions/calls/call.ts";
import { encodeOutsideAnswer, encodeRows, type Output } from "../../../functions/sessions/turn/mod.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import type { IsolateApp } from "../../../runtime/isolate/mod.ts";
import type { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { type Outcome, TestHome } from "./stateful_home.ts";

/** One thing that a handler does. */
export type Step =
  | { readonly do: "set" | "put" | "write"; readonly name: string; readonly source: string }
  | { readonly do: "push" | "throw" | "later" | "leak" }
  | { readonly do: "delete" | "read" | "fetch"; readonly name: string }
  | { readonly do: "bytes"; readonly at: number }
  | { readonly do: "source"; readonly source: string }
  | { readonly do: "member"; readonly path: string; readonly args: number }
  | { readonly do: "wait"; readonly how: "timer" | "immediate" | "race" | "null" }
  | { readonly do: "timer"; readonly name: string; readonly ms: number }
  | { readonly do: "both"; readonly first: readonly Step[]; readonly second: readonly Step[] }
  | { readonly do: "try"; readonly steps: readonly Step[] }
  | { readonly do: "module" | "unkept"; readonly how: string };

/** A message, and what becomes of its session behind it. */
export interface Message {
  readonly steps: readonly Step[];
  readonly then: "nothing" | "move" | "again" | "checkpoint";
}

const MODULE = ["variable", "static", "closure", "map", "weak", "expression", "bytes", "object", "list"];
const SOURCES = [
  ...["now", "date", "dateText", "dateOfClone", "performance", "origin", "mark", "temporal", "intl", "zone"],
  ...[
    "random",
    "uuid",
    "values",
    "file",
    "form",
    "digest",
    "key",
    "stack",
    "pool",
    "reference",
    "sort",
    "url",
  ],
  ...["agent", "stream", "compressed"],
];

/**
 * Owners whose members are called; not those that end or stop a program, print, hand out what never comes, or clear what
 * another branch of it waits for.
 */
const SKIPPED =
  /^(?:console|process|Deno|navigator|performance)\b|#(?:alert|confirm|prompt|close|reportError|queueMicrotask|(?:set|clear)(?:Timeout|Immediate|Interval)|constructor|eval)$/;

/** Paths of the members that the list has as there, `owner#member`. */
export function membersOf(list: string): string[] {
  return list.split("\n").filter((line) => line !== "" && !line.startsWith("#")).flatMap((line) => {
    const at = line.indexOf(": ");
    const owner = line.slice(0, at);
    if (!/^[A-Za-z]\w*(?:\.prototype)?$/.test(owner)) return [];
    return line.slice(at + 2).split(" ").filter((name) => !name.startsWith("-")).map((name) =>
      `${owner}#${name.replace(/^[~=]/, "")}`
    ).filter((path) => !SKIPPED.test(path));
  });
}

/** Programs. @param more steps beside the common ones. */
export function programs(members: readonly string[], more: readonly Step[] = []): fc.Arbitrary<Message[]> {
  const name = fc.constantFrom("a", "b", "c");
  const source = fc.constantFrom(...SOURCES);
  const { step } = fc.letrec<{ step: Step; simple: Step }>((tie) => ({
    simple: fc.oneof(
      fc.record({ do: fc.constantFrom("set" as const, "put" as const, "write" as const), name, source }),
      fc.record({ do: fc.constantFrom("push" as const, "later" as const) }),
      fc.record({ do: fc.constantFrom("delete" as const, "read" as const, "fetch" as const), name }),
      fc.record({ do: fc.constant("bytes" as const), at: fc.nat(15) }),
      { weight: 4, arbitrary: fc.record({ do: fc.constant("source" as const), source }) },
      {
        weight: 8,
        arbitrary: fc.record({
          do: fc.constant("member" as const),
          path: fc.constantFrom(...members),
          args: fc.nat(5),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant("wait" as const),
          how: fc.constantFrom("timer" as const, "immediate" as const, "race" as const, "null" as const),
        }),
      },
      fc.record({ do: fc.constant("timer" as const), name, ms: fc.constantFrom(0, 60_000) }),
      ...more.map((each) => ({ weight: 6, arbitrary: fc.constant(each) })),
    ),
    step: fc.oneof(
      { weight: 20, arbitrary: tie("simple") },
      fc.constant({ do: "throw" as const }),
      fc.record({ do: fc.constant("module" as const), how: fc.constantFrom(...MODULE) }),
      fc.record({
        do: fc.constant("unkept" as const),
        how: fc.constantFrom("function", "symbol", "promise"),
      }),
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant("both" as const),
          first: fc.array(tie("simple"), { maxLength: 3 }),
          second: fc.array(tie("simple"), { maxLength: 3 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant("try" as const),
          steps: fc.array(tie("simple"), { maxLength: 3 }),
        }),
      },
    ),
  }));
  const then = fc.constantFrom("nothing" as const, "move" as const, "again" as const, "checkpoint" as const);
  return fc.array(fc.record({ steps: fc.array(step, { minLength: 1, maxLength: 6 }), then }), {
    minLength: 1,
    maxLength: 5,
  });
}

/** Where programs run, and where they are replayed. */
export interface Bench {
  readonly app: IsolateApp;
  readonly homes: readonly [StatefulPool, StatefulPool];
  readonly replays: StatefulPool;
}

/** So many programs run at one time: most of what one takes is to wait. */
export const AT_ONCE = 8;

/** Runs programs of which none may break a rule. */
export const runPrograms = (bench: Bench, all: readonly (readonly Message[])[], met: Met): Promise<unknown> =>
  Promise.all(all.map((program) => runProgram(bench, program, met)));

/** What was met on the way: a run that met nothing shows nothing. */
export interface Met {
  messages: number;
  failed: number;
  moved: number;
  checkpoints: number;
}

const text = new TextDecoder("latin1");
let runs = 0;

/** Runs one program. @throws AssertionError by a rule of the header. */
export async function runProgram(bench: Bench, program: readonly Message[], met: Met): Promise<void> {
  const id = `p${runs++}`;
  let at = 0, answered = 0, before: unknown;
  const answer: TestHome["answer"] = ({ kind }) => {
    const n = ++answered;
    if (kind === "get") {
      const value = encodeValue(`row ${n}`);
      return {
        ok: true,
        bytes: encodeRows([{ key: "a", value, versionstamp: `${n}`.padStart(20, "0") } as never]),
      };
    }
    if (kind === "list" || kind === "commit" || kind === "session") {
      return { ok: false, code: "not_available", message: `${n}` };
    }
    const body = new TextEncoder().encode(`body ${n}`);
    const response = encodeAnswer({ kind: "response", status: 200, statusText: "", headers: [], body });
    const outcome = {
      ok: true,
      bytes: encodeOutsideAnswer({ url: "https://a.example/", answer: response }),
    } as const;
    // Some come behind what was asked for later.
    return n % 2 === 0 ? outcome : new Promise((resolve) => setTimeout(() => resolve(outcome), 2));
  };
  let home = new TestHome(bench.homes[0], bench.app, id);
  home.answer = answer;
  await home.open();
  for (const message of program) {
    met.messages++;
    before ??= await stateOf(home);
    const outcome = await asked(home, "run", message.steps);
    await rests(home);
    assert.equal(home.parked, null, `it stands still: ${home.parked?.message}`);
    const after = await stateOf(home);
    if (outcome.kind === "error") {
      met.failed++;
      assert.deepEqual(after, before, `PR3: ${outcome.code}`);
    } else {
      const bad = message.steps.find((step) => step.do === "module" || step.do === "unkept");
      assert.equal(bad, undefined, `PR3: ${JSON.stringify(bad)} was answered`);
    }
    await replayed(bench, home, id, answer);
    if (message.then === "checkpoint") {
      met.checkpoints++;
      const { checkpoint } = home;
      home.checkpointNow();
      await reached(home, () => home.checkpoint !== checkpoint || home.parked !== null);
    } else if (message.then !== "nothing") {
      met.moved++;
      if (message.then === "move") home.leave();
      // Else the home before is lost: nobody closes anything there.
      const [here, next] = ++at % 2 === 0 ? bench.homes : bench.homes.toReversed();
      const there = new TestHome(here ?? next ?? bench.homes[0], bench.app, id);
      Object.assign(there, {
        checkpoint: home.checkpoint,
        answer,
        epoch: home.epoch + 1,
        requests: `${at}q`,
      });
      there.commits.push(...home.commits);
      const left = home;
      home = there;
      await home.open();
      if (message.then === "again") left.leave();
      assert.equal(home.parked, null, `PR1: ${home.parked?.message}`);
    }
    if (message.then !== "nothing") {
      assert.deepEqual(await stateOf(home), after, `PR2: behind ${message.then}`);
    }
    before = after;
  }
  home.leave();
}

/** What comes of a call. @throws Error where nothing can: it stands still, or its isolate is gone. */
async function asked(home: TestHome, ...call: Parameters<TestHome["call"]>): Promise<Outcome> {
  const over = home.until(() => home.parked !== null || home.end !== null).then(() => {
    throw new Error(`it stands still: ${home.parked?.message ?? JSON.stringify(home.end)}`);
  });
  return await Promise.race([home.call(...call), over]);
}

/** Waits for something that only its isolate can bring. */
async function reached(home: TestHome, holds: () => boolean): Promise<void> {
  await home.until(() => holds() || home.end !== null);
  if (!holds()) throw new Error(`its isolate ended: ${JSON.stringify(home.end)}`);
}

async function stateOf(home: TestHome): Promise<unknown> {
  const state = await asked(home, "state");
  assert.equal(state.kind, "value", JSON.stringify(state));
  return state.kind === "value" ? state.value : undefined;
}

/** Closure timers have gone off. */
async function rests(home: TestHome): Promise<void> {
  await reached(home, () => home.parked !== null || home.commits.at(-1)?.isQuiescent === true);
}

/** PR1. @throws AssertionError whose message says "stands still" where the replay itself has said no */
export async function replayed(
  bench: Bench,
  home: TestHome,
  id: string,
  answer: TestHome["answer"],
): Promise<void> {
  const replay = new TestHome(bench.replays, bench.app, id);
  Object.assign(replay, { checkpoint: home.checkpoint, epoch: home.epoch, answer });
  replay.commits.push(...home.commits);
  const outputs = home.commits.flatMap(({ outputs }) => outputs);
  await replay.open();
  replay.leave();
  assert.equal(replay.parked, null, `PR1: it stands still: ${replay.parked?.message}`);
  const again = new Map(replay.opened?.outputs.map((output) => [nameOf(output), output]));
  for (const output of outputs) {
    const [first, then] = [output, again.get(nameOf(output))].map((each) => each && text.decode(each.bytes));
    assert.equal(then, first, `PR1: ${nameOf(output)}`);
  }
}

const nameOf = ({ to, sequence }: Output): string => `${sequence} to ${to}`;
