/** The link protocol against its test vectors, which tests/golden/frames.py computes from the document alone. */
import { strict as assert } from "node:assert";
import { createHash } from "node:crypto";
import { encodeBodyHead } from "../../runtime/link/body.ts";
import { zeroCounters } from "../../runtime/link/counters.ts";
import { encodeFrame, LINK_FRAME } from "../../runtime/link/frame.ts";
import {
  decodeAcceptorHello,
  decodeDialerHello,
  decodeDialerProof,
  decodeVerdict,
  encodeAcceptorHello,
  encodeDialerHello,
  encodeDialerProof,
  encodeVerdict,
} from "../../runtime/link/hello.ts";
import { DEFAULT_LINK_LIMITS } from "../../runtime/link/limits.ts";
import { errorByte } from "../../runtime/link/link_error.ts";
import { MessageSender } from "../../runtime/link/messages.ts";
import { deriveKeys, transcript, verdictProof } from "../../runtime/link/proof.ts";
import { RecordReader, RecordWriter } from "../../runtime/link/record.ts";
import golden from "./frames.json" with { type: "json" };

const hex = (bytes: Uint8Array) => bytes.toHex();
const unhex = (text: string) => Uint8Array.fromHex(text);
const utf8 = (text: string) => new TextEncoder().encode(text);

/** A handshake message without its length. */
function body(text: string): Uint8Array {
  const message = unhex(text);
  assert.equal(256 * (message[0] ?? 0) + (message[1] ?? 0), message.length - 2);
  return message.slice(2);
}

const hello = {
  versionLowest: 1,
  versionHighest: 1,
  role: "child",
  site: golden.dialer.site,
  incarnation: golden.dialer.incarnation,
  nonce: unhex(golden.dialer.nonce),
  boot: unhex(golden.dialer.boot),
  target: golden.acceptor.site,
} as const;
const answer = {
  version: 1,
  site: golden.acceptor.site,
  incarnation: golden.acceptor.incarnation,
  nonce: unhex(golden.acceptor.nonce),
  boot: unhex(golden.acceptor.boot),
};
const digest = transcript(encodeDialerHello(hello), encodeAcceptorHello(answer));
const keys = deriveKeys(unhex(golden.secret), digest);

Deno.test("golden frames: the handshake is the document's, byte for byte, and is read back", () => {
  const { handshake } = golden;
  assert.equal(hex(digest), golden.transcript);
  assert.equal(hex(encodeDialerHello(hello)), hex(body(handshake.dialerHello)));
  assert.deepEqual({ ...decodeDialerHello(body(handshake.dialerHello)) }, hello);
  const acceptorHello = decodeAcceptorHello(body(handshake.acceptorHello));
  assert.deepEqual(acceptorHello?.hello, answer);
  assert.equal(hex(acceptorHello?.covered ?? utf8("")), hex(encodeAcceptorHello(answer)));
  assert.equal(hex(keys.acceptorProof), hex(acceptorHello?.proof ?? utf8("")));
  assert.equal(hex(encodeDialerProof(keys.dialerProof)), hex(body(handshake.dialerProof)));
  assert.equal(hex(keys.dialerProof), hex(decodeDialerProof(body(handshake.dialerProof)) ?? utf8("")));
  for (
    const [verdict, expected] of [
      [{ admitted: true, reason: "" }, handshake.verdictAdmitted],
      [{ admitted: false, reason: "site edge-1 is not known" }, handshake.verdictRefused],
    ] as const
  ) {
    const read = decodeVerdict(body(expected));
    assert.deepEqual(read?.verdict, verdict);
    assert.equal(hex(encodeVerdict(verdict)), hex(read?.covered ?? utf8("")));
    assert.equal(hex(verdictProof(keys.verdictKey, encodeVerdict(verdict))), hex(read?.proof ?? utf8("")));
  }
});

Deno.test("golden frames: keys and records are the document's, and are read back", () => {
  assert.equal(hex(keys.dialerKey), golden.keys.dialerRecords);
  assert.equal(hex(keys.acceptorKey), golden.keys.acceptorRecords);
  assert.equal(hex(keys.verdictKey), golden.keys.verdict);
  for (const from of ["dialer", "acceptor"] as const) {
    const key = from === "dialer" ? keys.dialerKey : keys.acceptorKey;
    const writer = new RecordWriter(key);
    for (const record of golden.records.filter((record) => record.from === from)) {
      writer.begin();
      writer.append(unhex(record.payload));
      assert.equal(hex(writer.seal()), record.bytes);
    }
    const stream = golden.records.filter((record) => record.from === from).map(({ bytes }) => bytes).join("");
    const reader = new RecordReader(key, unhex(stream));
    for (const record of golden.records.filter((record) => record.from === from)) {
      assert.equal(hex(reader.take() ?? utf8("")), record.payload);
    }
  }
});

Deno.test("golden frames: every frame is the document's, byte for byte", () => {
  const parts = new RecordWriter(new Uint8Array(32));
  const sender = new MessageSender(DEFAULT_LINK_LIMITS, zeroCounters());
  sender.push(utf8("store"));
  sender.push(new Uint8Array(32_769).fill(0xab));
  parts.begin();
  sender.fill(parts, 100_000);
  const stored = parts.seal().slice(4, -16);
  const ours: Record<keyof typeof golden.frames, Uint8Array> = {
    message: stored.slice(0, 9),
    messageBegin: stored.slice(9, 9 + 8 + 32_768),
    messagePart: stored.slice(9 + 8 + 32_768),
    messageCredit: encodeFrame(LINK_FRAME.messageCredit, [1_048_576]),
    open: encodeBodyHead({ type: LINK_FRAME.open, id: 1, flags: 0, kind: utf8("http"), head: utf8("head") }),
    openBodiless: encodeBodyHead({
      type: LINK_FRAME.open,
      id: 3,
      flags: 1,
      kind: utf8("admin"),
      head: utf8(""),
    }),
    answer: encodeBodyHead({ type: LINK_FRAME.answer, id: 1, flags: 0, head: utf8("answer") }),
    data: encodeFrame(LINK_FRAME.data, [1], utf8("bytes")),
    dataLast: encodeFrame(LINK_FRAME.dataLast, [1]),
    stop: encodeFrame(LINK_FRAME.stop, [1]),
    reset: encodeFrame(
      LINK_FRAME.reset,
      [1],
      new Uint8Array([errorByte("cancelled"), ...utf8("given up \u2713")]),
    ),
    credit: encodeFrame(LINK_FRAME.credit, [1, 262_144]),
    ping: encodeFrame(LINK_FRAME.ping, [7]),
    pong: encodeFrame(LINK_FRAME.pong, [7]),
    goodbye: encodeFrame(LINK_FRAME.goodbye, [], utf8("the site stops")),
  };
  for (const [name, expected] of Object.entries(golden.frames)) {
    const bytes = ours[name as keyof typeof golden.frames];
    if (typeof expected === "string") assert.equal(hex(bytes), expected, name);
    else {
      assert.equal(bytes.length, expected.length, name);
      assert.equal(createHash("sha256").update(bytes).digest("hex"), expected.sha256, name);
    }
  }
});

Deno.test("golden frames: the independent program still computes the vectors", async (t) => {
  const script = new URL("./frames.py", import.meta.url).pathname;
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command("python3", { args: [script] }).output();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return void await t.step({ name: "skipped: there is no python3 here", ignore: true, fn: () => {} });
  }
  assert.ok(output.success, new TextDecoder().decode(output.stderr));
  assert.deepEqual(JSON.parse(new TextDecoder().decode(output.stdout)), golden);
});
