/** Every frame that an isolate can send, as a list of fields, so that a forger can change each of them. */
import { encodeCallToSession } from "../../../functions/sessions/turn/call_bytes.ts";
import { ISOLATE_FRAME } from "../../../runtime/isolate/frames.ts";
import { OPERATION } from "../../../runtime/isolate/store_frames.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { VALUE_TAG } from "../../../store/model/value.ts";
import { packKey } from "../../../store/model/key.ts";

/** A field: how it is written, and what it says. `rest`: bytes without a length. */
export type Field =
  | readonly [kind: "u8" | "u16" | "u32" | "f64", value: number]
  | readonly [kind: "text" | "bytes" | "rest", value: string | Uint8Array];

export interface Form {
  readonly name: string;
  readonly type: number;
  /** Whose channel it names. */
  readonly of: "none" | "request" | "fetch" | "session";
  readonly fields: readonly Field[];
}

const utf8 = new TextEncoder();
/** A byte string, as keys are. */
export const keyOf = (...parts: string[]): Uint8Array =>
  Uint8Array.from(packKey(parts), (character) => character.charCodeAt(0));
const ROW = Uint8Array.from([1, 0x61]);
const ONE = Uint8Array.of(VALUE_TAG.number, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f);
const CALL = encodeCallToSession({ target: { class: "cart", id: "b" }, chain: [], call: ROW });
const key = ["bytes", keyOf("kv", "x")] as const;
const error: Field[] = [["text", "app_error"], ["text", "it failed"], ["text", "null"]];
const effectOf = (number: number): Field[] => [
  ...[["u32", 1], ["f64", number], ["f64", 7], ["u32", 1], ["f64", 1_000]] as Field[],
  ...[["u32", 3], ["u8", 0], key, ["bytes", ROW], ["f64", NaN]] as Field[],
  ...[["u8", 1], ["bytes", keyOf("kv", "gone")], ["u8", 2], ["bytes", keyOf("kv", "sum")], [
    "bytes",
    ONE,
  ]] as Field[],
];
const lists = (effect: number): Field[] => [
  ...[["u32", 1], ["text", "r1"], ["f64", 1], ["bytes", ROW]] as Field[],
  ...effectOf(effect),
  ...[["u32", 1], ["text", "noon"], ["f64", 8e12]] as Field[],
  ...[["u32", 1], ["f64", 1], ["u8", 4], ["f64", 1], ["bytes", CALL]] as Field[],
];
const store = (name: string, fields: Field[]): Form => ({
  ...{ name, type: ISOLATE_FRAME.storeCall, of: "request" },
  fields: [["u32", 5], ...fields],
});

