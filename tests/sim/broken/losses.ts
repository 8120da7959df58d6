/** Variants of what follows the loss of disks: who is waited for, and what is known of who was there. */
import { unpackKey } from "../../../store/key.ts";
import { encodeMessage, type WireRow } from "../../../store/message.ts";
import { decodeJson } from "../../../store/topology.ts";
import type { Plan } from "../topology.ts";
import { deep, hooked, type Variant, withFaults } from "./hooks.ts";

/**
 * Two inner sites in a row below a slow link, so that much of what their edges wrote is known nowhere above when
 * both lose their disks.
 */
function losing(plan: Plan): Plan {
  const calm = { crash: 0, stop: 0, point: 0, evict: 0, remove: 0, nap: 0, wipe: 0 };
  const tree = withFaults({ ...calm, wipeInner: 4 })(deep(plan));
  const sites = tree.sites.map((site) => ({
    ...site,
    linkMs: site.id === "c1" ? [60, 150] as const : [1, 2] as const,
  }));
  return { ...tree, sites, safetyMs: 3_000 };
}

export const blankHasPushed: Variant = {
  name: "a blank child that counts as one that has pushed",
  rule: "I8: a resync closes only when those below have closed",
  make: () =>
    hooked((site) => {
      let parent = "";
      let isBlank = false;
      return {
        sends: (to, message) => {
          if (message.kind === "hello") {
            isBlank = message.replica === 0;
            parent = to;
          }
          return [message];
        },
        receives: (from, message, _, ports) => {
          if (message.kind === "welcome" && isBlank && from === parent && site !== "") {
            const nothing = { upTo: 0, stable: 0, clock: 0, rows: [], more: false } as const;
            void ports.network.send(parent, encodeMessage({ kind: "push", ...nothing }));
          }
          return [message];
        },
      };
    }),
  change: losing,
};

export const forgetsChildren: Variant = {
  name: "a blank site that does not ask who its children were",
  rule: "I8: an inner site that lost its disk passes nothing on before each of its children has pushed again",
  make: () =>
    hooked((site) => ({
      receives: (_, message) => {
        if (message.kind !== "fetched" && message.kind !== "feed") return [message];
        return [{ ...message, rows: message.rows.filter((row) => !namesChildOf(row, site)) }];
      },
    })),
  change: losing,
};

/** Whether a row tells that a site joined below another. */
function namesChildOf(row: WireRow, parent: string): boolean {
  const [space, kind] = unpackKey(row.key);
  if (space !== "s" || (kind !== "site" && kind !== "replica")) return false;
  const value = decodeJson(row.value) as { parent?: unknown; path?: readonly string[] } | undefined;
  return value?.parent === parent || value?.path?.at(-2) === parent;
}
