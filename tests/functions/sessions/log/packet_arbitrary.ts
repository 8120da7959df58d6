/** Packets of homes of all kinds, for tests and fuzzing. */
import fc from "fast-check";
import type { Base, LogPiece, LogState, Reply, SiteAsk } from "../../../../functions/sessions/log/asks.ts";
import { OUTCOMES, REFUSALS } from "../../../../functions/sessions/log/asks.ts";
import { isName } from "../../../../functions/sessions/log/name.ts";
import type { LogPacket } from "../../../../functions/sessions/log/packet.ts";

const uint = fc.nat(Number.MAX_SAFE_INTEGER);
const small = fc.nat(10_000);
const site = fc.constantFrom("a", "edge-1", "cloud", "é", "");
const part = fc.string({ minLength: 1, maxLength: 12 });
const name = fc.record({ app: part, class: part, id: part }).filter(isName);
const owners = fc.uniqueArray(fc.record({ site, disk: uint }), {
  maxLength: 4,
  selector: (owner) => owner.site,
});
const version = fc.string({ maxLength: 8 }).filter((text) => text.isWellFormed());
const bytes = fc.uint8Array({ maxLength: 12 });
const seed = fc.uint8Array({ minLength: 32, maxLength: 32 });
const check = fc.nat(2 ** 32 - 1);
const mark = fc.oneof(
  fc.constant({ count: 0, check: 0 }),
  fc.record({ count: fc.integer({ min: 1, max: 4_096 }), check }),
);
const parts = fc.array(bytes, { maxLength: 3 });
const base: fc.Arbitrary<Base> = fc.record({
  at: fc.integer({ min: 1, max: 10_000 }),
  epoch: small,
  wakeAtMs: uint,
  version,
  bytes,
  answers: bytes,
  state: mark,
});
const pieces: fc.Arbitrary<LogPiece[]> = fc.tuple(
  fc.integer({ min: 1, max: 1_000 }),
  fc.array(fc.record({ grown: fc.nat(2), count: fc.integer({ min: 1, max: 5 }), wakeAtMs: uint, bytes }), {
    maxLength: 4,
  }),
).map(([first, list]) => {
  let next = first, epoch = 1;
  return list.map(({ grown, count, wakeAtMs, bytes }) => {
    const piece = { epoch: epoch += grown, first: next, count, wakeAtMs, bytes };
    next += count;
    return piece;
  });
});
const log: fc.Arbitrary<LogState> = fc.tuple(
  small,
  small,
  mark,
  fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 9 })), { maxLength: 4 }),
).map(([at, epoch, state, list]) => {
  let upTo = at, written = epoch;
  const segments = list.map(([grown, count]) => ({ epoch: written += grown, upTo: upTo += count }));
  return { base: { at, epoch, state }, segments };
});
const row = fc.record({
  site,
  epoch: uint,
  config: uint,
  owners,
  version,
  ended: fc.boolean(),
  movesTo: site,
});

const of = { name, disk: uint, epoch: uint };
const kind = <const T extends string>(value: T) => fc.constant(value);
/** Of the first form of packets. */
const anyFirstAsk: fc.Arbitrary<SiteAsk> = fc.oneof(
  fc.record({ kind: kind("greet") }),
  fc.record({ kind: kind("promise"), ...of }),
  fc.record({
    kind: kind("install"),
    ...of,
    turn: uint,
    seed,
    version,
    base: fc.option(base, { nil: null }),
    parts,
  }),
  fc.record({ kind: kind("align"), ...of, turn: uint, keep: uint }),
  fc.record({ kind: kind("append"), ...of, pieces }),
  fc.record({ kind: kind("fetch"), ...of, after: uint, whole: fc.boolean() }),
  fc.record({ kind: kind("checkpoint"), ...of, base, kept: mark, parts }),
  fc.record({ kind: kind("upload"), ...of, at: uint, first: uint, parts }),
  fc.record({ kind: kind("parts"), ...of, at: uint, first: uint }),
  fc.record({ kind: kind("forget"), ...of, turn: uint }),
  fc.record({ kind: kind("acquire"), name, seen: uint, grant: uint, version }),
  fc.record({ kind: kind("configure"), name, epoch: uint, config: uint, owners }),
  fc.record({ kind: kind("yield"), name, epoch: uint, to: site }),
  fc.record({ kind: kind("end"), name, epoch: uint }),
  fc.record({ kind: kind("look"), name }),
  fc.record({ kind: kind("invite"), name }),
  fc.record({ kind: kind("births"), owners }),
);
export const anyAsk: fc.Arbitrary<SiteAsk> = fc.oneof(
  anyFirstAsk,
  fc.record({ kind: kind("recorded"), ...of, config: uint, owners }),
  fc.record({ kind: kind("witness") }),
  fc.record({ kind: kind("recall"), name }),
  fc.record({ kind: kind("names"), after: fc.option(name, { nil: null }) }),
);
const anyFirstReply: fc.Arbitrary<Reply> = fc.oneof(
  fc.record({ kind: kind("held"), through: uint }),
  fc.record({
    kind: kind("promised"),
    disk: uint,
    aligned: fc.boolean(),
    log: fc.option(log, { nil: null }),
  }),
  fc.record({
    kind: kind("copy"),
    seed,
    version,
    base: fc.option(base, { nil: null }),
    parts,
    pieces,
    more: fc.boolean(),
  }),
  fc.record({ kind: kind("refused"), why: fc.constantFrom(...REFUSALS), epoch: uint, last: uint }),
  fc.record({
    kind: kind("row"),
    outcome: fc.constantFrom(...OUTCOMES),
    row: fc.option(row, { nil: null }),
  }),
  fc.record({ kind: kind("births"), number: uint }),
  fc.record({ kind: kind("parts"), parts }),
  fc.record({ kind: kind("nobody") }),
  fc.record({ kind: kind("full"), max: uint }),
);

export const anyReply: fc.Arbitrary<Reply> = fc.oneof(
  anyFirstReply,
  fc.record({ kind: kind("witness"), disk: uint, position: uint, jumps: fc.array(uint, { maxLength: 3 }) }),
  fc.record({
    kind: kind("recalled"),
    disk: uint,
    log: fc.option(fc.record({ promised: uint, by: site, config: uint, owners, version }), { nil: null }),
    home: fc.option(fc.record({ epoch: uint, config: uint, owners, isChanging: fc.boolean() }), {
      nil: null,
    }),
    granted: uint,
    ended: uint,
  }),
  fc.record({ kind: kind("names"), names: fc.array(name, { maxLength: 3 }), more: fc.boolean() }),
  fc.record({ kind: kind("waits"), sites: fc.array(site, { maxLength: 3 }) }),
);

const boot = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const numbered = <T>(body: fc.Arbitrary<T>) => fc.array(fc.record({ number: uint, body }), { maxLength: 3 });

/** Any packet, of either form. */
export const anyPacket: fc.Arbitrary<LogPacket> = fc.oneof(
  fc.record({ boot, to: uint, asks: numbered(anyFirstAsk), replies: numbered(anyFirstReply) }),
  fc.record({ witness: uint, boot, to: uint, asks: numbered(anyAsk), replies: numbered(anyReply) }),
);
