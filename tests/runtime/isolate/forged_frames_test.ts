/** An isolate may say anything: every frame with every field forged ends that isolate, and never more (F4). */
import assert from "node:assert/strict";
import { HEADER_BYTES, ISOLATE_FRAME, ISOLATE_FRAME_BYTES_MAX } from "../../../runtime/isolate/frames.ts";
import { OPERATION } from "../../../runtime/isolate/store_frames.ts";
import { ForgedSite } from "./forged_site.ts";
import { encode, type Field, forgeries, type Form, FORMS, keyOf, NOT_OF_ISOLATES } from "./frame_forms.ts";

Deno.test("every type of frame is forged that an isolate can send", () => {
  const forged = new Set(FORMS.map(({ type }) => type));
  const others = new Set<string>(NOT_OF_ISOLATES);
  for (const [name, type] of Object.entries(ISOLATE_FRAME)) {
    assert.equal(forged.has(type), !others.has(name), name);
  }
});

/** What stands before, so that a frame means something. */
function before(form: Form): Form[] {
  const named = (name: string) => FORMS.filter((one) => one.name === name);
  if (
    form.type === ISOLATE_FRAME.data || form.type === ISOLATE_FRAME.credit || form.type === ISOLATE_FRAME.end
  ) {
    return named(form.of === "fetch" ? "fetch start" : "streamed response");
  }
  if (/^socket/.test(form.name)) return named("upgrade");
  if (form.of === "session" && form.type !== ISOLATE_FRAME.sessionOpened) return named("session opened");
  return [];
}

Deno.test("every field of every frame is forged, and the site and its other apps are as they were (F4)", async () => {
  const site = await ForgedSite.open();
  const counts = { ended: 0, "goes on": 0 };
  try {
    for (const form of FORMS) {
      const said = before(form).map((form) => ({ form, fields: form.fields }));
      const hears = async (fields: readonly Field[], what: string) => {
        const heard = await site.hears([...said, { form, fields }]).catch((error) => {
          throw new Error(`${form.name}, ${what}: ${error.message}`);
        });
        counts[heard]++;
      };
      await hears(form.fields, "as it is");
      await hears([...form.fields, ["u8", 0]], "with a byte too many");
      for (const [at, field] of form.fields.entries()) {
        await hears(form.fields.toSpliced(at, 1), `without field ${at}`);
        for (const forged of forgeries(field)) {
          await hears(
            form.fields.with(at, forged),
            `field ${at} as ${forged[0]} ${String(forged[1]).slice(0, 40)}`,
          );
        }
      }
      await site.works();
    }
  } finally {
    await site.close();
  }
  assert.ok(counts.ended > 300 && counts["goes on"] > 300, JSON.stringify(counts));
});

const KEY: Field = ["bytes", keyOf("kv", "x")];
const SESSION_COMMIT = FORMS.find(({ name }) => name === "session commit")?.fields ?? [];
/** Where the mutations of its one effect are named; three fields of the first follow, then those of two others. */
const MUTATIONS_AT = SESSION_COMMIT.findIndex(([kind, value], at) =>
  kind === "u32" && value === 3 && at > 10
);
const call = (operation: number): Field[] => [["u32", 5], ["u8", operation]];
const text = (unit: string, bytes: number): Field => ["text", unit.repeat(Math.floor(bytes / unit.length))];

/** A list as long as a frame takes it: `head`, how many there are, each of them, and what follows. */
function list(name: string, head: readonly Field[], each: readonly Field[], after: readonly Field[] = []) {
  const each1 = fieldBytes(each), room = ISOLATE_FRAME_BYTES_MAX - 5 - fieldBytes([...head, ...after]).length;
  const count = Math.floor((room - 4) / each1.length), all = new Uint8Array(count * each1.length);
  for (let at = 0; at < all.length; at += each1.length) all.set(each1, at);
  return [name, [...head, ["u32", count], ["rest", all], ...after]] as const;
}

const fieldBytes = (fields: readonly Field[]): Uint8Array => encode(0, 0, fields).subarray(HEADER_BYTES);

/** By the name of a form: lists and texts as long as a frame is, any of which held a site for a tenth of a second or more. */
const LONGEST: readonly (readonly [name: string, fields: readonly Field[]])[] = [
  list("commit", call(OPERATION.commit), [KEY, ["text", ""]], [["u32", 0]]),
  list("commit", call(OPERATION.commit), [["text", ""], ["text", ""]], [["u32", 0]]),
  list("commit", [...call(OPERATION.commit), ["u32", 0]], [["u8", 1], KEY]),
  list("get", [...call(OPERATION.get), ["u8", 1]], [KEY]),
  list("get", [...call(OPERATION.get), ["u8", 1]], [["text", ""]]),
  list("watch", call(OPERATION.watch), [KEY, ["bytes", keyOf("kv", "y")]]),
  list("watch", call(OPERATION.watch), [["text", ""], ["text", ""]]),
  list(
    "session commit",
    SESSION_COMMIT.slice(0, MUTATIONS_AT),
    [["u8", 1], KEY],
    SESSION_COMMIT.slice(MUTATIONS_AT + 10),
  ),
  list("queue send", [["u32", 1], ["text", "jobs"]], [["text", ""], ["f64", NaN], ["f64", NaN], [
    "bytes",
    Uint8Array.from([1, 0x61]),
  ]]),
  ["queue send", [
    ...[["u32", 1], ["text", "jobs"], ["u32", 1], ["text", ""], ["f64", NaN], ["f64", NaN]] as Field[],
    ["bytes", new Uint8Array(8_000_000).fill(1)],
  ]],
  ["queue send", [["u32", 1], text("x", 8_000_000), ["u32", 0]]],
  ["get", [...call(OPERATION.get), ["u8", 1], ["u32", 1], ["bytes", new Uint8Array(8_000_000).fill(2)]]],
  ["list", [
    ...call(OPERATION.list),
    ["u8", 1],
    ["u8", 0],
    ["u32", 10],
    ["bytes", new Uint8Array(8_000_000)],
    KEY,
  ]],
  ["response", [["u16", 200], ["u8", 0], text("OK\0x-a\0b", 8_000_000)]],
  ["response", [["u16", 200], ["u8", 0], text("\0", 8_000_000)]],
  ["response", [["u16", 200], ["u8", 0], ["text", `OK\0x-a\0${"b".repeat(8_000_000)}`]]],
  ["fetch start", [["u32", 1], ["u8", 0], text("follow\0GET\0http://a.example/\0x-a\0", 8_000_000)]],
  ["fetch start", [["u32", 1], ["u8", 0], ["text", `follow\0GET\0http://${"a.".repeat(4_000_000)}`]]],
  ["failed", [text("x", 8_000_000), ["text", ""], ["text", ""], ["text", ""]]],
  ["log", [text("x", 8_000_000), ["text", "line"]]],
  ["upgrade", [text("x", 8_000_000)]],
  ["attach", [text("x", 8_000_000), ["text", "a"]]],
  ["loaded", [text("[", 8_000_000)]],
];

Deno.test("a frame that names more than an app may, or says it at greater length, ends its isolate before it is read (F5)", async () => {
  const site = await ForgedSite.open();
  try {
    for (const [at, [name, fields]] of LONGEST.entries()) {
      const form = FORMS.find((one) => one.name === name);
      assert.ok(form !== undefined, name);
      const said = before(form).map((form) => ({ form, fields: form.fields }));
      assert.equal(await site.hears([...said, { form, fields }]), "ended", `${name}, ${at}`);
    }
    await site.works();
  } finally {
    await site.close();
  }
});