/** At least one of each type. */
export const FORMS: readonly Form[] = [
  { name: "ready", type: ISOLATE_FRAME.ready, of: "none", fields: [] },
  { name: "pong", type: ISOLATE_FRAME.pong, of: "none", fields: [] },
  { name: "loaded", type: ISOLATE_FRAME.loaded, of: "none", fields: [["text", '{"a":[1]}']] },
  { name: "load failed", type: ISOLATE_FRAME.loadFailed, of: "none", fields: [...error, ["text", "at x"]] },
  {
    ...{ name: "response", type: ISOLATE_FRAME.response, of: "request" },
    fields: [["u16", 200], ["u8", 1], ["text", "OK\0content-type\0text/plain"], ["rest", "body"]],
  },
  {
    ...{ name: "streamed response", type: ISOLATE_FRAME.response, of: "request" },
    fields: [["u16", 200], ["u8", 2], ["text", "\0x-a\0b"]],
  },
  { name: "failed", type: ISOLATE_FRAME.failed, of: "request", fields: [...error, ["text", "at x"]] },
  { name: "settled", type: ISOLATE_FRAME.settled, of: "request", fields: [] },
  store("get", [["u8", OPERATION.get], ["u8", 1], ["u32", 1], key]),
  store("list", [["u8", OPERATION.list], ["u8", 1], ["u8", 0], ["u32", 10], key, [
    "bytes",
    keyOf("kv", "y"),
  ]]),
  store("commit", [
    ...[["u8", OPERATION.commit], ["u32", 1], key, ["text", ""], ["u32", 2]] as Field[],
    ...[["u8", 0], key, ["bytes", ROW], ["f64", 1_000], ["u8", 2], key, ["bytes", ONE]] as Field[],
  ]),
  store("watch", [["u8", OPERATION.watch], ["u32", 1], key, ["bytes", keyOf("kv", "y")]]),
  { name: "store stop", type: ISOLATE_FRAME.storeStop, of: "request", fields: [["u32", 5]] },
  { name: "log", type: ISOLATE_FRAME.log, of: "request", fields: [["text", "info"], ["text", "line"]] },
  {
    ...{ name: "fetch start", type: ISOLATE_FRAME.fetchStart, of: "fetch" },
    fields: [["u32", 1], ["u8", 2], ["text", "follow\0GET\0http://a.example/\0x-a\0b"]],
  },
  { name: "fetch abort", type: ISOLATE_FRAME.fetchAbort, of: "fetch", fields: [] },
  { name: "upgrade", type: ISOLATE_FRAME.upgrade, of: "request", fields: [["text", "chat"]] },
  { name: "no retry", type: ISOLATE_FRAME.noRetry, of: "request", fields: [] },
  { name: "span", type: ISOLATE_FRAME.span, of: "request", fields: [["text", '{"name":"x"}']] },
  {
    name: "session opened",
    type: ISOLATE_FRAME.sessionOpened,
    of: "session",
    fields: [
      ...[["f64", 0], ["u8", 1], ["u32", 1], ["u8", 0], ["text", "p"], ["f64", 0], ["f64", 0], [
        "u8",
        0,
      ]] as Field[],
      ...lists(1),
      ...[["u8", 0], ["text", ""]] as Field[],
    ],
  },
  {
    name: "session commit",
    type: ISOLATE_FRAME.sessionCommit,
    of: "session",
    fields: [
      ...[["f64", 1], ["u32", 1], ["f64", 0], ["u8", 11], ["u8", 1], ["u8", 0], ["text", "r1"]] as Field[],
      ...[["u32", 0], ["text", "app_error"], ["text", "no"], ["bytes", ROW]] as Field[],
      ...lists(2),
    ],
  },
  {
    ...{ name: "session call", type: ISOLATE_FRAME.sessionCall, of: "session" },
    fields: [["f64", 1], ["u8", 0], ["f64", NaN], ["bytes", ROW]],
  },
  { name: "session dropped", type: ISOLATE_FRAME.sessionDropped, of: "session", fields: [["f64", 1]] },
  {
    ...{ name: "session state", type: ISOLATE_FRAME.sessionState, of: "session" },
    fields: [["u8", 1], ["u32", 2], ["rest", ROW]],
  },
  {
    ...{ name: "session checkpoint", type: ISOLATE_FRAME.sessionCheckpoint, of: "session" },
    fields: [["f64", 0], ["f64", NaN], ["rest", ROW]],
  },
  {
    ...{ name: "session parked", type: ISOLATE_FRAME.sessionParked, of: "session" },
    fields: [["u8", 0], ["text", "it differs"], ["text", '{"entry":{"a":1}}']],
  },
  { name: "session closed", type: ISOLATE_FRAME.sessionClosed, of: "session", fields: [] },
  {
    ...{ name: "stateful call", type: ISOLATE_FRAME.statefulCall, of: "request" },
    fields: [["u32", 6], ["text", "cart"], ["text", "a"], ["rest", ROW]],
  },
  {
    ...{ name: "queue send", type: ISOLATE_FRAME.queueSend, of: "request" },
    fields: [
      ...[["u32", 7], ["text", "jobs"], ["u32", 2], ["text", "a"], ["f64", 10], ["f64", 1_000], [
        "bytes",
        ROW,
      ]] as Field[],
      ...[["text", ""], ["f64", NaN], ["f64", NaN], ["bytes", ONE]] as Field[],
    ],
  },
  {
    ...{ name: "queue said", type: ISOLATE_FRAME.queueSaid, of: "request" },
    fields: [["u32", 1], ["u8", 1], ["f64", 100]],
  },
  { name: "attach", type: ISOLATE_FRAME.attach, of: "request", fields: [["text", "room"], ["text", "a"]] },
  { name: "data", type: ISOLATE_FRAME.data, of: "request", fields: [["rest", "chunk"]] },
  { name: "data of a fetch", type: ISOLATE_FRAME.data, of: "fetch", fields: [["rest", "chunk"]] },
  { name: "end", type: ISOLATE_FRAME.end, of: "request", fields: [] },
  { name: "abort", type: ISOLATE_FRAME.abort, of: "request", fields: [["text", "why"]] },
  { name: "credit", type: ISOLATE_FRAME.credit, of: "request", fields: [["u32", 65_536]] },
  { name: "credit of a fetch", type: ISOLATE_FRAME.credit, of: "fetch", fields: [["u32", 65_536]] },
  { name: "stop", type: ISOLATE_FRAME.stop, of: "request", fields: [["text", "why"]] },
  { name: "socket text", type: ISOLATE_FRAME.socketText, of: "request", fields: [["text", "hello"]] },
  { name: "socket bytes", type: ISOLATE_FRAME.socketBytes, of: "request", fields: [["rest", "hello"]] },
  {
    name: "socket close",
    type: ISOLATE_FRAME.socketClose,
    of: "request",
    fields: [["u16", 1000], ["text", "bye"]],
  },
];

