/** Frames of an isolate whose app has bent its JavaScript: what a site makes of them (tests/runtime/isolate/forged_site.ts). */
import { ForgedSite } from "../runtime/isolate/forged_site.ts";
import { encode, type Field, forgeries, type Form, FORMS } from "../runtime/isolate/frame_forms.ts";
import { type Dice, mutateBytes } from "./dice.ts";
import type { Target } from "./target.ts";

/** Frames of one attempt: what one of them leaves open the next may meet. */
const FRAMES_MAX = 4;
/** How often it is looked whether another app would notice. */
const LOOKS_EACH = 500;

/** The header of a frame. */
const HEADER_BYTES = 9;

/** One field of a frame forged, or any of its bytes changed. */
function forged(dice: Dice, form: Form): readonly Field[] {
  const at = dice.below(form.fields.length + 1);
  const field = form.fields[at];
  if (field !== undefined) return form.fields.with(at, dice.pick(forgeries(field)));
  if (dice.below(2) === 0) return form.fields;
  const other = dice.pick(FORMS);
  const payload = (of: Form) => encode(of.type, 0, of.fields).subarray(HEADER_BYTES);
  return [["rest", mutateBytes(dice, payload(form), payload(other))]];
}

/** Whole sequences of forged frames. */
export const isolateFrames: Target = {
  name: "isolate frames",
  says:
    "are understood, ignored, or the end of the isolate that sent them; the site and its other apps go on",
  reaches: ["ended", "goes on"],
  quick: 2_000,
  open() {
    const site = ForgedSite.open();
    let attempts = 0;
    return {
      async attempt(dice) {
        const said = Array.from({ length: 1 + dice.below(FRAMES_MAX) }, () => {
          const form = dice.pick(FORMS);
          return { form, fields: dice.below(3) === 0 ? form.fields : forged(dice, form) };
        });
        const open = await site;
        const heard = await open.hears(said);
        if (attempts++ % LOOKS_EACH === 0) await open.works();
        return heard;
      },
      close: async () => await (await site).close(),
    };
  },
};
