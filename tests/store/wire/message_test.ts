import assert from "node:assert/strict";
import fc from "fast-check";
import { CodecError, Writer } from "../../../store/model/codec.ts";
import type { Key } from "../../../store/model/key.ts";
import { COMPARE_PARTS_MAX } from "../../../store/model/limits.ts";
import { anyMessage } from "./message_arbitrary.ts";
import {
  chunks,
  decodeMessage,
  encodeMessage,
  type Message,
  type WireRow,
} from "../../../store/wire/message.ts";

/** All kinds; a new one that is not here does not compile, and one that is here has to be drawn, and so is fuzzed. */
const KINDS: Readonly<Record<Message["kind"], true>> = {
  ...{ hello: true, welcome: true, push: true, feed: true, fetch: true, fetched: true, drop: true },
  ...{ eager: true, again: true, number: true, ask: true, carry: true, warm: true, footprint: true },
  ...{
    beat: true,
    tuples: true,
    ward: true,
    warded: true,
    release: true,
    standIn: true,
    stoodIn: true,
    newest: true,
    gather: true,
    gathered: true,
    wall: true,
    compare: true,
    compared: true,
  },
};

Deno.test("message: every kind is among those that are drawn", () => {
  const drawn = new Set(fc.sample(anyMessage, { numRuns: 2_000, seed: 1 }).map(({ kind }) => kind));
  assert.deepEqual([...drawn].sort(), Object.keys(KINDS).sort());
});

Deno.test("message: what is encoded decodes to the same", () => {
  fc.assert(
    fc.property(anyMessage, (m) => {
      // Cloned, since fast-check's records have no prototype.
      assert.deepEqual(decodeMessage(encodeMessage(m)), structuredClone(m));
    }),
    {
      numRuns: 500,
    },
  );
});

Deno.test("message: a mutated one is refused, or is another message in its one form", () => {
  const mutations = Number(Deno.env.get("SOJOURN_FUZZ") ?? 30_000) / 30;
  const edit = fc.tuple(fc.nat(), fc.nat(255), fc.constantFrom("set", "cut", "insert", "append"));
  fc.assert(
    fc.property(anyMessage, fc.array(edit, { minLength: 30, maxLength: 30 }), (m, edits) => {
      const bytes = encodeMessage(m);
      for (const [at, value, how] of edits) {
        const mutated = mutate(bytes, at % bytes.length, value, how);
        let decoded: Message;
        try {
          decoded = decodeMessage(mutated);
        } catch (error) {
          assert.ok(error instanceof CodecError, `an unknown failure: ${error}`);
          continue;
        }
        assert.deepEqual(encodeMessage(decoded), mutated);
      }
    }),
    { numRuns: Math.ceil(mutations) },
  );
});

function mutate(bytes: Uint8Array, at: number, value: number, how: string): Uint8Array<ArrayBuffer> {
  if (how === "cut") return bytes.slice(0, at);
  if (how === "append") return new Uint8Array([...bytes, value]);
  if (how === "insert") return new Uint8Array([...bytes.slice(0, at), value, ...bytes.slice(at)]);
  const out = bytes.slice();
  out[at] = value;
  return out as Uint8Array<ArrayBuffer>;
}

Deno.test("message: a batch splits into chunks of which only the last is not followed by more", () => {
  const big = (n: number): WireRow => ({
    key: `${n}` as Key,
    clock: n,
    replica: 1,
    known: 0,
    expiresAtMs: 0,
    value: new Uint8Array(100),
  });
  const parts = [...chunks([1, 2, 3, 4, 5].map(big), 260)];
  assert.deepEqual(parts.map((p) => p.rows.map((r) => r.clock)), [[1, 2], [3, 4], [5]]);
  assert.deepEqual(parts.map((p) => p.more), [true, true, false]);
  assert.deepEqual([...chunks([], 10)], [{ rows: [], more: false }]);
});

Deno.test("message: a number that no reader takes is not written", () => {
  for (const value of [Infinity, NaN, -1, 1.5, Number.MAX_SAFE_INTEGER + 1]) {
    assert.throws(() => new Writer().uint(value), CodecError, String(value));
  }
});

Deno.test("message: ends of parts that share a long beginning take no more memory than so many parts may", () => {
  const start = "k".repeat(100_000) as Key, digest = new Uint8Array(16);
  const parts = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ end: start + String.fromCharCode(i + 1) as Key, digest }));
  const answer = (count: number): Message => ({
    ...{ kind: "compared", id: 1, range: { start, end: "l" as Key } },
    parts: parts(count),
  });
  assert.deepEqual(decodeMessage(encodeMessage(answer(COMPARE_PARTS_MAX))), answer(COMPARE_PARTS_MAX));
  assert.throws(() => decodeMessage(encodeMessage(answer(100))), CodecError);
});