/** What the site sends, and no isolate; `started` is none any more (process.ts, P3). */
export const NOT_OF_ISOLATES: readonly (keyof typeof ISOLATE_FRAME)[] = [
  ...["load", "request", "cancel", "storeReply", "ping", "fetchHead", "secrets", "scheduled"] as const,
  ...["sessionOpen", "sessionEvent", "sessionAcknowledged", "sessionCheckpointNow", "sessionClose"] as const,
  ...[
    "sessionFollow",
    "sessionPiece",
    "sessionPromote",
    "rehearse",
    "statefulReply",
    "started",
    "socketTaken",
    "queueBatch",
    "queueReply",
  ] as const,
];

const deep = (open: string, close: string) => open.repeat(6_000) + "0" + close.repeat(6_000);
const TEXTS: readonly (string | Uint8Array)[] = [
  ...["", "\0", "a\nb", "\r\n\r\n", "é", "€", "__proto__", "a b", "x".repeat(10_000), "null", "[]", "1", "{"],
  ...[deep("[", "]"), deep('{"a":', "}"), `{"a":${deep("[", "]")}}`, `"${"[".repeat(100)}"`],
  ...[new Uint8Array([0xff, 0xfe, 0x80]), new Uint8Array([0xed, 0xa0, 0x80])],
];
const BYTES: readonly Uint8Array[] = [
  ...[[], [0], [1], [2], [3], [4], [5], [6], [255], [2, 0x61], [1, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]]
    .map((bytes) => Uint8Array.from(bytes)),
  ...[[VALUE_TAG.merge], [VALUE_TAG.merge, 9], [VALUE_TAG.merge, 0, 1, 1, 0, 0], [VALUE_TAG.number, 1]]
    .map((bytes) => Uint8Array.from(bytes)),
  ...[keyOf("root", "x"), keyOf("a"), new Uint8Array(5_000).fill(2), new Uint8Array(300_000)],
];
/** A time that the cluster's clock could be dragged to: the store takes what is a minute ahead. */
const SOON = (Date.now() + 55_000 - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS;
const NUMBERS = {
  u8: [0, 1, 2, 3, 4, 5, 9, 13, 14, 127, 128, 129, 255],
  u16: [0, 1, 101, 103, 199, 204, 304, 599, 600, 1000, 1005, 1006, 1015, 4999, 5000, 65_535],
  u32: [0, 1, 2, 64, 65_537, 262_144, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1],
  f64: [
    NaN,
    -1,
    -0,
    0,
    0.5,
    1,
    2,
    Infinity,
    -Infinity,
    2 ** 52,
    2 ** 53 - 1,
    2 ** 53,
    8.64e15 + 1,
    1e308,
    1e15,
    SOON,
  ],
} as const;

/** What a field can be forged into. */
export function forgeries([kind, value]: Field): readonly Field[] {
  if (kind === "text") return TEXTS.map((text) => [kind, text] as const);
  if (kind === "bytes" || kind === "rest") return BYTES.map((bytes) => [kind, bytes] as const);
  return NUMBERS[kind].filter((number) => !Object.is(number, value)).map((number) => [kind, number] as const);
}

/** A frame on the wire. */
export function encode(type: number, id: number, fields: readonly Field[]): Uint8Array {
  const parts = fields.map(bytesOf);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const frame = new Uint8Array(9 + length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, 5 + length, true);
  view.setUint8(4, type);
  view.setUint32(5, id, true);
  let at = 9;
  for (const part of parts) {
    frame.set(part, at);
    at += part.length;
  }
  return frame;
}

function bytesOf([kind, value]: Field): Uint8Array {
  const bytes = new Uint8Array(8), view = new DataView(bytes.buffer);
  switch (kind) {
    case "u8":
      view.setUint8(0, value);
      return bytes.subarray(0, 1);
    case "u16":
      view.setUint16(0, value, true);
      return bytes.subarray(0, 2);
    case "u32":
      view.setUint32(0, value, true);
      return bytes.subarray(0, 4);
    case "f64":
      view.setFloat64(0, value, true);
      return bytes;
    default: {
      const raw = typeof value === "string" ? utf8.encode(value) : value;
      if (kind === "rest") return raw;
      const out = new Uint8Array(4 + raw.length);
      new DataView(out.buffer).setUint32(0, raw.length, true);
      out.set(raw, 4);
      return out;
    }
  }
}
