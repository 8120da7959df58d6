/** Frames of stateful sessions against docs/protocol/session-frames.md (tests/golden/session_frames.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import {
  decodeToHome,
  decodeToHost,
  encodeToHome,
  encodeToHost,
} from "../../functions/sessions/attach/mod.ts";
import type { ToHome, ToHost } from "../../functions/sessions/attach/mod.ts";
import { decodeSummary, encodeSummary } from "../../functions/sessions/sealed/mod.ts";
import { CodecError } from "../../store/model/codec.ts";
import { runPython, storedVectors } from "./python.ts";

const Frames = z.array(z.strictObject({ frame: z.looseObject({}), bytes: z.string() }));
const Refused = z.array(z.strictObject({ why: z.string(), bytes: z.string() }));
const Vectors = z.strictObject({
  toHome: Frames,
  toHost: Frames,
  refusedToHome: Refused,
  refusedToHost: Refused,
  summaries: z.array(z.strictObject({
    summary: z.strictObject({ promised: z.number(), tag: z.string().nullable() }),
    bytes: z.string(),
  })),
  refusedSummaries: Refused,
});
const text = await storedVectors("session_frames.json");
const vectors = Vectors.parse(JSON.parse(text));

const unhex = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** Fields that are bytes, and stand in the vectors as hexadecimal text. */
const BYTES = new Set(["key", "log", "increment", "hex", "tag", "record"]);
function filled(value: unknown, key = ""): unknown {
  if (BYTES.has(key) && typeof value === "string") return unhex(value);
  if (Array.isArray(value)) return value.map((one) => filled(one, "record"));
  if (typeof value !== "object" || value === null) return value;
  const made = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, name)]));
  return key === "payload" ? made.text ?? made.hex : made;
}

Deno.test("golden session frames: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("session_frames.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden session frames: frames have the bytes that the document gives", () => {
  for (const { frame, bytes } of vectors.toHome) {
    const wanted = filled(frame) as ToHome;
    assert.equal(hex(encodeToHome(wanted)), bytes);
    assert.deepEqual(decodeToHome(unhex(bytes)), wanted);
  }
  for (const { frame, bytes } of vectors.toHost) {
    const wanted = filled(frame) as ToHost;
    assert.equal(hex(encodeToHost(wanted)), bytes);
    assert.deepEqual(decodeToHost(unhex(bytes)), wanted);
  }
});

Deno.test("golden session frames: what is no frame is refused", () => {
  for (const { why, bytes } of vectors.refusedToHome) {
    assert.throws(() => decodeToHome(unhex(bytes)), CodecError, why);
  }
  for (const { why, bytes } of vectors.refusedToHost) {
    assert.throws(() => decodeToHost(unhex(bytes)), CodecError, why);
  }
});

Deno.test("golden session frames: what a hello says of a log has the bytes that the document gives, and no others", () => {
  for (const { summary: { promised, tag }, bytes } of vectors.summaries) {
    const wanted = { promised, tag: tag === null ? null : unhex(tag) };
    assert.equal(hex(encodeSummary(wanted)), bytes);
    assert.deepEqual(decodeSummary(unhex(bytes)), wanted);
  }
  for (const { why, bytes } of vectors.refusedSummaries) {
    assert.throws(() => decodeSummary(unhex(bytes)), CodecError, why);
  }
});

Deno.test("golden session frames: every form of a direction is among the vectors", () => {
  const kinds = (of: readonly { readonly frame: Record<string, unknown> }[]) =>
    new Set(of.map(({ frame }) => String(frame.kind)));
  assert.deepEqual([...kinds(vectors.toHome)].sort(), [
    ...["ack", "hello", "leave", "log", "message", "ping", "taken"],
  ]);
  assert.deepEqual(
    [...kinds(vectors.toHost)].sort(),
    [
      ...["ack", "bye", "dismissed", "fence", "moved", "output", "pong", "record", "refused", "rejected"],
      "welcome",
    ],
  );
});
