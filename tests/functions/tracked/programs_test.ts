/** Tracked structures against plain ones: random programs with checkpoints and crashes. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { mergeState, SessionState } from "../../../functions/tracked/mod.ts";
import { anyContent, anyStep, begin, carryOut, identities, snapshot, type Step } from "./programs.ts";

/** What a program does between its steps. */
type Act =
  | { readonly act: "step"; readonly step: Step; readonly look: boolean }
  | { readonly act: "plain"; readonly name: string; readonly content: unknown }
  | { readonly act: "checkpoint"; readonly whole: boolean; readonly merge: boolean; readonly crash: boolean };

const anyAct: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ act: fc.constant("step" as const), step: anyStep, look: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("plain" as const),
      name: fc.constantFrom("one", "two", "three"),
      content: fc.option(anyContent),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant("checkpoint" as const),
      whole: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
      merge: fc.boolean(),
      crash: fc.boolean(),
    }),
  },
);

/** As the fields of a session. */
class Subject {
  [name: string]: unknown;
  one: unknown = 1;
  top = begin(true);
}

class Run {
  subject = new Subject();
  state = new SessionState(this.subject);
  /** Loaded from what was written so far, then given the same steps: has to be as the one that went on. */
  twin: { subject: Subject; state: SessionState } | null = null;
  readonly model: Record<string, unknown> = { one: 1 };
  readonly modelTop = begin(false);
  segments: Uint8Array[] = [];

  do(act: Act): void {
    const all = [this.subject, ...this.twin === null ? [] : [this.twin.subject]];
    if (act.act === "step") {
      const wanted = carryOut(this.modelTop, act.step, false);
      for (const each of all) assert.deepEqual(carryOut(each.top, act.step, true), wanted);
    } else if (act.act === "plain") {
      for (const each of [...all, this.model]) {
        if (act.content === null) delete each[act.name];
        else each[act.name] = structuredClone(act.content);
      }
    } else this.#checkpoint(act);
    // A look decodes all: without one, what was loaded stays as it came.
    if (act.act === "step" && act.look) this.compare();
  }

  #checkpoint({ whole, merge, crash }: Extract<Act, { act: "checkpoint" }>): void {
    const segment = this.state.checkpoint(whole);
    if (this.twin !== null) {
      assert.deepEqual(this.twin.state.checkpoint(whole), segment, "the next changes of a loaded one differ");
    }
    this.segments.push(segment);
    if (merge) this.segments = [mergeState(...this.segments)];
    const subject = new Subject();
    const state = new SessionState(subject);
    state.load(...this.segments);
    // One that was loaded long ago, and took the checkpoints since, has to be as one that was loaded now.
    if (crash) [this.subject, this.state] = [subject, state];
    else if (merge || this.twin === null) this.twin = { subject, state };
  }

  compare(): void {
    const wanted = snapshot(this.modelTop);
    for (const each of [this.subject, this.twin?.subject]) {
      if (each === undefined) continue;
      assert.deepEqual(snapshot(each.top), wanted);
      assert.deepEqual(identities(each.top), identities(this.subject.top));
      const { top: _, ...plain } = each;
      assert.deepEqual(plain, this.model);
      assert.deepEqual(Object.keys(plain), Object.keys(this.model));
    }
  }
}

Deno.test("tracked structures do what plain ones do, through checkpoints and crashes (part.ts T1, state.ts S1, S3, map.ts M1, memory.ts Y1)", () => {
  fc.assert(
    fc.property(fc.array(anyAct, { maxLength: 60, size: "max" }), (acts) => {
      const run = new Run();
      for (const act of acts) run.do(act);
      run.compare();
    }),
    { numRuns: 500, interruptAfterTimeLimit: 60_000 },
  );
});
