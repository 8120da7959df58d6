/** Entries and checkpoints of stateful sessions: what is written is read. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeCheckpoint, encodeCheckpoint } from "../../../../functions/sessions/turn/checkpoint.ts";
import { readEntries, writeTurn } from "../../../../functions/sessions/turn/log_entry.ts";
import type { EntryCheck } from "../../../../functions/sessions/turn/rolling_check.ts";
import { Program } from "../../../../functions/sessions/turn/program.ts";
import { CodecError, Writer } from "../../../../store/model/codec.ts";
import { anyParts, anyTurn, filled } from "./log_arbitrary.ts";

const host = { make: () => ({}), envOf: () => ({}), aside: <T>(_: Program, work: () => T): T => work() };

Deno.test("log: the entries that are written are read, and say where each ends", () => {
  fc.assert(fc.property(fc.array(anyTurn, { maxLength: 6 }), (turns) => {
    const w = new Writer();
    const ends: number[] = [];
    let count = 0;
    for (const { input, end } of turns) {
      count += writeTurn(w, input, end, 0);
      ends.push(w.length);
    }
    const entries = readEntries(w.done());
    assert.equal(entries.length, count);
    assert.equal(entries.at(-1)?.end ?? 0, ends.at(-1) ?? 0);
    const read = entries.flatMap((entry) => entry.kind === "turn" ? [entry.input] : []);
    assert.deepEqual(read, turns.map(({ input }) => structuredClone(input)));
  }));
});

Deno.test("log: a turn costs ten bytes and what it says; of before, two", () => {
  const bytesOf = (input: Parameters<typeof writeTurn>[1], check: EntryCheck) => {
    const w = new Writer();
    writeTurn(w, input, { clocks: [253], storeClock: null, check }, 0);
    return w.length;
  };
  const whole = { high: 1, low: -1 };
  assert.equal(bytesOf({ kind: "local", local: 5 }, whole), 10 + 1);
  assert.equal(bytesOf({ kind: "result", call: 5, bytes: new Uint8Array(0) }, whole), 10 + 2);
  const message = { kind: "message", peer: "p123456", message: "hello" } as const;
  assert.equal(bytesOf(message, whole), 5 + 20);
  assert.equal(bytesOf(message, 7), 5 + 14);
});

Deno.test("log: what is cut, of no kind or not in its one form is refused (LE1)", () => {
  const rows: [number[], RegExp][] = [
    [[0x00], /no log entry of kind 0/],
    [[0x0f], /no log entry of kind 15/],
    [[0x0c, 0xfe], /a clock is no turn/],
    [[0x0e, 0xfe, 0], /a checkpoint is no turn/],
    [[0x06, 0xfe, 5, 1, 2, 3, 4, 5, 6, 7], /ends too early/],
    [[0xfe], /no log entry of kind 15/],
    [[0x6e, 5], /ends too early/],
    [[0xce], /a clock entry has no time/],
    [[0xd3, 5], /an effect has no time of its own/],
    [[0xe3, 5], /a checkpoint has no time of its own/],
    [[0xbe, 1, 0, 0], /a seed has 1 bytes, not 32/],
    [[0x9e, 0, 0, 1, 65, 0, 0, 0, 1, 1, 1, 0], /a rejection of nothing has the id of something/],
    [[0x3e, 2, 0, 0], /no such kind of peer/],
    [[0x1e, 0, 0xff, 0x7f], /a list is longer than the message/],
  ];
  for (const [bytes, says] of rows) {
    assert.throws(
      () => readEntries(Uint8Array.from(bytes)),
      (error) => error instanceof CodecError && says.test(error.message),
      `${says}`,
    );
  }
});

Deno.test("a checkpoint that is written is read, and written again as it was (call_bytes.ts CB1)", () => {
  fc.assert(fc.property(anyParts, (parts) => {
    const written = encodeCheckpoint(filled(new Program(host, "cart", "a"), parts), parts);
    const program = new Program(host, "cart", "a");
    const read = decodeCheckpoint(written, program);
    const { outputs, effects, shape } = structuredClone(parts);
    assert.ok(program.check.matches(parts.check));
    assert.deepEqual(read, { outputs, effects, shape, code: parts.numbers.code, state: null });
    assert.deepEqual([...program.timers], structuredClone(parts.timers));
    assert.deepEqual([...program.counts], structuredClone(parts.counts));
    assert.deepEqual(encodeCheckpoint(program, read), written);
  }));
});

Deno.test("a checkpoint has messages to queues in a format of its own, and is of one that sites of before read without any", () => {
  const program = new Program(host, "cart", "a");
  program.check.widen();
  const effect = { effect: 1, clock: 2, replica: 3, atMs: 4, mutations: [] };
  const sends = [{ queue: "q", body: new Uint8Array([7]) }];
  const written = encodeCheckpoint(program, { shape: 0, outputs: [], effects: [{ ...effect, sends }] });
  assert.equal(written[0], 6);
  const without = encodeCheckpoint(program, { shape: 0, outputs: [], effects: [effect] });
  assert.equal(without[0], 4);
  // No messages, and no counts.
  const empty = Uint8Array.from([6, ...without.subarray(1), 0, 0]);
  assert.throws(
    () => decodeCheckpoint(empty, new Program(host, "cart", "a")),
    (error) => error instanceof CodecError && /is of an earlier format/.test(error.message),
  );
});

Deno.test("what counts in packages is read in its one form, and a checkpoint without any is one that sites of before read", () => {
  const program = new Program(host, "cart", "a");
  program.check.widen();
  const parts = { shape: 0, outputs: [], effects: [] };
  assert.equal(encodeCheckpoint(program, parts)[0], 4);
  program.counts.set("n", 7);
  const written = encodeCheckpoint(program, parts);
  assert.equal(written[0], 5);
  const without = written.subarray(0, -6);
  const rows: readonly (readonly [bytes: readonly number[], says: RegExp])[] = [
    [[0], /are there, each once, or are left out/],
    [[2, 1, 110, 0, 1, 55, 1, 110, 0, 1, 56], /are there, each once, or are left out/],
    [[1, 1, 110, 0, 2, 48, 55], /is written in one way/],
    [[1, 1, 110, 1, 2, 48, 55], /is written in one way/],
    [[1, 1, 110, 1, 1, 110], /no count of a package/],
    [[1, 1, 110, 3, 1, 55], /no count of a package/],
  ];
  for (const [bytes, says] of rows) {
    assert.throws(
      () => decodeCheckpoint(Uint8Array.from([...without, ...bytes]), new Program(host, "cart", "a")),
      (error) => error instanceof CodecError && says.test(error.message),
      `${says}`,
    );
  }
});
