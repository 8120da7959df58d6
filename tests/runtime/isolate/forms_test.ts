/** A form as bytes: those of the platform, but for the boundary. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { withFixedBoundary } from "../../../functions/sessions/turn/form_boundary.ts";
import { formBlob } from "../../../runtime/isolate/inside/stateful_forms.ts";

const text = fc.oneof(fc.string(), fc.stringMatching(/^[a"\r\n]{0,8}$/), fc.constant("\u00e9\u20ac"));
const file = fc.tuple(
  text,
  fc.constantFrom("", "text/plain", "image/png;q=1"),
  fc.uint8Array({ maxLength: 20 }),
)
  .map(([name, type, bytes]) => new File([bytes as Uint8Array<ArrayBuffer>], name, { type }));
const parts = fc.array(fc.tuple(text, fc.oneof(text, file)), { maxLength: 6 });

Deno.test("a form with a boundary of ours has the bytes that the platform makes, and its length", async () => {
  await fc.assert(
    fc.asyncProperty(parts, async (entries) => {
      const form = new FormData();
      for (const [name, value] of entries) {
        if (typeof value === "string") form.append(name, value);
        else form.append(name, value);
      }
      const platform = new Response(form);
      const [lead, drawn = ""] = (platform.headers.get("content-type") ?? "").split("boundary=");
      const blob = formBlob(form, drawn);
      assert.equal(blob.type, `${lead}boundary=${drawn}`);
      assert.deepEqual(await blob.bytes(), await platform.bytes());
      assert.equal(drawn.length, 32, "as long as ours");
    }),
    { numRuns: 300, seed: 17 },
  );
});

Deno.test("a form that leaves a session has the same boundary whichever it had before, and its length (stateful_forms.ts SF1)", async () => {
  const form = new FormData();
  form.set("a", "1");
  form.set("f", new File(["file"], "f.txt"));
  const leaving = await Promise.all(["1", "2"].map(async (digit) => {
    const blob = formBlob(form, digit.repeat(28).padStart(32, "-")), bytes = await blob.bytes();
    const { headers, body } = withFixedBoundary([["content-type", blob.type]], bytes);
    assert.equal(body?.length, bytes.length);
    assert.doesNotMatch(new TextDecoder().decode(body ?? undefined), new RegExp(digit.repeat(28)));
    return [headers, new TextDecoder().decode(body ?? undefined)];
  }));
  assert.deepEqual(leaving[0], leaving[1]);
});
