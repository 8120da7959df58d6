/** Messages of every kind, for tests and fuzzing. */
import fc from "fast-check";
import { DIGEST_BYTES } from "../../../store/model/digest.ts";
import { byteString, type Key } from "../../../store/model/key.ts";
import { contribute, isMerge } from "../../../store/model/merge.ts";
import { VALUE_TAG } from "../../../store/model/value.ts";
import type { Claim, Message, WireRow } from "../../../store/wire/message.ts";
import { WARD_REFUSALS } from "../../../store/wire/ward_message.ts";

const uint = fc.nat(Number.MAX_SAFE_INTEGER);
const key = fc.uint8Array({ maxLength: 12 }).map((bytes) => byteString(bytes) as Key);
const range = fc.record({ start: key, end: key });
/** What one writer has added to a row that was not there. */
const merged = fc.record({ clock: uint, replica: fc.nat(0xffffff) })
  .map((by) => contribute(undefined, "sum", Uint8Array.of(VALUE_TAG.u64, 1, 0, 0, 0, 0, 0, 0, 0), by));
const row: fc.Arbitrary<WireRow> = fc.record({
  key,
  clock: uint,
  replica: fc.nat(0xffffff),
  known: fc.nat(5),
  expiresAtMs: uint,
  value: fc.option(fc.oneof(fc.uint8Array({ maxLength: 20 }).filter((bytes) => !isMerge(bytes)), merged), {
    nil: null,
  }),
});
const rows = fc.array(row, { maxLength: 4 });
const uints = fc.array(uint, { maxLength: 4 });

const claim: fc.Arbitrary<Claim> = fc.record({
  path: fc.array(fc.string(), { minLength: 2, maxLength: 4 }),
  parent: uint,
  from: uint,
}).map((claim) => ({ ...claim, site: claim.path.at(-1) ?? "" }));

const wardRow = fc.tuple(row, uint).map(([each, position]) => ({ ...each, position }));
const wardRows = fc.array(wardRow, { maxLength: 4 });
const wardTalk = [
  fc.record({
    kind: fc.constant("ward" as const),
    replica: uint,
    config: uint,
    settled: fc.boolean(),
    after: uint,
    head: uint,
    clock: uint,
    down: uints,
    reach: uints,
    part: uint,
    more: fc.boolean(),
    rows: wardRows,
  }),
  fc.record({
    kind: fc.constant("warded" as const),
    replica: uint,
    config: uint,
    settled: fc.boolean(),
    position: uint,
    refused: fc.constantFrom(...WARD_REFUSALS),
  }),
  fc.record({ kind: fc.constant("release" as const), replica: uint, config: uint }),
  fc.record({
    kind: fc.constant("standIn" as const),
    id: uint,
    replica: uint,
    depth: uint,
    position: uint,
  }),
  fc.record({
    kind: fc.constant("stoodIn" as const),
    id: uint,
    outcome: fc.constantFrom("rows" as const, "behind" as const, "too_large" as const),
    position: uint,
    config: uint,
    clock: uint,
    down: uints,
    rows: wardRows,
  }),
  fc.record({
    kind: fc.constant("newest" as const),
    id: uint,
    replica: uint,
    isAnswer: fc.boolean(),
    config: uint,
  }),
];
const digest = fc.uint8Array({ minLength: DIGEST_BYTES, maxLength: DIGEST_BYTES });
const compareTalk = [
  fc.record({ kind: fc.constant("compare" as const), id: uint, range, digest, trace: fc.string() }),
  fc.record({
    kind: fc.constant("compared" as const),
    id: uint,
    range,
    parts: fc.array(fc.record({ end: key, digest }), { maxLength: 4 }),
  }),
];
const ids = fc.array(fc.string(), { maxLength: 3 });
const moved = fc.record({ floor: uint, from: fc.string(), siblings: ids, lost: ids });

/** Any message. */
export const anyMessage: fc.Arbitrary<Message> = fc.oneof(
  fc.record({
    kind: fc.constant("hello" as const),
    attempt: uint,
    replica: uint,
    parentReplica: uint,
    cursor: uint,
    clock: uint,
    tier: fc.string(),
    url: fc.string(),
    linkAddress: fc.string(),
    coverage: fc.array(range, { maxLength: 3 }),
    moved,
  }, {
    requiredKeys: [
      "kind",
      "attempt",
      "replica",
      "parentReplica",
      "cursor",
      "clock",
      "tier",
      "url",
      "linkAddress",
      "coverage",
    ],
  }),
  fc.record({
    kind: fc.constant("welcome" as const),
    attempt: uint,
    replica: uint,
    parentReplica: uint,
    clock: uint,
    pushed: uint,
    path: fc.array(fc.string(), { maxLength: 3 }),
    refused: fc.array(range, { maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant("push" as const),
    upTo: uint,
    stable: uint,
    floor: uint,
    clock: uint,
    rows,
    more: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("feed" as const),
    upTo: uint,
    clock: uint,
    down: uints,
    stable: uints,
    reach: fc.array(fc.tuple(uint, uint), { maxLength: 3 }),
    acked: uint,
    watermark: uint,
    isFull: fc.boolean(),
    rows,
    more: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("fetch" as const),
    id: uint,
    range,
    limit: uint,
    reverse: fc.boolean(),
    trace: fc.oneof(fc.constant(""), fc.string()),
  }),
  fc.record({
    kind: fc.constant("fetched" as const),
    id: uint,
    range,
    rows,
    more: fc.boolean(),
    refused: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("drop" as const), range }),
  fc.record({ kind: fc.constantFrom("eager" as const, "again" as const) }),
  fc.record({ kind: fc.constant("wall" as const), ms: uint }),
  fc.record({
    kind: fc.constant("number" as const),
    id: uint,
    replica: uint,
    claim: fc.oneof(claim, fc.constant(null)),
  }),
  fc.record({
    kind: fc.constant("ask" as const),
    id: uint,
    to: fc.string(),
    replica: uint,
    depth: uint,
    need: uint,
    rows,
    trace: fc.oneof(fc.constant(""), fc.string()),
  }),
  fc.record({
    kind: fc.constant("carry" as const),
    id: uint,
    outcome: fc.constantFrom("rows" as const, "refused" as const),
    need: uint,
    clock: uint,
    rows,
  }),
  fc.record({ kind: fc.constant("warm" as const), session: fc.uint8Array({ maxLength: 16 }) }),
  fc.record({ kind: fc.constant("footprint" as const), ranges: fc.array(range, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant("beat" as const), stamp: uint, isAnswer: fc.boolean() }),
  fc.record({
    kind: fc.constant("tuples" as const),
    use: fc.string(),
    packet: fc.uint8Array({ maxLength: 20 }),
  }),
  ...wardTalk,
  ...compareTalk,
  fc.record({ kind: fc.constant("gather" as const), id: uint, replica: uint }),
  fc.record({
    kind: fc.constant("gathered" as const),
    id: uint,
    need: uint,
    clock: uint,
    parent: fc.string(),
    parentReplica: uint,
    rows,
    more: fc.boolean(),
  }),
);
