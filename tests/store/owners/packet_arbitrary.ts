/** Packets of all kinds, for tests and fuzzing. */
import fc from "fast-check";
import { type Entry, isTupleId, type TuplePacket } from "../../../store/owners/packet.ts";

const uint = fc.nat(Number.MAX_SAFE_INTEGER);
const id = fc.string({ minLength: 1, maxLength: 30 }).filter(isTupleId);
const ids = fc.array(id, { maxLength: 3 });
const owners = fc.uniqueArray(fc.constantFrom("a", "edge-1", "cloud", "é"), { minLength: 1, maxLength: 4 });
const payload = fc.uint8Array({ maxLength: 20 });
const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({ id, version: uint, owners, gone: fc.constant(true), payload: fc.constant(null) }),
  fc.record({
    id,
    version: uint,
    owners,
    gone: fc.constant(false),
    payload: fc.option(payload, { nil: null }),
  }),
);

/** Any packet. */
export const anyPacket: fc.Arbitrary<TuplePacket> = fc.record({
  boot: uint,
  to: uint,
  seq: uint,
  greeting: uint,
  list: uint,
  isListEnd: fc.boolean(),
  receipts: fc.array(fc.record({ seq: uint, full: fc.boolean() }), { maxLength: 3 }),
  missing: ids,
  entries: fc.array(entry, { maxLength: 4 }),
  forget: ids,
});
