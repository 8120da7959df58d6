/** Stateful sessions: logs, checkpoints and the state of an app, as a keeper's disk or another site might give them. */
import fc from "fast-check";
import { isDeepStrictEqual } from "node:util";
import { codeOf } from "../../functions/vocabulary/errors.ts";
import { SessionState } from "../../functions/tracked/mod.ts";
import { decodeCheckpoint, encodeCheckpoint } from "../../functions/sessions/turn/checkpoint.ts";
import {
  readEntries,
  type ReadEntry,
  writeCheckpointEntry,
  writeTurn,
} from "../../functions/sessions/turn/log_entry.ts";
import { Program } from "../../functions/sessions/turn/program.ts";
import { CodecError, Writer } from "../../store/model/codec.ts";
import { anyStep, begin, carryOut, snapshot } from "../functions/tracked/programs.ts";
import { anyParts, anyTurn, filled } from "../functions/sessions/turn/log_arbitrary.ts";
import { mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const CORPUS = 200;

class Subject {
  plain: unknown = null;
  top = begin(true);
}

/** Segments of states after random programs. */
function states(seed: number): Uint8Array[] {
  return fc.sample(fc.tuple(fc.array(anyStep, { maxLength: 30, size: "max" }), fc.jsonValue()), {
    numRuns: CORPUS,
    seed,
  }).flatMap(([steps, plain]) => {
    const subject = new Subject();
    const state = new SessionState(subject);
    const segments: Uint8Array[] = [];
    for (const [at, step] of steps.entries()) {
      carryOut(subject.top, step, true);
      if (at % 10 === 0) segments.push(state.checkpoint(true));
    }
    subject.plain = plain;
    return [...segments, state.checkpoint(true)];
  });
}

function everythingIn(bytes: Uint8Array): { readonly state: SessionState; readonly all: unknown } {
  const subject = new Subject();
  const state = new SessionState(subject);
  state.load(bytes);
  return { state, all: { ...subject, top: snapshot(subject.top) } };
}

/** What tracked structures and plain fields are loaded from (functions/tracked/part.ts T4). */
export const stateSegments: Target = {
  name: "states",
  says: "refused as value_corrupt or limit_value, or read as something that is written and read as the same",
  reaches: ["value_corrupt", "the same"],
  quick: 3_000,
  open(seed) {
    const corpus = states(seed);
    return {
      attempt(dice) {
        const mutant = Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        let read: ReturnType<typeof everythingIn>;
        try {
          read = everythingIn(mutant);
        } catch (error) {
          const code = codeOf(error);
          if (code === "value_corrupt" || code === "limit_value") return code;
          throw error;
        }
        const again = everythingIn(writtenOr(read.state, mutant));
        if (!isDeepStrictEqual(again.all, read.all)) throw new Finding("it is written as another");
        return "the same";
      },
    };
  },
};

/** A forged state may hold what no app could put there, or can't be read where nothing here looks: said when it is written. */
function writtenOr(state: SessionState, otherwise: Uint8Array): Uint8Array {
  try {
    return state.checkpoint(true);
  } catch (error) {
    if (codeOf(error) === "value_invalid" || codeOf(error) === "value_corrupt") return otherwise;
    throw error;
  }
}

/** Writes what was read, entry by entry. */
function rewritten(entries: readonly ReadEntry[]): Uint8Array {
  const w = new Writer();
  for (const entry of entries) {
    if (entry.kind === "checkpoint") writeCheckpointEntry(w, entry.digest);
    else if (entry.kind === "turn") {
      const clocks = entry.dt === null ? [] : [entry.dt];
      writeTurn(w, entry.input, { clocks, storeClock: null, check: entry.check }, 0);
    } else {
      // It stands behind a turn: written with one, of which all but that is left away.
      const turn = new Writer();
      const input = { kind: "local", local: 0 } as const;
      const [clocks, storeClock] = entry.kind === "clock" ? [[0, entry.dt], null] : [[0], entry.clock];
      writeTurn(turn, input, { clocks, storeClock, check: 0 }, 0);
      w.raw(turn.done().subarray(3));
    }
  }
  return w.done();
}

/** Logs of stateful sessions. */
export const logs: Target = {
  name: "logs",
  says: "refused as message_malformed, or in their one form",
  reaches: ["message_malformed", "canonical"],
  quick: 5_000,
  open(seed) {
    const corpus = fc.sample(fc.array(anyTurn, { minLength: 1, maxLength: 5 }), { numRuns: CORPUS, seed })
      .map(
        (turns) => {
          const w = new Writer();
          for (const { input, end } of turns) writeTurn(w, input, end, 0);
          writeCheckpointEntry(w, turns.length);
          return w.done();
        },
      );
    return {
      attempt(dice) {
        const mutant = Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        let entries: ReadEntry[];
        try {
          entries = readEntries(mutant);
        } catch (error) {
          if (error instanceof CodecError) return error.code;
          throw error;
        }
        if (!same(rewritten(entries), mutant)) throw new Finding(`another form was read: ${mutant}`);
        return "canonical";
      },
    };
  },
};

const host = { make: () => ({}), envOf: () => ({}), aside: <T>(_: Program, work: () => T): T => work() };

/** Checkpoints of stateful sessions, but for the state in them. */
export const checkpoints: Target = {
  name: "checkpoints",
  says: "refused as message_malformed, or in their one form",
  reaches: ["message_malformed", "canonical"],
  quick: 5_000,
  open(seed) {
    const corpus = fc.sample(anyParts, { numRuns: CORPUS, seed }).map((parts) =>
      encodeCheckpoint(filled(new Program(host, "cart", "a"), parts), parts)
    );
    return {
      attempt(dice) {
        const mutant = Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        const program = new Program(host, "cart", "a");
        let parts: ReturnType<typeof decodeCheckpoint>;
        try {
          parts = decodeCheckpoint(mutant, program);
        } catch (error) {
          if (error instanceof CodecError) return error.code;
          throw error;
        }
        // The first form is only read any more.
        if (mutant[0] !== 1 && !same(encodeCheckpoint(program, parts), mutant)) {
          throw new Finding(`another form was read: ${mutant}`);
        }
        return "canonical";
      },
    };
  },
};
