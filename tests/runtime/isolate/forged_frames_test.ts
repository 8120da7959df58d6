/** An isolate may say anything: every frame with every field forged ends that isolate, and never more (F4). */
import assert from "node:assert/strict";
import { ISOLATE_FRAME } from "../../../runtime/isolate/frames.ts";
import { ForgedSite } from "./forged_site.ts";
import { type Field, forgeries, type Form, FORMS, NOT_OF_ISOLATES } from "./frame_forms.ts";

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
