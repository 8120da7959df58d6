/** Variants of what is kept of incarnations that are over (store/change/past.ts). */
import type { WireRow } from "../../../store/wire/message.ts";
import { holds, prefixRange } from "../../../store/model/range.ts";
import { packKey } from "../../../store/model/key.ts";
import { decodeJson, encodeJson, type PastGroup } from "../../../store/members/topology.ts";
import { hooked, type Variant, withFaults } from "./hooks.ts";

const PAST_RANGE = prefixRange(packKey(["s", "past"]));

/** All that such an incarnation had is said to be at the root. */
function withoutEnd(row: WireRow): WireRow {
  if (!holds(PAST_RANGE, row.key) || row.value === null) return row;
  const groups = decodeJson(row.value) as PastGroup[];
  const past = groups.map((group) => ({
    ...group,
    over: group.over.map((each) => ({ ...each, stable: Number.MAX_SAFE_INTEGER })),
  }));
  return { ...row, value: encodeJson(past) };
}

export const forgetsPast: Variant = {
  name: "incarnations that are over of which is forgotten how far they had come",
  rule: "past Z1: what is kept of an incarnation that is over says all that its own rows said",
  make: () =>
    hooked(() => ({
      sends: (_, message) =>
        message.kind === "feed" || message.kind === "fetched"
          ? [{ ...message, rows: message.rows.map(withoutEnd) }]
          : [message],
    })),
  change: withFaults({ wipe: 8, nap: 4, crash: 4 }),
  from: 360,
};
