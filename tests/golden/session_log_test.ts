/** Log, checkpoints and state of stateful sessions against docs/protocol/session-log.md (tests/golden/session_log.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import {
  bytes,
  list,
  map,
  mergeState,
  SessionState,
  type TrackedList,
  type TrackedMap,
} from "../../functions/tracked/mod.ts";
import {
  decodeContent,
  encodeContent,
  encodePlain,
  recognizeModules,
} from "../../functions/tracked/content.ts";
import { decodeCheckpoint, encodeCheckpoint } from "../../functions/sessions/turn/checkpoint.ts";
import type { Effect } from "../../functions/sessions/turn/commit.ts";
import { readEntries, writeCheckpointEntry, writeTurn } from "../../functions/sessions/turn/log_entry.ts";
import { Program } from "../../functions/sessions/turn/program.ts";
import { checkText, type EntryCheck, RollingCheck } from "../../functions/sessions/turn/rolling_check.ts";
import type { TurnInput } from "../../functions/sessions/turn/turn.ts";
import { Writer } from "../../store/model/codec.ts";
import { openPiece, wrapPiece } from "../../functions/sessions/serve/pieces.ts";
import { packState, unpackState } from "../../functions/sessions/serve/state_parts.ts";
import { runPython, storedVectors } from "./python.ts";

const Turn = z.strictObject({
  beforeMs: z.number(),
  clocks: z.array(z.number()),
  storeClock: z.number().nullable(),
  check: z.union([z.number(), z.string()]),
  input: z.looseObject({ kind: z.string() }),
});
const Peer = z.strictObject({
  kind: z.enum(["client", "origin"]),
  id: z.string(),
  sent: z.number(),
  received: z.number(),
  isClosed: z.boolean(),
});
const Checkpoint = z.strictObject({
  epoch: z.number(),
  replica: z.number(),
  code: z.string(),
  seed: z.string(),
  originMs: z.number(),
  clockMs: z.number(),
  storeClock: z.number(),
  math: z.number(),
  crypto: z.number(),
  check: z.union([z.number(), z.string()]),
  nextCall: z.number(),
  nextLocal: z.number(),
  nextEffect: z.number(),
  timers: z.array(z.strictObject({ name: z.string(), dueMs: z.number() })),
  peers: z.array(Peer),
  outputs: z.array(z.strictObject({ to: z.string(), sequence: z.number(), bytes: z.string() })),
  effects: z.array(z.looseObject({
    mutations: z.array(z.looseObject({ value: z.string().optional() })),
    sends: z.array(z.looseObject({ body: z.string() })).default([]),
  })),
  state: z.string().nullable(),
  shape: z.number(),
  counts: z.array(z.strictObject({
    name: z.string(),
    type: z.enum(["number", "bigint", "string"]),
    value: z.string(),
  })).default([]),
});
const Token = z.strictObject({
  ...{ session: z.string(), sequence: z.number(), replica: z.number(), clock: z.number(), open: z.boolean() },
  path: z.array(z.number().nullable()),
  followed: z.array(z.number()).exactOptional(),
});
const Piece = z.strictObject({
  seen: z.strictObject({ token: Token, applied: z.number(), isWhole: z.boolean() }).nullable(),
  ...{ open: z.number(), marks: z.boolean(), bytes: z.string(), writer: z.number().optional() },
});
const Vectors = z.strictObject({
  turns: z.array(z.strictObject({ turn: Turn, count: z.number(), bytes: z.string() })),
  checks: z.array(z.strictObject({
    given: z.array(z.tuple([z.enum(["number", "text", "bytes"]), z.union([z.number(), z.string()])])),
    check: z.string(),
  })),
  checkpointEntries: z.array(z.strictObject({ digest: z.number(), bytes: z.string() })),
  checkpoints: z.array(z.strictObject({ checkpoint: Checkpoint, format: z.number(), bytes: z.string() })),
  parts: z.array(z.strictObject({
    segments: z.array(z.string()),
    parts: z.array(z.string()),
    packs: z.boolean(),
  })),
  state: z.string(),
  pieces: z.array(z.strictObject({ piece: Piece, packed: z.string() })),
  contents: z.array(z.strictObject({ js: z.string(), bytes: z.string() })),
  plainFields: z.string(),
});
const text = await storedVectors("session_log.json");
const vectors = Vectors.parse(JSON.parse(text));

const unhex = (hex: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (of: Uint8Array): string => Buffer.from(of).toString("hex");

Deno.test("golden session log: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("session_log.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

/** All of a check is hexadecimal in the vectors; one of before a number. */
const markOf = (check: string | number): EntryCheck =>
  typeof check === "number"
    ? check
    : { high: parseInt(check.slice(0, 8), 16) | 0, low: parseInt(check.slice(8), 16) | 0 };

/** Bytes are hexadecimal in the vectors. */
function inputOf({ text, bytes, seed, ...rest }: Record<string, unknown>): TurnInput {
  return {
    ...rest,
    ...rest.kind === "message" ? { message: text ?? unhex(String(bytes)) } : {},
    ...rest.kind !== "message" && bytes !== undefined ? { bytes: unhex(String(bytes)) } : {},
    ...seed === undefined ? {} : { seed: unhex(String(seed)) },
  } as unknown as TurnInput;
}

