/**
 * A message of an old link that comes once more over the next one. Links hand over nothing of a connection after
 * its `disconnected` (store/model/ports.ts, `Network`), so that it can't happen; and a message that is heard twice does no
 * harm: rows are taken by version, positions and marks never go back. What sites send again themselves after a
 * reconnect, since they did not know that it had arrived, is in every run (network.ts L1, probe "link late").
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { Message } from "../../store/wire/message.ts";
import { hooked, restless, withFaults } from "./broken/hooks.ts";
import { simulate } from "./simulation.ts";
import { drawPlan } from "./topology.ts";

const SEEDS = Number(Deno.env.get("SOJOURN_SIM_LATE_SEEDS") ?? 25);
/** How often messages came late over all seeds, at least: else the runs show nothing. */
const LATE_MIN = 40;

/** Sends the last feed or push of an old link again once the new one carries the same kind of message. */
function late(kind: "feed" | "push", tell: () => void) {
  return hooked(() => {
    const last = new Map<string, Message>();
    const old = new Map<string, Message>();
    const isNew = kind === "feed" ? "welcome" : "hello";
    return {
      sends: (to, message) => {
        if (message.kind === isNew) {
          const was = last.get(to);
          if (was !== undefined) old.set(to, was);
          last.delete(to);
        }
        if (message.kind !== kind || message.more) return [message];
        last.set(to, message);
        const was = old.get(to);
        old.delete(to);
        if (was === undefined || !isAlike(was, message)) return [message];
        tell();
        return [message, was];
      },
    };
  });
}

/** A sender that has another parent since speaks of other ancestors: its old feed would stop the receiver, loudly. */
const isAlike = (was: Message, message: Message): boolean =>
  was.kind !== "feed" || message.kind !== "feed" || was.down.length === message.down.length;

for (const kind of ["feed", "push"] as const) {
  Deno.test(`store keeps its guarantees when a ${kind} of an old link comes over the next one`, async () => {
    let times = 0;
    for (let seed = 0; seed < SEEDS; seed++) {
      const { violations } = await simulate({
        seed,
        open: late(kind, () => times++),
        change: () =>
          restless(
            withFaults({ partition: 10, oneWay: 4, wipe: 0, wipeInner: 0, remove: 0 })(drawPlan(seed)),
          ),
      });
      deepStrictEqual(violations, [], `seed ${seed}`);
    }
    ok(times >= LATE_MIN, `${times} times`);
  });
}
