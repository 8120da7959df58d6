/** Frames of both directions, for tests and fuzzing. */
import fc from "fast-check";
import type { ToHome, ToHost } from "../../../../functions/sessions/attach/mod.ts";
import { encodeSummary } from "../../../../functions/sessions/sealed/mod.ts";

/** With the prototype that objects have. */
const record = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(of, { noNullPrototype: true });

const uint = fc.oneof(fc.nat(300), fc.nat(Number.MAX_SAFE_INTEGER));
const positive = fc.oneof(
  fc.integer({ min: 1, max: 300 }),
  fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
);
const bytes = fc.uint8Array({ maxLength: 40 });
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const code = fc.integer({ min: 1000, max: 4999 });
const identity = record({ id: name, key: fc.uint8Array({ minLength: 16, maxLength: 64 }) });
const peer = fc.constantFrom("client" as const, "origin" as const);
const payload = fc.oneof<fc.Arbitrary<string | Uint8Array>[]>(text, bytes);
const data = { sequence: fc.nat(31), received: fc.nat(255), payload };
const bye = record({ kind: fc.constant("bye" as const), code, reason: text });
const ack = record({ kind: fc.constant("ack" as const), received: uint });
const hello = { kind: fc.constant("hello" as const), peer, instance: positive, attempt: positive };
const tag = fc.uint8Array({ minLength: 12, maxLength: 12 });
const summary = record({ promised: uint, tag: fc.option<Uint8Array>(tag) }).map(encodeSummary);
const log = fc.option<Uint8Array>(fc.oneof<fc.Arbitrary<Uint8Array>[]>(bytes, summary));

export const anyToHome: fc.Arbitrary<ToHome> = fc.oneof<fc.Arbitrary<ToHome>[]>(
  record({
    ...hello,
    identity: fc.constant(null),
    epoch: fc.constant(0),
    received: fc.constant(0),
    first: fc.constant(1),
    log,
  }),
  record({ ...hello, identity, epoch: uint, received: uint, first: positive, log }),
  record({ kind: fc.constant("message"), ...data }),
  ack,
  record({ kind: fc.constant("leave"), last: uint, code, reason: text }),
  record({ kind: fc.constant("ping"), number: uint }),
  record({
    ...{ kind: fc.constant("log"), epoch: positive },
    records: fc.option<readonly Uint8Array[]>(fc.array(bytes, { maxLength: 4 })),
  }),
  record({ kind: fc.constant("taken"), records: positive }),
);

export const anyToHost: fc.Arbitrary<ToHost> = fc.oneof<fc.Arbitrary<ToHost>[]>(
  record({ kind: fc.constant("welcome"), identity, epoch: uint, received: uint }),
  record({ kind: fc.constant("output"), ...data, increment: fc.option<Uint8Array>(bytes) }),
  ack,
  bye,
  record({ kind: fc.constant("pong"), number: uint }),
  record({
    kind: fc.constant("refused"),
    code: name,
    message: text,
    retry: fc.constantFrom("fix", "retry", "reset"),
  }),
  record({ kind: fc.constant("rejected"), sequence: positive, code: name, message: text }),
  record({ kind: fc.constant("moved"), site: fc.option<string>(name) }),
  record({ kind: fc.constant("dismissed"), sequence: positive, code, reason: text }),
  record({ kind: fc.constant("fence"), epoch: positive }),
  record({ kind: fc.constant("record"), record: bytes }),
);
