import { strict as assert } from "node:assert";
import fc from "fast-check";
import type { Base, LogPiece, LogState, SiteAsk } from "../../../../functions/sessions/log/asks.ts";
import { commonUpTo } from "../../../../functions/sessions/log/asks.ts";
import { STATE_PART_BYTES_MAX } from "../../../../functions/sessions/log/limits.ts";
import { birthId, birthOf } from "../../../../functions/sessions/log/name.ts";
import { decodeLogPacket, encodeLogPacket } from "../../../../functions/sessions/log/packet.ts";
import { CodecError } from "../../../../store/model/codec.ts";
import { anyPacket } from "./packet_arbitrary.ts";

Deno.test("packet of homes: what is encoded decodes to the same (packet.ts B2)", () => {
  fc.assert(fc.property(anyPacket, (packet) => {
    assert.deepEqual(decodeLogPacket(encodeLogPacket(packet)), structuredClone(packet));
  }));
});

const name = { app: "a", class: "C", id: "x" };
const piece: LogPiece = { epoch: 1, first: 1, count: 1, wakeAtMs: 0, bytes: new Uint8Array(1) };
const NONE = { count: 0, check: 0 };
const base: Base = {
  ...{ at: 1, epoch: 1, wakeAtMs: 0, version: "", bytes: new Uint8Array(), answers: new Uint8Array() },
  state: NONE,
};
const packetOf = (body: SiteAsk) =>
  encodeLogPacket({ boot: 1, to: 0, asks: [{ number: 1, body }], replies: [] });

Deno.test("packet of homes: names, owners, pieces and checkpoints beyond their limits are refused", () => {
  const of = { name, disk: 1, epoch: 1 };
  const rows: [SiteAsk, RegExp][] = [
    [{ kind: "look", name: { ...name, id: "" } }, /a bad name/],
    [{ kind: "look", name: { ...name, id: "é".repeat(101) } }, /a bad name/],
    [
      { kind: "births", owners: [{ site: "a", disk: 1 }, { site: "a", disk: 2 }] },
      /2 owners: expected up to 9, each site once/,
    ],
    [
      { kind: "births", owners: Array.from({ length: 10 }, (_, i) => ({ site: `s${i}`, disk: 1 })) },
      /10 owners/,
    ],
    [{ kind: "append", ...of, pieces: [{ ...piece, count: 0 }] }, /beyond its limits/],
    [{ kind: "append", ...of, pieces: [{ ...piece, first: 0 }] }, /beyond its limits/],
    [{ kind: "append", ...of, pieces: [piece, { ...piece, first: 3 }] }, /do not follow each other/],
    [
      { kind: "append", ...of, pieces: [{ ...piece, epoch: 2 }, { ...piece, first: 2 }] },
      /do not follow each other/,
    ],
    [
      {
        kind: "checkpoint",
        ...of,
        base: { ...base, at: 0 },
        kept: NONE,
        parts: [],
      },
      /a checkpoint of nothing/,
    ],
    [
      { kind: "checkpoint", ...of, base, kept: { count: 0, check: 1 }, parts: [] },
      /mark is beyond its limits/,
    ],
    [{ kind: "checkpoint", ...of, base, kept: { count: 5_000, check: 1 }, parts: [] }, /mark is beyond/],
    [
      { kind: "upload", ...of, at: 1, first: 0, parts: [new Uint8Array(STATE_PART_BYTES_MAX + 1)] },
      /a part of a state/,
    ],
  ];
  for (const [ask, says] of rows) {
    assert.throws(
      () => decodeLogPacket(packetOf(ask)),
      (error) => error instanceof CodecError && says.test(error.message),
    );
  }
});

Deno.test("packet of homes: an append of 100 bytes costs some 40 bytes more, name and all", () => {
  const ask: SiteAsk = {
    kind: "append",
    name: { app: "shop", class: "cart", id: "4711" },
    disk: 2 ** 39,
    epoch: 3,
    pieces: [{ epoch: 3, first: 1_000, count: 3, wakeAtMs: 0, bytes: new Uint8Array(100) }],
  };
  const bytes = packetOf(ask).length - packetOf({ ...ask, pieces: [] }).length;
  assert.ok(bytes - 100 <= 8, `${bytes}`);
  assert.ok(packetOf(ask).length < 145, `${packetOf(ask).length}`);
});

const state = (base: [number, number], ...segments: [number, number][]): LogState => ({
  base: { at: base[0], epoch: base[1], state: NONE },
  segments: segments.map(([epoch, upTo]) => ({ epoch, upTo })),
});

Deno.test("two logs are one up to the last entry with one number and one epoch", () => {
  const rows: [LogState, LogState, number | null][] = [
    [state([0, 0]), state([0, 0]), 0],
    [state([0, 0], [1, 5]), state([0, 0], [1, 7]), 5],
    [state([0, 0], [1, 5], [2, 6]), state([0, 0], [1, 7]), 5],
    [state([0, 0], [1, 5], [2, 6]), state([0, 0], [1, 5], [2, 9]), 6],
    [state([0, 0], [2, 3]), state([0, 0], [1, 3]), 0],
    [state([6, 2]), state([0, 0], [1, 5], [2, 9]), 6],
    [state([10, 2]), state([0, 0], [1, 7]), null],
    [state([4, 1], [1, 6]), state([5, 1], [1, 8]), 6],
    [state([4, 1], [1, 6], [3, 8]), state([5, 1], [2, 8]), 5],
  ];
  for (const [a, b, common] of rows) {
    assert.equal(commonUpTo(a, b), common);
    assert.equal(commonUpTo(b, a), common);
  }
});

Deno.test("an id of a birth says where it was, and no other text does (name.ts N1)", () => {
  const random = Uint8Array.from({ length: 16 }, (_, i) => i);
  const id = birthId({ site: "edge-1.eu", number: 37 }, random);
  assert.equal(id, "edge-1.eu.11.000102030405060708090a0b0c0d0e0f");
  assert.deepEqual(birthOf(id), { site: "edge-1.eu", number: 37 });
  for (
    const other of ["cart-7", "", ".1." + "0".repeat(32), "a.01." + "0".repeat(32), "a.0." + "0".repeat(32)]
  ) {
    assert.equal(birthOf(other), null, other);
  }
  assert.equal(birthOf(id.toUpperCase()), null);
});