Deno.test("golden session log: the entries of a turn have the bytes that the document gives", () => {
  for (const { turn, count, bytes } of vectors.turns) {
    const input = inputOf(turn.input);
    const w = new Writer();
    const check = markOf(turn.check);
    assert.equal(writeTurn(w, input, { ...turn, check }, turn.beforeMs), count);
    assert.equal(hex(w.done()), bytes);
    const [first, ...more] = readEntries(unhex(bytes));
    const steps = turn.clocks.map((ms, i) => ms - (i === 0 ? turn.beforeMs : turn.clocks[i - 1] ?? 0));
    assert.ok(first?.kind === "turn");
    assert.deepEqual(first.input, input);
    const wantedCheck = typeof check === "number" ? check & 0xff : check;
    assert.deepEqual([first.dt, first.check], [steps[0] ?? null, wantedCheck]);
    const wanted = [
      ...steps.slice(1).map((dt) => ({ kind: "clock", dt })),
      ...turn.storeClock === null ? [] : [{ kind: "effect", clock: turn.storeClock }],
    ];
    assert.deepEqual(more.map(({ end: _, ...entry }) => entry), wanted);
  }
});

Deno.test("golden session log: the rolling check is that of the document", () => {
  for (const { given, check } of vectors.checks) {
    const rolled = new RollingCheck();
    rolled.widen();
    for (const [kind, value] of given) {
      if (kind === "number") rolled.number(Number(value));
      else if (kind === "text") rolled.text(String(value));
      else rolled.bytes(unhex(String(value)));
    }
    assert.equal(checkText(rolled.mark()), check, JSON.stringify(given));
  }
});

Deno.test("golden session log: the entry of a checkpoint has the bytes that the document gives", () => {
  for (const { digest, bytes } of vectors.checkpointEntries) {
    const w = new Writer();
    writeCheckpointEntry(w, digest);
    assert.equal(hex(w.done()), bytes);
    assert.deepEqual(readEntries(unhex(bytes)), [{ kind: "checkpoint", digest, end: bytes.length / 2 }]);
  }
});

Deno.test("golden session log: checkpoints have the bytes that the document gives", () => {
  const host = { make: () => ({}), envOf: () => ({}), aside: <T>(_: Program, work: () => T): T => work() };
  for (const { checkpoint: c, format, bytes } of vectors.checkpoints) {
    const program = new Program(host, "cart", "a");
    const parts = decodeCheckpoint(unhex(bytes), program);
    assert.deepEqual([...program.timers].map(([name, dueMs]) => ({ name, dueMs })), c.timers);
    assert.deepEqual(
      [...program.peers.values()].map(({ peer, ...state }) => ({ ...peer, ...state })),
      c.peers,
    );
    const {
      math,
      crypto,
      seed,
      check,
      timers: _,
      peers: __,
      outputs,
      effects,
      state,
      shape,
      counts,
      ...numbers
    } = c;
    const ofType = { number: Number, bigint: BigInt, string: String };
    assert.deepEqual(
      [...program.counts],
      counts.map(({ name, type, value }) => [name, ofType[type](value)]),
    );
    if (typeof check === "number") assert.equal(program.check.short, check);
    else assert.ok(program.check.matches(markOf(check)));
    assert.deepEqual([program.math.position, program.crypto.position, hex(program.seed)], [
      math,
      crypto,
      seed,
    ]);
    for (const [name, value] of Object.entries(numbers)) assert.equal(program[name as "epoch"], value, name);
    assert.deepEqual(parts.outputs, outputs.map((each) => ({ ...each, bytes: unhex(each.bytes) })));
    const wanted = effects.map(({ mutations, sends, ...effect }) => ({
      ...effect,
      ...sends.length === 0 ? {} : { sends: sends.map((send) => ({ ...send, body: unhex(send.body) })) },
      mutations: mutations.map(({ value, ...each }) =>
        value === undefined ? each : { ...each, value: unhex(value) }
      ),
    })) as unknown as Effect[];
    assert.deepEqual(parts.effects, wanted);
    assert.deepEqual([parts.state && hex(parts.state), parts.shape], [state, shape]);
    if (format >= 3) assert.equal(hex(encodeCheckpoint(program, parts)), bytes);
  }
});

Deno.test("golden session log: segments of a state are the parts that the document gives", async () => {
  for (const { segments, parts, packs } of vectors.parts) {
    assert.deepEqual((await unpackState(parts.map(unhex))).map(hex), segments);
    if (packs) assert.deepEqual((await packState(segments.map(unhex))).map(hex), parts);
  }
});

