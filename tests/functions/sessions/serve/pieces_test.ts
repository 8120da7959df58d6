/** What a piece of a log says beside its entries. */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import {
  joinPieces,
  NO_HEAD,
  openOf,
  openPiece,
  type PieceHead,
  wrapPiece,
} from "../../../../functions/sessions/serve/pieces.ts";
import { CodecError } from "../../../../store/model/codec.ts";
import type { TokenState } from "../../../../store/api/api.ts";
import { pathNaming } from "../../../../store/api/token_path.ts";

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true });
const number = fc.maxSafeNat();
const anyToken: fc.Arbitrary<TokenState> = record({
  session: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  ...{ sequence: number, replica: number, clock: number, open: fc.boolean() },
  path: fc.array(record({ position: number, isPending: fc.boolean() }), { maxLength: 12 }),
}).map(({ path, ...others }) => ({ ...others, ...pathNaming(path) }));
const seen = record({ token: anyToken, applied: number, isWhole: fc.constant(true) });
const head: fc.Arbitrary<PieceHead> = record({
  seen: fc.option(seen, { nil: null }),
  open: fc.oneof(fc.constant(0), number),
  marks: fc.boolean(),
}).chain((head) =>
  fc.option(number, { nil: undefined }).map((writer) => writer === undefined ? head : { ...head, writer })
);
const bytes = fc.uint8Array({ maxLength: 30 });

Deno.test("a piece says what it was written with, and leaves its bytes as they are", () => {
  fc.assert(fc.property(head, bytes, (head, bytes) => {
    const piece = wrapPiece(head, bytes);
    assert.deepEqual(openPiece(piece), { ...head, bytes });
    assert.equal(openOf(piece), head.open);
  }));
});

Deno.test("pieces of a log join to their bytes, what was seen last, and what the last leaves open (P2, P3)", () => {
  const all = fc.array(fc.tuple(head, bytes), { maxLength: 8 });
  fc.assert(fc.property(fc.option(head, { nil: null }), all, (before, all) => {
    const joined = joinPieces(before, all.map(([head, bytes]) => ({ bytes: wrapPiece(head, bytes) })));
    assert.deepEqual(joined.bytes, Uint8Array.from(all.flatMap(([, bytes]) => [...bytes])));
    const [last = before ?? NO_HEAD] = all.at(-1) ?? [];
    assert.deepEqual([joined.open, joined.marks], [last.open, last.marks]);
    const said = all.findLast(([{ seen }]) => seen !== null)?.[0] ?? before;
    assert.deepEqual(joined.seen, said?.seen ?? null);
  }));
});

Deno.test("pieces of the form before are read: their tokens say less, and they leave nothing open (P4)", () => {
  fc.assert(fc.property(anyToken, bytes, (token, bytes) => {
    const old = { token, applied: 0, isWhole: false };
    const piece = wrapPiece({ ...NO_HEAD, seen: old }, bytes);
    assert.equal(piece[0], 1, "as it was written then");
    assert.deepEqual(openPiece(piece), { ...NO_HEAD, seen: old, bytes });
    // One of the new form behind it says all that was seen.
    const whole = { ...old, applied: 7, isWhole: true };
    const joined = joinPieces(null, [{ bytes: piece }, {
      bytes: wrapPiece({ ...NO_HEAD, seen: whole }, bytes),
    }]);
    assert.deepEqual(joined.seen, whole);
  }));
  assert.deepEqual(openPiece(new Uint8Array([0, 1, 9])), { ...NO_HEAD, bytes: new Uint8Array([9]) });
});

Deno.test("what is no piece is refused, and nobody waits for what it may leave open", () => {
  const broken = [[3], [3, 0], [3, 8], [3, 1], [3, 1, 0], [3, 2], [3, 2, 0], [4]];
  for (const bytes of broken) {
    assert.throws(() => openPiece(new Uint8Array(bytes)), CodecError, `${bytes}`);
    assert.equal(openOf(new Uint8Array(bytes)), 0);
  }
});
