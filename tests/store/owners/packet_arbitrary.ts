/** Packets of all kinds, for tests and fuzzing. */
import fc from "fast-check";
import { F_MAX } from "../../../store/model/limits.ts";
import {
  type Entry,
  isTupleId,
  REMEMBER_UNTIL_S_MAX,
  type TuplePacket,
} from "../../../store/owners/packet.ts";

const uint = fc.nat(Number.MAX_SAFE_INTEGER);
const id = fc.string({ minLength: 1, maxLength: 30 }).filter(isTupleId);
const ids = fc.array(id, { maxLength: 3 });
const owners = fc.uniqueArray(fc.constantFrom("a", "edge-1", "cloud", "é"), { minLength: 1, maxLength: 4 });
const payload = fc.uint8Array({ maxLength: 20 });
const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({
    id,
    version: uint,
    owners,
    mark: fc.constant(null),
    isUnsure: fc.constant(false),
    goneUntilS: fc.nat(REMEMBER_UNTIL_S_MAX),
    content: fc.constant(null),
  }),
  fc.record({
    id,
    version: uint,
    owners,
    mark: fc.constant(null),
    isUnsure: fc.constant(true),
    goneUntilS: fc.constant(0),
    content: fc.constant(null),
  }),
  fc.record({
    id,
    version: uint,
    owners,
    mark: fc.record({ dueMs: uint, note: fc.string({ maxLength: 20, unit: "grapheme-ascii" }) }),
    isUnsure: fc.constant(false),
    goneUntilS: fc.constant(0),
    content: fc.option(
      fc.record({
        topic: fc.constantFrom("app/mail", "app/sms", "é"),
        f: fc.nat(F_MAX),
        rememberUntilS: fc.nat(REMEMBER_UNTIL_S_MAX),
        payload,
      }),
      { nil: null },
    ),
  }),
);

/** Any packet. */
export const anyPacket: fc.Arbitrary<TuplePacket> = fc.record({
  boot: uint,
  to: uint,
  seq: uint,
  greeting: uint,
  list: uint,
  part: uint,
  isListEnd: fc.boolean(),
  receipts: fc.array(fc.record({ seq: uint, full: fc.boolean() }), { maxLength: 3 }),
  missing: ids,
  entries: fc.array(entry, { maxLength: 4 }),
  forget: ids,
});