Deno.test("golden session log: a state is read as the document says, and written so", () => {
  class Golden {
    stamps = map<string, unknown>();
    picture = bytes();
    old: unknown = 1;
    visits = 0;
    owner = "";
  }
  const read = new Golden();
  const state = new SessionState(read);
  state.load(unhex(vectors.state));
  assert.deepEqual([...read.stamps.keys()], ["b", "c"]);
  assert.deepEqual((read.stamps.get("b") as TrackedList<string>).toArray(), ["x", "y"]);
  assert.deepEqual(read.stamps.get("c"), { n: 2 });
  assert.deepEqual([read.picture.length, read.picture.at(255), read.picture.at(256)], [300, 0, 5]);
  assert.deepEqual([read.picture.at(299), read.picture.at(9), read.picture.at(8)], [5, 9, 0]);
  assert.deepEqual([read.visits, read.owner, "old" in read], [3, "ada", false]);
  assert.equal(hex(written()), vectors.state);
});

/** What {@link Golden} was when these vectors were written, step by step. */
function written(): Uint8Array {
  const golden: Record<string, unknown> = {
    stamps: map(),
    picture: bytes(300),
    old: 1,
    visits: 3,
    owner: "ada",
  };
  const state = new SessionState(golden);
  const [stamps, picture] = [
    golden.stamps as TrackedMap<string, unknown>,
    golden.picture as ReturnType<typeof bytes>,
  ];
  stamps.set("a", 1).set("b", list(["x"]));
  picture.fill(5, 256);
  const first = state.checkpoint();
  stamps.delete("a");
  stamps.set("c", { n: 2 });
  (stamps.get("b") as TrackedList<string>).push("y");
  picture.put(9, 9);
  delete golden.old;
  return mergeState(first, state.checkpoint());
}

Deno.test("golden session log: values that JSON does not keep have the bytes that the document gives", () => {
  const values: Record<string, unknown> = {
    "undefined": undefined,
    "-0": -0,
    "[NaN, 1n, -255n]": [NaN, 1n, -255n],
    "new Map([['k', new Date(5)]])": new Map([["k", new Date(5)]]),
    "new Uint8Array([1, 2, 3]).subarray(1)": new Uint8Array([1, 2, 3]).subarray(1),
    "(() => { const o = { a: 1 }; return [o, o]; })()": (() => {
      const o = { a: 1 };
      return [o, o];
    })(),
    "/x/g": /x/g,
    "[Object.assign(/a/gy, { lastIndex: 300 }), /a/g]": [Object.assign(/a/gy, { lastIndex: 300 }), /a/g],
    "new Set(['\\ud800'])": new Set(["\ud800"]),
    // deno-lint-ignore no-sparse-arrays
    "[, 2]": [, 2],
    "{ __proto__: null, a: 1 }": Object.assign(Object.create(null), { a: 1 }),
  };
  for (const { js, bytes } of vectors.contents) {
    assert.ok(js in values, js);
    assert.equal(hex(encodeContent(values[js])), bytes, js);
    assert.deepEqual(decodeContent(unhex(bytes)), values[js], js);
    const [first] = Array.isArray(values[js]) ? values[js] : [];
    if (first instanceof RegExp) assert.equal((decodeContent(unhex(bytes)) as RegExp[])[0]?.lastIndex, 300);
  }
});

Deno.test("golden session log: plain fields say what is fixed, and what a module holds", () => {
  const level = Object.freeze({ n: 2 });
  const fields = {
    fixed: Object.freeze({ a: Object.seal([7]) }),
    open: Object.preventExtensions([1]),
    level,
    again: level,
  };
  recognizeModules({
    nameOf: (object) => object === level ? "LEVELS[1]" : undefined,
    named: (name) => name === "LEVELS[1]" ? level : undefined,
  });
  try {
    assert.equal(hex(encodePlain(fields)), vectors.plainFields);
    const read = decodeContent(unhex(vectors.plainFields)) as typeof fields;
    assert.deepEqual(read, fields);
    assert.equal(read.level, level, "the module's own");
    assert.deepEqual(
      [read, read.fixed, read.fixed.a, read.open].map((each) => [
        Object.isExtensible(each),
        Object.isSealed(each),
        Object.isFrozen(each),
      ]),
      [[true, false, false], [false, true, true], [false, true, false], [false, false, false]],
    );
  } finally {
    recognizeModules(undefined);
  }
  const copy = decodeContent(unhex(vectors.plainFields)) as typeof fields;
  assert.deepEqual([copy.level, copy.level === level, copy.level === copy.again], [level, false, true]);
  assert.ok(Object.isFrozen(copy.level));
});

Deno.test("golden session log: a piece has the bytes that the document gives, in both forms", () => {
  for (const { piece, packed } of vectors.pieces) {
    const seen = piece.seen === null ? null : {
      ...piece.seen,
      token: { ...piece.seen.token, session: unhex(piece.seen.token.session) },
    };
    const { open, marks, writer } = piece;
    const head = { seen, open, marks, ...(writer === undefined ? {} : { writer }) },
      bytes = unhex(piece.bytes);
    assert.equal(hex(wrapPiece(head, bytes)), packed);
    const { bytes: read, ...rest } = openPiece(unhex(packed));
    assert.deepEqual([rest, hex(read)], [head, piece.bytes]);
  }
});
